"""Steps that crop, resize, pad, flip and warp. Boxes, keypoints and label maps go through them with the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..checks import pair, real, whole
from ..errors import OptionError
from .step import (
    Interpolation,
    PaddingMode,
    ResizeFilter,
    Size,
    Transform,
    around,
    color,
    interpolation,
    one_of,
    padding,
    probability,
    resize_filter,
    side,
    size,
)

__all__ = [
    "CenterCrop",
    "CornerCrop",
    "FixedSizeCrop",
    "HorizontalFlip",
    "Letterbox",
    "Pad",
    "RandomAffine",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomIoUCrop",
    "RandomPerspective",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ResizeTo",
    "ScaleJitter",
]

_MODES = ("constant", "edge", "reflect", "symmetric")


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Crops a random part of the image and resizes it to `size`.

    Parameters
    ----------
    size
        Size of the result, in pixels: a side, or (height, width).
    scale
        Smallest and largest area of the part, as a fraction of the image's.
    ratio
        Smallest and largest width / height of the part.
    interpolation
        The filter of the resize, with Pillow's arithmetic: `"bilinear"`, `"bicubic"` or `"lanczos"`.
    """

    size: Size
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: ResizeFilter = "bilinear"

    _name: ClassVar[str] = "random_resized_crop"

    def __post_init__(self) -> None:
        self._set(size=size("size", self.size), scale=pair("scale", self.scale), ratio=pair("ratio", self.ratio))
        self._set(interpolation=resize_filter(self.interpolation))


@dataclass(frozen=True)
class Resize(Transform):
    """Resizes the shorter side to `shorter` pixels, keeping the aspect ratio. If the longer side then exceeds `longest`, it
    becomes `longest`, and the shorter one shorter."""

    shorter: int
    longest: int | None = None
    interpolation: ResizeFilter = "bilinear"

    _name: ClassVar[str] = "resize"

    def __post_init__(self) -> None:
        longest = None if self.longest is None else side("longest", self.longest)
        self._set(shorter=side("shorter", self.shorter), longest=longest, interpolation=resize_filter(self.interpolation))


@dataclass(frozen=True)
class ResizeTo(Transform):
    """Resizes to exactly `size` (a side, or (height, width), in pixels), ignoring the aspect ratio."""

    size: Size
    interpolation: ResizeFilter = "bilinear"

    _name: ClassVar[str] = "resize_to"

    def __post_init__(self) -> None:
        self._set(size=size("size", self.size), interpolation=resize_filter(self.interpolation))


@dataclass(frozen=True)
class CenterCrop(Transform):
    """Crops the middle of the image to `size` (a side, or (height, width), in pixels). An image that is smaller makes a bad
    sample."""

    size: Size

    _name: ClassVar[str] = "center_crop"

    def __post_init__(self) -> None:
        self._set(size=size("size", self.size))


@dataclass(frozen=True)
class CornerCrop(Transform):
    """Crops a corner of the image to `size` (a side, or (height, width), in pixels)."""

    size: Size
    corner: Literal["top_left", "top_right", "bottom_left", "bottom_right"]

    _name: ClassVar[str] = "corner_crop"

    def __post_init__(self) -> None:
        corners = ("top_left", "top_right", "bottom_left", "bottom_right")
        self._set(size=size("size", self.size), corner=one_of("corner", self.corner, corners))


@dataclass(frozen=True)
class RandomCrop(Transform):
    """Pads the image, then crops a random part of `size`.

    Parameters
    ----------
    size
        Size of the result, in pixels: a side, or (height, width).
    padding
        Pixels added before: on all sides, (left and right, top and bottom), or (left, top, right, bottom).
    pad_if_needed
        Whether an image that is still smaller than `size` is padded on both sides. Otherwise it makes a bad sample.
    fill
        Colour of constant padding, 0 to 255: grey, or red, green and blue.
    padding_mode
        Where padding comes from.
    """

    size: Size
    padding: int | Sequence[int] | None = None
    pad_if_needed: bool = False
    fill: int | Sequence[int] = 0
    padding_mode: PaddingMode = "constant"

    _name: ClassVar[str] = "random_crop"

    def __post_init__(self) -> None:
        mode = one_of("padding_mode", self.padding_mode, _MODES)
        self._set(size=size("size", self.size), padding=padding("padding", self.padding), fill=color("fill", self.fill))
        self._set(pad_if_needed=bool(self.pad_if_needed), padding_mode=mode)


@dataclass(frozen=True)
class Pad(Transform):
    """Adds pixels around the image. See `RandomCrop` for the parameters."""

    padding: int | Sequence[int]
    fill: int | Sequence[int] = 0
    padding_mode: PaddingMode = "constant"

    _name: ClassVar[str] = "pad"

    def __post_init__(self) -> None:
        mode = one_of("padding_mode", self.padding_mode, _MODES)
        self._set(padding=padding("padding", self.padding), fill=color("fill", self.fill), padding_mode=mode)


@dataclass(frozen=True)
class HorizontalFlip(Transform):
    """Flips the image left to right with probability `p`, 0 to 1."""

    p: float = 0.5

    _name: ClassVar[str] = "horizontal_flip"

    def __post_init__(self) -> None:
        self._set(p=probability("p", self.p))


#: torchvision's name of `HorizontalFlip`.
RandomHorizontalFlip = HorizontalFlip


@dataclass(frozen=True)
class RandomVerticalFlip(Transform):
    """Flips the image top to bottom with probability `p`, 0 to 1."""

    p: float = 0.5

    _name: ClassVar[str] = "vertical_flip"

    def __post_init__(self) -> None:
        self._set(p=probability("p", self.p))


@dataclass(frozen=True)
class RandomZoomOut(Transform):
    """Places the image at a random position of a larger canvas, with probability `p` (SSD).

    Parameters
    ----------
    fill
        Colour of the canvas, 0 to 255: grey, or red, green and blue.
    side_range
        Smallest and largest side of the canvas / side of the image, at least 1.
    p
        Probability, 0 to 1.
    """

    fill: int | Sequence[int] = 0
    side_range: tuple[float, float] = (1.0, 4.0)
    p: float = 0.5

    _name: ClassVar[str] = "random_zoom_out"

    def __post_init__(self) -> None:
        ends = pair("side_range", self.side_range)
        self._set(fill=color("fill", self.fill), side_range=ends, p=probability("p", self.p))


@dataclass(frozen=True)
class RandomIoUCrop(Transform):
    """Crops a random part that contains the centre of a box and overlaps it enough (SSD). Boxes whose centre is cropped away
    are dropped. A sample without boxes stays as it is.

    Parameters
    ----------
    min_scale, max_scale
        Smallest and largest side of the part / side of the image.
    min_aspect_ratio, max_aspect_ratio
        Smallest and largest width / height of the part.
    sampler_options
        Smallest overlaps (intersection over union), one of which is drawn; 1 leaves the image as it is.
    trials
        Parts tried for one overlap before another one is drawn.
    """

    min_scale: float = 0.3
    max_scale: float = 1.0
    min_aspect_ratio: float = 0.5
    max_aspect_ratio: float = 2.0
    sampler_options: Sequence[float] | None = None
    trials: int = 40

    _name: ClassVar[str] = "random_iou_crop"

    def __post_init__(self) -> None:
        options = self.sampler_options
        options = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0) if options is None else options
        self._set(sampler_options=tuple(real("sampler_options", o) for o in options))
        self._set(trials=whole("trials", self.trials, 1, 10_000))
        for name in ("min_scale", "max_scale", "min_aspect_ratio", "max_aspect_ratio"):
            self._set(**{name: real(name, getattr(self, name))})


@dataclass(frozen=True)
class ScaleJitter(Transform):
    """Resizes the image to fit `target_size` (height, width), times a random factor of `scale_range` (large-scale jitter). Its
    size then varies: follow it by `FixedSizeCrop`."""

    target_size: Size
    scale_range: tuple[float, float] = (0.1, 2.0)
    interpolation: ResizeFilter = "bilinear"

    _name: ClassVar[str] = "scale_jitter"

    def __post_init__(self) -> None:
        self._set(target_size=size("target_size", self.target_size), scale_range=pair("scale_range", self.scale_range))
        self._set(interpolation=resize_filter(self.interpolation))


@dataclass(frozen=True)
class RandomShortestSize(Transform):
    """Resizes the shorter side to one of `min_size`, at random, keeping the aspect ratio. If the longer side then exceeds
    `max_size`, it becomes `max_size`, and the shorter one shorter. Its size then varies: follow it by `FixedSizeCrop`."""

    min_size: int | Sequence[int]
    max_size: int | None = None
    interpolation: ResizeFilter = "bilinear"

    _name: ClassVar[str] = "random_shortest_size"

    def __post_init__(self) -> None:
        sizes = self.min_size if isinstance(self.min_size, Sequence) else [self.min_size]
        longest = None if self.max_size is None else side("max_size", self.max_size)
        self._set(min_size=tuple(side("min_size", n) for n in sizes), max_size=longest)
        self._set(interpolation=resize_filter(self.interpolation))


@dataclass(frozen=True)
class FixedSizeCrop(Transform):
    """Crops a random part of at most `size`, then pads on the right and at the bottom to exactly `size`."""

    size: Size
    fill: int | Sequence[int] = 0

    _name: ClassVar[str] = "fixed_size_crop"

    def __post_init__(self) -> None:
        self._set(size=size("size", self.size), fill=color("fill", self.fill))


@dataclass(frozen=True)
class Letterbox(Transform):
    """Resizes the image to fit `size`, keeping its aspect ratio, then pads it to exactly `size`, as Ultralytics' `LetterBox` does.

    Parameters
    ----------
    size
        Size of the result, in pixels: a side, or (height, width).
    fill
        Colour of the padding, 0 to 255: grey, or red, green and blue.
    align
        Where the image lies: in the middle, or in the upper left corner. In the middle, one more of an odd number of pixels is
        added on the right or at the bottom.
    scaleup
        Whether an image that is smaller than `size` is enlarged. Otherwise it is padded as it is.
    interpolation
        The filter with which the image is resized.
    """

    size: Size
    fill: int | Sequence[int] = 114
    align: Literal["center", "top_left"] = "center"
    scaleup: bool = True
    interpolation: ResizeFilter = "bilinear"

    _name: ClassVar[str] = "letterbox"

    def __post_init__(self) -> None:
        self._set(size=size("size", self.size), fill=color("fill", self.fill), scaleup=bool(self.scaleup))
        self._set(align=one_of("align", self.align, ("center", "top_left")))
        self._set(interpolation=resize_filter(self.interpolation))


@dataclass(frozen=True)
class RandomRotation(Transform):
    """Rotates around the centre by a random angle.

    Parameters
    ----------
    degrees
        Smallest and largest angle, anticlockwise; one number is the distance of both from 0.
    interpolation
        How pixels are sampled. Label maps always use the nearest one.
    fill
        Colour outside the image, 0 to 255: grey, or red, green and blue.
    """

    degrees: float | tuple[float, float]
    interpolation: Interpolation = "nearest"
    fill: int | Sequence[int] = 0

    _name: ClassVar[str] = "random_rotation"

    def __post_init__(self) -> None:
        self._set(degrees=around("degrees", self.degrees, 0.0), interpolation=interpolation(self.interpolation))
        self._set(fill=color("fill", self.fill))


@dataclass(frozen=True)
class RandomAffine(Transform):
    """Rotates, moves, scales and shears around the centre by random amounts.

    Parameters
    ----------
    degrees
        Smallest and largest angle, clockwise; one number is the distance of both from 0.
    translate
        Largest move to the right or left, and down or up, as fractions of width and height.
    scale
        Smallest and largest factor.
    shear
        Smallest and largest shear in degrees along x, or along x and y (four numbers); one number is the distance from 0.
    interpolation, fill
        As for `RandomRotation`.
    """

    degrees: float | tuple[float, float]
    translate: tuple[float, float] | None = None
    scale: tuple[float, float] | None = None
    shear: float | Sequence[float] | None = None
    interpolation: Interpolation = "nearest"
    fill: int | Sequence[int] = 0

    _name: ClassVar[str] = "random_affine"

    def __post_init__(self) -> None:
        self._set(degrees=around("degrees", self.degrees, 0.0), interpolation=interpolation(self.interpolation))
        self._set(fill=color("fill", self.fill))
        if self.translate is not None:
            if len(self.translate) != 2:
                raise OptionError(f"`translate` is {self.translate!r}: expected two numbers")
            self._set(translate=tuple(probability("translate", t) for t in self.translate))
        if self.scale is not None:
            self._set(scale=pair("scale", self.scale))
        if isinstance(self.shear, Sequence) and len(self.shear) == 4:
            self._set(shear=(*pair("shear", self.shear[:2]), *pair("shear", self.shear[2:])))
        elif self.shear is not None:
            self._set(shear=(*around("shear", self.shear, 0.0), 0.0, 0.0))


@dataclass(frozen=True)
class RandomPerspective(Transform):
    """Moves each corner of the image inwards by a random amount, with probability `p`.

    Parameters
    ----------
    distortion_scale
        Largest move of a corner, as a fraction of half the side, 0 to 1.
    p
        Probability, 0 to 1.
    interpolation, fill
        As for `RandomRotation`.
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: Interpolation = "bilinear"
    fill: int | Sequence[int] = 0

    _name: ClassVar[str] = "random_perspective"

    def __post_init__(self) -> None:
        self._set(distortion_scale=probability("distortion_scale", self.distortion_scale), p=probability("p", self.p))
        self._set(interpolation=interpolation(self.interpolation), fill=color("fill", self.fill))
