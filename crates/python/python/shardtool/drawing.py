"""What a batch has of an image's objects, drawn on its pixels: masks, boxes, points. Label maps, depths, flow and normals as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["Objects", "colored", "measured", "objects_of"]

#: Colours that colour-blind people distinguish (Paul Tol's scheme *muted*); class n has the colour n modulo their number.
PALETTE = np.array(
    [
        (51, 34, 136), (204, 102, 119), (17, 119, 51), (221, 204, 119), (136, 204, 238),
        (136, 34, 85), (68, 170, 153), (153, 153, 51), (170, 68, 153), (221, 221, 221),
    ],
    np.uint8,
)  # fmt: skip
#: Masks of an image that are drawn, at most.
_MOST = 200
#: Share of a mask's colour in its pixels.
_OPACITY = 0.45


class Objects:
    """The objects in one image."""

    def __init__(self, boxes: np.ndarray, labels: np.ndarray, masks: np.ndarray | None, points: np.ndarray | None):
        self._boxes, self._masks, self._points = boxes, masks, points
        known = len(labels) == len(boxes) and labels.dtype.kind in "iu"
        self._colors = PALETTE[(labels if known else np.zeros(len(boxes), np.int64)) % len(PALETTE)]

    def drawn(self, image: np.ndarray) -> np.ndarray:
        """Returns `[H, W, 3]` uint8 with the objects on an image, `[H, W, 1 or 3]` uint8."""
        picture = np.repeat(image, 3, 2) if image.shape[2] == 1 else image.copy()
        height, width, _ = picture.shape
        if self._masks is not None and self._masks.shape[1:] == (height, width):
            for mask, box, color in zip(self._masks[:_MOST], self._boxes, self._colors, strict=False):
                left, top, right, bottom = _inside(box, width, height)
                inside, covered = picture[top:bottom, left:right], mask[top:bottom, left:right] > 0
                mixed = inside[covered] * (1 - _OPACITY) + color * _OPACITY
                inside[covered] = mixed.round().astype(np.uint8)
        line = max(1, round(max(height, width) / 160))
        for box, color in zip(self._boxes, self._colors, strict=True):
            left, top, right, bottom = _inside(box, width, height)
            for part in (
                np.s_[top : top + line, left:right], np.s_[max(bottom - line, top) : bottom, left:right],
                np.s_[top:bottom, left : left + line], np.s_[top:bottom, max(right - line, left) : right],
            ):  # fmt: skip
                picture[part] = color
        for x, y, visibility in () if self._points is None else self._points:
            if visibility > 0:
                left, top = int(x), int(y)
                picture[max(top - line, 0) : top + line + 1, max(left - line, 0) : left + line + 1] = (255, 179, 0)
        return picture


def objects_of(batch: Mapping[str, Any], row: int) -> Objects | None:
    """Returns the objects of a row of a batch in host memory; `None` if it has none."""
    boxes = _row(batch.get("boxes"), row)
    if boxes is None or boxes.ndim != 2 or boxes.shape[1] != 4:
        return None
    labels = _row(batch.get("labels"), row)
    return Objects(boxes, np.zeros(0, np.int64) if labels is None else labels, _row(batch.get("masks"), row), _row(batch.get("keypoints"), row))


def colored(labels: np.ndarray) -> np.ndarray:
    """Returns a label map `[H, W]` as `[H, W, 3]` uint8: label 0 is black, the value that losses ignore, the largest one of the type
    or -1 of int32, is white."""
    picture: np.ndarray = PALETTE[labels % len(PALETTE)]
    picture[labels == 0] = 0
    picture[labels == (-1 if labels.dtype == np.int32 else np.iinfo(labels.dtype).max)] = 255
    return picture


def measured(values: np.ndarray) -> np.ndarray:
    """Returns depths or disparities `[H, W]`, a flow `[H, W, 2]` or `[2, H, W]`, or normals `[H, W, 3]` or `[3, H, W]`, as `[H, W, 3]`
    uint8. Depths are grey, from the smallest to the largest without the two hundredths at each end. The colour of a flow is its
    direction, and full where it is long. Normals have the colours by which datasets code them in 8 bits. What is not finite is white,
    and so is a normal of zeros."""
    if values.ndim == 3:
        vectors = values if values.shape[2] in (2, 3) else values.transpose(1, 2, 0)
        return _flow(vectors) if vectors.shape[2] == 2 else _normals(vectors)
    values = values.astype(np.float64)
    known = np.isfinite(values)
    low, high = np.percentile(values[known], (2, 98)) if known.any() else (0, 0)
    scaled = np.clip((np.where(known, values, high) - low) / max(high - low, 1e-12), 0, 1) * 255
    return np.repeat(np.where(known, scaled, 255).round().astype(np.uint8)[..., None], 3, 2)


def _normals(vectors: np.ndarray) -> np.ndarray:
    known = np.isfinite(vectors).all(-1) & (vectors != 0).any(-1)
    coded = (np.where(known[..., None], vectors, 1).astype(np.float64) + 1) / 2 * 255
    return coded.round().clip(0, 255).astype(np.uint8)


def _flow(vectors: np.ndarray) -> np.ndarray:
    known = np.isfinite(vectors).all(-1)
    right, down = np.moveaxis(np.where(known[..., None], vectors, 0).astype(np.float64), -1, 0)
    length = np.hypot(right, down)
    longest = max(np.percentile(length[known], 98) if known.any() else 0, 1e-12)
    # Three cosines a third of a turn apart: each direction has another hue.
    angle = np.arctan2(down, right)[..., None] - np.array([0, 1, 2]) * (2 * np.pi / 3)
    hue = 0.5 + 0.5 * np.cos(angle)
    full = np.clip(length / longest, 0, 1)[..., None]
    picture: np.ndarray = ((1 - full + full * hue) * 255).round().astype(np.uint8)
    picture[~known] = 255
    return picture


def _inside(box: np.ndarray, width: int, height: int) -> tuple[int, int, int, int]:
    left, top = np.floor(box[:2]).astype(int)
    right, bottom = np.ceil(box[2:]).astype(int)
    return max(left, 0), max(top, 0), min(right, width), min(bottom, height)


def _row(value: Any, row: int) -> np.ndarray | None:
    """Returns the values of a row of a ragged column in host memory."""
    parts = (getattr(value, "offsets", None), getattr(value, "values", None))
    if any(part is None or callable(part) for part in parts):
        return None
    try:
        offsets, values = (np.asarray(part.detach().cpu() if hasattr(part, "detach") else part) for part in parts)  # type: ignore[union-attr]
    except (TypeError, ValueError, RuntimeError):
        return None
    return values[offsets[row] : offsets[row + 1]] if offsets.ndim == 1 and len(offsets) > row + 1 else None
