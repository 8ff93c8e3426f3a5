"""The order of the points of mirrored objects."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import OptionError

__all__ = ["flip_index"]

#: Words for the two sides of points.
_SIDES = (("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT"))


def flip_index(names: Sequence[str]) -> list[int]:
    """Returns the number that each point has in a mirrored object, for `Objects(flip_index=...)`: `left_eye` and `right_eye`
    change places, names without `left` or `right` stay.

    Raises
    ------
    OptionError
        A name has `left` or `right`, and the name of the other side is not there, or a name occurs twice.

    Examples
    --------
    >>> st.flip_index(["nose", "left_eye", "right_eye"])
    [0, 2, 1]
    """
    at = {name: number for number, name in enumerate(names)}
    if len(at) != len(names):
        raise OptionError(f"`names`: {next(name for name in names if list(names).count(name) > 1)!r} occurs twice")
    order = []
    for name in names:
        pairs = [(a, b) for pair in _SIDES for a, b in (pair, pair[::-1]) if a in name]
        other = name.replace(*pairs[0]) if pairs else name
        if other not in at:
            raise OptionError(f"`names` has {name!r}, but not {other!r}")
        order.append(at[other])
    return order
