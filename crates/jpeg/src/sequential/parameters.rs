//! How much is decoded at a time, and when to speculate.

use super::layout::ScanLayout;
use crate::bitstream::unstuffed::UnstuffedData;
use crate::entropy::block::Block;
use crate::entropy::decode::{MAX_OVERSHOOT, STREAMS};
use crate::entropy::scanner;

/// Number of scanners in one loop of scan-only decoding: enough to fill the time in which each waits for its lookup.
pub(super) const SCANNERS: usize = 3;

/// Approximate bytes of the blocks of all groups that are held for the sake of several streams.
const LARGE_BYTES: usize = 3 << 20;

/// The blocks of a part of a round.
#[derive(Clone, Copy)]
pub(crate) struct Region {
    /// Index of the first block.
    pub first: usize,
    /// The most MCUs.
    pub mcus: usize,
}

/// How much is decoded in a round, and when to speculate.
#[derive(Clone, Copy)]
pub(crate) struct Speculation {
    /// Approximate bytes of blocks in a round.
    round_bytes: usize,
    /// Blocks of each scanner in a round of scan-only decoding.
    scan_blocks: usize,
    /// Threshold in MCUs of a round for a speculative part, at least 1.
    min_mcus: usize,
    /// Threshold in bytes of data of a round for a speculative part, at least 1.
    min_bytes: usize,
}

impl Speculation {
    /// The parameters for speed. A round's blocks fit into the second-level cache, and are many compared with those that
    /// are decoded twice before its parts synchronise.
    pub(crate) const FAST: Speculation =
        Speculation { round_bytes: 384 << 10, scan_blocks: 1 << 13, min_mcus: 64, min_bytes: 1 << 10 };
    /// As many rounds and speculative parts as possible, so that tests with small images reach every case.
    pub(crate) const EAGER: Speculation = Speculation { round_bytes: 0, scan_blocks: 170, min_mcus: 2, min_bytes: 1 };

    /// Number of block offsets that scan-only decoding of `blocks` blocks uses.
    pub(crate) fn scan_offsets(&self, blocks: u64) -> usize {
        SCANNERS * scanner::offsets_for(blocks.min(self.scan_blocks as u64) as usize)
    }

    /// Number of rows of MCUs in a round, for `row_blocks` blocks in a row and `rows` rows in the image: at least two if there are
    /// as many.
    pub(crate) fn round_rows(&self, row_blocks: usize, rows: u32) -> u32 {
        let fit = self.round_bytes / (row_blocks * size_of::<Block>());
        (fit as u32).max(2).min(rows)
    }

    /// Number of groups of `step` rows whose blocks are held at a time, for `row_blocks` blocks in a row and `rows` rows in the
    /// image: those of all streams, and some that wait for one before them; of large groups two.
    pub(crate) fn groups_held(&self, row_blocks: usize, step: u32, rows: u32) -> u32 {
        let group_bytes = row_blocks * step as usize * size_of::<Block>();
        let enough = (LARGE_BYTES / group_bytes).clamp(2, STREAMS + 1);
        let held = (self.round_bytes / group_bytes).clamp(enough, 2 * STREAMS);
        (held as u32).min(rows.div_ceil(step))
    }

    /// Number of blocks for a group of `step` rows, and for what its stream writes after its end.
    pub(crate) fn group_blocks((across, mcu_blocks): (usize, usize), step: u32) -> usize {
        (step as usize * across + MAX_OVERSHOOT.div_ceil(mcu_blocks)) * mcu_blocks
    }

    /// Returns the blocks of the parts of a round of `mcus` MCUs, in rows of `across` MCUs of `mcu_blocks` blocks, and the number
    /// of blocks of all of them. In front of each region is a row, for the MCUs of the part before that are in the row in
    /// which the two parts meet. A part is longer than its share if the estimated bits were wrong.
    pub(crate) fn regions(mcus: usize, across: usize, mcu_blocks: usize) -> ([Region; STREAMS], usize) {
        let mcus = mcus.div_ceil(2);
        let size = (across + mcus + MAX_OVERSHOOT) * mcu_blocks;
        (std::array::from_fn(|i| Region { first: i * size + across * mcu_blocks, mcus }), STREAMS * size)
    }

    /// Whether to speculate in the next `mcus` MCUs, which have approximately `bits` bits.
    pub(super) fn is_worthwhile(
        &self,
        layout: &ScanLayout,
        unstuffed: &UnstuffedData,
        mcus: usize,
        bits: usize,
    ) -> bool {
        layout.detects_wrong_block
            && unstuffed.bits() < u32::MAX as usize
            && mcus >= self.min_mcus
            && bits / 8 >= self.min_bytes
    }
}
