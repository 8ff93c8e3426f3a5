"""Members of options that Python converts: what Rust and JSON write as a list may be one value, a dict, or an object here."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Protocol

from .checks import instance, pair, real, whole
from .errors import OptionError, OptionTypeError
from .option import Option, as_json, choice, real_from
from .transforms.views import native_views

__all__ = [
    "ArraysBase", "BatchTransform", "PixelsBase", "TorchDtype", "channels", "decoded_cache", "devices", "features", "float_range",
    "pad_value", "pixel_dtype", "planes", "steps", "views_of",
]  # fmt: skip


class TorchDtype(Protocol):
    """A `torch.dtype`, without an import of PyTorch."""

    @property
    def is_floating_point(self) -> bool: ...


class PixelsBase(Option):
    """The base of what has pixels: its own members, and those of `Pixels`."""

    def _pixels(self) -> dict[str, Any]:
        """Returns the members of `Pixels` as JSON has them."""
        pixels = next(kind for kind in type(self).__mro__ if kind.__name__ == "Pixels")
        return {name: as_json(getattr(self, name)) for name in vars(pixels)["_checks"]}

    def _given(self) -> list[str]:
        """Returns the names of the members of `Pixels` that differ from their defaults."""
        defaults = {field.name: field.default for field in fields(self)}  # type: ignore[arg-type]
        return [name for name in self._pixels() if getattr(self, name) != defaults[name]]

    def _json(self) -> dict[str, Any]:
        own = super()._json()
        given = own.pop("steps")
        return {**own, "views": [] if given is None else views_of(given), "pixels": self._pixels()}


class ArraysBase(Option):
    """The base of `Arrays` and `RaggedArrays`, whose value outside an array may be one number for all features, or a dict."""

    def _json(self) -> dict[str, Any]:
        own = super()._json()
        pad: Any = own["pad_value"]
        if isinstance(pad, Mapping):
            if set(pad) != set(own["features"]):
                raise OptionError(f"`pad_value` is for {sorted(pad)}: expected a number for each of {list(own['features'])}")
            own["pad_value"] = [pad[name] for name in own["features"]]
        elif pad is not None:
            own["pad_value"] = [pad] * len(own["features"])
        return own

    def __post_init__(self) -> None:
        super().__post_init__()
        self._json()


class BatchTransform(Option):
    """A way of mixing the rows of a batch. What is drawn depends only on seed, epoch and the position of the batch, so a resumed
    run mixes the same; with another batch size the samples stay the same, but their partners do not."""

    num_classes: int | None

    def _named(self) -> dict[str, Any]:
        """Returns the transform as JSON has it, with its name."""
        return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower(): self._json()}


def views_of(given: Any) -> list[dict[str, Any]]:
    """Returns the name and the steps of each view, as JSON has them, of a list of steps or a dict of such lists."""
    return [{"name": name, "steps": json.loads(text)} for name, text in native_views(given)[0]]


def function_of(given: Any) -> Callable[..., Any] | None:
    """Returns the function at the end of the steps."""
    return native_views(given)[1]


def steps(name: str, value: Any) -> Any:
    """Returns steps, or several lists of steps by the name of a view."""
    native_views(value)
    return value if isinstance(value, Mapping) else tuple(value)


def channels(name: str, value: Any) -> tuple[float, ...] | None:
    """Returns a number for each channel; one number is that of grey."""
    if value is None:
        return None
    if isinstance(value, str):
        raise OptionTypeError(f"`{name}` is {value!r}: expected numbers, one for each channel")
    finite = real_from()
    return tuple(finite(name, number) for number in (value if hasattr(value, "__len__") else [value]))


def pixel_dtype(name: str, value: Any) -> str | None:
    """Returns the name of a type, also of `torch.float16` and the like."""
    if value is None:
        return None
    return choice("float32", "float16", "bfloat16", "uint16")(name, str(value).removeprefix("torch."))  # type: ignore[no-any-return]


def float_range(name: str, value: Any) -> tuple[float, float]:
    """Returns the ends of a range."""
    low, high = pair(name, value)
    if not low < high or not math.isfinite(high - low):
        raise OptionError(f"`{name}` is {value!r}: expected two finite numbers, the smaller one first")
    return low, high


def decoded_cache(name: str, value: Any) -> Any:
    if value is None:
        return None
    if type(value).__name__ != "DecodedCache":
        raise OptionTypeError(f"`{name}` is {value!r}: expected `DecodedCache(...)`")
    return value


def features(name: str, value: Any) -> tuple[str, ...]:
    """Returns the names of features, given one or a list of at least one."""
    given = names(name, value)
    if not given:
        raise OptionTypeError(f"`{name}` is {value!r}: expected the name of a feature, or a list of names")
    return given


def names(name: str, value: Any) -> tuple[str, ...]:
    """Returns names, given one or a list of them."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise OptionTypeError(f"`{name}` is {value!r}: expected the name of a feature, or a list of names")
    return tuple(given)


def planes(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    """Returns planes of two dimensions, given one or a list of them."""
    given: Any = value
    if hasattr(given, "__len__") and len(given) == 2 and not any(hasattr(entry, "__len__") for entry in given):
        given = [given]
    if not hasattr(given, "__len__") or not all(hasattr(plane, "__len__") and len(plane) == 2 for plane in given):
        raise OptionTypeError(f"`{name}` is {value!r}: expected two dimensions, or a list of such pairs")
    return tuple((whole(name, first), whole(name, second)) for first, second in given)


def pad_value(name: str, value: Any) -> Any:
    """Returns one number for all features, or one for each by name."""
    if value is None or not isinstance(value, Mapping):
        return None if value is None else real(name, value)
    return {instance(name, feature, (str,), "the name of a feature"): real(name, number) for feature, number in value.items()}


def is_one_device(device: Any) -> bool:
    """Returns whether this is one device: text, or an object such as `torch.device`, whose text names it."""
    return isinstance(device, str) or not isinstance(device, Sequence)


def devices(name: str, value: Any) -> Any:
    """Returns devices as they are given: one of them, or a list of at least one."""
    if value is None or (not is_one_device(value) and not value):
        raise OptionError("`device` is an empty list: expected at least one device" if value is not None else "`device` is None")
    return value
