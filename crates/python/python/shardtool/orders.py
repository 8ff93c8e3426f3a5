"""The order in which an epoch visits its samples, and the source of those samples. Both depend only on dataset, seed and
epoch, not on the machine, the number of threads or the batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import _shardtool
from ._shardtool import Split
from .checks import real, whole
from .errors import OptionError, OptionTypeError

__all__ = ["Balanced", "Interleaved", "Mixture", "Scheduled", "Sequential", "Shuffled", "Stage", "Subset", "Weighted"]

#: Kind, 64-bit numbers, samples per epoch.
_Native = tuple[str, bytes, "int | None"]


@dataclass(frozen=True)
class Sequential:
    """The samples as they are stored: 0, 1, 2, ... `seed`, 0 to 2⁶⁴ − 1, is that of random steps."""

    seed: int = 0

    def __post_init__(self) -> None:
        whole("seed", self.seed)

    def _json(self) -> Any:
        return "sequential"


@dataclass(frozen=True)
class Shuffled:
    """A permutation of all samples, a different one each epoch. `seed`, 0 to 2⁶⁴ − 1, is that of the order and of random steps."""

    seed: int = 0

    def __post_init__(self) -> None:
        whole("seed", self.seed)

    def _json(self) -> Any:
        return "shuffled"


@dataclass(frozen=True)
class Interleaved:
    """Shuffles runs of `run` consecutive samples, then the samples within each `window` of runs: for disks and networks that
    prefer long reads. At most `run * window` samples are mixed at once. `seed`, 0 to 2⁶⁴ − 1, is that of the order and of random
    steps."""

    run: int
    window: int
    seed: int = 0

    def __post_init__(self) -> None:
        whole("run", self.run, 1, 2**32 - 1)
        whole("window", self.window, 1, 2**32 - 1)
        whole("seed", self.seed)

    def _json(self) -> Any:
        return {"interleaved": {"run": int(self.run), "window": int(self.window)}}


@dataclass(frozen=True, eq=False)
class Subset:
    """The samples of these ids, in any number and order, or those where a boolean mask `[len]` is true:
    `Subset(split.columns["image/width"] > 500)`."""

    ids: ArrayLike

    def _native(self, splits: Sequence[Split], classes: str) -> _Native:
        return ("list", _ids("ids", self.ids, splits).tobytes(), None)


@dataclass(frozen=True, eq=False)
class Balanced:
    """Every class equally often. `labels` has one whole number for each sample; the dataset's by default.

    Of samples with several labels each, such as the classes of their objects, it has a list of them for each sample. A sample
    then counts for the one that the fewest samples have, of equally rare ones for the smallest. Those without labels are a class
    of their own."""

    labels: ArrayLike | Sequence[ArrayLike | None] | None = None

    def _native(self, splits: Sequence[Split], classes: str) -> _Native:
        labels: Any = self.labels
        if labels is None:
            if any(split.label is None for split in splits):
                raise OptionError("`Balanced`: the dataset has no labels; give `labels`, one for each sample")
            labels = _shardtool.labels(splits, classes)
        elif isinstance(labels, Sequence) and any(label is None or np.ndim(label) > 0 for label in labels):
            labels = _rarest(labels)
        _expect(np.asarray(labels), splits, "labels")
        return ("balanced", _numbers("labels", labels, "<i8"), None)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Every sample in proportion to its weight; `draws` samples per epoch, by default as many as the splits have.

    Whole numbers are used as they are; other numbers are scaled to whole ones whose sum is about 2⁶², the same on every
    machine."""

    weights: ArrayLike
    draws: int | None = None

    def _native(self, splits: Sequence[Split], classes: str) -> _Native:
        weights = np.asarray(self.weights)
        _expect(weights, splits, "weights")
        if weights.dtype.kind == "f":
            weights = _scaled(weights.astype(np.float64))
        return ("weighted", _numbers("weights", weights, "<u8"), _draws(self.draws))


@dataclass(frozen=True)
class Mixture:
    """Several splits, each with its share of the epoch: numbers in any unit, such as `[0.7, 0.3]` or `[7, 3]`, which are the
    same. `draws` samples per epoch, by default as many as the splits have. A split of which an epoch takes fewer samples than
    it has continues in the next epoch where this one ended; one of which it takes more is repeated.

    Raises
    ------
    OptionError
        A share is negative or not finite, all are 0, or they have no common unit within 64 bits.
    """

    shares: Sequence[float]
    draws: int | None = None

    def __post_init__(self) -> None:
        _whole_shares(self.shares)
        _draws(self.draws)

    def _native(self, splits: Sequence[Split], classes: str) -> _Native:
        if len(self.shares) != len(splits):
            raise OptionError(f"`Mixture` has {len(self.shares)} shares for {len(splits)} splits: give one for each")
        return ("mixture", _numbers("shares", _whole_shares(self.shares), "<u8"), _draws(self.draws))


@dataclass(frozen=True)
class Stage:
    """A stage of a `Scheduled` source: `weights`, one for each member, and perhaps conditions `where`, such as `"difficulty<2"`, which
    samples of this stage all meet. The samples of a member that meet them are another member, with its own passes: the same
    one in all stages with the same conditions."""

    weights: Sequence[float]
    where: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.weights, str) or not isinstance(self.weights, (Sequence, np.ndarray)):
            raise OptionTypeError(f"`weights` is {self.weights!r}: expected a list of numbers, one for each member")
        given = [self.where] if isinstance(self.where, str) else self.where
        if not isinstance(given, Sequence) or not all(isinstance(condition, str) for condition in given):
            raise OptionTypeError(f"`where` is {self.where!r}: expected a condition such as 'difficulty<2', or a list of them")
        # Copies, so that what was checked stays as it is.
        object.__setattr__(self, "weights", tuple(self.weights))
        object.__setattr__(self, "where", tuple(given))
        self._json()

    def _json(self) -> dict[str, Any]:
        return {"weights": [_digits("weights", weight) for weight in self.weights], "where": list(self.where)}


@dataclass(frozen=True, eq=False)
class Scheduled:
    """Members whose shares change within the run. Each stage begins where its key says, with a weight for each member, 0 to leave it
    out: `Scheduled({0: [0.9, 0.1], 3: [0.5, 0.5]})` takes nine samples of the first split for each of the second, and from epoch 3 on
    equally many. Within a stage each member has its share to within one sample at every step, and goes through its samples in the
    loader's order, one pass after the other, from stage to stage where it stopped.

    Parameters
    ----------
    stages
        Weights, or a `Stage`, by where the stage begins: a number of epochs such as `3` or `2.5`, a share of the run such as `"20%"`
        (with `epochs`), or a number of samples such as `"90000 samples"`, in ascending order from 0. A part of an epoch is rounded to the
        nearest sample.
    members
        What has a share: `"splits"`, each split or view of the loader; `"classes"`, each class of the labels in the order of its id; or
        a list of members, each ids `[n]` or a mask `[len]` over the samples of all splits.
    draws
        Samples per epoch. Default: as many as the splits have. `math.inf`: one epoch that does not end.
    epochs
        Epochs of the run, for stages that begin at a share of it.

    Weights in whole numbers are kept as they are, and their sum without a common divisor is at most 1,048,576. Other numbers are read as
    they are written (0.1 is a tenth); where such a sum would be larger, each is rounded to a 1,048,576th of the sum.

    Stages that begin after a state's position may differ in the run that continues from it, and use splits that are added to the end of
    the loader's list; a change of an earlier stage is refused, and the error names it.
    """

    stages: Mapping[float | str, Sequence[float] | Stage]
    members: Literal["splits", "classes"] | Sequence[ArrayLike] = "splits"
    draws: float | None = None
    epochs: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.stages, Mapping) or not self.stages:
            raise OptionTypeError(f"`stages` is {self.stages!r}: expected weights by start, such as {{0: [9, 1], 3: [1, 1]}}")
        copies = {start: stage if isinstance(stage, Stage) else Stage(stage) for start, stage in self.stages.items()}
        object.__setattr__(self, "stages", copies)
        expected = '"splits", "classes", or a list of ids for each member'
        if isinstance(self.members, str):
            if self.members not in ("splits", "classes"):
                raise OptionError(f"`members` is {self.members!r}: expected {expected}")
        elif not isinstance(self.members, Sequence):
            raise OptionTypeError(f"`members` is {self.members!r}: expected {expected}")
        else:
            object.__setattr__(self, "members", tuple(self.members))
        self._draws()
        for start, _ in self._stages():
            if self.draws == inf and start != "0" and not start.rstrip().endswith("samples"):
                raise OptionError(f"`stages` has {start!r}, but `draws` is inf, one epoch without an end: say where the stage begins in "
                                  "samples, such as \"90000 samples\"")
        if self.epochs is not None:
            object.__setattr__(self, "epochs", whole("epochs", self.epochs, 1))

    def _stages(self) -> list[tuple[str, Stage]]:
        starts = [start if isinstance(start, str) else _digits("stages", start) for start in self.stages]
        return [(start, stage) for start, stage in zip(starts, self.stages.values()) if isinstance(stage, Stage)]

    def _draws(self) -> int | None:
        return 2**62 if self.draws == inf else None if self.draws is None else whole("draws", self.draws, 1, 2**62)

    def _json(self, splits: Sequence[Split]) -> dict[str, Any]:
        """Returns the option `stages` of the native loader."""
        stages = [{"start": start, **stage._json()} for start, stage in self._stages()]
        members: Any = self.members
        if not isinstance(members, str):
            members = {"lists": [_ids(f"members[{number}]", ids, splits).tolist() for number, ids in enumerate(members)]}
        return {"stages": stages, "members": members, "draws": self._draws(), "epochs": self.epochs}


def _rarest(lists: Sequence[ArrayLike | None]) -> np.ndarray:
    """Returns the rarest label of each sample."""
    rows = [np.atleast_1d(np.asarray([] if row is None else row)) for row in lists]
    for number, row in enumerate(rows):
        if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
            raise OptionTypeError(f"`source`: `labels[{number}]` is {lists[number]!r}: expected whole numbers, or a list of them")
        if row.size and not 0 <= int(row.min()) <= int(row.max()) < 2**63:
            raise OptionError(f"`source`: `labels[{number}]` is {lists[number]!r}: expected class ids from 0 to 2**63 - 1")
        if row.size > 1 and set(row.tolist()) <= {0, 1} and len(set(row.tolist())) < row.size:
            raise OptionError(
                f"`source`: `labels[{number}]` is {lists[number]!r}: expected the ids of a sample's classes, each once; of a row with a "
                "number for each class, they are `np.flatnonzero(row)`"
            )
    labels = b"".join(row.astype("<i8").tobytes() for row in rows)
    return _shardtool.rarest_labels(labels, np.array([row.size for row in rows], "<u8").tobytes())


def _whole_shares(shares: Sequence[float]) -> list[int]:
    """Returns whole numbers in the proportion of the shares as they are written: 0.1 is a tenth, not the nearest binary
    fraction."""
    numbers = [real("shares", share) for share in shares]
    if not all(0 <= number < float("inf") for number in numbers) or not any(numbers):
        raise OptionError(f"`shares` is {list(shares)}: expected numbers of at least 0, not all 0")
    exact = [Fraction(share) if isinstance(share, int) else Fraction(repr(number)) for share, number in zip(shares, numbers)]
    unit = lcm(*(share.denominator for share in exact))
    whole_shares = [int(share * unit) for share in exact]
    if sum(whole_shares) >= 2**63:
        raise OptionError(f"`shares` is {list(shares)}: the numbers have no common unit within 64 bits; give fewer digits")
    return whole_shares


def _expect(values: np.ndarray, splits: Sequence[Split], name: str) -> None:
    """Checks that there is one value for each sample."""
    samples = sum(len(split) for split in splits)
    if values.shape != (samples,):
        raise OptionError(f"`source`: `{name}` has the shape {values.shape}: expected ({samples},), one for each sample")


def _scaled(weights: np.ndarray) -> np.ndarray:
    """Returns whole numbers in proportion to the weights; a weight above 0 stays above 0."""
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise OptionError("`source`: `weights` must be finite, at least 0, and not all 0")
    scaled = np.floor(weights * (2.0**62 / weights.sum())).astype(np.uint64)
    return np.where(weights > 0, np.maximum(scaled, 1), 0)


def _digits(name: str, number: float) -> str:
    """Returns a number of at least 0 as it is written."""
    if isinstance(number, Integral) and not isinstance(number, bool):
        return str(whole(name, number))
    found = real(name, number)
    if not 0 <= found < inf:
        raise OptionError(f"`{name}` has {number!r}: expected finite numbers of at least 0")
    # Not -0.0.
    return repr(abs(found))


def _ids(name: str, given: ArrayLike, splits: Sequence[Split]) -> np.ndarray:
    """Returns ids, which may be given as a mask."""
    ids = np.asarray(given)
    if ids.dtype == np.bool_:
        _expect(ids, splits, "mask" if name == "ids" else name)
        ids = np.flatnonzero(ids)
    elif ids.dtype.kind in "iu" and ids.dtype != np.uint64 and ids.size == sum(map(len, splits)) > 2 and 0 <= ids.min() <= ids.max() <= 1:
        raise OptionError(
            f"`source`: `{name}` has 0 or 1 for each of {ids.size} samples, which may be a mask, or the ids 0 and 1 again and again: give "
            "a mask as booleans, ids as `uint64`"
        )
    return np.frombuffer(_numbers(name, ids, "<u8"), "<u8")


def _draws(draws: int | None) -> int | None:
    return None if draws is None else whole("draws", draws, 1)


def _numbers(name: str, values: ArrayLike, element: str) -> bytes:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise OptionTypeError(f"`source`: `{name}` is {array.dtype} {array.shape}: expected a list of whole numbers")
    if element == "<u8" and array.size and array.min() < 0:
        raise OptionError(f"`source`: `{name}` has {array.min()}: expected numbers of at least 0")
    return array.astype(element).tobytes()
