//! Lookup of whole coefficients: code and magnitude bits in one step.

use super::code_table::CodeTable;
use super::scan_table::{SCAN_BITS_SHIFT, SCAN_COEFS_SHIFT, SCAN_END, SCAN_LOOKUP_BITS, scan_sums};
use super::{extend, split_ac_symbol};
use crate::markers::huffman_spec::HuffmanSpec;

/// Bits of a lookup. With 12, four lookups consume at most 48 of the 57 bits that a refill guarantees, 2 % of the symbols
/// need the slow path, and two AC tables take 32 KiB, so that they fit into the first-level cache.
pub(crate) const LOOKUP_BITS: u32 = 12;

/// The most bits of an entry: those of a [`SkipTable`] may have more than a lookup, so that four consume at most the bits of a
/// refill.
pub(crate) const MAX_ENTRY_BITS: u32 = 14;

/// What a coefficient adds to the count of an entry. The count of a block begins at 0, and reaches 128 with 64 coefficients.
pub(crate) const COEFFICIENT: u32 = 2;
/// What an end-of-block symbol adds to the count of an entry, besides one coefficient of value 0 if it is alone in its entry.
/// The sum is odd then, and at least 128, or beyond 255 if the block was complete already.
pub(crate) const END_OF_BLOCK: u32 = 129;

/// The bit of the counts of a stream, to which entries are added, that is always set: the low seven bits are the bits consumed.
pub(crate) const COUNTS_MARK: u32 = 0x80;

/// Low half of an AC entry for a code and magnitude that do not fit into the lookup. Added to the counts of a stream in which it
/// is not the first coefficient of a block, its low half carries, and leaves a count that no block has: an odd one below 128.
const MISS_AC: u32 = 0xff00;
/// The same for a DC entry, which is the first: it carries because of [`COUNTS_MARK`], and leaves a count of 0.
const MISS_DC: u32 = 0xff00 | COUNTS_MARK;

/// The table of DC differences or AC coefficients that entropy decoding uses.
///
/// An entry is `bits | count << 8 | value << 16`: the bits to consume, the count of the coefficients covered (a run of zeros and
/// the coefficient after it, [`COEFFICIENT`] each; plus [`END_OF_BLOCK`] if the block ends there), and that coefficient's value.
/// If code and magnitude together are longer than the lookup, the low half is [`CoefficientTable::MISS`], and the value is
/// `length << 8 | symbol`, or 0 if even the code is longer.
pub(crate) struct CoefficientTable<const DC: bool> {
    entries: Box<[u32; 1 << LOOKUP_BITS]>,
    codes: CodeTable,
}

impl<const DC: bool> CoefficientTable<DC> {
    /// Bytes of a table on the heap.
    pub(super) const HEAP_BYTES: usize = size_of::<[u32; 1 << LOOKUP_BITS]>();
    /// Low half of an entry for a code and magnitude that do not fit into the lookup.
    const MISS: u32 = if DC { MISS_DC } else { MISS_AC };

    pub(super) fn empty() -> CoefficientTable<DC> {
        CoefficientTable { entries: Box::new([Self::MISS; 1 << LOOKUP_BITS]), codes: CodeTable::empty() }
    }

    /// Returns count and magnitude bits of a symbol.
    fn split(symbol: u8) -> (u32, u32) {
        if DC {
            return (COEFFICIENT, symbol.into());
        }
        match split_ac_symbol(symbol, 0) {
            (0, size) => (COEFFICIENT + END_OF_BLOCK, size),
            (coefs, size) => (coefs * COEFFICIENT, size),
        }
    }

    pub(super) fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.codes = CodeTable::new(spec);
        self.entries.fill(Self::MISS);
        let mut end_of_block = None;
        spec.for_each_code(|code, length, symbol| {
            if !DC && Self::split(symbol).0 >= END_OF_BLOCK {
                end_of_block.get_or_insert((code, length));
            }
        });
        spec.for_each_code(|code, length, symbol| {
            let Some(left) = LOOKUP_BITS.checked_sub(length) else { return };
            let (count, size) = Self::split(symbol);
            let here = &mut self.entries[(code << left) as usize..][..1 << left];
            let Some(left) = left.checked_sub(size) else {
                return here.fill(known_miss(Self::MISS, length, symbol));
            };
            for (v, part) in here.chunks_exact_mut(1 << left).enumerate() {
                let entry = (length + size) | count << 8 | (extend(v as i32, size) as u32) << 16;
                part.fill(entry);
                if count < END_OF_BLOCK
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
            known if known != 0 && entry & 0xffff == Self::MISS => (known >> 8, known as u8),
            _ => self.codes.find(bits)?,
        };
        let (count, size) = Self::split(symbol);
        let v = (bits << length >> 1 >> (63 - size)) as i32;
        Some((length + size) | count << 8 | (extend(v, size) as u32) << 16)
    }
}

const _: () = assert!(LOOKUP_BITS == SCAN_LOOKUP_BITS);

/// Returns the entry for a code that fits into the lookup, but not with its magnitude.
fn known_miss(miss: u32, length: u32, symbol: u8) -> u32 {
    miss | (length << 8 | u32::from(symbol)) << 16
}

/// A table of AC codes by which entropy decoding skips coefficients that are not needed: its entries are those of
/// [`CoefficientTable`], but cover several symbols, and have the value 0.
pub(crate) struct SkipTable {
    entries: Box<[u32; 1 << LOOKUP_BITS]>,
}

impl SkipTable {
    /// Bytes of a table on the heap.
    pub(super) const HEAP_BYTES: usize = size_of::<[u32; 1 << LOOKUP_BITS]>();

    pub(super) fn empty() -> SkipTable {
        SkipTable { entries: Box::new([MISS_AC; 1 << LOOKUP_BITS]) }
    }

    pub(super) fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.entries.fill(MISS_AC);
        spec.for_each_code(|code, length, symbol| {
            let Some(left) = LOOKUP_BITS.checked_sub(length) else { return };
            self.entries[(code << left) as usize..][..1 << left].fill(known_miss(MISS_AC, length, symbol));
        });
        let sums = scan_sums::<false>(spec, LOOKUP_BITS, MAX_ENTRY_BITS as u16);
        for (entry, &sum) in self.entries.iter_mut().zip(&sums[1 << LOOKUP_BITS..]).filter(|(_, sum)| **sum != 0) {
            let end = if sum & SCAN_END == 0 { 0 } else { END_OF_BLOCK };
            let count = u32::from((sum & 255) >> SCAN_COEFS_SHIFT) * COEFFICIENT + end;
            *entry = u32::from(sum >> SCAN_BITS_SHIFT) | count << 8;
        }
    }

    /// The entries, indexed by the next [`LOOKUP_BITS`] bits.
    pub(crate) fn entries(&self) -> &[u32; 1 << LOOKUP_BITS] {
        &self.entries
    }
}
