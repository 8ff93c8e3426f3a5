//! Rows of a variable column that is being collected.

/// Byte strings, one after the other.
#[derive(Default)]
pub(super) struct ByteRows {
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl ByteRows {
    pub(super) fn push(&mut self, row: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(row));
    }

    /// Adds the row that `write` appends.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Adds empty rows until there are `rows`.
    pub(super) fn pad(&mut self, rows: u64) {
        self.ends.resize(rows as usize, self.bytes.len());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}
