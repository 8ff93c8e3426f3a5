"""Transforms of whole batches, which mix their images and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from . import _shardtool
from .checks import pair, real, whole
from .errors import OptionError, OptionTypeError

__all__ = ["CutMix", "Mosaic", "MixUp"]


class BatchTransform:
    """A way of mixing the rows of a batch. What is drawn depends only on seed, epoch and the position of the batch, so a resumed
    run mixes the same; with another batch size the samples stay the same, but their partners do not."""

    num_classes: int | None
    _name: ClassVar[str]

    def _parameters(self) -> list[float]:
        raise NotImplementedError


def _check_classes(num_classes: int | None) -> None:
    if num_classes is not None:
        whole("num_classes", num_classes, 1, 2**32 - 1)


@dataclass(frozen=True)
class _Pairs(BatchTransform):
    """Each row is mixed with the next one that has a sample.

    The share of a row's own image is drawn for each batch from the beta distribution with both parameters `alpha`.

    Parameters
    ----------
    alpha
        Parameter of the beta distribution, above 0.
    num_classes
        Number of classes; labels become `[N, num_classes]` float32. Default: the classes of the dataset.
    """

    alpha: float = 1.0
    num_classes: int | None = None

    def __post_init__(self) -> None:
        if not real("alpha", self.alpha) > 0:
            raise OptionError(f"`alpha` is {self.alpha}: expected a number above 0")
        _check_classes(self.num_classes)

    def _parameters(self) -> list[float]:
        return [float(self.alpha)]


class MixUp(_Pairs):
    """Replaces each image by the weighted mean of it and the next one (Zhang et al., 2018)."""

    _name = "mix_up"


class CutMix(_Pairs):
    """Replaces a rectangle of each image by that of the next one (Yun et al., 2019)."""

    _name = "cut_mix"


@dataclass(frozen=True)
class Mosaic(BatchTransform):
    """Shows parts of four images around a point: of the row's own above and left of it, and of the next three rows that have a
    sample (Bochkovskiy et al., YOLOv4, 2020). The images keep their size, each with its nearest corner on the point.

    With `objects`, boxes are moved and clipped, and those that become too small are dropped with their labels and keypoints.
    Without, `"label"` becomes `[N, num_classes]` float32, the share of the pixels.

    Parameters
    ----------
    p
        Probability that a row becomes a mosaic.
    center
        Where the point may lie, as fractions of width and height: smallest and largest.
    num_classes
        Number of classes. Default: the classes of the dataset; with `objects`, labels of images stay as they are.
    """

    p: float = 1.0
    center: tuple[float, float] = (0.25, 0.75)
    num_classes: int | None = None

    _name = "mosaic"

    def __post_init__(self) -> None:
        if not 0 <= real("p", self.p) <= 1:
            raise OptionError(f"`p` is {self.p}: expected 0 to 1")
        low, high = pair("center", self.center)
        if not 0 <= low <= high <= 1:
            raise OptionError(f"`center` is {self.center}: expected two numbers from 0 to 1, the smaller one first")
        _check_classes(self.num_classes)

    def _parameters(self) -> list[float]:
        return [float(self.p), *(float(end) for end in self.center)]


def native_mixing(
    transforms: Any, classes: int, objects: bool
) -> tuple[list[tuple[str, list[float]]], int]:
    """Returns names and parameters of the transforms, and the number of classes; 0 leaves labels as they are. `classes` is the
    number of names that the splits have."""
    transforms = [transforms] if isinstance(transforms, BatchTransform) else list(transforms)
    if not transforms or not all(isinstance(transform, BatchTransform) for transform in transforms):
        expected = "a list of `MixUp(...)`, `CutMix(...)` and `Mosaic(...)`"
        raise OptionTypeError(f"`batch_transform` is {transforms!r}: expected {expected}")
    given = {transform.num_classes for transform in transforms} - {None}
    if len(given) > 1:
        raise OptionError(f"`batch_transform` has different numbers of classes, {sorted(given)}: give one")
    classes = given.pop() if given else 0 if objects else classes
    if not classes and not objects:
        raise OptionError("`batch_transform`: the dataset names no classes; give `num_classes`")
    return [(transform._name, transform._parameters()) for transform in transforms], classes
