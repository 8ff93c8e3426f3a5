//! What each symbol of a segment changes, small enough to be kept in registers, for two segments at once.

use crate::huffman::LOOK;
use crate::markers::standard::ZIGZAG;

/// Coefficients that may follow the DC of a block, less one: below 0, a block is over.
pub(crate) const ALL: u8 = 62;

/// Where the coefficient goes after which so many may follow, less one, of those in zigzag order. What is none (a run past
/// the block's end, an end of block, a miss) goes beyond the block.
static PLACE: [u8; 256] = {
    let mut place = [64; 256];
    let mut k = 1;
    while k < 64 {
        place[(ALL.wrapping_sub(k as u8)) as usize] = ZIGZAG[k];
        k += 1;
    }
    place
};

/// What each symbol of a segment changes: to be kept in registers.
#[derive(Clone, Copy)]
pub(crate) struct Hot {
    pub bits: u64,
    /// The low six bits say how many bits of `bits` are good; the second byte, how many coefficients may follow in the
    /// block, less one; above that are remains. So one subtraction accounts for bits and run of an entry.
    pub state: u32,
    pub input: *const u8,
    pub block: *mut i16,
    /// Entries of a [`crate::huffman::CoefficientTable`].
    pub table: *const u32,
}

impl Hot {
    /// Symbols that a refill is enough for.
    pub(crate) const SYMBOLS: u32 = 56 / LOOK;

    /// Tops up to at least 56 bits.
    ///
    /// # Safety
    /// At least 8 bytes must follow `input` in its buffer.
    #[inline(always)]
    pub(crate) unsafe fn refill(&mut self) {
        let n = self.state & 63;
        // SAFETY: the caller's promise.
        unsafe {
            self.bits |= u64::from_be_bytes(self.input.cast::<[u8; 8]>().read()) >> n;
            self.input = self.input.add(((63 - n) >> 3) as usize);
        }
        self.state |= 56;
    }

    /// Drops the bits of an entry, and what it says of the block.
    #[inline(always)]
    pub(crate) fn take(&mut self, entry: u32) {
        self.bits <<= entry & 63;
        self.state = self.state.wrapping_sub(entry);
    }

    /// Coefficients that may follow, less one; what is no such number is beyond [`ALL`].
    #[inline(always)]
    pub(crate) fn follow(self) -> u8 {
        (self.state >> 8) as u8
    }

    /// Whether the block is over, or something came that is dealt with elsewhere.
    #[inline(always)]
    pub(crate) fn turns(self) -> bool {
        self.follow() & 0x80 != 0
    }

    /// Puts an entry's value where it belongs.
    ///
    /// # Safety
    /// `block` must have room for 65 coefficients.
    #[inline(always)]
    pub(crate) unsafe fn put(self, entry: u32) {
        // SAFETY: PLACE is at most 64.
        unsafe { *self.block.add(usize::from(PLACE[usize::from(self.follow())])) = (entry >> 16) as i16 }
    }

    /// Decodes one symbol. Returns the entry if it ends the block, or cannot be dealt with here.
    ///
    /// # Safety
    /// The block must have been begun, and at least as many bits be there as a look-up takes.
    #[inline(always)]
    pub(crate) unsafe fn symbol(&mut self) -> Option<u32> {
        // SAFETY: that many bits index a table of that size; `block` has room.
        unsafe {
            let entry = *self.table.add((self.bits >> (64 - LOOK)) as usize);
            self.take(entry);
            self.put(entry);
            if self.turns() { Some(entry) } else { None }
        }
    }
}
