"""Augmentation policies: random operations on shape and colour. They do not move boxes, keypoints or label maps exactly as a
detector needs, but those follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..checks import real, whole
from .step import Interpolation, Transform, color, interpolation, one_of

__all__ = ["AugMix", "AutoAugment", "RandAugment", "TrivialAugmentWide"]


@dataclass(frozen=True)
class RandAugment(Transform):
    """Applies `num_ops` random operations of one magnitude: number `magnitude` of `num_magnitude_bins` (Cubuk et al., 2019)."""

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: Interpolation = "nearest"
    fill: int | Sequence[int] = 0

    _name: ClassVar[str] = "rand_augment"

    def __post_init__(self) -> None:
        bins = whole("num_magnitude_bins", self.num_magnitude_bins, 2, 1_000_000)
        self._set(num_ops=whole("num_ops", self.num_ops, 0, 100), num_magnitude_bins=bins)
        self._set(magnitude=whole("magnitude", self.magnitude, 0, bins - 1))
        self._set(interpolation=interpolation(self.interpolation), fill=color("fill", self.fill))


@dataclass(frozen=True)
class TrivialAugmentWide(Transform):
    """Applies one random operation of random magnitude (Müller and Hutter, 2021)."""

    num_magnitude_bins: int = 31
    interpolation: Interpolation = "nearest"
    fill: int | Sequence[int] = 0

    _name: ClassVar[str] = "trivial_augment_wide"

    def __post_init__(self) -> None:
        self._set(num_magnitude_bins=whole("num_magnitude_bins", self.num_magnitude_bins, 2, 1_000_000))
        self._set(interpolation=interpolation(self.interpolation), fill=color("fill", self.fill))


@dataclass(frozen=True)
class AutoAugment(Transform):
    """Applies one random pair of operations from a table that was learnt on a dataset (Cubuk et al., 2018)."""

    policy: Literal["imagenet", "cifar10", "svhn"] = "imagenet"
    interpolation: Interpolation = "nearest"
    fill: int | Sequence[int] = 0

    _name: ClassVar[str] = "auto_augment"

    def __post_init__(self) -> None:
        self._set(policy=one_of("policy", self.policy, ("imagenet", "cifar10", "svhn")))
        self._set(interpolation=interpolation(self.interpolation), fill=color("fill", self.fill))


@dataclass(frozen=True)
class AugMix(Transform):
    """Mixes the image with the results of several chains of random operations (Hendrycks et al., 2019).

    Parameters
    ----------
    severity
        Largest magnitude, 1 to 10.
    mixture_width
        Number of chains.
    chain_depth
        Operations of a chain; −1 draws 1 to 3.
    alpha
        Parameter of the distributions of weights.
    all_ops
        Whether brightness, colour, contrast and sharpness are among the operations.
    """

    severity: int = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: Interpolation = "bilinear"
    fill: int | Sequence[int] = 0

    _name: ClassVar[str] = "aug_mix"

    def __post_init__(self) -> None:
        self._set(severity=whole("severity", self.severity, 1, 10), alpha=real("alpha", self.alpha))
        self._set(mixture_width=whole("mixture_width", self.mixture_width, 1, 100), all_ops=bool(self.all_ops))
        depth = self.chain_depth
        self._set(chain_depth=None if depth is None or depth < 0 else whole("chain_depth", depth, 1, 100))
        self._set(interpolation=interpolation(self.interpolation), fill=color("fill", self.fill))
