//! Decodes Huffman codes to coefficients, in several runs of blocks at a time.
//!
//! Huffman decoding is a chain of dependent loads: shift, look up, shift. Therefore one lookup returns everything about a
//! coefficient (code length, run, value, and whether an end-of-block symbol follows), one refill serves several lookups, and
//! other runs of blocks are decoded in the same loop, in the time that each waits for its loads.
//!
//! The end of a block is unpredictable, and a mispredicted branch costs more than decoding several symbols, so the loop has
//! no branch on it: the next lookup simply uses another table and another block. A lookup that cannot be used (a code that is
//! too long, or belongs to the next block, see [`NATURAL_INDEX`](super::lookup::NATURAL_INDEX)) stops the loop, and its symbol is
//! decoded by its code ([`LookupState::single`]). A run of zeros beyond the end of a block ends the block; it is found when the
//! blocks are completed ([`Blocks::complete`]).
//!
//! If the start of a run is not known, it is decoded speculatively from an estimated bit. Huffman codes are
//! self-synchronising (Klein and Wiseman, "Parallel Huffman Decoding with Applications to JPEG Files", 2003): after a few
//! hundred bytes the speculative decoder reads the right codes, and from the first bit at which both decoders begin an MCU,
//! their results are the same.
//!
//! The loop is in [`super::lookup`], and for x86-64 in assembly in `rounds_x86_64`. Both stop at the same bits, so that also what
//! they report of damaged data is the same. Their memory safety rests on three invariants, which this module establishes:
//! 1. *Input*: a round begins with a refill that begins at least [`END_MARGIN`] bytes before the end of the slack ([`Limits`];
//!    [`run`] checks that there is slack). The loads after it, and those of one refill more in [`LookupState::single`], are less
//!    than 64 bytes after its first one.
//! 2. *Tables*: the pointers in the headers of [`Blocks`] are to tables of `1 << LOOKUP_BITS` entries that `Blocks` borrows.
//! 3. *Output*: a round begins in a block before the stream's end ([`Limits`]), and each of its lookups advances by at most one
//!    block; [`run`] checks that there are [`MAX_OVERSHOOT`] blocks after the end. Indices of coefficients are inside a block.

use super::block::{Block, BlockTables, Blocks};
use super::block_stream::{BlockStream, END_MARGIN};
use super::lookup::{self, Limits, LookupState, MAX_LOOKUPS, Rounds};
use crate::bitstream::unstuffed::SLACK;
use crate::cpu::Bmi2;
use crate::huffman::coefficient_table::COUNTS_MARK;

/// The most streams of a loop. Three fill the time in which each waits for its lookup; the state of four exceeds the
/// registers.
pub(crate) const STREAMS: usize = 3;

/// Number of blocks after a stream's end that it may write to.
pub(crate) const MAX_OVERSHOOT: usize = MAX_LOOKUPS;

/// Advances all streams in one loop until one of them stops: at its stop or its end, by damage, or because the data end.
/// `bytes` are [`UnstuffedData::bytes`](crate::bitstream::unstuffed::UnstuffedData::bytes).
///
/// # Panics
/// If there are fewer than [`MAX_OVERSHOOT`] blocks after the end of a stream.
pub(crate) fn run<const N: usize>(
    bmi2: Option<Bmi2>,
    bytes: &[u8],
    blocks: &mut Blocks<'_>,
    mut streams: [&mut BlockStream; N],
) {
    let rounds: Rounds<N> = match bmi2 {
        #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
        Some(bmi2) => bmi2.rounds(blocks.skip_coefficients()),
        _ => lookup::rounds,
    };
    assert!(bytes.len() >= SLACK);
    loop {
        if streams.iter().any(|stream| stream.is_over(bytes)) {
            return;
        }
        assert!(streams.iter().all(|stream| stream.end + MAX_OVERSHOOT <= blocks.len()));
        let base = blocks.as_mut_ptr();
        let limits = std::array::from_fn(|i| Limits {
            input: bytes[streams[i].stop.min(bytes.len() - END_MARGIN)..].as_ptr(),
            // SAFETY: the stream's end is inside the blocks (asserted above).
            block: unsafe { base.add(streams[i].end) },
        });
        let mut states: [LookupState; N] = std::array::from_fn(|i| {
            let BlockStream { bit, block, count, .. } = *streams[i];
            let BlockTables { dc, ac, .. } = blocks.tables()[block % blocks.mcu_blocks()];
            LookupState {
                bits: 0,
                counts: (bit % 8) as u32 | COUNTS_MARK | count << 8,
                table: if count == 0 { dc.entries().as_ptr() } else { ac.entries().as_ptr() },
                input: bytes[bit / 8..].as_ptr(),
                // SAFETY: the stream is not over, so its block is before its end.
                block: unsafe { base.add(block) },
            }
        });
        // SAFETY: the limits are those of the invariants of this module, and `single` follows a lookup of the last round.
        let desynchronised = unsafe {
            loop {
                let i = rounds(&mut states, &limits);
                if i == N {
                    break None;
                }
                if !states[i].single(blocks.tables()) {
                    break Some(i);
                }
            }
        };
        for (stream, state) in streams.iter_mut().zip(states) {
            stream.bit = (state.input.addr() - bytes.as_ptr().addr()) * 8 + state.consumed() as usize;
            stream.block = (state.block.addr() - base.addr()) / size_of::<Block>();
            stream.count = state.counts >> 8 & 255;
        }
        match desynchronised {
            Some(i) => streams[i].desynchronised(bytes, blocks),
            None => return,
        }
    }
}
