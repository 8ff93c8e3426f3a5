//! The loop of [`super::decode`], which explains it and the invariants on which its memory safety rests.

use std::hint::select_unpredictable;

use super::block::{Block, Blocks, McuTables};
use crate::huffman::coefficient_table::{COEFFICIENT, COUNTS_MARK, END_OF_BLOCK, LOOKUP_BITS, MAX_ENTRY_BITS};
use crate::markers::standard::ZIGZAG;

/// Lookups that can follow one refill in any case: it loads at least 57 bits.
const LOOKUPS: usize = 4;
const _: () = assert!(LOOKUPS == 4 && LOOKUPS as u32 * MAX_ENTRY_BITS <= 57, "as many as `rounds` makes");

/// The most lookups that follow one refill: one more is made if the 64 bits that were loaded are enough.
pub(super) const MAX_LOOKUPS: usize = LOOKUPS + 1;

/// The most bits of those loaded that may be consumed before the last lookup.
pub(super) const MAX_CONSUMED: u32 = 64 - LOOKUP_BITS;
const _: () = assert!(MAX_CONSUMED + MAX_ENTRY_BITS < COUNTS_MARK && 7 + 4 * MAX_ENTRY_BITS < COUNTS_MARK);

/// Natural index of the coefficient for each count that a lookup leads to; [`UNUSABLE`] for other counts: after a table miss,
/// where a block has too many coefficients, or an end-of-block symbol after its last one. Several symbols in one entry may
/// belong to two blocks then.
pub(super) static NATURAL_INDEX: [u8; 256] = {
    let mut index = [UNUSABLE; 256];
    let mut coefs = 1;
    while coefs <= 64 {
        index[coefs * COEFFICIENT as usize] = ZIGZAG[coefs - 1];
        if coefs < 64 {
            index[coefs * COEFFICIENT as usize + END_OF_BLOCK as usize] = ZIGZAG[coefs - 1];
        }
        coefs += 1;
    }
    index
};

/// What [`NATURAL_INDEX`] has for a lookup that cannot be used.
pub(super) const UNUSABLE: u8 = 255;

/// The bit of `counts` that is set when a block is complete.
const COMPLETE: u32 = 0x8000;

/// The part of a stream that every lookup changes, kept in registers.
#[derive(Clone, Copy)]
pub(super) struct LookupState {
    /// The next bits.
    pub(super) bits: u64,
    /// The sum of the table entries. First byte: the number of bits after `input` that were consumed, and [`COUNTS_MARK`]. Second
    /// byte: the count of the current block's coefficients, including the DC coefficient. The other bits are unspecified.
    pub(super) counts: u32,
    /// The entries of the next lookup's table.
    pub(super) table: *const u32,
    /// The byte at which the last refill began.
    pub(super) input: *const u8,
    /// The current block.
    pub(super) block: *mut Block,
}

impl LookupState {
    /// The number of bits after `input` that were consumed.
    #[inline(always)]
    pub(super) fn consumed(&self) -> u32 {
        self.counts & (COUNTS_MARK - 1)
    }

    /// Where the next refill begins.
    #[inline(always)]
    fn next_input(&self) -> *const u8 {
        self.input.wrapping_add(self.consumed() as usize / 8)
    }

    /// Loads at least 57 bits.
    ///
    /// # Safety
    /// The invariants of [`super::decode`] must hold.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        // SAFETY: the input advances by at most 15 bytes, and 8 more follow (invariant 1). The block is one of `Blocks`
        // (invariant 3).
        unsafe {
            self.input = self.next_input();
            // Leaves the bits used of the first byte.
            self.counts &= !(COUNTS_MARK - 8);
            self.bits = u64::from_be_bytes(self.input.cast::<[u8; 8]>().read()) << (self.counts & 63);
            (*self.block).input = self.input.addr();
        }
    }

    /// Makes one lookup; [`LOOKUPS`] of them can follow a refill. Returns false if its entry cannot be used.
    ///
    /// # Safety
    /// The invariants of [`super::decode`] must hold.
    #[inline(always)]
    unsafe fn lookup(&mut self) -> bool {
        // SAFETY: the index has LOOKUP_BITS bits, and the table an entry for each of their values (invariant 2).
        let entry = unsafe { *self.table.add((self.bits >> (64 - LOOKUP_BITS)) as usize) };
        let counts = self.counts.wrapping_add(entry);
        let natural = NATURAL_INDEX[usize::from((counts >> 8) as u8)];
        if natural >= 64 {
            return false;
        }
        // SAFETY: the caller's promise; the index was checked.
        unsafe { self.apply(entry, counts, natural) };
        true
    }

    /// Consumes an entry, after which the counts are `counts`, and stores its value at index `natural`.
    ///
    /// # Safety
    /// The invariants of [`super::decode`] must hold, and the index be below 64.
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

    /// Decodes one symbol, whose lookup cannot be used, by its code. Returns false if the code is invalid.
    ///
    /// # Safety
    /// The invariants of [`super::decode`] must hold.
    #[inline]
    pub(super) unsafe fn single(&mut self, tables: &McuTables<'_>) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            self.refill();
            let entry = *self.table.add((self.bits >> (64 - LOOKUP_BITS)) as usize);
            let tables = &tables[usize::from((*self.block).mcu_block)];
            let entry = match self.counts >> 8 & 255 {
                0 => tables.dc.single(entry, self.bits),
                _ => tables.ac.single(entry, self.bits),
            };
            let Some(mut entry) = entry else { return false };
            let mut counts = self.counts.wrapping_add(entry);
            if entry & 0xff00 == (COEFFICIENT + END_OF_BLOCK) << 8 {
                // Alone, the symbol counts no coefficient, for which there may be no place; the last one is stored again.
                counts = counts.wrapping_sub(COEFFICIENT << 8);
                let last = NATURAL_INDEX[usize::from((counts >> 8) as u8)] & 63;
                entry = entry & 0xffff | u32::from((*self.block).coefs[usize::from(last)] as u16) << 16;
            }
            // An index outside the block is that of damage.
            self.apply(entry, counts, NATURAL_INDEX[usize::from((counts >> 8) as u8)] & 63);
        }
        true
    }
}

impl Blocks<'_> {
    /// Returns the bit after block `block`, which is decoded.
    pub(crate) fn end_bit(&self, bytes: &[u8], block: usize) -> usize {
        // The input is noted in the block in which a refill was made. The blocks after it, which begin and end before the next
        // refill, have none; each of them takes at least two of the lookups between the two.
        let inputs = self.all()[..=block].iter().rev().map(|block| block.input);
        let input = inputs.take(1 + MAX_LOOKUPS / 2).find(|&input| input != 0).unwrap_or(0);
        input.wrapping_sub(bytes.as_ptr().addr()).wrapping_mul(8)
            + (self.all()[block].counts & (COUNTS_MARK - 1)) as usize
    }
}

/// Where no round begins.
pub(super) struct Limits {
    /// The last byte at which a refill may begin.
    pub(super) input: *const u8,
    /// The first block after the stream's.
    pub(super) block: *mut Block,
}

/// The loop: [`rounds`], or one that does the same for some processors.
pub(super) type Rounds<const N: usize> = unsafe fn(all: &mut [LookupState; N], limits: &[Limits; N]) -> usize;

/// Advances all streams, in rounds of a refill and up to [`MAX_LOOKUPS`] lookups each, until one of them reaches its limits. Stops
/// at a lookup that cannot be used, and returns the index of its stream, or `N`.
///
/// # Safety
/// The invariants of [`super::decode`] must hold.
pub(super) unsafe fn rounds<const N: usize>(all: &mut [LookupState; N], limits: &[Limits; N]) -> usize {
    let mut states = *all;
    let unusable = 'rounds: loop {
        if (0..N).any(|i| states[i].next_input() > limits[i].input || states[i].block >= limits[i].block) {
            break N;
        }
        // SAFETY: the limits were checked; LOOKUPS lookups follow each refill, and another one if the bits are enough. A macro,
        // because closures are not inlined for three streams.
        unsafe {
            states.iter_mut().for_each(|state| state.refill());
            macro_rules! look_up_all {
                () => {
                    for i in 0..N {
                        if !states[i].lookup() {
                            break 'rounds i;
                        }
                    }
                };
            }
            look_up_all!();
            look_up_all!();
            look_up_all!();
            look_up_all!();
            if (0..N).any(|i| states[i].consumed() > MAX_CONSUMED) {
                continue;
            }
            look_up_all!();
        }
    };
    *all = states;
    unusable
}
