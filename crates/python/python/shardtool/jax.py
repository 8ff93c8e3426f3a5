"""For JAX: the loader with arrays on a device.

    from shardtool.jax import Loader

    for batch in Loader(split, batch_size=256, transform=[...]):
        x = batch["image"]                     # jax.Array [N, H, W, 3] u8
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from . import loader as _loader
from ._shardtool import DeviceArray
from .errors import OptionError

__all__ = ["Loader"]


class Loader(_loader.Loader):
    """`shardtool.Loader` whose batches hold JAX arrays. `rank` and `world` are JAX's process index and count, unless given.
    64-bit integers become 32-bit ones, unless `jax_enable_x64` is set.

    Args:
        device: where arrays are: a JAX device, by default JAX's own default; on the CPU they share the loader's memory. Or
            `"cuda:0"`, as in `shardtool.Loader`: uploaded and normalised by the loader itself.
        devices: local devices, each of which is a replica with `batch_size` rows, all fed by one set of workers. A batch
            then holds arrays of `batch_size` times all devices of all processes, sharded over them in the order of
            processes and devices, as a `jax.jit` of the whole step wants them; columns that are no numbers are lists of
            one for each local device.

    Everything else is as in `shardtool.Loader`.
    """

    def __init__(self, *args: Any, device: Any = None, devices: Sequence[jax.Device] | None = None, **options: Any):
        if options.get("rank") is None and jax.process_count() > 1:
            options["rank"], options["world"] = jax.process_index(), jax.process_count()
        if devices is not None:
            if device is not None:
                raise OptionError("give `device` or `devices`, not both")
            options["local_replicas"] = len(devices)
        by_name = device is None or isinstance(device, (str, list, tuple))
        super().__init__(*args, device=device if by_name else None, **options)
        self._place(None if by_name else device, devices)

    def _place(self, device: Any, devices: Sequence[jax.Device] | None) -> None:
        self._device, self._devices = device, devices
        self._sharding = None if devices is None else _sharding(devices)

    def _convert(self, batch: dict[str, Any]) -> Any:
        # Batches of several devices are put where they belong in `_gather`.
        return batch if self._devices is not None else _each(batch, self._array)

    def _array(self, value: Any) -> Any:
        match value:
            case np.ndarray():
                return jax.device_put(value, self._device)
            case DeviceArray():
                return jax.dlpack.from_dlpack(value)
            case _:
                return value

    def _gather(self, batches: list[Any]) -> Any:
        if self._devices is None or self._sharding is None:
            return batches
        whole = {}
        for name in batches[0]:
            parts = [batch[name] for batch in batches]
            if isinstance(parts[0], np.ndarray):
                placed = [jax.device_put(part, device) for part, device in zip(parts, self._devices, strict=True)]
                shape = (len(parts[0]) * self._sharding.num_devices, *parts[0].shape[1:])
                whole[name] = jax.make_array_from_single_device_arrays(shape, self._sharding, placed)
            else:
                whole[name] = parts
        return whole

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "placed": (self._device, self._devices)}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        super().__setstate__(pickled)
        self._place(*pickled["placed"])


def _sharding(devices: Sequence[jax.Device]) -> NamedSharding:
    """Of rows over these devices, and over those of the other processes where there are any."""
    every = list(devices)
    if jax.process_count() > 1:
        if every != jax.local_devices():
            raise OptionError("`devices`: with several processes, each has to use all of its `jax.local_devices()`")
        every = sorted(jax.devices(), key=lambda device: device.process_index)
    return NamedSharding(Mesh(np.array(every), ("data",)), PartitionSpec("data"))


def _each(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A batch with all its arrays converted."""
    match value:
        case dict():
            return {name: _each(part, convert) for name, part in value.items()}
        case _loader.Ragged():
            return _loader.Ragged(*map(convert, value))
        case _:
            return convert(value)
