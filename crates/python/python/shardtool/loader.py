"""The loader: batches of numpy arrays, in order, in bounded memory, resumable anywhere."""

from __future__ import annotations

import atexit
import json
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _shardtool
from .errors import OptionError
from .orders import Balanced, Interleaved, Mixture, Sequential, Shuffled, Subset, Weighted
from .transforms import Step, split_function

__all__ = ["Loader", "Ragged", "Stats"]


#: Loaders that may have threads. They end before the interpreter does: one of them might wait for it.
_open: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_open):
        loader.close()


class Ragged(NamedTuple):
    """A column with any number of values a row: row i is `values[offsets[i]:offsets[i + 1]]`."""

    #: `[N + 1]`, from 0.
    offsets: np.ndarray
    #: Of all rows, one after the other.
    values: np.ndarray

    def row(self, i: int) -> np.ndarray:
        """The values of row i."""
        return self.values[self.offsets[i] : self.offsets[i + 1]]


class Stats(dict[str, Any]):
    """Where the time goes: a dict, and as text with a verdict. Times of workers are summed over them."""

    #: The same in the text format of Prometheus.
    prometheus: str

    def __init__(self, values: dict[str, Any], prometheus: str):
        super().__init__(values)
        self.prometheus = prometheus

    @property
    def verdict(self) -> str:
        """What bounds the rate, in a sentence."""
        return self["verdict"]

    def __str__(self) -> str:
        lines = [f"{self['samples']} {self['unit']} in {self['elapsed_s']:.1f} s: {self['verdict']}"]
        for stage in self["stages"]:
            lines.append(f"  {stage['stage']:<16} {stage['seconds']:>9.2f} s  {stage['count']:>9} times")
        memory = self["memory"]
        lines.append(f"  memory budget {memory['budget'] / 2**20:.1f} MiB; {self['bad_samples']} bad samples")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{s['stage']}</td><td>{s['seconds']:.2f} s</td><td>{s['count']}</td></tr>" for s in self["stages"]
        )
        return f"<p>{self['verdict']}</p><table><tr><th>stage</th><th>time</th><th>times</th></tr>{rows}</table>"


class Loader:
    """Delivers a dataset's samples in batches, while threads build the next ones.

    Iterating it is one epoch; iterating again is the next one, also after a `break`. A batch is a dict:

    - `"image"`: `[N, H, W, 3]` u8 RGB, the loader's own memory, no copy; without `transform` a list of N byte strings.
      The memory goes back to the loader when the array and all views of it are gone.
    - `"label"`: `[N]` int64, where the dataset has labels; `"id"`: `[N]` int64, which sample each row shows, −1 for none;
      `"valid"`: `[N]` bool, whether it shows one.
    - each of `columns` by its feature's name: an array `[N]`, a list of N byte strings, or a `Ragged`.

    Rows without a sample (see `remainder` and `on_bad`) are zero, their label is −100.

    With `device` the images become `(x / 255 - mean) / std` there, uploaded ahead and without the host's waiting. They and
    all numbers are then `DeviceArray`s, which frameworks take through DLPack or the CUDA array interface; byte strings and
    ragged columns stay on the host, and `"host"` is a dict of the numbers as numpy arrays.

    With `local_replicas` above 1, or several devices, a list of one such batch for each replica.

    Args:
        data: a split, or several, whose ids then count through them.
        batch_size: rows of a batch on each replica.
        transform: steps that give every image the same size, and perhaps a function of your own as the last one; `None`
            delivers images as stored.
        columns: features to deliver beside image and label.
        order: `Shuffled()`, `Sequential()` or `Interleaved(run, window)`.
        source: which samples an epoch shows: `Subset`, `Balanced`, `Weighted` or `Mixture`; each once by default.
        seed: of order and augmentation.
        remainder: what happens to the last step of an epoch, if samples do not fill it: `"drop"` it, `"pad"` it with the
            first samples, or `"mask"` its last rows. Default: `"mask"` in sequential order, else `"drop"`.
        on_bad: what happens to a sample that cannot be read or decoded: `"error"`, `"mask"` its row, or `"substitute"`
            another one. Default: `"mask"` where the remainder is masked, else `"substitute"`.
        max_bad: bad samples, each counted once, beyond which the run ends. Default: one in a hundred, at least 16.
        memory_budget: bytes, or text such as `"4GiB"`, for batches (also those that the caller holds) and decoding.
            Default: what two batches ahead need, at most half of what the container leaves this process.
        workers: threads. Default: the processors this process may use, shared with the other local ranks.
        prefetch: batches built ahead. Default: 2, more when that helps.
        rank, world: this process's replica. Default: from the launcher's environment (torchrun, SLURM, Open MPI).
        local_replicas: replicas that this process serves, all from one set of workers and one budget; of `world` processes
            with as many each, process `rank` then is replicas `rank * local_replicas` and following.
        device: `"cuda:0"`, or several, each a replica of its own.
        dtype: type of the images there, default `"float32"`.
        layout: order of their dimensions there, default `"NCHW"`.
        mean, std: of each channel (red, green, blue), for pixels from 0 to 1. Default: 0 and 1.
        device_memory_limit: bytes, or text, that batches may take on each device. Default: what it has.
        slots: batches that each device has room for: those that the caller holds, one being uploaded, the rest ready.
            Default: 4.
        policy: how replicas share an epoch: by `"sample"`, by `"shard"`, or `"off"`, when each sees everything.
        apply_orientation: whether images are turned as their EXIF data say.
        starve_after: seconds to wait when the caller holds every batch, before `StarvedError`.

    Raises `OptionError`, `BudgetError`, `DeviceError` without a device, and what opening the data raises.
    """

    def __init__(
        self,
        data: _shardtool.Split | Sequence[_shardtool.Split],
        batch_size: int,
        transform: Sequence[Step] | None = None,
        *,
        columns: Sequence[str] | None = None,
        order: Shuffled | Sequential | Interleaved = Shuffled(),
        source: Subset | Balanced | Weighted | Mixture | None = None,
        seed: int = 0,
        remainder: Literal["drop", "pad", "mask"] | None = None,
        on_bad: Literal["error", "mask", "substitute"] | None = None,
        max_bad: int | None = None,
        memory_budget: int | str | None = None,
        workers: int | None = None,
        prefetch: int | None = None,
        rank: int | None = None,
        world: int | None = None,
        local_replicas: int | None = None,
        device: str | Sequence[str] | None = None,
        dtype: Literal["float32", "float16", "bfloat16"] | None = None,
        layout: Literal["NCHW", "NHWC"] | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        device_memory_limit: int | str | None = None,
        slots: int | None = None,
        policy: Literal["sample", "shard", "off"] = "sample",
        apply_orientation: bool = False,
        starve_after: float = 10.0,
    ):
        arguments = locals()
        self._arguments = {name: value for name, value in arguments.items() if name not in ("self", "__class__")}
        self._splits = [data] if isinstance(data, _shardtool.Split) else list(data)
        options = dict(self._arguments)
        del options["data"]
        options["transform"], options["function"] = (None, None) if transform is None else split_function(transform)
        options["columns"] = None if columns is None else list(columns)
        options["order"] = order._native()
        options["source"] = None if source is None else source._native(self._splits)
        names = ("dtype", "layout", "mean", "std", "device_memory_limit", "slots")
        on_device = {name: value for name in names if (value := options.pop(name)) is not None}
        if device is not None and transform is None:
            raise OptionError("`device`: images as stored stay on the host; give the steps of a `transform` as well")
        options["device"], options["local_replicas"] = _device(device, local_replicas, on_device)
        self._group = local_replicas is not None or not (device is None or isinstance(device, str))
        self._native = _shardtool.Loader(self._splits, options)
        _open.add(self)

    def __iter__(self) -> Iterator[Any]:
        iteration = self._native.begin()
        while batches := self._native.next(iteration):
            converted = [self._convert(batch) for batch in batches]
            del batches
            yield self._gather(converted) if self._group else converted.pop()
            # Not held while the next one is waited for.
            del converted

    def _convert(self, batch: dict[str, Any]) -> Any:
        """What a framework makes of a batch."""
        return batch

    def _gather(self, batches: list[Any]) -> Any:
        """What a framework makes of the batches of several replicas."""
        return batches

    def __len__(self) -> int:
        """Batches of a whole epoch, the same on every replica."""
        return self._native.len()

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands, as a few numbers: counts the batches that were delivered. The same on every replica after
        the same number of batches."""
        return json.loads(self._native.state())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a state: the next iteration delivers the rest of its epoch. Batch size, number of replicas and
        threads may differ from those of the run that saved it. Raises `StateError`."""
        self._native.load_state(json.dumps(state))

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch, whatever was iterated before; from its beginning, unless a state inside it was
        just loaded."""
        self._native.set_epoch(epoch)

    def stats(self) -> Stats:
        """Where the time went so far."""
        values, prometheus = self._native.stats()
        return Stats(json.loads(values), prometheus)

    def bad_samples(self) -> list[dict[str, Any]]:
        """The samples of this run that could not be read or decoded, each once: `id`, `shard`, `record`, `key`,
        `message` ..."""
        return self._native.bad_samples()

    def close(self) -> None:
        """Ends the threads. Batches that were delivered stay valid."""
        self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"arguments": self._arguments, "state": self.state_dict()}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        arguments = dict(pickled["arguments"])
        self.__init__(arguments.pop("data"), arguments.pop("batch_size"), **arguments)  # type: ignore[misc]
        self.load_state_dict(pickled["state"])

    def __repr__(self) -> str:
        names = ", ".join(f"{split.name} of {split.path}" for split in self._splits)
        shown = {n: v for n, v in self._arguments.items() if n not in ("data", "source") and v is not None}
        options = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"<{type(self).__module__}.{type(self).__name__} {names}: {options}>"


def _device(
    device: str | Sequence[str] | None, local_replicas: int | None, options: dict[str, Any]
) -> tuple[dict[str, Any] | None, int]:
    """Options of devices with their defaults, and the number of replicas."""
    if device is None:
        if options:
            raise OptionError(f"`{next(iter(options))}` says what batches are on a device: give `device` as well")
        return None, 1 if local_replicas is None else local_replicas
    devices = [device] if isinstance(device, str) else list(device)
    if local_replicas not in (None, len(devices)):
        raise OptionError(f"`local_replicas` is {local_replicas} for {len(devices)} devices: each is one replica")
    defaults = {"dtype": "float32", "layout": "NCHW", "mean": (0.0,) * 3, "std": (1.0,) * 3, "slots": 4}
    settled = {**defaults, "device_memory_limit": None, **options, "devices": devices}
    for name in ("mean", "std"):
        settled[name] = [float(value) for value in settled[name]]
        if len(settled[name]) != 3:
            raise OptionError(f"`{name}` has {len(settled[name])} numbers: expected one for each of red, green, blue")
    return settled, len(devices)
