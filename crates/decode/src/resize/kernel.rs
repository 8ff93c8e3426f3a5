//! What a processor's instructions compute of an antialiased resize of 8-bit pixels.

use super::axis_filter::{AxisFilter, WeightBlocks};
use super::weights::AxisWeights;

/// Bytes after the pixels of a row that vector instructions may read or write.
pub(crate) const ROW_PADDING: usize = 32;

/// Computes the two passes, `R` rows at a time in the first one, with weights in groups of a layout.
pub(crate) trait Kernel<G, const R: usize>: Copy {
    /// Computes the weights of an axis, as [`AxisFilter::write_weights`].
    fn write_weights(self, axis: &AxisFilter, flipped: bool, out: &mut WeightBlocks) {
        axis.write_weights(flipped, out);
    }

    /// Resizes rows horizontally. Pixels have `C` bytes.
    fn horizontal<const C: usize>(self, rows: [&[u8]; R], columns: &AxisWeights<G>, out: [&mut [u8]; R]);

    /// Computes one result row from the rows of the ring at the given offsets.
    fn vertical(self, ring: &[u8], row_offsets: &[usize], weights: &[G], out: &mut [u8]);
}
