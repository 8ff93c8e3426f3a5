//! A record of a mapped shard without the values of some features, so that a crop of an array reads only its chunks.
//!
//! The CRC of a record follows from those of its parts ([`combine`]): values have theirs in the index, and only the bytes between
//! them are read. If the result is the record's CRC, all bytes that were read and all CRCs of values are right, and a value
//! is checked by its own when it is used.

use crate::{Record, Result, Shard};
use shardtool_format::checksum::{combine, crc32c};
use shardtool_format::example::range_within;
use shardtool_format::frame::{self, Check};
use shardtool_format::index::ValueRange;
use std::ops::Range;
use std::sync::Arc;

/// The values of a feature that are checked one by one.
#[derive(Debug)]
pub(crate) struct UncheckedValues {
    feature: String,
    ranges: Vec<ValueRange>,
}

impl Shard {
    /// As [`Shard::record`], without reading the values of some bytes features where the shard is mapped and its index has
    /// their ranges. Call [`Record::check_value`] before a value is used, and use no other value of these features.
    ///
    /// # Errors
    /// Those of [`Shard::record`] and [`Shard::value_ranges`].
    pub fn record_without_values(self: &Arc<Self>, row: u64, features: &[&str]) -> Result<Record> {
        match self.partial_record(row, features)? {
            Some(record) => Ok(record),
            None => {
                // The caller may have turned read-around off ([`Shard::read_exactly`]), since it needs parts of most records.
                self.bytes().will_need(self.frame(row)?);
                self.record(row, vec![])
            }
        }
    }

    /// Returns the record; `None` if it must be read whole, which also reports what is wrong with it.
    fn partial_record(self: &Arc<Self>, row: u64, features: &[&str]) -> Result<Option<Record>> {
        if self.check() != Check::Data || self.bytes().mapped().is_none() {
            return Ok(None);
        }
        let mut unchecked = vec![];
        for feature in features {
            let ranges = self.value_ranges(row, feature)?.unwrap_or_default();
            if !ranges.is_empty() {
                unchecked.push(UncheckedValues { feature: (*feature).to_owned(), ranges });
            }
        }
        let range = self.frame(row)?;
        let Some(Ok(frame)) = self.bytes().mapped_range(&range).filter(|_| !unchecked.is_empty()) else {
            return Ok(None);
        };
        let start = range.start as usize + frame::HEADER_BYTES;
        // The bytes between values are on many pages, which the system then reads at the same time.
        for end in unchecked.iter().flat_map(|values| &values.ranges).map(|value| start + bytes_of(value).end) {
            self.bytes().will_need(end as u64..end as u64 + 1);
        }
        let Some(length) = checked_length(frame, &unchecked) else { return Ok(None) };
        Ok(Some(Record::new(self.clone(), row, start..start + length, None).with_unchecked(unchecked)))
    }
}

/// Checks a frame by the bytes between values and the CRCs of the values. Returns the length of its data; `None` if
/// something is wrong.
fn checked_length(frame: &[u8], unchecked: &[UncheckedValues]) -> Option<usize> {
    let data = frame::data(frame, 0, Check::LengthOnly).ok()?;
    if data.len() + frame::OVERHEAD_BYTES != frame.len() {
        return None;
    }
    let mut ranges: Vec<_> = unchecked.iter().flat_map(|values| &values.ranges).collect();
    ranges.sort_by_key(|range| range.offset);
    let (mut crc, mut at) = (crc32c(&[]), 0);
    for value in ranges {
        let Range { start, end } = bytes_of(value);
        let between = data.get(at..start).filter(|_| end <= data.len())?;
        crc = combine(crc, crc32c(between), between.len() as u64);
        crc = combine(crc, value.crc, u64::from(value.length));
        at = end;
    }
    crc = combine(crc, crc32c(&data[at..]), (data.len() - at) as u64);
    frame::check_footer(&frame[frame::HEADER_BYTES + data.len()..], crc, 0).is_ok().then_some(data.len())
}

fn bytes_of(value: &ValueRange) -> Range<usize> {
    let start = value.offset as usize;
    start..start + value.length as usize
}

impl Record {
    /// Checks value number `number` of a bytes feature, if the record was made without the feature's values. `value` are its
    /// bytes in [`Record::data`].
    ///
    /// # Errors
    /// [`crate::Error::Record`] with `DataCrc` if the bytes have another CRC; [`crate::Error::IndexMismatch`] if the index has
    /// another range; [`crate::Error::Unreadable`].
    pub fn check_value(&self, feature: &str, number: u64, value: &[u8]) -> Result<()> {
        let Some(values) = self.unchecked().iter().find(|values| values.feature == feature) else { return Ok(()) };
        let (shard, row) = (self.shard(), self.row());
        let found = range_within(self.data(), value).unwrap_or_default();
        let range = values.ranges.get(number as usize);
        let Some(range) = range.filter(|range| bytes_of(range) == found) else {
            let expected = range.map_or("no such value".to_owned(), |range| format!("{:?}", bytes_of(range)));
            return Err(shard.mismatch(row, "byte range of a value", expected, format!("{found:?}")));
        };
        match crc32c(value) == range.crc {
            true => Ok(()),
            false => {
                // Reports damage, unless the bytes could not be read, or are other ones without the mapping.
                shard.value_at(row, *range)?;
                self.check_readable()?;
                let start = self.start_in_shard();
                let bytes = start + found.start as u64..start + found.end as u64;
                Err(shard.unreadable(row, shard.bytes().unreadable(bytes, rustix::io::Errno::IO.into())))
            }
        }
    }

    /// Asks the system to read value number `number` of a bytes feature soon, if the record was made without the
    /// feature's values.
    pub fn will_need_value(&self, feature: &str, number: u64) {
        let values = self.unchecked().iter().find(|values| values.feature == feature);
        if let Some(range) = values.and_then(|values| values.ranges.get(number as usize)).map(bytes_of) {
            let start = self.start_in_shard();
            self.shard().bytes().will_need(start + range.start as u64..start + range.end as u64);
        }
    }

    /// Returns how many bytes of the record's data were not read, since they are values that are checked one by one.
    pub fn unread_bytes(&self) -> u64 {
        let ranges = self.unchecked().iter().flat_map(|values| &values.ranges);
        ranges.map(|range| u64::from(range.length)).sum()
    }
}
