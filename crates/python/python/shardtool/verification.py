"""Verifying a dataset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from . import _shardtool
from .indexing import texts

__all__ = ["Damage", "Report", "verify"]


@dataclass(frozen=True)
class Damage:
    """One instance of damage."""

    #: Name of the damage in `format-spec.md`.
    name: str
    #: Path of the damaged file.
    shard: str
    #: The record, from 0 in its shard.
    record: int | None
    #: The record's key, if the index has it.
    key: str | None
    #: Position in the file, in bytes.
    offset: int | None
    #: The expected value, as text.
    expected: str | None
    #: The value that was found, as text.
    found: str | None
    #: The damage in a sentence.
    message: str


@dataclass(frozen=True)
class Report:
    """The result of a verification: what was checked, and all damage."""

    #: Shards checked.
    shards: int
    #: Records whose CRC matched.
    good_records: int
    #: Bytes of shards read.
    bytes: int
    #: The damage, by file and offset: the first 100,000 findings.
    damages: list[Damage]
    #: Further findings, which are not listed.
    unlisted: int = 0
    #: Images that are cut or damaged, and no damage as `truncated` says.
    filled: int = 0

    @property
    def good(self) -> bool:
        """Whether no damage was found."""
        return not self.damages

    def __str__(self) -> str:
        lines = [damage.message for damage in self.damages]
        count = len(self.damages) + self.unlisted
        found = "no damage" if self.good else f"{count} finding{'s' if count > 1 else ''}"
        lines.append(f"{self.good_records} good records in {self.shards} shards, {self.bytes} bytes: {found}")
        return "\n".join(lines)


def verify(
    path: str | os.PathLike[str],
    *,
    decode: bool = False,
    truncated: Literal["error", "fill"] = "error",
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    progress: bool = False,
) -> Report:
    """Checks framing and both CRCs of every record, indexes against records, and files against the manifest; with `decode`, also
    decodes every image; with `truncated="fill"`, cut and damaged JPEGs are no damage, and counted apart. `source` is that of `Dataset`. `progress` shows a bar on stderr. The report lists the damage; raises `DatasetError` or `FileError`
    only if the dataset cannot be checked."""
    found = _shardtool.verify(path, decode, progress, truncated, texts(source))
    damages = [Damage(**damage) for damage in found.pop("damages")]
    return Report(damages=damages, **found)
