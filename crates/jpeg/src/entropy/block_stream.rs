//! A run of blocks that is decoded to coefficients, from a known or from a speculative start: its position between the loops
//! of [`super::decode`], and what it knows afterwards.

use super::block::Blocks;
use crate::bitstream::unstuffed::SLACK;
use crate::error::Damage;

/// No round begins nearer to the end of the slack than this number of bytes: more than two refills and a symbol read.
pub(super) const END_MARGIN: usize = 128;
const _: () = assert!(END_MARGIN < SLACK);

/// The position of a run of blocks.
pub(crate) struct BlockStream {
    /// The next bit.
    pub(super) bit: usize,
    /// Index of the current block.
    pub(super) block: usize,
    /// The count of the current block's coefficients that were decoded (see [`super::decode`]).
    pub(super) count: u32,
    /// The first bit.
    start: usize,
    /// Index of the first block.
    first: usize,
    /// Index of the block before which the stream ends.
    pub(super) end: usize,
    /// The byte after which the stream stops.
    pub(super) stop: usize,
    /// Whether the start is speculative: an invalid code then does not count as damage, and decoding restarts at the next bit.
    speculative: bool,
    damage: Option<Damage>,
}

impl BlockStream {
    /// Returns the stream from bit `bit` on, where an MCU begins, into the blocks from `first` to `end`. It may write to
    /// [`MAX_OVERSHOOT`](super::decode::MAX_OVERSHOOT) more.
    pub(crate) fn new(bit: usize, first: usize, end: usize) -> BlockStream {
        BlockStream {
            bit,
            block: first,
            count: 0,
            start: bit,
            first,
            end,
            stop: usize::MAX,
            speculative: false,
            damage: None,
        }
    }

    /// Makes the start speculative: after an invalid code the stream restarts at the next bit.
    pub(crate) fn speculative(self) -> BlockStream {
        BlockStream { speculative: true, ..self }
    }

    /// Ends the speculation: another stream synchronised with this one, so invalid codes are damage from now on.
    pub(crate) fn confirm_sync(&mut self) {
        self.speculative = false;
    }

    /// Makes the stream stop soon after bit `bit`.
    pub(crate) fn set_stop(&mut self, bit: usize) {
        self.stop = bit / 8;
    }

    /// The next bit.
    pub(crate) fn bit(&self) -> usize {
        self.bit
    }

    /// Index of the first block.
    pub(crate) fn first(&self) -> usize {
        self.first
    }

    /// Index after the last block that is decoded completely. The stream wrote to at most the one after it too.
    pub(crate) fn done(&self) -> usize {
        self.block
    }

    /// Index of the block before which the stream ends.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Whether the stream cannot continue: it is at its end or damaged, or the data ended.
    pub(crate) fn is_over(&self, bytes: &[u8]) -> bool {
        self.block >= self.end || self.damage.is_some() || self.bit / 8 > bytes.len() - END_MARGIN
    }

    /// What ended the stream before its end.
    pub(crate) fn damage(&self) -> Damage {
        self.damage.unwrap_or(Damage::Ends)
    }

    /// Number of MCUs that are decoded completely.
    pub(crate) fn mcus(&self, blocks: &Blocks<'_>) -> usize {
        (self.block - self.first) / blocks.mcu_blocks()
    }

    /// Number of MCUs before the end.
    pub(crate) fn mcus_wanted(&self, blocks: &Blocks<'_>) -> usize {
        (self.end - self.first) / blocks.mcu_blocks()
    }

    /// Returns the first bit of MCU `mcu` of the stream, or the bit after its last one; `None` if it is not known.
    pub(crate) fn mcu_bit(&self, blocks: &Blocks<'_>, bytes: &[u8], mcu: usize) -> Option<usize> {
        match mcu * blocks.mcu_blocks() {
            0 => Some(self.start),
            n if n > self.block - self.first => None,
            n => Some(blocks.end_bit(bytes, self.first + n - 1)),
        }
    }

    /// Handles an invalid code: damage, or a speculative stream that has not synchronised yet, which restarts.
    pub(super) fn desynchronised(&mut self, bytes: &[u8], blocks: &mut Blocks<'_>) {
        if self.block >= self.end {
            return;
        }
        // Beyond the data, restarting is useless.
        if self.speculative && self.bit + 64 < (bytes.len() - SLACK) * 8 {
            blocks.clear(self.first..self.block + 1);
            (self.bit, self.block, self.count) = (self.bit + 1, self.first, 0);
            self.start = self.bit;
        } else {
            self.damage = Some(Damage::Code);
        }
    }
}
