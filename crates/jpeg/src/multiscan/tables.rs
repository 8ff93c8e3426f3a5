//! The Huffman tables of several scans.

use crate::huffman::band_table::BandTable;
use crate::huffman::code_table::CodeTable;

/// The Huffman tables of all scans. A table of an earlier image is overwritten.
#[derive(Default)]
pub(super) struct Tables {
    codes: TableList<CodeTable>,
    ac: TableList<BandTable>,
}

/// Tables in allocations of their own, so that adding one does not copy the others.
struct TableList<T> {
    tables: Vec<Box<T>>,
    used: usize,
}

impl<T> Default for TableList<T> {
    fn default() -> TableList<T> {
        TableList { tables: Vec::new(), used: 0 }
    }
}

impl<T> TableList<T> {
    /// Adds a table, which `empty` makes if no unused one is left and `build` fills. Returns its index.
    fn push(&mut self, empty: impl FnOnce() -> T, build: impl FnOnce(&mut T)) -> usize {
        if self.used == self.tables.len() {
            self.tables.push(Box::new(empty()));
        }
        build(&mut self.tables[self.used]);
        self.used += 1;
        self.used - 1
    }

    fn capacity(&self) -> usize {
        self.tables.len() * size_of::<T>() + self.tables.capacity() * size_of::<usize>()
    }
}

impl Tables {
    pub(super) fn clear(&mut self) {
        (self.codes.used, self.ac.used) = (0, 0);
    }

    pub(super) fn push_codes(&mut self, table: CodeTable) -> usize {
        self.codes.push(CodeTable::empty, |to| *to = table)
    }

    pub(super) fn push_ac(&mut self, build: impl FnOnce(&mut BandTable)) -> usize {
        self.ac.push(BandTable::empty, build)
    }

    /// A table of DC codes.
    pub(super) fn codes(&self, index: usize) -> &CodeTable {
        &self.codes.tables[index]
    }

    /// A table of AC coefficients.
    pub(super) fn ac(&self, index: usize) -> &BandTable {
        &self.ac.tables[index]
    }

    pub(super) fn capacity(&self) -> usize {
        self.codes.capacity() + self.ac.capacity()
    }
}
