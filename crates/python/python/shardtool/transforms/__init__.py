"""Transforms of images, as plain data. They match those of torchvision (v2, antialiased bilinear). The random numbers of a
sample depend only on seed, epoch and sample.

| module | content |
|---|---|
| `geometry` | crops, resizes, padding, flips and warps |
| `color` | colours and erasing |
| `policies` | RandAugment and others |
| `views` | lists of steps, and several views of an image |
| `preview` | applies steps to an image in memory |
"""

from . import color, geometry, policies
from .color import *  # noqa: F403
from .geometry import *  # noqa: F403
from .policies import *  # noqa: F403
from .preview import Preview, apply_operations, preview
from .step import Transform
from .views import Function, Step, Views, five_crop

__all__ = [
    "Function",
    "Preview",
    "Step",
    "Transform",
    "Views",
    "apply_operations",
    "five_crop",
    "preview",
]
__all__ += color.__all__
__all__ += geometry.__all__
__all__ += policies.__all__
