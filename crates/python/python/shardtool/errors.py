"""Exceptions and warnings. Every exception that the module raises derives from `ShardtoolError` and from the
corresponding built-in exception. An exception of your own function is raised unchanged, with a note that names the sample."""

from __future__ import annotations

import errno as _errno
from typing import Any

__all__ = [
    "BadSampleError",
    "BudgetError",
    "ColumnError",
    "DamageError",
    "DatasetError",
    "DeviceError",
    "FileError",
    "OptionError",
    "OptionTypeError",
    "OutOfRangeError",
    "PackError",
    "RecordKeyError",
    "ShardtoolError",
    "ShardtoolWarning",
    "SplitError",
    "StarvedError",
    "StateError",
    "UsageError",
    "WorkerError",
]


class ShardtoolWarning(UserWarning):
    """Something happened that does not end the run: a bad sample, a rejected input, memory beyond the plan, environment
    variables that were ignored."""


class ShardtoolError(Exception):
    """Base of all exceptions of this module."""


class OptionError(ShardtoolError, ValueError):
    """An argument, or a combination of arguments, that cannot be used; the message says what is expected."""


class OptionTypeError(OptionError, TypeError):
    """An argument of the wrong type."""


class UsageError(ShardtoolError, RuntimeError):
    """A call that the object's state does not allow: the loader is closed, belongs to another process, or its iteration was
    ended by a new one."""


class WorkerError(ShardtoolError, RuntimeError):
    """A thread of the loader failed, or could not be started."""


class SplitError(ShardtoolError, KeyError):
    """The dataset has no such split."""

    __str__ = Exception.__str__


class ColumnError(ShardtoolError, KeyError):
    """The index has no such column."""

    __str__ = Exception.__str__


class RecordKeyError(ShardtoolError, KeyError):
    """No record of the split has this key."""

    __str__ = Exception.__str__


class OutOfRangeError(ShardtoolError, IndexError):
    """A record number outside the split."""


class DeviceError(ShardtoolError, RuntimeError):
    """No CUDA device can be used, or it failed; the message says why."""


class FileError(ShardtoolError, OSError):
    """A file operation failed. Depending on the error number it is also a `FileNotFoundError`,
    `PermissionError`, `FileExistsError`, `IsADirectoryError` or `NotADirectoryError`."""

    def __new__(cls, message: str, *, errno: int | None = None, filename: str | None = None) -> FileError:
        kind = _FILE_ERRORS.get(errno, cls) if cls is FileError and errno is not None else cls
        return OSError.__new__(kind, message)

    def __init__(self, message: str, *, errno: int | None = None, filename: str | None = None):
        super().__init__(message)
        self.errno = errno
        self.strerror = message
        self.filename = filename

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _file_error, (self.args[0], self.errno, self.filename)


def _file_error(message: str, errno: int | None, filename: str | None) -> FileError:
    return FileError(message, errno=errno, filename=filename)


class _NotFound(FileError, FileNotFoundError):
    pass


class _Permission(FileError, PermissionError):
    pass


class _Exists(FileError, FileExistsError):
    pass


class _IsADirectory(FileError, IsADirectoryError):
    pass


class _NotADirectory(FileError, NotADirectoryError):
    pass


_FILE_ERRORS: dict[int, type[FileError]] = {
    _errno.ENOENT: _NotFound,
    _errno.EACCES: _Permission,
    _errno.EPERM: _Permission,
    _errno.EEXIST: _Exists,
    _errno.EISDIR: _IsADirectory,
    _errno.ENOTDIR: _NotADirectory,
}
for _kind in set(_FILE_ERRORS.values()):
    # Tracebacks show the documented name.
    _kind.__name__ = _kind.__qualname__ = "FileError"


class DatasetError(ShardtoolError, FileNotFoundError, ValueError):
    """The path is neither a dataset nor TFRecord files."""

    __str__ = Exception.__str__


class DamageError(ShardtoolError, ValueError):
    """Stored bytes that fail a check.

    Attributes
    ----------
    name
        The name of the damage in `format-spec.md`; `None` for a bad sample whose bytes are not damaged.
    shard
        Path of the shard, or `None` if the damage is in another file.
    record
        Number of the record, from 0 in its shard, or `None`.
    key
        The record's key, if the index has it.
    offset
        Position in the file, in bytes, or `None`.
    expected
        The expected value, as text, or `None`.
    found
        The value that was found, as text, or `None`.
    """

    name: str | None
    shard: str | None
    record: int | None
    key: str | None
    offset: int | None
    expected: str | None
    found: str | None

    def __init__(
        self,
        message: str,
        *,
        name: str | None = None,
        shard: str | None = None,
        record: int | None = None,
        key: str | None = None,
        offset: int | None = None,
        expected: str | None = None,
        found: str | None = None,
    ):
        super().__init__(message)
        self.name = name
        self.shard = shard
        self.record = record
        self.key = key
        self.offset = offset
        self.expected = expected
        self.found = found


class BadSampleError(DamageError):
    """A sample could not be read or decoded, and that ends the run.

    Attributes
    ----------
    id
        The sample's id; ids count through all splits of the loader.
    """

    id: int

    def __init__(self, message: str, *, id: int = -1, **place: Any):
        super().__init__(message, **place)
        self.id = id


class BudgetError(ShardtoolError, MemoryError):
    """The configuration does not fit into its memory; the message shows the sum."""


class StarvedError(ShardtoolError, RuntimeError):
    """The consumer holds every batch that a given memory budget, or the memory limit, allows."""


class StateError(ShardtoolError, ValueError):
    """A resume state that cannot be read, or belongs to another dataset, source, order or seed."""


class PackError(ShardtoolError, ValueError, RuntimeError):
    """A source or its images cannot be packed, or the destination cannot be used."""
