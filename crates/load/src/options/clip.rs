//! Clips of videos.

use super::{Pixels, View};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shardtool_decode::Pipeline;

/// Frames of a video, whose encoded images are the values of a feature, all of the same size. A batch has them by the feature's name:
/// `[N, frames, H, W, 3]` u8, or with several clips `[N, clips, frames, H, W, 3]`; as float NCHW `[N, frames, 3, H, W]`.
///
/// All frames of a clip go through the same steps with the same random numbers; each of several clips has its own. A clip begins at
/// frame s, takes every `stride`-th frame, and so spans (`frames` − 1) × `stride` + 1 frames; the last stored frame takes the place
/// of frames past the end. Where the index has the ranges of the frames, only those of the clip are read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Clip {
    /// The feature with the frames of a video.
    #[schemars(extend("x-positional" = true))]
    pub feature: String,
    /// Steps that give every frame the same size, perhaps followed by a function of your own; or several lists of steps, see `Views`.
    #[schemars(extend("x-positional" = true, "x-python" = "Sequence[Step] | Mapping[str, Any]"))]
    pub views: Vec<View>,
    /// Frames of a clip, at least 1.
    #[schemars(range(min = 1), extend("x-positional" = true))]
    pub frames: u32,
    /// Stored frames from one delivered frame to the next, at least 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub stride: u32,
    /// `"random"`: each clip begins at a random frame. `"center"`: the clip in the middle. `"even"`: `clips` clips, the first at the
    /// first frame, the last at the last possible one, the others evenly between, as PyTorchVideo's `ConstantClipsPerVideoSampler`.
    /// `"uniform"`: `frames` frames from the first to the last one of the whole video, as PyTorchVideo's `UniformTemporalSubsample`,
    /// without `stride`.
    #[serde(default)]
    pub sampling: ClipSampling,
    /// Clips of each sample; more than one with `"random"` and `"even"` only.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub clips: u32,
    /// How frames are decoded and delivered.
    #[serde(default)]
    pub pixels: Pixels,
}

fn one() -> u32 {
    1
}

/// Which frames of a video are taken. Of n stored frames there are m = max(1, n − span + 1) starts, from 0 to m − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClipSampling {
    /// Each clip begins at a random frame.
    #[default]
    Random,
    /// The clip in the middle, which begins at frame ⌊(m − 1) ÷ 2⌋. One clip only.
    Center,
    /// Clips spread evenly over the video: clip c of k begins at frame ⌊c × (m − 1) ÷ max(1, k − 1)⌋. As PyTorchVideo's
    /// `ConstantClipsPerVideoSampler`.
    Even,
    /// `frames` frames spread evenly over the whole video, from the first to the last one. As PyTorchVideo's
    /// `UniformTemporalSubsample`, with the same rounding. One clip only, and no stride.
    Uniform,
}

impl Clip {
    /// Returns options for one random clip of consecutive frames, all transformed by these steps.
    pub fn new(feature: impl Into<String>, pipeline: Pipeline, frames: u32) -> Self {
        Clip {
            feature: feature.into(),
            views: vec![View { name: String::new(), pipeline }],
            frames,
            stride: 1,
            sampling: ClipSampling::default(),
            clips: 1,
            pixels: Pixels::default(),
        }
    }
}
