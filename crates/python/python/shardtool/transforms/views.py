"""Lists of steps: for the image, or for several views of it, with a function of your own at the end."""

from __future__ import annotations

import json
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union, cast

import numpy as np

from ..checks import whole
from ..errors import OptionError, OptionTypeError
from .foreign import check_function
from .geometry import CenterCrop, CornerCrop
from .step import Size, Transform

__all__ = ["Function", "Step", "Views", "five_crop", "native_views"]


@dataclass(frozen=True)
class Function:
    """A function of your own, as the last step. A callable that is not a `Transform` may be given instead.

    The loader's threads call it one at a time, because they need the GIL: a slow function bounds the rate, and `stats()`
    counts its time as *function*. If it raises, the epoch ends: the exception is raised by the `for` loop, with a
    note that names the sample.

    Parameters
    ----------
    function
        `function(image, seed)` gets the finished image, u8 `[H, W, 3]`, a copy that it may change and keep, and a
        seed from 0 to 2³² − 2 that depends only on the loader's seed, epoch and sample. It returns an image of the same
        size and type, or `None` if it changed its argument in place.
    """

    function: Callable[[np.ndarray, int], np.ndarray | None]



#: A step, or a function of your own as the last one.
Step = Union[Transform, Function, Callable[[np.ndarray, int], "np.ndarray | None"]]


class Views:
    """Several results of one image, which is decoded once: an array of the batch each.

        Views(global_=([RandomResizedCrop(224, scale=(0.4, 1))], 2), local=([RandomResizedCrop(96, scale=(0.05, 0.4))], 6))

    makes `batch["image.global.0"]`, `batch["image.global.1"]` and `batch["image.local.0"]` to `batch["image.local.5"]`. Each
    keyword is a list of steps, or such a list and a number of views; an underscore at its end is left out. The random numbers
    of a view depend only on seed, epoch, sample and the view's number.
    """

    def __init__(self, **views: Sequence[Step] | tuple[Sequence[Step], int]):
        if not views:
            raise OptionError("`Views()`: expected at least one view, such as `Views(left=[...], right=[...])`")
        #: Name and steps of each view.
        self.views: list[tuple[str, Sequence[Step]]] = []
        for keyword, value in views.items():
            name = keyword.rstrip("_")
            if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], numbers.Integral):
                count = whole(keyword, value[1], 1, 1000)
                steps = cast("Sequence[Step]", value[0])
                self.views += [(f"{name}.{number}", steps) for number in range(count)]
            else:
                self.views.append((name, cast("Sequence[Step]", value)))

    def __repr__(self) -> str:
        return f"Views({', '.join(f'{name}={steps!r}' for name, steps in self.views)})"


def five_crop(size: Size, *before: Transform, after: Sequence[Step] = ()) -> Views:
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
    """
    crops: Mapping[str, Transform] = {
        "top_left": CornerCrop(size, "top_left"),
        "top_right": CornerCrop(size, "top_right"),
        "bottom_left": CornerCrop(size, "bottom_left"),
        "bottom_right": CornerCrop(size, "bottom_right"),
        "center": CenterCrop(size),
    }
    return Views(**{name: [*before, crop, *after] for name, crop in crops.items()})


def native_views(transform: Sequence[Step] | Views) -> tuple[list[tuple[str, str]], Callable[..., Any] | None]:
    """Returns the name and the steps as JSON of each view, and the function at the end of all of them."""
    views = transform.views if isinstance(transform, Views) else [("", transform)]
    named = [(name, *_split_function(steps)) for name, steps in views]
    functions = [function for _, _, function in named]
    if any(function is not functions[0] for function in functions):
        raise OptionError("`transform`: views end with different functions: give the same one to each")
    return [(name, steps) for name, steps, _ in named], functions[0]


def _split_function(steps: Sequence[Step]) -> tuple[str, Callable[..., Any] | None]:
    """Returns the steps as JSON, and the function at their end."""
    if isinstance(steps, (Transform, str)) or not isinstance(steps, Iterable):
        raise OptionTypeError(f"`transform` is {steps!r}: expected a list of steps")
    steps = list(steps)
    function: Any = None
    if steps and not isinstance(steps[-1], Transform):
        last = steps.pop()
        function = last.function if isinstance(last, Function) else last
        if not callable(function):
            raise OptionTypeError(f"`transform`: {last!r} is neither a step nor a function")
        check_function(function, _steps())
    named = []
    for step in steps:
        if not isinstance(step, Transform):
            if not callable(step) and not isinstance(step, Function):
                raise OptionTypeError(f"`transform`: {step!r} is neither a step nor a function")
            if callable(step):
                check_function(step, _steps())
            raise OptionError(f"`transform`: {step!r} is followed by other steps: a function can only be the last one")
        named.append(step._json())
    return json.dumps(named), function


def _steps() -> set[str]:
    """Returns the names of all steps."""
    found, open_classes = set(), [Transform]
    while open_classes:
        for kind in open_classes.pop().__subclasses__():
            found.add(kind.__name__)
            open_classes.append(kind)
    return found
