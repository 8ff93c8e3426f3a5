"""For JAX: the loader with arrays on a device.

    from shardtool.jax import Loader

    for batch in Loader(split, 256, [...]):
        x = batch["image"]                     # jax.Array [N, H, W, 3] u8
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from . import launch
from . import loader as _loader
from ._shardtool import DeviceArray
from .batches import Ragged
from .errors import OptionError

__all__ = ["Batch", "Loader"]

if TYPE_CHECKING:
    from typing import overload

    from typing_extensions import TypeVar

    class Batch(dict[str, Any]):
        """A batch as JAX arrays. At run time it is a plain `dict`, so that `jax.jit` takes it as an argument."""

        @overload
        def __getitem__(self, key: Literal["image", "label", "id", "valid", "mask", "pixel_mask"], /) -> jax.Array: ...
        @overload
        def __getitem__(self, key: Literal["host"], /) -> dict[str, jax.Array]: ...
        @overload
        def __getitem__(self, key: str, /) -> Any: ...
        def __getitem__(self, key: str, /) -> Any: ...

    T = TypeVar("T", default=Batch)
else:
    from typing import TypeVar

    #: A batch as JAX arrays, by name.
    Batch = dict
    T = TypeVar("T")


class Loader(_loader.Loader[T, Batch], Generic[T]):
    """`shardtool.Loader` whose batches hold JAX arrays.

    Rank and world size of `replica` are by default JAX's process index and count if there are several processes. 64-bit
    integers become 32-bit ones, unless `jax_enable_x64` is set.

    JAX releases memory of the host during its own calls, not when Python drops an array. With the default memory budget the
    loader allocates other batches in the meantime, and only logs it; with a given `memory` it copies arrays for CPU
    devices, so that the budget holds.

    Parameters
    ----------
    device
        Where arrays are: a JAX device, by default JAX's own default; on the CPU they share the loader's memory. Or
        `"cuda:0"`, as in `shardtool.Loader`: uploaded and normalised by the loader. Or several local JAX devices, each
        of which is a replica with `batch_size` rows, all fed by one set of workers: a batch then holds arrays of
        `batch_size` times all devices of all processes, sharded over them in the order of processes and devices, as a
        `jax.jit` of the whole step needs them; columns that are not numbers are lists with one entry for each local
        device.

    Everything else is as in `shardtool.Loader`.
    """

    # Batches that JAX has not released yet count as held, even if the loop holds none.
    _warns_of_growth = False

    def _place(self, devices: Any, local_replicas: int | None) -> tuple[Any, int | None]:
        self._device: jax.Device | None = None
        self._devices: list[jax.Device] | None = None
        if isinstance(devices, jax.Device):
            self._device = devices
            return None, local_replicas
        if isinstance(devices, Sequence) and devices and all(isinstance(one, jax.Device) for one in devices):
            self._devices = list(devices)
            self._sharding = _sharding(self._devices)
            return None, len(self._devices)
        return devices, local_replicas

    def _resolve(self) -> launch.Launch:
        if self._replica.rank is None and jax.process_count() > 1:
            found = launch.resolve(jax.process_index(), jax.process_count())
            return found._replace(source="from jax.distributed")
        return super()._resolve()

    def _convert(self, batch: dict[str, Any]) -> Any:
        # With several devices, `_gather` puts batches on them.
        # numpy has no bfloat16: the array holds its bits.
        for name in self._pictures(batch, "bfloat16"):
            if isinstance(batch[name], np.ndarray):
                batch[name] = batch[name].view(jax.numpy.bfloat16)
        return batch if self._devices is not None else _each(batch, self._array)

    def _array(self, value: Any) -> Any:
        match value:
            case np.ndarray():
                return self._put(value, self._device)
            case DeviceArray():
                return jax.dlpack.from_dlpack(value)
            case _:
                return value

    def _put(self, value: np.ndarray, device: Any) -> jax.Array:
        """Puts an array on a device. On a CPU device it would share the loader's memory until JAX releases it, so it is
        copied there if a memory budget was given."""
        _check_exact(value)
        array: jax.Array = jax.device_put(value, device)
        if self._arguments["memory"] is not None and next(iter(array.devices())).platform == "cpu":
            array = jax.device_put(value.copy(), device)
        return array

    def _gather(self, batches: list[Any]) -> Any:
        if self._devices is None:
            return batches
        whole: dict[str, Any] = {}
        for name in batches[0]:
            parts = [batch[name] for batch in batches]
            if isinstance(parts[0], np.ndarray):
                placed = [self._put(part, device) for part, device in zip(parts, self._devices, strict=True)]
                shape = (len(parts[0]) * self._sharding.num_devices, *parts[0].shape[1:])
                whole[name] = jax.make_array_from_single_device_arrays(shape, self._sharding, placed)
            else:
                whole[name] = parts
        return whole


def _check_exact(value: np.ndarray) -> None:
    """Refuses numbers of 64 bits that JAX would change: unless `jax_enable_x64` is set, it converts them to 32 bits without a word."""
    narrow = jax.dtypes.canonicalize_dtype(value.dtype)
    if narrow == value.dtype:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        kept = value.astype(narrow)
    if not np.array_equal(kept, value, equal_nan=value.dtype.kind == "f"):
        raise OptionError(
            f"a column of {value.dtype} has values that {kept.dtype} does not hold, and JAX would convert them: call "
            'jax.config.update("jax_enable_x64", True), or leave the column out of `fields`'
        )


def _sharding(devices: Sequence[jax.Device]) -> NamedSharding:
    """Returns the sharding of rows over these devices, and over those of the other processes, if there are any."""
    every = list(devices)
    if jax.process_count() > 1:
        if every != jax.local_devices():
            raise OptionError("`device`: with several processes, each has to use all of its `jax.local_devices()`")
        every = sorted(jax.devices(), key=lambda device: device.process_index)
    # JAX's constructor has no type annotations.
    spec: Any = PartitionSpec
    return NamedSharding(Mesh(np.array(every), ("data",)), spec("data"))


def _each(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Converts all arrays of a batch."""
    match value:
        case dict():
            return {name: _each(part, convert) for name, part in value.items()}
        case Ragged():
            return Ragged(*map(convert, value))
        case _:
            return convert(value)
