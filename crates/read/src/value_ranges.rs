//! Single values of a feature with several byte strings, read by their ranges in the index.

use crate::{Result, Shard, Split};
use shardtool_format::checksum::{crc32c, mask};
use shardtool_format::example::Feature;
use shardtool_format::frame;
use shardtool_format::index::{VALUES_PREFIX, ValueRange};
use std::ops::Range;

impl Shard {
    /// Returns where the values of a bytes feature lie in a record, and their CRCs; `None` if the index has no value ranges
    /// of the feature. A record without the feature has none.
    ///
    /// # Errors
    /// [`crate::Error::Index`].
    pub fn value_ranges(&self, row: u64, feature: &str) -> Result<Option<Vec<ValueRange>>> {
        if !self.is_stored(feature) {
            return Ok(None);
        }
        let column = self.variable(&format!("{VALUES_PREFIX}{feature}"))?;
        Ok(column.and_then(|column| column.get(row)).map(|ranges| ValueRange::decode(ranges).collect()))
    }

    /// Hints that the system should read a value ahead. Does not wait; ignores errors.
    pub fn will_need_value(&self, row: u64, range: ValueRange) {
        if let Ok(record) = self.frame(row) {
            let start = record.start + frame::HEADER_BYTES as u64 + u64::from(range.offset);
            self.bytes().will_need(start..(start + u64::from(range.length)).min(record.end));
        }
    }

    /// Returns the bytes of the shard that a value of a record occupies.
    ///
    /// # Errors
    /// Those of [`Shard::frame`]; [`crate::Error::IndexMismatch`] if the range leaves the record.
    pub fn value_in_shard(&self, row: u64, range: ValueRange) -> Result<Range<u64>> {
        let record = self.frame(row)?;
        let data = record.start + frame::HEADER_BYTES as u64;
        let (start, length) = (data + u64::from(range.offset), u64::from(range.length));
        if start + length + frame::FOOTER_BYTES as u64 > record.end {
            let found =
                format!("{} bytes of data", (record.end - record.start).saturating_sub(frame::OVERHEAD_BYTES as u64));
            let expected = format!("bytes {} to {}", range.offset, u64::from(range.offset) + length);
            return Err(self.mismatch(row, "byte range of a value", expected, found));
        }
        Ok(start..start + length)
    }

    /// Returns one value, given the bytes that were read of its range. If their CRC does not match, reads them again.
    ///
    /// # Errors
    /// Those of [`Shard::value_at`].
    pub fn value_in(&self, row: u64, range: ValueRange, bytes: &[u8]) -> Result<Vec<u8>> {
        if bytes.len() == range.length as usize && crc32c(bytes) == range.crc {
            return Ok(bytes.to_vec());
        }
        self.value_at(row, range)
    }

    /// Reads one value by its range, without the rest of its record, and checks the value's own CRC.
    ///
    /// # Errors
    /// Those of [`Shard::value_in_shard`]; [`crate::Error::Record`] with `DataCrc` if the bytes have another CRC;
    /// [`crate::Error::Unreadable`].
    pub fn value_at(&self, row: u64, range: ValueRange) -> Result<Vec<u8>> {
        let (crc, range, record) = (range.crc, self.value_in_shard(row, range)?, self.frame(row)?.start);
        let check = |bytes: &[u8]| {
            let (offset, expected, found) = (record, mask(crc), crc32c(bytes));
            let other = shardtool_format::Error::DataCrc { offset, expected, found: mask(found) };
            if found == crc { Ok(()) } else { Err(self.damage(row, other)) }
        };
        let unreadable = |error| self.unreadable(row, error);
        if let Some(bytes) = self.bytes().mapped_range(&range) {
            let copy = bytes.map_err(|e| unreadable(self.bytes().unreadable(range.clone(), e)))?.to_vec();
            let checked = check(&copy);
            if self.bytes().stands(&range, checked.is_ok()).map_err(unreadable)? {
                return checked.map(|()| copy);
            }
        }
        let mut buffer = vec![];
        self.bytes().read_into(range.clone(), &mut buffer).map_err(unreadable)?;
        self.bytes().check_again(range, &mut buffer, check).map_err(unreadable)??;
        Ok(buffer)
    }
}

impl Split {
    /// Returns values of a bytes feature of record `id`: those with the numbers `which`, or all. Where the index has their
    /// ranges, only these bytes are read and checked, otherwise the record. `None` if the feature is not a list of byte
    /// strings, or has no value of one of these numbers.
    ///
    /// # Errors
    /// Those of [`Shard::value_at`], [`Shard::value_ranges`], [`Split::get`] and [`crate::Record::example`].
    pub fn values(&self, id: u64, feature: &str, which: Option<&[usize]>) -> Result<Option<Vec<Vec<u8>>>> {
        let (number, row) = self.locate(id)?;
        let shard = self.shard(number)?;
        if let Some(ranges) = shard.value_ranges(row, feature)? {
            let Some(chosen) = choose(&ranges, which) else { return Ok(None) };
            return chosen.map(|range| shard.value_at(row, *range)).collect::<Result<_>>().map(Some);
        }
        let record = shard.record(row, vec![])?;
        let Some(Feature::Bytes(list)) = record.example()?.get(feature) else { return Ok(None) };
        let values: Vec<_> = list.iter().collect();
        let copies = choose(&values, which).map(|chosen| chosen.map(|value| value.to_vec()).collect());
        record.check_readable().map(|()| copies)
    }
}

/// Returns the items with the numbers `which`, or all; `None` if an item of one of these numbers does not exist.
fn choose<'a, T>(items: &'a [T], which: Option<&'a [usize]>) -> Option<impl Iterator<Item = &'a T>> {
    let all: Vec<usize> = which.map_or_else(|| (0..items.len()).collect(), <[usize]>::to_vec);
    all.iter().all(|at| *at < items.len()).then(|| all.into_iter().map(|at| &items[at]))
}
