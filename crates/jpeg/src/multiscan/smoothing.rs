//! Estimates of low frequencies that the scans of a progressive image do not give exactly, from the DC coefficients of the 25 blocks
//! around: libjpeg's block smoothing (`decompress_smooth_data`), after T.81, K.8.

use super::coefficient_row::{BlockGrid, CoefficientRow};
use crate::buffer::resize_unspecified;
use crate::markers::header::MAX_COMPONENTS;
use crate::markers::standard::ZIGZAG;

/// The first AC coefficients, in zigzag order, that libjpeg estimates if they are not known exactly.
pub(super) const ESTIMATED: std::ops::Range<usize> = 1..10;

/// Rows of MCUs below a row that its estimates need.
pub(super) const AHEAD: u32 = 2;
/// Rows of MCUs whose DC coefficients are held: two above a row, the row itself, and those below it.
const HELD: usize = 3 + AHEAD as usize;
/// Bytes of memory for each block of a row of MCUs.
pub(super) const BLOCK_BYTES: usize = HELD * size_of::<i16>();

/// Weights of the 5 × 5 blocks around a block.
type Weights = [[i16; 5]; 5];

const ZEROS: [i16; 5] = [0; 5];

/// The weights for DC and the first nine AC coefficients, in zigzag order, of a component without any of the latter.
const WITHOUT_AC: [Weights; 10] = [
    [[-2, -6, -8, -6, -2], [-6, 6, 42, 6, -6], [-8, 42, 152, 42, -8], [-6, 6, 42, 6, -6], [-2, -6, -8, -6, -2]],
    [[-1, -1, 0, 1, 1], [-3, 13, 0, -13, 3], [-3, 38, 0, -38, 3], [-3, 13, 0, -13, 3], [-1, -1, 0, 1, 1]],
    [[-1, -3, -3, -3, -1], [-1, 13, 38, 13, -1], ZEROS, [1, -13, -38, -13, 1], [1, 3, 3, 3, 1]],
    [[0, 0, 1, 0, 0], [0, 2, 7, 2, 0], [0, -5, -14, -5, 0], [0, 2, 7, 2, 0], [0, 0, 1, 0, 0]],
    [[-1, 0, 0, 0, 1], [0, 9, 0, -9, 0], ZEROS, [0, -9, 0, 9, 0], [1, 0, 0, 0, -1]],
    [ZEROS, [0, 2, -5, 2, 0], [1, 7, -14, 7, 1], [0, 2, -5, 2, 0], ZEROS],
    [ZEROS, [0, 1, 0, -1, 0], [0, 2, 0, -2, 0], [0, 1, 0, -1, 0], ZEROS],
    [ZEROS, [0, 1, -3, 1, 0], ZEROS, [0, -1, 3, -1, 0], ZEROS],
    [ZEROS, [0, 1, 0, -1, 0], [0, -3, 0, 3, 0], [0, 1, 0, -1, 0], ZEROS],
    [ZEROS, [0, 1, 2, 1, 0], ZEROS, [0, -1, -2, -1, 0], ZEROS],
];

/// The weights for the first five AC coefficients of any other component. Its DC coefficients stay.
const WITH_AC: [Weights; 5] = [
    [ZEROS, ZEROS, [-7, 50, 0, -50, 7], ZEROS, ZEROS],
    [[0, 0, -7, 0, 0], [0, 0, 50, 0, 0], ZEROS, [0, 0, -50, 0, 0], [0, 0, 7, 0, 0]],
    [[0, 0, -1, 0, 0], [0, 0, 13, 0, 0], [0, 0, -24, 0, 0], [0, 0, 13, 0, 0], [0, 0, -1, 0, 0]],
    [[0, -1, 0, 1, 0], [-1, 10, 0, -10, 1], ZEROS, [1, -10, 0, 10, -1], [0, 1, 0, -1, 0]],
    [ZEROS, ZEROS, [-1, 13, -24, 13, -1], ZEROS, ZEROS],
];

/// What the estimates of a component need to know.
#[derive(Clone, Copy)]
pub(super) struct Estimated {
    /// For DC and the first nine AC coefficients, the number of low bits that are not known; `None` if all are unknown.
    pub unknown: [Option<u8>; ESTIMATED.end],
    /// The same before the component's last scan.
    pub before: [Option<u8>; ESTIMATED.end],
    /// Its quantisation table in natural order.
    pub quant: [u16; 64],
    /// Its vertical sampling factor as coded.
    pub v: usize,
}

/// Estimates coefficients, a row of MCUs at a time.
#[derive(Default)]
pub(super) struct Smoothing {
    /// `None` if the image needs no estimates.
    components: Option<[Option<Estimated>; MAX_COMPONENTS]>,
    /// DC coefficients as decoded: row `r` of MCUs is at `r % HELD` times the blocks in a row.
    dc: Vec<i16>,
    /// The last row of MCUs that the last scan has data of.
    last_row: u32,
}

impl Smoothing {
    /// Prepares for an image whose rows of MCUs have `blocks` blocks.
    pub(super) fn begin(&mut self, components: Option<[Option<Estimated>; MAX_COMPONENTS]>, blocks: usize) {
        (self.components, self.last_row) = (components, u32::MAX);
        if components.is_some() {
            resize_unspecified(&mut self.dc, HELD * blocks);
        }
    }

    /// Whether the image needs estimates.
    pub(super) fn is_needed(&self) -> bool {
        self.components.is_some()
    }

    /// Sets the last row of MCUs that the last scan has data of. Below it, what was known before that scan counts.
    pub(super) fn end_after(&mut self, row: u32) {
        self.last_row = row;
    }

    /// Keeps the DC coefficients of a row of MCUs.
    pub(super) fn keep(&mut self, row: u32, coefs: &CoefficientRow) {
        let blocks = coefs.blocks();
        let held = &mut self.dc[row as usize % HELD * blocks.len()..];
        held.iter_mut().zip(blocks).for_each(|(dc, block)| *dc = block[0]);
    }

    /// Estimates the coefficients of row `row` of `rows` rows of MCUs. The DC coefficients of [`AHEAD`] rows below it are kept.
    pub(super) fn estimate(&self, (row, rows): (u32, u32), coefs: &mut CoefficientRow) {
        let grids = coefs.grids;
        for (grid, estimated) in grids.iter().zip(self.components.iter().flatten()) {
            if let Some(estimated) = estimated {
                let unknown = if row > self.last_row { estimated.before } else { estimated.unknown };
                let estimated = &Estimated { unknown, ..*estimated };
                let rows_of_blocks = row as usize * grid.v..((row as usize + 1) * grid.v).min(grid.blocks.1);
                for y in rows_of_blocks {
                    self.estimate_row(y, rows as usize * grid.v, grid, estimated, coefs);
                }
            }
        }
    }

    /// Estimates the coefficients of row `y` of a component's blocks, of which `stored` rows have coefficients.
    fn estimate_row(
        &self,
        y: usize,
        stored: usize,
        grid: &BlockGrid,
        estimated: &Estimated,
        coefs: &mut CoefficientRow,
    ) {
        let (blocks, set) = coefs.parts();
        let row_blocks = blocks.len();
        let dc = |x: usize, y: usize| match y < stored {
            true => i64::from(self.dc[y / grid.v % HELD * row_blocks + grid.index(x, y)]),
            // libjpeg stores rows that only fill the last MCU of a single component.
            false => 0,
        };
        // The last row of MCUs may have fewer rows of blocks. libjpeg counts rows of blocks as if all rows of MCUs had as many as
        // the one of this row.
        let (mcu, mcus) = (y / estimated.v, grid.blocks.1.div_ceil(estimated.v));
        let count = if mcu + 1 < mcus { estimated.v } else { (grid.blocks.1 - 1) % estimated.v + 1 };
        let (at, end) = (mcu * count + y % estimated.v, mcus * count);
        let above = if at > 0 { y - 1 } else { y };
        let above_that = if at > 1 { y - 2 } else { above };
        let below = if at + 1 < end { y + 1 } else { y };
        let below_that = if at + 2 < end { y + 2 } else { below };
        let around = [above_that, above, y, below, below_that];
        let last = grid.blocks.0 - 1;
        for x in 0..=last {
            let columns = [x.saturating_sub(2), x.saturating_sub(1), x, (x + 1).min(last), (x + 2).min(last)];
            let index = grid.index(x, y);
            let dc = around.map(|y| columns.map(|x| dc(x, y)));
            estimate_block(estimated, &dc, &mut blocks[index], &mut set[index]);
        }
    }

    /// Bytes of memory held.
    pub(super) fn capacity(&self) -> usize {
        self.dc.capacity() * 2
    }
}

/// Estimates the coefficients of a block from the DC coefficients around it; `set` are the AC coefficients that are not 0.
fn estimate_block(estimated: &Estimated, dc: &[[i64; 5]; 5], block: &mut [i16; 64], set: &mut u64) {
    let quant = |k: usize| i64::from(estimated.quant[usize::from(ZIGZAG[k])]);
    let value = |k: usize, weights: &Weights| {
        let sum: i64 = weights.iter().flatten().zip(dc.iter().flatten()).map(|(&w, &dc)| i64::from(w) * dc).sum();
        let product = quant(0) * sum;
        // The weights have 8 fraction bits.
        (((quant(k) << 7) + product.abs()) / (quant(k) << 8), product < 0)
    };
    let without_ac = estimated.unknown[1..].iter().all(Option::is_none);
    let weights: &[Weights] = if without_ac { &WITHOUT_AC[1..] } else { &WITH_AC };
    for (k, weights) in (1..).zip(weights) {
        let coefficient = &mut block[usize::from(ZIGZAG[k])];
        let unknown = estimated.unknown[k];
        if unknown == Some(0) || *coefficient != 0 {
            continue;
        }
        let (magnitude, negative) = value(k, weights);
        // The bits that are known are 0.
        let magnitude = unknown.map_or(magnitude, |bits| magnitude.min((1 << bits) - 1)) as i16;
        *coefficient = if negative { -magnitude } else { magnitude };
        *set |= u64::from(*coefficient != 0) << k;
    }
    if without_ac {
        let (magnitude, negative) = value(0, &WITHOUT_AC[0]);
        block[0] = if negative { -magnitude } else { magnitude } as i16;
    }
}
