//! Single values of a feature with several byte strings, read by their ranges in the index.

use crate::{Error, Result, Shard, Split};
use shardtool_format::checksum::{crc32c, mask};
use shardtool_format::example::Feature;
use shardtool_format::frame;
use shardtool_format::index::{VALUES_PREFIX, ValueRange};
use std::borrow::Cow;

impl Shard {
    /// Returns where the values of a bytes feature lie in a record, and their CRCs; `None` if the index has no value ranges
    /// of the feature. A record without the feature has none.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn value_ranges(&self, row: u64, feature: &str) -> Result<Option<Vec<ValueRange>>> {
        let column = self.variable(&format!("{VALUES_PREFIX}{feature}"))?;
        Ok(column.and_then(|column| column.get(row)).map(|ranges| ValueRange::decode(ranges).collect()))
    }

    /// Reads one value by its range, without the rest of its record, and checks the value's own CRC.
    ///
    /// # Errors
    /// Those of [`Shard::frame`]; [`Error::IndexMismatch`] if the range leaves the record; [`Error::Record`] with
    /// `DataCrc` if the bytes have another CRC; [`Error::Io`].
    pub fn value_at(&self, row: u64, range: ValueRange) -> Result<Cow<'_, [u8]>> {
        let record = self.frame(row)?;
        let data = record.start + frame::HEADER_BYTES as u64;
        let (start, length) = (data + u64::from(range.offset), u64::from(range.length));
        if start + length + frame::FOOTER_BYTES as u64 > record.end {
            let found =
                format!("{} bytes of data", (record.end - record.start).saturating_sub(frame::OVERHEAD_BYTES as u64));
            let expected = format!("bytes {} to {}", range.offset, u64::from(range.offset) + length);
            return Err(self.mismatch(row, "byte range of a value", expected, found));
        }
        let io = |source| Error::Io { action: "read", path: self.path().to_owned(), source };
        let bytes = self.bytes().range(start..start + length).map_err(io)?;
        let found = crc32c(&bytes);
        if found != range.crc {
            let (offset, expected, found) = (record.start, mask(range.crc), mask(found));
            return Err(self.damage(row, shardtool_format::Error::DataCrc { offset, expected, found }));
        }
        Ok(bytes)
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
            return chosen.map(|range| Ok(shard.value_at(row, *range)?.into_owned())).collect::<Result<_>>().map(Some);
        }
        let record = shard.record(row, vec![])?;
        let Some(Feature::Bytes(list)) = record.example()?.get(feature) else { return Ok(None) };
        let values: Vec<_> = list.iter().collect();
        Ok(choose(&values, which).map(|chosen| chosen.map(|value| value.to_vec()).collect()))
    }
}

/// Returns the items with the numbers `which`, or all; `None` if there is no item of one of these numbers.
fn choose<'a, T>(items: &'a [T], which: Option<&'a [usize]>) -> Option<impl Iterator<Item = &'a T>> {
    let all: Vec<usize> = which.map_or_else(|| (0..items.len()).collect(), <[usize]>::to_vec);
    all.iter().all(|at| *at < items.len()).then(|| all.into_iter().map(|at| &items[at]))
}
