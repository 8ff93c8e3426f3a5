"""Stored arrays of any number of dimensions: volumes, audio, embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .checks import whole
from .errors import OptionError, OptionTypeError

__all__ = ["Array", "NativeArray", "stored_array"]

#: Name, lengths of a chunk, codec and level.
NativeArray = tuple[str, list[int | None], str, int]

#: numpy's names of types, and those of `format-spec.md`.
_DTYPES = {
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    "bfloat16": "bf16",
    "bool": "bool",
}


@dataclass(frozen=True)
class Array:
    """The type of a feature that holds an array of numbers of any shape and numpy dtype: `features={"ct": Array()}` of a
    `Writer`, or `columns={"ct": Array()}` of `pack`, for a list's column of files of arrays.

    The array is stored in chunks, each compressed by itself, so that a crop reads only the chunks that it meets.

    Parameters
    ----------
    chunk
        Length of a chunk in each dimension; `None` is the whole dimension. Default: chunks of at most 512 KiB with about
        equal sides. Chunks of about the size of the crops are best.
    codec
        `"zstd"` or `"raw"`.
    level
        Compression level of zstd, 1 to 22.
    """

    chunk: Sequence[int | None] | None = None
    codec: Literal["zstd", "raw"] = "zstd"
    level: int = 3

    def __post_init__(self) -> None:
        if self.chunk is not None:
            _lengths("chunk", self.chunk)
        if self.codec not in ("zstd", "raw"):
            raise OptionError(f'`codec` is {self.codec!r}: expected "zstd" or "raw"')
        whole("level", self.level, 1, 22)

    def _native(self, name: str) -> NativeArray:
        return name, [] if self.chunk is None else _lengths("chunk", self.chunk), self.codec, self.level


def stored_array(name: str, value: Any) -> tuple[str, list[int], bytes]:
    """Returns type, shape and elements of an array: little-endian, in C order."""
    array = np.asarray(value)
    dtype = _DTYPES.get(array.dtype.name)
    if dtype is None:
        raise OptionError(
            f"feature `{name}`: arrays of {array.dtype} cannot be stored; expected bool, integers or floats: use `astype`"
        )
    return dtype, list(array.shape), array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _lengths(name: str, values: Any) -> list[int | None]:
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise OptionTypeError(f"`{name}` is {values!r}: expected a length for each dimension, or `None` for a whole one")
    return [None if value is None else whole(name, value, 1, 2**63 - 1) for value in values]
