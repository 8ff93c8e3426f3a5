//! The steps of a pipeline, as data.

use super::default;
use crate::operation::Interpolation;
use crate::resize::Filter;
use serde::{Deserialize, Serialize};

/// One step of a [`Pipeline`](crate::Pipeline). Each does what torchvision's transform of that name does (v2, antialiased
/// bilinear). Sizes are `[height, width]` in pixels, ranges `[smallest, largest]`, as in torchvision.
///
/// Steps that crop, pad, resize or flip before the first other step are planned before the image is decoded, so that only
/// the pixels needed are. The others change the pixels, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Transform {
    /// Crops a random rectangle and resizes it to `size`.
    RandomResizedCrop {
        /// Height and width of the result.
        size: [u32; 2],
        /// Area of the rectangle, as a fraction of the image's; default 0.08 to 1.
        #[serde(default = "default::crop_scale")]
        scale: [f64; 2],
        /// Width ÷ height of the rectangle; default 3/4 to 4/3.
        #[serde(default = "default::crop_ratio")]
        ratio: [f64; 2],
        /// The filter; default bilinear.
        #[serde(default)]
        interpolation: Filter,
    },
    /// Resizes the shorter side to `shorter`, keeping the aspect ratio.
    Resize {
        /// Length of the shorter side in pixels.
        shorter: u32,
        /// The longer side becomes at most as long; both sides are then smaller. Default: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        longest: Option<u32>,
        /// The filter; default bilinear.
        #[serde(default)]
        interpolation: Filter,
    },
    /// Resizes to exactly `size`, ignoring the aspect ratio.
    ResizeTo {
        /// Height and width of the result.
        size: [u32; 2],
        /// The filter; default bilinear.
        #[serde(default)]
        interpolation: Filter,
    },
    /// Crops the centre. An image smaller than `size` is an error, where torchvision pads it with black.
    CenterCrop {
        /// Height and width of the result.
        size: [u32; 2],
    },
    /// Crops at a corner. An image smaller than `size` is an error.
    CornerCrop {
        /// Height and width of the result.
        size: [u32; 2],
        /// Which corner.
        corner: Corner,
    },
    /// Pads, then crops a random rectangle of `size`. An image smaller than `size` is an error unless it is padded.
    RandomCrop {
        /// Height and width of the result.
        size: [u32; 2],
        /// Pixels added left, top, right and bottom; default none.
        #[serde(default)]
        padding: [u32; 4],
        /// Whether an image that is still smaller than `size` is padded on both sides; default false.
        #[serde(default)]
        pad_if_needed: bool,
        /// Colour of constant padding; default black.
        #[serde(default)]
        fill: [u8; 3],
        /// Where padding comes from; default constant.
        #[serde(default)]
        padding_mode: PaddingMode,
    },
    /// Adds pixels around the image.
    Pad {
        /// Pixels added left, top, right and bottom.
        padding: [u32; 4],
        /// Colour of constant padding; default black.
        #[serde(default)]
        fill: [u8; 3],
        /// Where padding comes from; default constant.
        #[serde(default)]
        padding_mode: PaddingMode,
    },
    /// Flips left to right with probability `p`.
    HorizontalFlip {
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Flips top to bottom with probability `p`.
    VerticalFlip {
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Places the image on a larger canvas at a random position, with probability `p` (SSD's expansion).
    RandomZoomOut {
        /// Colour of the canvas; default black.
        #[serde(default)]
        fill: [u8; 3],
        /// Side of the canvas ÷ side of the image; default 1 to 4.
        #[serde(default = "default::zoom_range")]
        side_range: [f64; 2],
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Crops a random rectangle that overlaps a box enough (SSD). Samples without boxes are not cropped.
    RandomIouCrop {
        /// Smallest side of the rectangle ÷ side of the image; default 0.3.
        #[serde(default = "default::iou_min_scale")]
        min_scale: f64,
        /// Largest side of the rectangle ÷ side of the image; default 1.
        #[serde(default = "default::one")]
        max_scale: f64,
        /// Smallest width ÷ height; default 0.5.
        #[serde(default = "default::half")]
        min_aspect_ratio: f64,
        /// Largest width ÷ height; default 2.
        #[serde(default = "default::two")]
        max_aspect_ratio: f64,
        /// Smallest overlap (intersection over union) with any box, one of which is drawn; 1 or more leaves the image as it
        /// is. Default 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.
        #[serde(default = "default::iou_options")]
        sampler_options: Vec<f64>,
        /// Rectangles tried for one overlap before another one is drawn; default 40.
        #[serde(default = "default::iou_trials")]
        trials: u32,
    },
    /// Resizes the image to fit `target_size`, times a random factor (large-scale jitter).
    ScaleJitter {
        /// Height and width that the image fits at a factor of 1.
        target_size: [u32; 2],
        /// The factor; default 0.1 to 2.
        #[serde(default = "default::jitter_range")]
        scale_range: [f64; 2],
        /// The filter; default bilinear.
        #[serde(default)]
        interpolation: Filter,
    },
    /// Resizes the shorter side to one of `min_size`, at random, keeping the aspect ratio.
    RandomShortestSize {
        /// Lengths of the shorter side in pixels.
        min_size: Vec<u32>,
        /// The longer side becomes at most as long; both sides are then smaller. Default: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_size: Option<u32>,
        /// The filter; default bilinear.
        #[serde(default)]
        interpolation: Filter,
    },
    /// Crops a random rectangle of at most `size`, then pads to the right and bottom to exactly `size` (after
    /// [`ScaleJitter`](Transform::ScaleJitter)).
    FixedSizeCrop {
        /// Height and width of the result.
        size: [u32; 2],
        /// Colour of the padding; default black.
        #[serde(default)]
        fill: [u8; 3],
    },
    /// Resizes to fit `size`, keeping the aspect ratio, then pads to exactly `size`, as Ultralytics' `LetterBox` does.
    Letterbox {
        /// Height and width of the result.
        size: [u32; 2],
        /// Colour of the padding; default 114, 114, 114.
        #[serde(default = "default::letterbox_fill")]
        fill: [u8; 3],
        /// Where the image lies; default in the middle.
        #[serde(default)]
        align: Align,
        /// Whether an image that is smaller than `size` is enlarged; default true.
        #[serde(default = "default::yes")]
        scaleup: bool,
        /// The filter; default bilinear.
        #[serde(default)]
        interpolation: Filter,
    },
    /// Rotates by a random angle around the centre.
    RandomRotation {
        /// Angle in degrees, anticlockwise.
        degrees: [f64; 2],
        /// How pixels are sampled; default nearest.
        #[serde(default = "default::nearest")]
        interpolation: Interpolation,
        /// Colour outside the image; default black.
        #[serde(default)]
        fill: [u8; 3],
    },
    /// Rotates, moves, scales and shears by random amounts around the centre.
    RandomAffine {
        /// Angle in degrees, clockwise (torchvision's `affine` turns the other way than its `rotate`).
        degrees: [f64; 2],
        /// Largest move to the right and down, as fractions of width and height; default none.
        #[serde(default)]
        translate: Option<[f64; 2]>,
        /// Factor; default 1.
        #[serde(default)]
        scale: Option<[f64; 2]>,
        /// Shear along x and y in degrees: smallest and largest x, smallest and largest y; default none.
        #[serde(default)]
        shear: Option<[f64; 4]>,
        /// How pixels are sampled; default nearest.
        #[serde(default = "default::nearest")]
        interpolation: Interpolation,
        /// Colour outside the image; default black.
        #[serde(default)]
        fill: [u8; 3],
    },
    /// Moves the corners of the image inwards by random amounts, with probability `p`.
    RandomPerspective {
        /// Largest move of a corner, as a fraction of half the side, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        distortion_scale: f64,
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
        /// How pixels are sampled; default bilinear.
        #[serde(default = "default::bilinear")]
        interpolation: Interpolation,
        /// Colour outside the image; default black.
        #[serde(default)]
        fill: [u8; 3],
    },
    /// Changes brightness, contrast, saturation and hue by random factors, in random order.
    ColorJitter {
        /// Factor of the brightness; default: unchanged.
        #[serde(default)]
        brightness: Option<[f64; 2]>,
        /// Factor of the contrast; default: unchanged.
        #[serde(default)]
        contrast: Option<[f64; 2]>,
        /// Factor of the saturation; default: unchanged.
        #[serde(default)]
        saturation: Option<[f64; 2]>,
        /// Shift of the hue, in turns from −0.5 to 0.5; default: unchanged.
        #[serde(default)]
        hue: Option<[f64; 2]>,
    },
    /// SSD's photometric distortion: brightness, contrast before or after saturation and hue, and a permutation of the
    /// channels, each with probability `p`.
    RandomPhotometricDistort {
        /// Factor of the brightness; default 0.875 to 1.125.
        #[serde(default = "default::distort_brightness")]
        brightness: [f64; 2],
        /// Factor of the contrast; default 0.5 to 1.5.
        #[serde(default = "default::distort_contrast")]
        contrast: [f64; 2],
        /// Factor of the saturation; default 0.5 to 1.5.
        #[serde(default = "default::distort_contrast")]
        saturation: [f64; 2],
        /// Shift of the hue in turns; default −0.05 to 0.05.
        #[serde(default = "default::distort_hue")]
        hue: [f64; 2],
        /// Probability of each, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Makes the image grey with probability `p`.
    RandomGrayscale {
        /// Probability, 0 to 1; default 0.1.
        #[serde(default = "default::tenth")]
        p: f64,
    },
    /// Blurs with a Gaussian of random standard deviation.
    GaussianBlur {
        /// Height and width of the kernel in pixels, odd.
        kernel_size: [u32; 2],
        /// Standard deviation in pixels; default 0.1 to 2.
        #[serde(default = "default::sigma")]
        sigma: [f64; 2],
    },
    /// Inverts values of at least `threshold` with probability `p`.
    RandomSolarize {
        /// From 0 to 255.
        threshold: f64,
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Keeps the highest `bits` bits of each value with probability `p`.
    RandomPosterize {
        /// From 0 to 8.
        bits: u8,
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Equalises the histogram of each channel with probability `p`.
    RandomEqualize {
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Stretches each channel to 0 to 255 with probability `p`.
    RandomAutocontrast {
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Inverts all values with probability `p`.
    RandomInvert {
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Changes the sharpness with probability `p`.
    RandomAdjustSharpness {
        /// 0 blurs, 1 changes nothing, 2 doubles the sharpness.
        sharpness_factor: f64,
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
    /// Overwrites a random rectangle with probability `p`.
    RandomErasing {
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
        /// Area of the rectangle, as a fraction of the image's; default 0.02 to 0.33.
        #[serde(default = "default::erase_scale")]
        scale: [f64; 2],
        /// Height ÷ width of the rectangle; default 0.3 to 3.3.
        #[serde(default = "default::erase_ratio")]
        ratio: [f64; 2],
        /// What the rectangle is filled with; default black.
        #[serde(default)]
        value: EraseValue,
    },
    /// RandAugment: `num_ops` random operations of one magnitude.
    RandAugment {
        /// Number of operations; default 2.
        #[serde(default = "default::two_ops")]
        num_ops: u32,
        /// Which of the bins; default 9.
        #[serde(default = "default::magnitude")]
        magnitude: u32,
        /// Number of magnitudes; default 31.
        #[serde(default = "default::bins")]
        num_magnitude_bins: u32,
        /// How pixels of geometric operations are sampled; default nearest.
        #[serde(default = "default::nearest")]
        interpolation: Interpolation,
        /// Colour outside the image; default black.
        #[serde(default)]
        fill: [u8; 3],
    },
    /// TrivialAugment: one random operation of random magnitude.
    TrivialAugmentWide {
        /// Number of magnitudes; default 31.
        #[serde(default = "default::bins")]
        num_magnitude_bins: u32,
        /// How pixels of geometric operations are sampled; default nearest.
        #[serde(default = "default::nearest")]
        interpolation: Interpolation,
        /// Colour outside the image; default black.
        #[serde(default)]
        fill: [u8; 3],
    },
    /// AutoAugment: one random sub-policy of a table that was learnt on a dataset.
    AutoAugment {
        /// The table; default ImageNet's.
        #[serde(default)]
        policy: AutoAugmentPolicy,
        /// How pixels of geometric operations are sampled; default nearest.
        #[serde(default = "default::nearest")]
        interpolation: Interpolation,
        /// Colour outside the image; default black.
        #[serde(default)]
        fill: [u8; 3],
    },
    /// AugMix: the weighted mean of the image and of several chains of random operations.
    AugMix {
        /// Largest magnitude, 1 to 10; default 3.
        #[serde(default = "default::severity")]
        severity: u32,
        /// Number of chains; default 3.
        #[serde(default = "default::severity")]
        mixture_width: u32,
        /// Operations of a chain; default: 1 to 3, at random.
        #[serde(default)]
        chain_depth: Option<u32>,
        /// Parameter of the distributions of weights; default 1.
        #[serde(default = "default::one")]
        alpha: f64,
        /// Whether brightness, colour, contrast and sharpness are among the operations; default true.
        #[serde(default = "default::yes")]
        all_ops: bool,
        /// How pixels of geometric operations are sampled; default bilinear.
        #[serde(default = "default::bilinear")]
        interpolation: Interpolation,
        /// Colour outside the image; default black.
        #[serde(default)]
        fill: [u8; 3],
    },
    /// Applies all of `transforms` with probability `p`, else none.
    RandomApply {
        /// The steps.
        transforms: Vec<Transform>,
        /// Probability, 0 to 1; default 0.5.
        #[serde(default = "default::half")]
        p: f64,
    },
}

/// A corner of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Corner {
    /// The upper left one.
    TopLeft,
    /// The upper right one.
    TopRight,
    /// The lower left one.
    BottomLeft,
    /// The lower right one.
    BottomRight,
}

/// Where an image lies on a larger canvas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// In the middle. Of an odd number of pixels to add, one more is added on the right or at the bottom.
    #[default]
    Center,
    /// In the upper left corner.
    TopLeft,
}

/// Where padding comes from. The names are torchvision's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PaddingMode {
    /// One colour.
    #[default]
    Constant,
    /// The nearest pixel of the image.
    Edge,
    /// The image mirrored, without repeating its edge.
    Reflect,
    /// The image mirrored, repeating its edge.
    Symmetric,
}

/// What an erased rectangle is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EraseValue {
    /// One colour.
    Color([u8; 3]),
    /// `"random"`: normal noise with the mean and standard deviation of ImageNet's pixels.
    Noise(Noise),
}

/// The text `"random"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Noise {
    /// The text `"random"`.
    #[serde(rename = "random")]
    Random,
}

impl Default for EraseValue {
    fn default() -> Self {
        EraseValue::Color([0; 3])
    }
}

/// A table of AutoAugment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AutoAugmentPolicy {
    /// Learnt on ImageNet.
    #[default]
    Imagenet,
    /// Learnt on CIFAR-10.
    Cifar10,
    /// Learnt on Street View House Numbers.
    Svhn,
}
