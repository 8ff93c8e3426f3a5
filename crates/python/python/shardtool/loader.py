"""The loader: batches of numpy arrays, in a reproducible order, in bounded memory, resumable at any step."""

from __future__ import annotations

import atexit
import inspect
import json
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn

from . import _shardtool, dataloader_words, launch
from .arguments import Records, as_devices, as_replica, as_splits, is_one_device
from .arrays import Arrays
from .batches import Batch
from .boxes import Objects
from .buckets import AspectRatioBuckets, LengthBuckets
from .checks import instance, whole
from .clips import Clip
from .decoded_cache import DecodedCache
from .display import stats_html
from .errors import OptionTypeError, StateError
from .loader_options import native_options
from .mixing import BatchTransform
from .orders import Balanced, Interleaved, Mixture, Sequential, Shuffled, Subset, Weighted
from .sequence_packing import SequencePacking
from .transforms import Step, Views

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
        `packing`, of several samples each.
    transform
        Steps that give every image the same size, optionally followed by a function of your own; or `Views`, several such
        lists. `None` delivers images as stored.
    columns
        Features to deliver in addition to image and label.
    classes
        What labels mean where splits meet. Default: all splits must name the same classes in the same order. A list of names
        maps the labels of each split by name, such as `classes=train.classes` for a validation set that was packed alone;
        `"union"` does so with the names of the first split and those that others add; `"ids"` takes equal numbers as equal
        classes. The labels of objects are mapped alike. `loader.classes` has the names.
    order
        `Shuffled()`, `Sequential()` or `Interleaved(run, window)`.
    source
        The samples of an epoch: `Subset`, `Balanced`, `Weighted` or `Mixture`. Default: each sample once.
    seed
        Seed of order and augmentation, 0 to 2⁶⁴ − 1.
    remainder
        What happens to the last step of an epoch if samples do not fill it: `"drop"` it, `"pad"` it with the
        first samples, or `"mask"` its last rows. Default: `"mask"` in sequential order, else `"drop"`.
    on_bad
        What happens to a sample that cannot be read or decoded: `"error"`, `"mask"` its row, or `"substitute"`
        another one. Default: `"mask"` if the remainder is masked, else `"substitute"`.
    max_bad
        The run ends if more samples than this are bad, each counted once. Default: 1 % of the samples, at least 16.
    memory_budget
        Bytes, or text such as `"4GiB"`, for batches (also those that the consumer holds) and decoding; kept
        exactly. Default: memory for two batches ahead, at most half of what the container leaves this process; if the
        consumer holds more batches than that, the loader warns once and allocates more, until 90 % of the container's
        memory limit is in use.
    workers
        Threads. Default: the CPUs that this process may use, divided by the ranks on this machine.
    prefetch
        Batches built ahead. Default: 2, more when that helps.
    rank, world_size
        This process's replica. Default: from `torch.distributed` if it is initialised, else from the
        environment (torchrun, Open MPI, SLURM steps).
    local_replicas
        Number of replicas that this process serves with one set of workers and one budget. If each of `world_size`
        processes serves that many, the replicas of process `rank` start at `rank * local_replicas`.
    device
        `"cuda:0"`, or several devices, each one replica. `"cpu"` is the same as `None`.
    mode
        `"RGB"`, or `"L"` for grey images of one channel (the names are Pillow's): the luma of a JPEG, without decoding its
        chroma, and of other images what Pillow's `convert("L")` returns. On the host only.
    bits
        Bits of a sample: 8, or 16, which keeps all bits of PNG and TIFF and multiplies 8-bit samples by 257. Steps must
        then be geometry or `RandomErasing`. On the host only.
    dtype
        Type of the images: `"float32"`, `"float16"` or `"bfloat16"`; or `"uint16"`, the samples of `bits=16`, NHWC.
    layout
        Order of their dimensions: `"NCHW"` or `"NHWC"`.
    mean, std
        Mean and standard deviation of each channel (red, green, blue; or one number for grey), for pixels from 0 to 1.
        Any of a floating-point `dtype`, `layout`, `mean` and `std` makes images `(x / 255 - mean) / std`, with 65535 in place
        of 255 for 16 bits, float32 NCHW with mean 0 and standard deviation 1 unless given; so does a CUDA `device`. Without
        them images are u8 NHWC, or u16 with `bits=16`.
    device_memory_limit
        Bytes, or text, that batches may use on each device. Default: all of its memory.
    slots
        Batches that each device has memory for: held by the consumer, being uploaded, or ready. Default: 4.
    policy
        How replicas share an epoch: by `"sample"`, by `"shard"`, or `"off"`: each replica gets every sample.
    apply_orientation
        Whether to apply the orientation in the images' EXIF data.
    scaled_decode
        Whether to decode a JPEG at 1/2, 1/4 or 1/8 where the crop is then still twice as large as the result in both directions,
        as Pillow's `reducing_gap=2.0`: much faster for large photographs. Pixels differ a little, always in the same way.
    mask
        Feature that holds a label map for each image (a segmentation mask: a grey or palette PNG or a grey TIFF of the
        image's size). It goes through the same geometry with nearest-neighbour sampling; batches have it as `"mask"`,
        `[N, H, W]` of type `mask_dtype`, filled with its largest value in rows without a sample. Of several features each
        has its own name in the batch. On the host only, and not with `Views`.
    mask_dtype
        Type of the labels: `"uint8"`, or `"uint16"`, such as for instances. A label that does not fit makes a bad sample.
    mask_fill
        The label outside the image, where it is padded or rotated. Default: the largest one, which losses ignore.
    more_images
        Features with further images of each record, of the size of its image. They go through the same steps with the same
        random numbers; batches have them by their feature's name. A dict gives the kind of each: `{"depth": "values"}`, which
        follow the geometry by nearest neighbour and stay as they are stored, `[N, H, W, C]` uint8 or uint16, or `"color"`.
        Without a kind, grey of 16 bits and palettes are refused where their values would change. On the host only.
    clip
        `Clip(...)`: frames of a video in place of the image; batches have them by their feature's name. On the host only, and
        not with masks, objects, further images or `batch_transform`.
    objects
        Boxes, other values and keypoints of objects, which go through the same geometry. On the host only; not with `Views`.
    batch_transform
        `MixUp(alpha)`, `CutMix(alpha)`, `Mosaic()`, or a list of these, one of which is drawn for each batch. `"label"` then is
        `[N, num_classes]` float32. Not with `Views` or masks; with objects `Mosaic` only. A `device` mixes images itself.
    buckets
        `AspectRatioBuckets(...)` or `LengthBuckets(...)`: every batch has samples of one shape. The former has the steps, so
        leave out `transform`. On the host only; not with `Interleaved` order or the policy `"shard"`.
    packing
        `SequencePacking(...)`: several samples of tokens in each row. Of columns only; not with the policy `"shard"`.
    decoded_cache
        `DecodedCache(size)`: keeps decoded images, frames and masks of a bounded size from one epoch to the next.
    arrays
        Arrays of each record: `Arrays(...)`, the name of a feature whose arrays all have one shape, or a list of these. With a
        `transform` in addition to images, otherwise without images. On the host only.
    float_range
        `(low, high)`: the values of floating-point samples (TIFF) that become 0 and 255. Values between are scaled linearly,
        values outside are clamped. Default: such images are bad samples.
    truncated
        `"error"`: a JPEG that is cut or damaged is a bad sample. `"fill"`: it is what libjpeg-turbo makes of it, as Pillow with
        `LOAD_TRUNCATED_IMAGES`: what is missing is grey. `stats()["filled"]` counts these images.
    page_cache
        `"keep"`, or `"release"`, which drops a record's pages once its sample is decoded.
    read_ahead
        Bytes, or text, of records to read ahead into the page cache, or to request ahead from an object store; 0 turns it off.
    fetch_gap
        In an object store, records are requested together if at most this many bytes (or text) lie between them.
    fetch_size
        Bytes, or text, of a request of several records in an object store, at most.
    starve_after
        Seconds to wait when the consumer holds every batch, before `StarvedError`.
    collate_fn
        Called with each batch; the loop receives what it returns. `image_label` returns the pair
        `(image, label)`.
    world
        Old name of `world_size`.

    A batch is a dict:

    - `"image"`: `[N, H, W, 3]` u8 RGB, or as `mode`, `bits`, `dtype` and `layout` say: the loader's own memory, no copy.
      Without `transform` a list of N byte strings.
    - `"label"`: `[N]` int64, if the dataset has labels; `"id"`: `[N]` int64, the id of each row's sample, −1 for none;
      `"valid"`: `[N]` bool, whether the row has a sample.
    - with `Views`, `"image.NAME"` for each view instead of `"image"`.
    - each array of `arrays` by its feature's name: `[N, …]` of the stored type (bfloat16 as its bits, uint16).
    - with `clip`, its feature's name instead of `"image"`: `[N, frames, H, W, 3]`.
    - with `packing`, what `SequencePacking` says.
    - each of `columns` by its feature's name: an array `[N]`, a list of N byte strings, or a `Ragged`.

    Rows without a sample (see `remainder` and `on_bad`) have pixels and arrays of 0 and label −100.

    With a CUDA `device` images and numbers are `DeviceArray`s, which frameworks take through DLPack or the CUDA array
    interface; byte strings and ragged columns stay on the host, and `"host"` is a dict of the numbers as numpy arrays. With
    `local_replicas` or several devices a batch is a list of such dicts, one for each replica.

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
        transform: Sequence[Step] | Views | None = None,
        *,
        columns: Sequence[str] | None = None,
        classes: Sequence[str] | Literal["union", "ids"] | None = None,
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
        world_size: int | None = None,
        local_replicas: int | None = None,
        device: Any = None,
        mode: Literal["RGB", "L"] = "RGB",
        bits: Literal[8, 16] | None = None,
        dtype: Literal["float32", "float16", "bfloat16", "uint16"] | None = None,
        layout: Literal["NCHW", "NHWC"] | None = None,
        mean: Sequence[float] | float | None = None,
        std: Sequence[float] | float | None = None,
        device_memory_limit: int | str | None = None,
        slots: int | None = None,
        policy: Literal["sample", "shard", "off"] = "sample",
        apply_orientation: bool = False,
        scaled_decode: bool = False,
        mask: str | Sequence[str] | None = None,
        mask_dtype: Literal["uint8", "uint16"] = "uint8",
        mask_fill: int | None = None,
        more_images: Sequence[str] | Mapping[str, Literal["color", "values"] | None] | None = None,
        clip: Clip | None = None,
        objects: Objects | None = None,
        batch_transform: Sequence[BatchTransform] | BatchTransform | None = None,
        buckets: AspectRatioBuckets | LengthBuckets | None = None,
        packing: SequencePacking | None = None,
        decoded_cache: DecodedCache | None = None,
        arrays: Arrays | str | Sequence[Arrays | str] | None = None,
        float_range: tuple[float, float] | None = None,
        truncated: Literal["error", "fill"] = "error",
        page_cache: Literal["keep", "release"] = "keep",
        read_ahead: int | str = "64MiB",
        fetch_gap: int | str = "64KiB",
        fetch_size: int | str = "8MiB",
        starve_after: float = 10.0,
        collate_fn: Callable[[B], T] | None = None,
        world: int | None = None,
        **unknown: NoReturn,
    ):
        arguments = locals()
        self._arguments = {name: value for name, value in arguments.items() if name not in ("self", "__class__", "unknown")}
        dataloader_words.refuse(unknown, self._arguments)
        self._splits = as_splits(data)
        self._rank, self._world_size = as_replica(rank, world_size, world)
        self._collate = collate_fn
        self._reported: set[str] = set()
        #: The replica, once an iteration has begun.
        self._bound: launch.Launch | None = None
        if collate_fn is not None and not callable(collate_fn):
            raise OptionTypeError(f"`collate_fn` is {collate_fn!r}: expected a function of the batch")
        device, local_replicas = self._place(device, local_replicas)
        self._group = local_replicas is not None or (as_devices(device) is not None and not is_one_device(device))
        given = {**self._arguments, "rank": self._rank, "world_size": self._world_size, "device": device}
        given["local_replicas"] = local_replicas
        options, self._output = native_options(SimpleNamespace(**given), self._splits)
        self._native = _shardtool.Loader(self._splits, options)
        _open.add(self)

    def __iter__(self) -> Iterator[T]:
        launch.refuse_worker()
        found = self._resolve()
        iteration = self._native.begin(found.place)
        before, self._bound = self._bound, found
        if before is None:
            self._compare_classes()
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
        return launch.resolve(self._rank, self._world_size)

    def _place(self, device: Any, local_replicas: int | None) -> tuple[Any, int | None]:
        """Takes a framework's devices out of `device`; returns what is left, and the number of local replicas."""
        return device, local_replicas

    #: Whether growth beyond the default memory budget is a warning; otherwise it is only logged.
    _warns_of_growth = True

    def _report_notices(self) -> None:
        """Reports what the native loader noticed."""
        for bad_sample, message in self._native.notices():
            if bad_sample or self._warns_of_growth:
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

    def _pictures(self, batch: dict[str, Any]) -> list[str]:
        """Returns the names of the arrays of images in a batch, without those of values."""
        clip, more = self._arguments["clip"], self._arguments["more_images"] or ()
        colors = (name for name in more if not isinstance(more, Mapping) or more[name] != "values")
        features = ("image" if clip is None else clip.feature, *colors)
        views = self._arguments["transform"]
        names = [f".{name}" for name, _ in views.views] if isinstance(views, Views) else [""]
        return [name for feature in features for view in names if (name := feature + view) in batch]

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
            The state belongs to another dataset, source, order or seed.
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
        hidden = ("data", "source", "rank", "world_size", "world")
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
