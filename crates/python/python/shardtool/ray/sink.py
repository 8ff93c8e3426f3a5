"""Writes a dataset of Ray Data into a split, with the tasks of a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from ray.data import Datasink

from .. import _shardtool
from ..arrays import Array
from ..checks import pair
from ..errors import OptionError, PackError
from ..keypoints import Keypoints, checked
from ..objects import Boxes
from ..packing import Packed
from ..values import Kind, convert_features, to_image
from .paths import on_every_node
from .rows import OWN, Fields, Row, features_of, rows_of

__all__ = ["Sink"]


class Sink(Datasink):
    """Writes the rows of a dataset of Ray Data into a split: `ds.write_datasink(shardtool.ray.Sink("dataset"))`.

    Each task writes a shard. Tasks may be killed, retried, or run twice: an attempt writes under a unique name, and when all
    tasks have ended, the driver checks the shards, names one attempt of each task in the manifest, in the order of tasks, and
    removes the others' files. So every row is stored once. If the write fails, its files are removed; `shardtool clean`
    removes those of attempts that end later. Without any of this, the dataset does not have the split.

    The columns `key`, `image` and `label` are a sample's own; all others become features, as the columns of a list do: numbers,
    text, bytes, lists and tensors of these; a struct becomes a feature `NAME/MEMBER` for each member. Of a tensor and of nested
    lists of equal length, `NAME/shape` holds the shape; of lists of lists, `NAME/lengths` the lengths. Nulls are no values.

    Parameters
    ----------
    destination
        Folder of the dataset, in a file system that all nodes share, or its URL in a store. It is created if it does not exist.
    split
        Name of the split, which the dataset must not have.
    features
        Types of features, `"int64"`, `"float"`, `"bytes"`, `"float64"` or `"uint64"`, or `Array(...)` for tensors that are stored in chunks. Default: of
        the columns' types. Needed for a column whose type differs from block to block.
    classes
        Class names by id. Needed if labels are text.
    labels, images
        Whether every sample has a label, or an image. Default: whether there is such a column.
    map
        Names of columns by their use: `{"image": "jpg", "label": "cls", "key": "__key__"}`. Default: `image`, `label`, `key`.
        Without an image's column, `path` names the file of the image; without a key's column, it is the key. Without both, the
        numbers of the task and of the row are the key.
    boxes, box_unit, annotated, keypoints
        Format and unit of the boxes of `objects`, the image that they refer to, and what keypoints are: as for `Writer`.
    on_error
        `"skip"` leaves out rows that cannot be stored and lists them, with the reason, in `rejected-SPLIT.jsonl`; `"fail"` ends
        the write.
    min_rows_per_shard
        Least number of rows of a shard, if there are as many. Default: as Ray decides; shards are as large as the blocks that
        a task gets, of about 128 MiB.
    single_writer
        Whether nothing else writes to the destination, a store that does not compare versions of objects.
    pixels, quality, zstd_level, jpeg, resize_shorter, max_side, float_range, strip_metadata, truncated, jpeg_entries,
    sha256
        As for `Writer`.

    Raises
    ------
    PackError
        The dataset has the split, or another process writes it; two rows have the same key; rows were lost.
    OptionError
        An argument is out of range, a column has a type that features cannot hold, or tasks found different types of a feature.
    """

    #: Summary of the split, once it is written: `images`, `rejected`, `rejected_file` and others.
    result: Packed | None

    def __init__(
        self,
        destination: str | os.PathLike[str],
        split: str = "train",
        *,
        features: Mapping[str, Kind | Array] | None = None,
        classes: Iterable[str] = (),
        labels: bool | None = None,
        images: bool | None = None,
        map: Mapping[str, str] | None = None,
        boxes: Boxes = "xywh",
        box_unit: Literal["pixel", "fraction"] | None = None,
        annotated: Literal["coded", "upright"] | None = None,
        keypoints: Keypoints | None = None,
        on_error: Literal["skip", "fail"] = "skip",
        min_rows_per_shard: int | None = None,
        single_writer: bool = False,
        pixels: Literal["encoded", "raw", "raw-zstd"] = "encoded",
        quality: int | None = None,
        zstd_level: int = 3,
        jpeg: Literal["keep", "optimize"] = "keep",
        resize_shorter: int | None = None,
        max_side: int | None = None,
        float_range: tuple[float, float] | None = None,
        strip_metadata: bool = False,
        truncated: Literal["error", "fill"] = "error",
        jpeg_entries: bool = True,
        sha256: bool = False,
    ):
        if boxes not in get_args(Boxes):
            raise OptionError(f'`boxes` is {boxes!r}: expected "xywh", "xyxy" or "cxcywh"')
        if on_error not in ("skip", "fail"):
            raise OptionError(f'`on_error` is {on_error!r}: expected "skip", "fail"')
        self._options: dict[str, Any] = {
            "destination": on_every_node(destination),
            "split": split,
            "classes": list(classes),
            "shard_size": None,
            "part": None,
            "force": False,
            "pixels": pixels,
            "quality": quality,
            "zstd_level": zstd_level,
            "jpeg": jpeg,
            "resize_shorter": resize_shorter,
            "max_side": max_side,
            "float_range": None if float_range is None else pair("float_range", float_range),
            "strip_metadata": strip_metadata,
            "truncated": truncated,
            "jpeg_entries": jpeg_entries,
            "sha256": sha256,
            "box_unit": box_unit,
            "annotated": annotated,
            "keypoints": checked(keypoints),
        }
        self._features: dict[str, Kind | Array] = dict(features or {})
        self._labels, self._images, self._boxes, self._on_error = labels, images, boxes, on_error
        self._fields = Fields(map or {})
        self._min_rows, self._single_writer = min_rows_per_shard, single_writer
        # All attempts of all tasks have it in their names.
        self._id = _shardtool.new_write_id()
        self._write: _shardtool.TaskWrite | None = None
        self.result = None

    def get_name(self) -> str:
        """Returns the name of the tasks."""
        return "shardtool"

    @property
    def min_rows_per_write(self) -> int | None:
        """Returns the number of rows that Ray passes to a task at least."""
        return self._min_rows

    def on_write_start(self, *_args: Any, **_kwargs: Any) -> None:
        """Begins the split, which no other command writes meanwhile. Ray calls it in the driver; its arguments differ from version
        to version."""
        if self._write is None:
            self._write = _shardtool.TaskWrite(self._native({}, False, False), self._id, self._single_writer)

    def write(self, blocks: Iterable[Any], ctx: Any) -> dict[str, Any] | None:
        """Writes the shard of an attempt of a task. Reads the blocks once. Returns what the driver commits, or `None` without
        rows."""
        task = _Task(self, ctx.task_idx)
        try:
            for row in rows_of(blocks, self._fields, ctx.task_idx):
                task.write(row)
            return task.finish()
        except BaseException:
            task.abandon()
            raise

    def on_write_complete(self, write_result: Any) -> None:
        """Commits the split. Ray calls it in the driver, with what all tasks returned."""
        # Ray does not begin to write a dataset without blocks.
        self.on_write_start()
        assert self._write is not None
        tasks = [task for task in getattr(write_result, "write_returns", write_result) if task is not None]
        by_number = {task["shard"]["task"]: task for task in tasks}
        rows = sum(task["rows"] for task in by_number.values())
        expected = getattr(write_result, "num_rows", rows)
        if rows != expected:
            raise PackError(f"the tasks of the write stored or rejected {rows} rows, but Ray gave them {expected}")
        options = self._native(_merged(by_number), _same(by_number, "labels"), _same(by_number, "images"))
        committed = self._write.commit(options, [task["shard"] for task in tasks])
        self.result = Packed(**committed)
        self._write = None

    def on_write_failed(self, error: Exception) -> None:
        """Removes what the tasks wrote. Ray calls it in the driver."""
        if self._write is not None:
            write, self._write = self._write, None
            write.abandon()

    def __getstate__(self) -> dict[str, Any]:
        # What has begun belongs to the driver.
        return {**self.__dict__, "_write": None}

    def _native(self, features: Mapping[str, Kind], labels: bool, images: bool) -> dict[str, Any]:
        """Returns the options of the native writers, for samples with these features."""
        kinds = {**features, **self._features}
        plain = [(name, kind) for name, kind in kinds.items() if not isinstance(kind, Array)]
        arrays = [kind._native(name) for name, kind in kinds.items() if isinstance(kind, Array)]
        return {**self._options, "features": plain, "arrays": arrays, "labels": labels, "images": images}


class _Task:
    """One attempt of a task."""

    def __init__(self, sink: Sink, number: int):
        self._sink, self._number, self._rows = sink, number, 0
        #: Features found so far, and those of the sink.
        self._found: dict[str, Kind] = {}
        self._features: dict[str, Kind | Array] = dict(sink._features)
        self._labels = self._images = False
        self._writer: _shardtool.TaskWriter | None = None

    def write(self, row: Row) -> None:
        """Writes or rejects a row."""
        sink, writer = self._sink, self._open(row)
        self._rows += 1
        try:
            self._declare(features_of(row.values, row.types, sink._boxes))
            values = convert_features(row.values, OWN, sink._boxes, self._features)
            image = to_image(row.image) if self._images else None
            label = row.label if self._labels else None
            writer.write(row.key, image, label, values)
        except (OptionError, PackError, FileNotFoundError) as error:
            reason = str(error)
            own = f"sample `{row.key}`: "
            # Other errors of the writer are not about the sample.
            if isinstance(error, PackError) and not reason.startswith(own):
                raise
            if sink._on_error == "fail":
                raise
            writer.reject(row.key, reason.removeprefix(own))

    def finish(self) -> dict[str, Any] | None:
        """Makes the shard durable."""
        if self._writer is None:
            return None
        kinds = {"features": self._found, "labels": self._labels, "images": self._images}
        return {"shard": self._writer.finish(), "rows": self._rows, **kinds}

    def abandon(self) -> None:
        """Drops the shard."""
        if self._writer is not None:
            self._writer.abandon()

    def _open(self, row: Row) -> _shardtool.TaskWriter:
        if self._writer is None:
            sink = self._sink
            classes = sink._options["classes"]
            self._labels = (bool(classes) or row.has_label) if sink._labels is None else sink._labels
            self._images = row.has_image if sink._images is None else sink._images
            if self._labels and not classes and isinstance(row.label, str):
                raise OptionError(f"the label of `{row.key}` is text, {row.label!r}: give the names of all classes, in `classes`")
            options = sink._native({}, self._labels, self._images)
            self._writer = _shardtool.TaskWriter(options, sink._id, self._number, sink._single_writer)
        return self._writer

    def _declare(self, features: Mapping[str, Kind]) -> None:
        """Adds features that no earlier row had."""
        assert self._writer is not None
        new = {name: kind for name, kind in features.items() if name not in self._features}
        if new:
            self._writer.add_features(list(new.items()))
            self._features.update(new)
            self._found.update(new)


def _same(tasks: Mapping[int, dict[str, Any]], name: str) -> bool:
    """Returns whether samples have labels, or images, on which all tasks agree."""
    found = {task[name]: number for number, task in tasks.items()}
    if len(found) > 1:
        raise OptionError(
            f"rows of task {found[True]} have {name}, but not those of task {found[False]}: give {name}=True or {name}=False"
        )
    return next(iter(found), False)


def _merged(tasks: Mapping[int, dict[str, Any]]) -> dict[str, Kind]:
    """Returns the features of all tasks."""
    merged: dict[str, tuple[Kind, int]] = {}
    for number, task in sorted(tasks.items()):
        for name, kind in task["features"].items():
            before, first = merged.setdefault(name, (kind, number))
            if before != kind:
                raise OptionError(
                    f"feature `{name}` is {before} in task {first}, but {kind} in task {number}; give its type: "
                    f'features={{"{name}": "{"bytes" if "bytes" in (before, kind) else "float64"}"}}'
                )
    return {name: kind for name, (kind, _) in merged.items()}
