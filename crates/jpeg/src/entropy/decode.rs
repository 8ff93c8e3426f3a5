//! Decodes Huffman codes to coefficients, in several runs of blocks at a time.
//!
//! Huffman decoding is a chain of dependent loads: shift, look up, shift. Therefore one lookup returns everything about a
//! coefficient (code length, run, value, and whether an end-of-block symbol follows), one refill serves several lookups, and
//! other runs of blocks are decoded in the same loop, in the time that each waits for its loads.
//!
//! The end of a block is unpredictable, and a mispredicted branch costs more than decoding several symbols, so the loop has
//! no branch on it: the next lookup simply uses another table and another block. A lookup that cannot be used (a code that is
//! too long, or belongs to the next block, see [`UNUSABLE`]) leaves the loop, and its symbol is decoded by its code. A run of
//! zeros beyond the end of a block ends the block; it is found when the blocks are completed ([`Blocks::complete`]).
//!
//! If the start of a run is not known, it is decoded speculatively from an estimated bit. Huffman codes are
//! self-synchronising (Klein and Wiseman, "Parallel Huffman Decoding with Applications to JPEG Files", 2003): after a few
//! hundred bytes the speculative decoder reads the right codes, and from the first bit at which both decoders begin an MCU,
//! their results are the same.
//!
//! Memory safety rests on three invariants:
//! 1. *Input*: a refill begins at most [`END_MARGIN`] bytes before the end of the slack, except that one may follow in
//!    [`LookupState::single`] (`rounds` checks it before each round, and [`run`] that there is slack). It advances by less than
//!    32 bytes.
//! 2. *Tables*: the pointers in the headers of [`Blocks`] are to tables of `1 << LOOKUP_BITS` entries that `Blocks` borrows.
//! 3. *Output*: a round begins in a block before the stream's end, and each of its lookups advances by at most one block;
//!    [`run`] checks that there are [`MAX_OVERSHOOT`] blocks after the end. Indices of coefficients are checked or masked.

use std::hint::select_unpredictable;

use super::block::{Block, BlockTables, Blocks, McuTables};
use super::block_stream::{BlockStream, END_MARGIN};
use crate::bitstream::unstuffed::SLACK;
use crate::cpu::Bmi2;
use crate::huffman::coefficient_table::{END_OF_BLOCK, LOOKUP_BITS};
use crate::markers::standard::ZIGZAG;

/// The most streams of a loop. Three fill the time in which each waits for its lookup; the state of four exceeds the
/// registers.
pub(crate) const STREAMS: usize = 3;

/// Lookups that follow one refill, which loads at least 57 bits.
pub(super) const LOOKUPS: usize = 4;
const _: () = assert!(LOOKUPS * LOOKUP_BITS as usize <= 57 && LOOKUPS == 4, "as many as `rounds` makes");

/// Number of blocks after a stream's end that it may write to.
pub(crate) const MAX_OVERSHOOT: usize = LOOKUPS;

/// Natural index of the coefficient for each coefficient count, with [`END_OF_BLOCK`] or without; [`UNUSABLE`] for other
/// counts: after a table miss, where a block has too many coefficients, or an end-of-block symbol after its last one. Several
/// symbols in one entry may belong to two blocks then.
static NATURAL_INDEX: [u8; 256] = {
    let mut index = [UNUSABLE; 256];
    let mut count = 1;
    while count <= 64 {
        index[count] = ZIGZAG[count - 1];
        if count < 64 {
            index[count + END_OF_BLOCK as usize] = ZIGZAG[count - 1];
        }
        count += 1;
    }
    index
};

/// What [`NATURAL_INDEX`] has for a lookup that cannot be used.
const UNUSABLE: u8 = 255;

/// The bits of `counts` of which one is set when a block is complete: its coefficient count is at least 64.
const COMPLETE: u32 = 0xc000;

/// The part of a stream that every lookup changes, kept in registers.
#[derive(Clone, Copy)]
struct LookupState {
    /// The next bits.
    bits: u64,
    /// The sum of the table entries. First byte: the number of bits after `input` that were consumed. Second byte: the
    /// coefficient count of the current block, including its DC coefficient. The other bits are unspecified.
    counts: u32,
    /// The entries of the next lookup's table.
    table: *const u32,
    /// The byte at which the last refill began.
    input: *const u8,
    /// The current block.
    block: *mut Block,
}

impl LookupState {
    /// Loads at least 57 bits.
    ///
    /// # Safety
    /// The invariants of this module must hold.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        // SAFETY: the input advances by at most 31 bytes, and 8 more follow (invariant 1). The block is one of `Blocks`
        // (invariant 3).
        unsafe {
            self.input = self.input.add((self.counts as u8 >> 3).into());
            self.counts &= !0xf8;
            // The low six bits of `counts` are now the bits used of the first byte.
            self.bits = u64::from_be_bytes(self.input.cast::<[u8; 8]>().read()) << (self.counts & 63);
            (*self.block).input = self.input.addr();
        }
    }

    /// Makes one lookup; [`LOOKUPS`] of them can follow a refill. Returns its entry if that cannot be used.
    ///
    /// # Safety
    /// The invariants of this module must hold.
    #[inline(always)]
    unsafe fn lookup(&mut self) -> Option<u32> {
        // SAFETY: the index has LOOKUP_BITS bits, and the table an entry for each of their values (invariant 2).
        let entry = unsafe { *self.table.add((self.bits >> (64 - LOOKUP_BITS)) as usize) };
        let counts = self.counts.wrapping_add(entry);
        let natural = NATURAL_INDEX[usize::from((counts >> 8) as u8)];
        if natural >= 64 {
            return Some(entry);
        }
        // SAFETY: the caller's promise; the index was checked.
        unsafe { self.apply(entry, counts, natural) };
        None
    }

    /// Consumes an entry, after which the counts are `counts`, and stores its value at index `natural`.
    ///
    /// # Safety
    /// The invariants of this module must hold, and the index be below 64.
    #[inline(always)]
    unsafe fn apply(&mut self, entry: u32, counts: u32, natural: u8) {
        self.bits <<= entry & 63;
        let block = self.block;
        // SAFETY: the block is one of `Blocks` (invariant 3), which nothing else refers to now. The index is below 64.
        let (ac, next_dc) = unsafe {
            let coef = (&raw mut (*block).coefs).cast::<i16>().add(natural.into());
            *coef = (entry >> 16) as i16;
            (*block).counts = counts;
            // Volatile, so that both are loaded: otherwise the compiler selects an address and then loads from it, which
            // makes the chain of dependent operations longer by a load.
            ((&raw const (*block).ac).read_volatile(), (&raw const (*block).next_dc).read_volatile())
        };
        let complete = counts & COMPLETE != 0;
        self.table = select_unpredictable(complete, next_dc, ac);
        self.counts = select_unpredictable(complete, counts & 255, counts);
        self.block = select_unpredictable(complete, block.wrapping_add(1), block);
    }

    /// Decodes one symbol whose lookup returned `entry`, by its code. Returns false if the code is invalid.
    ///
    /// # Safety
    /// The invariants of this module must hold.
    #[inline]
    unsafe fn single(&mut self, tables: &McuTables<'_>, entry: u32) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            self.refill();
            let tables = &tables[usize::from((*self.block).mcu_block)];
            let entry = match self.counts >> 8 & 255 {
                0 => tables.dc.single(entry, self.bits),
                _ => tables.ac.single(entry, self.bits),
            };
            let Some(entry) = entry else { return false };
            let counts = self.counts.wrapping_add(entry);
            // An index outside the block is that of damage, or of an end-of-block symbol after the coefficient before the last.
            self.apply(entry, counts, NATURAL_INDEX[usize::from((counts >> 8) as u8)] & 63);
        }
        true
    }
}

/// Advances all streams in one loop until one of them stops: at its stop or its end, by damage, or because the data end.
/// `bytes` are [`UnstuffedData::bytes`](crate::bitstream::unstuffed::UnstuffedData::bytes).
///
/// # Panics
/// If there are fewer than [`MAX_OVERSHOOT`] blocks after the end of a stream.
pub(crate) fn run<const N: usize>(
    bmi2: Option<Bmi2>,
    bytes: &[u8],
    blocks: &mut Blocks<'_>,
    streams: [&mut BlockStream; N],
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(_proof) = bmi2 {
        // SAFETY: a `Bmi2` exists only if the processor has all features that the function enables (`cpu.rs`).
        return unsafe { run_bmi2(bytes, blocks, streams) };
    }
    let _ = bmi2;
    run_portable(bytes, blocks, streams);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn run_bmi2<const N: usize>(bytes: &[u8], blocks: &mut Blocks<'_>, streams: [&mut BlockStream; N]) {
    run_portable(bytes, blocks, streams);
}

#[inline(always)]
fn run_portable<const N: usize>(bytes: &[u8], blocks: &mut Blocks<'_>, mut streams: [&mut BlockStream; N]) {
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
            let BlockStream { bit, block, coefs, .. } = *streams[i];
            let BlockTables { dc, ac, .. } = blocks.tables()[block % blocks.mcu_blocks()];
            LookupState {
                bits: 0,
                counts: (bit % 8) as u32 | coefs << 8,
                table: if coefs == 0 { dc.entries().as_ptr() } else { ac.entries().as_ptr() },
                input: bytes[bit / 8..].as_ptr(),
                // SAFETY: the stream is not over, so its block is before its end.
                block: unsafe { base.add(block) },
            }
        });
        // SAFETY: the limits are those of the invariants of this module, and `single` follows a lookup of the last round.
        let desynchronised = unsafe {
            loop {
                let Some((i, entry)) = rounds(&mut states, &limits) else { break None };
                if !states[i].single(blocks.tables(), entry) {
                    break Some(i);
                }
            }
        };
        for (stream, state) in streams.iter_mut().zip(states) {
            stream.bit = (state.input.addr() - bytes.as_ptr().addr()) * 8 + (state.counts & 255) as usize;
            stream.block = (state.block.addr() - base.addr()) / size_of::<Block>();
            stream.coefs = state.counts >> 8 & 255;
        }
        match desynchronised {
            Some(i) => streams[i].desynchronised(bytes, blocks),
            None => return,
        }
    }
}

/// Where no round begins.
struct Limits {
    /// The last byte at which a refill may begin.
    input: *const u8,
    /// The first block after the stream's.
    block: *mut Block,
}

/// Advances all streams, a refill and [`LOOKUPS`] lookups each in a round, until one of them reaches its limits. Stops at a
/// lookup that cannot be used, and returns the index of its stream and its entry.
///
/// # Safety
/// The invariants of this module must hold.
#[inline(always)]
unsafe fn rounds<const N: usize>(all: &mut [LookupState; N], limits: &[Limits; N]) -> Option<(usize, u32)> {
    let mut states = *all;
    let unusable = 'rounds: loop {
        if (0..N).any(|i| states[i].input > limits[i].input || states[i].block >= limits[i].block) {
            break None;
        }
        // SAFETY: the limits were checked; LOOKUPS lookups follow each refill. A macro, because closures are not inlined for
        // three streams.
        unsafe {
            states.iter_mut().for_each(|state| state.refill());
            macro_rules! look_up_all {
                () => {
                    for i in 0..N {
                        if let Some(entry) = states[i].lookup() {
                            break 'rounds Some((i, entry));
                        }
                    }
                };
            }
            look_up_all!();
            look_up_all!();
            look_up_all!();
            look_up_all!();
        }
    };
    *all = states;
    unusable
}
