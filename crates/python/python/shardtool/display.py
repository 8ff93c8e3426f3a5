"""Rich representations for notebooks: HTML without scripts and style sheets."""

from __future__ import annotations

import base64
import copy
import html
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ._shardtool import image_html
from .checks import whole
from .drawing import colored, measured, objects_of
from .errors import OptionTypeError

__all__ = ["Html", "Record", "show", "stats_html"]

#: Characters of a value that are shown, and of several values how many.
_TEXT = 200
_VALUES = 8
#: Bytes of a byte string that a representation has.
_BYTES = 16
_FIGURE = "margin:0;font-size:11px;line-height:1.3;text-align:center"


class Html:
    """HTML that a notebook shows; `str()` is its text."""

    def __init__(self, text: str):
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<shardtool.Html of {len(self._text)} characters: the last line of a notebook's cell shows it>"


class Record(dict[str, Any]):
    """A record of a split: a `dict` with `key`, `image` (bytes as stored, or `None`), `label` (class id, or `None`) and
    `features` (all others by name: a value, or a list). A notebook shows its image and values."""

    __slots__ = ("classes",)

    #: The names of the classes of its split, by which a `Writer` finds its own ids.
    classes: tuple[str, ...]

    def copy(self) -> Record:
        """Returns a record with the same members and classes."""
        return copy.copy(self)

    def __repr__(self) -> str:
        return f"Record({_short(dict(self))})"

    def _repr_html_(self) -> str:
        values = {"key": self.get("key"), "label": self.get("label"), **(self.get("features") or {})}
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(name)}</td><td style='text-align:left'>{_value(value)}</td></tr>"
            for name, value in values.items()
            if value is not None
        )
        image = self.get("image")
        return f"{image_html(image) if image else ''}<table>{rows}</table>"


def _short(value: Any) -> str:
    """Returns a representation in which long texts and lists are cut."""
    match value:
        case dict():
            return "{" + ", ".join(f"{name!r}: {_short(part)}" for name, part in value.items()) + "}"
        case bytes() if len(value) > _BYTES:
            return f"<{len(value):,} bytes: {value[:_BYTES]!r}…>"
        case str() if len(value) > _TEXT:
            return f"<{len(value):,} characters: {value[:_TEXT]!r}…>"
        case list() if len(value) > _VALUES:
            return f"[{', '.join(map(_short, value[:_VALUES]))}, … {len(value):,} values]"
        case list():
            return f"[{', '.join(map(_short, value))}]"
    return repr(value)


def show(batch: Mapping[str, Any], n: int = 16) -> Html:
    """Returns pictures of the first `n` rows of a batch for a notebook: as the last line of a cell, it shows them.

    Takes a batch of `Loader`, or of `shardtool.torch` or `shardtool.jax` once it is in host memory. Batches stay plain dicts, since
    frameworks that take nested containers (JAX, PyTorch) know no other. Images are grey or RGB, `[N, H, W, C]` or
    `[N, C, H, W]`; values other than uint8 are scaled from the smallest to the largest of the batch. Clips show their first
    frame. The views of a batch are shown side by side. The boxes, masks and keypoints of `Objects` are drawn on the images, in the
    colours of their classes; label maps, depths, flow and normals of the same size are shown next to them.
    """
    if not isinstance(batch, Mapping):
        raise OptionTypeError(f"`batch` is {type(batch).__name__}: expected a batch, which is a dict of arrays")
    arrays = {name: _array(value) for name, value in batch.items()}
    views = {name: _images(array) for name, array in arrays.items() if array is not None and _is_images(name, array)}
    labels, valid = arrays.get("label"), arrays.get("valid")
    rows = min([whole("n", n, 0), *(len(images) for images in views.values())]) if views else 0
    known = {name: array for name, array in arrays.items() if array is not None and views}
    maps: dict[str, tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]]
    maps = {name: (colored, array) for name, array in known.items() if _is_labels(array, views)}
    maps |= {name: (measured, array) for name, array in known.items() if _is_measured(array, views)}
    figures = []
    for row in range(rows):
        objects = objects_of(batch, row)
        shown = {name: images[row] if objects is None else objects.drawn(images[row]) for name, images in views.items()}
        shown |= {name: draw(array[row]) for name, (draw, array) in maps.items()}
        pictures = "".join(
            f'<img src="data:image/png;base64,{base64.b64encode(_png(image)).decode()}" alt="{html.escape(name)}" '
            f'title="{html.escape(name)}" style="display:inline-block;max-height:140px;border-radius:5px;margin:1px">'
            for name, image in shown.items()
        )
        label = "" if labels is None or labels.ndim == 0 else f"{html.escape(str(labels[row].tolist()))[:40]}"
        filler = " (filler)" if valid is not None and valid.ndim == 1 and not valid[row] else ""
        figures.append(f'<figure style="{_FIGURE}">{pictures}<br>{label}{filler}</figure>')
    table = "".join(
        f"<tr><td style='text-align:left'>{html.escape(str(name))}</td><td style='text-align:left'>{_kind(batch[name], array)}</td></tr>"
        for name, array in arrays.items()
    )
    grid = f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(figures)}</div>' if figures else ""
    return Html(f"{grid}<table>{table}</table>")


def stats_html(stats: Mapping[str, Any]) -> str:
    """Returns what bounds the rate, and a bar for each stage."""
    most = max((stage["seconds"] for stage in stats["stages"]), default=0) or 1
    rows = "".join(
        f"<tr><td style='text-align:left'>{html.escape(stage['stage'])}</td><td>{stage['seconds']:.2f} s</td>"
        f"<td>{stage['count']}</td><td style='text-align:left'><div style='height:9px;border-radius:2px;background:#6f86e8;"
        f"width:{220 * stage['seconds'] / most:.0f}px'></div></td></tr>"
        for stage in stats["stages"]
    )
    return (
        f"<p>{html.escape(stats['verdict'], quote=False)}</p>"
        f"<table><tr><th>stage</th><th>time</th><th>times</th><th></th></tr>{rows}</table>"
        f"<p>memory budget {stats['memory']['budget'] / 2**20:.1f} MiB; {stats['bad_samples']} bad samples</p>"
    )


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        text = value[:_TEXT].decode(errors="replace")
        readable = len(value) <= _TEXT and text.isprintable()
        return html.escape(text) if readable else f"<i>{len(value):,} bytes</i>"
    if isinstance(value, (list, tuple)):
        more = f", … <i>{len(value):,} values</i>" if len(value) > _VALUES else ""
        return ", ".join(_value(one) for one in value[:_VALUES]) + more
    text = str(value)
    return html.escape(text if len(text) <= _TEXT else text[:_TEXT] + "…")


def _array(value: Any) -> np.ndarray | None:
    """Returns a value of a batch in host memory as an array, else `None`."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        # numpy has no bfloat16.
        value = value.float() if "bfloat16" in str(value.dtype) else value
    if not isinstance(value, np.ndarray) and not hasattr(value, "__array__"):
        return None
    try:
        array = np.asarray(value)
        return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    except (TypeError, ValueError, RuntimeError):
        return None


def _is_images(name: str, array: np.ndarray) -> bool:
    return name.startswith("image") and array.ndim in (4, 5) and array.size > 0 and (array.shape[-1] in (1, 3) or array.shape[-3] in (1, 3))


def _is_labels(array: np.ndarray, views: Mapping[str, np.ndarray]) -> bool:
    """Returns whether an array holds label maps of the size of the images."""
    shapes = [images.shape[:3] for images in views.values()]
    return array.dtype in (np.uint8, np.uint16, np.int32) and array.ndim == 3 and array.shape in shapes


def _is_measured(array: np.ndarray, views: Mapping[str, np.ndarray]) -> bool:
    """Returns whether an array holds depths, a flow or normals of the size of the images."""
    shapes = [images.shape[:3] for images in views.values()]
    if array.dtype.kind != "f" or array.ndim not in (3, 4):
        return False
    if array.ndim == 3:
        return array.shape in shapes
    in_planes = (array.shape[0], *array.shape[2:])
    return (array.shape[-1] in (2, 3) and array.shape[:3] in shapes) or (array.shape[1] in (2, 3) and in_planes in shapes)


def _images(array: np.ndarray) -> np.ndarray:
    """Returns images as `[N, H, W, C]` uint8."""
    if array.ndim == 5:
        array = array[:, 0]
    if array.shape[-1] not in (1, 3):
        array = np.moveaxis(array, 1, -1)
    if array.dtype == np.uint8:
        return array
    values = array.astype(np.float32)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    scaled: np.ndarray = (values - low) * (255 / max(high - low, 1e-12))
    pixels: np.ndarray = np.nan_to_num(scaled).clip(0, 255).round().astype(np.uint8)
    return pixels


def _kind(value: Any, array: np.ndarray | None) -> str:
    if array is not None:
        return html.escape(f"{array.dtype} {list(array.shape)}")
    shape = getattr(value, "shape", None)
    if isinstance(shape, Sequence):
        return html.escape(f"{getattr(value, 'dtype', '')} {list(shape)} on {getattr(value, 'device', 'a device')}")
    return html.escape(type(value).__name__)


def _png(image: np.ndarray) -> bytes:
    """Encodes `[H, W, 1 or 3]` uint8 as PNG."""
    height, width, channels = image.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + body
