//! The index beside each shard: small, columnar, made to be mapped. It says where each record begins and where its
//! image lies, and holds keys, scalar features and JPEG entry points.
//!
//! ```text
//! header (64 bytes) | directory: entries of 48 bytes, then names | column parts, each at a multiple of 64 bytes
//! ```
//! The parts follow each other in the directory's order with fewer than 64 zero bytes between them, so every byte of
//! the file is claimed. Opening checks header and directory only; [`Index::check`] checks a column.

mod build;
mod column;
mod header;

pub use build::Builder;
pub use column::{Element, Fixed, Scalar, Variable};
pub use header::{ENTRY_BYTES, HEADER_BYTES, MAGIC, MAJOR_VERSION, MINOR_VERSION};

use crate::{Error, Result, checksum};
use header::Header;
use std::collections::HashSet;

/// Column parts begin at multiples of this many bytes: a cache line, and what DLPack consumers ask for.
pub const ALIGNMENT: u64 = 64;

/// Column of u64: where each record's frame begins in the shard, in bytes. Always there.
pub const RECORD_OFFSET: &str = "record_offset";
/// Column of u32: where each image begins inside its record's data, in bytes. Always there.
pub const IMAGE_OFFSET: &str = "image_offset";
/// Column of u32: bytes of each image, 0 where the record has none. Always there.
pub const IMAGE_LENGTH: &str = "image_length";
/// Variable column: each record's key. Always there.
pub const KEY: &str = "key";
/// Variable column: JPEG entry points of each image, no bytes where it has none. Optional.
pub const JPEG_ENTRIES: &str = "jpeg_entries";
/// Columns named with this prefix hold the feature of the name that follows, exactly one number a record.
pub const FEATURE_PREFIX: &str = "feature:";

/// An opened index: what its header and directory say. The bytes stay with the caller, who passes the same ones to
/// every method.
#[derive(Debug, Clone)]
pub struct Index {
    records: u64,
    shard_bytes: u64,
    shard_crc: u32,
    columns: Vec<Column>,
}

/// One column of the directory.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    element: Element,
    /// One part, or two: ends and bytes.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    offset: u64,
    length: u64,
    crc: u32,
}

impl Part {
    /// Where the padding after the part ends.
    fn padded_end(&self) -> Option<u64> {
        self.offset.checked_add(self.length)?.checked_next_multiple_of(ALIGNMENT)
    }
}

impl Index {
    /// Opens an index from the bytes of its file. Checks header and directory and reads nothing else: a column is
    /// checked by [`Index::check`].
    ///
    /// # Errors
    /// [`Error::IndexTruncated`], [`Error::IndexMagic`], [`Error::IndexVersion`], [`Error::IndexFlags`],
    /// [`Error::IndexHeaderCrc`], [`Error::IndexDirectoryCrc`], [`Error::IndexLayout`].
    pub fn parse(file: &[u8]) -> Result<Self> {
        let header = Header::parse(file)?;
        let entries = header.directory(file)?;
        let mut end = (HEADER_BYTES as u64 + header.directory_bytes).next_multiple_of(ALIGNMENT);
        for (offset, byte) in
            file.iter().enumerate().take(end as usize).skip(HEADER_BYTES + header.directory_bytes as usize)
        {
            if *byte != 0 {
                return Err(Error::IndexPadding { offset: offset as u64 });
            }
        }
        let mut columns = Vec::with_capacity(entries.len());
        let mut names = HashSet::with_capacity(entries.len());
        for entry in entries {
            let column = entry.column(header.records, &mut end)?;
            if !names.insert(entry.name) {
                return Err(Error::IndexLayout { offset: entry.offset, problem: "two columns of the same name" });
            }
            columns.push(column);
        }
        if end != header.index_bytes {
            return Err(Error::IndexLayout { offset: end, problem: "bytes that no column claims" });
        }
        Ok(Index { records: header.records, shard_bytes: header.shard_bytes, shard_crc: header.shard_crc, columns })
    }

    /// Records in the shard.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Length of the shard, in bytes.
    pub fn shard_bytes(&self) -> u64 {
        self.shard_bytes
    }

    /// CRC32C of the whole shard.
    pub fn shard_crc(&self) -> u32 {
        self.shard_crc
    }

    /// The columns, in the file's order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The position of a column among [`Index::columns`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Checks everything about a column: its CRCs, the padding after its parts, and that the ends of a variable one
    /// never fall and end where its bytes do.
    ///
    /// # Errors
    /// [`Error::ColumnCrc`], [`Error::IndexPadding`], [`Error::ColumnValue`].
    ///
    /// # Panics
    /// If `column` is not a position of this index, or `file` is not the file it was opened from.
    pub fn check(&self, file: &[u8], column: usize) -> Result<()> {
        let column = &self.columns[column];
        for part in &column.parts {
            let found = checksum::crc32c(column.part(file, part));
            if found != part.crc {
                return Err(Error::ColumnCrc { column: column.name.clone(), expected: part.crc, found });
            }
            let end = part.offset + part.length;
            let padding = &file[end as usize..part.padded_end().expect("checked by `parse`") as usize];
            if let Some(at) = padding.iter().position(|b| *b != 0) {
                return Err(Error::IndexPadding { offset: end + at as u64 });
            }
        }
        match column.variable(file) {
            Some(values) => values.check(&column.name),
            None => Ok(()),
        }
    }

    /// The values of a fixed-width column, by position; `None` if its elements are of another type.
    pub fn fixed<'a, T: Scalar>(&self, file: &'a [u8], column: usize) -> Option<Fixed<'a, T>> {
        self.columns.get(column)?.fixed(file)
    }

    /// The values of a variable column, by position; `None` if it is a fixed-width one.
    pub fn variable<'a>(&self, file: &'a [u8], column: usize) -> Option<Variable<'a>> {
        self.columns.get(column)?.variable(file)
    }
}

impl Column {
    /// Its name: one of the constants of this module, or [`FEATURE_PREFIX`] and the name of a feature.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its elements; [`Element::Bytes`] for a variable one.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Bytes of the column in the file, without padding.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.length).sum()
    }

    fn part<'a>(&self, file: &'a [u8], part: &Part) -> &'a [u8] {
        &file[part.offset as usize..][..part.length as usize]
    }

    fn fixed<'a, T: Scalar>(&self, file: &'a [u8]) -> Option<Fixed<'a, T>> {
        match &self.parts[..] {
            [part] if self.element == T::ELEMENT => Some(Fixed::new(self.part(file, part))),
            _ => None,
        }
    }

    fn variable<'a>(&self, file: &'a [u8]) -> Option<Variable<'a>> {
        match &self.parts[..] {
            [ends, bytes] => Some(Variable::new(self.part(file, ends), self.part(file, bytes))),
            _ => None,
        }
    }
}
