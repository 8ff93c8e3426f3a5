"""A cache of decoded images, frames of clips and masks."""

from __future__ import annotations

import os
from typing import Any

from .arguments import as_size
from .checks import whole

__all__ = ["DecodedCache"]


class DecodedCache:
    """Keeps decoded images, frames of clips and masks from one epoch to the next, until the cache is full.

    Every image whose shorter side is longer than `resize` is resized to it before the steps of the loader, whether it is in the
    cache or not: the pixels of a batch do not depend on the cache. Masks (by nearest neighbour), boxes and keypoints follow.

    Parameters
    ----------
    size
        Bytes, or text such as `"8GiB"`, of decoded images; for several processes of a machine, of each.
    resize
        Pixels of the shorter side, at most.
    path
        A folder for a file, which has no name and ends with the process. Default: in memory, as part of the memory budget.
    """

    def __init__(self, size: int | str, *, resize: int = 512, path: str | os.PathLike[str] | None = None):
        #: Bytes, or text.
        self.size = as_size("size", size)
        #: Pixels of the shorter side, at most.
        self.resize = whole("resize", resize, 1, 2**16)
        #: The folder, if there is one.
        self.path = None if path is None else os.fspath(path)

    def _native(self) -> tuple[Any, int, str | None]:
        return self.size, self.resize, self.path

    def __repr__(self) -> str:
        return f"DecodedCache({self.size!r}, resize={self.resize}, path={self.path!r})"
