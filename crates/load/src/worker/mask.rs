//! Rows without a sample.

use super::RowTarget;
use crate::cell::Cell;
use crate::columns::ResolvedColumn;
use crate::engine::Engine;

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
    pixels.masks.iter_mut().zip(engine.config.masks()).for_each(|(mask, labels)| mask.fill(labels.masked));
    pixels.arrays.iter_mut().zip(engine.config.arrays.outputs()).for_each(|(row, output)| output.mask(row));
    (out.id, out.valid, out.record) = (-1, false, None);
    out.parts.clear();
    let packed = engine.config.plan.packing().is_some();
    let mask = |(column, cell): (&ResolvedColumn, &mut Cell)| if packed { cell.clear() } else { column.mask(cell) };
    engine.config.columns.iter().zip(&mut out.cells).for_each(mask);
}
