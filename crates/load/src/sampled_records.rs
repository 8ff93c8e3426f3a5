//! Records that are read before the first batch, to check columns and to estimate memory.

use crate::image::{pixels, size};
use crate::splits::Splits;
use shardtool_format::names;
use shardtool_read::{Record, Result, Shard, Split};
use std::ops::Range;
use std::sync::Arc;

/// Records of each split, at most.
pub(crate) const SAMPLED_RECORDS: u64 = 16;
/// Bytes of the request for those of a split in an object store, unless the first one is larger.
const REQUEST_BYTES: u64 = 8 << 20;

/// Records of each split in an object store, read with one request from its first shard: neighbours, among them the largest
/// image.
pub(crate) struct SampledRecords(Vec<Vec<Record>>);

impl SampledRecords {
    /// Reads the records; with `images`, those around the largest one. Ignores errors: those who need records report them.
    pub(crate) fn new(splits: &Splits, images: bool) -> Self {
        let read = |split: &Split| if split.is_in_store() { read(split, images).unwrap_or_default() } else { vec![] };
        SampledRecords(splits.as_slice().iter().map(read).collect())
    }

    /// Returns the records of the split with this number; none if it is not in an object store.
    pub(crate) fn of(&self, split: usize) -> &[Record] {
        &self.0[split]
    }
}

fn read(split: &Split, images: bool) -> Result<Vec<Record>> {
    let Some(first) = split.entry().shards.iter().position(|shard| shard.live_records() > 0) else { return Ok(vec![]) };
    let shard = split.shard(first)?;
    let live = |row: &u64| split.id_of(first, *row).is_ok_and(|id| id.is_some());
    let largest = match images {
        true => sizes(&shard).and_then(|sizes| sizes.into_iter().filter(|(_, row)| live(row)).max()),
        false => None,
    };
    let first_live = split.rows(first)?.next().map_or(0, |(_, row)| row);
    let around = largest.map_or(first_live, |(_, row)| row);
    let start = around.min(shard.records().saturating_sub(SAMPLED_RECORDS));
    let mut rows = vec![];
    for row in start..shard.records().min(start + SAMPLED_RECORDS) {
        if split.id_of(first, row)?.is_some() {
            rows.push(row);
        }
    }
    let frames = rows.into_iter().map(|row| Ok((row, shard.frame(row)?)));
    let mut frames = frames.collect::<Result<Vec<_>>>()?;
    // The largest one must be among them.
    let until = |frames: &[(u64, Range<u64>)]| frames.last().map_or(0, |(_, last)| last.end);
    let from = |frames: &[(u64, Range<u64>)]| frames.first().map_or(0, |(_, first)| first.start);
    while frames.len() > 1 && until(&frames).saturating_sub(from(&frames)) > REQUEST_BYTES {
        let _ = if frames[0].0 < around { Some(frames.remove(0)) } else { frames.pop() };
    }
    let (mut bytes, start) = (vec![], from(&frames));
    shard.bytes().read_into(start..until(&frames), &mut bytes)?;
    let frame = |range: Range<u64>| bytes[(range.start - start) as usize..(range.end - start) as usize].to_vec();
    let ordered =
        frames.into_iter().filter(|(_, range)| range.start >= start && range.end - start <= bytes.len() as u64);
    Ok(ordered.filter_map(|(row, range)| shard.record_in(row, frame(range)).ok()).collect())
}

/// Returns the pixels and the row of each image of a shard; `None` if its index has no sizes.
pub(crate) fn sizes(shard: &Arc<Shard>) -> Option<Vec<(u64, u64)>> {
    let widths = shard.feature::<i64>(names::IMAGE_WIDTH).ok()??;
    let heights = shard.feature::<i64>(names::IMAGE_HEIGHT).ok()??;
    let sizes = widths.iter().zip(heights.iter()).zip(0u64..);
    Some(sizes.filter_map(|((w, h), row)| Some((pixels(size(w?, h?)?), row))).collect())
}
