"""Changes of a dataset: each makes a new version, and returns the dataset at that version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _shardtool
from .errors import OptionError, OptionTypeError
from .launch import warn
from .packing import _prepare, _with_defaults

__all__: list[str] = []

#: Types of numpy arrays, and the type of the feature that holds their values.
_NUMPY = {"b": "int64", "i": "int64", "u": "int64", "f": "float"}


def _change(message: str | None, author: str | None, dry_run: bool, single_writer: bool) -> dict[str, Any]:
    return {"message": message, "author": author, "dry_run": dry_run, "single_writer": single_writer}


def _names(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _newest(dataset: Any, dry_run: bool) -> Any:
    return dataset if dry_run else at(dataset)


def at(dataset: Any, version: int | str | None = None) -> Any:
    """Returns the dataset at a version: its number, a tag or a checksum. Default: the newest one."""
    path, cache, cache_size, _ = dataset.__reduce__()[1]
    return _shardtool.Dataset(path, cache, cache_size, None if version is None else str(version))


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
    given = [name for name, value in (("where", where), ("keys", keys), ("ids", ids)) if value is not None]
    if len(given) != 1:
        raise OptionError(f"delete: expected one of `where`, `keys` and `ids`, found {' and '.join(given) or 'none'}")
    _shardtool.delete(
        dataset.path,
        given[0],
        _names(where),
        [key.encode() if isinstance(key, str) else bytes(key) for key in keys or ()],
        [int(one) for one in ids or ()],
        _names(split),
        ignore_unknown,
        _change(message, author, dry_run, single_writer),
    )
    return _newest(dataset, dry_run)


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
    types: Mapping[str, str] | None = None,
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
        "types": list((types or {}).items()),
    }
    change = _change(message, author, dry_run, single_writer)
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
    columns = [_flat(name, table[name], (types or {}).get(name)) for name in wanted]
    encoded = None if keys is None else [one.encode() if isinstance(one, str) else bytes(one) for one in _listed(keys)]
    _shardtool.columns_of_values(dataset.path, encoded, columns, arguments, change)
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
            for column in values.keys() - table.keys():
                table[column] = [None] * len(table["key"])
            table["key"].append(sample["key"])
            for column in table.keys() - {"key"}:
                table[column].append(values.get(column))
    return table


def _table(source: Any) -> dict[str, Any]:
    if isinstance(source, Mapping):
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
        declared = declared or _of_arrow(str(values.type))
    if isinstance(values, np.ndarray) and values.dtype.kind in _NUMPY:
        if values.ndim not in (1, 2):
            raise OptionError(f"column {name!r} has {values.ndim} dimensions: expected one or two")
        dtype = declared or _of_numpy(values.dtype)
        counts = np.full(len(values), 1 if values.ndim == 1 else values.shape[1], np.int64)
        flat = values.reshape(-1)
        if isinstance(values, np.ma.MaskedArray) and values.mask is not np.ma.nomask:
            if values.ndim != 1:
                raise OptionError(f"column {name!r} is masked: expected one dimension")
            counts[values.mask], flat = -1, values.compressed()
        return _column(name, dtype, flat, counts.tolist())
    rows = [_row(row) for row in _listed(values)]
    counts = [-1 if row is None else len(row) for row in rows]
    all_values = [value for row in rows if row is not None for value in row]
    dtype = declared or _inferred(name, all_values)
    if dtype == "bytes":
        strings = [value.encode() if isinstance(value, str) else bytes(value) for value in all_values]
        return {"name": name, "dtype": "bytes", "numbers": b"", "strings": strings, "counts": counts}
    return _column(name, dtype, all_values, counts)


def _row(row: Any) -> list[Any] | None:
    if row is None:
        return None
    if isinstance(row, np.ndarray):
        return list(row.reshape(-1).tolist())
    return list(row) if isinstance(row, list | tuple) else [row]


def _column(name: str, dtype: str, flat: Any, counts: list[int]) -> dict[str, Any]:
    kind = {"int64": np.int64, "float": np.float32, "float64": np.float64, "uint64": np.uint64}[dtype]
    exact = np.asarray(flat)
    numbers = exact.astype(kind)
    if dtype in ("int64", "uint64") and exact.size and (exact.dtype.kind == "f" or (numbers.astype(object) != exact.astype(object)).any()):
        raise OptionError(f"column {name!r}: a value that {dtype} does not hold")
    little = numbers.astype(numbers.dtype.newbyteorder("<"))
    return {"name": name, "dtype": dtype, "numbers": little.tobytes(), "strings": [], "counts": counts}


def _of_numpy(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "f" and dtype.itemsize > 4:
        return "float64"
    return "uint64" if dtype.kind == "u" and dtype.itemsize == 8 else _NUMPY[dtype.kind]


def _of_arrow(kind: str) -> str | None:
    kind = kind.removeprefix("list<item: ").removeprefix("list<element: ").removesuffix(">")
    known = {"float": "float", "halffloat": "float", "double": "float64", "uint64": "uint64", "string": "bytes", "binary": "bytes"}
    return known.get(kind, "int64" if "int" in kind or kind == "bool" else None)


def _inferred(name: str, values: list[Any]) -> str:
    """Returns the type that holds all values; Python's floats are float64, as for a `Writer`."""
    if all(isinstance(value, str | bytes) for value in values) and values:
        return "bytes"
    if all(isinstance(value, bool | int | np.integer) for value in values) and values:
        large = max(values) > 2**63 - 1
        if large and min(values) < 0:
            raise OptionError(f"column {name!r} has {min(values)} and {max(values)}, which no type holds")
        return "uint64" if large else "int64"
    if all(isinstance(value, bool | int | float | np.number) for value in values) and values:
        return "float64" if any(isinstance(value, float) for value in values) else "float"
    kinds = sorted({type(value).__name__ for value in values})
    raise OptionTypeError(f"column {name!r} has values of {', '.join(kinds) or 'no type'}: expected numbers, texts or bytes, or declare it in `types`")


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
    _shardtool.drop_columns(dataset.path, _names(names), _change(message, author, dry_run, single_writer))
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
    _shardtool.tag(dataset.path, name, number, remove, _change(message, author, False, single_writer))
    return at(dataset)


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
    _shardtool.rollback(dataset.path, str(version), _change(message, author, dry_run, single_writer))
    return _newest(dataset, dry_run)


def compact(
    dataset: Any,
    *,
    split: str | Sequence[str] | None = None,
    shard_size: int | None = None,
    message: str | None = None,
    author: str | None = None,
    dry_run: bool = False,
    single_writer: bool = False,
) -> Any:
    """Writes new shards of the newest version."""
    change = _change(message, author, dry_run, single_writer)
    _shardtool.compact(dataset.path, _names(split), shard_size, change)
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
        change = _change(message, author, dry_run, options["single_writer"])
        appended = _shardtool.append(options, replace, add_classes, change)
    finally:
        if report is not None:
            report.close()
    if appended["rejected"]:
        warn(f"append rejected {appended['rejected']} inputs; rejected-*.jsonl in {dataset.path} lists them with the reasons")
    return _newest(dataset, dry_run)


def gc(dataset: Any, *, keep: int | None = None, remove: bool = False) -> list[str]:
    """Lists or removes the files that no kept version names."""
    files, _ = _shardtool.gc(dataset.path, keep, remove)
    return [str(file) for file in files]
