"""The types of a loader's batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

__all__ = ["Batch", "Ragged", "image_label"]

if TYPE_CHECKING:
    from typing import overload

    class Batch(dict[str, Any]):
        """A batch as numpy arrays. At run time it is a plain `dict`."""

        @overload
        def __getitem__(self, key: Literal["image"], /) -> np.ndarray[Any, Any]: ...
        @overload
        def __getitem__(self, key: Literal["label", "id"], /) -> np.ndarray[Any, np.dtype[np.int64]]: ...
        @overload
        def __getitem__(self, key: Literal["valid"], /) -> np.ndarray[Any, np.dtype[np.bool_]]: ...
        @overload
        def __getitem__(self, key: Literal["mask"], /) -> np.ndarray[Any, np.dtype[np.uint8] | np.dtype[np.uint16]]: ...
        @overload
        def __getitem__(self, key: Literal["host"], /) -> dict[str, np.ndarray[Any, Any]]: ...
        @overload
        def __getitem__(self, key: str, /) -> Any: ...
        def __getitem__(self, key: str, /) -> Any: ...
else:
    #: A batch as numpy arrays, by name.
    Batch = dict


class Ragged(NamedTuple):
    """A column with any number of values per row.

    Row `i` is `values[offsets[i]:offsets[i + 1]]`. The values of boxes, keypoints and masks are arrays themselves: `[M, 4]`,
    `[M, 3]` and `[M, H, W]`. On a device both are a `DeviceArray`, which a framework converts: `row` and `padded` are for the host.
    """

    #: `[N + 1]` int64, from 0.
    offsets: np.ndarray
    #: The values of all rows, one after the other.
    values: np.ndarray

    def row(self, i: int) -> np.ndarray:
        """Returns the values of row `i`."""
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def padded(self, length: int | None = None, fill: float = 0) -> np.ndarray:
        """Returns all rows as one array `[N, length, …]`: values beyond `length` are cut, missing ones are `fill`. Default
        length: that of the longest row."""
        counts = np.diff(self.offsets)
        length = int(counts.max(initial=0)) if length is None else length
        result = np.full((len(counts), length, *self.values.shape[1:]), fill, self.values.dtype)
        kept = np.arange(length) < np.minimum(counts, length)[:, None]
        starts = self.offsets[:-1, None] + np.arange(length)
        result[kept] = self.values[starts[kept]]
        return result


def image_label(batch: dict[str, Any]) -> tuple[Any, Any]:
    """Returns `(batch["image"], batch["label"])`, the pair that most training loops unpack.

    For `collate_fn=`: `for x, y in Loader(split, 256, steps, collate_fn=shardtool.image_label)`.
    """
    return batch["image"], batch["label"]
