"""Changes of a dataset: each makes a new version, and returns the dataset at that version."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _shardtool
from .errors import OptionError, OptionTypeError
from .launch import warn
from .packing import _prepare, _with_defaults

__all__: list[str] = []

#: The types of features that hold numbers.
_NUMBERS = {"int64": np.int64, "float": np.float32, "float64": np.float64, "uint64": np.uint64}
#: Types of Arrow's columns, and those of features. Other columns have the type that holds their values.
_ARROW = {
    **dict.fromkeys(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), "int64"),
    **dict.fromkeys(("string", "large_string", "binary", "large_binary"), "bytes"),
    **{"uint64": "uint64", "halffloat": "float", "float": "float", "double": "float64"},
}
_INTEGERS = (int, np.integer, np.bool_)


def _change(dataset: Any, message: str | None, author: str | None, dry_run: bool, single_writer: bool) -> dict[str, Any]:
    """Returns what all changes have; where the dataset's files may lie is as for reading it."""
    *_, sources = dataset.__reduce__()[1]
    return {
        "message": message,
        "author": author,
        "dry_run": dry_run,
        "single_writer": single_writer,
        "sources": sources,
    }


def _names(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _newest(dataset: Any, dry_run: bool) -> Any:
    return dataset if dry_run else at(dataset)


def at(dataset: Any, version: int | str | None = None) -> Any:
    """Returns the dataset at a version: its number, a tag or a checksum. Default: the newest one."""
    path, cache, cache_size, _, sources = dataset.__reduce__()[1]
    return _shardtool.Dataset(path, cache, cache_size, None if version is None else str(version), sources)


def delete(
    dataset: Any,
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
) -> Any:
    """Deletes the records that meet all conditions, or that have these keys, or these ids in a split."""
    _shardtool.delete(
        dataset.path,
        *_chosen("delete", where, keys, ids),
        _names(split),
        ignore_unknown,
        _change(dataset, message, author, dry_run, single_writer),
    )
    return _newest(dataset, dry_run)


def _chosen(
    change: str,
    where: str | Sequence[str] | None,
    keys: Iterable[str | bytes] | None,
    ids: Iterable[int] | None,
) -> tuple[str, list[str], list[bytes], list[int]]:
    """Returns which of the three is given, and all of them."""
    given = [name for name, value in (("where", where), ("keys", keys), ("ids", ids)) if value is not None]
    if len(given) != 1:
        raise OptionError(f"{change}: expected one of `where`, `keys` and `ids`, found {' and '.join(given) or 'none'}")
    listed = [_key(key) for key in ([keys] if isinstance(keys, str | bytes) else keys or ())]
    return given[0], _names(where), listed, [_id(one) for one in (() if ids is None else ids)]


def select(
    dataset: Any,
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
) -> Any:
    """Makes a view of the records that meet all conditions, or that have these keys, or these ids in the split."""
    change = _change(dataset, message, author, dry_run, single_writer)
    _shardtool.select(dataset.path, name, *_chosen("select", where, keys, ids), split, ignore_unknown, replace, change)
    return _newest(dataset, dry_run)


def remove_view(
    dataset: Any,
    name: str,
    *,
    message: str | None = None,
    author: str | None = None,
    dry_run: bool = False,
    single_writer: bool = False,
) -> Any:
    """Removes a view."""
    _shardtool.remove_view(dataset.path, name, _change(dataset, message, author, dry_run, single_writer))
    return _newest(dataset, dry_run)


def _key(key: Any) -> bytes:
    if not isinstance(key, str | bytes):
        raise OptionTypeError(f"a key is {type(key).__name__}: {key!r}; expected a str or bytes")
    return key.encode() if isinstance(key, str) else bytes(key)


def _id(number: Any) -> int:
    if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 0:
        raise OptionTypeError(f"an id is {number!r}: expected the number of a record in the split, from 0")
    return operator.index(number)


def add_columns(dataset: Any, source: Any, **options: Any) -> Any:
    """Adds columns that the dataset does not have; see `_columns`."""
    return _columns(dataset, source, add=True, **options)


def replace_columns(dataset: Any, source: Any, **options: Any) -> Any:
    """Gives the records other values of features that they have; see `_columns`."""
    return _columns(dataset, source, add=False, **options)


def _columns(
    dataset: Any,
    source: Any,
    *,
    add: bool,
    split: str | Sequence[str] | None = None,
    names: str | Sequence[str] | None = None,
    key: str | None = None,
    columns: Mapping[str, str] | None = None,
    missing: str = "error",
    rows_of: int | str | None = None,
    message: str | None = None,
    author: str | None = None,
    dry_run: bool = False,
    single_writer: bool = False,
) -> Any:
    """Changes columns: from a file, from a mapping of columns with the keys in `key`, from an Arrow table, or from a function of a record."""
    if missing not in ("error", "null", "keep"):
        raise OptionError(f"`missing` is {missing!r}: expected 'error', 'null' or 'keep'")
    arguments = {
        "add": add,
        "splits": _names(split),
        "missing": missing,
        "rows_of": None if rows_of is None else str(rows_of),
        "names": _names(names),
        "key": key,
        "types": list((columns or {}).items()),
    }
    change = _change(dataset, message, author, dry_run, single_writer)
    if isinstance(source, str | os.PathLike):
        _shardtool.columns_of_file(dataset.path, source, arguments, change)
        return _newest(dataset, dry_run)
    if callable(source):
        source = _computed(at(dataset), source, _names(split))
    table = _table(source)
    keys = table.pop(key or "key", None)
    wanted = _names(names) or list(table)
    unknown = [name for name in wanted if name not in table]
    if unknown:
        raise OptionError(f"`names`: the source has no column {', '.join(map(repr, unknown))}")
    for name, dtype in (columns or {}).items():
        if name not in wanted:
            raise OptionError(f"`columns`: the source has no column {name!r}; it has {', '.join(map(repr, wanted))}")
        if dtype not in (*_NUMBERS, "bytes"):
            raise OptionError(f"`columns`: column {name!r} is {dtype!r}: expected 'int64', 'float', 'float64', 'uint64' or 'bytes'")
    flat = [_flat(name, table[name], (columns or {}).get(name)) for name in wanted]
    encoded = None if keys is None else [_key(key) for key in _listed(keys)]
    _shardtool.columns_of_values(dataset.path, encoded, flat, arguments, change)
    return _newest(dataset, dry_run)


def _computed(dataset: Any, function: Callable[[Any], Mapping[str, Any]], splits: list[str]) -> dict[str, Any]:
    """Calls a function with each record; its values become columns."""
    table: dict[str, list[Any]] = {"key": []}
    for name in splits or dataset.splits:
        split = dataset.split(name)
        for record in range(len(split)):
            sample = split[record]
            values = function(sample)
            if not isinstance(values, Mapping):
                raise OptionTypeError(f"the function returned {type(values).__name__} for {sample['key']!r}: expected a dict of values")
            if values.get("key", sample["key"]) != sample["key"]:
                raise OptionError(f"the function returned the key {values['key']!r} for {sample['key']!r}: leave it out")
            for column in values.keys() - table.keys():
                table[column] = [None] * len(table["key"])
            table["key"].append(sample["key"])
            for column in table.keys() - {"key"}:
                table[column].append(values.get(column))
    return table


def _table(source: Any) -> dict[str, Any]:
    if isinstance(source, Mapping):
        for name, column in source.items():
            if not isinstance(name, str):
                raise OptionTypeError(f"the name of a column is {type(name).__name__}: {name!r}; expected a str")
            if isinstance(column, str | bytes) or not (hasattr(column, "__len__") or hasattr(column, "to_pylist")):
                raise OptionTypeError(f"column {name!r} is {type(column).__name__}: expected a list, or an array, of a value for each row")
        return dict(source)
    if hasattr(source, "column_names") and hasattr(source, "column"):
        return {name: source.column(name) for name in source.column_names}
    raise OptionTypeError(
        f"`source` is {type(source).__name__}: expected a path, a dict of columns, an Arrow table, or a function of a record"
    )


def _listed(values: Any) -> list[Any]:
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def _flat(name: str, values: Any, declared: str | None) -> dict[str, Any]:
    """Returns a column as flat values and the number of values of each row, -1 for none."""
    if hasattr(values, "type") and hasattr(values, "to_pylist"):
        item = getattr(values.type, "value_type", values.type)
        declared = declared or _ARROW.get(str(item))
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        if values.ndim not in (1, 2):
            raise OptionError(f"column {name!r} has {values.ndim} dimensions: expected one or two")
        each = [1 if values.ndim == 1 else values.shape[1]] * len(values)
        flat = values.reshape(-1)
        if isinstance(values, np.ma.MaskedArray) and values.mask is not np.ma.nomask:
            if values.ndim != 1:
                raise OptionError(f"column {name!r} is masked: expected one dimension")
            each, flat = np.where(values.mask, -1, 1).tolist(), values.compressed()
        flat = np.asarray(flat)
        return _column(name, declared or _of_numpy(name, flat.dtype), flat, each)
    rows = [_row(name, row) for row in _listed(values)]
    counts = [-1 if row is None else len(row) for row in rows]
    return _column(name, declared, [value for row in rows if row is not None for value in row], counts)


def _row(name: str, row: Any) -> list[Any] | None:
    """Returns the values of a row; `None` if it has none."""
    if row is None:
        return None
    if isinstance(row, np.ndarray):
        if row.ndim > 1:
            raise OptionError(f"column {name!r}: a row has {row.ndim} dimensions; expected one value, or a list of values")
        return list(row.reshape(-1).tolist()) if row.dtype.itemsize <= 8 or row.dtype.kind not in "fc" else list(row)
    if not isinstance(row, list | tuple):
        return [row]
    for value in row:
        if value is None or isinstance(value, list | tuple | dict | np.ndarray):
            raise OptionError(f"column {name!r}: a row has {value!r} among its values; expected a list of numbers, texts or bytes")
    return list(row)


def _column(name: str, dtype: str | None, values: Any, counts: list[int]) -> dict[str, Any]:
    """Returns a column in the type given, or in the one that holds its values; a value that this does not hold exactly is refused."""
    dtype = dtype or _inferred(name, values)
    if dtype == "bytes":
        for value in values:
            if not isinstance(value, str | bytes | bytearray):
                raise OptionError(f"column {name!r}: {value!r} is {type(value).__name__}; expected str or bytes")
        strings = [value.encode() if isinstance(value, str) else bytes(value) for value in values]
        return {"name": name, "dtype": "bytes", "numbers": b"", "strings": strings, "counts": counts}
    kind = _NUMBERS[dtype]
    if isinstance(values, np.ndarray):
        lost = _lost_of_array(values, kind)
    else:
        lost = next((value for value in values if not _holds(kind, value)), None)
    if lost is not None:
        raise OptionError(f"column {name!r}: {dtype} does not hold {lost!r}; declare another type in `columns`, or convert the values")
    numbers = np.asarray(values, dtype=kind)
    return {"name": name, "dtype": dtype, "numbers": numbers.astype(numbers.dtype.newbyteorder("<")).tobytes(), "strings": [], "counts": counts}


def _holds(kind: Any, value: Any) -> bool:
    """Returns whether a type holds a number: an integer exactly, a float with its precision."""
    if isinstance(value, _INTEGERS):
        number = int(value)
        if np.issubdtype(kind, np.integer):
            return int(np.iinfo(kind).min) <= number <= int(np.iinfo(kind).max)
        try:
            converted = kind(number)
        except OverflowError:
            return False
        return bool(np.isfinite(converted)) and int(converted) == number
    if not isinstance(value, float | np.floating) or isinstance(value, np.longdouble) or np.issubdtype(kind, np.integer):
        return False
    with np.errstate(over="ignore"):
        return bool(np.isfinite(kind(value))) or not np.isfinite(value)


def _lost_of_array(values: Any, kind: Any) -> Any:
    """Returns the first number of an array that a type does not hold."""
    if values.dtype.kind in "iu" and np.issubdtype(kind, np.floating):
        exact = 2**24 if kind is np.float32 else 2**53
        suspects = values[(values > exact) | (values < -exact)] if values.dtype.kind == "i" else values[values > exact]
        return next((value for value in suspects.tolist() if not _holds(kind, value)), None)
    if values.dtype.kind == "f" and (np.issubdtype(kind, np.integer) or values.dtype.itemsize > 8):
        return next(iter(values), None)
    if values.dtype.kind == "f" and values.dtype.itemsize > np.dtype(kind).itemsize:
        with np.errstate(over="ignore"):
            lost = values[np.isfinite(values) & ~np.isfinite(values.astype(kind))]
        return next(iter(lost.tolist()), None)
    if values.dtype.kind in "iu":
        ends = np.iinfo(kind)
        return next((value for value in (values.min(initial=0), values.max(initial=0)) if not ends.min <= int(value) <= ends.max), None)
    return None


def _of_numpy(name: str, dtype: np.dtype[Any]) -> str:
    if dtype.kind == "f":
        if dtype.itemsize > 8:
            raise OptionError(f"column {name!r} is {dtype}, which no feature holds: convert it to float64")
        return "float64" if dtype.itemsize == 8 else "float"
    return "uint64" if dtype.kind == "u" and dtype.itemsize == 8 else "int64"


def _inferred(name: str, values: Any) -> str:
    """Returns the type that holds all values; Python's floats are float64, as for a `Writer`."""
    values = list(values)
    if values and all(isinstance(value, str | bytes) for value in values):
        return "bytes"
    if values and all(isinstance(value, _INTEGERS) for value in values):
        least, most = int(min(values)), int(max(values))
        if most > 2**63 - 1:
            if least < 0 or most > 2**64 - 1:
                raise OptionError(f"column {name!r} has {least} and {most}, which no type holds")
            return "uint64"
        if least < -(2**63):
            raise OptionError(f"column {name!r} has {least}, which no type holds")
        return "int64"
    if values and all(isinstance(value, (*_INTEGERS, float, np.floating)) for value in values):
        return "float64" if any(isinstance(value, float) for value in values) else "float"
    kinds = sorted({type(value).__name__ for value in values})
    raise OptionTypeError(f"column {name!r} has values of {', '.join(kinds) or 'no type'}: expected numbers, texts or bytes, or declare it in `columns`")


def drop_columns(
    dataset: Any,
    names: str | Sequence[str],
    *,
    message: str | None = None,
    author: str | None = None,
    dry_run: bool = False,
    single_writer: bool = False,
) -> Any:
    """Leaves features out of the new version."""
    _shardtool.drop_columns(dataset.path, _names(names), _change(dataset, message, author, dry_run, single_writer))
    return _newest(dataset, dry_run)


def tag(
    dataset: Any,
    name: str,
    version: int | str | None = None,
    *,
    remove: bool = False,
    message: str | None = None,
    author: str | None = None,
    single_writer: bool = False,
) -> Any:
    """Names a version, or removes the name."""
    number = None if version is None else str(version)
    _shardtool.tag(dataset.path, name, number, remove, _change(dataset, message, author, False, single_writer))
    return at(dataset)


def clone(dataset: Any, out: str | os.PathLike[str], *, single_writer: bool = False) -> Any:
    """Makes a dataset of the shards of this version, which stay where they are."""
    _, cache, cache_size, version, allowed = dataset.__reduce__()[1]
    sources = _shardtool.clone(dataset.path, version, out, single_writer)
    return _shardtool.Dataset(out, cache, cache_size, None, list(dict.fromkeys([*allowed, *sources])))


def rollback(
    dataset: Any,
    version: int | str,
    *,
    message: str | None = None,
    author: str | None = None,
    dry_run: bool = False,
    single_writer: bool = False,
) -> Any:
    """Makes a new version with the contents of an earlier one."""
    _shardtool.rollback(dataset.path, str(version), _change(dataset, message, author, dry_run, single_writer))
    return _newest(dataset, dry_run)


def compact(
    dataset: Any,
    *,
    split: str | Sequence[str] | None = None,
    shard_size: int | None = None,
    strip_metadata: bool = False,
    message: str | None = None,
    author: str | None = None,
    dry_run: bool = False,
    single_writer: bool = False,
) -> Any:
    """Writes new shards of the newest version."""
    change = _change(dataset, message, author, dry_run, single_writer)
    _shardtool.compact(dataset.path, _names(split), shard_size, strip_metadata, change)
    return _newest(dataset, dry_run)


def append(
    dataset: Any,
    source: str | os.PathLike[str],
    *,
    replace: bool = False,
    add_classes: bool = False,
    message: str | None = None,
    author: str | None = None,
    dry_run: bool = False,
    **pack: Any,
) -> Any:
    """Packs a source into further shards; `pack` has the options of `shardtool.pack`."""
    for name in ("force", "destination"):
        if name in pack:
            raise OptionError(f"`{name}` is for a split that is packed: `append` adds to one that is there")
    options = _with_defaults(source, dataset.path, pack)
    report = _prepare(options)
    try:
        change = _change(dataset, message, author, dry_run, options["single_writer"])
        appended = _shardtool.append(options, replace, add_classes, change)
    finally:
        if report is not None:
            report.close()
    if appended["rejected"]:
        warn(f"append rejected {appended['rejected']} inputs; rejected-*.jsonl in {dataset.path} lists them with the reasons")
    if appended["left_out"]:
        warn(f"append left out {'; '.join(appended['left_out'])}")
    return _newest(dataset, dry_run)


def gc(dataset: Any, *, keep: int | None = None, remove: bool = False) -> list[str]:
    """Lists or removes the files that no kept version names. In a store, files stay that were written less than 24 hours ago."""
    files, _ = _shardtool.gc(dataset.path, keep, remove)
    return [str(file) for file in files]


def purge(
    dataset: Any,
    *,
    forget_keys: bool = False,
    search: bool = False,
    message: str | None = None,
    author: str | None = None,
    dry_run: bool = False,
    single_writer: bool = False,
) -> dict[str, Any]:
    """Removes deleted records from all versions."""
    return _shardtool.purge(dataset.path, forget_keys, search, _change(dataset, message, author, dry_run, single_writer))
