"""Verifies a dataset with the tasks of a Ray cluster."""

from __future__ import annotations

import os
from typing import Any, Literal

import ray

from .. import _shardtool, verification
from ..checks import whole
from ..errors import DamageError, DatasetError
from ..verification import Damage, Report
from .groups import groups_of
from .paths import on_every_node

__all__ = ["verify"]

#: Findings that a report lists; it counts the others.
LISTED = 100_000


def verify(
    dataset: str | os.PathLike[str],
    *,
    decode: bool = False,
    truncated: Literal["error", "fill"] = "error",
    tasks: int | None = None,
    num_cpus: float = 1,
) -> Report:
    """Verifies a dataset with the tasks of a Ray cluster: the report of `shardtool.verify`.

    Parameters
    ----------
    dataset
        A dataset, by its path or URL, which every node can open.
    decode
        Whether to decode every image as well.
    truncated
        As for `shardtool.verify`.
    tasks
        Number of tasks, each of which verifies neighbouring shards of one split. Default: four for each task that the cluster
        can run at once.
    num_cpus
        CPUs of each task.
    """
    path = on_every_node(dataset)
    try:
        opened = _shardtool.Dataset(path)
    except (DamageError, DatasetError):
        # A damaged manifest is a finding, without shards.
        return verification.verify(path, decode=decode, truncated=truncated)
    if tasks is None:
        tasks = 4 * max(1, int(ray.cluster_resources().get("CPU", 1) / num_cpus))
    tasks = whole("tasks", tasks, 1, 2**32 - 1)
    task = ray.remote(_verify).options(num_cpus=num_cpus, name="shardtool.verify")
    splits = [(name, [shard.bytes for shard in opened.split(name).shards]) for name in opened.splits]
    total = max(1, sum(sum(sizes) for _, sizes in splits))
    running = []
    for name, sizes in splits:
        share = max(1, round(tasks * sum(sizes) / total))
        groups = groups_of(range(len(sizes)), sizes, share)
        running += [task.remote(path, name, group, decode, truncated) for group in groups]
    found: list[dict[str, Any]] = ray.get(running)
    damages = [Damage(**damage) for part in found for damage in part["damages"]]
    damages.sort(key=lambda damage: (damage.shard, -1 if damage.offset is None else damage.offset, damage.name))
    sums = {name: sum(part[name] for part in found) for name in ("shards", "good_records", "bytes", "unlisted", "filled")}
    sums["unlisted"] += len(damages[LISTED:])
    return Report(damages=damages[:LISTED], **sums)


def _verify(path: str, split: str, shards: list[int], decode: bool, truncated: str) -> dict[str, Any]:
    return _shardtool.verify_shards(path, split, shards, decode, truncated)
