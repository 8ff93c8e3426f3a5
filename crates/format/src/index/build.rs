//! Writes an index: columns in, the file's bytes out.

use super::column::{Element, Scalar};
use super::header::{ENTRY_BYTES, Entry, HEADER_BYTES, Header, MINOR_VERSION};
use super::{ALIGNMENT, Column, Part, Validity};
use crate::checksum;
use std::collections::HashSet;

/// Builds the bytes of an index. The file holds the columns in the order in which they are added.
#[derive(Debug)]
pub struct Builder {
    records: u64,
    shard_bytes: u64,
    shard_crc: u32,
    companion: bool,
    columns: Vec<(Column, Parts)>,
    names: HashSet<String>,
}

/// The bytes of a column's parts.
#[derive(Debug)]
struct Parts {
    validity: Option<Vec<u8>>,
    offsets: Option<Vec<u8>>,
    values: Vec<u8>,
}

impl Parts {
    /// Yields the parts that exist, in the file's order.
    fn existing(self) -> impl Iterator<Item = Vec<u8>> {
        self.validity.into_iter().chain(self.offsets).chain([self.values])
    }
}

impl Builder {
    /// Starts an index without columns, of a shard with this many records and bytes and this CRC32C.
    pub fn new(records: u64, shard_bytes: u64, shard_crc: u32) -> Self {
        Builder { records, shard_bytes, shard_crc, companion: false, columns: vec![], names: HashSet::new() }
    }

    /// Starts a companion of that shard.
    pub fn companion(records: u64, shard_bytes: u64, shard_crc: u32) -> Self {
        Builder { companion: true, ..Builder::new(records, shard_bytes, shard_crc) }
    }

    /// Adds a fixed-width column in which every record has a value.
    ///
    /// # Panics
    /// If the number of values is not the number of records, or the name is empty or already used.
    pub fn fixed<T: Scalar>(&mut self, name: &str, values: &[T]) -> &mut Self {
        self.fixed_nullable(name, values.iter().copied().map(Some))
    }

    /// Adds a fixed-width column in which records may be null. The validity bitmap is left out if none is.
    ///
    /// # Panics
    /// As [`Builder::fixed`].
    pub fn fixed_nullable<T: Scalar>(&mut self, name: &str, rows: impl IntoIterator<Item = Option<T>>) -> &mut Self {
        let rows = rows.into_iter();
        let mut values = Vec::with_capacity(rows.size_hint().0 * T::ELEMENT.width());
        let validity = self.rows(name, rows, |row| match row {
            Some(value) => value.write(&mut values),
            None => values.resize(values.len() + T::ELEMENT.width(), 0),
        });
        self.add(name, T::ELEMENT, Parts { validity, offsets: None, values })
    }

    /// Adds a variable column in which every record has a value.
    ///
    /// # Panics
    /// As [`Builder::fixed`].
    pub fn variable<R: AsRef<[u8]>>(&mut self, name: &str, rows: impl IntoIterator<Item = R>) -> &mut Self {
        self.variable_nullable(name, rows.into_iter().map(Some))
    }

    /// Adds a variable column in which records may be null. The validity bitmap is left out if none is.
    ///
    /// # Panics
    /// As [`Builder::fixed`].
    pub fn variable_nullable<R: AsRef<[u8]>>(
        &mut self,
        name: &str,
        rows: impl IntoIterator<Item = Option<R>>,
    ) -> &mut Self {
        let (mut offsets, mut values) = (0i64.to_le_bytes().to_vec(), vec![]);
        let validity = self.rows(name, rows.into_iter(), |row| {
            values.extend_from_slice(row.as_ref().map_or(&[], AsRef::as_ref));
            offsets.extend_from_slice(&(values.len() as i64).to_le_bytes());
        });
        self.add(name, Element::Bytes, Parts { validity, offsets: Some(offsets), values })
    }

    /// Calls `push` for each row. Returns the validity bitmap, if a row is null.
    fn rows<T>(
        &self,
        name: &str,
        rows: impl Iterator<Item = Option<T>>,
        mut push: impl FnMut(Option<T>),
    ) -> Option<Vec<u8>> {
        let (mut validity, mut count, mut valid) = (Validity::new(self.records), 0, 0);
        for row in rows {
            if row.is_some() && count < self.records {
                validity.set(count);
                valid += 1;
            }
            push(row);
            count += 1;
        }
        assert_eq!(count, self.records, "one row a record in column {name}");
        (valid < count).then(|| validity.into_bytes())
    }

    fn add(&mut self, name: &str, element: Element, data: Parts) -> &mut Self {
        assert!(!name.is_empty(), "a column has a name");
        assert!(self.names.insert(name.to_owned()), "column {name} is added once");
        let part = |d: &Vec<u8>| Part { offset: 0, length: d.len() as u64, crc: checksum::crc32c(d) };
        let (validity, offsets) = (data.validity.as_ref().map(part), data.offsets.as_ref().map(part));
        let values = part(&data.values);
        self.columns.push((Column { name: name.to_owned(), element, validity, offsets, values }, data));
        self
    }

    /// Returns the bytes of the index.
    pub fn finish(mut self) -> Vec<u8> {
        let names: usize = self.columns.iter().map(|(c, _)| c.name.len()).sum();
        let directory_bytes = self.columns.len() * ENTRY_BYTES + names;
        let mut end = ((HEADER_BYTES + directory_bytes) as u64).next_multiple_of(ALIGNMENT);
        for part in self.columns.iter_mut().flat_map(|(c, _)| c.parts_mut()) {
            part.offset = end;
            end = part.padded_end().expect("an index smaller than 2^64 bytes");
        }
        let mut directory = Vec::with_capacity(directory_bytes);
        self.columns.iter().for_each(|(c, _)| Entry::write(c, &mut directory));
        self.columns.iter().for_each(|(c, _)| directory.extend_from_slice(c.name.as_bytes()));
        let header = Header {
            companion: self.companion,
            minor_version: MINOR_VERSION,
            optional_flags: 0,
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
        // Each column is freed once it is copied, so that the index is not in memory twice.
        for (column, data) in self.columns {
            for (part, bytes) in column.parts().zip(data.existing()) {
                out.resize(part.offset as usize, 0);
                out.extend_from_slice(&bytes);
            }
        }
        out.resize(end as usize, 0);
        out
    }
}
