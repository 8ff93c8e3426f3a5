//! Affine and perspective maps: each pixel of the result comes from a position in the source. Positions and weights are
//! computed in f32 in the order of torchvision's grids and torch's `grid_sample`, so that the same pixels are read.
//!
//! | module | content |
//! |---|---|
//! | `nearest` | nearest neighbour, for pixels and labels |
//! | `bilinear` | bilinear interpolation of RGB |
//! | `bilinear_gray` | bilinear interpolation of grey |

mod bilinear;
mod bilinear_gray;
mod nearest;

use super::sample::WHOLE_LIMIT;
use super::vectorised::vectorised;

/// Pixels of a row that are computed at a time.
const BLOCK: usize = 64;

vectorised!(locate = locate_kernel(warp: &Warp, first: (usize, usize), positions: &mut Positions));

/// Positions in the source of [`BLOCK`] pixels of a row. 0 is the centre of the first pixel of a row or column.
#[derive(Clone, Copy)]
struct Positions {
    x: [f32; BLOCK],
    y: [f32; BLOCK],
}

/// The position in the source of each pixel of the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Warp {
    /// Width and height of the image in pixels.
    size: (usize, usize),
    /// What is added to the indices of a pixel of the result to get the x and y that the coefficients apply to.
    offset: [f32; 2],
    /// Coefficients of x, y and 1 in the x and y of the source. Half a side of the image is 1.
    coefficients: [[f32; 3]; 2],
    /// Coefficients of x and y in the divisor of a perspective map.
    divisor: Option<[f32; 2]>,
}

impl Warp {
    /// Makes the map of `F.affine`: `matrix` maps positions in the result to positions in the source, both in pixels from the
    /// centre.
    pub(super) fn affine(matrix: &[f64; 6], size: (usize, usize)) -> Self {
        let half = half(size);
        Warp { size, offset: half.map(|half| 0.5 - half), coefficients: scaled(matrix, half), divisor: None }
    }

    /// Makes the map of `F.perspective`: (c0 x + c1 y + c2, c3 x + c4 y + c5) ÷ (c6 x + c7 y + 1) is the position in the
    /// source of the position (x, y) in the result, both in pixels from the left and upper edge.
    pub(super) fn perspective(coefficients: &[f64; 8], size: (usize, usize)) -> Self {
        let [c0, c1, c2, c3, c4, c5, c6, c7] = *coefficients;
        let coefficients = scaled(&[c0, c1, c2, c3, c4, c5], half(size));
        Warp { size, offset: [0.5; 2], coefficients, divisor: Some([c6 as f32, c7 as f32]) }
    }
}

fn half((width, height): (usize, usize)) -> [f32; 2] {
    [width as f32 * 0.5, height as f32 * 0.5]
}

/// Returns the end of the positions that are inside the image. Beyond 2²² pixels, f32 has no fractions, and everything counts
/// as outside.
#[inline(always)]
fn limits((width, height): (usize, usize)) -> [f32; 2] {
    [width as f32, height as f32].map(|side| side.min(WHOLE_LIMIT))
}

fn scaled(matrix: &[f64; 6], half: [f32; 2]) -> [[f32; 3]; 2] {
    std::array::from_fn(|row| std::array::from_fn(|i| matrix[3 * row + i] as f32 / half[row]))
}

/// Computes the positions of the pixels from column `first.0` of row `first.1` on.
#[inline(always)]
fn locate_kernel(warp: &Warp, first: (usize, usize), positions: &mut Positions) {
    let half = half(warp.size);
    let y = first.1 as f32 + warp.offset[1];
    let start = first.0 as f32 + warp.offset[0];
    for i in 0..BLOCK {
        let x = start + i as f32;
        let mut at = warp.coefficients.map(|[a, b, c]| x * a + y * b + c);
        if let Some([a, b]) = warp.divisor {
            let divisor = x * a + y * b + 1.0;
            at = at.map(|at| at / divisor - 1.0);
        }
        positions.x[i] = (at[0] + 1.0).mul_add(half[0], -0.5);
        positions.y[i] = (at[1] + 1.0).mul_add(half[1], -0.5);
    }
}
