//! Rows of coefficient blocks: what entropy decoding hands to the inverse transforms.

/// Zigzag index up to which all coefficients are in the upper left quarter of the block.
pub(crate) const QUARTER: u8 = 9;

/// A row of a component's blocks in a buffer of coefficients.
#[derive(Clone, Copy)]
pub(crate) struct BlockRow<'a> {
    /// 64 coefficients for each block, in natural order.
    pub coefs: &'a [i16],
    /// For each block, the zigzag index of the last coefficient that may differ from 0.
    pub last: &'a [u8],
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
        let block = &self.coefs[index * 64..index * 64 + 64];
        (block.first_chunk().unwrap_or(&[0; 64]), self.last[index])
    }
}
