"""Checks the arguments of a loader, and converts them for the native module."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _shardtool
from .buckets import AspectRatioBuckets
from .checks import instance, whole
from .converted import BatchTransform, is_one_device
from .errors import OptionError, OptionTypeError, OutOfRangeError
from .fields import fields_json, function_of
from .option import choice, optional, size, whole_from
from .options import BadSamples, Device, Image, LengthBuckets, Prefetch, Replica
from .orders import Balanced, Interleaved, Mixture, Scheduled, Sequential, Shuffled, Subset, Weighted


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
SOURCES = (Subset, Balanced, Weighted, Mixture, Scheduled)


def as_splits(data: Any) -> list[_shardtool.Split]:
    if isinstance(data, _shardtool.Split):
        return [data]
    if isinstance(data, _shardtool.Dataset):
        raise OptionTypeError(f"`data` is a dataset: give one of its splits, `dataset[{data.splits[0]!r}]`")
    if isinstance(data, (list, tuple)) and data and all(isinstance(split, _shardtool.Split) for split in data):
        return list(data)
    raise OptionTypeError(f"`data` is {data!r}: expected a split, or a list of splits")


def as_replica(replica: Any) -> Replica:
    """Returns the replica that was given; by default it is found later."""
    if replica is None:
        return Replica()
    found: Replica = instance("replica", replica, (Replica,), "`Replica(...)`")
    if (found.rank is None) != (found.world_size is None):
        raise OptionError("`replica`: give both `rank` and `world_size`, or neither")
    return found


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


def as_classes(classes: Any) -> str:
    """Returns what labels mean where splits meet, as JSON."""
    if classes is None:
        return '"equal"'
    return json.dumps(choice("union", "ids")("classes", classes) if isinstance(classes, str) else {"names": as_names("classes", classes)})


def as_names(name: str, values: Any) -> list[str]:
    if not isinstance(values, Sequence) or isinstance(values, str) or not all(isinstance(v, str) for v in values):
        raise OptionTypeError(f"`{name}` is {values!r}: expected a list of names")
    return list(values)


def native_options(
    given: Mapping[str, Any], devices: list[str] | None, local_replicas: int | None, splits: list[_shardtool.Split]
) -> dict[str, Any]:
    """Returns what the native loader takes: its configuration as JSON, and what JSON cannot hold.

    Raises `OptionError` and `OptionTypeError` that name the argument.
    """
    fields, buckets, device, order = given["fields"], given["buckets"], given["device"], given["order"]
    replica: Replica = given["replica"]
    instance("order", order, ORDERS, "`Shuffled()`, `Sequential()` or `Interleaved(...)`")
    classes = as_classes(given["classes"])
    config = {
        "batch_size": whole("batch_size", given["batch_size"], 1, 2**32 - 1),
        "fields": fields_json(fields, bucketed=isinstance(buckets, AspectRatioBuckets)),
        "batch_transform": _batch_transform(given["batch_transform"]),
        "buckets": _buckets(buckets),
        "classes": json.loads(classes),
        "order": order._json(),
        "seed": int(order.seed),
        "remainder": optional(choice("drop", "pad", "mask"))("remainder", given["remainder"]),
        "bad_samples": _bad_samples(given["bad_samples"])._json(),
        "policy": replica.policy,
        "memory": optional(size)("memory", given["memory"]),
        "workers": optional(whole_from(1, 2**32 - 1))("workers", given["workers"]),
        "prefetch": _prefetch(given["prefetch"])._json(),
    }
    if isinstance(buckets, AspectRatioBuckets) and not any(isinstance(field, Image) for field in fields):
        config["fields"].append({"image": Image()._json()})
    if devices is not None and "record" in config["fields"]:
        raise OptionError("`device`: images as stored stay on the host: give the steps of the image as well")
    source = given["source"]
    if source is not None:
        instance("source", source, SOURCES, "`Subset(...)`, `Balanced(...)`, `Weighted(...)`, `Mixture(...)` or `Scheduled(...)`")
    if isinstance(source, Scheduled):
        config["stages"], source = source._json(splits), None
    elif source is not None:
        source = source._native(splits, classes)
    if devices is not None and local_replicas not in (None, len(devices)):
        raise OptionError(f"`local_replicas` is {local_replicas} for {len(devices)} devices: each is one replica")
    return {
        "config": json.dumps(config),
        "function": buckets._function() if isinstance(buckets, AspectRatioBuckets) else function_of(fields),
        "source": source,
        "rank": replica.rank,
        "world_size": replica.world_size,
        "local_replicas": len(devices) if devices is not None else local_replicas or 1,
        "device": None if devices is None else json.dumps(_device(device, devices)),
    }


def _batch_transform(given: Any) -> list[Any]:
    transforms = [] if given is None else [given] if isinstance(given, BatchTransform) else list(given)
    if (given is not None and not transforms) or not all(isinstance(transform, BatchTransform) for transform in transforms):
        expected = "a list of `MixUp(...)`, `CutMix(...)`, `Mosaic(...)` and `CopyPaste(...)`"
        raise OptionTypeError(f"`batch_transform` is {given!r}: expected {expected}")
    return [transform._named() for transform in transforms]


def _buckets(given: Any) -> Any:
    if given is None:
        return None
    instance("buckets", given, (AspectRatioBuckets, LengthBuckets), "`AspectRatioBuckets(...)` or `LengthBuckets(...)`")
    return {"aspect_ratio" if isinstance(given, AspectRatioBuckets) else "length": given._json()}


def _bad_samples(given: Any) -> BadSamples:
    if given is None or isinstance(given, str):
        return BadSamples(given)  # type: ignore[arg-type]
    found: BadSamples = instance("bad_samples", given, (BadSamples,), '"error", "mask", "substitute" or `BadSamples(...)`')
    return found


def _prefetch(given: Any) -> Prefetch:
    if isinstance(given, Prefetch):
        return given
    return Prefetch(None if given is None else whole("prefetch", given, 1, 2**32 - 1))


def _device(given: Any, devices: list[str]) -> dict[str, Any]:
    return {**(given._json() if isinstance(given, Device) else {}), "devices": devices}
