//! Which bytes of its record a row needs.

use super::PlannedRow;
use crate::clip::distinct;
use crate::columns::ResolvedColumn;
use crate::image::SampleDraws;
use crate::resolved_config::ResolvedConfig;
use shardtool_read::Shard;
use std::ops::Range;
use std::sync::Arc;

/// Returns the ranges of the shard that a row needs of the record `at`: the frames of a clip, by increasing number, where the
/// index has their ranges and the columns; otherwise the whole record. `None` without a frame in the index.
pub(super) fn ranges(
    config: &ResolvedConfig,
    shard: &Arc<Shard>,
    at: u64,
    row: &PlannedRow,
) -> Option<Vec<Range<u64>>> {
    frames_of_clip(config, shard, at, row).or_else(|| Some(vec![shard.frame(at).ok()?]))
}

fn frames_of_clip(config: &ResolvedConfig, shard: &Arc<Shard>, at: u64, row: &PlannedRow) -> Option<Vec<Range<u64>>> {
    let (clip, sample) = config.clip().zip(row.sample)?;
    let stored = shard.value_ranges(at, &clip.feature).ok()??;
    if !ResolvedColumn::all_in_index(&config.columns, shard, at) {
        return None;
    }
    let draws = SampleDraws { seed: config.plan.seed(), epoch: row.key.epoch, source_position: sample.source_position };
    let numbers = distinct(clip.frame_numbers(stored.len(), draws));
    let ranges = numbers.into_iter().map(|number| shard.value_in_shard(at, stored[number]).ok());
    ranges.collect::<Option<Vec<_>>>().filter(|ranges| !ranges.is_empty())
}

/// Returns the bytes of ranges.
pub(super) fn length_of(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}
