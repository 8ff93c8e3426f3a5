"""The objects in an image, as COCO and Hugging Face's datasets write them: a dict of lists, or a list of dicts, with `bbox`
and other members. Converts them to the same features as `pack`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .errors import OptionError

__all__ = ["AREA", "BBOX", "CLASS", "KEYPOINTS", "SEGMENTATION", "Boxes", "Pixels", "flatten_objects", "is_objects"]

#: `[n, 4]` float: left, top, right, bottom, as fractions of the image's width and height.
BBOX = "image/object/bbox"
#: `[n]` int64: the class of each object.
CLASS = "image/object/class/label"
_CLASS_TEXT = "image/object/class/text"
#: `[n, k, 3]` float: x and y as fractions, and visibility.
KEYPOINTS = "image/object/keypoints"
#: `[n]` float or int64: the area of each object.
AREA = "image/object/area"
#: `[n]` bytes: a JSON text with the polygons or run lengths of each object.
SEGMENTATION = "image/object/segmentation"
#: Members that hold classes; the first one that exists is used.
_CLASS_MEMBERS = ("category", "category_id", "label", "labels", "class")

#: Left, top, width, height; left, top, right, bottom; or centre, width, height.
Boxes = Literal["xywh", "xyxy", "cxcywh"]


@dataclass(frozen=True)
class Pixels:
    """Coordinates in pixels of the image, which are stored as fractions of its size."""

    values: np.ndarray


def is_objects(value: Any) -> bool:
    """Returns whether a value describes objects."""
    if isinstance(value, Mapping):
        return "bbox" in value and all(isinstance(member, (list, tuple, np.ndarray)) for member in value.values())
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, Mapping) and "bbox" in item for item in value)
    return False


def flatten_objects(value: Any, boxes: Boxes, features: Mapping[str, Any] | None) -> dict[str, Any]:
    """Converts objects to features by name. `features` are those of the writer, if they are known."""
    members = _members(value)
    count = len(members["bbox"])
    for name, values in members.items():
        if len(values) != count:
            raise OptionError(f"`objects`: `{name}` has {len(values)} values: expected {count}, one for each box")
    class_member = next((name for name in _CLASS_MEMBERS if name in members), None)
    flat: dict[str, Any] = {}
    for name, values in members.items():
        if name == "bbox":
            flat[BBOX] = Pixels(_corners(values, boxes))
        elif name == "keypoints":
            points = _coordinates("keypoints", values, 3)
            flat[KEYPOINTS] = Pixels(points)
            flat[f"{KEYPOINTS}/shape"] = np.array([count, points.size // 3 // max(count, 1), 3], np.int64)
        elif name == class_member:
            text = any(isinstance(item, str) for item in values)
            if not values:
                text = features is not None and CLASS not in features and _CLASS_TEXT in features
            flat[_CLASS_TEXT if text else CLASS] = values if text else np.asarray(values or [], _class_type(values))
        elif name == "segmentation" or any(_is_nested(item) for item in values):
            # Polygons, run lengths and the like: one JSON text for each object.
            flat[f"image/object/{name}"] = [_json(item) for item in values]
        else:
            flat[f"image/object/{name}"] = values
    return flat


def _members(value: Any) -> dict[str, list[Any]]:
    """Returns the members of objects, each a list with one value for each object."""
    if isinstance(value, Mapping):
        return {str(name): _plain(values) for name, values in value.items()}
    names = dict.fromkeys(name for item in value for name in item)
    return {str(name): [_plain(item.get(name)) for item in value] for name in names}


def _plain(value: Any) -> Any:
    """Converts arrays and tuples to lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _json(value: Any) -> str:
    """Returns the JSON text of a member of an object. The compressed run lengths of pycocotools are bytes."""
    try:
        return json.dumps(value, separators=(",", ":"), default=_json_value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise OptionError(f"`objects`: a member of an object is {value!r:.80}, which JSON does not hold: {error}") from error


def _json_value(value: Any) -> Any:
    """Returns a value that JSON has for one that it does not have."""
    if isinstance(value, (bytes, bytearray)):
        return value.decode("ascii")
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__}: expected a number, text, list or mapping")


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(item, (list, Mapping)) for item in value)
    )


def _class_type(values: list[Any]) -> type:
    if not all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        raise OptionError(f"`objects`: classes are {values!r:.80}: expected whole numbers, or names")
    return np.int64


def _coordinates(name: str, values: list[Any], group: int) -> np.ndarray:
    """Returns an array `[n, k]` with k numbers for each object, k being a multiple of `group`."""
    try:
        given = np.asarray(values, np.float64) if values else np.zeros((0, group), np.float64)
        # Points of two numbers are not points of three.
        fits = given.ndim < 3 or given.shape[2] == group
        array = given.reshape(len(values), -1) if values and fits else given if fits else np.zeros((1, 0), np.float64)
    except (TypeError, ValueError):
        array = np.zeros((1, 0), np.float64)
    if array.shape[1] % group or not array.shape[1]:
        expected = "four numbers" if group == 4 else "x, y and visibility of the same points"
        raise OptionError(f"`objects`: `{name}` is {values!r:.80}: expected {expected} for each object")
    return array


def _corners(values: list[Any], boxes: Boxes) -> np.ndarray:
    """Returns left, top, right and bottom of each box."""
    array = _coordinates("bbox", values, 4)
    if array.shape[1] != 4:
        raise OptionError(f"`objects`: `bbox` is {values!r:.80}: expected four numbers for each object")
    if boxes == "xyxy":
        return array
    at, size = array[:, :2], array[:, 2:]
    left_top = at if boxes == "xywh" else at - size / 2
    return np.concatenate([left_top, left_top + size if boxes == "xywh" else at + size / 2], axis=1)
