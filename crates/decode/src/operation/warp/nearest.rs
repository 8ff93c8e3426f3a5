//! Nearest neighbour.

use super::{BLOCK, Positions, Warp, limits, locate};
use crate::operation::sample::whole;
use crate::operation::vectorised::vectorised;

vectorised!(round = round_kernel(size: (usize, usize), positions: &Positions, nearest: &mut Nearest));

/// Column and row of the nearest pixels in the source; −1 and 0 outside the image.
struct Nearest {
    columns: [i32; BLOCK],
    rows: [i32; BLOCK],
}

impl Warp {
    /// Writes the nearest pixel of `source` to each pixel of `out`; where that is outside the image, `fill`. Pixels have `C`
    /// bytes. Halves are rounded to even.
    pub(in crate::operation) fn nearest<const C: usize>(&self, source: &[u8], fill: [u8; C], out: &mut [u8]) {
        let width = self.size.0;
        let source = source.as_chunks::<C>().0;
        let mut positions = Positions { x: [0.0; BLOCK], y: [0.0; BLOCK] };
        let mut nearest = Nearest { columns: [0; BLOCK], rows: [0; BLOCK] };
        for (y, row) in out.as_chunks_mut::<C>().0.chunks_exact_mut(width).enumerate() {
            for (x, out) in (0..).step_by(BLOCK).zip(row.chunks_mut(BLOCK)) {
                locate(self, (x, y), &mut positions);
                round(self.size, &positions, &mut nearest);
                for ((out, column), row) in out.iter_mut().zip(&nearest.columns).zip(&nearest.rows) {
                    // The index of column −1 is `usize::MAX`.
                    let index = (*row as usize).wrapping_mul(width).wrapping_add(*column as usize);
                    *out = source.get(index).copied().unwrap_or(fill);
                }
            }
        }
    }
}

#[inline(always)]
fn round_kernel(size: (usize, usize), positions: &Positions, nearest: &mut Nearest) {
    let [width, height] = limits(size);
    for i in 0..BLOCK {
        let (x, y) = (positions.x[i].round_ties_even(), positions.y[i].round_ties_even());
        // False for NaN.
        let inside = (x >= 0.0) & (x < width) & (y >= 0.0) & (y < height);
        nearest.columns[i] = whole(if inside { x } else { -1.0 });
        nearest.rows[i] = whole(if inside { y } else { 0.0 });
    }
}
