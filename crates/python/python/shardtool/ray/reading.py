"""Reads datasets into Ray Data."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata
from ray.data.extensions import ArrowTensorArray, ArrowVariableShapedTensorArray

from .._shardtool import Dataset, Split
from ..arguments import as_names
from ..errors import ColumnError, OptionError
from .groups import groups_of
from .paths import on_every_node

__all__ = ["read"]

#: Bytes of the images of a block of Ray Data, about.
BLOCK = 64 << 20
#: Largest offset of Arrow's `binary` and `list`.
SHORT = 2**31 - 1

Images = Literal["encoded", "decoded"]
_NUMBERS = {"int64": pa.int64(), "float": pa.float32(), "float64": pa.float64(), "uint64": pa.uint64()}


def read(
    dataset: str | os.PathLike[str],
    split: str = "train",
    *,
    columns: Sequence[str] | Mapping[str, Literal["value", "list"]] | None = None,
    images: Images | None = "encoded",
    override_num_blocks: int | None = None,
    **ray_options: Any,
) -> ray.data.Dataset:
    """Reads a split into a dataset of Ray Data: each record's `key`, its `image`, its `label` if there is one, and further
    features by name. Every record is checked by its CRC.

    A task reads a group of neighbouring shards; numbers of rows and bytes come from the manifest.

    Parameters
    ----------
    dataset
        A dataset, by its path or URL, which every node can open.
    split
        Name of the split.
    columns
        Features to read in addition. As a dict, it says of each whether a row is a value or a list. Default: numbers are values
        where no record of the first shard has two; text and bytes are values.
    images
        `"encoded"` reads images as stored. `"decoded"` decodes them to RGB, uint8 `[height, width, 3]`: a tensor column, of one
        shape where all images of a block have the same size, else of different shapes. `None` reads none.
    override_num_blocks
        Number of tasks, at most one per shard. Default: as Ray decides.
    **ray_options
        Further arguments of `ray.data.read_datasource`, such as `num_cpus` and `concurrency`.

    Raises
    ------
    ColumnError
        The split has no feature of that name; in a task, a record has several values of a feature that was read as a value.
    DamageError
        In a task: a record is damaged, or its image does not decode.
    """
    if images not in ("encoded", "decoded", None):
        raise OptionError(f'`images` is {images!r}: expected "encoded", "decoded" or None')
    source = ShardDatasource(on_every_node(dataset), split, columns, images)
    return ray.data.read_datasource(source, override_num_blocks=override_num_blocks, **ray_options)


class _Shard(NamedTuple):
    #: Its first record in the split.
    first: int
    records: int
    #: Bytes in memory, about.
    size: int
    path: str


class ShardDatasource(Datasource):
    """The shards of a split as a source of Ray Data."""

    def __init__(
        self,
        path: str,
        split: str,
        columns: Sequence[str] | Mapping[str, Literal["value", "list"]] | None = None,
        images: Images | None = "encoded",
    ):
        super().__init__()
        self._path, self._split, self._images = path, split, images
        opened = Dataset(path).split(split)
        self._columns = _columns(opened, columns)
        per_record = _decoded_bytes(opened) if images == "decoded" else None
        first, shards = 0, []
        for shard in opened.shards:
            size = shard.bytes if per_record is None else len(shard) * per_record
            shards.append(_Shard(first, len(shard), size, os.fspath(shard.path)))
            first += len(shard)
        self._shards = [shard for shard in shards if shard.records]

    def get_name(self) -> str:
        """Returns the name of the tasks."""
        return "shardtool"

    def estimate_inmemory_data_size(self) -> int:
        """Returns the bytes of the shards; of decoded images, what those of the first shard suggest."""
        return sum(shard.size for shard in self._shards)

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, **_: Any) -> list[ReadTask]:
        """Returns at most `parallelism` tasks, each of neighbouring shards of about the same number of bytes."""
        groups = groups_of(self._shards, [shard.size for shard in self._shards], parallelism)
        # An argument that only some versions of Ray have.
        known = inspect.signature(ReadTask).parameters
        limit = {"per_task_row_limit": per_task_row_limit} if "per_task_row_limit" in known else {}
        return [ReadTask(self._reader(group), _metadata(group), **limit) for group in groups]

    def _reader(self, shards: list[_Shard]) -> Any:
        path, split, columns, images = self._path, self._split, self._columns, self._images

        def blocks() -> Iterator[pa.Table]:
            opened = Dataset(path).split(split)
            for shard in shards:
                start, end = shard.first, shard.first + shard.records
                while start < end:
                    table = read_table(opened, start, end, columns, images)
                    yield table
                    start += table.num_rows

        return blocks


def read_table(
    split: Split, start: int, end: int, columns: list[tuple[str, bool]], images: Images | None, limit: int = BLOCK
) -> pa.Table:
    """Returns the records from `start` to `end`, but no more once their images have `limit` bytes, as a table. The arrays are
    the buffers that the native module filled."""
    found = split.arrow_buffers(start, end, limit, images or "none", columns)
    rows = found["rows"]
    arrays = {"key": _strings(rows, found["key"], None, text=True)}
    if images == "decoded":
        arrays["image"] = _tensors(start, found)
    elif images == "encoded":
        pair, present = found["image"]
        arrays["image"] = _strings(rows, pair, present)
    if found["label"] is not None:
        values, present = found["label"]
        arrays["label"] = pa.Array.from_buffers(pa.int64(), rows, [_validity(present), pa.py_buffer(values)])
    for name, (kind, values, ends, present) in found["columns"].items():
        count = rows if ends is None else int(ends[-1])
        missing = present if ends is None else None
        if kind == "bytes":
            array = _strings(count, values, missing)
        else:
            array = pa.Array.from_buffers(_NUMBERS[kind], count, [_validity(missing), pa.py_buffer(values)])
        if ends is not None:
            short = ends[-1] <= SHORT
            kind = pa.list_(array.type) if short else pa.large_list(array.type)
            offsets = pa.py_buffer(ends.astype(np.int32) if short else ends)
            array = pa.Array.from_buffers(kind, rows, [_validity(present), offsets], children=[array])
        arrays[name] = array
    return pa.table(arrays)


def _strings(rows: int, pair: tuple[np.ndarray, np.ndarray], present: np.ndarray | None, text: bool = False) -> pa.Array:
    """Returns an array of byte strings, or of text."""
    offsets, values = pair
    short = offsets[-1] <= SHORT
    kinds = (pa.string(), pa.large_string()) if text else (pa.binary(), pa.large_binary())
    buffers = [_validity(present), pa.py_buffer(offsets.astype(np.int32) if short else offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(kinds[not short], rows, buffers)


def _validity(present: np.ndarray | None) -> pa.Buffer | None:
    if present is None or present.all():
        return None
    return pa.py_buffer(np.packbits(present, bitorder="little"))


def _tensors(start: int, found: dict[str, Any]) -> pa.Array:
    """Returns decoded images as tensors, which refer to the pixels in `found`."""
    (offsets, pixels), present = found["image"]
    if not present.all():
        raise ColumnError(f"record {start + int(np.argmin(present))} has no image; read with images=None")
    shapes = found["shapes"]
    if (shapes == shapes[0]).all():
        return ArrowTensorArray.from_numpy(pixels.reshape(len(shapes), *shapes[0], 3))
    bounds = offsets.tolist()
    views = [pixels[bounds[row] : bounds[row + 1]].reshape(*shape, 3) for row, shape in enumerate(shapes.tolist())]
    return ArrowVariableShapedTensorArray.from_numpy(views)


def _columns(
    split: Split, columns: Sequence[str] | Mapping[str, Literal["value", "list"]] | None
) -> list[tuple[str, bool]]:
    """Returns features, and whether a row is a list."""
    given = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(as_names("columns", columns or []))
    first = next((shard.columns for shard in split.shards if len(shard)), {})
    found = []
    for name, kind in given.items():
        if name not in split.features:
            raise ColumnError(f"the dataset has no feature `{name}`; it has: {', '.join(sorted(split.features))}")
        if kind not in (None, "value", "list"):
            raise OptionError(f'`columns` has {kind!r} for `{name}`: expected "value" or "list"')
        several = split.features[name] != "bytes" and name not in first
        found.append((name, several if kind is None else kind == "list"))
    return found


def _decoded_bytes(split: Split) -> int:
    """Returns the mean number of bytes of a decoded image of the first shard."""
    first = next((shard.columns for shard in split.shards if len(shard)), {})
    if "image/height" not in first or "image/width" not in first:
        # The mean of ImageNet.
        return 400 * 350 * 3
    sides = (np.asarray(first["image/height"], np.float64), np.asarray(first["image/width"], np.float64))
    return int(3 * np.mean(sides[0] * sides[1]))


def _metadata(shards: list[_Shard]) -> BlockMetadata:
    values: dict[str, Any] = {
        "num_rows": sum(shard.records for shard in shards),
        "size_bytes": sum(shard.size for shard in shards),
        "input_files": tuple(shard.path for shard in shards),
        "exec_stats": None,
    }
    if "schema" in inspect.signature(BlockMetadata).parameters:
        values["schema"] = None
    return BlockMetadata(**values)
