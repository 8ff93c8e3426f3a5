"""Steps that change colours or erase a part. Boxes, keypoints and label maps stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..checks import pair, real, whole
from ..errors import OptionError, OptionTypeError
from .step import Range, Size, Transform, around, color, probability, size

__all__ = [
    "ColorJitter",
    "GaussianBlur",
    "RandomAdjustSharpness",
    "RandomApply",
    "RandomAutocontrast",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomInvert",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomSolarize",
]


@dataclass(frozen=True)
class ColorJitter(Transform):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    Parameters
    ----------
    brightness, contrast, saturation
        Smallest and largest factor; one number is the distance of both from 1.
    hue
        Smallest and largest shift in turns, -0.5 to 0.5; one number is the distance of both from 0.
    """

    brightness: Range | None = None
    contrast: Range | None = None
    saturation: Range | None = None
    hue: Range | None = None

    _name: ClassVar[str] = "color_jitter"

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation"):
            if (value := getattr(self, name)) is not None:
                self._set(**{name: around(name, value, 1.0, 0.0)})
        if self.hue is not None:
            self._set(hue=around("hue", self.hue, 0.0))


@dataclass(frozen=True)
class RandomPhotometricDistort(Transform):
    """SSD's distortion: brightness, contrast, saturation, hue and order of channels, each with probability `p`. Ranges are
    smallest and largest factor; that of the hue is a shift in turns."""

    brightness: tuple[float, float] = (0.875, 1.125)
    contrast: tuple[float, float] = (0.5, 1.5)
    saturation: tuple[float, float] = (0.5, 1.5)
    hue: tuple[float, float] = (-0.05, 0.05)
    p: float = 0.5

    _name: ClassVar[str] = "random_photometric_distort"

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation", "hue"):
            self._set(**{name: pair(name, getattr(self, name))})
        self._set(p=probability("p", self.p))


@dataclass(frozen=True)
class RandomGrayscale(Transform):
    """Makes the image grey with probability `p`, 0 to 1. It keeps three channels."""

    p: float = 0.1

    _name: ClassVar[str] = "random_grayscale"

    def __post_init__(self) -> None:
        self._set(p=probability("p", self.p))


@dataclass(frozen=True)
class GaussianBlur(Transform):
    """Blurs with a Gaussian of random standard deviation.

    Parameters
    ----------
    kernel_size
        Size of the kernel in pixels: an odd side, or (height, width) as everywhere here; torchvision takes (width, height).
    sigma
        Smallest and largest standard deviation in pixels, or one number.
    """

    kernel_size: Size
    sigma: Range = (0.1, 2.0)

    _name: ClassVar[str] = "gaussian_blur"

    def __post_init__(self) -> None:
        sigma = self.sigma if isinstance(self.sigma, Sequence) else (self.sigma,) * 2
        self._set(kernel_size=size("kernel_size", self.kernel_size), sigma=pair("sigma", sigma))


@dataclass(frozen=True)
class RandomSolarize(Transform):
    """Inverts values of at least `threshold` (0 to 255) with probability `p`."""

    threshold: float
    p: float = 0.5

    _name: ClassVar[str] = "random_solarize"

    def __post_init__(self) -> None:
        self._set(threshold=real("threshold", self.threshold), p=probability("p", self.p))


@dataclass(frozen=True)
class RandomPosterize(Transform):
    """Keeps the highest `bits` bits of each value, 0 to 8, with probability `p`."""

    bits: int
    p: float = 0.5

    _name: ClassVar[str] = "random_posterize"

    def __post_init__(self) -> None:
        self._set(bits=whole("bits", self.bits, 0, 8), p=probability("p", self.p))


@dataclass(frozen=True)
class RandomEqualize(Transform):
    """Equalises the histogram of each channel with probability `p`."""

    p: float = 0.5

    _name: ClassVar[str] = "random_equalize"

    def __post_init__(self) -> None:
        self._set(p=probability("p", self.p))


@dataclass(frozen=True)
class RandomAutocontrast(Transform):
    """Stretches the values of each channel to 0 to 255 with probability `p`."""

    p: float = 0.5

    _name: ClassVar[str] = "random_autocontrast"

    def __post_init__(self) -> None:
        self._set(p=probability("p", self.p))


@dataclass(frozen=True)
class RandomInvert(Transform):
    """Inverts all values with probability `p`."""

    p: float = 0.5

    _name: ClassVar[str] = "random_invert"

    def __post_init__(self) -> None:
        self._set(p=probability("p", self.p))


@dataclass(frozen=True)
class RandomAdjustSharpness(Transform):
    """Changes the sharpness with probability `p`: a factor of 0 blurs, 1 changes nothing, 2 doubles it."""

    sharpness_factor: float
    p: float = 0.5

    _name: ClassVar[str] = "random_adjust_sharpness"

    def __post_init__(self) -> None:
        self._set(sharpness_factor=real("sharpness_factor", self.sharpness_factor), p=probability("p", self.p))


@dataclass(frozen=True)
class RandomErasing(Transform):
    """Overwrites a random rectangle with probability `p`.

    Parameters
    ----------
    p
        Probability, 0 to 1.
    scale
        Smallest and largest area of the rectangle, as a fraction of the image's.
    ratio
        Smallest and largest height / width of the rectangle.
    value
        Grey or red, green and blue from 0 to 255, or `"random"`: normal noise with the mean and standard deviation of
        ImageNet's pixels.
    """

    p: float = 0.5
    scale: tuple[float, float] = (0.02, 0.33)
    ratio: tuple[float, float] = (0.3, 3.3)
    value: int | Sequence[int] | Literal["random"] = 0

    _name: ClassVar[str] = "random_erasing"

    def __post_init__(self) -> None:
        self._set(p=probability("p", self.p), scale=pair("scale", self.scale), ratio=pair("ratio", self.ratio))
        if isinstance(self.value, str):
            if self.value != "random":
                raise OptionError(f"`value` is {self.value!r}: expected numbers from 0 to 255, or 'random'")
        else:
            self._set(value=color("value", self.value))


@dataclass(frozen=True)
class RandomApply(Transform):
    """Applies all of `transforms` with probability `p`, else none."""

    transforms: Sequence[Transform]
    p: float = 0.5

    _name: ClassVar[str] = "random_apply"

    def __post_init__(self) -> None:
        if isinstance(self.transforms, Transform) or not all(isinstance(step, Transform) for step in self.transforms):
            raise OptionTypeError(f"`transforms` is {self.transforms!r}: expected a list of steps")
        self._set(transforms=tuple(self.transforms), p=probability("p", self.p))

    def _json(self) -> dict[str, Any]:
        return {self._name: {"transforms": [step._json() for step in self.transforms], "p": self.p}}
