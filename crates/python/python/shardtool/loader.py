"""The loader: batches of numpy arrays, in a reproducible order, in bounded memory, resumable at any step."""

from __future__ import annotations

import atexit
import inspect
import json
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn

from . import _shardtool, launch, unknown_words
from .arguments import Records, as_devices, as_replica, as_splits, native_options
from .batches import Batch
from .buckets import AspectRatioBuckets
from .checks import instance, whole
from .converted import BatchTransform, is_one_device
from .display import stats_html
from .errors import OptionTypeError, StateError
from .fields import Fields, as_fields, picture_names, pixels_of
from .options import BadSamples, Device, LengthBuckets, Prefetch, Replica
from .orders import Balanced, Interleaved, Mixture, Scheduled, Sequential, Shuffled, Subset, Weighted

if TYPE_CHECKING:
    from typing_extensions import Self, TypeVar

    #: What the loop receives, and the batch that `collate_fn` is called with.
    T = TypeVar("T", default=Batch)
    B = TypeVar("B", bound="dict[str, Any]", default=Batch)
else:
    from typing import TypeVar

    T, B = TypeVar("T"), TypeVar("B")

__all__ = ["Loader", "Stats"]


#: Loaders that may have threads. They are closed before the interpreter shuts down, since a thread might wait for the GIL.
_open: weakref.WeakSet[Loader[Any, Any]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for loader in list(_open):
        loader.close()


class Stats(dict[str, Any]):
    """Time spent in each stage, as a dict; `str()` adds what bounds the rate. Times of workers are summed."""

    #: The same values in the text format of Prometheus.
    prometheus: str

    def __init__(self, values: dict[str, Any], prometheus: str):
        super().__init__(values)
        self.prometheus = prometheus

    @property
    def verdict(self) -> str:
        """What bounds the rate, in a sentence."""
        return str(self["verdict"])

    def __str__(self) -> str:
        lines = [f"{self['samples']} {self['unit']} in {self['elapsed_s']:.1f} s: {self['verdict']}"]
        for stage in self["stages"]:
            lines.append(f"  {stage['stage']:<16} {stage['seconds']:>9.2f} s  {stage['count']:>9} times")
        memory = self["memory"]
        lines.append(f"  memory budget {memory['budget'] / 2**20:.1f} MiB; {self['bad_samples']} bad samples")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return stats_html(self)


class Loader(Generic[T, B]):
    """Delivers the samples of a dataset in batches, while threads build the next ones.

    Each iteration is one epoch; the next iteration is the next epoch, also after a `break`. Workers and memory are bound when
    the first iteration begins, rank and world size when each iteration begins, so a loader may be constructed, and even used,
    before the launcher sets them.

    Parameters
    ----------
    data
        A split, or a list of splits; ids then count through all of them.
    batch_size
        Rows of a batch on each replica, at least 1. With `buckets` that have a limit of pixels or tokens, at most; with
        `Tokens`, of several samples each.
    fields
        What a batch has of each record: a field such as `Image(...)`, a list of them (the name of a feature is a `Column`), or
        the steps of the image alone. `None` is the image as it is stored. The label is always there, if the dataset has one.
    batch_transform
        `MixUp(alpha)`, `CutMix(alpha)`, `Mosaic()`, `CopyPaste()`, or a list of these, one of which is drawn for each batch.
        `"label"` then is `[N, num_classes]` float32, except of images with objects.
    buckets
        `AspectRatioBuckets(...)` or `LengthBuckets(...)`: every batch has samples of one shape. The former has the steps of the
        image.
    classes
        What labels mean where splits meet. Default: all splits must name the same classes in the same order. A list of names
        maps the labels of each split by name, such as `classes=train.classes` for a validation set that was packed alone;
        `"union"` does so with the names of the first split and those that others add; `"ids"` takes equal numbers as equal
        classes. The labels of objects are mapped alike. `loader.classes` has the names.
    order
        `Shuffled(seed)`, `Sequential(seed)` or `Interleaved(run, window, seed)`. The seed is also that of random steps.
    source
        The samples of an epoch: `Subset`, `Balanced`, `Weighted`, `Mixture` or `Scheduled`. Default: each sample once.
    remainder
        What happens to the last step of an epoch if samples do not fill it: `"drop"` it, `"pad"` it with the
        first samples, or `"mask"` its last rows. Default: `"mask"` in sequential order, else `"drop"`.
    bad_samples
        What happens to a sample that cannot be read or decoded: `"error"`, `"mask"` its row, or `"substitute"` another one; or
        `BadSamples(on_bad, max_bad=...)`, which also says how many end the run.
    replica
        `Replica(rank, world_size)`: which part of an epoch this process takes, and how replicas share it. Default: from
        `torch.distributed` if it is initialised, else from the environment (torchrun, Open MPI, MPICH, SLURM steps).
    memory
        Bytes, or text such as `"4GiB"`, for batches (also those that the consumer holds) and decoding; kept
        exactly. Default: memory for two batches ahead, at most half of what the container leaves this process; if the
        consumer holds more batches than that, the loader warns once and allocates more, until 90 % of the container's
        memory limit is in use.
    workers
        Threads. Default: the CPUs that this process may use, divided by the ranks on this machine.
    prefetch
        Batches built ahead; or `Prefetch(...)`, which also has the bytes that are read ahead and requested from stores.
        Default: 2, more when that helps.
    device
        `"cuda:0"`, or several devices, each one replica; or `Device(...)`, which also limits their memory. `"cpu"` is the same
        as `None`.
    collate_fn
        Called with each batch; the loop receives what it returns. `image_label` returns the pair
        `(image, label)`.

    A batch is a dict:

    - what each field says: `"image"`, `"mask"`, columns by their feature's name, and so on;
    - `"label"`: `[N]` int64, if the dataset has labels; `"id"`: `[N]` int64, the id of each row's sample, −1 for none;
      `"valid"`: `[N]` bool, whether the row has a sample;
    - with `Tokens`: `"segment_ids"` `[N, capacity]` int32, the number of each token's sample in its row, from 1, and 0 after the
      last one; `"position_ids"` `[N, capacity]` int32, the position of each token in its sample, from 0; `"id"` and `"seq_lens"`:
      `Ragged`, id and number of tokens of each sample of each row; other columns of numbers: `Ragged`, with the values of each
      sample.

    Rows without a sample (see `remainder` and `bad_samples`) have pixels and arrays of 0 and label −100.

    With a CUDA `device` all arrays are `DeviceArray`s, also those of a `Ragged`, which frameworks take through DLPack or the CUDA
    array interface; byte strings stay on the host, and `"host"` is a dict of the numbers of each row as numpy arrays. With
    `Replica(local_replicas=...)` or several devices a batch is a list of such dicts, one for each replica.

    Raises
    ------
    OptionError
        An argument is not valid.
    BudgetError
        The configuration does not fit into memory. Raised by the constructor if a budget is given, else by the first
        iteration.
    DeviceError
        The device cannot be used.
    """

    def __init__(
        self,
        data: _shardtool.Split | Sequence[_shardtool.Split],
        batch_size: int,
        fields: Fields | None = None,
        *,
        batch_transform: Sequence[BatchTransform] | BatchTransform | None = None,
        buckets: AspectRatioBuckets | LengthBuckets | None = None,
        classes: Sequence[str] | Literal["union", "ids"] | None = None,
        order: Shuffled | Sequential | Interleaved = Shuffled(),
        source: Subset | Balanced | Weighted | Mixture | Scheduled | None = None,
        remainder: Literal["drop", "pad", "mask"] | None = None,
        bad_samples: Literal["error", "mask", "substitute"] | BadSamples | None = None,
        replica: Replica | None = None,
        memory: int | str | None = None,
        workers: int | None = None,
        prefetch: int | Prefetch | None = None,
        device: Any = None,
        collate_fn: Callable[[B], T] | None = None,
        **unknown: NoReturn,
    ):
        arguments = locals()
        self._arguments = {name: value for name, value in arguments.items() if name not in ("self", "__class__", "unknown")}
        unknown_words.refuse(unknown, self._arguments)
        self._splits = as_splits(data)
        self._fields = as_fields(fields)
        self._replica = as_replica(replica)
        self._collate = collate_fn
        self._reported: set[str] = set()
        #: The replica, once an iteration has begun.
        self._bound: launch.Launch | None = None
        if collate_fn is not None and not callable(collate_fn):
            raise OptionTypeError(f"`collate_fn` is {collate_fn!r}: expected a function of the batch")
        devices, local = self._place(device.devices if isinstance(device, Device) else device, self._replica.local_replicas)
        self._group = local is not None or (as_devices(devices) is not None and not is_one_device(devices))
        given = {**self._arguments, "fields": self._fields, "replica": self._replica}
        options = native_options(given, as_devices(devices), local, self._splits)
        self._native = _shardtool.Loader(self._splits, options)
        _open.add(self)

    def __iter__(self) -> Iterator[T]:
        launch.refuse_worker()
        found = self._resolve()
        iteration = self._native.begin(found.place)
        before, self._bound = self._bound, found
        if before is None:
            self._compare_classes()
            if self._replica.policy != "off":
                launch.agree(found, self._splits)
        if before is None or before.place != found.place:
            launch.log.info("rank %d of %d, %s", found.rank, found.world_size, found.source)
            for message in found.ignored:
                self._report(message)
        while batches := self._native.next(iteration):
            converted = [self._convert(batch) for batch in batches]
            del batches
            batch: Any = self._gather(converted) if self._group else converted.pop()
            del converted
            yield batch if self._collate is None else self._collate(batch)
            # Released before waiting for the next one.
            del batch
            # Between batches, so that none is lost if warnings are errors.
            self._report_notices()
        self._report_notices()

    def _compare_classes(self) -> None:
        """Warns of an open loader that gives the same classes other ids, such as that of the training set."""
        names = self.classes
        for other in list(_open):
            theirs = other.classes if other._bound is not None and other is not self else []
            moved = [name for name, their in zip(names, theirs) if name != their and name in theirs]
            if moved:
                self._report(
                    f"class {moved[0]!r} has the id {names.index(moved[0])} in {self._splits[0].name} of {self._splits[0].path}, "
                    f"but {theirs.index(moved[0])} in {other._splits[0].name} of {other._splits[0].path}, which another loader "
                    "reads: give both loaders the same names with `classes`"
                )
                return

    def _launch(self) -> launch.Launch:
        """Returns the replica of this process: as bound, else as found now."""
        return self._bound or self._resolve()

    def _resolve(self) -> launch.Launch:
        return launch.resolve(self._replica.rank, self._replica.world_size)

    def _place(self, devices: Any, local_replicas: int | None) -> tuple[Any, int | None]:
        """Takes a framework's devices out of `devices`; returns what is left, and the number of local replicas."""
        return devices, local_replicas

    #: Whether growth beyond the default memory budget is a warning; otherwise it is only logged.
    _warns_of_growth = True

    def _report_notices(self) -> None:
        """Reports what the native loader noticed."""
        for about_values, message in self._native.notices():
            if about_values or self._warns_of_growth:
                self._report(message)
            else:
                launch.log.info(message)

    def _report(self, message: str) -> None:
        if message not in self._reported:
            self._reported.add(message)
            launch.warn(message)

    def _convert(self, batch: dict[str, Any]) -> Any:
        """Converts a batch to a framework's arrays."""
        return batch

    def _pictures(self, batch: dict[str, Any], dtype: str) -> list[str]:
        """Returns the names of the arrays of images in a batch, without those of values, if they are of this type."""
        pixels = pixels_of(self._fields)
        names = picture_names(self._fields) if pixels is not None and pixels.dtype == dtype else []
        return [name for name in names if name in batch]

    def _gather(self, batches: list[Any]) -> Any:
        """Joins the batches of several replicas."""
        return batches

    @property
    def dataset(self) -> Any:
        """The split, or a sequence over all splits: `len(loader.dataset)` samples, each a record."""
        return self._splits[0] if len(self._splits) == 1 else Records(self._splits)

    @property
    def classes(self) -> list[str]:
        """Names of the classes that batches deliver, by class id; empty if they have numbers only, or if there are neither labels
        nor classes of objects."""
        return self._native.classes

    @property
    def batch_size(self) -> int:
        """Rows of a batch on each replica."""
        return int(self._arguments["batch_size"])

    def __len__(self) -> int:
        """Returns the number of batches of a whole epoch, the same on every replica."""
        return self._native.len(self._resolve().place)

    @property
    def steps_done(self) -> int:
        """Number of batches of the current epoch that were delivered. `tqdm(loader, initial=loader.steps_done,
        total=len(loader))` is correct in a resumed epoch as well."""
        return self._native.steps_done(self._launch().place)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the run as a few numbers: it counts batches delivered, and is the same on every replica
        after the same number of batches."""
        state: dict[str, Any] = json.loads(self._native.state(self._launch().place))
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from a state: the next iteration delivers the rest of its epoch. Batch size, number of replicas and
        workers may differ from those of the run that saved it.

        Raises
        ------
        StateError
            The state belongs to another dataset, source, order or seed, or is inside an epoch with another `batch_transform` or
            `flip_index`.
        """
        instance("state", state, (dict,), "what `state_dict()` returned")
        try:
            text = json.dumps(state)
        except (TypeError, ValueError) as error:
            raise StateError(f"the resume state is not what `state_dict()` returned: {error}") from error
        self._native.load_state(self._launch().place, text)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration this epoch, from its beginning, unless a state inside it was just loaded."""
        self._native.set_epoch(self._launch().place, whole("epoch", epoch))

    def stats(self) -> Stats:
        """Returns the time spent in each stage so far. Raises `UsageError` before the first iteration."""
        values, prometheus = self._native.stats()
        return Stats(json.loads(values), prometheus)

    def bad_samples(self) -> list[dict[str, Any]]:
        """Returns the samples of this run that could not be read or decoded, each once: `id`, `shard`, `record`, `key`,
        `message`, and `name`: the name of the damage in `format-spec.md`, or None if the stored bytes are not damaged, for
        instance if the record has no image."""
        return self._native.bad_samples()

    def close(self) -> None:
        """Ends the threads. Batches that were delivered stay valid."""
        self._native.close()
        _open.discard(self)

    def __enter__(self) -> Self:
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
        hidden = ("data", "source", "replica")
        shown = {n: v for n, v in self._arguments.items() if n not in hidden and not _is_default(n, v)}
        options = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        place = self._launch()
        where = f"rank {place.rank} of {place.world_size}, {place.source}"
        for message in place.ignored:
            where += f"; {message}"
        return f"<{type(self).__module__}.{type(self).__name__} {names}: {options}; {where}>"


#: Arguments of `Loader` with their defaults, which its representation leaves out.
_DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(Loader).parameters.items()}


def _is_default(name: str, value: Any) -> bool:
    """Returns whether an argument has its default. Arrays are compared with no default."""
    default = _DEFAULTS[name]
    return value is default or (type(value) is type(default) and bool(value == default))
