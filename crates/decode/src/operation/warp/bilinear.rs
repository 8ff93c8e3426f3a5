//! Bilinear interpolation. Pixels outside the image count as `fill`.
//!
//! Positions and weights are computed for a block of pixels, then the four neighbours of each are gathered into words, then
//! the words are unpacked and weighted for the block.

use super::{BLOCK, Positions, Warp, limits, locate};
use crate::operation::sample::{rounded, whole};
use crate::operation::vectorised::vectorised;

vectorised!(split_positions = split_kernel(size: (usize, usize), positions: &Positions, cells: &mut Cells));

vectorised!(mix = mix_kernel(cells: &Cells, corners: &Corners, fill: [u8; 3], out: &mut [[u8; 3]; BLOCK]));

/// Column and row of positions without a neighbour inside the image.
pub(super) const OUTSIDE: i32 = -2;

/// The upper left one of the four neighbours of each position, and the distance from it, 0 to 1.
pub(super) struct Cells {
    pub(super) columns: [i32; BLOCK],
    pub(super) rows: [i32; BLOCK],
    right: [f32; BLOCK],
    down: [f32; BLOCK],
}

impl Default for Cells {
    fn default() -> Self {
        let (indices, distances) = ([0; BLOCK], [0.0; BLOCK]);
        Cells { columns: indices, rows: indices, right: distances, down: distances }
    }
}

/// The four neighbours of each position. Those outside the image are 0.
struct Corners {
    /// Bytes 0 to 3, and 2 to 5, of the upper two pixels, then of the lower two.
    words: [[u32; BLOCK]; 4],
    /// Weight of the neighbours outside the image.
    outside: [f32; BLOCK],
}

impl Warp {
    /// Writes the interpolated pixel of `source` to each pixel of `out`, rounded to nearest. Images have at least one pixel.
    ///
    /// With a `fill` of 0 this is torchvision's result without `fill`. With another, pixels at the edges of the source differ
    /// from torchvision's, which weights them twice.
    pub(in crate::operation) fn bilinear(&self, source: &[u8], fill: [u8; 3], out: &mut [u8]) {
        let mut positions = Positions { x: [0.0; BLOCK], y: [0.0; BLOCK] };
        let mut cells = Cells::default();
        let mut corners = Corners { words: [[0; BLOCK]; 4], outside: [0.0; BLOCK] };
        let mut mixed = [[0; 3]; BLOCK];
        for (y, row) in out.as_chunks_mut::<3>().0.chunks_exact_mut(self.size.0).enumerate() {
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

/// Splits the positions of a block.
pub(super) fn split(size: (usize, usize), positions: &Positions, cells: &mut Cells) {
    split_positions(size, positions, cells);
}

#[inline(always)]
fn split_kernel(size: (usize, usize), positions: &Positions, cells: &mut Cells) {
    let [width, height] = limits(size);
    for i in 0..BLOCK {
        let (x, y) = (positions.x[i], positions.y[i]);
        // False for NaN.
        let near = (x > -1.0) & (x < width) & (y > -1.0) & (y < height);
        let (x, y) = if near { (x, y) } else { (OUTSIDE as f32, OUTSIDE as f32) };
        cells.columns[i] = whole(x.floor());
        cells.rows[i] = whole(y.floor());
        cells.right[i] = x - x.floor();
        cells.down[i] = y - y.floor();
    }
}

/// Returns the weights of the upper left, upper right, lower left and lower right neighbour.
#[inline(always)]
pub(super) fn weights(cells: &Cells, i: usize) -> [f32; 4] {
    let (right, down) = (cells.right[i], cells.down[i]);
    let (left, up) = (1.0 - right, 1.0 - down);
    [up * left, up * right, down * left, down * right]
}

/// Reads the neighbours of the first `len` positions.
fn gather(source: &[u8], (width, height): (usize, usize), cells: &Cells, len: usize, corners: &mut Corners) {
    let pixels = source.as_chunks().0;
    // Two pixels, and two bytes more, so that one load reads them.
    let load = |at: usize| source.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
    for i in 0..len {
        // Negative numbers become larger than any side.
        let (column, row) = (cells.columns[i] as usize, cells.rows[i] as usize);
        let at = row.wrapping_mul(width).wrapping_add(column).wrapping_mul(3);
        let inside = column < width - 1 && row < height - 1;
        let (pairs, outside) = match (load(at), load(at.wrapping_add(3 * width))) {
            (Some(upper), Some(lower)) if inside => ([upper, lower], 0.0),
            _ if cells.columns[i] == OUTSIDE => ([0; 2], 1.0),
            _ => gather_at_edge(pixels, (width, height), (column, row), weights(cells, i)),
        };
        let [upper, lower] = pairs.map(|pair| [pair as u32, (pair >> 16) as u32]);
        let words = [upper[0], upper[1], lower[0], lower[1]];
        corners.words.iter_mut().zip(words).for_each(|(words, word)| words[i] = word);
        corners.outside[i] = outside;
    }
}

/// Returns the bytes of the upper and the lower two neighbours, and the weight of those outside the image.
#[cold]
fn gather_at_edge(
    pixels: &[[u8; 3]],
    (width, height): (usize, usize),
    (column, row): (usize, usize),
    weights: [f32; 4],
) -> ([u64; 2], f32) {
    let neighbours = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(right, down)| {
        let (column, row) = (column.wrapping_add(right), row.wrapping_add(down));
        (column < width && row < height).then(|| pixels[row * width + column])
    });
    let outside = neighbours.iter().zip(weights).filter(|(pixel, _)| pixel.is_none()).map(|(_, weight)| weight).sum();
    let [a, b, c, d] = neighbours.map(Option::unwrap_or_default);
    let pair = |[a, b, c]: [u8; 3], [d, e, f]: [u8; 3]| u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    ([pair(a, b), pair(c, d)], outside)
}

#[inline(always)]
fn mix_kernel(cells: &Cells, corners: &Corners, fill: [u8; 3], out: &mut [[u8; 3]; BLOCK]) {
    let byte = |word: u32, index: u32| (word >> (8 * index) & 0xff) as f32;
    for (i, out) in out.iter_mut().enumerate() {
        let weights = weights(cells, i);
        let words = corners.words.each_ref().map(|words| words[i]);
        let left = |low: u32, high: u32| [byte(low, 0), byte(low, 1), byte(high, 0)];
        let right = |low: u32, high: u32| [byte(low, 3), byte(high, 2), byte(high, 3)];
        let [a, c] = [left(words[0], words[1]), left(words[2], words[3])];
        let [b, d] = [right(words[0], words[1]), right(words[2], words[3])];
        *out = std::array::from_fn(|channel| {
            let upper = b[channel].mul_add(weights[1], a[channel] * weights[0]);
            let inside = d[channel].mul_add(weights[3], c[channel].mul_add(weights[2], upper));
            rounded(corners.outside[i].mul_add(f32::from(fill[channel]), inside))
        });
    }
}
