"""Lists of steps, with a function of your own at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from ..errors import OptionError, OptionTypeError
from .foreign import check_function
from .step import Transform

__all__ = ["Function", "Step", "native_views"]


@dataclass(frozen=True)
class Function:
    """A function of your own, as the last step. A callable that is not a `Transform` may be given instead.

    The loader's threads call it one at a time, because they need the GIL: a slow function bounds the rate, and `stats()`
    counts its time as *function*. If it raises, the epoch ends: the exception is raised by the `for` loop, with a
    note that names the sample.

    Parameters
    ----------
    function
        `function(image, seed)` gets the finished image, u8 `[H, W, 3]`, a copy that it may change and keep, and a
        seed from 0 to 2³² − 2 that depends only on the loader's seed, epoch and sample. It returns an image of the same
        size and type, or `None` if it changed its argument in place.
    """

    function: Callable[[np.ndarray, int], np.ndarray | None]



#: A step, or a function of your own as the last one.
Step = Union[Transform, Function, Callable[[np.ndarray, int], "np.ndarray | None"]]


def native_views(
    transform: Sequence[Step] | Mapping[str, Sequence[Step]],
) -> tuple[list[tuple[str, str]], Callable[..., Any] | None]:
    """Returns the name and the steps as JSON of each view, and the function at the end of all of them."""
    views = list(transform.items()) if isinstance(transform, Mapping) else [("", transform)]
    named = [(name, *_split_function(steps)) for name, steps in views]
    functions = [function for _, _, function in named]
    if any(function is not functions[0] for function in functions):
        raise OptionError("`steps`: views end with different functions: give the same one to each")
    return [(name, steps) for name, steps, _ in named], functions[0]


def _split_function(steps: Sequence[Step]) -> tuple[str, Callable[..., Any] | None]:
    """Returns the steps as JSON, and the function at their end."""
    if isinstance(steps, (Transform, str)) or not isinstance(steps, Iterable):
        raise OptionTypeError(f"`steps` is {steps!r}: expected a list of steps")
    steps = list(steps)
    function: Any = None
    if steps and not isinstance(steps[-1], Transform):
        last = steps.pop()
        function = last.function if isinstance(last, Function) else last
        if not callable(function):
            raise OptionTypeError(f"`steps`: {last!r} is neither a step nor a function")
        check_function(function, _steps())
    named = []
    for step in steps:
        if not isinstance(step, Transform):
            if not callable(step) and not isinstance(step, Function):
                raise OptionTypeError(f"`steps`: {step!r} is neither a step nor a function")
            if callable(step):
                check_function(step, _steps())
            raise OptionError(f"`steps`: {step!r} is followed by other steps: a function can only be the last one")
        named.append(step._json())
    return json.dumps(named), function


def _steps() -> set[str]:
    """Returns the names of all steps."""
    found, open_classes = set(), [Transform]
    while open_classes:
        for kind in open_classes.pop().__subclasses__():
            found.add(kind.__name__)
            open_classes.append(kind)
    return found
