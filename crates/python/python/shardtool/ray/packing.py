"""Packs with the tasks of a Ray cluster."""

from __future__ import annotations

import os
from typing import Any

import ray

from .. import packing, writer
from ..checks import whole
from ..packing import Packed
from .paths import on_every_node

__all__ = ["pack"]


def pack(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    parts: int | None = None,
    num_cpus: int = 1,
    max_retries: int = 3,
    **options: Any,
) -> Packed:
    """Packs splits with the tasks of a Ray cluster: the result of `shardtool.pack`, byte for byte.

    Source and destination are URLs, or in a file system that all nodes share. This process plans and commits; each task packs one
    part of one split. Tasks that are killed, or whose node is lost, are run again. If the call fails, the same call resumes after the last
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
    source, destination = on_every_node(source), on_every_node(destination)
    for name in ("classes", "images"):
        if options.get(name) is not None:
            options[name] = on_every_node(options[name])
    plans = packing.write_plans(source, destination, **options)
    options.pop("force", None)
    options["jobs"] = options.get("jobs", num_cpus)
    if parts is None:
        parts = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)) // num_cpus)
    parts = whole("parts", parts, 1, 2**32 - 1)
    task = ray.remote(_part).options(num_cpus=num_cpus, max_retries=max_retries, name="shardtool.pack")
    running = []
    for split, shards in plans:
        of_split, count = {**options, "split": split}, min(parts, max(1, shards))
        running += [task.remote(source, destination, (part, count), of_split) for part in range(count)]
    try:
        ray.get(running)
    except BaseException:
        for part in running:
            ray.cancel(part, force=True)
        raise
    single_writer = options.get("single_writer", False)
    return packing.joined([writer.commit(destination, split, single_writer=single_writer) for split, _ in plans])


def _part(source: str, destination: str, part: tuple[int, int], options: dict[str, Any]) -> None:
    packing.pack_part(source, destination, part, **options)
