//! Filling a row with the samples that are packed into it.

use super::{RowTarget, Worker};
use crate::batch::{PartOut, RowOut, SharedBatch};
use crate::buffer::RowPixels;
use crate::cell::Cell;
use crate::error::Result;

impl Worker<'_> {
    /// Fills a row with the samples of the packed row with number `number`. A row without any valid sample is not valid.
    pub(super) fn packed_row(&mut self, batch: &SharedBatch, number: u64, out: &mut RowOut) -> Result<()> {
        (out.id, out.valid) = (-1, false);
        out.parts.clear();
        out.cells.iter_mut().for_each(Cell::clear);
        let columns = &self.engine.config.columns;
        // Both are kept from row to row.
        let mut part = self.part.take().unwrap_or_else(|| RowOut::new(columns));
        let mut samples = std::mem::take(&mut self.samples);
        samples.clear();
        samples.extend_from_slice(self.cursor(batch).packed(number).unwrap_or_default());
        for packed in &samples {
            let pixels = RowPixels { images: vec![], masks: vec![], arrays: vec![] };
            let mut target = RowTarget { pixels, out: &mut part };
            self.sample_or_substitute(batch, packed.position, packed.sample, None, &mut target)?;
            drop(target);
            if !part.valid {
                continue;
            }
            let most = packed.tokens as usize;
            let mut tokens = 0;
            for ((column, cell), values) in self.engine.config.columns.iter().zip(&mut out.cells).zip(&part.cells) {
                let ragged = column.is_ragged();
                cell.append(values, if ragged { most } else { values.len() });
                tokens = if ragged { values.len().min(most) } else { tokens };
            }
            out.valid = true;
            out.parts.push(PartOut { id: part.id, tokens: tokens as i64 });
        }
        (self.part, self.samples) = (Some(part), samples);
        Ok(())
    }
}
