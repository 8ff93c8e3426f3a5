"""Transforms of whole batches, which mix their images and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from . import _shardtool
from .checks import real, whole
from .errors import OptionError, OptionTypeError

__all__ = ["CutMix", "MixUp"]


@dataclass(frozen=True)
class BatchTransform:
    """A way of mixing the rows of a batch. Each row is mixed with the next one that has a sample.

    The share of a row's own image is drawn for each batch from the beta distribution with both parameters `alpha`. It depends
    only on seed, epoch and the position of the batch, so a resumed run mixes the same; with another batch size the samples
    stay the same, but the pairs do not.

    Parameters
    ----------
    alpha
        Parameter of the beta distribution, above 0.
    num_classes
        Number of classes; labels become `[N, num_classes]` float32. Default: the classes of the dataset.
    """

    alpha: float = 1.0
    num_classes: int | None = None

    _name: ClassVar[str]

    def __post_init__(self) -> None:
        if not real("alpha", self.alpha) > 0:
            raise OptionError(f"`alpha` is {self.alpha}: expected a number above 0")
        if self.num_classes is not None:
            whole("num_classes", self.num_classes, 1, 2**32 - 1)


class MixUp(BatchTransform):
    """Replaces each image by the weighted mean of it and the next one (Zhang et al., 2018)."""

    _name = "mix_up"


class CutMix(BatchTransform):
    """Replaces a rectangle of each image by that of the next one (Yun et al., 2019)."""

    _name = "cut_mix"


def native_mixing(transforms: Any, splits: Sequence[_shardtool.Split]) -> tuple[list[tuple[str, float]], int]:
    """Returns names and parameters of the transforms, and the number of classes."""
    transforms = [transforms] if isinstance(transforms, BatchTransform) else list(transforms)
    if not transforms or not all(isinstance(transform, BatchTransform) for transform in transforms):
        raise OptionTypeError(f"`batch_transform` is {transforms!r}: expected a list of `MixUp(...)` and `CutMix(...)`")
    given = {transform.num_classes for transform in transforms} - {None}
    if len(given) > 1:
        raise OptionError(f"`batch_transform` has different numbers of classes, {sorted(given)}: give one")
    classes = given.pop() if given else len(splits[0].classes)
    if not classes:
        raise OptionError("`batch_transform`: the dataset names no classes; give `num_classes`")
    return [(transform._name, float(transform.alpha)) for transform in transforms], classes
