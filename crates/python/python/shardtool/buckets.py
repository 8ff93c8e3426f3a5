"""Batches of one shape each, from images of many aspect ratios or samples of many lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from . import _shardtool
from .checks import instance, real, whole
from .errors import OptionError, OptionTypeError
from .transforms import Step, Views
from .transforms.views import native_views

__all__ = ["AspectRatioBuckets", "LengthBuckets", "shapes_within"]


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
        #: Pixels of a batch, at most.
        self.max_pixels = None if max_pixels is None else whole("max_pixels", max_pixels, 1)

    def _native(self) -> dict[str, Any]:
        if any(isinstance(steps, Views) for steps in self.steps):
            raise OptionError("`buckets`: `Views` have several shapes; give a list of steps")
        views = [native_views(steps) for steps in self.steps]
        functions = [function for _, function in views]
        if any(function is not functions[0] for function in functions):
            raise OptionError("`buckets`: the steps of the shapes end with different functions: give the same one to each")
        steps = [named[0][1] for named, _ in views]
        return {"shapes": self.shapes, "steps": steps, "lengths": None, "budget": self.max_pixels, "padded": []}

    def __repr__(self) -> str:
        return f"AspectRatioBuckets({self.shapes})"


class LengthBuckets:
    """Samples of similar lengths share a batch: each sample goes to the smallest bound that is at least its length, as a
    column of the index says.

    Parameters
    ----------
    feature
        The integer feature with the length of each sample.
    bounds
        The bounds, ascending.
    max_tokens
        Tokens of a batch, at most: a batch has as many rows as fit at its bound, at least 1 and at most `batch_size`.
        Default: every batch has `batch_size` rows.
    longer
        What happens to samples that are longer than the last bound: `"error"`, or `"cut"`: they belong to the last bucket.
    padded
        Columns of numbers that become `[N, bound]` arrays, and the number after the values of a row.
    """

    def __init__(
        self,
        feature: str,
        bounds: Sequence[int],
        *,
        max_tokens: int | None = None,
        longer: Literal["error", "cut"] = "error",
        padded: Mapping[str, float] | None = None,
    ):
        #: The feature with the lengths.
        self.feature = instance("feature", feature, (str,), "the name of a feature")
        #: The bounds.
        self.bounds = [whole("bounds", bound, 1, 2**32 - 1) for bound in bounds]
        #: Tokens of a batch, at most.
        self.max_tokens = None if max_tokens is None else whole("max_tokens", max_tokens, 1)
        if longer not in ("error", "cut"):
            raise OptionError(f'`longer` is {longer!r}: expected "error" or "cut"')
        #: What happens to longer samples.
        self.longer = longer
        padded = {} if padded is None else padded
        instance("padded", padded, (Mapping,), "a dict of columns and numbers")
        #: Columns that become arrays, and what is after the values of a row.
        self.padded = {str(column): real(f"padded[{column!r}]", fill) for column, fill in padded.items()}

    def _native(self) -> dict[str, Any]:
        lengths = (self.feature, self.bounds, self.longer == "cut")
        padded = list(self.padded.items())
        return {"shapes": [], "steps": [], "lengths": lengths, "budget": self.max_tokens, "padded": padded}

    def __repr__(self) -> str:
        return f"LengthBuckets({self.feature!r}, {self.bounds})"


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
