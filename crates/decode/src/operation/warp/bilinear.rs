//! Bilinear interpolation. Pixels outside the image count as `fill`.
//!
//! Positions and weights are computed for a block of pixels, then the four neighbours of each are gathered into words, then
//! the words are unpacked and weighted for the block.

use super::{BLOCK, Positions, Warp, limits, locate};
use crate::operation::sample::{rounded, whole};
use crate::operation::vectorised::vectorised;

vectorised!(split = split_kernel(size: (usize, usize), positions: &Positions, cells: &mut Cells));

vectorised!(mix = mix_kernel(cells: &Cells, corners: &Corners, fill: [u8; 3], out: &mut [[u8; 3]; BLOCK]));

/// The upper left one of the four neighbours of each position, and the distance from it, 0 to 1.
struct Cells {
    columns: [i32; BLOCK],
    rows: [i32; BLOCK],
    right: [f32; BLOCK],
    down: [f32; BLOCK],
}

/// The four neighbours of each position. Those outside the image are 0.
struct Corners {
    /// Bytes 0 to 3, and 2 to 5, of the upper two pixels, then of the lower two.
    words: [[u32; BLOCK]; 4],
    /// Weight of the neighbours outside the image.
    outside: [f32; BLOCK],
}

impl Warp {
    /// Writes the interpolated pixel of `source` to each pixel of `out`, rounded to nearest.
    ///
    /// With a `fill` of 0 this is torchvision's result without `fill`. With another, pixels at the edges of the source differ
    /// from torchvision's, which weights them twice.
    pub(in crate::operation) fn bilinear(&self, source: &[u8], fill: [u8; 3], out: &mut [u8]) {
        let mut positions = Positions { x: [0.0; BLOCK], y: [0.0; BLOCK] };
        let (indices, distances) = ([0; BLOCK], [0.0; BLOCK]);
        let mut cells = Cells { columns: indices, rows: indices, right: distances, down: distances };
        let mut corners = Corners { words: [[0; BLOCK]; 4], outside: distances };
        let mut mixed = [[0; 3]; BLOCK];
        for (y, row) in out.as_chunks_mut::<3>().0.chunks_exact_mut(self.size.0).enumerate() {
            for (x, out) in (0..).step_by(BLOCK).zip(row.chunks_mut(BLOCK)) {
                locate(self, (x, y), &mut positions);
                split(self.size, &positions, &mut cells);
                gather(source, self.size, &cells, &mut corners);
                mix(&cells, &corners, fill, &mut mixed);
                out.copy_from_slice(&mixed[..out.len()]);
            }
        }
    }
}

#[inline(always)]
fn split_kernel(size: (usize, usize), positions: &Positions, cells: &mut Cells) {
    // All neighbours of −2 are outside. The comparisons are false for NaN.
    let limited = |at: f32, end: f32| if (at > -2.0) & (at < end) { at } else { -2.0 };
    let [width, height] = limits(size);
    for i in 0..BLOCK {
        let (x, y) = (limited(positions.x[i], width), limited(positions.y[i], height));
        cells.columns[i] = whole(x.floor());
        cells.rows[i] = whole(y.floor());
        cells.right[i] = x - x.floor();
        cells.down[i] = y - y.floor();
    }
}

/// Returns the weights of the upper left, upper right, lower left and lower right neighbour.
#[inline(always)]
fn weights(cells: &Cells, i: usize) -> [f32; 4] {
    let (right, down) = (cells.right[i], cells.down[i]);
    let (left, up) = (1.0 - right, 1.0 - down);
    [up * left, up * right, down * left, down * right]
}

/// Reads the neighbours.
fn gather(source: &[u8], (width, height): (usize, usize), cells: &Cells, corners: &mut Corners) {
    let word = |bytes: &[u8; 6]| {
        let [a, b, c, d, e, f] = *bytes;
        [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([c, d, e, f])]
    };
    for i in 0..BLOCK {
        // Negative numbers become larger than any side.
        let (column, row) = (cells.columns[i] as usize, cells.rows[i] as usize);
        let [upper, lower];
        if column < width.saturating_sub(1) && row < height.saturating_sub(1) {
            let at = (row * width + column) * 3;
            let pair = |at: usize| word(source[at..].first_chunk().unwrap_or(&[0; 6]));
            [upper, lower] = [pair(at), pair(at + width * 3)];
            corners.outside[i] = 0.0;
        } else {
            let neighbours = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(right, down)| {
                let (column, row) = (column.wrapping_add(right), row.wrapping_add(down));
                let inside = column < width && row < height;
                inside.then(|| source.as_chunks::<3>().0[row * width + column])
            });
            let missing = neighbours.iter().zip(weights(cells, i)).filter(|(pixel, _)| pixel.is_none());
            corners.outside[i] = missing.map(|(_, weight)| weight).sum();
            let [a, b, c, d] = neighbours.map(Option::unwrap_or_default);
            let pair = |a: [u8; 3], b: [u8; 3]| word(&[a[0], a[1], a[2], b[0], b[1], b[2]]);
            [upper, lower] = [pair(a, b), pair(c, d)];
        }
        let words = [upper[0], upper[1], lower[0], lower[1]];
        corners.words.iter_mut().zip(words).for_each(|(words, word)| words[i] = word);
    }
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
