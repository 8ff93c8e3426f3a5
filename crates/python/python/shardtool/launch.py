"""Finds rank and world size of this process: as given, from torch.distributed, or from the environment."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import NamedTuple

from . import _shardtool
from .errors import ShardtoolWarning, UsageError

__all__ = ["Launch", "log", "resolve", "warn"]

#: Applications configure it as any other logger; without a configuration it prints nothing.
log = logging.getLogger("shardtool")
log.addHandler(logging.NullHandler())


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
    environment (torchrun, Open MPI, SLURM)."""
    if rank is None:
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            found = Launch(*_shardtool.launch(distributed.get_rank(), distributed.get_world_size()))
            return found._replace(source="from torch.distributed")
    return Launch(*_shardtool.launch(rank, world_size))


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
