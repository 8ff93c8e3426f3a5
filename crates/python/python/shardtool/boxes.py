"""Boxes and keypoints that go through the geometry of their image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .checks import instance, real, whole
from .errors import OptionError, OptionTypeError
from .objects import BBOX, CLASS, KEYPOINTS

__all__ = ["Objects", "flip_index"]

#: Words for the two sides of points.
_SIDES = (("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT"))


@dataclass(frozen=True)
class Objects:
    """The objects in an image: their boxes, other numbers of theirs, and keypoints. The defaults are what `pack` stores.

    A batch has `"boxes"`, a `Ragged` of `[n, 4]` float32: left, top, right and bottom in pixels of the result, clipped to it;
    `"labels"`, a `Ragged` of int64, if `image/object/class/label` is among the properties; other properties by their feature's
    name; and `"keypoints"`, a `Ragged` of `[n * k, 3]` float32: x, y and visibility, 0 for points outside the result.

    Parameters
    ----------
    boxes
        Feature with four numbers for each object.
    box_format
        What the four numbers are: left, top, right, bottom (`"xyxy"`), left, top, width, height (`"xywh"`), or centre, width,
        height (`"cxcywh"`).
    unit
        `"fraction"` of the width and height of the stored image, or `"pixel"`. Also of keypoints.
    properties
        Features with one number for each object, which are dropped with it.
    keypoints
        Feature with x, y and visibility of points, the same number for each object.
    flip_index
        The number that each point has in a mirrored object, as YOLO's `flip_idx`: `[0, 2, 1]` for a nose and two eyes, so that
        the left eye stays the first after a flip. `flip_index(names)` makes it from names. Needed with keypoints and steps that
        flip; `range(k)` for points without sides.
    min_size, min_area
        Objects whose box becomes narrower or lower than `min_size` pixels of the result, or smaller than `min_area` of them,
        are dropped.
    """

    boxes: str = BBOX
    box_format: Literal["xyxy", "xywh", "cxcywh"] = "xyxy"
    unit: Literal["fraction", "pixel"] = "fraction"
    properties: Sequence[str] = (CLASS,)
    keypoints: str | None = None
    flip_index: Sequence[int] | None = None
    min_size: float = 1.0
    min_area: float = 1.0

    def __post_init__(self) -> None:
        instance("boxes", self.boxes, (str,), "the name of a feature")
        if isinstance(self.properties, str) or not all(isinstance(name, str) for name in self.properties):
            raise OptionTypeError(f"`properties` is {self.properties!r}: expected a list of names")
        if self.keypoints is not None:
            instance("keypoints", self.keypoints, (str,), f"the name of a feature, such as {KEYPOINTS!r}")
        if self.flip_index is not None:
            order = [whole("flip_index", at, 0, 2**32 - 1) for at in self.flip_index]
            object.__setattr__(self, "flip_index", tuple(order))
        for name in ("min_size", "min_area"):
            if not real(name, getattr(self, name)) >= 0:
                raise OptionError(f"`{name}` is {getattr(self, name)}: expected at least 0")

    def _native(self) -> dict[str, Any]:
        return {
            "boxes": self.boxes,
            "format": self.box_format,
            "unit": self.unit,
            "properties": list(self.properties),
            "keypoints": self.keypoints,
            "flip_index": None if self.flip_index is None else list(self.flip_index),
            "min_size": float(self.min_size),
            "min_area": float(self.min_area),
        }


def flip_index(names: Sequence[str]) -> list[int]:
    """Returns the number that each point has in a mirrored object, for `Objects(flip_index=...)`: `left_eye` and `right_eye`
    change places, names without `left` or `right` stay.

    Raises
    ------
    OptionError
        A name has `left` or `right`, and the name of the other side is not there, or a name occurs twice.

    Examples
    --------
    >>> st.flip_index(["nose", "left_eye", "right_eye"])
    [0, 2, 1]
    """
    at = {name: number for number, name in enumerate(names)}
    if len(at) != len(names):
        raise OptionError(f"`names`: {next(name for name in names if list(names).count(name) > 1)!r} occurs twice")
    order = []
    for name in names:
        pairs = [(a, b) for pair in _SIDES for a, b in (pair, pair[::-1]) if a in name]
        other = name.replace(*pairs[0]) if pairs else name
        if other not in at:
            raise OptionError(f"`names` has {name!r}, but not {other!r}")
        order.append(at[other])
    return order
