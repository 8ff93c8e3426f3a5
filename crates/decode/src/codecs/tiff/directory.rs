//! Reads the header and the first directory (IFD) of a TIFF: tags and their values.
//!
//! ```text
//! TIFF:    "II" or "MM" | u16 42 | u32 offset            directory: u16 n | n × (u16 tag, u16 type, u32 count, 4 bytes)
//! BigTIFF: "II" or "MM" | u16 43 | u16 8 | u16 0 | u64    directory: u64 n | n × (u16 tag, u16 type, u64 count, 8 bytes)
//! ```
//!
//! If a value does not fit the last field, that field holds its offset.

use crate::error::Error;
use crate::format::Format;

/// The first directory of a file.
pub(super) struct Directory<'a> {
    bytes: &'a [u8],
    pub(super) big_endian: bool,
    big: bool,
    entries: &'a [u8],
}

impl<'a> Directory<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut directory = Directory { bytes, big_endian: bytes.starts_with(b"MM"), big: false, entries: &[] };
        directory.big = directory.number(2, 2)? == 43;
        let width = if directory.big { 8 } else { 4 };
        let at = directory.number(if directory.big { 8 } else { 4 }, width)?;
        let at = usize::try_from(at).map_err(|_| truncated(bytes))?;
        let count_bytes = if directory.big { 8 } else { 2 };
        let count = directory.number(at, count_bytes)?;
        // A truncated directory is read as far as it goes, as in libtiff.
        let rest = &bytes[at + count_bytes..];
        let len = usize::try_from(count).ok().and_then(|n| n.checked_mul(directory.entry_bytes()));
        let whole = rest.len() / directory.entry_bytes() * directory.entry_bytes();
        directory.entries = &rest[..len.unwrap_or(usize::MAX).min(whole)];
        Ok(directory)
    }

    fn entry_bytes(&self) -> usize {
        if self.big { 20 } else { 12 }
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

    /// Returns the bytes of a tag's value and the length of one element, or `None` if the directory does not have the tag.
    fn value(&self, tag: u16) -> Result<Option<(&'a [u8], usize)>, Error> {
        let mut entries = self.entries.chunks_exact(self.entry_bytes());
        let Some(entry) = entries.find(|entry| self.unsigned(&entry[..2]) == u64::from(tag)) else { return Ok(None) };
        let element = match self.unsigned(&entry[2..4]) {
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16 | 17 | 18 => 8,
            _ => 1,
        };
        let (count, field) = entry[4..].split_at(if self.big { 8 } else { 4 });
        let len = usize::try_from(self.unsigned(count)).ok().and_then(|count| count.checked_mul(element));
        let len = len.ok_or_else(|| truncated(self.bytes))?;
        if let Some(value) = field.get(..len) {
            return Ok(Some((value, element)));
        }
        let at = usize::try_from(self.unsigned(field)).ok();
        let value = at.and_then(|at| self.bytes.get(at..at.checked_add(len)?));
        value.map(|value| Some((value, element))).ok_or_else(|| truncated(self.bytes))
    }

    /// Returns the bytes of a tag's value.
    pub(super) fn raw(&self, tag: u16) -> Result<Option<&'a [u8]>, Error> {
        Ok(self.value(tag)?.map(|(value, _)| value))
    }

    /// Returns the unsigned integers of a tag, none if the directory does not have it.
    pub(super) fn list(&self, tag: u16) -> Result<Vec<u64>, Error> {
        let value = self.value(tag)?;
        Ok(value.map_or(vec![], |(value, element)| value.chunks_exact(element).map(|v| self.unsigned(v)).collect()))
    }

    /// Returns the `N` rational numbers of a tag: fractions of two unsigned integers of 32 bits; 0 if divided by 0.
    pub(super) fn rationals<const N: usize>(&self, tag: u16) -> Result<Option<[f32; N]>, Error> {
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
    pub(super) fn first(&self, tag: u16) -> Result<Option<u64>, Error> {
        Ok(self.value(tag)?.and_then(|(value, element)| value.get(..element)).map(|v| self.unsigned(v)))
    }
}

fn truncated(bytes: &[u8]) -> Error {
    Error::Truncated { format: Format::Tiff, offset: bytes.len(), expected: "the directory and its values" }
}
