//! Least-recently-used caches of lookup tables, found by content: most files share the standard tables, so that decoders
//! seldom build any.

use super::coefficient_table::{CoefficientTable, SkipTable};
use super::scan_table::ScanTable;
use crate::markers::huffman_spec::HuffmanSpec;

/// A table that a cache can hold.
pub(crate) trait CachedTable {
    /// Bytes of a table on the heap.
    const HEAP_BYTES: usize;
    /// Returns the table of no code, with all memory allocated.
    fn empty() -> Self;
    /// Replaces this table by that of `spec`, without allocating.
    fn rebuild(&mut self, spec: &HuffmanSpec<'_>);
}

impl<const DC: bool> CachedTable for CoefficientTable<DC> {
    const HEAP_BYTES: usize = CoefficientTable::<DC>::HEAP_BYTES;

    fn empty() -> CoefficientTable<DC> {
        CoefficientTable::empty()
    }

    fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.rebuild(spec);
    }
}

impl CachedTable for SkipTable {
    const HEAP_BYTES: usize = SkipTable::HEAP_BYTES;

    fn empty() -> SkipTable {
        SkipTable::empty()
    }

    fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.rebuild(spec);
    }
}

impl<const DC: bool> CachedTable for ScanTable<DC> {
    const HEAP_BYTES: usize = ScanTable::<DC>::HEAP_BYTES;

    fn empty() -> ScanTable<DC> {
        ScanTable::empty()
    }

    fn rebuild(&mut self, spec: &HuffmanSpec<'_>) {
        self.rebuild(spec);
    }
}

/// The tables of one kind that were used last.
pub(crate) struct TableCache<T> {
    slots: Vec<Slot<T>>,
    clock: u64,
}

struct Slot<T> {
    counts: [u8; 16],
    symbols: Vec<u8>,
    last_used: u64,
    table: T,
}

/// Slots of a cache: more than the three tables of a class that one scan can name, so that the tables of an image never
/// evict each other.
const SLOTS: usize = 4;

impl<T: CachedTable> TableCache<T> {
    /// The most bytes of memory that a cache holds.
    const MAX_BYTES: usize = SLOTS * (size_of::<Slot<T>>() + 256 + T::HEAP_BYTES);

    fn new() -> TableCache<T> {
        TableCache { slots: Vec::new(), clock: 0 }
    }

    /// Returns the slot of the table for `spec`, which is built if it is not in the cache. The slot stays valid for the next
    /// `SLOTS - 1` calls.
    pub(crate) fn slot(&mut self, spec: &HuffmanSpec<'_>) -> usize {
        self.clock += 1;
        let same = |s: &Slot<T>| s.counts == *spec.counts && s.symbols == spec.symbols;
        let index = self.slots.iter().position(same).unwrap_or_else(|| {
            let index = if self.slots.len() < SLOTS {
                self.slots.reserve_exact(SLOTS - self.slots.len());
                let symbols = Vec::with_capacity(256);
                self.slots.push(Slot { counts: [0; 16], symbols, last_used: 0, table: T::empty() });
                self.slots.len() - 1
            } else {
                (0..SLOTS).min_by_key(|&i| self.slots[i].last_used).unwrap_or(0)
            };
            let slot = &mut self.slots[index];
            slot.counts = *spec.counts;
            slot.symbols.clear();
            slot.symbols.extend_from_slice(spec.symbols);
            slot.table.rebuild(spec);
            index
        });
        self.slots[index].last_used = self.clock;
        index
    }

    /// Returns the table in a slot.
    pub(crate) fn get(&self, slot: usize) -> &T {
        &self.slots[slot].table
    }
}

/// The caches of a decoder, one for each kind of table.
pub(crate) struct TableCaches {
    pub dc: TableCache<CoefficientTable<true>>,
    pub ac: TableCache<CoefficientTable<false>>,
    pub ac_skip: TableCache<SkipTable>,
    pub dc_scan: TableCache<ScanTable<true>>,
    pub ac_scan: TableCache<ScanTable<false>>,
}

impl TableCaches {
    /// The most bytes of memory that all caches hold.
    pub(crate) const MAX_BYTES: usize = TableCache::<CoefficientTable<true>>::MAX_BYTES
        + TableCache::<CoefficientTable<false>>::MAX_BYTES
        + TableCache::<SkipTable>::MAX_BYTES
        + TableCache::<ScanTable<true>>::MAX_BYTES
        + TableCache::<ScanTable<false>>::MAX_BYTES;

    pub(crate) fn new() -> TableCaches {
        TableCaches {
            dc: TableCache::new(),
            ac: TableCache::new(),
            ac_skip: TableCache::new(),
            dc_scan: TableCache::new(),
            ac_scan: TableCache::new(),
        }
    }
}
