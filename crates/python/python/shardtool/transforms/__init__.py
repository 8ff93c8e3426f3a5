"""Transforms of images, as plain data. They match those of torchvision (v2, antialiased bilinear). The random numbers of a
sample depend only on seed, epoch and sample.

| module | content |
|---|---|
| `geometry` | crops, resizes, padding, flips and warps |
| `color` | colours and erasing |
| `policies` | RandAugment and others |
| `views` | lists of steps |
| `preview` | applies steps to an image in memory |
"""

from .color import (
    ColorJitter,
    GaussianBlur,
    RandomAdjustSharpness,
    RandomApply,
    RandomAutocontrast,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from .geometry import (
    CenterCrop,
    CornerCrop,
    FixedSizeCrop,
    HorizontalFlip,
    Letterbox,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomIoUCrop,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    RandomShortestSize,
    RandomVerticalFlip,
    RandomZoomOut,
    Resize,
    ResizeTo,
    ScaleJitter,
)
from .policies import (
    AugMix,
    AutoAugment,
    RandAugment,
    TrivialAugmentWide,
)
from .preview import Preview, apply_operations, preview
from .step import Transform
from .views import Function, Step

__all__ = [
    "AugMix",
    "AutoAugment",
    "CenterCrop",
    "ColorJitter",
    "CornerCrop",
    "FixedSizeCrop",
    "Function",
    "GaussianBlur",
    "HorizontalFlip",
    "Letterbox",
    "Pad",
    "Preview",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomIoUCrop",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ResizeTo",
    "ScaleJitter",
    "Step",
    "Transform",
    "TrivialAugmentWide",
    "apply_operations",
    "preview",
]
