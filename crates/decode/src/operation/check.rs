//! Validates the parameters of operations.

use super::Operation;
use crate::error::Error;

/// Checks that every parameter is in its range for an image of `size` (width, height).
///
/// # Errors
/// [`Error::Operation`] if a parameter is out of range; [`Error::BlurKernel`] if a kernel is too large for the image.
pub(super) fn check(operation: &Operation, size: (u32, u32)) -> Result<(), Error> {
    let range = |valid: bool, name, expected| match valid {
        true => Ok(()),
        false => Err(Error::Operation { operation: operation.name(), name, expected }),
    };
    // The arithmetic is in f32.
    let finite = |values: &[f64]| values.iter().all(|value| (*value as f32).is_finite());
    match operation {
        Operation::Brightness { factor }
        | Operation::Contrast { factor }
        | Operation::Saturation { factor }
        | Operation::Sharpness { factor } => range(*factor >= 0.0 && finite(&[*factor]), "factor", "0 or more, finite"),
        Operation::Hue { factor } => range((-0.5..=0.5).contains(factor), "factor", "-0.5 to 0.5"),
        Operation::ChannelPermutation { order } => {
            let mut sorted = *order;
            sorted.sort_unstable();
            range(sorted == [0, 1, 2], "order", "a permutation of 0, 1 and 2")
        }
        Operation::Posterize { bits } => range(*bits <= 8, "bits", "0 to 8"),
        Operation::Solarize { threshold } => {
            range(*threshold <= 255.0 && finite(&[*threshold]), "threshold", "at most 255, finite")
        }
        Operation::GaussianBlur { kernel, sigma } => {
            range(kernel.iter().all(|side| side % 2 == 1), "kernel", "two odd numbers")?;
            range(sigma.iter().all(|s| *s > 0.0 && s.is_finite()), "sigma", "above 0, finite")?;
            // Reflection needs a pixel at the distance of the radius from each edge.
            let fits = |side: u32, kernel: u32| side == 0 || kernel / 2 < side;
            match fits(size.0, kernel[0]) && fits(size.1, kernel[1]) {
                true => Ok(()),
                false => Err(Error::BlurKernel { kernel: *kernel, image: size }),
            }
        }
        Operation::Affine { matrix, .. } => range(finite(matrix), "matrix", "finite numbers"),
        Operation::Perspective { coefficients, .. } => range(finite(coefficients), "coefficients", "finite numbers"),
        Operation::AugMix { image, weights, chains } => {
            range(image.is_finite(), "image", "a finite weight")?;
            let finite = weights.iter().all(|weight| weight.is_finite());
            range(finite && weights.len() == chains.len(), "weights", "a finite weight for each chain")?;
            chains.iter().flatten().try_for_each(|operation| match operation {
                Operation::AugMix { .. } => range(false, "chains", "operations other than aug_mix"),
                operation => check(operation, size),
            })
        }
        Operation::HorizontalFlip
        | Operation::VerticalFlip
        | Operation::Grayscale
        | Operation::Invert
        | Operation::Autocontrast
        | Operation::Equalize
        | Operation::Erase { .. }
        | Operation::EraseNoise { .. } => Ok(()),
    }
}
