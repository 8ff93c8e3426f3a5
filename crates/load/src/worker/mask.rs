//! Rows without a sample.

use super::RowTarget;
use crate::cell::Cell;
use crate::columns::ResolvedColumn;
use crate::engine::Engine;

/// Every byte of label maps in rows without a sample: loss functions ignore 255 by convention, and 65535 is the
/// corresponding 16-bit label.
const MASKED_LABEL: u8 = 255;

/// Fills a row that has no sample.
pub(super) fn mask(engine: &Engine, bucket: usize, RowTarget { pixels, out }: &mut RowTarget<'_>) {
    let images = pixels.images.iter_mut().zip(engine.config.pictures(bucket));
    images.for_each(|(image, picture)| match picture.normalizer {
        None => image.fill(0),
        Some(normalizer) => {
            let frame = image.len() / engine.config.row_frames();
            image.chunks_exact_mut(frame).for_each(|image| normalizer.write_black(image));
        }
    });
    pixels.masks.iter_mut().for_each(|mask| mask.fill(MASKED_LABEL));
    pixels.arrays.iter_mut().zip(engine.config.arrays.outputs()).for_each(|(row, output)| output.mask(row));
    (out.id, out.valid, out.record) = (-1, false, None);
    out.parts.clear();
    let packed = engine.config.plan.packing().is_some();
    let mask = |(column, cell): (&ResolvedColumn, &mut Cell)| if packed { cell.clear() } else { column.mask(cell) };
    engine.config.columns.iter().zip(&mut out.cells).for_each(mask);
}
