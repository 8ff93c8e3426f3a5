"""For JAX: the loader with arrays on a device.

    from shardtool.jax import Loader

    for batch in Loader(split, batch_size=256, transform=[...]):
        x = batch["image"]                     # jax.Array [N, H, W, 3] u8
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from . import loader as _loader

__all__ = ["Loader"]


class Loader(_loader.Loader):
    """`shardtool.Loader` whose batches hold JAX arrays on `device`, by default JAX's own default; on the CPU they share the
    loader's memory. 64-bit integers become 32-bit ones, unless `jax_enable_x64` is set. `rank` and `world` are JAX's
    process index and count, unless given."""

    def __init__(self, *args: Any, device: Any = None, **options: Any):
        if options.get("rank") is None and jax.process_count() > 1:
            options["rank"], options["world"] = jax.process_index(), jax.process_count()
        super().__init__(*args, **options)
        self._device = device

    def _convert(self, batch: dict[str, Any]) -> Any:
        return {name: self._array(value) for name, value in batch.items()}

    def _array(self, value: Any) -> Any:
        match value:
            case np.ndarray():
                return jax.device_put(value, self._device)
            case _loader.Ragged():
                return _loader.Ragged(*(jax.device_put(part, self._device) for part in value))
            case _:
                return value

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "device": self._device}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        super().__setstate__(pickled)
        self._device = pickled["device"]
