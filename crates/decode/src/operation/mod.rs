//! Operations on the pixels of an image, with parameters that were drawn before: the deterministic part of data augmentation.
//!
//! They change u8 RGB or grey in place and keep its size; those that only move pixels also work on 16 bits. Each does what torchvision's function of that name
//! (`torchvision.transforms.v2.functional`) does with u8 tensors, except where its documentation says so.
//!
//! | module | content |
//! |---|---|
//! | `apply` | application to pixels and labels |
//! | `check` | ranges of the parameters |
//! | `levels` | brightness, posterize, solarize, invert |
//! | `gray` | grayscale, saturation, contrast |
//! | `hue` | hue |
//! | `histogram` | autocontrast, equalize |
//! | `sharpness`, `blur` | neighbourhoods |
//! | `flip` | flips and channel permutations |
//! | `warp` | affine and perspective maps |
//! | `erase`, `noise` | rectangles of one colour or of noise |
//! | `mix` | AugMix |
//! | `point` | where points move |
//! | `scratch` | buffers |
//! | `sample` | f32 to u8 |
//! | `planes` | channels of a block of pixels |
//! | `vectorised` | loops compiled for AVX2 and FMA |

mod apply;
mod blur;
mod check;
mod erase;
mod flip;
mod gray;
mod histogram;
mod hue;
mod levels;
mod mix;
mod noise;
mod planes;
mod point;
mod sample;
pub(crate) mod scratch;
mod sharpness;
#[cfg(test)]
mod tests;
pub(crate) mod vectorised;
mod warp;

use serde::{Deserialize, Serialize};

use crate::transform::rect::Rect;

/// One operation on the pixels of an image, with its parameters drawn. Its JSON form is the name, with the parameters if there are
/// any: `"invert"` or `{"brightness":{"factor":1.2}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Operation {
    /// Reverses each row.
    HorizontalFlip,
    /// Reverses the order of the rows.
    VerticalFlip,
    /// Multiplies each sample (`adjust_brightness`).
    Brightness {
        /// 0 (black) or more; 1 changes nothing.
        factor: f64,
    },
    /// Blends the image with its mean grey value (`adjust_contrast`).
    Contrast {
        /// Weight of the image: 0 (grey) or more; 1 changes nothing.
        factor: f64,
    },
    /// Blends each pixel with its grey value (`adjust_saturation`).
    Saturation {
        /// Weight of the pixel: 0 (grey) or more; 1 changes nothing.
        factor: f64,
    },
    /// Shifts the hue (`adjust_hue`).
    Hue {
        /// Turns of the colour circle, −0.5 to 0.5.
        factor: f64,
    },
    /// Blends each pixel with the mean of its 3 × 3 neighbourhood (`adjust_sharpness`). Images with a side of at most two
    /// pixels, and the pixels at the edges, are left as they are.
    Sharpness {
        /// Weight of the pixel: 0 (smooth) or more; 1 changes nothing.
        factor: f64,
    },
    /// Replaces each pixel by its grey value (`rgb_to_grayscale` with three channels).
    Grayscale,
    /// Reorders the channels (`permute_channels`).
    ChannelPermutation {
        /// Channel c of the result is channel `order[c]` of the image.
        order: [u8; 3],
    },
    /// Replaces each sample x by 255 − x (`invert`).
    Invert,
    /// Stretches the values of each channel to 0 to 255 (`autocontrast`).
    Autocontrast,
    /// Distributes the values of each channel evenly (`equalize`).
    Equalize,
    /// Keeps the upper bits of each sample (`posterize`).
    Posterize {
        /// Bits that are kept, 0 to 8.
        bits: u8,
    },
    /// Inverts the samples that are at least `threshold` (`solarize`).
    Solarize {
        /// At most 255.
        threshold: f64,
    },
    /// Blurs with a Gaussian kernel (`gaussian_blur`). Edges reflect, so the radius must be smaller than the image.
    GaussianBlur {
        /// Width and height of the kernel in pixels, each odd.
        kernel: [u32; 2],
        /// Standard deviation in pixels, horizontally and vertically, above 0.
        sigma: [f64; 2],
    },
    /// Maps the image by a matrix (`affine`, `rotate`).
    Affine {
        /// Maps positions in the result to positions in the image: (m0 x + m1 y + m2, m3 x + m4 y + m5), in pixels from the
        /// centre. This is torchvision's inverse matrix.
        matrix: [f64; 6],
        /// How values between pixels are computed.
        interpolation: Interpolation,
        /// Colour outside the image.
        fill: [u8; 3],
    },
    /// Maps the image by a homography (`perspective`).
    Perspective {
        /// Maps positions in the result to positions in the image: (c0 x + c1 y + c2, c3 x + c4 y + c5) ÷ (c6 x + c7 y + 1), in
        /// pixels from the upper left corner. These are torchvision's coefficients.
        coefficients: [f64; 8],
        /// How values between pixels are computed.
        interpolation: Interpolation,
        /// Colour outside the image.
        fill: [u8; 3],
    },
    /// Overwrites a rectangle with one colour (`erase`).
    Erase {
        /// The rectangle. Its part outside the image has no effect.
        rect: Rect,
        /// The colour.
        value: [u8; 3],
    },
    /// Overwrites a rectangle with normal noise of ImageNet's mean, (123.675, 116.28, 103.53), and standard deviation,
    /// (58.395, 57.12, 57.375), rounded and clamped to 0 to 255.
    EraseNoise {
        /// The rectangle. Its part outside the image has no effect.
        rect: Rect,
        /// Key of the random stream.
        key: u64,
    },
    /// Replaces the image by a weighted sum of itself and of the results of chains of operations, rounded down (`AugMix`).
    AugMix {
        /// Weight of the image.
        image: f32,
        /// Weight of each chain.
        weights: Vec<f32>,
        /// The chains. Each starts with the image, and none contains AugMix.
        chains: Vec<Vec<Operation>>,
    },
}

/// How values between pixels are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Interpolation {
    /// The nearest pixel.
    Nearest,
    /// The mean of the four nearest pixels, weighted by distance. Pixels outside the image have the fill colour.
    Bilinear,
}

impl Operation {
    /// Returns the operation for values that must not be mixed, with 0 outside the image; `None` if it moves none.
    pub(crate) fn by_nearest(&self) -> Option<Operation> {
        let (interpolation, fill) = (Interpolation::Nearest, [0; 3]);
        Some(match *self {
            Operation::HorizontalFlip => Operation::HorizontalFlip,
            Operation::VerticalFlip => Operation::VerticalFlip,
            Operation::Affine { matrix, .. } => Operation::Affine { matrix, interpolation, fill },
            Operation::Perspective { coefficients, .. } => Operation::Perspective { coefficients, interpolation, fill },
            _ => return None,
        })
    }

    /// Returns the name in the JSON form.
    fn name(&self) -> &'static str {
        match self {
            Operation::HorizontalFlip => "horizontal_flip",
            Operation::VerticalFlip => "vertical_flip",
            Operation::Brightness { .. } => "brightness",
            Operation::Contrast { .. } => "contrast",
            Operation::Saturation { .. } => "saturation",
            Operation::Hue { .. } => "hue",
            Operation::Sharpness { .. } => "sharpness",
            Operation::Grayscale => "grayscale",
            Operation::ChannelPermutation { .. } => "channel_permutation",
            Operation::Invert => "invert",
            Operation::Autocontrast => "autocontrast",
            Operation::Equalize => "equalize",
            Operation::Posterize { .. } => "posterize",
            Operation::Solarize { .. } => "solarize",
            Operation::GaussianBlur { .. } => "gaussian_blur",
            Operation::Affine { .. } => "affine",
            Operation::Perspective { .. } => "perspective",
            Operation::Erase { .. } => "erase",
            Operation::EraseNoise { .. } => "erase_noise",
            Operation::AugMix { .. } => "aug_mix",
        }
    }
}
