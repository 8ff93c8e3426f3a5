//! Lookup of AC coefficients in images of several scans: code and magnitude bits in one step, and end-of-band runs.

use super::code_table::CodeTable;
use super::extend;
use crate::markers::huffman_spec::HuffmanSpec;

/// Bits of a lookup. Progressive images have a table for each scan, which is built for each image, and they are used in
/// turn; larger tables take longer to build and are slower to read.
const LOOKUP_BITS: u32 = 10;

/// Coefficient count of an entry for the end of a band. Larger than any position in a block plus a run.
pub(crate) const END_OF_BAND: u32 = 80;

/// A table of AC coefficients.
///
/// An entry is `bits | coefficients << 8 | value << 16`: the bits to consume, the number of coefficients covered (a run of
/// zeros and the coefficient after it), and that coefficient's value; for an end-of-band symbol (EOBn) [`END_OF_BAND`], and
/// the value is `n`. If code and magnitude together are longer than the lookup, the entry is 0.
pub(crate) struct BandTable {
    entries: [u32; 1 << LOOKUP_BITS],
    codes: CodeTable,
}

impl BandTable {
    /// Returns the table of an empty code.
    pub(crate) fn empty() -> BandTable {
        BandTable { entries: [0; 1 << LOOKUP_BITS], codes: CodeTable::empty() }
    }

    /// Replaces this table by that of `spec`.
    pub(crate) fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.codes = CodeTable::new(spec);
        self.entries.fill(0);
        spec.for_each_code(|code, length, symbol| {
            let (_, _, size) = split(symbol);
            if length + size > LOOKUP_BITS {
                return;
            }
            let first = (code << (LOOKUP_BITS - length)) as usize;
            let here = &mut self.entries[first..first + (1 << (LOOKUP_BITS - length))];
            let share = 1usize << (LOOKUP_BITS - length - size);
            for (v, part) in here.chunks_exact_mut(share).enumerate() {
                part.fill(entry(length, symbol, v as i32));
            }
        });
    }

    /// Returns the entry for the code and magnitude at the most significant end of `bits`, of which 31 are used; 0 for an
    /// invalid code.
    #[inline(always)]
    pub(crate) fn find(&self, bits: u64) -> u32 {
        match self.entries[(bits >> (64 - LOOKUP_BITS)) as usize] {
            0 => self.find_long(bits),
            entry => entry,
        }
    }

    #[cold]
    #[inline(never)]
    fn find_long(&self, bits: u64) -> u32 {
        let Some((length, symbol)) = self.codes.find(bits) else { return 0 };
        let (_, _, size) = split(symbol);
        entry(length, symbol, (bits << length >> 1 >> (63 - size)) as i32)
    }
}

/// Splits a symbol into the number of coefficients it covers, the value if it has no magnitude, and the magnitude bits.
fn split(symbol: u8) -> (u32, u32, u32) {
    match (u32::from(symbol >> 4), u32::from(symbol & 15)) {
        (run, 0) if run != 15 => (END_OF_BAND, run, 0),
        (run, size) => (run + 1, 0, size),
    }
}

fn entry(length: u32, symbol: u8, magnitude: i32) -> u32 {
    let (coefs, run, size) = split(symbol);
    let value = if size == 0 { run } else { extend(magnitude, size) as u32 };
    (length + size) | coefs << 8 | value << 16
}
