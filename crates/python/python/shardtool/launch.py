"""Finds rank and world size of this process: as given, from torch.distributed, or from the environment."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _shardtool
from .errors import ShardtoolWarning, UsageError

__all__ = ["Launch", "log", "resolve", "warn"]

#: Applications configure it as any other logger; without a configuration it prints nothing.
log = logging.getLogger("shardtool")
log.addHandler(logging.NullHandler())


#: The source of a rank in a process group of torch.
GROUP = "from torch.distributed"


class Launch(NamedTuple):
    """Rank and world size of this process in a distributed run."""

    rank: int
    world_size: int
    #: Processes on this machine; `None` if unknown.
    local_world_size: int | None
    #: Text that says where rank and world size came from.
    source: str
    #: Messages about environment variables of launchers that were ignored.
    ignored: list[str]

    @property
    def place(self) -> tuple[int, int, int | None]:
        """Rank, world size and local world size."""
        return self.rank, self.world_size, self.local_world_size


def resolve(rank: int | None, world_size: int | None) -> Launch:
    """Returns the given rank and world size, else those of torch.distributed if it is initialised, else those of the
    environment (torchrun, Open MPI, MPICH, SLURM)."""
    if rank is None:
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            found = Launch(*_shardtool.launch(distributed.get_rank(), distributed.get_world_size()))
            return found._replace(source=GROUP)
    return Launch(*_shardtool.launch(rank, world_size))


#: How many loaders of this process have begun, by the names of their splits.
_begun: dict[str, int] = {}


def agree(found: Launch, splits: Sequence[_shardtool.Split]) -> None:
    """Compares the versions that the ranks of a process group read, without waiting for one of them: the first rank to begin a loader
    leaves its versions in the group's store, the others compare theirs. Raises `UsageError` if they differ."""
    if found.source != GROUP or found.world_size == 1:
        return
    names = ", ".join(split.name for split in splits)
    number = _begun.get(names, 0)
    _begun[names] = number + 1
    mine = "; ".join(f"{split.name} of version {split.version}, fingerprint {split.fingerprint}" for split in splits)
    store = _group_store()
    if store is None:
        return
    first = store.compare_set(f"shardtool/{names}/{number}", "", mine).decode()
    if first != mine:
        raise UsageError(
            f"rank {found.rank} reads {mine}, and another rank {first}: all ranks of a run must read one version of "
            f"{splits[0].path}; open it with `version=` on each of them"
        )


def _group_store() -> Any:
    """Returns the key-value store of torch's process group; `None` if this version of torch has none of this name."""
    c10d = getattr(sys.modules["torch"].distributed, "distributed_c10d", None)
    find = getattr(c10d, "_get_default_store", None)
    store = None if find is None else find()
    return store if hasattr(store, "compare_set") else None


def refuse_worker() -> None:
    """Raises `UsageError` in a worker process of a `DataLoader`: each of them would deliver every sample."""
    data = getattr(getattr(sys.modules.get("torch"), "utils", None), "data", None)
    worker = None if data is None else data.get_worker_info()
    if worker is not None:
        raise UsageError(
            f"a loader was used in worker {worker.id} of the {worker.num_workers} of a `DataLoader`, each of which would deliver "
            "every sample: use the loader in place of the `DataLoader` (it starts threads itself), or with `num_workers=0`; "
            "`shardtool.torch.Records` has single records for a `DataLoader`"
        )


def warn(message: str) -> None:
    """Warns the user, and logs the same."""
    log.warning(message)
    warnings.warn(message, ShardtoolWarning, stacklevel=3)
