"""Batches of one shape each, from images of many aspect ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _shardtool
from .checks import whole
from .converted import function_of, views_of
from .errors import OptionError, OptionTypeError
from .transforms import Step

__all__ = ["AspectRatioBuckets", "shapes_within"]


class AspectRatioBuckets:
    """Images of similar aspect ratios share a batch: each image goes to the shape whose aspect ratio is nearest, as the sizes
    in the index say. Batches of all shapes are mixed, and every rank makes the same number of steps.

    Parameters
    ----------
    shapes
        Height and width of each shape in pixels; see also `shapes_within`.
    steps
        `steps(height, width)` returns the steps that give an image this shape. It is called once for each shape, at once.
    max_pixels
        Pixels of a batch, at most: a batch has as many rows as fit, at least 1 and at most `batch_size`. Default: every
        batch has `batch_size` rows.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        steps: Callable[[int, int], Sequence[Step]],
        *,
        max_pixels: int | None = None,
    ):
        if not callable(steps):
            raise OptionTypeError(f"`steps` is {steps!r}: expected a function of height and width, which returns a list of steps")
        #: Height and width of each shape in pixels.
        self.shapes = [(whole("height", height, 1, 2**32 - 1), whole("width", width, 1, 2**32 - 1)) for height, width in shapes]
        if not self.shapes:
            raise OptionError("`shapes` is empty: expected at least one")
        #: The steps of each shape.
        self.steps = [steps(height, width) for height, width in self.shapes]
        if any(isinstance(one, Mapping) for one in self.steps):
            raise OptionError("`buckets`: several views have several shapes; give a list of steps")
        self._function()
        #: Pixels of a batch, at most.
        self.max_pixels = None if max_pixels is None else whole("max_pixels", max_pixels, 1)

    def _json(self) -> dict[str, Any]:
        return {"shapes": self.shapes, "steps": [views_of(steps)[0]["steps"] for steps in self.steps], "max_pixels": self.max_pixels}

    def _function(self) -> Callable[..., Any] | None:
        """Returns the function at the end of the steps of every shape."""
        functions = [function_of(steps) for steps in self.steps]
        if any(function is not functions[0] for function in functions):
            raise OptionError("`buckets`: the steps of the shapes end with different functions: give the same one to each")
        return functions[0]

    def __repr__(self) -> str:
        return f"AspectRatioBuckets({self.shapes})"


def shapes_within(pixels: int, step: int, max_ratio: int = 2) -> list[tuple[int, int]]:
    """Returns every shape (height, width) whose sides are multiples of `step` pixels, whose area is at most `pixels`, whose
    longer side is at most `max_ratio` times the shorter one, and of which no side can grow by a step.

    With `step` the side of a patch of a vision transformer, all shapes have about the same number of patches.
    """
    step = whole("step", step, 1, 2**16)
    cells = whole("pixels", pixels, 1) // step**2
    if not 1 <= cells < 2**32:
        raise OptionError(f"`pixels` is {pixels}: expected at least one square of `step`, {step} x {step} pixels")
    return _shardtool.shapes_within(step, cells, whole("max_ratio", max_ratio, 1, 2**32 - 1))
