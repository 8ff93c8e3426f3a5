//! The coefficients of one row of MCUs, in natural order, component after component.

use crate::blocks::{BlockRow, BlockSource, QUARTER};
use crate::buffer::resize_unspecified;
use crate::markers::header::{Header, MAX_COMPONENTS};
use crate::markers::standard::ZIGZAG;

/// Where the blocks of one component are.
#[derive(Clone, Copy, Default)]
pub(crate) struct BlockGrid {
    /// Blocks across a row of MCUs, including those that only fill the last MCU.
    pub padded: usize,
    /// Blocks across and down that contain pixels of the image.
    pub blocks: (usize, usize),
    /// Index of the component's first block in a row of MCUs.
    pub first: usize,
    /// Sampling factors.
    pub h: usize,
    pub v: usize,
}

impl BlockGrid {
    /// Returns the grids of an image's components; those of components that it does not have are empty.
    pub(crate) fn of(header: &Header) -> [BlockGrid; MAX_COMPONENTS] {
        let (across, _) = header.mcus();
        let (max_h, max_v) = header.max_sampling();
        let (mut grids, mut first) = ([BlockGrid::default(); MAX_COMPONENTS], 0);
        for (grid, c) in grids.iter_mut().zip(header.components()) {
            let (h, v) = (u32::from(c.h), u32::from(c.v));
            let padded = (across * h) as usize;
            let blocks = ((header.width * h).div_ceil(8 * max_h), (header.height * v).div_ceil(8 * max_v));
            let blocks = (blocks.0 as usize, blocks.1 as usize);
            *grid = BlockGrid { padded, blocks, first, h: h as usize, v: v as usize };
            first += padded * v as usize;
        }
        grids
    }

    /// Blocks with pixels of the image.
    pub(super) fn count(&self) -> u64 {
        self.blocks.0 as u64 * self.blocks.1 as u64
    }

    /// Index of the block in column `x` of row `y` of the image, in its row of MCUs.
    pub(crate) fn index(&self, x: usize, y: usize) -> usize {
        self.first + y % self.v * self.padded + x
    }
}

/// The coefficients of a row of MCUs.
#[derive(Default)]
pub(crate) struct CoefficientRow {
    pub grids: [BlockGrid; MAX_COMPONENTS],
    values: Vec<i16>,
    /// For each block, the zigzag indices of the AC coefficients that are not 0.
    set: Vec<u64>,
    last: Vec<u8>,
}

/// Bytes of memory for each block.
pub(crate) const BLOCK_BYTES: usize = 64 * size_of::<i16>() + size_of::<u64>() + 1;

/// The coefficients in the upper left quarter of a block.
const QUARTER_MASK: u64 = {
    let (mut mask, mut k) = (0, 0);
    while k < 64 {
        if ZIGZAG[k] < 32 && ZIGZAG[k] % 8 < 4 {
            mask |= 1 << k;
        }
        k += 1;
    }
    mask
};

impl CoefficientRow {
    /// Prepares for an image.
    pub(super) fn begin(&mut self, header: &Header) {
        self.grids = BlockGrid::of(header);
        let blocks: usize = self.grids.iter().map(|g| g.padded * g.v).sum();
        resize_unspecified(&mut self.values, blocks * 64);
        resize_unspecified(&mut self.set, blocks);
        resize_unspecified(&mut self.last, blocks);
    }

    /// Sets all coefficients to 0.
    pub(super) fn clear(&mut self) {
        self.values.fill(0);
        self.set.fill(0);
    }

    /// The blocks, and which AC coefficients of each are not 0.
    pub(super) fn parts(&mut self) -> (&mut [[i16; 64]], &mut [u64]) {
        (self.values.as_chunks_mut().0, &mut self.set)
    }

    /// The blocks of the row.
    pub(crate) fn blocks(&self) -> &[[i16; 64]] {
        self.values.as_chunks().0
    }

    /// Determines, for the inverse transforms, which coefficients of each block may differ from 0: DC, the upper left quarter,
    /// or all.
    pub(super) fn find_last(&mut self) {
        for (last, &set) in self.last.iter_mut().zip(&self.set) {
            *last = match set {
                0 => 0,
                set if set & !QUARTER_MASK == 0 => QUARTER,
                _ => 63,
            };
        }
    }

    /// Row `v` of a component's blocks.
    pub(crate) fn row(&self, component: usize, v: u32) -> BlockRow<'_> {
        let first = self.grids[component].index(0, v as usize);
        let source = BlockSource::Arrays(self.values.as_chunks().0, &self.last);
        BlockRow { source, first, run: 1, step: 1 }
    }

    /// Bytes of memory held.
    pub(super) fn capacity(&self) -> usize {
        self.values.capacity() * 2 + self.set.capacity() * 8 + self.last.capacity()
    }
}
