//! Writes an index: columns in, the file's bytes out.

use super::column::{Element, Scalar};
use super::header::{ENTRY_BYTES, Entry, HEADER_BYTES, Header};
use super::{ALIGNMENT, Column, Part};
use crate::checksum;

/// Builds the bytes of an index. The file holds the columns in the order in which they are added.
pub struct Builder {
    records: u64,
    shard_bytes: u64,
    shard_crc: u32,
    columns: Vec<(Column, Vec<Vec<u8>>)>,
}

impl Builder {
    /// Starts an index without columns, of a shard with this many records and bytes and this CRC32C.
    pub fn new(records: u64, shard_bytes: u64, shard_crc: u32) -> Self {
        Builder { records, shard_bytes, shard_crc, columns: vec![] }
    }

    /// Adds a fixed-width column.
    ///
    /// # Panics
    /// If the number of values is not the number of records, or the name is already used.
    pub fn fixed<T: Scalar>(&mut self, name: &str, values: &[T]) -> &mut Self {
        assert_eq!(values.len() as u64, self.records, "one value a record in column {name}");
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|v| v.write(&mut bytes));
        self.add(name, T::ELEMENT, vec![bytes])
    }

    /// Adds a variable column: `ends` holds the end of each row in `bytes`, exclusive.
    ///
    /// # Panics
    /// If the number of ends is not the number of records, if `ends` are not ascending up to the length of `bytes`, or if
    /// the name is already used.
    pub fn variable(&mut self, name: &str, ends: &[u64], bytes: Vec<u8>) -> &mut Self {
        assert_eq!(ends.len() as u64, self.records, "one end a record in column {name}");
        assert!(ends.is_sorted() && ends.last().copied().unwrap_or(0) == bytes.len() as u64, "ends of column {name}");
        let ends = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        self.add(name, Element::Bytes, vec![ends, bytes])
    }

    fn add(&mut self, name: &str, element: Element, data: Vec<Vec<u8>>) -> &mut Self {
        assert!(self.columns.iter().all(|(c, _)| c.name != name), "column {name} is added once");
        let part = |d: &Vec<u8>| Part { offset: 0, length: d.len() as u64, crc: checksum::crc32c(d) };
        let parts = data.iter().map(part).collect();
        self.columns.push((Column { name: name.to_owned(), element, parts }, data));
        self
    }

    /// Returns the bytes of the index.
    pub fn finish(mut self) -> Vec<u8> {
        let names: usize = self.columns.iter().map(|(c, _)| c.name.len()).sum();
        let directory_bytes = self.columns.len() * ENTRY_BYTES + names;
        let mut end = ((HEADER_BYTES + directory_bytes) as u64).next_multiple_of(ALIGNMENT);
        for part in self.columns.iter_mut().flat_map(|(c, _)| &mut c.parts) {
            part.offset = end;
            end = part.padded_end().expect("an index smaller than 2^64 bytes");
        }
        let mut directory = Vec::with_capacity(directory_bytes);
        self.columns.iter().for_each(|(c, _)| Entry::write(c, &mut directory));
        self.columns.iter().for_each(|(c, _)| directory.extend_from_slice(c.name.as_bytes()));
        let header = Header {
            columns: u32::try_from(self.columns.len()).expect("fewer than 2^32 columns"),
            records: self.records,
            shard_bytes: self.shard_bytes,
            shard_crc: self.shard_crc,
            directory_bytes: directory.len() as u64,
            index_bytes: end,
            directory_crc: checksum::crc32c(&directory),
        };
        let mut out = Vec::with_capacity(end as usize);
        out.extend(header.to_bytes());
        out.extend(directory);
        for (column, data) in &self.columns {
            for (part, bytes) in column.parts.iter().zip(data) {
                out.resize(part.offset as usize, 0);
                out.extend_from_slice(bytes);
            }
        }
        out.resize(end as usize, 0);
        out
    }
}
