"""What the keypoints of objects are: their names, the order in mirrored objects, and the lines that join them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _shardtool
from .errors import OptionError, OptionTypeError

__all__ = ["Keypoints", "flip_index"]


@dataclass(frozen=True)
class Keypoints:
    """The points of each object, in the order in which they are stored (`image/object/keypoints`). What is empty is not known.

    Raises
    ------
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
        if isinstance(self.names, str):
            raise OptionTypeError(f"`names` is {self.names!r}: expected a list of names")
        for name, values in (
            ("names", tuple(self.names)),
            ("flip_index", tuple(self.flip_index)),
            ("skeleton", tuple(tuple(pair) for pair in self.skeleton)),
        ):
            object.__setattr__(self, name, values)


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
