//! Validity bitmaps: which rows of a column have a value, one bit a row, least significant bit first.

/// A validity bitmap that is being written. Rows that were never set are null.
#[derive(Debug, Clone, Default)]
pub struct Validity {
    bits: Vec<u8>,
}

impl Validity {
    /// Creates a bitmap of `rows` null rows. It grows if a later row is set.
    pub fn new(rows: u64) -> Self {
        Validity { bits: vec![0; bitmap_bytes(rows) as usize] }
    }

    /// Marks a row as having a value.
    pub fn set(&mut self, row: u64) {
        let byte = (row / 8) as usize;
        if byte >= self.bits.len() {
            self.bits.resize(byte + 1, 0);
        }
        self.bits[byte] |= 1 << (row % 8);
    }

    /// Returns whether a row has a value.
    pub fn get(&self, row: u64) -> bool {
        is_set(&self.bits, row).unwrap_or(false)
    }

    /// Iterates over rows, each with the next one of the values of the rows that have one.
    pub fn rows<T>(&self, rows: u64, mut next: impl FnMut() -> Option<T>) -> impl Iterator<Item = Option<T>> {
        (0..rows).map(move |row| if self.get(row) { next() } else { None })
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bits
    }
}

/// Returns the bit of a row; `None` past the end.
#[inline]
pub(super) fn is_set(bits: &[u8], row: u64) -> Option<bool> {
    let byte = *bits.get(usize::try_from(row / 8).ok()?)?;
    Some(byte >> (row % 8) & 1 == 1)
}

/// Returns the length in bytes of the bitmap of this many rows.
pub(super) fn bitmap_bytes(rows: u64) -> u64 {
    rows.div_ceil(8)
}

/// Returns the first row that shows that a bitmap is invalid, and what is wrong with it: an unused bit that is not 0, or
/// no null row at all. `bits` must have [`bitmap_bytes`] bytes.
pub(super) fn check(bits: &[u8], rows: u64) -> Result<(), (u64, &'static str)> {
    let used = (rows % 8) as u32;
    let full = if used == 0 { bits.len() } else { bits.len().saturating_sub(1) };
    let mask = (1u8 << used) - 1;
    let last = bits.get(full).copied().unwrap_or(0);
    if last & !mask != 0 {
        return Err((rows, "an unused bit of the validity bitmap that is not 0"));
    }
    if bits[..full].iter().all(|byte| *byte == 0xff) && last == mask {
        return Err((0, "a validity bitmap without a null row"));
    }
    Ok(())
}
