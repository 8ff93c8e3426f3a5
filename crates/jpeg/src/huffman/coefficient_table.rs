//! Lookup of whole AC coefficients: code and magnitude bits in one step.

use super::code_table::CodeTable;
use super::{extend, split_ac_symbol};
use crate::markers::huffman_spec::HuffmanSpec;

/// Bits of a lookup. With 12, four lookups consume at most 48 of the 56 bits that a refill guarantees, 2 % of the symbols
/// need the slow path, and two tables take 32 KiB, so that they fit into the first-level cache.
pub(crate) const LOOKUP_BITS: u32 = 12;

/// Coefficient count of an entry for the end of a block. Larger than any position in a block plus a run.
pub(crate) const END_OF_BLOCK: u32 = 80;
/// Coefficient count of an entry for an invalid code.
pub(crate) const INVALID_CODE: u32 = 96;
/// Entry for a code and magnitude that do not fit into [`LOOKUP_BITS`].
const MISS: u32 = 80 << 8;

/// The table of AC coefficients that entropy decoding uses.
///
/// An entry is `bits | coefficients << 8 | value << 16`: the bits to consume, the number of coefficients covered (a run of
/// zeros and the coefficient after it), and that coefficient's value. If code and magnitude together are longer than the
/// lookup, `bits` is 0 and the value is `length << 8 | symbol`, or 0 if even the code is longer.
pub(crate) struct CoefficientTable {
    entries: Box<[u32; 1 << LOOKUP_BITS]>,
    codes: CodeTable,
}

impl CoefficientTable {
    /// Bytes of a table on the heap.
    pub(super) const HEAP_BYTES: usize = size_of::<[u32; 1 << LOOKUP_BITS]>();

    pub(super) fn empty() -> CoefficientTable {
        CoefficientTable { entries: Box::new([MISS; 1 << LOOKUP_BITS]), codes: CodeTable::empty() }
    }

    pub(super) fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.codes = CodeTable::new(spec);
        self.entries.fill(MISS);
        spec.for_each_code(|code, length, symbol| {
            if length > LOOKUP_BITS {
                return;
            }
            let (coefs, size) = split_ac_symbol(symbol, END_OF_BLOCK);
            let first = (code << (LOOKUP_BITS - length)) as usize;
            let here = &mut self.entries[first..first + (1 << (LOOKUP_BITS - length))];
            if length + size > LOOKUP_BITS {
                return here.fill(MISS | (length << 8 | u32::from(symbol)) << 16);
            }
            let share = 1usize << (LOOKUP_BITS - length - size);
            for (v, part) in here.chunks_exact_mut(share).enumerate() {
                part.fill((length + size) | coefs << 8 | (extend(v as i32, size) as u32) << 16);
            }
        });
    }

    /// The entries, indexed by the next [`LOOKUP_BITS`] bits.
    pub(crate) fn entries(&self) -> &[u32; 1 << LOOKUP_BITS] {
        &self.entries
    }

    /// Completes a lookup that returned `miss`: returns the entry for the code at the most significant end of `bits`.
    #[cold]
    #[inline(never)]
    pub(crate) fn resolve_miss(&self, miss: u32, bits: u64) -> u32 {
        let known = miss >> 16;
        let (length, symbol) = match known {
            0 => match self.codes.find(bits) {
                Some(found) => found,
                None => return 1 | INVALID_CODE << 8,
            },
            _ => (known >> 8, known as u8),
        };
        let (coefs, size) = split_ac_symbol(symbol, END_OF_BLOCK);
        let v = (bits << length >> 1 >> (63 - size)) as i32;
        (length + size) | coefs << 8 | (extend(v, size) as u32) << 16
    }
}
