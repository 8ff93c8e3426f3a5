//! Lookup of whole coefficients: code and magnitude bits in one step.

use super::code_table::CodeTable;
use super::scan_table::{SCAN_BITS_SHIFT, SCAN_COEFS_SHIFT, SCAN_END, SCAN_LOOKUP_BITS, scan_sums};
use super::{extend, split_ac_symbol};
use crate::markers::huffman_spec::HuffmanSpec;

/// Bits of a lookup. With 12, four lookups consume at most 48 of the 57 bits that a refill guarantees, 2 % of the symbols
/// need the slow path, and two AC tables take 32 KiB, so that they fit into the first-level cache.
pub(crate) const LOOKUP_BITS: u32 = 12;

/// What an end-of-block symbol adds to the coefficient count of an entry. One that is alone in its entry also counts as a
/// coefficient of value 0, so that the total is at least 128 in any case.
pub(crate) const END_OF_BLOCK: u32 = 127;
/// Entry for a code and magnitude that do not fit into [`LOOKUP_BITS`]: added to the count of a block that is not complete, it
/// gives one that no block has.
const MISS: u32 = (64 + END_OF_BLOCK) << 8;

/// The table of DC differences or AC coefficients that entropy decoding uses.
///
/// An entry is `bits | coefficients << 8 | value << 16`: the bits to consume, the number of coefficients covered (a run of
/// zeros and the coefficient after it; plus [`END_OF_BLOCK`] if the block ends there), and that coefficient's value. If code and magnitude together
/// are longer than the lookup, `bits` is 0, the count is that of [`MISS`], and the value is `length << 8 | symbol`, or 0 if even
/// the code is longer.
pub(crate) struct CoefficientTable<const DC: bool> {
    entries: Box<[u32; 1 << LOOKUP_BITS]>,
    codes: CodeTable,
}

impl<const DC: bool> CoefficientTable<DC> {
    /// Bytes of a table on the heap.
    pub(super) const HEAP_BYTES: usize = size_of::<[u32; 1 << LOOKUP_BITS]>();

    pub(super) fn empty() -> CoefficientTable<DC> {
        CoefficientTable { entries: Box::new([MISS; 1 << LOOKUP_BITS]), codes: CodeTable::empty() }
    }

    /// Returns coefficient count and magnitude bits of a symbol.
    fn split(symbol: u8) -> (u32, u32) {
        if DC { (1, symbol.into()) } else { split_ac_symbol(symbol, 1 + END_OF_BLOCK) }
    }

    pub(super) fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.codes = CodeTable::new(spec);
        self.entries.fill(MISS);
        let mut end_of_block = None;
        spec.for_each_code(|code, length, symbol| {
            if !DC && Self::split(symbol).0 > END_OF_BLOCK {
                end_of_block.get_or_insert((code, length));
            }
        });
        spec.for_each_code(|code, length, symbol| {
            let Some(left) = LOOKUP_BITS.checked_sub(length) else { return };
            let (coefs, size) = Self::split(symbol);
            let here = &mut self.entries[(code << left) as usize..][..1 << left];
            let Some(left) = left.checked_sub(size) else {
                return here.fill(MISS | (length << 8 | u32::from(symbol)) << 16);
            };
            for (v, part) in here.chunks_exact_mut(1 << left).enumerate() {
                let entry = (length + size) | coefs << 8 | (extend(v as i32, size) as u32) << 16;
                part.fill(entry);
                if coefs < END_OF_BLOCK
                    && let Some((code, length)) = end_of_block
                    && let Some(left) = left.checked_sub(length)
                {
                    part[(code << left) as usize..][..1 << left].fill(entry + (length | END_OF_BLOCK << 8));
                }
            }
        });
    }

    /// The entries, indexed by the next [`LOOKUP_BITS`] bits.
    pub(crate) fn entries(&self) -> &[u32; 1 << LOOKUP_BITS] {
        &self.entries
    }

    /// Returns the entry for the one symbol at the most significant end of `bits`, whose lookup returned `entry`; `None` for an
    /// invalid code.
    pub(crate) fn single(&self, entry: u32, bits: u64) -> Option<u32> {
        let (length, symbol) = match entry >> 16 {
            known if known != 0 && entry & 255 == 0 => (known >> 8, known as u8),
            _ => self.codes.find(bits)?,
        };
        let (coefs, size) = Self::split(symbol);
        let v = (bits << length >> 1 >> (63 - size)) as i32;
        Some((length + size) | coefs << 8 | (extend(v, size) as u32) << 16)
    }
}

const _: () = assert!(LOOKUP_BITS == SCAN_LOOKUP_BITS);

/// The most bits of an entry of a [`SkipTable`]: four lookups consume at most the bits of a refill.
const SKIP_MAX_BITS: u16 = 14;

/// A table of AC codes by which entropy decoding skips coefficients that are not needed: its entries are those of
/// [`CoefficientTable`], but cover several symbols, and have the value 0.
pub(crate) struct SkipTable {
    entries: Box<[u32; 1 << LOOKUP_BITS]>,
}

impl SkipTable {
    /// Bytes of a table on the heap.
    pub(super) const HEAP_BYTES: usize = size_of::<[u32; 1 << LOOKUP_BITS]>();

    pub(super) fn empty() -> SkipTable {
        SkipTable { entries: Box::new([MISS; 1 << LOOKUP_BITS]) }
    }

    pub(super) fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        let sums = scan_sums::<false>(spec, LOOKUP_BITS, SKIP_MAX_BITS);
        for (entry, &sum) in self.entries.iter_mut().zip(&sums[1 << LOOKUP_BITS..]) {
            let end = if sum & SCAN_END == 0 { 0 } else { END_OF_BLOCK };
            let coefs = u32::from((sum & 255) >> SCAN_COEFS_SHIFT) + end;
            *entry = if sum == 0 { MISS } else { u32::from(sum >> SCAN_BITS_SHIFT) | coefs << 8 };
        }
    }

    /// The entries, indexed by the next [`LOOKUP_BITS`] bits.
    pub(crate) fn entries(&self) -> &[u32; 1 << LOOKUP_BITS] {
        &self.entries
    }
}
