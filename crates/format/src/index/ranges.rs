//! Value ranges: where each value of a feature with several byte strings lies in its record.

use crate::checksum;
use crate::example::range_within;

/// The range and the CRC of one value. A row of the column `values:NAME` has one for each value of the feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// Offset of the value in the record's data, in bytes.
    pub offset: u32,
    /// Length of the value in bytes.
    pub length: u32,
    /// CRC32C of the value.
    pub crc: u32,
}

impl ValueRange {
    /// Bytes of one range.
    pub const BYTES: usize = 12;

    /// Returns the range of a value that is a part of its record's data; `None` if it is not, or if the data are 4 GiB or
    /// longer.
    pub fn of(data: &[u8], value: &[u8]) -> Option<Self> {
        let range = range_within(data, value)?;
        let (offset, end) = (u32::try_from(range.start).ok()?, u32::try_from(range.end).ok()?);
        Some(ValueRange { offset, length: end - offset, crc: checksum::crc32c(value) })
    }

    /// Appends the stored form.
    ///
    /// ```
    /// use shardtool_format::index::ValueRange;
    /// let mut row = vec![];
    /// ValueRange { offset: 54, length: 5, crc: 0x9a71bb4c }.encode(&mut row);
    /// assert_eq!(row, [54, 0, 0, 0, 5, 0, 0, 0, 0x4c, 0xbb, 0x71, 0x9a]);
    /// assert_eq!(ValueRange::decode(&row).next().unwrap().length, 5);
    /// ```
    pub fn encode(self, row: &mut Vec<u8>) {
        for field in [self.offset, self.length, self.crc] {
            row.extend_from_slice(&field.to_le_bytes());
        }
    }

    /// Iterates over the ranges of a row. Bytes after the last whole range, which [`super::Index::check`] refuses, are
    /// ignored.
    pub fn decode(row: &[u8]) -> impl ExactSizeIterator<Item = ValueRange> {
        row.chunks_exact(Self::BYTES).map(|range| {
            let field = |at: usize| u32::from_le_bytes(*range[at..].first_chunk().expect("twelve bytes"));
            ValueRange { offset: field(0), length: field(4), crc: field(8) }
        })
    }

    /// Returns the range in the record's data.
    pub fn bytes(self) -> std::ops::Range<usize> {
        self.offset as usize..self.offset as usize + self.length as usize
    }
}
