"""Packs with the tasks of a Ray cluster, and reads datasets into Ray Data.

    import shardtool.ray

    shardtool.ray.pack("s3://photos/list.csv", "s3://datasets/imagenet", num_cpus=4)
    images = shardtool.ray.read("s3://datasets/imagenet", columns=["weight"])      # a ray.data.Dataset
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from . import packing, writer
from ._shardtool import Dataset, Split
from .arguments import as_names
from .checks import whole
from .packing import Packed

__all__ = ["pack", "read"]

#: Bytes of a block of Ray Data, about.
BLOCK = 64 << 20


def pack(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    parts: int | None = None,
    num_cpus: int = 1,
    max_retries: int = 3,
    **options: Any,
) -> Packed:
    """Packs a split with the tasks of a Ray cluster: the result of `shardtool.pack`, byte for byte.

    Source and destination are URLs, or in a file system that all nodes share. This process plans and commits; each task packs one
    part. Tasks that are killed, or whose node is lost, are run again. If the call fails, the same call resumes after the last
    finished shard.

    Parameters
    ----------
    source, destination
        As of `shardtool.pack`.
    parts
        Number of tasks. Default: two for each task that the cluster can run at once, at most one per shard.
    num_cpus
        CPUs, and threads, of each task.
    max_retries
        How often a task is run again whose process or node is lost; -1 for always.
    **options
        As of `shardtool.pack`.
    """
    num_cpus = whole("num_cpus", num_cpus, 1, 2**16)
    shards = packing.write_plan(source, destination, **options)
    options.pop("force", None)
    options["jobs"] = options.get("jobs", num_cpus)
    if parts is None:
        parts = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)) // num_cpus)
    parts = min(whole("parts", parts, 1, 2**32 - 1), max(1, shards))
    task = ray.remote(_part).options(num_cpus=num_cpus, max_retries=max_retries, name="shardtool.pack")
    running = [task.remote(os.fspath(source), os.fspath(destination), (part, parts), options) for part in range(parts)]
    try:
        ray.get(running)
    except BaseException:
        for part in running:
            ray.cancel(part, force=True)
        raise
    single_writer = options.get("single_writer", False)
    return writer.commit(destination, options.get("split", "train"), single_writer=single_writer)


def _part(source: str, destination: str, part: tuple[int, int], options: dict[str, Any]) -> None:
    packing.pack_part(source, destination, part, **options)


def read(
    dataset: str | os.PathLike[str],
    split: str = "train",
    *,
    columns: Sequence[str] | None = None,
    override_num_blocks: int | None = None,
    **ray_options: Any,
) -> ray.data.Dataset:
    """Reads a split into a dataset of Ray Data: each record's `key`, its `image` as stored, its `label` if there is one, and
    further features by name. Every record is checked by its CRC.

    A task reads a group of neighbouring shards; numbers of rows and bytes come from the manifest.

    Parameters
    ----------
    dataset
        A dataset, by its path or URL, which every node can open.
    split
        Name of the split.
    columns
        Features to read in addition.
    override_num_blocks
        Number of tasks, at most one per shard. Default: as Ray decides.
    **ray_options
        Further arguments of `ray.data.read_datasource`, such as `num_cpus` and `concurrency`.
    """
    names = [] if columns is None else as_names("columns", columns)
    source = ShardDatasource(os.fspath(dataset), split, names)
    return ray.data.read_datasource(source, override_num_blocks=override_num_blocks, **ray_options)


class ShardDatasource(Datasource):
    """The shards of a split as a source of Ray Data."""

    def __init__(self, path: str, split: str, columns: Sequence[str] = ()):
        super().__init__()
        self._path, self._split, self._columns = path, split, list(columns)
        opened = Dataset(path).split(split)
        # Of each shard: its first record, its number of records, its bytes, and its path.
        first, shards = 0, []
        for shard in opened.shards:
            shards.append((first, len(shard), shard.bytes, os.fspath(shard.path)))
            first += len(shard)
        self._shards = [shard for shard in shards if shard[1]]

    def get_name(self) -> str:
        """Returns the name of the tasks."""
        return "shardtool"

    def estimate_inmemory_data_size(self) -> int:
        """Returns the bytes of the shards."""
        return sum(length for _, _, length, _ in self._shards)

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, **_: Any) -> list[ReadTask]:
        """Returns at most `parallelism` tasks, each of neighbouring shards of about the same number of bytes."""
        total, tasks = max(1, self.estimate_inmemory_data_size()), max(1, min(parallelism, len(self._shards)))
        groups: list[list[tuple[int, int, int, str]]] = [[] for _ in range(tasks)]
        done = 0
        for shard in self._shards:
            groups[min(tasks - 1, done * tasks // total)].append(shard)
            done += shard[2]
        # Arguments that only some versions of Ray have.
        known = inspect.signature(ReadTask).parameters
        limit = {"per_task_row_limit": per_task_row_limit} if "per_task_row_limit" in known else {}
        return [ReadTask(self._reader(group), _metadata(group), **limit) for group in groups if group]

    def _reader(self, shards: list[tuple[int, int, int, str]]) -> Any:
        path, split, columns = self._path, self._split, self._columns

        def blocks() -> Iterator[pa.Table]:
            opened = Dataset(path).split(split)
            for first, records, length, _ in shards:
                rows = max(1, BLOCK * records // max(1, length))
                for start in range(first, first + records, rows):
                    yield _table(opened, start, min(start + rows, first + records), columns)

        return blocks


def _metadata(shards: list[tuple[int, int, int, str]]) -> BlockMetadata:
    values: dict[str, Any] = {
        "num_rows": sum(records for _, records, _, _ in shards),
        "size_bytes": sum(length for _, _, length, _ in shards),
        "input_files": tuple(path for _, _, _, path in shards),
        "exec_stats": None,
    }
    if "schema" in inspect.signature(BlockMetadata).parameters:
        values["schema"] = None
    return BlockMetadata(**values)


def _table(split: Split, start: int, end: int, columns: list[str]) -> pa.Table:
    """Returns records as a table."""
    records = split[start:end]
    arrays = {"key": pa.array([record["key"] for record in records], pa.string())}
    arrays["image"] = pa.array([record["image"] for record in records], pa.binary())
    if any(record["label"] is not None for record in records) or split.features.get("image/class/label"):
        arrays["label"] = pa.array([record["label"] for record in records], pa.int64())
    for name in columns:
        arrays[name] = pa.array([record["features"].get(name) for record in records])
    return pa.table(arrays)
