"""Checksummed, sharded image datasets, and a loader for training in bounded memory, resumable at any step.

    import shardtool as st

    st.pack("photos", "dataset")                      # once
    train = st.Dataset("dataset").split("train")
    loader = st.Loader(train, 256, [st.RandomResizedCrop(224), st.HorizontalFlip()])
    for batch in loader:                              # one epoch
        batch["image"], batch["label"]                # numpy [N, H, W, 3] u8, [N] int64

`shardtool.torch` and `shardtool.jax` deliver tensors and arrays of those frameworks.
"""

from collections.abc import Sequence
from typing import NoReturn

from . import errors
from .arrays import Array
from .batches import Batch, Ragged, image_label
from .buckets import AspectRatioBuckets, shapes_within
from ._shardtool import VERSION as __version__
from ._shardtool import Columns, Dataset, DeviceArray, Shard, Split
from .display import Record, show
from .errors import *  # noqa: F403
from .fields import Views, five_crop
from .indexing import index, open
from .keypoints import Keypoints, flip_index
from .loader import Loader, Stats
from .options import (
    Arrays,
    BadSamples,
    Clip,
    Column,
    CopyPaste,
    CutMix,
    DecodedCache,
    Device,
    FurtherImage,
    Image,
    LengthBuckets,
    Mask,
    MixUp,
    Mosaic,
    Objects,
    PixelMask,
    Prefetch,
    RaggedArrays,
    Replica,
    Tokens,
)
from .orders import Balanced, Interleaved, Mixture, Scheduled, Sequential, Shuffled, Stage, Subset, Weighted
from .packing import Packed, PackedPart, pack, pack_part, write_plan
from .transforms.foreign import ELSEWHERE
from .transforms import (
    AugMix,
    AutoAugment,
    CenterCrop,
    ColorJitter,
    CornerCrop,
    FixedSizeCrop,
    Function,
    GaussianBlur,
    HorizontalFlip,
    Letterbox,
    Pad,
    RandAugment,
    RandomAdjustSharpness,
    RandomAffine,
    RandomApply,
    RandomAutocontrast,
    RandomCrop,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomInvert,
    RandomIoUCrop,
    RandomPerspective,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomResizedCrop,
    RandomRotation,
    RandomShortestSize,
    RandomSolarize,
    RandomVerticalFlip,
    RandomZoomOut,
    Resize,
    ResizeTo,
    ScaleJitter,
    Transform,
    TrivialAugmentWide,
    preview,
)
from .verification import Damage, Report, verify
from .writer import Writer, commit

__all__ = [
    "Array",
    "Arrays",
    "AspectRatioBuckets",
    "AugMix",
    "AutoAugment",
    "BadSamples",
    "Balanced",
    "Batch",
    "CenterCrop",
    "Clip",
    "ColorJitter",
    "Column",
    "Columns",
    "CopyPaste",
    "CornerCrop",
    "CutMix",
    "Damage",
    "Dataset",
    "DecodedCache",
    "Device",
    "DeviceArray",
    "FixedSizeCrop",
    "Function",
    "FurtherImage",
    "GaussianBlur",
    "HorizontalFlip",
    "Image",
    "Interleaved",
    "Keypoints",
    "LengthBuckets",
    "Letterbox",
    "Loader",
    "Mask",
    "MixUp",
    "Mixture",
    "Mosaic",
    "Objects",
    "Packed",
    "PackedPart",
    "Pad",
    "PixelMask",
    "Prefetch",
    "RaggedArrays",
    "Ragged",
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
    "Record",
    "Replica",
    "Report",
    "Resize",
    "ResizeTo",
    "ScaleJitter",
    "Scheduled",
    "Sequential",
    "Shard",
    "Shuffled",
    "Split",
    "Stage",
    "Stats",
    "Subset",
    "Tokens",
    "Transform",
    "TrivialAugmentWide",
    "Views",
    "Weighted",
    "Writer",
    "commit",
    "five_crop",
    "flip_index",
    "image_label",
    "index",
    "open",
    "pack",
    "pack_part",
    "preview",
    "shapes_within",
    "show",
    "verify",
    "write_plan",
    *errors.__all__,
]


def _open_split(
    path: str,
    name: str,
    cache: str | None = None,
    cache_size: int | None = None,
    version: str | None = None,
    sources: Sequence[str] = (),
) -> Split:
    """Opens a split by path, name and version; pickled splits call this."""
    return Dataset(path, cache, cache_size, version, list(sources)).split(name)


def __getattr__(name: str) -> NoReturn:
    """Answers a name of torchvision or PyTorch that the module has no counterpart of."""
    instead = f"; in its place: {ELSEWHERE[name]}" if name in ELSEWHERE else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
