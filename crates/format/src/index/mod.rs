//! The index of a shard: a small columnar file made to be mapped. It holds the offset of each record and of its image,
//! keys, features with one value, ranges of values, and JPEG entry points.
//!
//! ```text
//! header (64 bytes) | directory: entries of 72 bytes, then names | column parts, each at a multiple of 64 bytes
//! ```
//! A column has up to three parts, which are Arrow's buffers: a validity bitmap if rows are null, offsets if its values
//! are byte strings, and values. The parts follow each other in the directory's order with fewer than 64 zero bytes
//! between them, so that every byte of the file is checked. Opening checks header and directory only; [`Index::check`]
//! checks a column.

mod build;
mod column;
mod header;
mod known;
mod ranges;
mod validity;
mod virtual_shard;

pub use build::Builder;
pub use column::{Element, Fixed, Scalar, Variable};
pub(crate) use header::MAGIC_0_1;
pub use header::{ENTRY_BYTES, HEADER_BYTES, MAGIC, MAJOR_VERSION, MINOR_VERSION};
pub use known::{Required, VirtualColumns};
pub use ranges::ValueRange;
pub use validity::Validity;
pub use virtual_shard::{FramePart, SourceFile, SourceRange, frame_parts};

use crate::{Error, Result, checksum};
use header::Header;
use std::collections::HashSet;

/// Alignment of column parts in bytes: a cache line, and the alignment that DLPack requires.
pub const ALIGNMENT: u64 = 64;

/// Required column of u64: offset of each record's frame in the shard, in bytes.
pub const RECORD_OFFSET: &str = "record_offset";
/// Required column of u32: offset of each image in its record's data, in bytes; 0 if the record has none.
pub const IMAGE_OFFSET: &str = "image_offset";
/// Required column of u32: length of each image in bytes; 0 if the record has none.
pub const IMAGE_LENGTH: &str = "image_length";
/// Required variable column: each record's key.
pub const KEY: &str = "key";
/// Optional variable column: JPEG entry points of each image; empty for an image without entry points.
pub const JPEG_ENTRIES: &str = "jpeg_entries";
/// Variable column of a virtual shard: the [`SourceFile`]s that no earlier row has.
pub const VIRTUAL_FILES: &str = "virtual_files";
/// Variable column of a virtual shard: the [`SourceRange`]s of each record's frame.
pub const VIRTUAL_RANGES: &str = "virtual_ranges";
/// Variable column of a virtual shard: the bytes of each record's frame that lie in no source file.
pub const VIRTUAL_BYTES: &str = "virtual_bytes";
/// Prefix of the columns that hold a feature with at most one value per record; the feature's name follows.
pub const FEATURE_PREFIX: &str = "feature:";
/// Longest byte string in a column of [`FEATURE_PREFIX`], in bytes.
pub const MAX_FEATURE_BYTES: usize = 256;
/// Prefix of the columns that hold the [`ValueRange`]s of a feature with several byte strings; the feature's name follows.
pub const VALUES_PREFIX: &str = "values:";
/// Prefix of the columns of companions that hold a feature with several values: each row is a message `Feature`. The feature's name
/// follows.
pub const ENCODED_PREFIX: &str = "encoded:";

/// Bytes that an index takes for each record at least: the rows of its required columns.
pub const ROW_BYTES: u64 = 8 + 4 + 4 + 8;

/// Checks the header at the start of an index file of `length` bytes, so that the file need not be read if the header does
/// not fit it.
///
/// # Errors
/// As [`Index::parse`], of the header alone.
pub fn check_header(start: &[u8], length: u64) -> Result<()> {
    Header::parse(start, length, false).map(drop)
}

/// An opened index: its file's bytes, and its parsed header and directory. `B` holds the bytes: a slice, a
/// vector or a mapping. It must return the same bytes from every call of `as_ref`, as all types of the standard library
/// do.
#[derive(Debug, Clone)]
pub struct Index<B> {
    file: B,
    minor_version: u16,
    optional_flags: u32,
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
    /// Exists if rows are null.
    validity: Option<Part>,
    /// Exists if the column is variable.
    offsets: Option<Part>,
    values: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    offset: u64,
    length: u64,
    crc: u32,
}

impl Part {
    /// The fields of a part that does not exist.
    const ABSENT: Part = Part { offset: 0, length: 0, crc: 0 };

    /// Offset at which the padding after the part ends.
    fn padded_end(&self) -> Option<u64> {
        self.offset.checked_add(self.length)?.checked_next_multiple_of(ALIGNMENT)
    }
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Opens an index from the bytes of its file. Checks header and directory and reads nothing else;
    /// [`Index::check`] checks a column.
    ///
    /// # Errors
    /// [`Error::IndexTruncated`], [`Error::IndexMagic`], [`Error::IndexVersion`], [`Error::IndexFlags`],
    /// [`Error::IndexHeaderCrc`], [`Error::IndexDirectoryCrc`], [`Error::IndexPadding`], [`Error::IndexLayout`].
    ///
    /// ```
    /// use shardtool_format::index::{self, Builder, Index};
    /// let mut builder = Builder::new(2, 354, 0x0ebf713e);
    /// builder.fixed(index::RECORD_OFFSET, &[0u64, 180]);
    /// let index = Index::parse(builder.finish())?;
    /// let column = index.position(index::RECORD_OFFSET).unwrap();
    /// index.check(column)?;
    /// assert_eq!(index.fixed::<u64>(column).unwrap().get(1), Some(180));
    /// # Ok::<(), shardtool_format::Error>(())
    /// ```
    pub fn parse(file: B) -> Result<Self> {
        Self::parse_kind(file, false)
    }

    /// As [`Index::parse`], of a companion: it has the required flag of companions, and no column must be there.
    ///
    /// # Errors
    /// As [`Index::parse`].
    pub fn parse_companion(bytes: B) -> Result<Self> {
        Self::parse_kind(bytes, true)
    }

    fn parse_kind(file: B, companion: bool) -> Result<Self> {
        let bytes = file.as_ref();
        let header = Header::parse(bytes, bytes.len() as u64, companion)?;
        let entries = header.directory(bytes)?;
        let Header {
            minor_version, optional_flags, records, shard_bytes, shard_crc, directory_bytes, index_bytes, ..
        } = header;
        let directory_end = HEADER_BYTES + directory_bytes as usize;
        let mut end = (directory_end as u64).next_multiple_of(ALIGNMENT);
        let mut columns = Vec::with_capacity(entries.len());
        let mut names = HashSet::with_capacity(entries.len());
        for entry in entries {
            let column = entry.column(records, &mut end)?;
            if !names.insert(entry.name) {
                return Err(Error::IndexLayout { offset: entry.offset, problem: "two columns of the same name" });
            }
            columns.push(column);
        }
        if end != index_bytes {
            return Err(Error::IndexLayout { offset: end, problem: "bytes that no column claims" });
        }
        Ok(Index { file, minor_version, optional_flags, records, shard_bytes, shard_crc, columns })
    }

    /// Returns the bytes that [`Index::parse`] took.
    pub fn get_ref(&self) -> &B {
        &self.file
    }

    /// Returns the bytes of the file.
    pub fn as_bytes(&self) -> &[u8] {
        self.file.as_ref()
    }

    /// Returns the minor version of the format that the writer followed.
    pub fn minor_version(&self) -> u16 {
        self.minor_version
    }

    /// Returns the optional flags: bits that a reader may ignore. Version 1.0 has none.
    pub fn optional_flags(&self) -> u32 {
        self.optional_flags
    }

    /// Returns the number of records in the shard.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the length of the shard in bytes.
    pub fn shard_bytes(&self) -> u64 {
        self.shard_bytes
    }

    /// Returns the CRC32C of the whole shard.
    pub fn shard_crc(&self) -> u32 {
        self.shard_crc
    }

    /// Returns the columns, in the file's order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the position of a column in [`Index::columns`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// Checks a column: the CRC of each part and the padding after it, then offsets, then validity, then the rows of
    /// value ranges.
    ///
    /// # Errors
    /// [`Error::ColumnCrc`], [`Error::IndexPadding`], [`Error::ColumnValue`].
    ///
    /// # Panics
    /// If `column` is not a position in [`Index::columns`].
    pub fn check(&self, column: usize) -> Result<()> {
        let (file, column) = (self.as_bytes(), &self.columns[column]);
        for part in column.parts() {
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
        column.check_values(file, self.records).map_err(|(row, problem)| Error::ColumnValue {
            column: column.name.clone(),
            row,
            problem,
        })
    }

    /// Returns the values of the fixed-width column at a position; `None` if its elements are of another type.
    #[inline]
    pub fn fixed<T: Scalar>(&self, column: usize) -> Option<Fixed<'_, T>> {
        self.columns.get(column)?.fixed(self.as_bytes())
    }

    /// Returns the values of the variable column at a position; `None` if it is a fixed-width column.
    #[inline]
    pub fn variable(&self, column: usize) -> Option<Variable<'_>> {
        self.columns.get(column)?.variable(self.as_bytes())
    }
}

impl Column {
    /// Returns the name: one of the constants of this module, or [`FEATURE_PREFIX`] or [`VALUES_PREFIX`] and the name of
    /// a feature.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the feature that the column holds, if it holds one.
    pub fn feature(&self) -> Option<&str> {
        self.name.strip_prefix(FEATURE_PREFIX)
    }

    /// Returns the name of the feature whose value ranges the column holds, if it holds any.
    pub fn values_of(&self) -> Option<&str> {
        self.name.strip_prefix(VALUES_PREFIX)
    }

    /// Returns whether a row is null: the column has a validity bitmap.
    pub fn nullable(&self) -> bool {
        self.validity.is_some()
    }

    /// Returns the feature whose messages the column holds, if it is of [`ENCODED_PREFIX`].
    pub fn encoded(&self) -> Option<&str> {
        self.name.strip_prefix(ENCODED_PREFIX)
    }

    /// Returns the type of the elements; [`Element::Bytes`] for a variable column.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Returns the length of the column in the file in bytes, without padding.
    pub fn bytes(&self) -> u64 {
        self.parts().map(|p| p.length).sum()
    }

    /// Yields the parts that exist, in the file's order.
    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.validity.iter().chain(&self.offsets).chain([&self.values])
    }

    fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        self.validity.iter_mut().chain(&mut self.offsets).chain([&mut self.values])
    }

    fn part<'a>(&self, file: &'a [u8], part: &Part) -> &'a [u8] {
        &file[part.offset as usize..][..part.length as usize]
    }

    fn fixed<'a, T: Scalar>(&self, file: &'a [u8]) -> Option<Fixed<'a, T>> {
        let validity = self.validity.map(|part| self.part(file, &part));
        (self.element == T::ELEMENT).then(|| Fixed::new(validity, self.part(file, &self.values)))
    }

    fn variable<'a>(&self, file: &'a [u8]) -> Option<Variable<'a>> {
        let validity = self.validity.map(|part| self.part(file, &part));
        let offsets = self.part(file, &self.offsets?);
        Some(Variable::new(validity, offsets, self.part(file, &self.values)))
    }

    /// Returns the first row with an impossible value, and what is wrong with it.
    fn check_values(&self, file: &[u8], records: u64) -> std::result::Result<(), (u64, &'static str)> {
        let variable = self.variable(file);
        if let Some(variable) = variable {
            variable.check_offsets()?;
        }
        if let Some(validity) = self.validity.map(|part| self.part(file, &part)) {
            validity::check(validity, records)?;
            let values = self.part(file, &self.values);
            let width = self.element.width();
            for row in (0..records).filter(|row| validity::is_set(validity, *row) == Some(false)) {
                let zero = match variable {
                    Some(variable) => variable.is_empty_row(row),
                    None => values[row as usize * width..][..width].iter().all(|byte| *byte == 0),
                };
                if !zero {
                    return Err((row, "a null row with a value"));
                }
            }
        }
        let (entry, problem) = match &self.name {
            name if name == VIRTUAL_RANGES => (SourceRange::BYTES, "source ranges that are not a multiple of 32 bytes"),
            _ if self.values_of().is_some() => (ValueRange::BYTES, "value ranges that are not a multiple of 12 bytes"),
            _ => return Ok(()),
        };
        let mut rows = variable.iter().flat_map(|ranges| ranges.iter());
        match rows.position(|row| !row.unwrap_or_default().len().is_multiple_of(entry)) {
            Some(row) => Err((row as u64, problem)),
            None => Ok(()),
        }
    }
}
