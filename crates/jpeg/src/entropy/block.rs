//! Decoded blocks, each with what the decoding loop has to know of it.

use std::ops::Range;

use super::MAX_MCU_BLOCKS;
use crate::huffman::coefficient_table::{COEFFICIENT, CoefficientTable, END_OF_BLOCK, SkipTable};

/// The tables of one block of an MCU.
#[derive(Clone, Copy)]
pub(crate) struct BlockTables<'a> {
    pub dc: &'a CoefficientTable<true>,
    pub ac: &'a CoefficientTable<false>,
    /// To skip AC coefficients; `None` if all are needed.
    pub skip: Option<&'a SkipTable>,
}

/// The tables of the blocks of an MCU, in the order of the scan.
pub(crate) type McuTables<'a> = [BlockTables<'a>];

/// A decoded block, and what the decoding loop reads and writes with it, so that one pointer leads to all of it.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Block {
    /// The coefficients in natural order.
    pub coefs: [i16; 64],
    /// The entries of this block's AC table.
    pub(super) ac: *const u32,
    /// The entries of the next block's DC table.
    pub(super) next_dc: *const u32,
    /// Address of the input at the last refill that began in this block; 0 if there was none.
    pub(super) input: usize,
    /// [`LookupState::counts`](super::lookup::LookupState::counts) after the block's last lookup; the high half is unspecified.
    pub(super) counts: u32,
    /// Zigzag index of the last coefficient that may differ from 0.
    pub last: u8,
    /// Index of the block in its MCU.
    pub(super) mcu_block: u8,
}

// SAFETY: the pointers are only dereferenced by way of [`Blocks`], which sets them and borrows what they point to.
unsafe impl Send for Block {}
// SAFETY: as above; nothing in a block changes behind a shared reference.
unsafe impl Sync for Block {}

impl Default for Block {
    fn default() -> Block {
        let nothing = std::ptr::null();
        Block { coefs: [0; 64], ac: nothing, next_dc: nothing, input: 0, counts: 0, last: 0, mcu_block: 0 }
    }
}

/// Blocks that are ready for decoding with the tables of an MCU. Block `i` has the tables of block `i` of an MCU, modulo the
/// blocks in an MCU.
pub(crate) struct Blocks<'a> {
    blocks: &'a mut [Block],
    tables: &'a McuTables<'a>,
}

impl<'a> Blocks<'a> {
    /// Prepares blocks, whose coefficients must be 0. AC coefficients of a block with a [`BlockTables::skip`] table are
    /// unspecified after decoding.
    pub(crate) fn new(blocks: &'a mut [Block], tables: &'a McuTables<'a>) -> Blocks<'a> {
        assert!(!tables.is_empty() && tables.len() <= MAX_MCU_BLOCKS);
        debug_assert!(blocks.iter().all(|block| block.coefs == [0; 64] && block.input == 0));
        let next = tables.iter().cycle().skip(1);
        for mcu in blocks.chunks_mut(tables.len()) {
            for (mcu_block, ((block, this), next)) in mcu.iter_mut().zip(tables).zip(next.clone()).enumerate() {
                block.mcu_block = mcu_block as u8;
                block.ac = this.skip.map_or(this.ac.entries(), SkipTable::entries).as_ptr();
                block.next_dc = next.dc.entries().as_ptr();
            }
        }
        Blocks { blocks, tables }
    }

    /// Number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The blocks, decoded or not.
    pub(crate) fn all(&self) -> &[Block] {
        self.blocks
    }

    /// The first of the blocks. A pointer into their allocation.
    pub(super) fn as_mut_ptr(&mut self) -> *mut Block {
        self.blocks.as_mut_ptr()
    }

    /// Completes decoded blocks, the first of which is the first of an MCU: finds their last coefficients, and undoes DC
    /// prediction. `components` has the index in `predictors` for each block of an MCU.
    ///
    /// # Errors
    /// The index of the first block in which a run of zeros went beyond the end.
    pub(crate) fn complete(
        &mut self,
        range: Range<usize>,
        components: &[u8],
        predictors: &mut [i16; 3],
    ) -> Result<(), usize> {
        let start = range.start;
        for (i, mcu) in self.blocks[range].chunks_exact_mut(self.tables.len()).enumerate() {
            for (j, (block, &component)) in mcu.iter_mut().zip(components).enumerate() {
                // The count includes the DC coefficient. It is odd if the block ended before its last one.
                let count = block.counts >> 8 & 255;
                let last = (count.wrapping_sub((count & 1) * END_OF_BLOCK) / COEFFICIENT).wrapping_sub(1);
                if last > 63 {
                    return Err(start + i * self.tables.len() + j);
                }
                // An end-of-block symbol alone counts as a coefficient of value 0. Only without AC coefficients does it matter.
                let empty = last == 1 && block.coefs[1] == 0;
                block.last = last as u8 - u8::from(empty);
                let predictor = &mut predictors[usize::from(component)];
                *predictor = predictor.wrapping_add(block.coefs[0]);
                block.coefs[0] = *predictor;
            }
        }
        Ok(())
    }

    /// The tables of an MCU.
    pub(super) fn tables(&self) -> &'a McuTables<'a> {
        self.tables
    }

    /// Whether AC coefficients of a block are skipped.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn skip_coefficients(&self) -> bool {
        self.tables.iter().any(|tables| tables.skip.is_some())
    }

    /// Number of blocks in an MCU.
    pub(crate) fn mcu_blocks(&self) -> usize {
        self.tables.len()
    }

    /// Sets all coefficients of some blocks to 0, so that others can be decoded in their place.
    pub(crate) fn clear(&mut self, range: Range<usize>) {
        clear(&mut self.blocks[range]);
    }

    /// Copies some blocks to `to`.
    pub(crate) fn copy_within(&mut self, range: Range<usize>, to: usize) {
        debug_assert!(range.start.abs_diff(to).is_multiple_of(self.tables.len()), "blocks keep their index in an MCU");
        self.blocks.copy_within(range, to);
    }
}

/// Sets all coefficients of some blocks to 0.
pub(crate) fn clear(blocks: &mut [Block]) {
    for block in blocks {
        block.coefs = [0; 64];
        block.input = 0;
    }
}
