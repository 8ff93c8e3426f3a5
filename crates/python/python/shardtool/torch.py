"""For PyTorch: the loader with tensors, and records for a `torch.utils.data.DataLoader` of your own.

    from shardtool import Image
    from shardtool.torch import Loader

    for batch in Loader(split, 256, Image([...], mean=mean, std=std)):
        loss = criterion(net(batch["image"]), batch["label"])       # [N, 3, H, W] float32
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal

import numpy as np
import torch
import torch.utils.data
import torch.utils.dlpack

from . import loader as _loader
from ._shardtool import DeviceArray, Split
from .batches import Ragged

__all__ = ["Batch", "Loader", "Records"]

if TYPE_CHECKING:
    from typing import overload

    from typing_extensions import TypeVar

    class Batch(dict[str, Any]):
        """A batch as tensors. At run time it is a plain `dict`."""

        @overload
        def __getitem__(self, key: Literal["image", "label", "id", "valid", "mask", "pixel_mask"], /) -> torch.Tensor: ...
        @overload
        def __getitem__(self, key: Literal["host"], /) -> dict[str, torch.Tensor]: ...
        @overload
        def __getitem__(self, key: str, /) -> Any: ...
        def __getitem__(self, key: str, /) -> Any: ...

    T = TypeVar("T", default=Batch)
else:
    from typing import TypeVar

    #: A batch as tensors, by name.
    Batch = dict
    T = TypeVar("T")


class Loader(_loader.Loader[T, Batch], Generic[T]):
    """`shardtool.Loader` whose batches hold tensors that share its memory, on the host or, if given, on `device`.

    It takes the place of a `DataLoader`: do not wrap it in one. Each process of a distributed run constructs its own. Arguments
    are those of `shardtool.Loader`; `device` and the `dtype` of images may also be a `torch.device` and a `torch.dtype`.
    """

    def _convert(self, batch: dict[str, Any]) -> Any:
        tensors = {name: _tensor(value) for name, value in batch.items()}
        # numpy has no bfloat16: the array holds its bits.
        for name in self._pictures(tensors, "bfloat16"):
            if tensors[name].dtype == torch.uint16:
                tensors[name] = tensors[name].view(torch.bfloat16)
        return tensors


def _tensor(value: Any) -> Any:
    match value:
        case np.ndarray():
            return torch.from_numpy(value)
        case DeviceArray():
            return torch.utils.dlpack.from_dlpack(value)
        case dict():
            return {name: _tensor(part) for name, part in value.items()}
        case Ragged():
            return Ragged(*(_tensor(part) for part in value))
        case _:
            return value


class Records(torch.utils.data.Dataset[Any]):
    """The records of a split for your own decoding and transforms: `records[i]` is `transform(split[i])`.

    Works in forked and spawned workers of a `DataLoader`.
    """

    def __init__(self, split: Split, transform: Callable[[dict[str, Any]], Any] | None = None):
        self.split = split
        self.transform = transform

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, index: int) -> Any:
        record = self.split[index]
        return record if self.transform is None else self.transform(record)
