//! Image size → the shape of the nearest aspect ratio.

use std::num::NonZeroU32;

use super::{ImageShape, MAX_BUCKETS};
use crate::Error;

/// Finds the shape whose aspect ratio is nearest to that of an image. Distances are those of logarithms, compared exactly
/// with integers, so every machine and language finds the same shape.
#[derive(Clone, Debug)]
pub struct AspectRatios {
    /// The first shape of each aspect ratio with its number, by ascending height ÷ width.
    by_ratio: Box<[(ImageShape, u16)]>,
}

impl AspectRatios {
    /// Prepares the search among these shapes.
    ///
    /// # Errors
    /// [`Error::BucketCount`] unless there are 1 to 2¹⁶ shapes.
    pub fn new(shapes: &[ImageShape]) -> Result<Self, Error> {
        if shapes.is_empty() || shapes.len() > MAX_BUCKETS {
            return Err(Error::BucketCount { count: shapes.len() });
        }
        let mut by_ratio: Vec<(ImageShape, u16)> = shapes.iter().copied().zip(0..=u16::MAX).collect();
        // The sort is stable, so that the first of several equal ratios is kept.
        by_ratio.sort_by(|(a, _), (b, _)| across(*a, *b).cmp(&across(*b, *a)));
        by_ratio.dedup_by(|(later, _), (kept, _)| across(*later, *kept) == across(*kept, *later));
        Ok(AspectRatios { by_ratio: by_ratio.into() })
    }

    /// Returns the number of the shape nearest to an image of this height and width in pixels, as displayed; of several
    /// equally near ones the first.
    pub fn nearest(&self, height: NonZeroU32, width: NonZeroU32) -> u16 {
        let image = ImageShape { height, width };
        let above = self.by_ratio.partition_point(|(shape, _)| across(*shape, image) < across(image, *shape));
        let below = above.checked_sub(1).map(|i| self.by_ratio[i]);
        match (below, self.by_ratio.get(above)) {
            (Some((low, low_number)), Some(&(high, high_number))) => {
                // image ÷ low and high ÷ image, of which the smaller wins.
                let to_low = u128::from(across(image, low)) * u128::from(across(image, high));
                let to_high = u128::from(across(high, image)) * u128::from(across(low, image));
                match to_low.cmp(&to_high) {
                    std::cmp::Ordering::Less => low_number,
                    std::cmp::Ordering::Equal => low_number.min(high_number),
                    std::cmp::Ordering::Greater => high_number,
                }
            }
            (Some((_, number)), None) | (None, Some(&(_, number))) => number,
            (None, None) => unreachable!("`new` refuses an empty list"),
        }
    }
}

/// Computes a's height times b's width: a's ratio is below b's if `across(a, b) < across(b, a)`.
fn across(a: ImageShape, b: ImageShape) -> u64 {
    u64::from(a.height.get()) * u64::from(b.width.get())
}
