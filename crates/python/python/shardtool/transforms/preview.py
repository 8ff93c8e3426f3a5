"""Applies steps to an image in memory: to see what they do, and which sample of which epoch got what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _shardtool
from ..checks import whole
from ..errors import OptionError, OptionTypeError
from .step import Transform
from .views import Step, native_views

__all__ = ["Preview", "apply_operations", "preview"]


class Preview(NamedTuple):
    """An image after some steps."""

    #: `[H, W, 3]` u8.
    image: np.ndarray
    #: The boxes that are left: left, top, right, bottom in pixels, `[n, 4]` float32.
    boxes: np.ndarray
    #: Which of the given boxes these are, `[n]` int64.
    kept: np.ndarray
    #: What was drawn: `geometry`, which pixels are resized to which size, and `stages`, the operations after it.
    plan: dict[str, Any]


def preview(
    image: np.ndarray,
    steps: Sequence[Transform] | Mapping[str, Sequence[Transform]],
    *,
    seed: int = 0,
    epoch: int = 0,
    position: int = 0,
    view: int = 0,
    boxes: Any = None,
) -> Preview:
    """Applies the steps to an image, with the random numbers that a loader uses for one sample.

    Parameters
    ----------
    image
        u8 RGB, `[H, W, 3]`.
    steps
        Steps, or a dict of the steps of several views, without a function.
    seed, epoch, position
        Seed of the loader, number of the epoch, and the sample's position in its source: its id, unless the loader has a
        `source`.
    view
        Number of the view.
    boxes
        Left, top, right and bottom of each box in pixels of the image, `[n, 4]`.
    """
    # The views of an image, `st.Views`.
    views, function = native_views(getattr(steps, "views", steps))
    if function is not None:
        raise OptionError("`steps` end with a function: preview the steps before it")
    if not 0 <= view < len(views):
        raise OptionError(f"`view` is {view}: expected 0 to {len(views) - 1}")
    given = np.asarray([] if boxes is None else boxes, np.float64).reshape(-1, 4)
    sample = (whole("seed", seed), whole("epoch", epoch), whole("position", position))
    number = None if len(views) == 1 else view
    pixels, size, plan, mapped, kept = _shardtool.preview(
        _pixels(image), image.shape[:2], views[view][1], sample, number, given.tolist()
    )
    result = np.frombuffer(pixels, np.uint8).reshape(*size, 3).copy()
    return Preview(result, np.asarray(mapped, np.float32).reshape(-1, 4), np.asarray(kept, np.int64), json.loads(plan))


def apply_operations(image: np.ndarray, operations: Sequence[Any]) -> np.ndarray:
    """Applies operations with given parameters to an RGB or grey image, `[H, W, 3]` or `[H, W, 1]`, such as the stages of a
    `Preview`: `[{"brightness": {"factor": 1.2}}, "invert"]`. To an image of uint8, or of uint16 those that only move pixels."""
    pixels = _pixels(image, (1, 3), ("uint8", "uint16"))
    applied = _shardtool.apply_operations(pixels, image.shape, json.dumps(list(operations)))
    return np.frombuffer(applied, image.dtype).reshape(image.shape).copy()


def _pixels(
    image: np.ndarray, channels: tuple[int, ...] = (3,), dtypes: tuple[str, ...] = ("uint8",)
) -> bytes:
    fits = isinstance(image, np.ndarray) and image.dtype in dtypes and image.ndim == 3 and image.shape[2] in channels
    if not fits:
        found = f"{image.dtype} {list(image.shape)}" if isinstance(image, np.ndarray) else type(image).__name__
        raise OptionTypeError(f"`image`: expected a uint8 array [height, width, 3], found {found}")
    return image.tobytes()
