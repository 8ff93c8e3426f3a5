"""The types of a loader's batches."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .checks import whole
from .errors import OptionError, OptionTypeError

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
        def __getitem__(self, key: Literal["pixel_mask"], /) -> np.ndarray[Any, np.dtype[np.uint8]]: ...
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
    `[M, 3]` and `[M, H, W]`. On a device both are a `DeviceArray`, which a framework converts: `row` and `padded` are for what
    it makes of them.
    """

    #: `[N + 1]` int64, from 0.
    offsets: np.ndarray
    #: The values of all rows, one after the other.
    values: np.ndarray

    def row(self, i: int) -> np.ndarray:
        """Returns the values of row `i`."""
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def padded(self, length: int | None = None, fill: float | None = None, *, cut: bool = False) -> Any:
        """Returns all rows as one array `[N, length, …]` of numpy, PyTorch or JAX, as the values are, on their device.

        Parameters
        ----------
        length
            Values of each row. Default: those of the longest row.
        fill
            What follows the values of a shorter row. Default: 0 for floats and masks. Other integers need one, since 0 is a class
            or a token: -1, or -100 for losses that ignore it.
        cut
            Drops values of a row beyond `length`. Default: a longer row is an error.
        """
        pad = _padding_of(self.values)
        offsets = _on_host(self.offsets)
        counts = np.diff(offsets)
        longest = int(counts.max(initial=0))
        length = longest if length is None else whole("length", length, 0)
        if longest > length and not cut:
            row = int(counts.argmax())
            raise OptionError(
                f"`length` is {length}, but row {row} has {longest} values: expected at least as many, or `cut=True`, which drops "
                "the values beyond it"
            )
        if fill is None and str(self.values.dtype).rpartition(".")[2] in ("int64", "uint64"):
            raise OptionError("`fill` is needed for integers, since 0 may be a class or a token: give another number, such as -1")
        kind = str(self.values.dtype).rpartition(".")[2]
        if fill is not None and kind.startswith(("int", "uint")):
            bounds = np.iinfo(kind)
            if not (float(fill).is_integer() and bounds.min <= int(fill) <= bounds.max):
                raise OptionError(f"`fill` is {fill!r}, which {kind} cannot hold: give a number of this type")
        kept = np.arange(length) < np.minimum(counts, length)[:, None]
        sources = (offsets[:-1, None] + np.arange(length))[kept]
        return pad(self.values, kept, sources, 0 if fill is None else fill)


def _padding_of(values: Any) -> Callable[[Any, np.ndarray, np.ndarray, float], Any]:
    """Returns the function that pads arrays of a framework: it takes the values, the places `[N, length]` that have one, the number
    of the value at each of these, and what the others have."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if isinstance(values, np.ndarray):
        return _pad_numpy
    if torch is not None and isinstance(values, torch.Tensor):
        return _pad_torch
    if jax is not None and isinstance(values, jax.Array):
        return _pad_jax
    raise OptionTypeError(f"the values are a {type(values).__name__}: expected an array of numpy, PyTorch or JAX, to which it converts")


def _pad_numpy(values: Any, kept: np.ndarray, sources: np.ndarray, fill: float) -> Any:
    result = np.full((*kept.shape, *values.shape[1:]), fill, values.dtype)
    result[kept] = values[sources]
    return result


def _pad_torch(values: Any, kept: np.ndarray, sources: np.ndarray, fill: float) -> Any:
    from_numpy = sys.modules["torch"].from_numpy
    result = values.new_full((*kept.shape, *values.shape[1:]), fill)
    result[from_numpy(kept).to(values.device)] = values[from_numpy(sources).to(values.device)]
    return result


def _pad_jax(values: Any, kept: np.ndarray, sources: np.ndarray, fill: float) -> Any:
    numpy = sys.modules["jax"].numpy
    result = numpy.full((*kept.shape, *values.shape[1:]), fill, values.dtype, device=values.sharding)
    return result.at[np.nonzero(kept)].set(values[sources])


def _on_host(offsets: Any) -> np.ndarray:
    """Returns an array of a framework as one of numpy."""
    return np.asarray(offsets.detach().cpu() if hasattr(offsets, "detach") else offsets)


def image_label(batch: dict[str, Any]) -> tuple[Any, Any]:
    """Returns `(batch["image"], batch["label"])`, the pair that most training loops unpack.

    For `collate_fn=`: `for x, y in Loader(split, 256, steps, collate_fn=shardtool.image_label)`.
    """
    return batch["image"], batch["label"]
