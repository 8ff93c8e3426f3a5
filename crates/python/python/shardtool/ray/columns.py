"""Adds columns whose values a Ray cluster computes, with one change of the dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
from ray.data import Datasink
from ray.data.block import BlockAccessor

from ..errors import OptionError, PackError
from ..values import Kind
from .paths import on_every_node

__all__ = ["ColumnSink"]


class ColumnSink(Datasink):
    """Gives the records of a dataset columns from the rows of a dataset of Ray Data:
    `ds.write_datasink(shardtool.ray.ColumnSink("dataset"))`.

    A row belongs to the record with its key, as in `Dataset.add_columns`. Each task returns its rows to the driver, which makes one
    change of the dataset, and so one version, when all tasks have ended. Tasks may be killed, retried, or run twice; if the write
    fails, the dataset is what it was, and no file is left.

    Parameters
    ----------
    dataset
        Folder of the dataset, or its URL in a store.
    names
        Names of the columns that are taken. Default: all but the key.
    key
        Name of the column of keys.
    columns
        Types of columns, `"int64"`, `"float"`, `"bytes"`, `"float64"` or `"uint64"`. Default: of the columns' types. Needed for a
        column whose type differs from block to block.
    replace
        Whether the records have features of these names, which get other values.
    missing
        What a record without a row gets: `"error"` refuses, `"null"` no value, `"keep"` the value that it has.
    split
        Names of the splits whose records have rows. Default: all.
    message, author
        For `Dataset.log`.
    single_writer
        Whether nothing else writes to the dataset, in a store that does not compare versions of objects.

    Raises
    ------
    OptionError
        A column has a type that features cannot hold, or another one in another block.
    PackError
        Rows were lost; rows and records do not belong together; another change came first.
    """

    #: The dataset at its new version, once the columns are written.
    result: Any

    def __init__(
        self,
        dataset: str | os.PathLike[str],
        *,
        names: Sequence[str] | None = None,
        key: str = "key",
        columns: Mapping[str, Kind] | None = None,
        replace: bool = False,
        missing: Literal["error", "null", "keep"] = "error",
        split: str | Sequence[str] | None = None,
        message: str | None = None,
        author: str | None = None,
        single_writer: bool = False,
    ):
        if missing not in ("error", "null", "keep"):
            raise OptionError(f"`missing` is {missing!r}: expected 'error', 'null' or 'keep'")
        self._dataset = on_every_node(dataset)
        self._names, self._key = None if names is None else list(names), key
        self._columns: dict[str, Kind] = dict(columns or {})
        self._replace = replace
        self._options: dict[str, Any] = {
            "missing": missing,
            "split": split,
            "message": message,
            "author": author,
            "single_writer": single_writer,
        }
        self.result = None

    def get_name(self) -> str:
        """Returns the name of the tasks."""
        return "shardtool"

    def on_write_start(self, *_args: Any, **_kwargs: Any) -> None:
        """Checks that there is such a dataset. Ray calls it in the driver; its arguments differ from version to version."""
        from .. import Dataset

        Dataset(self._dataset)

    def write(self, blocks: Iterable[Any], ctx: Any) -> dict[str, Any]:
        """Returns the key and the columns of the rows of a task."""
        tables = []
        for block in blocks:
            table = BlockAccessor.for_block(block).to_arrow()
            if table.num_rows > 0:
                tables.append(self._taken(table))
        return {"task": ctx.task_idx, "rows": sum(table.num_rows for table in tables), "tables": tables}

    def on_write_complete(self, write_result: Any) -> None:
        """Changes the dataset. Ray calls it in the driver, with what all tasks returned."""
        from .. import Dataset

        returned = getattr(write_result, "write_returns", write_result)
        by_number = {task["task"]: task for task in returned if task is not None}
        rows = sum(task["rows"] for task in by_number.values())
        expected = getattr(write_result, "num_rows", rows)
        if rows != expected:
            raise PackError(f"the tasks of the write returned {rows} rows, but Ray gave them {expected}")
        tables = [table for number in sorted(by_number) for table in by_number[number]["tables"]]
        names = sorted({name for table in tables for name in table.column_names} - {self._key})
        values: dict[str, Any] = {self._key: self._joined(tables, self._key)}
        values.update((name, self._joined(tables, name)) for name in names)
        dataset = Dataset(self._dataset)
        change = dataset.replace_columns if self._replace else dataset.add_columns
        self.result = change(values, key=self._key, columns=self._columns, **self._options)

    def _taken(self, table: pa.Table) -> pa.Table:
        """Returns the key and the columns that are written; one-dimensional tensors as lists."""
        if self._key not in table.column_names:
            raise OptionError(f"the rows have no column {self._key!r} of keys; they have {', '.join(map(repr, table.column_names))}")
        names = [name for name in table.column_names if name != self._key] if self._names is None else self._names
        if unknown := [name for name in names if name not in table.column_names]:
            raise OptionError(f"`names`: the rows have no column {', '.join(map(repr, unknown))}")
        return pa.table({name: _lists(name, table.column(name)) for name in [self._key, *names]})

    def _joined(self, tables: list[pa.Table], name: str) -> Any:
        """Returns a column of all blocks."""
        parts = [table.column(name) if name in table.column_names else pa.nulls(table.num_rows) for table in tables]
        types = {str(part.type): part.type for part in parts if not _is_empty(part.type)}
        if len(types) == 1:
            kind = next(iter(types.values()))
            return pa.chunked_array([chunk.cast(kind) for part in parts for chunk in getattr(part, "chunks", [part])], kind)
        if types and name not in self._columns and name != self._key:
            found = " and ".join(sorted(types))
            raise OptionError(f"column {name!r} is of type {found} in different blocks: declare one in `columns`")
        return [value for part in parts for value in part.to_pylist()]


def _is_empty(kind: pa.DataType) -> bool:
    """Returns whether a column of this type has no value, or only empty lists."""
    return pa.types.is_null(kind.value_type if pa.types.is_list(kind) else kind)


def _lists(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns a column of one-dimensional tensors as one of lists; another one as it is."""
    if not (isinstance(column.type, pa.BaseExtensionType) and hasattr(column.type, "shape")):
        return column
    chunks = []
    if column.null_count:
        raise OptionError(f"column {name!r} has tensors and nulls: leave rows without a tensor out, and say what they get with `missing`")
    for chunk in column.chunks:
        values = chunk.to_numpy_ndarray() if hasattr(chunk, "to_numpy_ndarray") else chunk.to_numpy(zero_copy_only=False)
        if values.ndim != 2 or values.dtype == object:
            raise OptionError(f"column {name!r} has tensors of more than one dimension, or of different shapes: expected numbers, texts or lists")
        flat = pa.array(values.reshape(-1))
        offsets = pa.array([values.shape[1] * row for row in range(len(values) + 1)], pa.int32())
        chunks.append(pa.ListArray.from_arrays(offsets, flat))
    return pa.chunked_array(chunks)
