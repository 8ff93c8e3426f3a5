"""Making datasets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from . import _shardtool
from .checks import whole
from .launch import warn

__all__ = ["Packed", "pack"]


@dataclass(frozen=True)
class Packed:
    """What a pack did."""

    #: Name of the split.
    split: str
    #: Images packed.
    images: int
    #: Shards written.
    shards: int
    #: Their bytes.
    bytes: int
    #: Named classes.
    classes: int
    #: Identifies the records: eight hex digits.
    fingerprint: str
    #: Inputs that could not be packed.
    rejected: int
    #: The file that lists them, if there are any.
    rejected_file: str | None
    #: Shards that an interrupted run had finished.
    resumed_shards: int
    #: Whether the split was complete before, so that nothing was written. Not compared.
    already_complete: bool = field(default=False, compare=False)


def pack(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    split: str = "train",
    shard_size: int | str | None = None,
    shards: int | None = None,
    seed: int | None = 0,
    jobs: int | None = None,
    classes: str | os.PathLike[str] | None = None,
    kind: Literal["folder", "list", "tfrecord", "webdataset", "parquet", "mds", "coco"] | None = None,
    map: Mapping[str, str] | None = None,
    label_offset: int = 0,
    jpeg: Literal["keep", "optimize"] = "keep",
    columns: Mapping[str, Literal["int64", "float", "bytes", "file"]] | None = None,
    boxes: Literal["xywh", "xyxy"] = "xywh",
    images: str | os.PathLike[str] | None = None,
    pixels: Literal["encoded", "raw", "raw-zstd"] = "encoded",
    zstd_level: int = 3,
    resize_shorter: int | None = None,
    max_side: int | None = None,
    quality: int = 90,
    on_error: Literal["skip", "fail"] = "skip",
    force: bool = False,
    jpeg_entries: bool = True,
    progress: bool = False,
) -> Packed:
    """Packs images into a split of a dataset: a folder of class folders, a flat folder, a list (CSV with a header, or
    JSONL, whose columns `path`, `label` and `key` are used and all others become features; a column of type `"file"` names
    files, whose bytes become the feature), or archives: TFRecord, WebDataset, Parquet, MDS, detected from content unless `kind`
    says which. Image files go in untouched unless `pixels`, `jpeg`, `resize_shorter` or `max_side` say otherwise; sizes
    read as `"256MiB"`.

    `map` gives an archive's fields under other names, ours to theirs: `{"image": "photo/bytes"}`. `label_offset` is
    subtracted from its labels to get class ids.

    `boxes` says how the boxes of a source's `objects` are written, in pixels: left, top, width, height, or left, top, right,
    bottom. A COCO annotation file (`instances.json`) is a source, too; `images` is the folder of its images, by default
    the file's own.

    `seed` is of the order in which images are packed; `None` keeps the source's. An interrupted pack, called again, goes
    on where it was. If the split is complete and was packed from the same source with the same options, writes nothing and
    returns it; if one of them differs, raises a `PackError` that names it. Raises `PackError`, `OptionError`, `FileError`.
    """
    options = locals().copy()
    for name, least in (("seed", 0), ("shards", 1), ("jobs", 1), ("resize_shorter", 1), ("max_side", 1), ("quality", 1)):
        if options[name] is not None:
            options[name] = whole(name, options[name], least)
    options["label_offset"] = whole("label_offset", label_offset, -(2**63), 2**63 - 1)
    if shard_size is not None and not isinstance(shard_size, str):
        options["shard_size"] = whole("shard_size", shard_size, 1)
    options["map"] = list((map or {}).items())
    options["columns"] = list((columns or {}).items())
    summary = _shardtool.pack(options)
    file = summary.pop("rejected_file")
    if summary["rejected"]:
        warn(f"pack rejected {summary['rejected']} inputs; {file} lists them with the reasons")
    return Packed(rejected_file=None if file is None else os.fspath(file), **summary)
