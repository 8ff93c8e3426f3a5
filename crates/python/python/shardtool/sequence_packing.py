"""Rows of several samples of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .checks import instance, real, whole
from .errors import OptionError

__all__ = ["SequencePacking"]


class SequencePacking:
    """Puts the tokens of several samples into each row, so that little of it is padding.

    A batch has `batch_size` rows of `capacity` tokens. Samples share a row if they are near each other in the order of the
    epoch; which ones they are changes with the epoch, and so may its number of steps. A row never divides a sample.

    Parameters
    ----------
    feature
        The integer feature with the number of tokens of each sample, a column of the index.
    capacity
        Tokens of a row.
    padded
        Columns of numbers with one value for each token, and the number after the last token of a row.
    window
        Samples that are packed together, 1 to 65,536: larger windows fill rows better, smaller ones take less time to seek to.
    longer
        What happens to samples of more than `capacity` tokens: `"error"`, or `"cut"`: their first tokens fill a row.

    A batch then has:

    - each of `padded`: `[N, capacity]`.
    - `"segment_ids"`: `[N, capacity]` int32, the number of each token's sample in its row, from 1; 0 after the last one.
    - `"position_ids"`: `[N, capacity]` int32, the position of each token in its sample, from 0.
    - `"id"` and `"seq_lens"`: `Ragged`, id and number of tokens of each sample of each row.
    - other columns of numbers: `Ragged`, with the values of each sample of each row.
    """

    def __init__(
        self,
        feature: str,
        capacity: int,
        *,
        padded: Mapping[str, float],
        window: int = 4096,
        longer: Literal["error", "cut"] = "error",
    ):
        #: The feature with the lengths.
        self.feature = instance("feature", feature, (str,), "the name of a feature")
        #: Tokens of a row.
        self.capacity = whole("capacity", capacity, 1, 2**31 - 1)
        instance("padded", padded, (Mapping,), "a dict of columns and numbers")
        #: Columns that become arrays, and what is after the last token of a row.
        self.padded = {str(column): real(f"padded[{column!r}]", fill) for column, fill in padded.items()}
        if not self.padded:
            raise OptionError("`padded` is empty: expected at least the column of the tokens")
        #: Samples that are packed together.
        self.window = whole("window", window, 1, 2**16)
        if longer not in ("error", "cut"):
            raise OptionError(f'`longer` is {longer!r}: expected "error" or "cut"')
        #: What happens to longer samples.
        self.longer = longer

    def _native(self) -> dict[str, Any]:
        return {
            "feature": self.feature,
            "capacity": self.capacity,
            "window": self.window,
            "cut": self.longer == "cut",
            "padded": list(self.padded.items()),
        }

    def __repr__(self) -> str:
        return f"SequencePacking({self.feature!r}, {self.capacity})"
