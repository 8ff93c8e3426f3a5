//! The part of a decoder's state that every symbol changes: small enough to be kept in registers for two decoders at once.

use crate::huffman::coefficient_table::LOOKUP_BITS;
use crate::markers::standard::ZIGZAG;

/// [`SymbolState::remaining`] after the DC coefficient: the 63 AC coefficients, minus one. A value below 0 (in two's
/// complement) means that the block is complete.
pub(crate) const ALL_AC: u8 = 62;

/// Natural index of the coefficient after which `remaining` has that value. Values that belong to no coefficient (a run past
/// the end of the block, an end-of-block symbol, a table miss) map to 64, the spare element after the block.
static NATURAL_INDEX: [u8; 256] = {
    let mut index = [64; 256];
    let mut k = 1;
    while k < 64 {
        index[(ALL_AC.wrapping_sub(k as u8)) as usize] = ZIGZAG[k];
        k += 1;
    }
    index
};

/// The state that every symbol changes.
#[derive(Clone, Copy)]
pub(crate) struct SymbolState {
    /// The loaded bits, the next one being the most significant.
    pub bits: u64,
    /// Low six bits: the number of loaded bits. Second byte: [`SymbolState::remaining`]. The other bits are unspecified. One
    /// subtraction of a table entry updates both counts.
    pub counts: u32,
    /// The first byte not loaded.
    pub input: *const u8,
    /// The current block's 64 coefficients and the element after them.
    pub block: *mut i16,
    /// The entries of the current block's [`crate::huffman::coefficient_table::CoefficientTable`].
    pub table: *const u32,
}

impl SymbolState {
    /// Symbols that can be looked up after one refill.
    pub(crate) const SYMBOLS_PER_REFILL: u32 = 56 / LOOKUP_BITS;

    /// Loads bits until at least 56 are available.
    ///
    /// # Safety
    /// At least 8 bytes must follow `input` in its buffer.
    #[inline(always)]
    pub(crate) unsafe fn refill(&mut self) {
        let n = self.counts & 63;
        // SAFETY: 8 bytes can be read at `input` (the caller's promise), and it advances by at most 7 of them.
        unsafe {
            self.bits |= u64::from_be_bytes(self.input.cast::<[u8; 8]>().read()) >> n;
            self.input = self.input.add(((63 - n) >> 3) as usize);
        }
        self.counts |= 56;
    }

    /// Consumes the bits and coefficients of a table entry.
    #[inline(always)]
    pub(crate) fn consume(&mut self, entry: u32) {
        self.bits <<= entry & 63;
        self.counts = self.counts.wrapping_sub(entry);
    }

    /// Coefficients that can follow in the block, minus one; larger than [`ALL_AC`] if the block is complete or the last
    /// entry was not a coefficient.
    #[inline(always)]
    pub(crate) fn remaining(self) -> u8 {
        (self.counts >> 8) as u8
    }

    /// Whether the last entry needs [`super::block_stream::BlockStream::end_block`].
    #[inline(always)]
    pub(crate) fn needs_attention(self) -> bool {
        self.remaining() & 0x80 != 0
    }

    /// Stores the value of an entry that was consumed.
    ///
    /// # Safety
    /// `block` must be valid for 65 coefficients.
    #[inline(always)]
    pub(crate) unsafe fn store(self, entry: u32) {
        // SAFETY: NATURAL_INDEX is at most 64, and `block` has 65 elements (the caller's promise).
        unsafe { *self.block.add(usize::from(NATURAL_INDEX[usize::from(self.remaining())])) = (entry >> 16) as i16 }
    }

    /// Decodes one symbol. Returns its entry if it ends the block or cannot be handled here.
    ///
    /// # Safety
    /// A block must have been begun (so that `block` and `table` are valid), and [`LOOKUP_BITS`] bits be loaded.
    #[inline(always)]
    pub(crate) unsafe fn symbol(&mut self) -> Option<u32> {
        // SAFETY: the index has LOOKUP_BITS bits and the table 1 << LOOKUP_BITS entries; `block` has 65 elements.
        unsafe {
            let entry = *self.table.add((self.bits >> (64 - LOOKUP_BITS)) as usize);
            self.consume(entry);
            self.store(entry);
            if self.needs_attention() { Some(entry) } else { None }
        }
    }
}
