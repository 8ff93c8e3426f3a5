"""In which order an epoch visits its samples, and which samples those are. Both are pure functions of dataset, seed and
epoch: never of the machine, the number of threads or the batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ._shardtool import Split

__all__ = ["Balanced", "Interleaved", "Mixture", "Sequential", "Shuffled", "Subset", "Weighted"]

#: Kind, numbers of 64 bits, samples an epoch.
_Native = tuple[str, bytes, "int | None"]


@dataclass(frozen=True)
class Sequential:
    """0, 1, 2, ..."""

    def _native(self) -> tuple[str, int, int]:
        return ("sequential", 0, 0)


@dataclass(frozen=True)
class Shuffled:
    """One permutation of all samples, another one each epoch."""

    def _native(self) -> tuple[str, int, int]:
        return ("shuffled", 0, 0)


@dataclass(frozen=True)
class Interleaved:
    """Runs of `run` consecutive samples are shuffled, then each `window` of them together: for disks and networks that
    like long runs. At most `run * window` samples are in play at once."""

    run: int
    window: int

    def _native(self) -> tuple[str, int, int]:
        return ("interleaved", self.run, self.window)


@dataclass(frozen=True, eq=False)
class Subset:
    """The samples of these ids, in any number and order. A filter is a subset: `Subset(np.flatnonzero(mask))`."""

    ids: ArrayLike

    def _native(self, splits: Sequence[Split]) -> _Native:
        return ("list", _numbers(self.ids, "<u8"), None)


@dataclass(frozen=True, eq=False)
class Balanced:
    """Every class equally often. `labels` is one for each sample; by default those of the dataset."""

    labels: ArrayLike | None = None

    def _native(self, splits: Sequence[Split]) -> _Native:
        labels = self.labels
        if labels is None:
            labels = np.concatenate([split.columns[str(split.label)] for split in splits])
        return ("balanced", _numbers(labels, "<i8"), None)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Every sample in proportion to its weight, a whole number; `draws` samples an epoch, by default as many as there
    are."""

    weights: ArrayLike
    draws: int | None = None

    def _native(self, splits: Sequence[Split]) -> _Native:
        return ("weighted", _numbers(self.weights, "<u8"), self.draws)


@dataclass(frozen=True)
class Mixture:
    """Several splits, each with its share (whole numbers in any unit) of the epoch; `draws` samples an epoch, by default
    as many as the splits have."""

    shares: Sequence[int]
    draws: int | None = None

    def _native(self, splits: Sequence[Split]) -> _Native:
        return ("mixture", _numbers(self.shares, "<u8"), self.draws)


def _numbers(values: ArrayLike, element: str) -> bytes:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"expected a list of whole numbers, found {array.dtype} {array.shape}")
    if element == "<u8" and array.size and array.min() < 0:
        raise ValueError("expected numbers of at least 0")
    return array.astype(element).tobytes()
