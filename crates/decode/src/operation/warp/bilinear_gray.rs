//! Bilinear interpolation of grey, in the arithmetic of [`super::bilinear`].

use super::bilinear::{Cells, OUTSIDE, split, weights};
use super::{BLOCK, Positions, Warp, locate};
use crate::operation::sample::rounded;
use crate::operation::vectorised::vectorised;

vectorised!(mix = mix_kernel(cells: &Cells, corners: &Corners, fill: u8, out: &mut [u8; BLOCK]));

/// The four neighbours of each position. Those outside the image are 0.
struct Corners {
    /// The upper left, upper right, lower left and lower right one.
    values: [[u8; BLOCK]; 4],
    /// Weight of the neighbours outside the image.
    outside: [f32; BLOCK],
}

impl Warp {
    /// As [`Warp::bilinear`], for a grey image.
    pub(in crate::operation) fn bilinear_gray(&self, source: &[u8], [fill]: [u8; 1], out: &mut [u8]) {
        let mut positions = Positions { x: [0.0; BLOCK], y: [0.0; BLOCK] };
        let mut cells = Cells::default();
        let mut corners = Corners { values: [[0; BLOCK]; 4], outside: [0.0; BLOCK] };
        let mut mixed = [0; BLOCK];
        for (y, row) in out.chunks_exact_mut(self.size.0).enumerate() {
            for (x, out) in (0..).step_by(BLOCK).zip(row.chunks_mut(BLOCK)) {
                locate(self, (x, y), &mut positions);
                split(self.size, &positions, &mut cells);
                gather(source, self.size, &cells, out.len(), &mut corners);
                mix(&cells, &corners, fill, &mut mixed);
                out.copy_from_slice(&mixed[..out.len()]);
            }
        }
    }
}

/// Reads the neighbours of the first `len` positions.
fn gather(source: &[u8], (width, height): (usize, usize), cells: &Cells, len: usize, corners: &mut Corners) {
    for i in 0..len {
        // Negative numbers become larger than any side.
        let (column, row) = (cells.columns[i] as usize, cells.rows[i] as usize);
        let weights = weights(cells, i);
        corners.outside[i] = if cells.columns[i] == OUTSIDE { 1.0 } else { 0.0 };
        for (k, (right, down)) in [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().enumerate() {
            let (column, row) = (column.wrapping_add(right), row.wrapping_add(down));
            let inside = column < width && row < height;
            corners.values[k][i] = if inside { source[row * width + column] } else { 0 };
            if !inside && cells.columns[i] != OUTSIDE {
                corners.outside[i] += weights[k];
            }
        }
    }
}

#[inline(always)]
fn mix_kernel(cells: &Cells, corners: &Corners, fill: u8, out: &mut [u8; BLOCK]) {
    for (i, out) in out.iter_mut().enumerate() {
        let weights = weights(cells, i);
        let [a, b, c, d] = corners.values.each_ref().map(|values| f32::from(values[i]));
        let upper = b.mul_add(weights[1], a * weights[0]);
        let inside = d.mul_add(weights[3], c.mul_add(weights[2], upper));
        *out = rounded(corners.outside[i].mul_add(f32::from(fill), inside));
    }
}
