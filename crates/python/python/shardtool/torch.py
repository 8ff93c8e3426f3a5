"""For PyTorch: the loader with tensors, and records for a `torch.utils.data.DataLoader` of your own.

    from shardtool.torch import Loader

    for batch in Loader(split, batch_size=256, transform=[...]):
        x = batch["image"].to(device, non_blocking=True).permute(0, 3, 1, 2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.utils.data

from . import loader as _loader
from ._shardtool import DeviceArray, Split

__all__ = ["Loader", "Records"]


class Loader(_loader.Loader):
    """`shardtool.Loader` whose batches hold tensors that share its memory, on the host or, with `device`, there. Takes the place of a `DataLoader`: do not wrap
    it in one. Each process of a distributed run makes its own; `rank` and `world` are those of the process group, if there
    is one, else the launcher's."""

    def __init__(self, *args: Any, **options: Any):
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized() and options.get("rank") is None:
            options["rank"], options["world"] = distributed.get_rank(), distributed.get_world_size()
        super().__init__(*args, **options)

    def _convert(self, batch: dict[str, Any]) -> Any:
        return {name: _tensor(value) for name, value in batch.items()}


def _tensor(value: Any) -> Any:
    match value:
        case np.ndarray():
            return torch.from_numpy(value)
        case DeviceArray():
            return torch.from_dlpack(value)
        case dict():
            return {name: _tensor(part) for name, part in value.items()}
        case _loader.Ragged():
            return _loader.Ragged(*map(torch.from_numpy, value))
        case _:
            return value


class Records(torch.utils.data.Dataset):
    """A split's records for people who keep their own decoding and transforms: `records[i]` is `transform(split[i])`.
    Works in forked and spawned workers of a `DataLoader`."""

    def __init__(self, split: Split, transform: Callable[[dict[str, Any]], Any] | None = None):
        self.split = split
        self.transform = transform

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, index: int) -> Any:
        record = self.split[index]
        return record if self.transform is None else self.transform(record)
