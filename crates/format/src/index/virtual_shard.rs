//! The rows of a virtual shard: where the bytes of each record's frame lie.

use crate::checksum;

/// A source file, as the column [`super::VIRTUAL_FILES`] describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile<'a> {
    /// Length of the file in bytes.
    pub length: u64,
    /// Path from the folder of the source, with `/`.
    pub name: &'a str,
}

impl<'a> SourceFile<'a> {
    /// Bytes before the name.
    const HEAD: usize = 12;

    /// Appends the stored form.
    ///
    /// # Panics
    /// If the name has 4 GiB.
    pub fn encode(&self, row: &mut Vec<u8>) {
        row.extend_from_slice(&self.length.to_le_bytes());
        row.extend_from_slice(&u32::try_from(self.name.len()).expect("a name below 4 GiB").to_le_bytes());
        row.extend_from_slice(self.name.as_bytes());
    }

    /// Returns the file whose entry begins at `offset` in the values of the column; `None` if no entry does, or its name is not
    /// UTF-8.
    ///
    /// ```
    /// use shardtool_format::index::SourceFile;
    /// let mut values = vec![];
    /// SourceFile { length: 5, name: "a/b.jpg" }.encode(&mut values);
    /// assert_eq!(SourceFile::decode(&values, 0), Some(SourceFile { length: 5, name: "a/b.jpg" }));
    /// assert_eq!(SourceFile::decode(&values, 1), None);
    /// ```
    pub fn decode(values: &'a [u8], offset: u64) -> Option<Self> {
        let entry = values.get(usize::try_from(offset).ok()?..)?;
        let length = u64::from_le_bytes(*entry.first_chunk()?);
        let name = u32::from_le_bytes(*entry.get(8..)?.first_chunk()?) as usize;
        let name = entry.get(Self::HEAD..)?.get(..name)?;
        Some(SourceFile { length, name: std::str::from_utf8(name).ok()? })
    }

    /// Returns the length of the stored form in bytes.
    pub fn bytes(&self) -> u64 {
        (Self::HEAD + self.name.len()) as u64
    }

    /// Bytes of a name at most: no system has longer paths.
    const MAX_NAME: usize = 4096;

    /// Returns whether the name is a path that cannot leave the folder of the source, unless a link does.
    pub fn has_plain_name(&self) -> bool {
        if self.name.len() > Self::MAX_NAME {
            return false;
        }
        let plain = |component: &str| !matches!(component, "" | "." | "..");
        self.name.split('/').all(plain) && !self.name.chars().any(char::is_control)
    }
}

/// A part of a record's frame that lies in a source file, as the column [`super::VIRTUAL_RANGES`] describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceRange {
    /// Offset of the file's entry in the values of the column [`super::VIRTUAL_FILES`].
    pub file: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes, at least 1.
    pub length: u32,
    /// CRC32C of the bytes.
    pub crc: u32,
    /// Number of other bytes of the frame since the range before it.
    pub before: u32,
}

impl SourceRange {
    /// Bytes of one range.
    pub const BYTES: usize = 32;

    /// Appends the stored form.
    pub fn encode(self, row: &mut Vec<u8>) {
        row.extend_from_slice(&self.file.to_le_bytes());
        row.extend_from_slice(&self.offset.to_le_bytes());
        for field in [self.length, self.crc, self.before, 0] {
            row.extend_from_slice(&field.to_le_bytes());
        }
    }

    /// Returns the range, and its reserved field.
    fn decode(entry: &[u8; Self::BYTES]) -> (Self, u32) {
        let wide = |at: usize| u64::from_le_bytes(*entry[at..].first_chunk().expect("32 bytes"));
        let field = |at: usize| u32::from_le_bytes(*entry[at..].first_chunk().expect("32 bytes"));
        let range =
            SourceRange { file: wide(0), offset: wide(8), length: field(16), crc: field(20), before: field(24) };
        (range, field(28))
    }

    /// Returns whether these are its bytes.
    pub fn has_bytes(&self, bytes: &[u8]) -> bool {
        bytes.len() == self.length as usize && checksum::crc32c(bytes) == self.crc
    }
}

/// A part of a record's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramePart<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// Bytes of a source file.
    Source(SourceRange),
}

impl FramePart<'_> {
    /// Returns the length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "parts are not empty")]
    pub fn len(&self) -> u64 {
        match self {
            FramePart::Bytes(bytes) => bytes.len() as u64,
            FramePart::Source(range) => u64::from(range.length),
        }
    }
}

/// Returns the parts of a frame of this length, in order, given the rows of [`super::VIRTUAL_RANGES`] and
/// [`super::VIRTUAL_BYTES`].
///
/// # Errors
/// What is wrong with the rows.
pub fn frame_parts<'a>(ranges: &[u8], bytes: &'a [u8], length: u64) -> Result<Vec<FramePart<'a>>, &'static str> {
    let (entries, rest) = ranges.as_chunks::<{ SourceRange::BYTES }>();
    if !rest.is_empty() {
        return Err("a row of ranges that is not whole");
    }
    let (mut parts, mut left, mut total) = (Vec::with_capacity(2 * entries.len() + 1), bytes, bytes.len() as u64);
    for entry in entries {
        let (range, reserved) = SourceRange::decode(entry);
        if reserved != 0 {
            return Err("a reserved field of a range is not 0");
        }
        if range.length == 0 || range.offset.checked_add(u64::from(range.length)).is_none() {
            return Err("an empty range, or one that ends past any file");
        }
        let (before, after) =
            left.split_at_checked(range.before as usize).ok_or("a range after more bytes than there are")?;
        if !before.is_empty() {
            parts.push(FramePart::Bytes(before));
        }
        parts.push(FramePart::Source(range));
        left = after;
        total += u64::from(range.length);
    }
    if !left.is_empty() {
        parts.push(FramePart::Bytes(left));
    }
    if total == length { Ok(parts) } else { Err("parts that do not add up to the length of the frame") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ranges: &[SourceRange]) -> Vec<u8> {
        let mut row = vec![];
        ranges.iter().for_each(|range| range.encode(&mut row));
        row
    }

    #[test]
    fn parts_are_in_the_order_of_the_frame() {
        let first = SourceRange { file: 0, offset: 512, length: 5, crc: 7, before: 2 };
        let second = SourceRange { file: 19, offset: 0, length: 1, crc: 8, before: 0 };
        let parts = frame_parts(&row(&[first, second]), b"abcd", 10).unwrap();
        let expected = [
            FramePart::Bytes(&b"ab"[..]),
            FramePart::Source(first),
            FramePart::Source(second),
            FramePart::Bytes(b"cd"),
        ];
        assert_eq!(parts, expected);
        assert_eq!(frame_parts(&[], b"abcd", 4), Ok(vec![FramePart::Bytes(b"abcd")]));
        assert_eq!(frame_parts(&[], b"", 0), Ok(vec![]));
    }

    #[test]
    fn rows_that_cannot_be_are_refused() {
        let good = SourceRange { file: 0, offset: 512, length: 5, crc: 7, before: 2 };
        let whole = row(&[good]);
        for (ranges, length) in [
            (whole[..31].to_vec(), 9),
            (whole.clone(), 8),
            (whole.clone(), 10),
            (row(&[SourceRange { before: 5, ..good }]), 9),
            (row(&[SourceRange { length: 0, ..good }]), 4),
            (row(&[SourceRange { offset: u64::MAX, ..good }]), 9),
            ([&whole[..28], &[1, 0, 0, 0]].concat(), 9),
        ] {
            assert!(frame_parts(&ranges, b"abcd", length).is_err(), "{ranges:?}");
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        let plain = |name| SourceFile { length: 0, name }.has_plain_name();
        assert!(["a", "a/b.jpg", "..a/b..", "a b", "é"].into_iter().all(plain));
        assert!(plain("a".repeat(4096).leak()) && !plain("a".repeat(4097).leak()));
        for name in ["", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", ".", "./a", "a/.", "a\0b", "a\nb"] {
            assert!(!plain(name), "{name:?}");
        }
        let mut values = vec![];
        SourceFile { length: 3, name: "ab" }.encode(&mut values);
        for cut in 0..values.len() {
            assert_eq!(SourceFile::decode(&values[..cut], 0), None);
        }
        values[12] = 0xff;
        assert_eq!(SourceFile::decode(&values, 0), None);
        assert_eq!(SourceFile::decode(&values, u64::MAX), None);
    }
}
