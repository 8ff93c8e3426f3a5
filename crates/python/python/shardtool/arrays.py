"""Arrays of any number of dimensions: volumes, audio, embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .checks import instance, real, whole
from .errors import OptionError, OptionTypeError

__all__ = ["Array", "Arrays", "NativeArray", "native_arrays", "stored_array"]

#: Name, lengths of a chunk, codec and level.
NativeArray = tuple[str, list[int | None], str, int]

#: numpy's names of types, and those of `format-spec.md`.
_DTYPES = {
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    "bfloat16": "bf16",
    "bool": "bool",
}


@dataclass(frozen=True)
class Array:
    """The type of a feature that holds an array of numbers of any shape and numpy dtype: `features={"ct": Array()}` of a
    `Writer`, or `columns={"ct": Array()}` of `pack`, for a list's column of `.npy` files.

    The array is stored in chunks, each compressed by itself, so that a crop reads only the chunks that it meets.

    Parameters
    ----------
    chunk
        Length of a chunk in each dimension; `None` is the whole dimension. Default: chunks of at most 512 KiB with about
        equal sides. Chunks of about the size of the crops are best.
    codec
        `"zstd"` or `"raw"`.
    level
        Compression level of zstd, 1 to 22.
    """

    chunk: Sequence[int | None] | None = None
    codec: Literal["zstd", "raw"] = "zstd"
    level: int = 3

    def __post_init__(self) -> None:
        if self.chunk is not None:
            _lengths("chunk", self.chunk)
        if self.codec not in ("zstd", "raw"):
            raise OptionError(f'`codec` is {self.codec!r}: expected "zstd" or "raw"')
        whole("level", self.level, 1, 22)

    def _native(self, name: str) -> NativeArray:
        return name, [] if self.chunk is None else _lengths("chunk", self.chunk), self.codec, self.level


@dataclass(frozen=True)
class Arrays:
    """Arrays of each record that a `Loader` delivers: `arrays=Arrays("ct", crop=(32, 64, 64))`.

    Features of equal shape, such as a volume and its label map, get the same crop, flips and rotations. A batch has each as
    `[N, …]` of its stored type, by the feature's name; rows without a sample are zeros.

    Parameters
    ----------
    features
        A feature, or several with arrays of equal shape.
    crop
        Length of a row in each dimension; `None` is the whole dimension, which then must be the same in all records.
        Default: whole arrays, all of the same shape.
    random
        Whether the crop is at a random place, else in the middle.
    flip
        For each dimension, the probability that it is flipped.
    rotate90
        Two dimensions, or a list of such pairs: the plane is rotated by 0 to 3 quarter turns, as by `numpy.rot90`. The row
        must have the same length in both.
    pad_value
        The value around an array that is smaller than the crop; the array is then in the middle. One number for all
        features, or a dict. Default: such a record is a bad sample. With `image_axes`, the value outside the image, where it is
        padded or rotated. Default: 0.
    image_axes
        The dimensions that are the height and the width of the record's image: `(0, 1)` for `[H, W]` and `[H, W, C]`, `(1, 2)`
        for `[C, H, W]`. The arrays then follow the geometry of the `transform` by nearest neighbour, as masks do, and take
        neither `crop` nor `flip` nor `rotate90`. An array that has another size than its image is a bad sample. Not with
        `Views`, `batch_transform` or `AspectRatioBuckets`. Default: the geometry of the image leaves the arrays as they are; a
        warning says so if one has the size of its image.
    """

    features: str | Sequence[str]
    crop: Sequence[int | None] | None = None
    random: bool = True
    flip: Sequence[float] = ()
    rotate90: tuple[int, int] | Sequence[tuple[int, int]] = ()
    pad_value: float | Mapping[str, float] | None = None
    image_axes: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self._native()

    def _native(self) -> dict[str, Any]:
        features = [self.features] if isinstance(self.features, str) else list(self.features)
        if not features or not all(isinstance(name, str) for name in features):
            raise OptionTypeError(f"`features` is {self.features!r}: expected the name of a feature, or a list of names")
        if isinstance(self.flip, str) or not hasattr(self.flip, "__len__"):
            raise OptionTypeError(f"`flip` is {self.flip!r}: expected a list of probabilities, one for each dimension")
        planes: Any = self.rotate90
        if len(planes) == 2 and not any(hasattr(entry, "__len__") for entry in planes):
            planes = [planes]
        if not all(hasattr(plane, "__len__") and len(plane) == 2 for plane in planes):
            raise OptionTypeError(f"`rotate90` is {self.rotate90!r}: expected two dimensions, or a list of such pairs")
        pad: Any = self.pad_value
        if isinstance(pad, Mapping):
            if set(pad) != set(features):
                raise OptionError(f"`pad_value` is for {sorted(pad)}: expected a number for each of {features}")
            pad = [real("pad_value", pad[name]) for name in features]
        elif pad is not None:
            pad = [real("pad_value", pad)] * len(features)
        axes: Any = self.image_axes
        if axes is not None and not (hasattr(axes, "__len__") and len(axes) == 2):
            raise OptionTypeError(f"`image_axes` is {axes!r}: expected the dimensions of height and width, such as (0, 1)")
        return {
            "features": features,
            "crop": None if self.crop is None else _lengths("crop", self.crop),
            "random": instance("random", self.random, (bool,), "`True` or `False`"),
            "flip": [real("flip", probability) for probability in self.flip],
            "rotate": [(whole("rotate90", a), whole("rotate90", b)) for a, b in planes],
            "pad": pad,
            "image_axes": None if axes is None else (whole("image_axes", axes[0]), whole("image_axes", axes[1])),
        }


def native_arrays(arrays: Any) -> list[dict[str, Any]]:
    """Returns the groups of a loader's argument: `Arrays`, a feature, or a list of these."""
    groups = [arrays] if isinstance(arrays, (str, Arrays)) else arrays
    if not isinstance(groups, Sequence) or not all(isinstance(group, (str, Arrays)) for group in groups):
        raise OptionTypeError(f"`arrays` is {arrays!r}: expected `Arrays(...)`, the name of a feature, or a list of these")
    return [(Arrays(group) if isinstance(group, str) else group)._native() for group in groups]


def stored_array(name: str, value: Any) -> tuple[str, list[int], bytes]:
    """Returns type, shape and elements of an array: little-endian, in C order."""
    array = np.asarray(value)
    dtype = _DTYPES.get(array.dtype.name)
    if dtype is None:
        raise OptionError(
            f"feature `{name}`: arrays of {array.dtype} cannot be stored; expected bool, integers or floats: use `astype`"
        )
    return dtype, list(array.shape), array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _lengths(name: str, values: Any) -> list[int | None]:
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise OptionTypeError(f"`{name}` is {values!r}: expected a length for each dimension, or `None` for a whole one")
    return [None if value is None else whole(name, value, 1, 2**63 - 1) for value in values]
