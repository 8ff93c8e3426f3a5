"""Groups of neighbouring shards, one for each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["groups_of"]

Item = TypeVar("Item")


def groups_of(items: Sequence[Item], sizes: Sequence[int], groups: int) -> list[list[Item]]:
    """Returns at most `groups` lists of neighbouring items, of about the same total size each."""
    total, count = max(1, sum(sizes)), max(1, min(groups, len(items)))
    found: list[list[Item]] = [[] for _ in range(count)]
    done = 0
    for item, size in zip(items, sizes, strict=True):
        found[min(count - 1, done * count // total)].append(item)
        done += size
    return [group for group in found if group]
