//! Crops of arrays in object stores: the bytes around the chunks of the next records are requested first, since they say which
//! chunks the crops meet.

use super::open_shards::OpenShards;
use super::{Arrived, PlannedRow, RowKey};
use crate::arrays::PlannedArrays;
use crate::image::SampleDraws;
use crate::resolved_config::ResolvedConfig;
use shardtool_read::Shard;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Rows whose crops are found together, at most.
pub(super) const MOST_ROWS: u64 = 64;

/// Bytes around the chunks of a record, at most. Of a record with more, such as one with an image as well, all is requested.
const MOST_AROUND: u64 = 64 << 10;

/// What a row needs of its record.
pub(super) struct Crop {
    /// The bytes around the chunks.
    pub(super) around: Vec<Arrived>,
    /// The ranges of the chunks that it meets.
    pub(super) chunks: Vec<Range<u64>>,
}

/// Finds the crops of rows, with requests for the bytes around their chunks. Leaves out rows that need the whole record.
pub(super) fn find(config: &ResolvedConfig, rows: &[PlannedRow], shards: &OpenShards) -> HashMap<RowKey, Crop> {
    let features = config.arrays.features();
    let located = |row: &PlannedRow| {
        let shard = shards.get(&config.splits.shard_of(row.id()?).ok()?)?.clone();
        Some((shard, config.splits.locate(row.id()?).ok()?.row))
    };
    let (sender, receiver) = channel();
    let mut asked = vec![];
    for row in rows {
        let Some((shard, at)) = located(row) else { continue };
        let Ok(Some(ranges)) = shard.ranges_around_values(at, &features) else { continue };
        let Some(object) = shard.bytes().object() else { continue };
        if super::wanted::length_of(&ranges) > MOST_AROUND {
            continue;
        }
        for (number, range) in ranges.iter().enumerate() {
            let (sender, key) = (sender.clone(), (asked.len(), number));
            object.read_then(range.clone(), move |result| drop(sender.send((key, result.ok()))));
        }
        asked.push((row, shard.clone(), at, ranges.into_iter().map(|range| (range, None)).collect::<Vec<_>>()));
    }
    drop(sender);
    for ((row, number), bytes) in receiver {
        asked[row].3[number].1 = bytes;
    }
    let found = asked.into_iter().filter_map(|(row, shard, at, around)| {
        let around: Option<Vec<_>> = around.into_iter().map(|(range, bytes)| Some((range, bytes?))).collect();
        let around = around?;
        let chunks = chunks(config, row, (&shard, at), &around, &features)?;
        Some((row.key, Crop { around, chunks }))
    });
    found.collect()
}

/// Returns the ranges of the chunks that a row needs; `None` if its worker must read the record and report why.
fn chunks(
    config: &ResolvedConfig,
    row: &PlannedRow,
    (shard, at): (&Arc<Shard>, u64),
    around: &[Arrived],
    features: &[&str],
) -> Option<Vec<Range<u64>>> {
    let part = |range: &Range<u64>| around.iter().find(|(other, _)| other == range).map(|(_, bytes)| &**bytes);
    let record = shard.record_of_parts(at, features, part).ok()??;
    let (epoch, source_position) = (row.key.epoch, row.sample?.source_position);
    let draws = SampleDraws { seed: config.plan.seed(), epoch, source_position };
    let example = record.example().ok()?;
    let planned = PlannedArrays::of(&example, &config.arrays, draws).ok()?;
    let mut ranges = vec![];
    for (feature, numbers) in planned.chunks() {
        let values = shard.value_ranges(at, feature).ok()??;
        for number in numbers {
            ranges.push(shard.value_in_shard(at, *values.get(number as usize)?).ok()?);
        }
    }
    Some(ranges)
}
