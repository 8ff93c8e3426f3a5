"""Boxes and keypoints that go through the geometry of their image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .checks import instance, real
from .errors import OptionError, OptionTypeError
from .objects import BBOX, CLASS, KEYPOINTS

__all__ = ["Objects"]


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
    min_size, min_area
        Objects whose box becomes narrower or lower than `min_size` pixels of the result, or smaller than `min_area` of them,
        are dropped.
    """

    boxes: str = BBOX
    box_format: Literal["xyxy", "xywh", "cxcywh"] = "xyxy"
    unit: Literal["fraction", "pixel"] = "fraction"
    properties: Sequence[str] = (CLASS,)
    keypoints: str | None = None
    min_size: float = 1.0
    min_area: float = 1.0

    def __post_init__(self) -> None:
        instance("boxes", self.boxes, (str,), "the name of a feature")
        if isinstance(self.properties, str) or not all(isinstance(name, str) for name in self.properties):
            raise OptionTypeError(f"`properties` is {self.properties!r}: expected a list of names")
        if self.keypoints is not None:
            instance("keypoints", self.keypoints, (str,), f"the name of a feature, such as {KEYPOINTS!r}")
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
            "min_size": float(self.min_size),
            "min_area": float(self.min_area),
        }
