"""Checks the arguments of a loader, and converts them for the native module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _shardtool
from .checks import instance, real, whole
from .errors import OptionError, OptionTypeError, OutOfRangeError
from .orders import Balanced, Interleaved, Mixture, Sequential, Shuffled, Subset, Weighted


class Records:
    """The records of several splits, numbered consecutively."""

    def __init__(self, splits: list[_shardtool.Split]):
        self._splits = splits

    def __len__(self) -> int:
        return sum(len(split) for split in self._splits)

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -len(self) <= whole("index", index, -(2**63), 2**63 - 1) < len(self):
            raise OutOfRangeError(f"record {index} of splits of {len(self)}")
        left = index + len(self) if index < 0 else index
        for split in self._splits:
            if left < len(split):
                break
            left -= len(split)
        return split[left]


ORDERS = (Shuffled, Sequential, Interleaved)
SOURCES = (Subset, Balanced, Weighted, Mixture)


def as_splits(data: Any) -> list[_shardtool.Split]:
    if isinstance(data, _shardtool.Split):
        return [data]
    if isinstance(data, _shardtool.Dataset):
        raise OptionTypeError(f"`data` is a dataset: give one of its splits, `dataset[{data.splits[0]!r}]`")
    if isinstance(data, (list, tuple)) and data and all(isinstance(split, _shardtool.Split) for split in data):
        return list(data)
    raise OptionTypeError(f"`data` is {data!r}: expected a split, or a list of splits")


def as_replica(rank: int | None, world_size: int | None, world: int | None) -> tuple[int | None, int | None]:
    if world is not None:
        if world_size is not None:
            raise OptionError("`world` is the old name of `world_size`: give one of them")
        world_size = world
    if (rank is None) != (world_size is None):
        raise OptionError("give both `rank` and `world_size`, or neither")
    if rank is None or world_size is None:
        return None, None
    return whole("rank", rank, 0, 2**32 - 1), whole("world_size", world_size, 1, 2**32 - 1)


def as_classes(classes: Any) -> str | list[str] | None:
    if classes is None or isinstance(classes, str):
        return classes
    return as_names("classes", classes)


def is_one_device(device: Any) -> bool:
    """Returns whether this is one device: text, or an object such as `torch.device`, whose text names it."""
    return isinstance(device, str) or not isinstance(device, Sequence)


def as_devices(device: Any) -> list[str] | None:
    """Returns the names of devices; `None` for the host."""
    if device is None:
        return None
    names = [str(one) for one in ([device] if is_one_device(device) else device)]
    if not names:
        raise OptionError("`device` is an empty list: expected at least one device")
    if "cpu" in names:
        if len(names) > 1:
            raise OptionError(f"`device` is {names}: give CUDA devices, or `cpu` alone")
        return None
    return names


def as_bits(bits: Any, dtype: Any, *others: Any) -> tuple[int, Any]:
    """Returns the bits of a sample, and the floating-point type of images, if one is requested. `others` are the options of
    floating-point images."""
    found = 8 if bits is None else bits
    if found not in (8, 16):
        raise OptionError(f"`bits` is {bits!r}: expected 8 or 16")
    if str(dtype).removeprefix("torch.") != "uint16":
        return int(found), dtype
    if bits == 8:
        raise OptionError('`dtype="uint16"` has the samples of `bits=16`: leave out `bits=8`')
    if any(value is not None for value in others):
        raise OptionError('`dtype="uint16"` has the samples as they are, NHWC: leave out `layout`, `mean` and `std`')
    return 16, None


def as_output(
    dtype: str | None,
    layout: str | None,
    mean: Sequence[float] | float | None,
    std: Sequence[float] | float | None,
    channels: int = 3,
) -> dict[str, Any]:
    """Returns type, layout and normalisation of images, with defaults."""
    output: dict[str, Any] = {"dtype": dtype or "float32", "layout": layout or "NCHW"}
    # A dtype of torch: `torch.float16`.
    output["dtype"] = str(output["dtype"]).removeprefix("torch.")
    instance("layout", output["layout"], (str,), '`"NCHW"` or `"NHWC"`')
    for name, given, default in (("mean", mean, 0.0), ("std", std, 1.0)):
        values: Any = [given] if channels == 1 and isinstance(given, (int, float)) else given
        if values is not None and not hasattr(values, "__len__"):
            raise OptionTypeError(f"`{name}` is {values!r}: expected {'one number' if channels == 1 else 'three numbers'}")
        numbers = [default] * channels if values is None else [real(name, value) for value in values]
        if len(numbers) != channels:
            expected = "one for grey" if channels == 1 else "one for each of red, green, blue"
            raise OptionError(f"`{name}` has {len(numbers)} numbers: expected {expected}")
        # The native module takes three, of which grey uses the first.
        output[name] = (numbers * 3)[:3]
    return output


def as_size(name: str, value: Any) -> Any:
    """Returns bytes, or text that the native module parses."""
    return value if isinstance(value, str) else whole(name, value)


def as_names(name: str, values: Any) -> list[str]:
    if not isinstance(values, Sequence) or isinstance(values, str) or not all(isinstance(v, str) for v in values):
        raise OptionTypeError(f"`{name}` is {values!r}: expected a list of names")
    return list(values)
