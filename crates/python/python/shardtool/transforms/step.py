"""What every step of a transform is: a dataclass with a name, whose fields are its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Union

from ..checks import pair, real, whole
from ..errors import OptionError, OptionTypeError

__all__ = ["Interpolation", "PaddingMode", "Range", "ResizeFilter", "Size", "Transform"]

#: A side, or (height, width), in pixels.
Size = Union[int, "tuple[int, int]"]
#: Smallest and largest value.
Range = Union[float, "tuple[float, float]"]
#: How pixels are sampled where a step moves them.
Interpolation = Literal["nearest", "bilinear"]
#: The filter of a resize.
ResizeFilter = Literal["bilinear", "bicubic", "lanczos"]
#: Where padding comes from: one colour, the nearest pixel, or the image mirrored without or with its edge.
PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]

_SIDE = 2**32 - 1


@dataclass(frozen=True)
class Transform:
    """One step."""

    #: The step's name in the JSON that the loader reads.
    _name: ClassVar[str]

    def _set(self, **values: Any) -> None:
        """Replaces fields by their checked values."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _json(self) -> dict[str, Any]:
        """Returns the step as the loader reads it."""
        return {self._name: {field.name: getattr(self, field.name) for field in fields(self)}}


def side(name: str, value: int) -> int:
    """Returns a length in pixels."""
    return whole(name, value, 1, _SIDE)


def size(name: str, value: int | Sequence[int]) -> tuple[int, int]:
    """Returns height and width, given a side or (height, width)."""
    if isinstance(value, Sequence):
        if len(value) != 2:
            raise OptionError(f"`{name}` is {value!r}: expected a side, or (height, width)")
        return (side(name, value[0]), side(name, value[1]))
    return (side(name, value),) * 2


def probability(name: str, value: float) -> float:
    """Returns a probability."""
    if not 0 <= real(name, value) <= 1:
        raise OptionError(f"`{name}` is {value}: expected 0 to 1")
    return float(value)


def around(name: str, value: float | Sequence[float], center: float, least: float | None = None) -> tuple[float, float]:
    """Returns a range, given one or the distance of its ends from `center`."""
    if isinstance(value, Sequence):
        return pair(name, value)
    distance = real(name, value)
    if distance < 0:
        raise OptionError(f"`{name}` is {value}: expected at least 0, or the smallest and the largest value")
    low = center - distance
    return (low if least is None else max(low, least), center + distance)


def padding(name: str, value: int | Sequence[int] | None) -> tuple[int, int, int, int]:
    """Returns the padding left, top, right and bottom, given one number, (left and right, top and bottom), or all four."""
    values = [0] if value is None else list(value) if isinstance(value, Sequence) else [value]
    if len(values) not in (1, 2, 4):
        raise OptionError(f"`{name}` is {value!r}: expected one, two or four numbers of pixels")
    left, top, right, bottom = (values * 4)[:4]
    return (whole(name, left, 0, _SIDE), whole(name, top, 0, _SIDE), whole(name, right, 0, _SIDE), whole(name, bottom, 0, _SIDE))


def color(name: str, value: int | Sequence[int]) -> tuple[int, int, int]:
    """Returns red, green and blue, given a grey value or all three."""
    values = list(value) if isinstance(value, Sequence) else [value] * 3
    if len(values) != 3:
        raise OptionError(f"`{name}` is {value!r}: expected a number from 0 to 255, or three")
    red, green, blue = (whole(name, v, 0, 255) for v in values)
    return (red, green, blue)


def one_of(name: str, value: str, known: Sequence[str]) -> str:
    """Returns one of some texts. Accepts members of torchvision's enums, whose value is the text."""
    text = getattr(value, "value", value)
    if not isinstance(text, str):
        raise OptionTypeError(f"`{name}` is {value!r}: expected text")
    if text not in known:
        raise OptionError(f"`{name}` is {value!r}: expected {', '.join(map(repr, known))}")
    return text


def interpolation(value: str) -> str:
    """Returns how pixels are sampled."""
    return one_of("interpolation", value, ("nearest", "bilinear"))


def resize_filter(value: str) -> str:
    """Returns the filter of a resize."""
    return one_of("interpolation", value, ("bilinear", "bicubic", "lanczos"))
