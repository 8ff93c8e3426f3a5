"""Answers the transforms of other libraries with the loader's steps and arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import OptionTypeError

__all__ = ["ELSEWHERE", "check_function"]

#: What takes the place of a name of torchvision that has no step.
ELSEWHERE = {
    "Normalize": "the options `mean` and `std` of `st.Image`",
    "ToTensor": "`shardtool.torch.Loader`, which delivers tensors",
    "PILToTensor": "`shardtool.torch.Loader`, which delivers tensors",
    "ToImage": "`shardtool.torch.Loader`, which delivers tensors",
    "ToDtype": "the option `dtype` of `st.Image`",
    "ConvertImageDtype": "the option `dtype` of `st.Image`",
    "Compose": "a list of steps",
    "Lambda": "a function `f(image, seed)` as the last step",
    "DataLoader": "`shardtool.Loader`, or `shardtool.torch.Loader` for tensors",
    "DistributedSampler": "nothing: each rank reads its share",
    "WeightedRandomSampler": "`source=st.Weighted(weights)`",
}


def check_function(function: Callable[..., Any], steps: set[str]) -> None:
    """Raises `OptionTypeError` for a callable that does not take an image and a seed, such as a transform of torchvision. `steps`
    has the names of the loader's steps."""
    kind = type(function)
    library, name = kind.__module__.partition(".")[0], kind.__name__
    if library in ("torchvision", "albumentations", "kornia", "timm", "torch", "PIL"):
        if name in ELSEWHERE:
            instead = f"in its place: {ELSEWHERE[name]}"
        elif name in steps:
            instead = f"`st.{name}` is the loader's step of that name"
        else:
            instead = "wrap it in a function of the image, u8 `[H, W, 3]`, and a seed, which returns such an image"
        raise OptionTypeError(f"`steps`: {library}'s {name} is not called with an image and a seed; {instead}")
    try:
        inspect.signature(function).bind(None, 0)
    except TypeError as error:
        raise OptionTypeError(f"`steps`: {function!r} must take an image and a seed, `f(image, seed)`: {error}") from None
    except ValueError:
        # A function without a signature, such as one in C.
        pass
