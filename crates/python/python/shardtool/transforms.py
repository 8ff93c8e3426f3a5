"""Transforms of images, as plain data. They match those of torchvision (v2, antialiased bilinear). The random numbers of a
sample depend only on seed, epoch and sample."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Union

import numpy as np

from .checks import pair, real, whole
from .errors import OptionError, OptionTypeError

__all__ = ["CenterCrop", "Function", "HorizontalFlip", "RandomResizedCrop", "Resize", "ResizeTo", "Transform"]


@dataclass(frozen=True)
class Transform:
    """One step."""

    #: The step's name in the JSON that the loader reads.
    _name: ClassVar[str]


def _size(size: int | Sequence[int]) -> tuple[int, int]:
    """Returns height and width, given a side or (height, width)."""
    if isinstance(size, Sequence):
        if len(size) != 2:
            raise OptionError(f"`size` is {size!r}: expected a side, or (height, width)")
        return (_side("size", size[0]), _side("size", size[1]))
    return (_side("size", size),) * 2


def _side(name: str, value: int) -> int:
    return whole(name, value, 1, 2**32 - 1)


def _probability(p: float) -> float:
    if not 0 <= real("p", p) <= 1:
        raise OptionError(f"`p` is {p}: expected 0 to 1")
    return float(p)


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Crops a random part of the image and resizes it to `size`.

    Parameters
    ----------
    size
        Size of the result, in pixels: a side, or (height, width).
    scale
        Smallest and largest area of the part, as a fraction of the image's.
    ratio
        Smallest and largest width / height of the part.
    """

    size: int | tuple[int, int]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)

    _name: ClassVar[str] = "random_resized_crop"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size(self.size))
        object.__setattr__(self, "scale", pair("scale", self.scale))
        object.__setattr__(self, "ratio", pair("ratio", self.ratio))


@dataclass(frozen=True)
class Resize(Transform):
    """Resizes the shorter side to `shorter` pixels, keeping the aspect ratio."""

    shorter: int

    _name: ClassVar[str] = "resize"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shorter", _side("shorter", self.shorter))


@dataclass(frozen=True)
class ResizeTo(Transform):
    """Resizes to exactly `size` (a side, or (height, width), in pixels), ignoring the aspect ratio."""

    size: int | tuple[int, int]

    _name: ClassVar[str] = "resize_to"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size(self.size))


@dataclass(frozen=True)
class CenterCrop(Transform):
    """Crops the middle of the image to `size` (a side, or (height, width), in pixels)."""

    size: int | tuple[int, int]

    _name: ClassVar[str] = "center_crop"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size(self.size))


@dataclass(frozen=True)
class HorizontalFlip(Transform):
    """Flips the image left to right with probability `p`, 0 to 1."""

    p: float = 0.5

    _name: ClassVar[str] = "horizontal_flip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _probability(self.p))


@dataclass(frozen=True)
class Function:
    """A function of your own, as the last step. A callable that is not a `Transform` may be given instead.

    The loader's threads call it one at a time, because they need the GIL: a slow function bounds the rate, and `stats()`
    counts its time as *resize*. If it raises, the epoch ends: the exception is raised by the `for` loop, with a
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


def split_function(steps: Sequence[Step]) -> tuple[str, Callable[..., Any] | None]:
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
    named = []
    for step in steps:
        if not isinstance(step, Transform):
            if not callable(step) and not isinstance(step, Function):
                raise OptionTypeError(f"`transform`: {step!r} is neither a step nor a function")
            raise OptionError(f"`transform`: {step!r} is followed by other steps: a function can only be the last one")
        named.append({step._name: asdict(step)})
    return json.dumps(named), function
