"""Clips of videos: which of the stored frames a batch holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .checks import instance, whole

__all__ = ["Clip"]


@dataclass(frozen=True)
class Clip:
    """Frames of a video in place of an image. A batch has them by the feature's name: `[N, frames, H, W, 3]` u8, or with
    several clips `[N, clips, frames, H, W, 3]`; as float NCHW `[N, frames, 3, H, W]`.

    All frames of a clip go through the same steps with the same random numbers; each of several clips has its own. Of a
    video with fewer frames than a clip spans, the last frame is repeated. Where the index has the ranges of the frames, only
    those of the clip are read.

    Parameters
    ----------
    feature
        Feature with the frames of a video, one encoded image each, all of the same size.
    frames
        Frames of a clip.
    stride
        Stored frames from one delivered frame to the next. A clip spans `(frames - 1) * stride + 1` frames.
    sampling
        `"random"`: each clip begins at a random frame. `"center"`: the clip in the middle. `"even"`: `clips` clips, the first
        at the first frame, the last at the last possible one, the others evenly between, as PyTorchVideo's
        `ConstantClipsPerVideoSampler`. `"uniform"`: `frames` frames from the first to the last one of the whole video, as
        PyTorchVideo's `UniformTemporalSubsample`, without `stride`.
    clips
        Clips of each sample; more than one with `"random"` and `"even"` only.
    """

    feature: str
    frames: int
    stride: int = 1
    sampling: Literal["random", "center", "even", "uniform"] = "random"
    clips: int = 1

    def __post_init__(self) -> None:
        instance("feature", self.feature, (str,), "the name of a feature")
        instance("sampling", self.sampling, (str,), "text")
        for name in ("frames", "stride", "clips"):
            whole(name, getattr(self, name), 1, 2**32 - 1)

    def _native(self) -> dict[str, Any]:
        return {
            "feature": self.feature,
            "frames": int(self.frames),
            "stride": int(self.stride),
            "sampling": self.sampling,
            "clips": int(self.clips),
        }
