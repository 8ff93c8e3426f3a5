"""What is done to each image, as data. Each step does what torchvision's of that name does (v2, antialiased bilinear)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Union

import numpy as np

from .errors import OptionError

__all__ = ["CenterCrop", "Function", "HorizontalFlip", "RandomResizedCrop", "Resize", "ResizeTo", "Transform"]


@dataclass(frozen=True)
class Transform:
    """One step."""

    #: The step's name in the JSON that the loader reads.
    _name: ClassVar[str]


def _size(size: int | Sequence[int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """A random part of the image, resized to `size` pixels: a side, or (height, width)."""

    size: int | tuple[int, int]
    #: Smallest and largest part of the image's pixels.
    scale: tuple[float, float] = (0.08, 1.0)
    #: Smallest and largest width / height of the part.
    ratio: tuple[float, float] = (3 / 4, 4 / 3)

    _name: ClassVar[str] = "random_resized_crop"

    def __post_init__(self):
        object.__setattr__(self, "size", _size(self.size))


@dataclass(frozen=True)
class Resize(Transform):
    """The shorter side becomes `shorter` pixels long, the other follows."""

    shorter: int

    _name: ClassVar[str] = "resize"


@dataclass(frozen=True)
class ResizeTo(Transform):
    """The image becomes `size` pixels large (a side, or height and width), its proportions as may be."""

    size: int | tuple[int, int]

    _name: ClassVar[str] = "resize_to"

    def __post_init__(self):
        object.__setattr__(self, "size", _size(self.size))


@dataclass(frozen=True)
class CenterCrop(Transform):
    """The middle of the image, `size` pixels large: a side, or (height, width)."""

    size: int | tuple[int, int]

    _name: ClassVar[str] = "center_crop"

    def __post_init__(self):
        object.__setattr__(self, "size", _size(self.size))


@dataclass(frozen=True)
class HorizontalFlip(Transform):
    """Mirrored left to right with probability `p`."""

    p: float = 0.5

    _name: ClassVar[str] = "horizontal_flip"


@dataclass(frozen=True)
class Function:
    """A function of your own, the last step: `function(image, seed)` gets the finished image, u8 `[H, W, 3]`, a copy that it
    may change and keep, and a seed (32 bits) that belongs to this sample in this epoch, whatever thread, batch or rank it is in.
    It returns the image, in the size and type that it got, or `None` when it changed its argument in place. Any callable
    that is no `Transform` may stand in its place.

    The loader's threads call it, one at a time, since Python lets only one of them run: where it does much, it bounds the
    rate. What it raises ends the epoch, and is raised where the batch would have been.
    """

    function: Callable[[np.ndarray, int], np.ndarray | None]


#: A step, or a function of your own as the last one.
Step = Union[Transform, Function, Callable[[np.ndarray, int], "np.ndarray | None"]]


def split_function(steps: Sequence[Step]) -> tuple[str, Callable[..., object] | None]:
    """The steps as the loader reads them, and the function at their end."""
    steps = list(steps)
    function = None
    if steps and not isinstance(steps[-1], Transform):
        last = steps.pop()
        function = last.function if isinstance(last, Function) else last
        if not callable(function):
            raise OptionError(f"`transform`: {last!r} is neither a step nor a function")
    named = []
    for step in steps:
        if not isinstance(step, Transform):
            raise OptionError(f"`transform`: {step!r} stands before other steps: a function can only be the last one")
        named.append({step._name: asdict(step)})
    return json.dumps(named), function
