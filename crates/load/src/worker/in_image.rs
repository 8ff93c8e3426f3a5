//! Arrays with an element for each pixel of the record's image.

use crate::arrays::PlannedArrays;
use crate::engine::Engine;
use crate::error::SampleError;
use crate::image::{DecodeScratch, PlannedImage};
use crate::notices::Notice;

/// Checks the arrays that follow the image, and reports those that have its size and do not follow it. Returns the bytes that finding
/// the positions of its pixels takes; 0 if no array follows it.
///
/// # Errors
/// [`SampleError::ArrayImageSize`].
pub(super) fn prepare(
    engine: &Engine,
    arrays: &PlannedArrays<'_>,
    image: &PlannedImage<'_>,
) -> Result<u64, SampleError> {
    arrays.check_size(image.size())?;
    if image.moves_pixels() {
        for feature in arrays.unmoved(image.size()) {
            engine.notices.add(Notice::UnmovedArray { feature: feature.to_owned(), size: image.size() });
        }
    }
    Ok(if engine.config.arrays.follow_image() { image.position_scratch() } else { 0 })
}

/// Finds the positions of the image's pixels, if an array follows it.
pub(super) fn find_positions(
    engine: &Engine,
    image: &PlannedImage<'_>,
    scratch: &mut DecodeScratch,
) -> Result<(), SampleError> {
    if !engine.config.arrays.follow_image() {
        return Ok(());
    }
    let mut positions = std::mem::take(&mut scratch.arrays.positions);
    image.find_positions(scratch, &mut positions)?;
    scratch.arrays.positions = positions;
    Ok(())
}
