//! Checks of a pipeline: the ranges of parameters, and the size of the result.

use super::step::Transform;
use crate::error::TransformError;
use crate::resize::{Filter, scale_to_side};

/// The longest side of a result in pixels.
const MAX_SIDE: u32 = 65_535;

/// Validates the steps and returns the width and height of every result.
pub(crate) fn validate(steps: &[Transform]) -> Result<(u32, u32), TransformError> {
    let mut size = Size::default();
    for (step, transform) in steps.iter().enumerate() {
        check(transform, step)?;
        size.apply(transform, step)?;
    }
    size.known.ok_or(TransformError::NoSize)
}

/// What is known of the size after some steps, before an image is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Size {
    /// Width and height, if every image has them.
    known: Option<(u32, u32)>,
    /// Length of the shorter side, if every image has it.
    shorter: Option<u32>,
}

impl Size {
    fn fixed([height, width]: [u32; 2]) -> Self {
        Size { known: Some((width, height)), shorter: Some(width.min(height)) }
    }

    fn apply(&mut self, transform: &Transform, step: usize) -> Result<(), TransformError> {
        match *transform {
            Transform::RandomResizedCrop { size, .. }
            | Transform::ResizeTo { size, .. }
            | Transform::FixedSizeCrop { size, .. }
            | Transform::Letterbox { size, .. } => *self = Size::fixed(size),
            Transform::Resize { shorter, longest, .. } => {
                let known = self.known.map(|known| scale_to_side(known, shorter, longest));
                *self = Size { known, shorter: if longest.is_none() { Some(shorter) } else { None } };
            }
            Transform::CenterCrop { size } | Transform::CornerCrop { size, .. } => {
                self.check_crop(size, [0; 4], step)?;
                *self = Size::fixed(size);
            }
            Transform::RandomCrop { size, padding, pad_if_needed, .. } => {
                if !pad_if_needed {
                    self.check_crop(size, padding, step)?;
                }
                *self = Size::fixed(size);
            }
            Transform::Pad { padding: [left, top, right, bottom], .. } => {
                let known = self.known.map(|(w, h)| (w + left + right, h + top + bottom));
                if known.is_some_and(|(w, h)| w.max(h) > MAX_SIDE) {
                    return Err(TransformError::Range {
                        step,
                        name: "padding",
                        expected: "a result of at most 65535 pixels a side",
                    });
                }
                *self = Size { known, shorter: known.map(|(w, h)| w.min(h)) };
            }
            Transform::RandomZoomOut { .. }
            | Transform::RandomIouCrop { .. }
            | Transform::ScaleJitter { .. }
            | Transform::RandomShortestSize { .. } => *self = Size::default(),
            Transform::RandomApply { ref transforms, p } => {
                let mut applied = *self;
                transforms.iter().try_for_each(|inner| applied.apply(inner, step))?;
                if p > 0.0 && applied != *self {
                    *self = if p < 1.0 { Size::default() } else { applied };
                }
            }
            // The others change pixels only.
            _ => {}
        }
        Ok(())
    }

    /// Checks that a crop fits, as far as the size is known.
    fn check_crop(&self, [height, width]: [u32; 2], padding: [u32; 4], step: usize) -> Result<(), TransformError> {
        let [left, top, right, bottom] = padding;
        let fits = match (self.known, self.shorter) {
            (Some((w, h)), _) => width <= w + left + right && height <= h + top + bottom,
            // Only the shorter side limits the crop.
            (None, Some(shorter)) if padding == [0; 4] => width.min(height) <= shorter,
            _ => true,
        };
        if fits { Ok(()) } else { Err(TransformError::Crop { step }) }
    }
}

/// Checks the parameters of a step.
fn check(transform: &Transform, step: usize) -> Result<(), TransformError> {
    let ranges = Ranges { step };
    ranges.interpolation(transform)?;
    match *transform {
        Transform::RandomResizedCrop { size, scale, ratio, .. } => {
            ranges.sides(size, "size")?;
            ranges.check(0.0 < scale[0] && within(scale, 0.0, 1.0), "scale", "0 < smallest <= largest <= 1")?;
            ranges.ratio(ratio)
        }
        Transform::Resize { shorter, longest, .. } => {
            ranges.check(is_side(shorter), "shorter", "1 to 65535 pixels")?;
            let valid = longest.is_none_or(|n| is_side(n) && n >= shorter);
            ranges.check(valid, "longest", "shorter to 65535 pixels")
        }
        Transform::ResizeTo { size, .. }
        | Transform::CenterCrop { size }
        | Transform::CornerCrop { size, .. }
        | Transform::FixedSizeCrop { size, .. }
        | Transform::Letterbox { size, .. } => ranges.sides(size, "size"),
        Transform::RandomCrop { size, padding, .. } => {
            ranges.padding(padding)?;
            ranges.sides(size, "size")
        }
        Transform::Pad { padding, .. } => ranges.padding(padding),
        Transform::HorizontalFlip { p }
        | Transform::VerticalFlip { p }
        | Transform::RandomGrayscale { p }
        | Transform::RandomEqualize { p }
        | Transform::RandomAutocontrast { p }
        | Transform::RandomInvert { p } => ranges.probability(p),
        Transform::RandomZoomOut { side_range, p, .. } => {
            ranges.check(within(side_range, 1.0, 100.0), "side_range", "1 <= smallest <= largest <= 100")?;
            ranges.probability(p)
        }
        Transform::RandomIouCrop {
            min_scale,
            max_scale,
            min_aspect_ratio,
            max_aspect_ratio,
            ref sampler_options,
            trials,
        } => {
            ranges.iou_crop([min_scale, max_scale], [min_aspect_ratio, max_aspect_ratio], sampler_options)?;
            ranges.check((1..=10_000).contains(&trials), "trials", "1 to 10000")
        }
        Transform::ScaleJitter { target_size, scale_range, .. } => {
            ranges.sides(target_size, "target_size")?;
            let valid = 0.0 < scale_range[0] && within(scale_range, 0.0, 100.0);
            ranges.check(valid, "scale_range", "above 0, at most 100")
        }
        Transform::RandomShortestSize { ref min_size, max_size, .. } => {
            let valid = !min_size.is_empty() && min_size.iter().all(|n| is_side(*n));
            ranges.check(valid, "min_size", "at least one length, each 1 to 65535 pixels")?;
            ranges.check(max_size.is_none_or(is_side), "max_size", "1 to 65535 pixels")
        }
        Transform::RandomRotation { degrees, .. } => ranges.angles(degrees),
        Transform::RandomAffine { degrees, translate, scale, shear, .. } => {
            ranges.angles(degrees)?;
            ranges.affine(translate, scale, shear.unwrap_or_default())
        }
        Transform::RandomPerspective { distortion_scale, p, .. } => {
            ranges.check((0.0..=1.0).contains(&distortion_scale), "distortion_scale", "0 to 1")?;
            ranges.probability(p)
        }
        Transform::ColorJitter { brightness, contrast, saturation, hue } => {
            ranges.colours([brightness, contrast, saturation], hue)
        }
        Transform::RandomPhotometricDistort { brightness, contrast, saturation, hue, p } => {
            ranges.colours([brightness, contrast, saturation].map(Some), Some(hue))?;
            ranges.probability(p)
        }
        Transform::GaussianBlur { kernel_size, sigma } => {
            let odd = kernel_size.iter().all(|n| n % 2 == 1 && *n < 1000);
            ranges.check(odd, "kernel_size", "odd numbers of pixels, below 1000")?;
            ranges.check(0.0 < sigma[0] && within(sigma, 0.0, 1e6), "sigma", "0 < smallest <= largest")
        }
        Transform::RandomSolarize { threshold, p } => {
            ranges.check((0.0..=255.0).contains(&threshold), "threshold", "0 to 255")?;
            ranges.probability(p)
        }
        Transform::RandomPosterize { bits, p } => {
            ranges.check(bits <= 8, "bits", "0 to 8")?;
            ranges.probability(p)
        }
        Transform::RandomAdjustSharpness { sharpness_factor, p } => {
            ranges.factors([sharpness_factor; 2], "sharpness_factor")?;
            ranges.probability(p)
        }
        Transform::RandomErasing { p, scale, ratio, .. } => {
            ranges.probability(p)?;
            ranges.check(within(scale, 0.0, 1.0), "scale", "0 <= smallest <= largest <= 1")?;
            ranges.ratio(ratio)
        }
        Transform::RandAugment { num_ops, magnitude, num_magnitude_bins: bins, .. } => {
            ranges.check(num_ops <= 100, "num_ops", "at most 100")?;
            ranges.bins(bins)?;
            ranges.check(magnitude < bins, "magnitude", "below num_magnitude_bins")
        }
        Transform::TrivialAugmentWide { num_magnitude_bins: bins, .. } => ranges.bins(bins),
        Transform::AutoAugment { .. } => Ok(()),
        Transform::AugMix { severity, mixture_width, chain_depth, alpha, .. } => {
            ranges.check((1..=10).contains(&severity), "severity", "1 to 10")?;
            ranges.check((1..=100).contains(&mixture_width), "mixture_width", "1 to 100")?;
            ranges.check(chain_depth.is_none_or(|n| (1..=100).contains(&n)), "chain_depth", "1 to 100")?;
            ranges.check(alpha > 0.0 && alpha <= 1e6, "alpha", "above 0, at most 1000000")
        }
        Transform::RandomApply { ref transforms, p } => {
            ranges.probability(p)?;
            transforms.iter().try_for_each(|inner| check(inner, step))
        }
    }
}

/// Returns whether this is a length of a side in pixels.
fn is_side(n: u32) -> bool {
    (1..=MAX_SIDE).contains(&n)
}

/// Returns whether a range is one, and lies between two bounds.
fn within([low, high]: [f64; 2], from: f64, to: f64) -> bool {
    // Comparisons with NaN are false.
    from <= low && low <= high && high <= to
}

/// Checks parameters that several steps have, or that belong together.
#[derive(Clone, Copy)]
struct Ranges {
    /// Index of the step, for the error.
    step: usize,
}

impl Ranges {
    fn check(self, valid: bool, name: &'static str, expected: &'static str) -> Result<(), TransformError> {
        if valid { Ok(()) } else { Err(TransformError::Range { step: self.step, name, expected }) }
    }

    /// Checks that images are not resized by the nearest neighbour.
    fn interpolation(self, transform: &Transform) -> Result<(), TransformError> {
        let nearest = matches!(
            transform,
            Transform::RandomResizedCrop { interpolation: Filter::Nearest, .. }
                | Transform::Resize { interpolation: Filter::Nearest, .. }
                | Transform::ResizeTo { interpolation: Filter::Nearest, .. }
                | Transform::ScaleJitter { interpolation: Filter::Nearest, .. }
                | Transform::RandomShortestSize { interpolation: Filter::Nearest, .. }
                | Transform::Letterbox { interpolation: Filter::Nearest, .. }
        );
        self.check(!nearest, "interpolation", "bilinear, bicubic or lanczos")
    }

    fn sides(self, size: [u32; 2], name: &'static str) -> Result<(), TransformError> {
        self.check(size.into_iter().all(is_side), name, "1 to 65535 pixels a side")
    }

    fn padding(self, padding: [u32; 4]) -> Result<(), TransformError> {
        self.check(padding.into_iter().all(|n| n <= MAX_SIDE), "padding", "at most 65535 pixels a side")
    }

    fn probability(self, p: f64) -> Result<(), TransformError> {
        self.check((0.0..=1.0).contains(&p), "p", "0 to 1")
    }

    fn ratio(self, ratio: [f64; 2]) -> Result<(), TransformError> {
        let valid = 0.0 < ratio[0] && within(ratio, 0.0, f64::MAX);
        self.check(valid, "ratio", "0 < smallest <= largest, finite")
    }

    fn angles(self, degrees: [f64; 2]) -> Result<(), TransformError> {
        let expected = "smallest <= largest, in degrees, at most 1000000";
        self.check(within(degrees, -1e6, 1e6), "degrees", expected)
    }

    fn factors(self, factors: [f64; 2], name: &'static str) -> Result<(), TransformError> {
        self.check(within(factors, 0.0, 1e6), name, "0 <= smallest <= largest, finite")
    }

    /// Checks the factors of brightness, contrast and saturation, and the change of the hue.
    fn colours(self, factors: [Option<[f64; 2]>; 3], hue: Option<[f64; 2]>) -> Result<(), TransformError> {
        for (factors, name) in factors.into_iter().zip(["brightness", "contrast", "saturation"]) {
            factors.map_or(Ok(()), |factors| self.factors(factors, name))?;
        }
        self.check(hue.is_none_or(|h| within(h, -0.5, 0.5)), "hue", "-0.5 <= smallest <= largest <= 0.5")
    }

    /// Checks the number of magnitudes of a policy.
    fn bins(self, bins: u32) -> Result<(), TransformError> {
        self.check((2..=1_000_000).contains(&bins), "num_magnitude_bins", "2 to 1000000")
    }

    fn iou_crop(self, scale: [f64; 2], ratio: [f64; 2], overlaps: &[f64]) -> Result<(), TransformError> {
        self.check(within(scale, 0.0, 1.0) && scale[1] > 0.0, "min_scale, max_scale", "0 to 1")?;
        self.check(within(ratio, 0.0, 1e6) && ratio[1] > 0.0, "min_aspect_ratio, max_aspect_ratio", "above 0")?;
        let valid = !overlaps.is_empty() && overlaps.iter().all(|o| o.is_finite() && *o >= 0.0);
        self.check(valid, "sampler_options", "at least one number, each at least 0")
    }

    fn affine(
        self,
        translate: Option<[f64; 2]>,
        scale: Option<[f64; 2]>,
        [low_x, high_x, low_y, high_y]: [f64; 4],
    ) -> Result<(), TransformError> {
        let valid = translate.is_none_or(|t| t.iter().all(|t| (0.0..=1.0).contains(t)));
        self.check(valid, "translate", "0 to 1")?;
        let valid = scale.is_none_or(|s| 0.0 < s[0] && within(s, 0.0, 1e6));
        self.check(valid, "scale", "0 < smallest <= largest")?;
        let open = |r: [f64; 2]| within(r, -89.0, 89.0);
        self.check(open([low_x, high_x]) && open([low_y, high_y]), "shear", "-89 to 89 degrees")
    }
}
