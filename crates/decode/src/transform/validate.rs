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
            | Transform::FixedSizeCrop { size, .. } => *self = Size::fixed(size),
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
    if let Transform::RandomResizedCrop { interpolation: Filter::Nearest, .. }
    | Transform::Resize { interpolation: Filter::Nearest, .. }
    | Transform::ResizeTo { interpolation: Filter::Nearest, .. }
    | Transform::ScaleJitter { interpolation: Filter::Nearest, .. }
    | Transform::RandomShortestSize { interpolation: Filter::Nearest, .. } = transform
    {
        return Err(TransformError::Range { step, name: "interpolation", expected: "bilinear, bicubic or lanczos" });
    }
    let range = |valid: bool, name, expected| match valid {
        true => Ok(()),
        false => Err(TransformError::Range { step, name, expected }),
    };
    let side = |n: u32| (1..=MAX_SIDE).contains(&n);
    let sides = |size: [u32; 2], name| range(size.into_iter().all(side), name, "1 to 65535 pixels a side");
    let probability = |p: f64| range((0.0..=1.0).contains(&p), "p", "0 to 1");
    // Comparisons with NaN are false.
    let within = |[low, high]: [f64; 2], from: f64, to: f64| from <= low && low <= high && high <= to;
    let factors = |r: Option<[f64; 2]>, name| {
        range(r.is_none_or(|r| within(r, 0.0, 1e6)), name, "0 <= smallest <= largest, finite")
    };
    let angles =
        |r: [f64; 2], name| range(within(r, -1e6, 1e6), name, "smallest <= largest, in degrees, at most 1000000");
    let padding = |p: [u32; 4]| range(p.into_iter().all(|n| n <= MAX_SIDE), "padding", "at most 65535 pixels a side");
    match *transform {
        Transform::RandomResizedCrop { size, scale, ratio, .. } => {
            sides(size, "size")?;
            range(0.0 < scale[0] && within(scale, 0.0, 1.0), "scale", "0 < smallest <= largest <= 1")?;
            range(0.0 < ratio[0] && within(ratio, 0.0, f64::MAX), "ratio", "0 < smallest <= largest, finite")
        }
        Transform::Resize { shorter, longest, .. } => {
            range(side(shorter), "shorter", "1 to 65535 pixels")?;
            range(longest.is_none_or(|n| side(n) && n >= shorter), "longest", "shorter to 65535 pixels")
        }
        Transform::ResizeTo { size, .. } | Transform::CenterCrop { size } | Transform::CornerCrop { size, .. } => {
            sides(size, "size")
        }
        Transform::FixedSizeCrop { size, .. } => sides(size, "size"),
        Transform::RandomCrop { size, padding: around, .. } => {
            padding(around)?;
            sides(size, "size")
        }
        Transform::Pad { padding: around, .. } => padding(around),
        Transform::HorizontalFlip { p }
        | Transform::VerticalFlip { p }
        | Transform::RandomGrayscale { p }
        | Transform::RandomEqualize { p }
        | Transform::RandomAutocontrast { p }
        | Transform::RandomInvert { p } => probability(p),
        Transform::RandomZoomOut { side_range, p, .. } => {
            range(within(side_range, 1.0, 100.0), "side_range", "1 <= smallest <= largest <= 100")?;
            probability(p)
        }
        Transform::RandomIouCrop {
            min_scale,
            max_scale,
            min_aspect_ratio,
            max_aspect_ratio,
            ref sampler_options,
            trials,
        } => {
            range(within([min_scale, max_scale], 0.0, 1.0) && max_scale > 0.0, "min_scale, max_scale", "0 to 1")?;
            let ratio = [min_aspect_ratio, max_aspect_ratio];
            range(within(ratio, 0.0, 1e6) && ratio[1] > 0.0, "min_aspect_ratio, max_aspect_ratio", "above 0")?;
            let overlaps = !sampler_options.is_empty() && sampler_options.iter().all(|o| o.is_finite() && *o >= 0.0);
            range(overlaps, "sampler_options", "at least one number, each at least 0")?;
            range((1..=10_000).contains(&trials), "trials", "1 to 10000")
        }
        Transform::ScaleJitter { target_size, scale_range, .. } => {
            sides(target_size, "target_size")?;
            range(0.0 < scale_range[0] && within(scale_range, 0.0, 100.0), "scale_range", "above 0, at most 100")
        }
        Transform::RandomShortestSize { ref min_size, max_size, .. } => {
            let valid = !min_size.is_empty() && min_size.iter().all(|n| side(*n));
            range(valid, "min_size", "at least one length, each 1 to 65535 pixels")?;
            range(max_size.is_none_or(side), "max_size", "1 to 65535 pixels")
        }
        Transform::RandomRotation { degrees, .. } => angles(degrees, "degrees"),
        Transform::RandomAffine { degrees, translate, scale, shear, .. } => {
            angles(degrees, "degrees")?;
            range(translate.is_none_or(|t| t.iter().all(|t| (0.0..=1.0).contains(t))), "translate", "0 to 1")?;
            range(scale.is_none_or(|s| 0.0 < s[0] && within(s, 0.0, 1e6)), "scale", "0 < smallest <= largest")?;
            let [low_x, high_x, low_y, high_y] = shear.unwrap_or_default();
            let open = |r: [f64; 2]| within(r, -89.0, 89.0);
            range(open([low_x, high_x]) && open([low_y, high_y]), "shear", "-89 to 89 degrees")
        }
        Transform::RandomPerspective { distortion_scale, p, .. } => {
            range((0.0..=1.0).contains(&distortion_scale), "distortion_scale", "0 to 1")?;
            probability(p)
        }
        Transform::ColorJitter { brightness, contrast, saturation, hue } => {
            factors(brightness, "brightness")?;
            factors(contrast, "contrast")?;
            factors(saturation, "saturation")?;
            range(hue.is_none_or(|h| within(h, -0.5, 0.5)), "hue", "-0.5 <= smallest <= largest <= 0.5")
        }
        Transform::RandomPhotometricDistort { brightness, contrast, saturation, hue, p } => {
            factors(Some(brightness), "brightness")?;
            factors(Some(contrast), "contrast")?;
            factors(Some(saturation), "saturation")?;
            range(within(hue, -0.5, 0.5), "hue", "-0.5 <= smallest <= largest <= 0.5")?;
            probability(p)
        }
        Transform::GaussianBlur { kernel_size, sigma } => {
            let odd = kernel_size.iter().all(|n| n % 2 == 1 && *n < 1000);
            range(odd, "kernel_size", "odd numbers of pixels, below 1000")?;
            range(0.0 < sigma[0] && within(sigma, 0.0, 1e6), "sigma", "0 < smallest <= largest")
        }
        Transform::RandomSolarize { threshold, p } => {
            range((0.0..=255.0).contains(&threshold), "threshold", "0 to 255")?;
            probability(p)
        }
        Transform::RandomPosterize { bits, p } => {
            range(bits <= 8, "bits", "0 to 8")?;
            probability(p)
        }
        Transform::RandomAdjustSharpness { sharpness_factor, p } => {
            factors(Some([sharpness_factor; 2]), "sharpness_factor")?;
            probability(p)
        }
        Transform::RandomErasing { p, scale, ratio, .. } => {
            probability(p)?;
            range(within(scale, 0.0, 1.0), "scale", "0 <= smallest <= largest <= 1")?;
            range(0.0 < ratio[0] && within(ratio, 0.0, f64::MAX), "ratio", "0 < smallest <= largest, finite")
        }
        Transform::RandAugment { num_ops, magnitude, num_magnitude_bins: bins, .. } => {
            range(num_ops <= 100, "num_ops", "at most 100")?;
            range((2..=1_000_000).contains(&bins), "num_magnitude_bins", "2 to 1000000")?;
            range(magnitude < bins, "magnitude", "below num_magnitude_bins")
        }
        Transform::TrivialAugmentWide { num_magnitude_bins: bins, .. } => {
            range((2..=1_000_000).contains(&bins), "num_magnitude_bins", "2 to 1000000")
        }
        Transform::AutoAugment { .. } => Ok(()),
        Transform::AugMix { severity, mixture_width, chain_depth, alpha, .. } => {
            range((1..=10).contains(&severity), "severity", "1 to 10")?;
            range((1..=100).contains(&mixture_width), "mixture_width", "1 to 100")?;
            range(chain_depth.is_none_or(|n| (1..=100).contains(&n)), "chain_depth", "1 to 100")?;
            range(alpha > 0.0 && alpha <= 1e6, "alpha", "above 0, at most 1000000")
        }
        Transform::RandomApply { ref transforms, p } => {
            probability(p)?;
            transforms.iter().try_for_each(|inner| check(inner, step))
        }
    }
}
