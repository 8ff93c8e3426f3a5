"""Writing a split from a program, sample by sample."""

from __future__ import annotations

import numbers
import os
import threading
from collections.abc import Iterable, Mapping, Sequence, Set
from types import TracebackType
from typing import Any, Literal, get_args

import numpy as np

from . import _shardtool
from .arrays import Array
from .checks import pair
from .errors import OptionError, OptionTypeError, UsageError
from .keypoints import Keypoints, checked
from .packing import Packed
from .objects import Boxes
from .values import Kind, convert_features, infer_features, to_image

__all__ = ["Writer", "commit"]

#: Members of a sample that are not features.
_OWN = ("key", "image", "label")
_OBJECT_CLASS = "image/object/class/label"
#: Features that the writer makes from these members.
_WRITTEN = frozenset(
    ["image/encoded", "image/format", "image/height", "image/width", "image/channels", "image/orientation"]
    + ["image/filename", "image/key", "image/class/label", "image/class/text"]
)


class Writer:
    """Writes one split of a dataset, sample by sample, from arrays, bytes, images and other values.

    Records, shards and indexes are those of `pack`: the same samples give the same bytes. Use it as a context manager: at
    the end of the block the split is complete and the dataset's manifest names it. If the block raises, or the process is
    killed, finished shards stay, and the same program, run again, continues: `write` does nothing for a key that is stored
    already. In a complete split every key is stored.

    Any number of threads may write; samples are stored in the order in which they arrive. Several processes each open
    a writer with its own `part`, and one calls `commit` when all are done.

    Parameters
    ----------
    destination
        Folder of the dataset. It is created if it does not exist. A split that is added to an existing dataset must have
        the same classes and features.
    split
        Name of the split.
    features
        Types of the samples' own features, such as `Dataset.features` of a dataset whose records are written:
        `"int64"`, `"float"`, `"bytes"`, `"float64"` or `"uint64"`, or `Array(...)` for numpy
        arrays that are stored in chunks (volumes, audio). Default: those of the first sample, without `Array`: the type
        of an array, and of Python's floats `"float"` (float32) if that holds them, exactly or with at most six digits, else
        `"float64"`. Values that the type would round are refused, unless it is given: `"float"` then rounds. A
        feature may have any number of values in a sample. For a rectangular array of two or more dimensions, `"NAME"`
        holds the values and `"NAME/shape"` (int64) the shape; for a list of lists of different lengths, `"NAME/lengths"`
        (int64) holds the lengths.
    classes
        Class names by id. Needed if labels are text.
    labels, images
        Whether every sample has a label, or an image. Default: whether the first sample has one; with `classes`, labels.
        `labels=False` with `classes`: these are the classes of objects, as in detection.
    boxes
        Format of the boxes of a sample's `objects`, in pixels: `"xywh"` is left, top, width, height; `"xyxy"` is left,
        top, right, bottom; `"cxcywh"` is centre, width, height.
    box_unit, annotated
        Unit of these boxes and keypoints, and the image that they refer to: as for `pack`.
    keypoints
        What the keypoints are: `Keypoints(names, …)`. Default: not known; samples of a dataset that says it need it.
    shard_size
        A shard ends after the record that brings it to at least this many bytes: an int, or text such as `"256MiB"`
        (the default).
    part
        `(i, n)`: this writer writes part i of n, from 0. The split consists of the parts in order, once `commit` joins
        them.
    pixels
        `"encoded"` stores image files as they are and arrays as PNG, without loss; `"raw"` and `"raw-zstd"` store RGB.
    quality
        1 to 100: arrays and PIL images are stored as JPEG of this quality instead of PNG. It is also the quality of
        images that are made smaller (default 90).
    zstd_level, jpeg, resize_shorter, max_side, float_range, strip_metadata, truncated, jpeg_entries,
    sha256
        As for `pack`.
    force
        Whether to replace the split, and the unfinished output of a writer with other options.

    Raises
    ------
    PackError
        The split exists and was written with other options, another process is writing it, or a sample cannot be stored;
        the message then names its key, and the writer accepts further samples.
    OptionError
        An argument, or a value of a sample, is of the wrong type or out of range.
    FileError
        A file operation failed.

    Examples
    --------
    >>> with st.Writer("dataset", "train", classes=["cat", "dog"]) as writer:
    ...     for i, (array, name) in enumerate(samples):           # array: uint8 [height, width, 3]
    ...         writer.write({"key": f"{i:06}", "image": array, "label": name, "weight": 0.5})
    """

    #: Summary of the split once it is committed; `None` for a part.
    result: Packed | None

    def __init__(
        self,
        destination: str | os.PathLike[str],
        split: str = "train",
        *,
        features: Mapping[str, Kind | Array] | None = None,
        classes: Iterable[str] | None = None,
        labels: bool | None = None,
        images: bool | None = None,
        boxes: Boxes = "xywh",
        box_unit: Literal["pixel", "fraction"] | None = None,
        annotated: Literal["coded", "upright"] | None = None,
        keypoints: Keypoints | None = None,
        shard_size: int | str | None = None,
        part: tuple[int, int] | None = None,
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
        force: bool = False,
    ):
        options = {name: value for name, value in locals().items() if name not in ("self", "features")}
        if boxes not in get_args(Boxes):
            raise OptionError(f'`boxes` is {boxes!r}: expected "xywh", "xyxy" or "cxcywh"')
        if float_range is not None:
            options["float_range"] = pair("float_range", float_range)
        checked(keypoints)
        self._options = {**options, "classes": _names(classes)}
        self._features: dict[str, Kind | Array] | None = None
        if features is not None:
            # Those of a dataset have the ones that the writer makes.
            self._features = {name: kind for name, kind in features.items() if name not in _WRITTEN}
        self._inferred: frozenset[str] = frozenset()
        self._native: _shardtool.Writer | None = None
        self._opening = threading.Lock()
        self._closed = False
        self.result = None
        if self._options["classes"] and self._options["labels"] is None:
            self._options["labels"] = True
        if self._features is not None and None not in (self._options["labels"], images):
            self._open({})

    def write(self, sample: Mapping[str, Any]) -> bool:
        """Writes a sample.

        Parameters
        ----------
        sample
            `key`: text, unique in the split. `image`: bytes of an image file, a path of one, a uint8 array
            `[height, width]` or `[height, width, channels]` (1 grey, 2 grey and alpha, 3 RGB, 4 RGBA), or a PIL image; if
            it is a path and `key` is not given, the path is the key. `label`: a class id from 0, or a name among
            `classes`. `objects`: the objects in the image as COCO and Hugging Face's datasets have them, a dict of lists
            (or a list of dicts) with `bbox` in pixels (see `boxes`) and perhaps `category`, `keypoints` and others; they
            become the features `image/object/bbox`, `image/object/class/label` and so on, as with `pack`. Everything else
            is a feature: a number, text, bytes, or a list or array of them; `None` values are skipped. A record of a
            split, `split[i]`, is a sample too: the members of its dict `features` are features, except those that the
            writer makes itself (`image/width` and so on).

        Returns
        -------
        bool
            Whether the sample was written; `False` if its key is stored already.
        """
        sample = self._of_record(sample)
        image = sample.get("image")
        key = sample.get("key")
        if key is None and isinstance(image, (str, os.PathLike)):
            key = os.fspath(image)
        if not isinstance(key, str) or not key:
            raise OptionError(f"a sample needs a `key` that is text and not empty, found {key!r}")
        try:
            native = self._native or self._open(sample)
            assert self._features is not None
            values = convert_features(sample, _OWN, self._options["boxes"], self._features, self._inferred)
            return native.write(key, to_image(image), _to_label(sample.get("label")), values)
        except Exception as error:
            # The messages of shardtool's errors name the key.
            if f"`{key}`" not in str(error):
                error.add_note(f"while writing the sample with the key {key!r}")
            raise

    def write_many(self, samples: Iterable[Mapping[str, Any]]) -> int:
        """Writes all samples of an iterable, such as a generator. Returns how many were written; the others' keys are
        stored already."""
        return sum(self.write(sample) for sample in samples)

    def close(self) -> None:
        """Finishes the split, or the part, and makes it durable. Does nothing if the writer is closed."""
        if not self._closed:
            native = self._native or self._open({})
            self._closed = True
            summary = native.finish()
            self.result = None if summary is None else Packed(rejected_file=None, **summary)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._closed = True
            if self._native is not None:
                self._native.abandon()

    def __repr__(self) -> str:
        part = "" if self._options["part"] is None else f", part={self._options['part']}"
        return f"Writer({os.fspath(self._options['destination'])!r}, {self._options['split']!r}{part})"

    def __reduce__(self) -> Any:
        raise TypeError("a Writer belongs to its process: open one in each process, with part=(i, n), then call commit")

    def _of_record(self, sample: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns a sample whose features are its members, if they are in a dict `features` as in a record of a split. Classes of a record
        are found by their names: without `classes`, the writer takes those of the first record."""
        features = sample.get("features")
        if not isinstance(features, Mapping):
            return sample
        flat = _flat_record(sample, features)
        theirs = getattr(sample, "classes", ())
        with self._opening:
            if self._native is None and not self._options["classes"]:
                self._options["classes"] = list(theirs)
        ours: list[str] = self._options["classes"]
        if not ours:
            return flat
        label, text = flat.get("label"), features.get("image/class/text")
        if isinstance(label, numbers.Integral):
            name = _class_name(int(label), theirs or ours)
            if isinstance(text, bytes) and text.decode(errors="replace") != name:
                raise OptionError(
                    f"`label` {label} is `{name}`, and `image/class/text` of the record {text.decode(errors='replace')!r}: give the name of "
                    "the class that is right as `label`, and leave `image/class/text` out"
                )
            flat["label"] = name
        ids = flat.get(_OBJECT_CLASS)
        if ids is not None and theirs and list(theirs) != ours:
            names = [_class_name(int(number), theirs) for number in np.atleast_1d(ids)]
            unknown = [name for name in names if name not in ours]
            if unknown:
                raise OptionError(f"an object of class `{unknown[0]}`, which is not among the writer's classes {ours!r:.80}")
            flat[_OBJECT_CLASS] = [ours.index(name) for name in names]
        return flat

    def _open(self, sample: Mapping[str, Any]) -> _shardtool.Writer:
        """Opens the writer. Options that were not given are inferred from the first sample."""
        with self._opening:
            if self._native is None:
                if self._closed:
                    raise UsageError("the writer is closed")
                if self._features is None:
                    self._features = {**infer_features(sample, _OWN, self._options["boxes"])}
                    self._inferred = frozenset(self._features)
                for name, member in (("labels", "label"), ("images", "image")):
                    if self._options[name] is None:
                        self._options[name] = sample.get(member) is not None
                features = [(name, kind) for name, kind in self._features.items() if not isinstance(kind, Array)]
                arrays = [kind._native(name) for name, kind in self._features.items() if isinstance(kind, Array)]
                self._native = _shardtool.Writer({**self._options, "features": features, "arrays": arrays})
            return self._native


def commit(
    destination: str | os.PathLike[str], split: str = "train", *, force: bool = False, single_writer: bool = False
) -> Packed:
    """Completes a split of several parts: those of `pack_part`, or those of writers, in order, once every writer is closed. The
    dataset's manifest then names it.

    If a commit was killed, the next one continues it. If the split is already complete, returns its summary.

    Parameters
    ----------
    destination
        Folder of the dataset; of packed parts also its URL in a store.
    split
        Name of the split.
    force
        Whether the parts of writers replace a split of that name.
    single_writer
        Write to a store that does not compare versions of objects: nothing else may write to `destination`.

    Raises
    ------
    PackError
        A part is not finished; the message names the missing shards. Or parts were written with different options, or two have a key in common.
    """
    return Packed(**_shardtool.commit(os.fspath(destination), split, force, single_writer))


def _flat_record(sample: Mapping[str, Any], features: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a sample whose features are its members."""
    flat = {name: value for name, value in sample.items() if name != "features"}
    for name, value in features.items():
        if name in _WRITTEN or (name in _OWN and value == flat.get(name)):
            continue
        if name in _OWN:
            raise OptionError(f"`{name}` in `features` is {value!r:.80}: it has the name of a member of samples")
        if name in flat:
            raise OptionError(f"feature `{name}` is given twice: in the sample, and in its `features`")
        flat[name] = value
    return flat


def _names(classes: Any) -> list[str]:
    if classes is None:
        return []
    is_list = isinstance(classes, Iterable) and not isinstance(classes, (str, bytes, bytearray, os.PathLike, Set))
    names = list(classes) if is_list else []
    if not is_list or not all(isinstance(name, str) for name in names):
        raise OptionError(f"`classes` is {classes!r}: expected the names of classes in their order, such as [\"cat\", \"dog\"]")
    return names


def _class_name(number: int, classes: Sequence[str]) -> str:
    if not 0 <= number < len(classes):
        raise OptionError(f"class id {number} of a record: there are {len(classes)} classes")
    return classes[number]


def _to_label(label: Any) -> int | str | None:
    if label is None or isinstance(label, str):
        return label
    if not isinstance(label, numbers.Integral):
        raise OptionTypeError(f"`label` is {label!r}: expected a class id or a class name")
    return int(label)
