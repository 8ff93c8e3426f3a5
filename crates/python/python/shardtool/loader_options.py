"""The arguments of `Loader`, checked and converted for the native loader."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from . import _shardtool
from .arguments import ORDERS, SOURCES, as_bits, as_classes, as_devices, as_names, as_output, as_size
from .arrays import native_arrays
from .boxes import Objects
from .buckets import AspectRatioBuckets, LengthBuckets
from .checks import instance, pair, real, whole
from .clips import Clip
from .decoded_cache import DecodedCache
from .errors import OptionError
from .mixing import native_mixing
from .sequence_packing import SequencePacking
from .transforms import Views
from .transforms.views import native_views

__all__ = ["native_options"]

#: Arguments that the native loader takes under another name, or not at all.
_CONVERTED = (
    "data", "world", "collate_fn", "dtype", "layout", "mean", "std", "device_memory_limit", "slots", "transform", "mask",
    "batch_transform",
)  # fmt: skip


def native_options(given: SimpleNamespace, splits: list[_shardtool.Split]) -> tuple[dict[str, Any], Any]:
    """Returns the options of the native loader, and the output type of images, if one is requested.

    Raises `OptionError` and `OptionTypeError` that name the argument.
    """
    devices = as_devices(given.device)
    options = {name: value for name, value in vars(given).items() if name not in _CONVERTED}
    options["batch_size"] = whole("batch_size", given.batch_size, 1, 2**32 - 1)
    transform = _batching(given, devices, options)
    options["views"], options["function"] = (None, None) if transform is None else native_views(transform)
    _order(given, splits, options)
    _limits(given, options)
    output = _images(given, transform, devices, options)
    _features(given, transform, devices, splits, options)
    options["output"] = None if devices else output
    _device(given, devices, output, options)
    return options, output


def _batching(given: SimpleNamespace, devices: list[str] | None, options: dict[str, Any]) -> Any:
    """Converts buckets and packing. Returns the transform."""
    transform, buckets, packing = given.transform, given.buckets, given.packing
    options["buckets"] = None
    if buckets is not None:
        instance("buckets", buckets, (AspectRatioBuckets, LengthBuckets), "`AspectRatioBuckets(...)` or `LengthBuckets(...)`")
        options["buckets"] = buckets._native()
        if devices:
            raise OptionError("`buckets`: batches of several shapes stay on the host: leave out `device`")
        if isinstance(buckets, AspectRatioBuckets):
            if transform is not None:
                raise OptionError("`buckets` has the steps of each shape: leave out `transform`")
            transform = buckets.steps[0]
    if packing is not None:
        options["packing"] = instance("packing", packing, (SequencePacking,), "`SequencePacking(...)`")._native()
        others = {"transform": transform, "arrays": given.arrays, "buckets": buckets, "device": devices}
        for other in (name for name, value in others.items() if value):
            raise OptionError(f"`packing` is about columns of tokens: leave out `{other}`")
    for batching in ("buckets", "packing"):
        missing = [name for name, _ in (options[batching] or {}).get("padded", ()) if name not in (given.columns or ())]
        if missing:
            raise OptionError(f"`padded`: {missing[0]!r} is not one of `columns`: add it there")
    return transform


def _order(given: SimpleNamespace, splits: list[_shardtool.Split], options: dict[str, Any]) -> None:
    """Converts columns, order and source."""
    options["columns"] = None if given.columns is None else as_names("columns", given.columns)
    options["classes"] = as_classes(given.classes)
    expected = "`Shuffled()`, `Sequential()` or `Interleaved(...)`"
    options["order"] = instance("order", given.order, ORDERS, expected)._native()
    options["source"] = None
    if given.source is not None:
        instance("source", given.source, SOURCES, "`Subset(...)`, `Balanced(...)`, `Weighted(...)` or `Mixture(...)`")
        options["source"] = given.source._native(splits, options["classes"])


def _limits(given: SimpleNamespace, options: dict[str, Any]) -> None:
    """Checks numbers, sizes and texts."""
    options["seed"] = whole("seed", given.seed)
    for name, least in (("max_bad", 0), ("workers", 1), ("prefetch", 1), ("local_replicas", 1)):
        if options[name] is not None:
            options[name] = whole(name, options[name], least, 2**32 - 1)
    options["memory_budget"] = None if given.memory_budget is None else as_size("memory_budget", given.memory_budget)
    for name in ("read_ahead", "fetch_gap", "fetch_size"):
        options[name] = as_size(name, options[name])
    for name in ("remainder", "on_bad"):
        if options[name] is not None:
            instance(name, options[name], (str,), "text")
    for name in ("policy", "mask_dtype", "page_cache", "mode"):
        instance(name, options[name], (str,), "text")
    for name in ("apply_orientation", "scaled_decode"):
        instance(name, options[name], (bool,), "`True` or `False`")
    options["starve_after"] = real("starve_after", given.starve_after)


def _images(given: SimpleNamespace, transform: Any, devices: list[str] | None, options: dict[str, Any]) -> Any:
    """Converts the pixel format. Returns the output type of images, if one is requested."""
    layout, mean, std = given.layout, given.mean, given.std
    options["bits"], dtype = as_bits(given.bits, given.dtype, layout, mean, std)
    for name, differs in (("mode", given.mode != "RGB"), ("bits", options["bits"] != 8)):
        if differs and (devices or transform is None):
            raise OptionError(f"`{name}` takes the steps of a `transform`, and stays on the host: leave out `device`")
    images: dict[str, Any] = {"dtype": dtype, "layout": layout, "mean": mean, "std": std}
    asked = [name for name, value in images.items() if value is not None]
    if asked and transform is None:
        raise OptionError(f"`{asked[0]}`: images as stored stay as they are; give the steps of a `transform` as well")
    if devices and transform is None:
        raise OptionError("`device`: images as stored stay on the host; give the steps of a `transform` as well")
    return as_output(**images, channels=1 if given.mode == "L" else 3) if asked or devices else None


def _features(
    given: SimpleNamespace, transform: Any, devices: list[str] | None, splits: list[_shardtool.Split], options: dict[str, Any]
) -> None:
    """Converts what goes through the steps beside the image, what is mixed and what is kept."""
    mask = given.mask
    options["masks"] = [] if mask is None else as_names("mask", [mask] if isinstance(mask, str) else mask)
    options["more_images"] = [] if given.more_images is None else _more_images(given.more_images)
    options["arrays"] = [] if given.arrays is None else native_arrays(given.arrays)
    if given.arrays is not None and devices:
        raise OptionError("`arrays` stay on the host: leave out `device`")
    options["mask_fill"] = None if given.mask_fill is None else whole("mask_fill", given.mask_fill, 0, 2**16 - 1)
    if given.clip is not None:
        options["clip"] = instance("clip", given.clip, (Clip,), "`Clip(...)`")._native()
    if given.objects is not None:
        options["objects"] = instance("objects", given.objects, (Objects,), "`Objects(...)`")._native()
    mixing, has_objects = given.batch_transform, given.objects is not None
    classes = 0 if mixing is None else len(_shardtool.class_names(splits, options["classes"]))
    options["mixing"] = None if mixing is None else native_mixing(mixing, classes, has_objects)
    if mixing is not None and transform is None:
        raise OptionError("`batch_transform` mixes decoded images: give the steps of a `transform` as well")
    for name in ("mask", "more_images", "clip", "objects"):
        if getattr(given, name) is not None and (devices or transform is None):
            raise OptionError(f"`{name}` takes the steps of a `transform`, and stays on the host: leave out `device`")
    if given.decoded_cache is not None:
        cache = instance("decoded_cache", given.decoded_cache, (DecodedCache,), "`DecodedCache(...)`")
        options["decoded_cache"] = cache._native()
    for name in ("decoded_cache", "float_range"):
        if getattr(given, name) is not None and transform is None:
            raise OptionError(f"`{name}`: images as stored are not decoded; give the steps of a `transform` as well")
    if given.truncated != "error" and transform is None:
        raise OptionError("`truncated`: images as stored are not decoded; give the steps of a `transform` as well")
    if given.scaled_decode and transform is None:
        raise OptionError("`scaled_decode`: images as stored are not decoded; give the steps of a `transform` as well")
    if given.float_range is not None:
        options["float_range"] = pair("float_range", given.float_range)
    if devices and isinstance(transform, Views):
        raise OptionError("`transform`: several views stay on the host: leave out `device`")
    if mask is None and (given.mask_dtype != "uint8" or given.mask_fill is not None):
        name = "mask_dtype" if given.mask_fill is None else "mask_fill"
        raise OptionError(f"`{name}` is about a mask: give the feature `mask` as well")


def _more_images(given: Any) -> list[tuple[str, str | None]]:
    """Returns the features of further images, and the kind of each, if it is given."""
    names = as_names("more_images", list(given) if isinstance(given, Mapping) else given)
    kinds = given if isinstance(given, Mapping) else {}
    for name, kind in kinds.items():
        if kind not in ("color", "values", None):
            raise OptionError(f'`more_images` is {kind!r} for {name!r}: expected "color" or "values"')
    return [(name, kinds.get(name)) for name in names]


def _device(given: SimpleNamespace, devices: list[str] | None, output: Any, options: dict[str, Any]) -> None:
    """Converts the devices, of which each is one replica, and their memory."""
    replicas = options["local_replicas"]
    options["device"], options["local_replicas"] = None, replicas or 1
    if devices:
        if replicas not in (None, len(devices)):
            raise OptionError(f"`local_replicas` is {replicas} for {len(devices)} devices: each is one replica")
        limit = given.device_memory_limit
        limit = None if limit is None else as_size("device_memory_limit", limit)
        slots = 4 if given.slots is None else whole("slots", given.slots, 2, 2**16)
        options["device"] = {"devices": devices, "output": output, "device_memory_limit": limit, "slots": slots}
        options["local_replicas"] = len(devices)
    elif given.device_memory_limit is not None or given.slots is not None:
        name = "slots" if given.device_memory_limit is None else "device_memory_limit"
        raise OptionError(f"`{name}` is about batches on a device: give `device` as well")
