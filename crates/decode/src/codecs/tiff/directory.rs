//! Reads the header and the directories (IFDs) of a TIFF: tags and their values.
//!
//! ```text
//! TIFF:    "II" or "MM" | u16 42 | u32 offset            directory: u16 n | n × (u16 tag, u16 type, u32 count, 4 bytes)
//! BigTIFF: "II" or "MM" | u16 43 | u16 8 | u16 0 | u64    directory: u64 n | n × (u16 tag, u16 type, u64 count, 8 bytes)
//! ```
//!
//! If a value does not fit the last field, that field holds its offset.

use crate::error::Error;
use crate::format::Format;
use std::ops::Range;

/// A directory of a file.
#[derive(Clone, Copy)]
pub(crate) struct Directory<'a> {
    bytes: &'a [u8],
    pub(super) big_endian: bool,
    big: bool,
    /// Byte offset of the number of entries.
    start: usize,
    entries: &'a [u8],
    /// Whether the file ends inside the directory.
    cut: bool,
}

/// An entry of a directory.
pub(crate) struct Entry<'a> {
    pub(crate) tag: u16,
    /// The entry: tag, type, count, and the value or its offset.
    pub(crate) bytes: &'a [u8],
    /// Where the value is in the file, and the length of one element; `None` if it is not inside the file.
    pub(crate) value: Option<(Range<usize>, usize)>,
}

impl<'a> Directory<'a> {
    /// Reads the first directory of a file.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let big_endian = bytes.starts_with(b"MM");
        let mut directory = Directory { bytes, big_endian, big: false, start: 0, entries: &[], cut: false };
        directory.big = directory.number(2, 2)? == 43;
        let at = directory.number(if directory.big { 8 } else { 4 }, directory.word())?;
        directory.other(at)
    }

    /// Reads the directory at byte `at` of the same file.
    pub(crate) fn other(&self, at: u64) -> Result<Self, Error> {
        let start = usize::try_from(at).map_err(|_| truncated(self.bytes))?;
        let count = self.number(start, self.count_bytes())?;
        // A truncated directory is read as far as it goes, as in libtiff.
        let rest = &self.bytes[start + self.count_bytes()..];
        let len = usize::try_from(count).ok().and_then(|n| n.checked_mul(self.entry_bytes()));
        let whole = rest.len() / self.entry_bytes() * self.entry_bytes();
        let len = len.unwrap_or(usize::MAX);
        Ok(Directory { start, entries: &rest[..len.min(whole)], cut: len > whole, ..*self })
    }

    /// Returns whether the file ends inside the directory.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the bytes of the directory in the file, with the offset of the next one.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.count_bytes() + self.entries.len() + self.word()
    }

    /// Returns the offset of the next directory, 0 after the last one.
    pub(crate) fn next(&self) -> Result<u64, Error> {
        self.number(self.start + self.count_bytes() + self.entries.len(), self.word())
    }

    /// Iterates over the entries.
    pub(crate) fn all(&self) -> impl Iterator<Item = Entry<'a>> {
        let (directory, entry_bytes) = (*self, self.entry_bytes());
        self.entries.chunks_exact(entry_bytes).enumerate().map(move |(number, bytes)| Entry {
            tag: directory.unsigned(&bytes[..2]) as u16,
            bytes,
            value: directory.locate(directory.start + directory.count_bytes() + number * entry_bytes).ok(),
        })
    }

    /// Returns the integers at these bytes of the file, each of `element` bytes.
    pub(crate) fn numbers(&self, (value, element): (Range<usize>, usize)) -> Vec<u64> {
        self.bytes[value].chunks_exact(element).map(|v| self.unsigned(v)).collect()
    }

    /// Appends an integer of `width` bytes, at most 8.
    pub(crate) fn write(&self, out: &mut Vec<u8>, number: u64, width: usize) {
        match self.big_endian {
            true => out.extend_from_slice(&number.to_be_bytes()[8 - width..]),
            false => out.extend_from_slice(&number.to_le_bytes()[..width]),
        }
    }

    /// Returns the length of an offset, and of a value that an entry holds.
    pub(crate) fn word(&self) -> usize {
        if self.big { 8 } else { 4 }
    }

    /// Returns the length of the number of entries.
    pub(crate) fn count_bytes(&self) -> usize {
        if self.big { 8 } else { 2 }
    }

    fn entry_bytes(&self) -> usize {
        4 + 2 * self.word()
    }

    /// Reads the unsigned integer of `width` bytes at `at`.
    fn number(&self, at: usize, width: usize) -> Result<u64, Error> {
        let field = at.checked_add(width).and_then(|end| self.bytes.get(at..end));
        Ok(self.unsigned(field.ok_or_else(|| truncated(self.bytes))?))
    }

    fn unsigned(&self, field: &[u8]) -> u64 {
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        if self.big_endian { field.iter().fold(0, add) } else { field.iter().rev().fold(0, add) }
    }

    /// Returns where the value of the entry at byte `at` is, and the length of one element.
    fn locate(&self, at: usize) -> Result<(Range<usize>, usize), Error> {
        let element = match self.number(at + 2, 2)? {
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16 | 17 | 18 => 8,
            _ => 1,
        };
        let len = usize::try_from(self.number(at + 4, self.word())?).ok().and_then(|count| count.checked_mul(element));
        let len = len.ok_or_else(|| truncated(self.bytes))?;
        let field = at + 4 + self.word();
        let start = if len <= self.word() { field as u64 } else { self.number(field, self.word())? };
        let start = usize::try_from(start).map_err(|_| truncated(self.bytes))?;
        let end = start.checked_add(len).filter(|end| *end <= self.bytes.len());
        Ok((start..end.ok_or_else(|| truncated(self.bytes))?, element))
    }

    /// Returns the bytes of a tag's value and the length of one element, or `None` if the directory does not have the tag.
    fn value(&self, tag: u16) -> Result<Option<(&'a [u8], usize)>, Error> {
        let mut entries = self.entries.chunks_exact(self.entry_bytes());
        let Some(number) = entries.position(|entry| self.unsigned(&entry[..2]) == u64::from(tag)) else {
            return Ok(None);
        };
        let (value, element) = self.locate(self.start + self.count_bytes() + number * self.entry_bytes())?;
        Ok(Some((&self.bytes[value], element)))
    }

    /// Returns the bytes of a tag's value.
    pub(crate) fn raw(&self, tag: u16) -> Result<Option<&'a [u8]>, Error> {
        Ok(self.value(tag)?.map(|(value, _)| value))
    }

    /// Returns the unsigned integers of a tag, none if the directory does not have it.
    pub(crate) fn list(&self, tag: u16) -> Result<Vec<u64>, Error> {
        let value = self.value(tag)?;
        Ok(value.map_or(vec![], |(value, element)| value.chunks_exact(element).map(|v| self.unsigned(v)).collect()))
    }

    /// Returns the `N` rational numbers of a tag: fractions of two unsigned integers of 32 bits; 0 if divided by 0.
    pub(crate) fn rationals<const N: usize>(&self, tag: u16) -> Result<Option<[f32; N]>, Error> {
        let Some(value) = self.raw(tag)? else { return Ok(None) };
        let half = |bytes: &[u8]| self.unsigned(bytes) as u32 as f32;
        let mut numbers = value.chunks_exact(8).map(|pair| match (half(&pair[..4]), half(&pair[4..])) {
            (_, 0.0) => 0.0,
            (above, below) => above / below,
        });
        let found = std::array::from_fn(|_| numbers.next());
        Ok(found.iter().all(Option::is_some).then(|| found.map(Option::unwrap_or_default)))
    }

    /// Returns the first unsigned integer of a tag.
    pub(crate) fn first(&self, tag: u16) -> Result<Option<u64>, Error> {
        Ok(self.value(tag)?.and_then(|(value, element)| value.get(..element)).map(|v| self.unsigned(v)))
    }
}

fn truncated(bytes: &[u8]) -> Error {
    Error::Truncated { format: Format::Tiff, offset: bytes.len(), expected: "the directory and its values" }
}
