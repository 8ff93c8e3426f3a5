"""What the keypoints of objects are: their names, the order in mirrored objects, and the lines that join them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import _shardtool
from .checks import whole
from .errors import OptionError, OptionTypeError

__all__ = ["Keypoints", "flip_index"]


@dataclass(frozen=True)
class Keypoints:
    """The points of each object, in the order in which they are stored (`image/object/keypoints`). What is empty is not known.

    Raises
    ------
    OptionError
        There are neither names nor `flip_index`, or they are of other numbers of points; a name is empty or occurs twice; two flips
        would not restore the order; a pair does not join two of the points.
    OptionTypeError
        A value has another type.

    Examples
    --------
    >>> st.Keypoints(["nose", "left_eye", "right_eye"], skeleton=[(0, 1), (0, 2)])
    Keypoints(names=('nose', 'left_eye', 'right_eye'), flip_index=(), skeleton=((0, 1), (0, 2)))
    """

    #: The name of each point.
    names: Sequence[str] = ()
    #: The number that each point has in a mirrored object, as `flip_index` makes of names. Default: by the names, where some have sides.
    flip_index: Sequence[int] = ()
    #: Numbers of points, from 0, that a line joins.
    skeleton: Sequence[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        skeleton = tuple(_numbers("skeleton", pair) for pair in _listed("skeleton", self.skeleton))
        if wrong := [pair for pair in skeleton if len(pair) != 2]:
            raise OptionTypeError(f"`skeleton` has {wrong[0]!r}: expected pairs of numbers")
        names = _listed("names", self.names)
        if other := [name for name in names if not isinstance(name, str)]:
            raise OptionTypeError(f"`names` has {other[0]!r}: expected text")
        for name, values in (("names", names), ("flip_index", _numbers("flip_index", self.flip_index)), ("skeleton", skeleton)):
            object.__setattr__(self, name, values)
        try:
            _shardtool.check_keypoints(self)
        except ValueError as error:
            raise OptionError(f"`keypoints`: {error}") from None


def _listed(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise OptionTypeError(f"`{name}` is {values!r}: expected a list")
    return tuple(values)


def _numbers(name: str, values: Any) -> tuple[int, ...]:
    return tuple(whole(name, value, 0) for value in _listed(name, values))


def checked(keypoints: Any) -> Keypoints | None:
    """Checks the type of the argument `keypoints`."""
    if keypoints is None or isinstance(keypoints, Keypoints):
        return keypoints
    raise OptionTypeError(f"`keypoints` is {keypoints!r}: expected `shardtool.Keypoints(names, …)`")


def flip_index(names: Sequence[str]) -> list[int]:
    """Returns the number that each point has in a mirrored object, for `Objects(flip_index=...)`: `left_eye` and `right_eye`
    change places, also `l_eye` and `r_eye`; names without a side stay.

    Raises
    ------
    OptionError
        A name has a side, and that of the other side is not there; a name occurs twice; or two names may be two sides, such as
        `lankle` and `rankle`.

    Examples
    --------
    >>> st.flip_index(["nose", "left_eye", "right_eye"])
    [0, 2, 1]
    """
    try:
        return _shardtool.flip_index(list(names))
    except ValueError as error:
        raise OptionError(f"`names`: {error}") from None
