//! Image shapes of about the same area.

use std::num::NonZeroU32;

use super::ImageShape;
use crate::Error;

/// The largest number of cells. There are at most 2√cells shapes, so this bounds them to the largest number of buckets.
const MAX_CELLS: u32 = 1 << 30;

/// Returns every shape whose sides are multiples of `step` pixels, whose area is at most `cells` · `step`², whose longer
/// side is at most `ratio` times the shorter one, and of which no side can grow by a step; by ascending height. With
/// `step` the side of a patch, `cells` is the largest number of patches.
///
/// # Errors
/// [`Error::ShapeBudget`] if `cells` exceeds 2³⁰ or `step` · `cells` is 2³² or more; [`Error::NoShape`] if no shape has
/// such a ratio.
pub fn shapes_within(step: NonZeroU32, cells: NonZeroU32, ratio: NonZeroU32) -> Result<Vec<ImageShape>, Error> {
    if cells.get() > MAX_CELLS || step.checked_mul(cells).is_none() {
        return Err(Error::ShapeBudget { step: step.get(), cells: cells.get() });
    }
    let mut shapes = Vec::new();
    let mut next = Some(NonZeroU32::MIN);
    while let Some(least) = next.filter(|rows| *rows <= cells) {
        // The most columns for this number of rows, then the most rows for this number of columns.
        let columns = quotient(cells, least);
        let rows = quotient(cells, columns);
        if u64::from(rows.max(columns).get()) <= u64::from(rows.min(columns).get()) * u64::from(ratio.get()) {
            shapes.push(ImageShape { height: rows.saturating_mul(step), width: columns.saturating_mul(step) });
        }
        next = rows.checked_add(1);
    }
    if shapes.is_empty() { Err(Error::NoShape { cells: cells.get(), ratio: ratio.get() }) } else { Ok(shapes) }
}

/// Computes ⌊a ÷ b⌋ for a ≥ b.
fn quotient(a: NonZeroU32, b: NonZeroU32) -> NonZeroU32 {
    NonZeroU32::new(a.get() / b).unwrap_or(NonZeroU32::MIN)
}
