"""Checks arguments before they reach the native module, so that messages name the wrong one."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from .errors import OptionError, OptionTypeError

__all__ = ["instance", "pair", "real", "whole"]


def whole(name: str, value: Any, least: int = 0, most: int = 2**64 - 1) -> int:
    """Returns a whole number from `least` to `most`; accepts numpy's integers, but not `bool`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise OptionTypeError(f"`{name}` is {value!r}: expected a whole number")
    number = int(value)
    if not least <= number <= most:
        raise OptionError(f"`{name}` is {number}: expected {least} to {most}")
    return number


def real(name: str, value: Any) -> float:
    """Returns a number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise OptionTypeError(f"`{name}` is {value!r}: expected a number")
    return float(value)


def pair(name: str, value: Any) -> tuple[float, float]:
    """Returns two numbers, the smaller one first."""
    if not isinstance(value, Sequence) or len(value) != 2:
        raise OptionError(f"`{name}` is {value!r}: expected two numbers")
    low, high = real(name, value[0]), real(name, value[1])
    if not low <= high:
        raise OptionError(f"`{name}` is {value!r}: expected the smaller number first")
    return low, high


def instance(name: str, value: Any, kinds: tuple[type, ...], examples: str) -> Any:
    """Returns a value of one of these classes; `examples` says what to write."""
    if not isinstance(value, kinds):
        raise OptionTypeError(f"`{name}` is {value!r}: expected {examples}")
    return value
