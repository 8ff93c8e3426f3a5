"""The base of the options that are generated, and the checks of their members."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, ClassVar

import numpy as np

from .checks import instance, pair, real, whole
from .errors import OptionError, OptionTypeError

__all__ = [
    "Check", "Option", "as_json", "ascending", "choice", "flag", "mapping", "optional", "path", "real_from", "several", "size", "text",
    "whole_from",
]  # fmt: skip

#: Returns the value of a member, converted, or raises an error that names it.
Check = Callable[[str, Any], Any]


class Option:
    """A struct of options. Its members are checked when it is made, and are written as JSON for the native module."""

    #: The members that JSON has, without those of a base class, and how each is checked.
    _checks: ClassVar[Mapping[str, Check]] = {}
    #: How many members are written without their names.
    _positional: ClassVar[int] = 0

    def __post_init__(self) -> None:
        for kind in type(self).__mro__:
            for name, check in vars(kind).get("_checks", {}).items():
                object.__setattr__(self, name, check(name, getattr(self, name)))

    def _json(self) -> dict[str, Any]:
        """Returns the members as JSON has them, without those of a base class."""
        return {name: as_json(getattr(self, name)) for name in vars(type(self)).get("_checks", {})}

    def __repr__(self) -> str:
        shown = []
        for number, field in enumerate(_in_order(self)):
            value = getattr(self, field.name)
            if number < self._positional:
                shown.append(repr(value))
            elif not _is_default(field, value):
                shown.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _in_order(option: Option) -> list[Any]:
    """Returns the fields of a dataclass as its constructor takes them: those by position first."""
    return sorted(fields(option), key=lambda field: field.kw_only)  # type: ignore[arg-type]


def _is_default(field: Any, value: Any) -> bool:
    if field.default is MISSING:
        return False
    return value is field.default or (type(value) is type(field.default) and bool(value == field.default))


def as_json(value: Any) -> Any:
    """Returns a value as JSON has it."""
    match value:
        case Option():
            return value._json()
        case Mapping():
            return {name: as_json(item) for name, item in value.items()}
        case list() | tuple():
            return [as_json(item) for item in value]
        case np.generic():
            return as_json(value.item())
        case float() if not math.isfinite(value):
            # JSON has no such numbers.
            return str(value)
        case _:
            return value


def text(name: str, value: Any) -> str:
    """Returns text, such as the name of a feature."""
    return str(instance(name, value, (str,), "the name of a feature"))


def flag(name: str, value: Any) -> bool:
    return bool(instance(name, value, (bool,), "`True` or `False`"))


def size(name: str, value: Any) -> int | str:
    """Returns bytes, or text that the native module reads."""
    return value if isinstance(value, str) else whole(name, value)


def path(name: str, value: Any) -> str:
    """Returns the path of a folder."""
    return str(os.fspath(instance(name, value, (str, os.PathLike), "the path of a folder")))


def whole_from(least: int, most: int) -> Check:
    return lambda name, value: whole(name, value, least, most)


def real_from(
    least: float | None = None, most: float | None = None, *, above: float | None = None, finite: bool = True
) -> Check:
    """Checks a number of at least `least` and at most `most`, or above `above`."""

    def check(name: str, value: Any) -> float:
        number = real(name, value)
        if finite and not math.isfinite(number):
            raise OptionError(f"`{name}` is {value}: expected a finite number")
        if least is not None and most is not None and not least <= number <= most:
            raise OptionError(f"`{name}` is {value}: expected {least:g} to {most:g}")
        if least is not None and not number >= least:
            raise OptionError(f"`{name}` is {value}: expected at least {least:g}")
        if above is not None and not number > above:
            raise OptionError(f"`{name}` is {value}: expected a number above {above:g}")
        return number

    return check


def choice(*choices: str | int) -> Check:
    """Checks that a value is one of a few."""

    def check(name: str, value: Any) -> Any:
        if value in choices and not isinstance(value, bool):
            return value
        shown = ", ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in choices)
        kind = OptionError if isinstance(value, type(choices[0])) else OptionTypeError
        raise kind(f"`{name}` is {value!r}: expected {shown}")

    return check


def optional(check: Check) -> Check:
    """Checks a value that may be `None`."""
    return lambda name, value: None if value is None else check(name, value)


def several(check: Check, length: int | None = None) -> Check:
    """Checks every entry of a list, and makes it a tuple."""

    def every(name: str, value: Any) -> tuple[Any, ...]:
        expected = "a list" if length is None else f"a list of {length}"
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
            raise OptionTypeError(f"`{name}` is {value!r}: expected {expected}")
        if length not in (None, len(value)):
            raise OptionError(f"`{name}` is {value!r}: expected {expected}")
        return tuple(check(name, item) for item in value)

    return every


def ascending(check: Check) -> Check:
    """Checks two numbers, the smaller one first."""

    def both(name: str, value: Any) -> tuple[Any, Any]:
        low, high = pair(name, value)
        return check(name, low), check(name, high)

    return both


def mapping(check: Check) -> Check:
    """Checks the values of a dict from features to numbers; `None` is an empty one."""

    def every(name: str, value: Any) -> dict[str, Any]:
        if value is None:
            return {}
        instance(name, value, (Mapping,), "a dict of features and numbers")
        return {str(feature): check(f"{name}[{feature!r}]", item) for feature, item in value.items()}

    return every
