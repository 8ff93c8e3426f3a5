//! Lookup for scan-only decoding, which finds the boundaries of blocks and skips their coefficients.

use super::code_table::CodeTable;
use super::split_ac_symbol;
use crate::markers::huffman_spec::HuffmanSpec;

/// Bits of a lookup in the table of an AC code.
pub(crate) const SCAN_LOOKUP_BITS: u32 = 12;
/// Bits of a lookup in the table of a DC code.
const SCAN_DC_LOOKUP_BITS: u32 = 8;
const _: () = assert!(
    (SCAN_LOOKUP_BITS - SCAN_DC_LOOKUP_BITS).is_multiple_of(2),
    "`ScanTable::tagged_pointer` is offset in bytes, and entries have two"
);

/// The most bits that an entry covers.
pub(crate) const SCAN_MAX_BITS: u16 = 19;
/// The bit of an entry that marks the end of a block, or of a DC symbol.
pub(crate) const SCAN_END: u16 = 1;
/// Position in an entry of the number of coefficients covered.
pub(crate) const SCAN_COEFS_SHIFT: u32 = 1;
/// Position in an entry of the number of bits covered.
pub(crate) const SCAN_BITS_SHIFT: u32 = 8;
/// Entry for a symbol that does not fit into the lookup: more coefficients than a block has, and no bits.
const SCAN_MISS: u16 = 64 << SCAN_COEFS_SHIFT;
/// The most coefficients that an entry covers: the AC coefficients of a block.
pub(crate) const SCAN_MAX_COEFS: u16 = 63;

/// Returns the entry for one symbol with a code of `length` bits. An end-of-block symbol counts as one coefficient, so that
/// it exceeds the block where the block is full already.
pub(crate) fn scan_entry(dc: bool, length: u32, symbol: u8) -> u16 {
    let (coefs, size) = if dc { (0, symbol.into()) } else { split_ac_symbol(symbol, 0) };
    let end = if coefs == 0 { SCAN_END } else { 0 };
    ((length + size) as u16) << SCAN_BITS_SHIFT | (coefs.max(1) as u16) << SCAN_COEFS_SHIFT | end
}

/// A DC or AC table for scan-only decoding. An entry is the sum of the [`scan_entry`]s of all symbols whose codes are within
/// the next bits, up to the end of the block: `end | coefficients << 1 | bits << 8`. The magnitude bits of the last symbol
/// may extend beyond the lookup.
pub(crate) struct ScanTable<const DC: bool> {
    lines: Box<[CacheLine]>,
    pub codes: CodeTable,
}

/// The entries of one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine([u16; 32]);

impl<const DC: bool> ScanTable<DC> {
    const LOOKUP_BITS: u32 = if DC { SCAN_DC_LOOKUP_BITS } else { SCAN_LOOKUP_BITS };
    /// Index in the lines of the first entry: see [`ScanTable::tagged_pointer`].
    const FIRST: usize = (SCAN_LOOKUP_BITS - Self::LOOKUP_BITS) as usize / 2;
    const LINES: usize = (Self::FIRST + (1 << Self::LOOKUP_BITS)).div_ceil(32);
    /// Bytes of a table on the heap.
    pub(super) const HEAP_BYTES: usize = Self::LINES * size_of::<CacheLine>();

    /// Returns a pointer that encodes both the address of the entries and the bits of a lookup, so that they share a
    /// register. Its low six bits are 64 minus the bits of a lookup (lines are aligned to 64 bytes), and the entries begin
    /// [`SCAN_LOOKUP_BITS`] bytes after it.
    pub(crate) fn tagged_pointer(&self) -> *const u8 {
        self.lines.as_ptr().cast::<u8>().wrapping_sub(Self::LOOKUP_BITS as usize)
    }

    pub(super) fn empty() -> ScanTable<DC> {
        ScanTable { lines: vec![CacheLine([SCAN_MISS; 32]); Self::LINES].into(), codes: CodeTable::empty() }
    }

    pub(super) fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.codes = CodeTable::new(spec);
        let mut sums = scan_sums::<DC>(spec, Self::LOOKUP_BITS, SCAN_MAX_BITS);
        let entries = &mut sums[1 << Self::LOOKUP_BITS..2 << Self::LOOKUP_BITS];
        entries.iter_mut().filter(|entry| **entry == 0).for_each(|entry| *entry = SCAN_MISS);
        let (first, others) = entries.split_at(32 - Self::FIRST);
        self.lines[0].0[Self::FIRST..].copy_from_slice(first);
        for (line, entries) in self.lines[1..].iter_mut().zip(others.chunks(32)) {
            line.0[..entries.len()].copy_from_slice(entries);
        }
    }
}

/// Returns the sums of the [`scan_entry`]s of all symbols whose codes are within the next `lookup_bits` bits, up to the end of
/// the block, and which have at most `max_bits` bits: those of lookups of each length up to `lookup_bits`, one length after
/// the other, the entries for lookups of `n` bits from index `1 << n` on; 0 if the bits hold no whole code.
pub(super) fn scan_sums<const DC: bool>(
    spec: &HuffmanSpec<'_>,
    lookup_bits: u32,
    max_bits: u16,
) -> [u16; 2 << SCAN_LOOKUP_BITS] {
    let mut sums = [0; 2 << SCAN_LOOKUP_BITS];
    let shortest = spec.counts.iter().position(|&n| n > 0).unwrap_or(0) as u32 + 1;
    // The most bits that can remain after a symbol that does not end the block.
    let mut left = 0;
    spec.for_each_code(|_, length, symbol| {
        let entry = scan_entry(DC, length, symbol);
        if entry & SCAN_END == 0 {
            left = left.max(lookup_bits.saturating_sub((entry >> SCAN_BITS_SHIFT).into()));
        }
    });
    for look in (shortest..=left).chain([lookup_bits]) {
        let (smaller, here) = sums.split_at_mut(1 << look);
        let here = &mut here[..1 << look];
        spec.for_each_code(|code, length, symbol| {
            let Some(left) = look.checked_sub(length) else { return };
            let entry = scan_entry(DC, length, symbol);
            let bits = entry >> SCAN_BITS_SHIFT;
            let here = &mut here[(code << left) as usize..][..1 << left];
            let after = look.checked_sub(bits.into()).filter(|&after| entry & SCAN_END == 0 && after >= shortest);
            let Some(after) = after else {
                here.fill(if bits <= max_bits { entry } else { 0 });
                return;
            };
            let after = &smaller[1 << after..2 << after];
            let coefs = |entry| (entry & 255) >> SCAN_COEFS_SHIFT;
            for values in here.chunks_exact_mut(after.len()) {
                for (sum, &after) in values.iter_mut().zip(after) {
                    let fits =
                        (after >> SCAN_BITS_SHIFT) + bits <= max_bits && coefs(after) + coefs(entry) <= SCAN_MAX_COEFS;
                    *sum = if fits { entry + after } else { entry };
                }
            }
        });
    }
    sums
}
