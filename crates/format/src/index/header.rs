//! Header and directory of an index, as stored.

use super::column::Element;
use super::validity::bitmap_bytes;
use super::{ALIGNMENT, Column, Part};
use crate::{Error, Result, checksum};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of an entry of the directory. The names follow the last entry.
pub const ENTRY_BYTES: usize = 72;
/// First bytes of every index: a byte with the high bit set and both line ends, so that a transfer as text is detected.
pub const MAGIC: [u8; 8] = *b"\x89STI\r\n\x1a\n";
/// First bytes of the indexes of version 0.1, which [`Error::IndexMagic`] recognises.
pub(crate) const MAGIC_0_1: [u8; 8] = *b"\x89STX\r\n\x1a\n";
/// Major version; readers refuse any other.
pub const MAJOR_VERSION: u16 = 1;
/// Minor version; a later one only adds what readers may skip.
pub const MINOR_VERSION: u16 = 0;
/// The required flag of a companion.
const COMPANION: u32 = 1;

#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) companion: bool,
    pub(super) minor_version: u16,
    pub(super) optional_flags: u32,
    pub(super) columns: u32,
    pub(super) records: u64,
    pub(super) shard_bytes: u64,
    pub(super) shard_crc: u32,
    pub(super) directory_bytes: u64,
    pub(super) index_bytes: u64,
    pub(super) directory_crc: u32,
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend(MAGIC);
        out.extend(MAJOR_VERSION.to_le_bytes());
        out.extend(self.minor_version.to_le_bytes());
        out.extend((if self.companion { COMPANION } else { 0 }).to_le_bytes()); // required flags
        out.extend(self.optional_flags.to_le_bytes());
        out.extend(self.columns.to_le_bytes());
        out.extend(self.records.to_le_bytes());
        out.extend(self.shard_bytes.to_le_bytes());
        out.extend(self.shard_crc.to_le_bytes());
        out.extend(u32::try_from(self.directory_bytes).expect("a directory under 4 GiB").to_le_bytes());
        out.extend(self.index_bytes.to_le_bytes());
        out.extend(self.directory_crc.to_le_bytes());
        out.extend(checksum::crc32c(&out).to_le_bytes());
        out.try_into().expect("the fields above fill the header")
    }

    /// Parses the header of an index, or of a companion, at the start of `found` bytes.
    pub(super) fn parse(start: &[u8], found: u64, companion: bool) -> Result<Self> {
        let truncated = |needed| Error::IndexTruncated { needed, found };
        let header: &[u8; HEADER_BYTES] = start.first_chunk().ok_or(truncated(HEADER_BYTES as u64))?;
        let mut fields = Fields(header);
        let magic = fields.take::<8>();
        if magic != MAGIC {
            return Err(Error::IndexMagic { found: magic });
        }
        let crc = checksum::crc32c(&header[..HEADER_BYTES - 4]);
        let expected = u32::from_le_bytes(*header.last_chunk().expect("four bytes"));
        let version = fields.u16();
        if version != MAJOR_VERSION && crc == expected {
            return Err(Error::IndexVersion { found: version });
        }
        if crc != expected {
            return Err(Error::IndexHeaderCrc { expected, found: crc });
        }
        let minor_version = fields.u16();
        let required = fields.u32();
        let known = if companion { COMPANION } else { 0 };
        if required & !known != 0 {
            return Err(Error::IndexFlags { unknown: required & !known });
        }
        if required != known {
            return Err(Error::IndexLayout { offset: 12, problem: "an index in the place of a companion" });
        }
        let optional_flags = fields.u32();
        let header = Header {
            companion,
            minor_version,
            optional_flags,
            columns: fields.u32(),
            records: fields.u64(),
            shard_bytes: fields.u64(),
            shard_crc: fields.u32(),
            directory_bytes: u64::from(fields.u32()),
            index_bytes: fields.u64(),
            directory_crc: fields.u32(),
        };
        if header.index_bytes > found {
            return Err(truncated(header.index_bytes));
        }
        if header.index_bytes < found {
            return Err(Error::IndexLayout { offset: header.index_bytes, problem: "bytes after the end of the index" });
        }
        Ok(header)
    }

    /// Returns the directory's entries after checking its CRC and the padding after it.
    pub(super) fn directory<'a>(&self, file: &'a [u8]) -> Result<Vec<Entry<'a>>> {
        let layout = |problem| Error::IndexLayout { offset: HEADER_BYTES as u64, problem };
        let directory = usize::try_from(self.directory_bytes)
            .ok()
            .and_then(|n| file[HEADER_BYTES..].get(..n))
            .ok_or(layout("a directory longer than the file"))?;
        let found = checksum::crc32c(directory);
        if found != self.directory_crc {
            return Err(Error::IndexDirectoryCrc { expected: self.directory_crc, found });
        }
        let (start, end) =
            (HEADER_BYTES + directory.len(), (HEADER_BYTES + directory.len()).next_multiple_of(ALIGNMENT as usize));
        if let Some(at) = file.iter().take(end).skip(start).position(|byte| *byte != 0) {
            return Err(Error::IndexPadding { offset: (start + at) as u64 });
        }
        let entries = self.columns as u64 * ENTRY_BYTES as u64;
        let (entries, mut names) = usize::try_from(entries)
            .ok()
            .and_then(|n| directory.split_at_checked(n))
            .ok_or(layout("a directory too short for its columns"))?;
        let mut parsed = Vec::with_capacity(self.columns as usize);
        for (i, entry) in entries.chunks_exact(ENTRY_BYTES).enumerate() {
            let offset = (HEADER_BYTES + i * ENTRY_BYTES) as u64;
            let layout = |problem| Error::IndexLayout { offset, problem };
            let bytes = entry.try_into().expect("a whole entry");
            let name_length = usize::from(u16::from_le_bytes([entry[2], entry[3]]));
            if name_length == 0 {
                return Err(layout("a column without a name"));
            }
            let (name, rest) = names.split_at_checked(name_length).ok_or(layout("a name longer than the directory"))?;
            let name = std::str::from_utf8(name).map_err(|_| layout("a column name that is not UTF-8"))?;
            names = rest;
            parsed.push(Entry { offset, bytes, name });
        }
        if !names.is_empty() {
            return Err(layout("bytes after the last column name"));
        }
        Ok(parsed)
    }
}

/// One entry of the directory.
pub(super) struct Entry<'a> {
    /// Offset in the file.
    pub(super) offset: u64,
    bytes: &'a [u8; ENTRY_BYTES],
    pub(super) name: &'a str,
}

impl Entry<'_> {
    pub(super) fn write(column: &Column, out: &mut Vec<u8>) {
        let parts = [column.validity, column.offsets, Some(column.values)].map(|part| part.unwrap_or(Part::ABSENT));
        out.push(if column.offsets.is_some() { VARIABLE } else { FIXED });
        out.push(column.element as u8);
        out.extend(u16::try_from(column.name.len()).expect("a name under 64 KiB").to_le_bytes());
        out.extend(0u32.to_le_bytes()); // reserved
        for part in parts {
            out.extend(part.offset.to_le_bytes());
            out.extend(part.length.to_le_bytes());
        }
        parts.iter().for_each(|part| out.extend(part.crc.to_le_bytes()));
        out.extend(0u32.to_le_bytes()); // reserved
    }

    /// Returns the column, whose parts must begin at `end`. Moves `end` past the parts and their padding.
    pub(super) fn column(&self, records: u64, end: &mut u64) -> Result<Column> {
        let layout = |problem| Error::IndexLayout { offset: self.offset, problem };
        let mut fields = Fields(self.bytes);
        let [kind, element] = fields.take();
        let _name_length = fields.u16();
        let reserved = fields.u32();
        let mut parts = [(); 3].map(|()| Part { offset: fields.u64(), length: fields.u64(), crc: 0 });
        parts.iter_mut().for_each(|part| part.crc = fields.u32());
        if (reserved, fields.u32()) != (0, 0) {
            return Err(layout("a reserved field that is not zero"));
        }
        if !matches!(kind, FIXED | VARIABLE) {
            return Err(layout("an unknown kind of column"));
        }
        let element = Element::from_code(element).ok_or(layout("an unknown element type"))?;
        if (kind == VARIABLE) != (element == Element::Bytes) {
            return Err(layout("an element type that its kind of column cannot have"));
        }
        let [validity, offsets, values] = parts;
        let validity = Some(validity).filter(|part| *part != Part::ABSENT);
        let offsets = Some(offsets).filter(|part| kind == VARIABLE || *part != Part::ABSENT);
        if kind == FIXED && offsets.is_some() {
            return Err(layout("offsets in a fixed-width column"));
        }
        if validity.is_some_and(|part| part.length == 0 || part.length != bitmap_bytes(records)) {
            return Err(layout("a validity bitmap of another length than its records need"));
        }
        let (rows, width, counted) = match offsets {
            None => (Some(records), element.width(), values.length),
            Some(offsets) => (records.checked_add(1), Element::I64.width(), offsets.length),
        };
        if rows.and_then(|rows| rows.checked_mul(width as u64)) != Some(counted) {
            return Err(layout("a column with another number of rows than there are records"));
        }
        let column = Column { name: self.name.to_owned(), element, validity, offsets, values };
        for part in column.parts() {
            if part.offset != *end {
                return Err(layout("a part that does not begin where the preceding one ends"));
            }
            *end = part.padded_end().ok_or(layout("a part that ends past any file"))?;
        }
        Ok(column)
    }
}

/// Kind of a fixed-width column.
const FIXED: u8 = 0;
/// Kind of a variable column.
const VARIABLE: u8 = 1;

const _: () = assert!((HEADER_BYTES as u64).is_multiple_of(ALIGNMENT));

/// Reads consecutive little-endian fields.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, tail) = self.0.split_first_chunk().expect("the layout's fields fit its size");
        self.0 = tail;
        *head
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
