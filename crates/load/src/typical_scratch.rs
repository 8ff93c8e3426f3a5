//! Estimates how much decode scratch the images of a dataset need, before the first image is decoded.

use crate::columns::ResolvedColumn;
use crate::groups::Images;
use crate::image::{PlannedClips, PlannedImage, SampleDraws};
use crate::objects::ObjectColumns;
use crate::options::Clip;
use crate::sampled_records::{SampledRecords, sizes};
use crate::splits::Splits;
use crate::views::Views;
use shardtool_read::{Record, Shard};
use std::borrow::Borrow;
use std::sync::Arc;

/// Number of images sampled per shard: the largest ones.
const SAMPLED_IMAGES: usize = 8;
/// Number of random crops per sampled image.
const SAMPLED_CROPS: u64 = 32;

/// Returns the bytes of scratch for the largest images in the first, middle and last shard of each split, or for the sampled
/// records of one in an object store: the maximum over some random crops, plus a quarter for images that were not sampled. Ignores
/// shards that cannot be opened. An image that needs more takes the memory of batches.
pub(crate) fn typical_scratch(
    splits: &Splits,
    images: Option<&Images>,
    views: &Views,
    (columns, objects): (&[ResolvedColumn], Option<&ObjectColumns>),
    stored: &SampledRecords,
) -> u64 {
    let Some(images) = images else { return 0 };
    // Boxes alone need none.
    let objects = objects.filter(|objects| objects.masks.is_some());
    let largest = splits.as_slice().iter().enumerate().filter_map(|(number, split)| {
        if split.is_in_store() {
            return largest_scratch(stored.of(number).iter(), images, views, (columns, objects));
        }
        let shards = split.entry().shards.len();
        let sampled = [0, shards / 2, shards.saturating_sub(1)].into_iter().filter(|shard| *shard < shards);
        sampled.filter_map(|shard| largest_in(&split.shard(shard).ok()?, images, views, (columns, objects))).max()
    });
    // If no index has sizes, assumes a photograph of two megapixels.
    let times = images.pixel_format().bytes().div_ceil(3) as u64;
    let photograph = |size| times * shardtool_decode::scratch_bound((1600, 1200), 1 << 20, size);
    let sizes = || views.lists().flatten().map(|view| view.pipeline.output_size());
    largest.max().or_else(|| sizes().map(photograph).max()).unwrap_or(0)
}

/// Returns the maximum of a shard's largest images.
fn largest_in(
    shard: &Arc<Shard>,
    images: &Images,
    views: &Views,
    (columns, objects): (&[ResolvedColumn], Option<&ObjectColumns>),
) -> Option<u64> {
    if let Some(clip) = &images.clip {
        let rows = (0..shard.records()).take(SAMPLED_IMAGES);
        let whole = |row| largest_scratch(shard.record(row, vec![]).ok().into_iter(), images, views, (columns, None));
        let scratch =
            rows.filter_map(|row| scratch_of_frames(shard, row, images, clip, columns).or_else(|| whole(row)));
        return scratch.max();
    }
    let mut sizes = sizes(shard)?;
    if sizes.len() > SAMPLED_IMAGES {
        sizes.select_nth_unstable_by(SAMPLED_IMAGES, |a, b| b.cmp(a));
    }
    let rows = sizes.into_iter().take(SAMPLED_IMAGES);
    let records = rows.filter_map(|(_, row)| shard.record(row, vec![]).ok());
    largest_scratch(records, images, views, (columns, objects))
}

/// Returns the scratch of clips whose frames are read by their ranges: for the first frame of a record, and for the bytes of as
/// many of the longest one as a row takes, plus a quarter. `None` if the whole record is read.
fn scratch_of_frames(
    shard: &Arc<Shard>,
    row: u64,
    images: &Images,
    clip: &Clip,
    columns: &[ResolvedColumn],
) -> Option<u64> {
    if !ResolvedColumn::all_in_index(columns, shard, row) {
        return None;
    }
    let ranges = shard.value_ranges(row, &clip.feature).ok()??;
    let longest = ranges.iter().map(|range| u64::from(range.length)).max()?;
    let first = shard.value_at(row, *ranges.first()?).ok()?;
    let crops = (0..SAMPLED_CROPS).filter_map(|crop| {
        let draws = SampleDraws { seed: 0, epoch: 0, source_position: crop };
        PlannedClips::new(vec![(0, &first)], images, clip, draws).ok().map(|planned| planned.scratch)
    });
    let most = crops.max()? + longest * clip.row_frames().min(ranges.len()) as u64;
    Some(most + most / 4)
}

/// Returns the maximum of records, including those that are read into memory.
fn largest_scratch<R: Borrow<Record>>(
    records: impl Iterator<Item = R>,
    images: &Images,
    views: &Views,
    (columns, objects): (&[ResolvedColumn], Option<&ObjectColumns>),
) -> Option<u64> {
    let scratch = records.flat_map(|record| {
        let cells = objects.and_then(|objects| {
            let cells = ResolvedColumn::cells(columns, record.borrow())?;
            objects.check(&cells).is_ok().then_some(cells)
        });
        (0..SAMPLED_CROPS).filter_map(move |crop| {
            let record = record.borrow();
            let objects = objects.zip(cells.as_deref());
            let draws = SampleDraws { seed: 0, epoch: 0, source_position: crop };
            let scratch = match &images.clip {
                Some(clip) => PlannedClips::of_record(record, images, clip, draws).ok()?.scratch,
                None => PlannedImage::of(record, images, |size| views.of_size(size), draws, objects).ok()?.scratch,
            };
            Some(scratch + record.buffer_bytes())
        })
    });
    scratch.max().map(|most| most + most / 4)
}
