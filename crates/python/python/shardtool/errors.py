"""Exceptions. Every one is a `ShardtoolError`, and also the built-in exception that says the same where there is one."""

from __future__ import annotations

__all__ = [
    "BadSampleError",
    "BudgetError",
    "DamageError",
    "DatasetError",
    "DeviceError",
    "FileError",
    "OptionError",
    "PackError",
    "ShardtoolError",
    "SplitError",
    "StarvedError",
    "StateError",
]


class ShardtoolError(Exception):
    """Whatever shardtool raises."""


class OptionError(ShardtoolError, ValueError):
    """An argument, or a combination of them, that cannot be; the message says what is expected."""


class DatasetError(ShardtoolError):
    """Neither a dataset nor TFRecord files."""


class SplitError(ShardtoolError, LookupError):
    """The dataset has no such split."""


class DeviceError(ShardtoolError, RuntimeError):
    """No CUDA device can be used, or it failed; the message says why."""


class FileError(ShardtoolError, OSError):
    """The operating system refused."""

    def __init__(self, message: str, *, errno: int | None = None, filename: str | None = None):
        super().__init__(message)
        self.errno = errno
        self.filename = filename


class DamageError(ShardtoolError):
    """Data that is not as it was written."""

    #: The error's name in `format-spec.md`.
    name: str
    #: Path of the shard, where it is about one.
    shard: str | None
    #: The record, from 0 in its shard.
    record: int | None
    #: The record's key, where the index could tell.
    key: str | None
    #: Where in the file, in bytes.
    offset: int | None
    #: What should be there.
    expected: str | None
    #: What is there.
    found: str | None

    def __init__(
        self,
        message: str,
        *,
        name: str = "",
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
    """A sample that cannot be read or decoded, where that ends the run."""

    #: The sample's id in the loader's splits, counted through them.
    id: int

    def __init__(self, message: str, *, id: int = -1, **place):
        super().__init__(message, **place)
        self.id = id


class BudgetError(ShardtoolError, MemoryError):
    """The configuration does not fit into its memory; the message does the sum."""


class StarvedError(ShardtoolError):
    """The caller holds every batch that the memory budget allows: drop some, or raise the budget."""


class StateError(ShardtoolError, ValueError):
    """A resume state that is none, or belongs to another dataset, source, order or seed."""


class PackError(ShardtoolError):
    """What is wrong with a source, its images, or the destination."""
