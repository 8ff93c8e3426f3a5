//! Rows of coefficient blocks: what entropy decoding hands to the inverse transforms.

use crate::entropy::block::Block;

/// Zigzag index up to which all coefficients are in the upper left quarter of the block.
pub(crate) const QUARTER: u8 = 9;

/// Where blocks are.
#[derive(Clone, Copy)]
pub(crate) enum BlockSource<'a> {
    /// As the decoding loop writes them.
    Blocks(&'a [Block]),
    /// Coefficients in natural order, and for each block the zigzag index of the last one that may differ from 0.
    Arrays(&'a [[i16; 64]], &'a [u8]),
}

/// A row of a component's blocks in a buffer of coefficients.
#[derive(Clone, Copy)]
pub(crate) struct BlockRow<'a> {
    pub source: BlockSource<'a>,
    /// Index of the row's first block.
    pub first: usize,
    /// Number of consecutive blocks of this component: its blocks across an MCU.
    pub run: usize,
    /// Blocks from the start of one run to that of the next.
    pub step: usize,
}

impl<'a> BlockRow<'a> {
    /// Index of the block in column `column` of the component.
    #[inline(always)]
    pub(crate) fn index(&self, column: usize) -> usize {
        match self.run {
            1 => self.first + column * self.step,
            2 => self.first + (column >> 1) * self.step + (column & 1),
            run => self.first + column / run * self.step + column % run,
        }
    }

    /// The block in column `column` of the component, and its `last`.
    #[inline(always)]
    pub(crate) fn get(&self, column: usize) -> (&'a [i16; 64], u8) {
        let index = self.index(column);
        match self.source {
            BlockSource::Blocks(blocks) => (&blocks[index].coefs, blocks[index].last),
            BlockSource::Arrays(coefs, last) => (&coefs[index], last[index]),
        }
    }
}
