//! Where the pixels of a result lie in the stored image, for arrays that follow its geometry.

use super::bounded::Bounded;
use super::pixels;
use super::planned::{Geometries, PlannedImage};
use super::write::DecodeScratch;
use crate::arrays::{OUTSIDE, Positions};
use shardtool_decode::{Error, LabelDtype, PixelFormat};

const DTYPE: LabelDtype = LabelDtype::U16;

impl PlannedImage<'_> {
    /// Returns the bytes that the positions and finding them takes.
    pub(crate) fn position_scratch(&self) -> u64 {
        let Geometries { views, bounded, .. } = &self.geometries;
        let value = DTYPE.bytes() as u64;
        let (stored, output) = (pixels(self.stored.size), pixels(views[0].plan.output_size()));
        let bounded = bounded.as_ref().map_or(0, |bounded| 2 * bounded.label_bytes(DTYPE));
        // A label map and the buffer that it is made from; both results, and one before rows and columns are exchanged.
        value * (2 * stored + 3 * output) + bounded + views[0].plan.scratch_bytes(PixelFormat::GRAY16)
    }

    /// Finds which stored pixel each pixel of the view shows: the view's geometry moves label maps of the columns and of the rows. With
    /// one view only.
    pub(crate) fn find_positions(&self, scratch: &mut DecodeScratch, out: &mut Positions) -> Result<(), Error> {
        let Geometries { views, bounded, .. } = &self.geometries;
        let plan = &views[0].plan;
        let (width, height) = self.stored.size;
        let DecodeScratch { labels, views: scratch, .. } = scratch;
        let side = |n: u32| u16::try_from(n).map_err(|_| Error::Side { width, height });
        let (columns, rows) = (side(width)?, side(height)?);
        for (of_rows, out) in [(false, &mut out.columns), (true, &mut out.rows)] {
            let values = &mut scratch.bounded;
            values.clear();
            values.reserve_exact(pixels((width, height)) as usize * DTYPE.bytes());
            let line: Vec<u8> = (0..columns).flat_map(u16::to_le_bytes).collect();
            for row in 0..rows {
                values.extend_from_slice(&line);
                if of_rows {
                    let start = values.len() - line.len();
                    values[start..].as_chunks_mut().0.fill(row.to_le_bytes());
                }
            }
            labels.set((width, height), DTYPE, values)?;
            if let Some(bounded) = bounded {
                bounded.resize_labels(labels, DTYPE, (values, &mut scratch.transform))?;
                labels.set(bounded.size, DTYPE, values)?;
            }
            out.resize(pixels(plan.output_size()) as usize * DTYPE.bytes(), 0);
            plan.apply_to_labels(labels, OUTSIDE.into(), out, &mut scratch.transform)?;
        }
        out.moves.clear();
        out.moves.extend(bounded.as_ref().map(Bounded::plan).into_iter().chain([plan]).cloned());
        Ok(())
    }
}
