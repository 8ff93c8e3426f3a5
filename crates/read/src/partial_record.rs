//! A record without the values of some features, so that a crop of an array reads only its chunks: of a mapped shard, or made
//! of the parts that were requested from a store.
//!
//! The CRC of a record follows from those of its parts ([`combine`]): values have theirs in the index, and only the bytes between
//! them are read. If the result is the record's CRC, all bytes that were read and all CRCs of values are right, and a value
//! is checked by its own when it is used.

use crate::{Record, Result, Shard};
use shardtool_format::checksum::{combine, crc32c};
use shardtool_format::example::range_within;
use shardtool_format::frame::{self, Check};
use shardtool_format::index::ValueRange;
use std::iter::repeat;
use std::ops::Range;
use std::sync::Arc;

/// The values of a feature that are checked one by one.
#[derive(Debug, Clone)]
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
        let unchecked = self.unchecked_values(row, features)?;
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

impl Shard {
    fn unchecked_values(&self, row: u64, features: &[&str]) -> Result<Vec<UncheckedValues>> {
        let mut unchecked = vec![];
        for feature in features {
            let ranges = self.value_ranges(row, feature)?.unwrap_or_default();
            if !ranges.is_empty() {
                unchecked.push(UncheckedValues { feature: (*feature).to_owned(), ranges });
            }
        }
        Ok(unchecked)
    }

    /// Returns the ranges of the shard with the bytes of a record that are not values of some bytes features: what
    /// [`Shard::record_of_parts`] needs. `None` if the index has no ranges of these values. The bytes between two values of a
    /// feature follow from the second one's length, and are left out.
    ///
    /// # Errors
    /// Those of [`Shard::frame`] and [`Shard::value_ranges`].
    pub fn ranges_around_values(&self, row: u64, features: &[&str]) -> Result<Option<Vec<Range<u64>>>> {
        let unchecked = self.unchecked_values(row, features)?;
        if self.check() != Check::Data || unchecked.is_empty() {
            return Ok(None);
        }
        let frame = self.frame(row)?;
        let (mut ranges, mut at) = (vec![], frame.start);
        for (value, repeated) in sorted(&unchecked) {
            let bytes = bytes_of(value);
            let start = frame.start + (frame::HEADER_BYTES + bytes.start) as u64;
            if start < at || start + bytes.len() as u64 > frame.end {
                return Ok(None);
            }
            if !repeated || start - at != separator(value).len() as u64 {
                ranges.push(at..start);
            }
            at = start + bytes.len() as u64;
        }
        ranges.push(at..frame.end);
        Ok(Some(ranges))
    }

    /// Makes a record of the parts of its frame that were read, as [`Shard::record_without_values`] does: `part` returns the
    /// bytes of a range of the shard, if they were. Needs the [`Shard::ranges_around_values`]. The values that were read are
    /// checked, and requested again if their CRC does not match; the others are zeros. `None` if the record must be read whole.
    ///
    /// # Errors
    /// Those of [`Shard::frame`], [`Shard::value_ranges`] and [`Shard::value_at`].
    pub fn record_of_parts<'b>(
        self: &Arc<Self>,
        row: u64,
        features: &[&str],
        part: impl Fn(&Range<u64>) -> Option<&'b [u8]>,
    ) -> Result<Option<Record>> {
        let Some(ranges) = self.ranges_around_values(row, features)? else { return Ok(None) };
        let (unchecked, frame) = (self.unchecked_values(row, features)?, self.frame(row)?);
        let mut bytes = vec![0; (frame.end - frame.start) as usize];
        let inside = |range: &Range<u64>| (range.start - frame.start) as usize..(range.end - frame.start) as usize;
        for range in &ranges {
            let Some(found) = part(range).filter(|found| found.len() as u64 == range.end - range.start) else {
                return Ok(None);
            };
            bytes[inside(range)].copy_from_slice(found);
        }
        let mut end = 0;
        for (value, repeated) in sorted(&unchecked) {
            let (value_bytes, before) = (bytes_of(value), separator(value));
            if repeated && value_bytes.start == end + before.len() {
                bytes[frame::HEADER_BYTES + end..frame::HEADER_BYTES + value_bytes.start].copy_from_slice(&before);
            }
            end = value_bytes.end;
        }
        let Some(length) = checked_length(&bytes, &unchecked) else { return Ok(None) };
        for value in unchecked.iter().flat_map(|values| &values.ranges) {
            let range = self.value_in_shard(row, *value)?;
            if let Some(found) = part(&range) {
                bytes[inside(&range)].copy_from_slice(&self.value_in(row, *value, found)?);
            }
        }
        let data = frame::HEADER_BYTES..frame::HEADER_BYTES + length;
        Ok(Some(Record::new(self.clone(), row, data, Some(bytes)).with_unchecked(unchecked)))
    }
}

/// Returns values in the order of their bytes, and whether each follows another one of its feature.
fn sorted(unchecked: &[UncheckedValues]) -> Vec<(&ValueRange, bool)> {
    let values = unchecked.iter().flat_map(|values| values.ranges.iter().zip([false].into_iter().chain(repeat(true))));
    let mut values: Vec<_> = values.collect();
    values.sort_by_key(|(value, _)| value.offset);
    values
}

/// Returns the bytes between a value and the one before it in a list of byte strings: the tag of field 1, and its length
/// (`BytesList { repeated bytes value = 1 }`).
fn separator(value: &ValueRange) -> Vec<u8> {
    let (mut bytes, mut length) = (vec![0x0a], value.length);
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes
}

/// Checks a frame by the bytes between values and the CRCs of the values. Returns the length of its data; `None` if
/// something is wrong.
fn checked_length(frame: &[u8], unchecked: &[UncheckedValues]) -> Option<usize> {
    let data = frame::data(frame, 0, Check::LengthOnly).ok()?;
    if data.len() + frame::OVERHEAD_BYTES != frame.len() {
        return None;
    }
    let (mut crc, mut at) = (crc32c(&[]), 0);
    for (value, _) in sorted(unchecked) {
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
    /// bytes in the record as it is stored.
    ///
    /// # Errors
    /// [`crate::Error::Record`] with `DataCrc` if the bytes have another CRC; [`crate::Error::IndexMismatch`] if the index has
    /// another range; [`crate::Error::Unreadable`].
    pub fn check_value(&self, feature: &str, number: u64, value: &[u8]) -> Result<()> {
        let Some(values) = self.unchecked().iter().find(|values| values.feature == feature) else { return Ok(()) };
        let (shard, row) = (self.shard(), self.row());
        let found = range_within(self.stored(), value).unwrap_or_default();
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
        if self.buffer_bytes() > 0 {
            return;
        }
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
