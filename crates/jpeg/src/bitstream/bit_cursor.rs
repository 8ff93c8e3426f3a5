//! A position in unstuffed data, as the entropy decoders keep it.

/// The next bit to decode, with the bits already loaded.
#[derive(Clone, Copy, Default)]
pub(crate) struct BitCursor {
    /// The loaded bits, the next one being the most significant.
    pub(crate) bits: u64,
    /// The low six bits are the number of loaded bits in `bits`; the others are unspecified.
    pub(crate) count: u32,
    /// Index of the first byte not loaded.
    pub(crate) byte: usize,
}

impl BitCursor {
    /// Returns the cursor at bit `bit` of `bytes`.
    pub(crate) fn at(bytes: &[u8], bit: usize) -> BitCursor {
        let byte = bit / 8;
        let head = bytes.get(byte).copied().unwrap_or(0);
        let used = (bit % 8) as u32;
        BitCursor { bits: u64::from(head) << 56 << used, count: 8 - used, byte: byte + 1 }
    }

    /// Index of the next bit.
    pub(crate) fn bit(&self) -> usize {
        self.byte * 8 - (self.count & 63) as usize
    }
}
