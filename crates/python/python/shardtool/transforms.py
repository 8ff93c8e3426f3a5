"""What is done to each image, as data. Each step does what torchvision's of that name does (v2, antialiased bilinear)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

__all__ = ["CenterCrop", "HorizontalFlip", "RandomResizedCrop", "Resize", "ResizeTo", "Transform"]


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


def to_json(steps: Sequence[Transform]) -> str:
    """The steps as the loader reads them."""
    return json.dumps([{step._name: asdict(step)} for step in steps])
