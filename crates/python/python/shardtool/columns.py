"""Arrays of one column of the index, from the buffers of its shards."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np


class Buffers(NamedTuple):
    """A column of one shard: views into the mapped index, in the layout of an Arrow array."""

    rows: int
    """Records of the shard."""
    validity: np.ndarray | None
    """u8 ``[ceil(rows / 8)]``, least significant bit first, 1 = present; ``None`` if no row is null."""
    offsets: np.ndarray | None
    """i64 ``[rows + 1]`` for byte strings, else ``None``."""
    values: np.ndarray
    """Numbers ``[rows]``, 0 in null rows; or u8: the bytes of all rows."""
    logical: str | None = None
    """``float64`` or ``uint64`` if each byte string holds a number in eight bytes, little-endian."""
    deleted: np.ndarray | None = None
    """u8 ``[ceil(rows / 8)]``, least significant bit first, 1 = the version has deleted the row; ``None`` if it deleted none."""


def live(column: Buffers) -> Buffers:
    """Returns a column without the rows that the version has deleted: the same views if there are none, otherwise copies."""
    if column.deleted is None:
        return column
    rows = np.flatnonzero(~np.unpackbits(column.deleted, count=column.rows, bitorder="little").view(bool))
    there = present(column)[rows]
    validity = None if there.all() else np.packbits(there, bitorder="little")
    if column.offsets is None:
        return Buffers(len(rows), validity, None, column.values[rows], column.logical)
    starts, lengths = column.offsets[:-1][rows], np.diff(column.offsets)[rows]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return Buffers(len(rows), validity, offsets, column.values[places], column.logical)


def present(column: Buffers) -> np.ndarray:
    """Returns which rows have a value: bool ``[rows]``."""
    if column.validity is None:
        return np.ones(column.rows, bool)
    return np.unpackbits(column.validity, count=column.rows, bitorder="little").view(bool)


def array(shards: list[Buffers]) -> Any:
    """Returns a column of all rows: numbers as an array of their type, masked if rows are null; byte strings as objects.

    Numbers of one shard without nulls are a view into the mapped index.
    """
    shards = [live(column) for column in shards]
    if shards[0].logical is not None:
        shards = [numbers(column) for column in shards]
    if shards[0].offsets is not None:
        return byte_strings(shards)
    if any(column.validity is not None for column in shards):
        return masked(shards)
    return shards[0].values if len(shards) == 1 else np.concatenate([column.values for column in shards])


def numbers(column: Buffers) -> Buffers:
    """Returns a column of a logical type as one of numbers: without nulls a view into the mapped index.

    Raises ``ValueError`` if a byte string does not hold eight bytes.
    """
    assert column.offsets is not None and column.logical is not None
    there = present(column)
    if (np.diff(column.offsets)[there] != 8).any():
        raise ValueError(f"the column is {column.logical}: expected values of eight bytes, found one of another length")
    dtype = np.dtype(column.logical).newbyteorder("<")
    stored = np.frombuffer(column.values.tobytes(), dtype) if column.values.ctypes.data % 8 else column.values.view(dtype)
    if column.validity is None:
        return Buffers(column.rows, None, None, stored)
    values = np.zeros(column.rows, dtype)
    values[there] = stored
    return Buffers(column.rows, column.validity, None, values)


def masked(shards: list[Buffers]) -> Any:
    """Returns numbers as a masked array, whose mask is true in null rows."""
    missing = ~np.concatenate([present(column) for column in shards])
    return np.ma.MaskedArray(np.concatenate([column.values for column in shards]), missing)


def byte_strings(shards: list[Buffers]) -> np.ndarray:
    """Returns byte strings as an array of objects: ``bytes``, or ``None`` in null rows."""
    rows = np.empty(sum(column.rows for column in shards), object)
    at = 0
    for column in shards:
        assert column.offsets is not None, "byte strings have offsets"
        values, ends = column.values.tobytes(), column.offsets.tolist()
        for row, there in enumerate(present(column).tolist()):
            rows[at + row] = values[ends[row] : ends[row + 1]] if there else None
        at += column.rows
    return rows


def arrow(shards: list[Buffers]) -> Any:
    """Returns a ``pyarrow.ChunkedArray`` with one chunk per shard, which refers to the mapped indexes. Copied are only values of shards with deleted
    rows, and ``float64`` and ``uint64`` with nulls."""
    # Imported this way because it has no types, and need not be installed.
    pa: Any = import_module("pyarrow")

    chunks = []
    for column in map(live, shards):
        if column.logical is not None:
            column = numbers(column)
        binary = column.offsets is not None
        buffers = [column.validity, column.offsets, column.values] if binary else [column.validity, column.values]
        kind = pa.large_binary() if binary else pa.from_numpy_dtype(column.values.dtype)
        buffers = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
        chunks.append(pa.Array.from_buffers(kind, column.rows, buffers))
    return pa.chunked_array(chunks)


def table(columns: dict[str, list[Buffers]]) -> Any:
    """Returns columns as a ``pyarrow.Table``; byte strings are texts if all of their column are UTF-8. Values are copied only as ``arrow`` does."""
    pa: Any = import_module("pyarrow")

    def text(column: Any) -> Any:
        if not pa.types.is_large_binary(column.type):
            return column
        try:
            return column.cast(pa.large_string())
        except pa.ArrowInvalid:
            return column

    return pa.table({name: text(arrow(shards)) for name, shards in columns.items()})
