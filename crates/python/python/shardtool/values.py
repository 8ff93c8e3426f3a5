"""Converts values of a program to features and images of a record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from typing import Any, Literal, TypeAlias

import numpy as np

from .arrays import Array, stored_array
from .errors import OptionError
from .objects import AREA, BBOX, KEYPOINTS, SEGMENTATION, Boxes, Pixels, flatten_objects, is_objects

__all__ = ["Kind", "convert_features", "infer_features", "to_image"]

#: Features whose shape is known from the number of their values.
_FIXED = (BBOX,)
#: Features that are float32 (format-spec.md), whatever holds their numbers exactly.
_FLOAT32 = (AREA, BBOX, KEYPOINTS)
#: The number of the EXIF tag that says how an image is turned to be shown, 1 to 8.
_EXIF_ORIENTATION = 0x0112
#: The member of a sample that describes the objects in its image.
_OBJECTS = "objects"

Kind: TypeAlias = Literal["int64", "float", "bytes", "float64", "uint64"]
#: A feature's name, type, and values: numbers as little-endian bytes, or a list of byte strings. Coordinates in pixels have
#: the type `pixels`, and are stored as floats. An array is its type, shape and elements.
Converted: TypeAlias = "tuple[str, Kind | Literal['pixels', 'array'], bytes | list[bytes] | tuple[str, list[int], bytes]]"


def infer_features(sample: Mapping[str, Any], skip: tuple[str, ...], boxes: Boxes) -> dict[str, Kind]:
    """Returns the features of a sample with their types, without the members in `skip`."""
    features: dict[str, Kind] = {}
    for name, value in _members(sample, skip, boxes, None):
        for part, kind, _ in _flat(name, value, None):
            # Without declared types there are no arrays.
            is_float32 = kind in ("pixels", "array") or (kind == "float64" and part in _FLOAT32)
            # Texts also where the first sample has no object.
            kind = "bytes" if part == SEGMENTATION else kind
            features[part] = "float" if is_float32 else kind  # type: ignore[assignment]
    return features


def _members(
    sample: Mapping[str, Any], skip: tuple[str, ...], boxes: Boxes, features: Mapping[str, Kind | Array] | None
) -> Iterator[tuple[str, Any]]:
    """Yields names and values of a sample's features."""
    for name, value in sample.items():
        if name in skip or value is None:
            continue
        if name == _OBJECTS and _is_empty(value) and _OBJECTS not in (features or {}):
            if features is None:
                raise OptionError(
                    "`objects` is empty in the first sample, which says what features there are: write one with objects first, or name "
                    'the features, such as features={"image/object/bbox": "float", "image/object/class/label": "int64"} for class '
                    'ids, or "image/object/class/text": "bytes" for names'
                )
            yield BBOX, []
        elif name == _OBJECTS and is_objects(value):
            yield from flatten_objects(value, boxes, features).items()
        else:
            yield name, value


def _is_empty(value: Any) -> bool:
    return value.size == 0 if isinstance(value, np.ndarray) else isinstance(value, (list, tuple, Mapping)) and not value


def convert_features(
    sample: Mapping[str, Any],
    skip: tuple[str, ...],
    boxes: Boxes,
    features: Mapping[str, Kind | Array],
    inferred: Set[str] = frozenset(),
) -> list[Converted]:
    """Converts a sample's values to the types of `features`. Those of the names in `inferred` were inferred, and are not rounded."""
    converted = []
    if boxes != "xyxy" and boxes != "xywh" and sample.get(BBOX) is not None:
        raise OptionError(f'`{BBOX}` holds left, top, right and bottom as fractions: for `boxes="{boxes}"`, give `objects` with `bbox`')
    for name, value in _members(sample, skip, boxes, features):
        if name not in features:
            raise OptionError(
                f"feature `{name}` is not among the writer's features {sorted(features)}; "
                "name it with its type in `features` when the writer is made"
            )
        try:
            parts = _flat(name, value, features)
        except Exception as error:
            error.add_note(f"while converting the feature {name!r}")
            raise
        for part, kind, values in parts:
            if part != name and part in sample and not _is_nested(value):
                # A flat list, whose shape the sample has itself.
                continue
            if part in inferred and part not in _FLOAT32 and kind in ("float", "float64"):
                _check_exact(part, kind, value)
            if part not in features:
                raise OptionError(
                    f"feature `{name}` has a list of lists or an array of several dimensions; "
                    f'add "{part}": "int64" to `features`'
                )
            converted.append((part, kind, values))
    return converted


def _is_nested(value: Any) -> bool:
    first = value[0] if isinstance(value, (list, tuple)) and value else None
    return isinstance(first, (list, tuple, np.ndarray)) or getattr(value, "ndim", 0) > 1


def _check_exact(name: str, kind: Kind, value: Any) -> None:
    """Refuses numbers that the type of the first sample's value would round."""
    given: Any = np.asarray(_ravel(value, 16) if isinstance(value, (list, tuple)) else value)
    if given.dtype.kind == "f" and (kind == "float64" or given.dtype.itemsize < 8 or fits_float32(given)):
        return
    if given.dtype.kind in "bui":
        rounded = given.astype(_STORED[kind])
        if (rounded == given).all() and all(int(a) == int(b) for a, b in zip(rounded.flat, given.flat, strict=True)):
            return
    declared = f'features={{"{name}": "float64"}}'
    raise OptionError(
        f"feature `{name}`: {kind}, the type of the first sample's value, would round {value!r:.80}; give its type: "
        f'{declared}, or "{kind}" to round'
    )


def _flat(name: str, value: Any, features: Mapping[str, Kind | Array] | None) -> list[Converted]:
    """Converts a value to one feature, or to two if it is nested: its values, and their shape or lengths."""
    kind = None if features is None else features[name]
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise OptionError(f"`{name}` is a masked array: fill its masked values, which a record does not hold")
    if isinstance(kind, Array):
        return [(name, "array", stored_array(name, value))]
    if isinstance(value, Pixels):
        return [(name, "pixels", value.values.astype("<f4").tobytes())]
    if name in _FIXED and isinstance(value, (list, tuple, np.ndarray)):
        value = np.asarray(value, np.float32).ravel()
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return [(name, *_leaves([value], kind, name))]
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        leaves = _leaves(value.ravel(), kind, name)
        nested = value.ndim > 1 or (features is not None and f"{name}/shape" in features)
        return [(name, *leaves), *([_numbers(f"{name}/shape", value.shape)] if nested else [])]
    if not isinstance(value, (list, tuple)):
        return [(name, *_leaves([value], kind, name))]
    ragged = features is not None and f"{name}/lengths" in features
    shape = _shape(value)
    if ragged or (shape is None and features is None):
        if not all(isinstance(row, (list, tuple, np.ndarray)) for row in value):
            raise OptionError(f"feature `{name}` mixes lists and values")
        leaves = _leaves([leaf for row in value for leaf in row], kind, name)
        return [(name, *leaves), _numbers(f"{name}/lengths", [len(row) for row in value])]
    if shape is None:
        raise OptionError(
            f'feature `{name}` has lists of different lengths; declare "{name}/lengths": "int64" in `features`'
        )
    leaves = _leaves(_ravel(value, len(shape)), kind, name)
    nested = len(shape) > 1 or (features is not None and f"{name}/shape" in features)
    return [(name, *leaves), *([_numbers(f"{name}/shape", shape)] if nested else [])]


def _shape(value: Any) -> tuple[int, ...] | None:
    """Returns the shape of nested lists; `None` if they are ragged."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        return ()
    shapes = {_shape(item) for item in value}
    if len(shapes) > 1 or None in shapes:
        return None
    return (len(value), *(shapes.pop() or ())) if shapes else (0,)


def _ravel(value: Any, depth: int) -> list[Any]:
    """Returns the leaves of nested lists."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        return [value]
    return list(value) if depth <= 1 else [leaf for item in value for leaf in _ravel(item, depth - 1)]


def _numbers(name: str, values: Any) -> Converted:
    return name, "int64", np.asarray(list(values), "<i8").tobytes()


def _leaves(values: Any, kind: Kind | None, name: str) -> tuple[Kind, bytes | list[bytes]]:
    """Converts values to the declared type, or to one inferred from them."""
    texts = [isinstance(value, (str, bytes, bytearray, memoryview)) for value in values]
    if kind == "bytes" or (kind is None and texts and all(texts)):
        if not all(texts):
            raise OptionError(f"feature `{name}` is of type bytes: expected text or bytes, found {values!r:.80}")
        return "bytes", [value.encode() if isinstance(value, str) else bytes(value) for value in values]
    if any(texts):
        raise OptionError(f"feature `{name}`: expected {'numbers' if kind is None else kind}, found {values!r:.80}")
    array = _to_array(values, name)
    if array.size == 0:
        return kind or (_kind_of(array) if isinstance(values, np.ndarray) else "float"), b""
    if kind is None:
        typed = isinstance(values, np.ndarray) or any(isinstance(value, np.generic) for value in values)
        kind = _kind_of(array) if typed or array.dtype.kind != "f" or not fits_float32(array) else "float"
    return kind, _stored(array, kind, name, values)


#: numpy's type of each kind of numbers, as stored.
_STORED = {"int64": "<i8", "uint64": "<u8", "float": "<f4", "float64": "<f8"}


def _to_array(values: Any, name: str) -> np.ndarray:
    """Returns numbers as an array of a type that holds all of them exactly."""
    array = np.asarray(values)
    if not isinstance(values, np.ndarray) and array.dtype.kind in "fO" and array.size:
        # numpy makes floats of integers of which no type holds all.
        whole = [value for value in values if isinstance(value, (int, np.integer))]
        if len(whole) == len(values) or any(abs(int(value)) > 2**53 for value in whole):
            raise OptionError(f"feature `{name}`: no type holds all of {values!r:.80}: write them as text")
    if array.dtype.kind not in "buif":
        raise OptionError(f"feature `{name}`: expected numbers, text or bytes, found {values!r:.80}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise OptionError(f"feature `{name}` has numbers of type {array.dtype}: convert them to float64")
    return array


def _kind_of(array: np.ndarray) -> Kind:
    """Returns the kind of an array's type."""
    if array.dtype.kind == "f":
        return "float64" if array.dtype.itemsize == 8 else "float"
    return "uint64" if array.dtype == np.uint64 else "int64"


def fits_float32(array: np.ndarray) -> bool:
    """Returns whether float32 holds all numbers: exactly, or so that they read back as the same text of six digits."""
    exact = array.astype(np.float64).ravel()
    with np.errstate(over="ignore", under="ignore"):
        narrow = exact.astype(np.float32)
    other = ~((narrow == exact) | np.isnan(exact))
    normal = np.isfinite(narrow[other]) & (np.abs(narrow[other]) >= np.finfo(np.float32).tiny)
    return bool(normal.all()) and all(float(f"{value:.5e}") == value for value in exact[other].tolist())


def _stored(array: np.ndarray, kind: Kind, name: str, values: Any) -> bytes:
    """Converts numbers to a kind; only to float and float64 are they rounded."""
    whole = array.dtype.kind in "bui"
    if kind in ("int64", "uint64"):
        if not whole:
            raise OptionError(f"feature `{name}` is of type {kind}: expected integers, found {values!r:.80}")
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        bounds = np.iinfo(_STORED[kind])
        if low < bounds.min or high > bounds.max:
            outside = low if low < bounds.min else high
            raise OptionError(f"feature `{name}`: {outside} does not fit into {kind}, its type; give `features` another one")
    with np.errstate(over="ignore", under="ignore"):
        stored = array.astype(_STORED[kind])
    if kind == "float" and array.dtype != np.float32 and (np.isinf(stored) & np.isfinite(array)).any():
        raise OptionError(f"feature `{name}`: {values!r:.80} becomes infinite in float32, its type; give `features` \"float64\"")
    return stored.tobytes()


def to_image(image: Any) -> bytes | tuple[bytes, int, int, int] | None:
    """Returns an image as the bytes of its file, or as pixels, height, width and channels."""
    if image is None or isinstance(image, bytes):
        return image
    if isinstance(image, (bytearray, memoryview)):
        return bytes(image)
    if isinstance(image, (str, os.PathLike)):
        with open(image, "rb") as file:
            return file.read()
    if hasattr(image, "getbands") and hasattr(image, "convert"):
        image = _of_pil(image)
    if not (hasattr(image, "__array__") or hasattr(image, "__array_interface__")):
        raise OptionError(
            f"`image`: expected bytes of an image file, a path, a uint8 array or a PIL image, found {type(image).__name__}"
        )
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.ndim not in (2, 3):
        raise OptionError(
            f"`image`: expected uint8 [height, width] or [height, width, channels], "
            f"found {array.dtype} {list(array.shape)}"
        )
    height, width = array.shape[:2]
    channels = array.shape[2] if array.ndim == 3 else 1
    if channels not in (1, 2, 3, 4):
        raise OptionError(f"`image`: expected 1 to 4 channels in the last dimension, found {list(array.shape)}")
    return np.ascontiguousarray(array).tobytes(), height, width, channels


def _of_pil(image: Any) -> Any:
    """Converts a PIL image to a mode whose array is uint8."""
    if hasattr(image, "load"):
        # Pillow turns a TIFF when it reads the pixels.
        image.load()
    orientation = image.getexif().get(_EXIF_ORIENTATION, 1) if hasattr(image, "getexif") else 1
    if orientation in range(2, 9):
        raise OptionError(
            f"`image`: a PIL image with EXIF orientation {orientation}, which its pixels lack: give the bytes of the file, or "
            "`PIL.ImageOps.exif_transpose(image)` for the image as shown; if it was turned already, `del image.getexif()[0x0112]`"
        )
    if image.mode in ("L", "LA", "RGB", "RGBA"):
        return image
    if image.mode in ("I", "F") or image.mode.startswith("I;"):
        raise OptionError(
            f"`image`: a PIL image of mode {image.mode} has more than 8 bits a channel: give the bytes of a PNG or TIFF, which "
            "keep them (`image.save(file, \"PNG\")`), or pixels of 8 bits"
        )
    return image.convert("RGBA" if "transparency" in image.info else "RGB")
