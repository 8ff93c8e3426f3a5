"""What a batch has of each record: the fields of a loader, and how they are given."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

from .checks import whole
from .converted import function_of as function_at_end
from .converted import views_of
from .errors import OptionError, OptionTypeError
from .option import Check
from .options import (
    Arrays,
    RaggedArrays,
    Clip,
    Column,
    FurtherImage,
    Image,
    Mask,
    Objects,
    PixelMask,
    Pixels,
    Tokens,
)
from .transforms import CenterCrop, CornerCrop, Function, Step, Transform
from .transforms.step import Size

__all__ = ["Field", "Fields", "Views", "as_fields", "five_crop"]


def _named_views(name: str, value: Any) -> dict[str, Sequence[Step]]:
    """Returns the steps of each view by name, those that occur several times with a number."""
    if not isinstance(value, Mapping) or not value:
        raise OptionTypeError(f'`{name}` is {value!r}: expected at least one view, such as `Views({{"left": [...], "right": [...]}})`')
    named: dict[str, Sequence[Step]] = {}
    for view, steps in value.items():
        if isinstance(steps, tuple) and len(steps) == 2 and isinstance(steps[1], numbers.Integral):
            count = whole(str(view), steps[1], 1, 1000)
            named.update({f"{view}.{number}": steps[0] for number in range(count)})
        else:
            named[str(view)] = cast("Sequence[Step]", steps)
    views_of(named)
    return named


@dataclass(frozen=True, repr=False)
class Views(Pixels):
    """Several results of one image, which is decoded once: an array of the batch each.

        Views({"global": ([RandomResizedCrop(224, scale=(0.4, 1))], 2), "local": ([RandomResizedCrop(96, scale=(0.05, 0.4))], 6)})

    makes `batch["image.global.0"]`, `batch["image.global.1"]` and `batch["image.local.0"]` to `batch["image.local.5"]`. The random
    numbers of a view depend only on seed, epoch, sample and the view's number. Other options are those of `Image`.

    Parameters
    ----------
    views
        The steps of each view, by name; or its steps and how many of them.
    """

    views: Mapping[str, Sequence[Step] | tuple[Sequence[Step], int]]

    _checks: ClassVar[Mapping[str, Check]] = {"views": _named_views}
    _positional: ClassVar[int] = 1

    def _json(self) -> dict[str, Any]:
        return {"views": views_of(self.views), "pixels": self._pixels()}


#: What a batch has of each record.
Field: TypeAlias = "Image | Views | FurtherImage | Mask | PixelMask | Objects | Clip | Arrays | RaggedArrays | Column | Tokens"
#: The fields of a loader: one of them, a list of them (text is the feature of a `Column`), or the steps of an image. This is one
#: sequence because type checkers infer no type for a list of several kinds from a union of sequences.
Fields: TypeAlias = "Field | Sequence[Field | str | Step]"

_NAMES = {
    Image: "image", Views: "image", FurtherImage: "further_image", Mask: "mask", PixelMask: "pixel_mask", Objects: "objects", Clip: "clip",
    Arrays: "arrays", RaggedArrays: "ragged_arrays", Column: "column", Tokens: "tokens",
}  # fmt: skip


def as_fields(given: Any) -> list[Any]:
    """Returns the fields of a loader; `None` is the image as it is stored."""
    if given is None:
        return [Image()]
    if isinstance(given, tuple(_NAMES)):
        return [given]
    if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence):
        raise OptionTypeError(f"`fields` is {given!r}: expected a list of steps, a field such as `Image(...)`, or a list of fields")
    if not given:
        raise OptionError("`fields` is empty: expected the steps of an image, or fields such as `Image(...)` and `Column(...)`")
    for item in given:
        if isinstance(item, type):
            raise OptionTypeError(f"`fields`: {item.__name__} is a class: make one, `{item.__name__}(...)`")
    if not any(isinstance(item, (str, *_NAMES)) for item in given):
        return [Image(given)]
    fields = []
    for item in given:
        if isinstance(item, (Transform, Function)) or not isinstance(item, (str, *_NAMES)):
            raise OptionTypeError(f"`fields`: {item!r} is not a field: the steps of an image belong in `Image([...])`")
        fields.append(Column(item) if isinstance(item, str) else item)
    return fields


def fields_json(fields: Sequence[Any], *, bucketed: bool) -> list[Any]:
    """Returns the fields as JSON. `bucketed` says that buckets have the steps of the image."""
    return [_json(field, bucketed) for field in fields]


def _json(field: Any, bucketed: bool) -> Any:
    if isinstance(field, Image) and field.steps is None and not bucketed:
        if asked := field._given():
            raise OptionError(f"`{asked[0]}`: images as stored are not decoded: give the steps of the image as well")
        return "record"
    if isinstance(field, Image) and field.steps is not None and bucketed:
        raise OptionError("`buckets` has the steps of each shape: leave out those of `Image`")
    return {_NAMES[type(field)]: field._json()}


def function_of(fields: Sequence[Any]) -> Callable[..., Any] | None:
    """Returns the function at the end of the steps of the image or clip."""
    for field in fields:
        steps = field.views if isinstance(field, Views) else getattr(field, "steps", None)
        if steps is not None:
            return function_at_end(steps)
    return None


def picture_names(fields: Sequence[Any]) -> list[str]:
    """Returns the names of the arrays of images in a batch, without those of values."""
    names, views = [], [""]
    for field in fields:
        if isinstance(field, (Image, Views, Clip)):
            names.append(field.feature if isinstance(field, Clip) else "image")
            steps = field.views if isinstance(field, Views) else field.steps
            views = [f".{name}" for name in steps] if isinstance(steps, Mapping) else [""]
        elif isinstance(field, FurtherImage) and field.kind != "values":
            names.append(field.feature)
    return [name + view for name in names for view in views]


def pixels_of(fields: Sequence[Any]) -> Pixels | None:
    """Returns how images, or the frames of clips, are delivered."""
    return next((field for field in fields if isinstance(field, Pixels)), None)


def five_crop(size: Size, *before: Transform, after: Sequence[Step] = (), **pixels: Any) -> Views:
    """Returns the views `top_left`, `top_right`, `bottom_left`, `bottom_right` and `center` of `size`, for the evaluation of
    several crops of an image.

    Parameters
    ----------
    size
        Size of each crop, in pixels: a side, or (height, width).
    before
        Steps before the crops, such as `Resize(256)`.
    after
        Steps after them.
    pixels
        Options of `Views`, such as `mean`.
    """
    crops: Mapping[str, Transform] = {
        "top_left": CornerCrop(size, "top_left"),
        "top_right": CornerCrop(size, "top_right"),
        "bottom_left": CornerCrop(size, "bottom_left"),
        "bottom_right": CornerCrop(size, "bottom_right"),
        "center": CenterCrop(size),
    }
    return Views({name: [*before, crop, *after] for name, crop in crops.items()}, **pixels)
