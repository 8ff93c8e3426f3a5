//! Which steps are defined for pixels of which format, and which compute values that the image does not hold.

use super::step::{EraseValue, Transform};
use crate::operation::Interpolation;
use crate::pixel_format::{Channels, Depth, PixelFormat};

impl Transform {
    /// Returns the name of this step, or of one inside it, if it is not defined for a format.
    pub(super) fn undefined_for(&self, format: PixelFormat) -> Option<&'static str> {
        let (gray, deep) = (format.channels == Channels::Gray, format.depth == Depth::Sixteen);
        let if_deep = |name| deep.then_some(name);
        match self {
            // Geometry.
            Transform::RandomResizedCrop { .. }
            | Transform::Resize { .. }
            | Transform::ResizeTo { .. }
            | Transform::CenterCrop { .. }
            | Transform::CornerCrop { .. }
            | Transform::RandomCrop { .. }
            | Transform::Pad { .. }
            | Transform::HorizontalFlip { .. }
            | Transform::VerticalFlip { .. }
            | Transform::RandomZoomOut { .. }
            | Transform::RandomIouCrop { .. }
            | Transform::ScaleJitter { .. }
            | Transform::RandomShortestSize { .. }
            | Transform::FixedSizeCrop { .. }
            | Transform::Letterbox { .. }
            | Transform::RandomRotation { interpolation: Interpolation::Nearest, .. }
            | Transform::RandomAffine { interpolation: Interpolation::Nearest, .. }
            | Transform::RandomPerspective { interpolation: Interpolation::Nearest, .. } => None,
            Transform::RandomApply { transforms, .. } => transforms.iter().find_map(|step| step.undefined_for(format)),
            Transform::RandomErasing { value: EraseValue::Color(_), .. } => None,
            Transform::RandomErasing { value: EraseValue::Noise(_), .. } => {
                (gray || deep).then_some("random_erasing (value: random)")
            }
            Transform::RandomPhotometricDistort { .. } => (gray || deep).then_some("random_photometric_distort"),
            Transform::RandomRotation { .. } => if_deep("random_rotation (interpolation: bilinear)"),
            Transform::RandomAffine { .. } => if_deep("random_affine (interpolation: bilinear)"),
            Transform::RandomPerspective { .. } => if_deep("random_perspective (interpolation: bilinear)"),
            Transform::ColorJitter { .. } => if_deep("color_jitter"),
            Transform::RandomGrayscale { .. } => if_deep("random_grayscale"),
            Transform::GaussianBlur { .. } => if_deep("gaussian_blur"),
            Transform::RandomSolarize { .. } => if_deep("random_solarize"),
            Transform::RandomPosterize { .. } => if_deep("random_posterize"),
            Transform::RandomEqualize { .. } => if_deep("random_equalize"),
            Transform::RandomAutocontrast { .. } => if_deep("random_autocontrast"),
            Transform::RandomInvert { .. } => if_deep("random_invert"),
            Transform::RandomAdjustSharpness { .. } => if_deep("random_adjust_sharpness"),
            Transform::RandAugment { .. } => if_deep("rand_augment"),
            Transform::TrivialAugmentWide { .. } => if_deep("trivial_augment_wide"),
            Transform::AutoAugment { .. } => if_deep("auto_augment"),
            Transform::AugMix { .. } => if_deep("aug_mix"),
        }
    }

    /// Returns whether this step, or one inside it, computes values from pixels, so that a result may have values that no pixel of
    /// the image has. Those that only move pixels, or overwrite them with one colour, do not.
    pub(super) fn computes_values(&self) -> bool {
        match self {
            Transform::RandomRotation { interpolation, .. }
            | Transform::RandomAffine { interpolation, .. }
            | Transform::RandomPerspective { interpolation, .. } => *interpolation != Interpolation::Nearest,
            Transform::CenterCrop { .. }
            | Transform::CornerCrop { .. }
            | Transform::RandomCrop { .. }
            | Transform::Pad { .. }
            | Transform::HorizontalFlip { .. }
            | Transform::VerticalFlip { .. }
            | Transform::RandomZoomOut { .. }
            | Transform::RandomIouCrop { .. }
            | Transform::FixedSizeCrop { .. }
            | Transform::RandomErasing { value: EraseValue::Color(_), .. } => false,
            Transform::RandomApply { transforms, .. } => transforms.iter().any(Transform::computes_values),
            // Resizes, whose filters are for colours, and changes of colours.
            _ => true,
        }
    }
}
