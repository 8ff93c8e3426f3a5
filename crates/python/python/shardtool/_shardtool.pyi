"""The native part of `shardtool`; private except for the classes that `shardtool` exports."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, final, overload

import numpy as np

from shardtool.display import Html, Record
from shardtool.keypoints import Keypoints

__all__ = [
    "Columns",
    "Dataset",
    "DeviceArray",
    "Loader",
    "Memory",
    "Shard",
    "Split",
    "TaskWrite",
    "TaskWriter",
    "VERSION",
    "Writer",
    "append",
    "apply_operations",
    "check_keypoints",
    "class_names",
    "clone",
    "columns_of_file",
    "columns_of_values",
    "commit",
    "compact",
    "delete",
    "drop_columns",
    "flip_index",
    "gc",
    "image_html",
    "index",
    "labels",
    "launch",
    "new_write_id",
    "pack",
    "pack_part",
    "preview",
    "purge",
    "rarest_labels",
    "remove_view",
    "rollback",
    "run",
    "select",
    "shapes_within",
    "source_kind",
    "tag",
    "verify",
    "verify_shards",
    "write_plans",
]

VERSION: Final[str]

#: Rank, world size, local world size.
_Place = tuple[int, int, int | None]

@final
class Memory:
    """Memory that a numpy array refers to and keeps alive."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class Columns:
    """The features of a split, or of one of its shards, that have at most one value per record, by name.

    They come from the indexes, without reading a record. Byte strings are included if none in the shard is longer than
    256 bytes and the feature's name does not begin with `image/`. Raises `ColumnError` if the index of a shard lacks the
    column, since one of its records has several values or a longer one.
    """

    def __getitem__(self, name: str, /) -> np.ndarray:
        """Returns the values of all records, `[N]`: int64 or float32, as a masked array if records have no value; byte
        strings as objects, `bytes` or `None`. Numbers of one shard without missing values are not copied."""

    def arrow(self, /, name: str) -> Any:
        """Returns a `pyarrow.ChunkedArray` with one chunk per shard: int64, float32, float64, uint64 or large_binary, null where a
        record has no value. Its buffers are the mapped indexes, without a copy, but for shards with deleted rows, and float64 and
        uint64 with nulls. Needs pyarrow."""

    def table(self, names: Sequence[str] | None = None, /) -> Any:
        """Returns columns, by default all, as a `pyarrow.Table` with a chunk for each shard, as `arrow` does; byte strings are
        texts (large_string) if all of their column are UTF-8. Raises `ColumnError` for one that the index of a shard lacks:
        name the others. Needs pyarrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns all columns, as `table` does, for programs that read Arrow's C interface, such as DuckDB and Polars."""

    def __len__(self, /) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self, /) -> Iterator[str]: ...
    def keys(self, /) -> list[str]:
        """Returns the names of the columns."""

def image_html(image: bytes, /) -> str:
    """Returns an image as HTML for a notebook, reduced to what a page has room for."""

@final
class Dataset:
    """A dataset: a folder with a manifest, also in an object store (`"s3://bucket/folder"`), or bare TFRecord files, named by
    path or glob.

    cache
        Folder on a local disk in which what is read from an object store is kept; several processes may share it. Without
        effect on local datasets.
    cache_size
        Bytes of the cache, at most: a number, or text such as `"500GiB"`. `None` is what it holds, and 90 % of the free space.
    version
        The version to open: its number, a tag, or the checksum of its manifest. `None` is the newest, or the one that `path` names
        (`"dataset@3"`). A pickled dataset opens the version that it had.
    source
        Where files of a dataset that `index` made may lie, if they are not in the dataset's own folder: a folder or the beginning of a
        URL, or several. The environment variable `SHARDTOOL_SOURCES` names more, separated by commas or line breaks.

    Methods that change the dataset make a new version and return the dataset at it; this object stays at its version. All take `message`
    and `author`, for `log`, and `single_writer`, as `pack` does; with `dry_run=True` they write nothing and return this object.

    Raises `DatasetError`, `FileError`, or `DamageError` if the manifest is damaged.
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        cache: str | PathLike[str] | None = None,
        cache_size: int | str | None = None,
        version: int | str | None = None,
        source: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    ) -> Dataset: ...
    def split(self, /, name: str) -> Split:
        """Returns the split of that name. Raises `SplitError`."""

    def __getitem__(self, name: str, /) -> Split:
        """Returns the split of that name. Raises `SplitError`."""

    def __contains__(self, name: str, /) -> bool: ...
    def __len__(self, /) -> int: ...
    def __iter__(self, /) -> Iterator[str]: ...
    def keys(self, /) -> list[str]:
        """Returns the names of the splits."""

    @property
    def splits(self) -> list[str]:
        """Names of the splits."""

    @property
    def views(self) -> list[str]:
        """Names of the views, which `select` makes."""

    @property
    def path(self) -> Path | str:
        """The path that the dataset was opened with; of a dataset in a store, the URL, a `str`."""

    @property
    def keypoints(self) -> Keypoints | None:
        """What the keypoints of objects are; `None` if it is not known."""

    @property
    def classes(self) -> list[str]:
        """Class names, by class id; empty if classes have no names."""

    @property
    def features(self) -> dict[str, Literal["int64", "float", "bytes", "float64", "uint64"]]:
        """Type of each feature, by name."""

    @property
    def version(self) -> int:
        """Number of the version that is open, from 1."""

    @property
    def checksum(self) -> str:
        """Checksum of the version's manifest: eight hex digits, which name the version too."""

    def log(self, /) -> list[dict[str, Any]]:
        """Returns all versions that are kept, the newest first: `version`, `checksum`, `command`, `message`, `author`, `tags`,
        `records` of each split."""

    def at(self, /, version: int | str | None = None) -> Dataset:
        """Returns the dataset at a version; by default the newest. Raises `DatasetError`."""

    def append(
        self,
        /,
        source: str | PathLike[str],
        *,
        replace: bool = False,
        add_classes: bool = False,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        **pack: Any,
    ) -> Dataset:
        """Packs a source into further shards of splits that are there; `pack` has the options of `pack`. Keys must be new, unless
        `replace` deletes the older records of equal keys. `add_classes` gives classes that the dataset lacks the next ids. Raises
        `PackError`."""

    def delete(
        self,
        /,
        *,
        where: str | Sequence[str] | None = None,
        keys: Iterable[str | bytes] | None = None,
        ids: Iterable[int] | None = None,
        split: str | Sequence[str] | None = None,
        ignore_unknown: bool = False,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> Dataset:
        """Deletes the records for which all conditions hold (`"source=flickr"`), or with these keys, or with these ids in a split.
        Keys and ids that no record has are an error, unless `ignore_unknown`. Raises `PackError`."""

    def add_columns(
        self,
        /,
        source: str | PathLike[str] | Mapping[str, Any] | Callable[[Record], Mapping[str, Any]],
        *,
        split: str | Sequence[str] | None = None,
        names: str | Sequence[str] | None = None,
        key: str | None = None,
        columns: Mapping[str, Literal["int64", "float", "bytes", "float64", "uint64"]] | None = None,
        missing: Literal["error", "null", "keep"] = "error",
        rows_of: int | str | None = None,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> Dataset:
        """Adds features to the records: from a list (CSV, JSONL), Parquet, or a dataset; from a dict of columns or an Arrow table, whose
        column `key` (or `key`) has the keys of the records; or from a function that is called with each record of the newest version
        and returns a dict.

        Every row belongs to one record, and every record has a row; `missing` says what records without one get: an error, no value, or
        the value that they have. Rows without keys are in the order of the records of the version `rows_of`, which must be the newest.
        Numpy arrays and Arrow columns keep their types, with one value or one list of values a row. Raises `PackError`."""

    def replace_columns(
        self,
        /,
        source: str | PathLike[str] | Mapping[str, Any] | Callable[[Record], Mapping[str, Any]],
        *,
        split: str | Sequence[str] | None = None,
        names: str | Sequence[str] | None = None,
        key: str | None = None,
        columns: Mapping[str, Literal["int64", "float", "bytes", "float64", "uint64"]] | None = None,
        missing: Literal["error", "null", "keep"] = "error",
        rows_of: int | str | None = None,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> Dataset:
        """As `add_columns`, of features that the dataset has. Their types stay."""

    def drop_columns(
        self,
        /,
        names: str | Sequence[str],
        *,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> Dataset:
        """Leaves features out of the new version. Raises `PackError`."""

    def tag(
        self,
        /,
        name: str,
        version: int | str | None = None,
        *,
        remove: bool = False,
        message: str | None = None,
        author: str | None = None,
        single_writer: bool = False,
    ) -> Dataset:
        """Names a version, by default the newest, or removes the name. Raises `PackError`."""

    def clone(self, /, out: str | PathLike[str], *, single_writer: bool = False) -> Dataset:
        """Makes a dataset in the folder `out` whose shards are those of this version, and stay where they are. It has its own columns,
        deletions and versions. Returns it, opened with `source=` for the shards. Raises `PackError`."""

    def rollback(
        self,
        /,
        version: int | str,
        *,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> Dataset:
        """Makes a new version with the contents of an earlier one. Raises `PackError`."""

    def compact(
        self,
        /,
        *,
        split: str | Sequence[str] | None = None,
        shard_size: int | None = None,
        strip_metadata: bool = False,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> Dataset:
        """Writes new shards of the newest version: without deleted records, with its columns, of about `shard_size` bytes (256 MiB),
        with `strip_metadata` without the metadata of images, as of `pack`; the versions before keep theirs until `gc`. Raises
        `PackError`."""

    def gc(self, /, *, keep: int | None = None, remove: bool = False) -> list[str]:
        """Returns the files that no version needs, if the last `keep` versions (all) and tagged ones are kept; with `remove`, removes
        them. Raises `PackError`."""

    def select(
        self,
        /,
        name: str,
        *,
        where: str | Sequence[str] | None = None,
        keys: Iterable[str | bytes] | None = None,
        ids: Iterable[int] | None = None,
        split: str | None = None,
        ignore_unknown: bool = False,
        replace: bool = False,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> Dataset:
        """Makes a view: the records of a split (the only one), or of a view of it, that meet all conditions, or that have these keys, or
        these ids, in the split's order. `dataset[name]` is then a split of them. Records that are appended later are not in it; a deleted
        one leaves it. Returns the dataset at the new version. Raises `PackError`."""

    def remove_view(
        self,
        /,
        name: str,
        *,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> Dataset:
        """Removes a view; its records stay. Raises `SplitError`, `PackError`."""

    def purge(
        self,
        /,
        *,
        forget_keys: bool = False,
        search: bool = False,
        message: str | None = None,
        author: str | None = None,
        dry_run: bool = False,
        single_writer: bool = False,
    ) -> dict[str, Any]:
        """Removes deleted records from all versions: their bytes, keys and values. Every version that had one is written again without
        it; `at()` is the newest. Purged keys stay out of appends, unless `forget_keys`; `search` reads all files in the folder
        afterwards. Returns a report: `version`, `records` of each split, `versions`, `shards`, `bytes`, `removed`, `links` (of them, whose
        bytes stay elsewhere), `remembered` (keys),
        `rejected` (lines of lists), `copies` (split and key of other records with a purged image), `others` (files that are not the
        dataset's), `keeps_versions` (whether the store says that it keeps removed objects), `found` (files in which something was found;
        `None` without `search`). Raises `PackError`."""

    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def _repr_html_(self, /) -> str: ...

@final
class Split:
    """A split: records numbered through all its shards, from 0."""

    def __len__(self, /) -> int: ...
    @overload
    def __getitem__(self, index: int | str, /) -> Record:
        """Returns a record, given its number or its key, after checking its CRCs: `key`, `image` (bytes as stored, or `None`), `label` (class id, or `None`),
        `features` (all others by name: a value, or a list). Returns a list of records for a slice. Raises
        `OutOfRangeError`, `RecordKeyError`, `DamageError`."""

    @overload
    def __getitem__(self, index: slice, /) -> list[Record]: ...
    def find(self, /, key: str) -> int:
        """Returns the number of the first record with this key; searches the indexes. Raises `RecordKeyError`."""

    def show(self, /, n: int = 12, *, start: int = 0, seed: int | None = None) -> Html:
        """Returns pictures of `n` records for a notebook: from record `start` on; with a seed, from position `start` on of what
        a loader with that seed delivers in its first epoch."""

    def values(self, /, index: int, feature: str, which: Sequence[int] | None = None) -> list[bytes]:
        """Returns values of a bytes feature of a record, such as some frames of a clip: those with the numbers `which`, or
        all. Where the index has their ranges, reads and checks only these bytes, else the record. Raises
        `OutOfRangeError`, `ColumnError` if the feature does not hold byte strings, `DamageError`."""

    @property
    def name(self) -> str:
        """The split's name."""

    @property
    def path(self) -> Path | str:
        """The path that the dataset was opened with; of a dataset in a store, the URL, a `str`."""

    @property
    def keypoints(self) -> Keypoints | None:
        """What the keypoints of objects are; `None` if it is not known."""

    @property
    def classes(self) -> list[str]:
        """Class names, by class id; empty if classes have no names."""

    @property
    def num_classes(self) -> int:
        """Number of classes: of their names; without names, one more than the largest class id in the indexes. 0 without a
        label."""

    @property
    def features(self) -> dict[str, Literal["int64", "float", "bytes", "float64", "uint64"]]:
        """Type of each feature, by name."""

    @property
    def label(self) -> str | None:
        """Name of the feature that holds the class, if there is one."""

    @property
    def label_offset(self) -> int:
        """Subtracted from a stored label to get the class id."""

    @property
    def version(self) -> int:
        """Number of the dataset's version, from 1."""

    @property
    def fingerprint(self) -> str:
        """Identifies the records: eight hex digits."""

    def arrow_buffers(
        self, /, start: int, end: int, limit: int, images: str, columns: Sequence[tuple[str, bool]]
    ) -> dict[str, Any]:
        """Returns the records from `start` to `end`, but no more once their images have `limit` bytes, as the buffers of Arrow
        arrays. `images` is "none", "encoded" or "decoded"; `columns` are features, and whether a row is a list."""

    @property
    def columns(self) -> Columns:
        """The features with at most one value per record, as arrays `[len]`, from the index."""

    @property
    def shards(self) -> list[Shard]:
        """The shards, in order."""

    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def _repr_html_(self, /) -> str: ...

@final
class Shard:
    """One shard of a split."""

    def __len__(self, /) -> int: ...
    @property
    def path(self) -> Path | str:
        """The shard's path; of a dataset in a store, its URL, a `str`."""

    @property
    def bytes(self) -> int:
        """The shard's length in bytes."""

    @property
    def columns(self) -> Columns:
        """The scalar features as arrays `[len]`, as stored: views of the index, read-only."""

@final
class DeviceArray:
    """An array on a device. It keeps its batch alive, as do the arrays that frameworks make from it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""

    @property
    def dtype(
        self,
    ) -> Literal[
        "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
        "float16", "bfloat16", "float32", "float64", "bool",
    ]:  # fmt: skip
        """Type of its values."""

    @property
    def device(self) -> str:
        """The device: `cuda:N`."""

    def __dlpack_device__(self, /) -> tuple[int, int]:
        """`kDLCUDA`, and N of `cuda:N`."""

    def __dlpack__(
        self,
        /,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Returns a DLPack capsule. `stream` waits for the array; its memory is reused only after the work that is queued
        there when the array is deleted. `None` and 1 are the legacy default stream, 2 the per-thread default stream, larger
        numbers are handles; −1 means that the caller synchronises its work itself. Raises `BufferError`, `OptionError`,
        `DeviceError`."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Describes the array for the CUDA array interface, whose consumers synchronise with the stream in it. The interface
        has no bfloat16."""

    def __array__(self, /, *_arguments: Any, **_options: Any) -> NoReturn:
        """Raises `TypeError`, since numpy would make an array of one object."""

    def __len__(self, /) -> int: ...

@final
class Loader:
    """The loader behind `shardtool.Loader`. It starts its workers when the first iteration begins. A `place` is rank, world
    size and local world size."""

    def __new__(cls, splits: list[Split], options: dict[str, Any]) -> Loader: ...
    @property
    def classes(self) -> list[str]:
        """Names of the classes that batches deliver, by class id; empty if they have numbers only, or if no column holds class
        ids."""

    def begin(self, /, place: _Place) -> int:
        """Begins an iteration and returns its number."""

    def notices(self, /) -> list[tuple[bool, str]]:
        """Returns the notices since the last call: whether each is about a bad sample, and its text."""

    def next(self, /, iteration: int) -> list[dict[str, Any]]:
        """Returns the next batches of an iteration, one for each replica; none at the end of the epoch."""

    def state(self, /, place: _Place) -> str:
        """Returns the state to resume from, as JSON."""

    def load_state(self, /, place: _Place, json: str) -> None:
        """Resumes from a state."""

    def set_epoch(self, /, place: _Place, epoch: int) -> None:
        """Makes the next iteration this epoch."""

    def len(self, /, place: _Place) -> int:
        """Returns the number of steps of an epoch."""

    def steps_done(self, /, place: _Place) -> int:
        """Returns the number of steps of the current epoch that were delivered."""

    def stats(self, /) -> tuple[str, str]:
        """Returns the statistics as JSON, and as Prometheus text."""

    def bad_samples(self, /) -> list[dict[str, Any]]:
        """Returns the bad samples so far, as dicts."""

    def close(self, /) -> None:
        """Ends the workers; batches that were delivered stay valid."""

def preview(
    pixels: bytes,
    shape: tuple[int, ...],
    steps: str,
    sample: tuple[int, int, int],
    view: int | None,
    boxes: list[list[float]],
) -> tuple[bytes, tuple[int, int], str, list[list[float]], list[int]]:
    """Applies the steps of one view, as JSON, to an image of this shape. Returns pixels, height and width, the plan as JSON,
    the boxes that are left, and their numbers."""

def shapes_within(step: int, cells: int, ratio: int) -> list[tuple[int, int]]:
    """Returns height and width of the shapes of at most `cells` squares of `step` pixels."""

def apply_operations(pixels: bytes, shape: tuple[int, ...], operations: str) -> bytes:
    """Applies a list of operations, as JSON, to an image of this shape."""

def check_keypoints(keypoints: Keypoints, /) -> None: ...
def flip_index(names: Sequence[str], /) -> list[int]: ...
def class_names(splits: Sequence[Split], classes: str, /) -> list[str]: ...
def labels(splits: Sequence[Split], classes: str, /) -> np.ndarray: ...
def rarest_labels(labels: bytes, lengths: bytes, /) -> np.ndarray: ...
def launch(rank: int | None, world_size: int | None) -> tuple[int, int, int | None, str, list[str]]: ...
@final
class Writer:
    """The writer behind `shardtool.Writer`."""

    def __new__(cls, options: dict[str, Any]) -> Writer: ...
    def write(
        self,
        /,
        key: str,
        image: bytes | tuple[bytes, int, int, int] | None,
        label: int | str | None,
        values: Sequence[tuple[str, str, bytes | list[bytes] | tuple[str, list[int], bytes]]],
    ) -> bool:
        """Writes a sample, and returns whether its key was new. Values are name, type, and bytes of numbers, a list of bytes, or
        type, shape and elements of an array."""

    def finish(self, /) -> dict[str, Any] | None:
        """Finishes the part. If there are no other parts, commits the split and returns a summary as a dict."""

    def abandon(self, /) -> None:
        """Closes the writer; the next one continues after its finished shards."""

@final
class TaskWriter:
    """Writes the shard of one attempt of a task."""

    def __new__(cls, options: dict[str, Any], write: str, task: int, single_writer: bool) -> TaskWriter: ...
    def add_features(self, /, features: Sequence[tuple[str, str]]) -> None:
        """Adds features, by name and type, that the samples written from now on may have."""

    def write(
        self,
        /,
        key: str,
        image: bytes | tuple[bytes, int, int, int] | None,
        label: int | str | None,
        values: Sequence[tuple[str, str, bytes | list[bytes] | tuple[str, list[int], bytes]]],
    ) -> None:
        """Writes a sample, whose values are as those of `Writer.write`."""

    def reject(self, /, input: str, reason: str) -> None:
        """Adds a sample that cannot be written to the list of rejected inputs."""

    def finish(self, /) -> dict[str, Any]:
        """Makes the shard durable. Returns its line in the manifest, its task and its number of rejected samples, as a dict."""

    def abandon(self, /) -> None:
        """Drops the shard and removes its file."""

@final
class TaskWrite:
    """A split that tasks write, in the process that begins and commits it."""

    def __new__(cls, options: dict[str, Any], write: str, single_writer: bool) -> TaskWrite: ...
    def commit(self, /, options: dict[str, Any], shards: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Commits the shards of the tasks, and returns a summary as a dict. `options` have the features of all tasks."""

    def abandon(self, /) -> None:
        """Removes the files of all attempts that the manifest does not name."""

def new_write_id() -> str: ...
def verify_shards(path: str | PathLike[str], split: str, shards: Sequence[int], decode: bool, truncated: str) -> dict[str, Any]: ...
def commit(destination: str | PathLike[str], split: str, force: bool, single_writer: bool) -> dict[str, Any]: ...
def append(options: dict[str, Any], replace: bool, add_classes: bool, change: dict[str, Any]) -> dict[str, Any]: ...
def delete(
    dataset: Any,
    kind: str,
    texts: list[str],
    keys: list[bytes],
    ids: list[int],
    splits: list[str],
    ignore_unknown: bool,
    change: dict[str, Any],
) -> dict[str, Any]: ...
def select(
    dataset: Any,
    name: str,
    kind: str,
    texts: list[str],
    keys: list[bytes],
    ids: list[int],
    split: str | None,
    ignore_unknown: bool,
    replace: bool,
    change: dict[str, Any],
) -> int: ...
def remove_view(dataset: Any, name: str, change: dict[str, Any]) -> int | None: ...
def columns_of_file(dataset: Any, file: Any, arguments: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]: ...
def columns_of_values(
    dataset: Any, keys: list[bytes] | None, columns: list[dict[str, Any]], arguments: dict[str, Any], change: dict[str, Any]
) -> dict[str, Any]: ...
def drop_columns(dataset: Any, names: list[str], change: dict[str, Any]) -> int | None: ...
def tag(dataset: Any, name: str, version: str | None, remove: bool, change: dict[str, Any]) -> int | None: ...
def clone(
    dataset: Any, version: str | None, out: str | PathLike[str], single_writer: bool
) -> list[str]: ...
def rollback(dataset: Any, version: str, change: dict[str, Any]) -> int | None: ...
def compact(
    dataset: Any, splits: list[str], shard_size: int | None, strip_metadata: bool, change: dict[str, Any]
) -> int | None: ...
def gc(dataset: Any, keep: int | None, remove: bool) -> tuple[list[PathLike[str]], list[int]]: ...
def purge(dataset: Any, forget_keys: bool, search: bool, change: dict[str, Any]) -> dict[str, Any]: ...
def pack(options: dict[str, Any]) -> list[dict[str, Any]]: ...
def index(options: dict[str, Any], sources: list[str]) -> tuple[str, list[dict[str, Any]]]: ...
def source_kind(path: str | PathLike[str]) -> str | None: ...
def pack_part(options: dict[str, Any], number: int, count: int) -> dict[str, Any]: ...
def write_plans(options: dict[str, Any]) -> list[tuple[str, int, int, bool]]: ...
def verify(
    path: str | PathLike[str], decode: bool, progress: bool, truncated: str, sources: list[str]
) -> dict[str, Any]: ...
def run(arguments: list[str]) -> int: ...
