"""Datasets of files that stay where they are."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from . import _shardtool, packing
from .arrays import Array
from .errors import DatasetError
from .keypoints import Keypoints
from .launch import warn

__all__ = ["index", "open"]


def index(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    splits: Literal["auto", "names", "lists", "none"] = "auto",
    shard_size: int | str | None = None,
    shards: int | None = None,
    seed: int | None = 0,
    jobs: int | None = None,
    classes: str | os.PathLike[str] | None = None,
    kind: Literal["folder", "clips", "list", "tfrecord", "webdataset", "parquet", "mds", "coco", "voc", "yolo", "pairs"] | None = None,
    map: Mapping[str, str] | None = None,
    member_key: Literal["first-dot", "last-dot"] | None = None,
    label_offset: int = 0,
    columns: Mapping[str, Literal["int64", "float", "bytes", "float64", "uint64", "file", "frames", "flow"] | Array] | None = None,
    fps: float | None = None,
    boxes: Literal["xywh", "xyxy", "cxcywh"] = "xywh",
    first_pixel: Literal[0, 1] = 1,
    box_unit: Literal["pixel", "fraction"] | None = None,
    annotated: Literal["coded", "upright"] | None = None,
    keypoints: Keypoints | None = None,
    images: str | os.PathLike[str] | None = None,
    truncated: Literal["error", "fill"] = "error",
    on_error: Literal["skip", "fail"] = "skip",
    allow_empty: bool = False,
    jpeg_entries: bool = True,
    ignore_times: bool = False,
    single_writer: bool = False,
    wait: float = 21600,
    allow: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    progress: bool = False,
) -> packing.Packed:
    """Makes a dataset of files that stay where they are: folders of images, lists, COCO files, Pascal VOC, YOLO, tars, Parquet, MDS,
    TFRecord.

    Reads the source once, writes a manifest, and an index for each shard that `pack` would write, which says where the bytes
    lie. Records, keys, labels, order and fingerprint are those that `pack` would make with the same arguments. If the source has changed, the
    same call describes it again; otherwise it writes nothing. `Dataset(source)` opens it.

    Parameters
    ----------
    source
        As of `pack`: a folder, a list, a COCO file, Pascal VOC, YOLO, or archives. tars must not be compressed; of images in Parquet
        files, a
        codec must leave four fifths of the bytes as they are. TFRecord files become shards as they are.
    out
        Folder or URL of the dataset. Default: the folder of the source. Anywhere else, `Dataset(out, source=...)` must allow the
        source.
    split, splits, shard_size, shards, seed, jobs, classes, kind, map, member_key, label_offset, columns, fps, boxes
        As of `pack`.
    first_pixel, box_unit, annotated, keypoints, images, truncated, on_error, allow_empty, jpeg_entries, ignore_times
        As of `pack`.
    single_writer, wait, progress
        As of `pack`.
    allow
        Further folders, or beginnings of URLs, to which links in the source may lead. `Dataset` must allow them too.

    Raises
    ------
    PackError
        The source cannot be used where it lies, or as `pack`.
    OptionError
        An argument is not valid.
    FileError
        A file operation failed.
    """
    options = dict(locals())
    destination, sources = options.pop("out"), texts(options.pop("allow"))
    signature = inspect.signature(packing.pack)
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    options = {**defaults, **options, "destination": "" if destination is None else destination}
    report = packing._prepare(options)
    try:
        dataset, summaries = _shardtool.index(options, sources)
    finally:
        if report is not None:
            report.close()
    return packing.results("index", summaries)


def open(
    path: str | os.PathLike[str],
    *,
    cache: str | os.PathLike[str] | None = None,
    cache_size: int | str | None = None,
    version: int | str | None = None,
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
) -> _shardtool.Dataset:
    """Opens what lies at a path: a dataset, also one that `index` made, or bare TFRecord files, as `Dataset` does. If it is something
    else, such as a folder of images or of tars, raises `DatasetError`, which says what it is and how it becomes a dataset."""
    try:
        return _shardtool.Dataset(path, cache, cache_size, version, source)
    except DatasetError as error:
        kind = _shardtool.source_kind(path)
        if kind is None:
            raise
        name = os.fspath(path)
        raise DatasetError(
            f"{name} is {KINDS[kind]} and has no dataset.json: shardtool.index({name!r}) makes a dataset of it where "
            f"it lies; shardtool.pack({name!r}, 'dataset') copies it"
        ) from error


KINDS = {
    "folder": "a folder of images",
    "clips": "a folder of clips",
    "list": "a list",
    "tfrecord": "TFRecord files",
    "webdataset": "tars of samples",
    "parquet": "Parquet files",
    "mds": "MDS",
    "coco": "a COCO file",
    "voc": "a folder of Pascal VOC",
    "yolo": "a dataset of YOLO",
    "pairs": "images and files that belong to them by their names",
}


def texts(sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None) -> list[str]:
    """Returns the argument `source` as a list of texts."""
    if sources is None:
        return []
    if isinstance(sources, (str, os.PathLike)):
        return [os.fspath(sources)]
    return [os.fspath(source) for source in sources]
