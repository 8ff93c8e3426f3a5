//! Estimates how much decode scratch the images of a dataset need, before the first image is decoded.

use crate::config::{Content, Images};
use crate::image::{PlannedImage, pixels, size};
use crate::splits::Splits;
use shardtool_format::names;
use shardtool_order::Rng;
use shardtool_read::{Record, Shard};
use std::sync::Arc;

/// Number of images sampled per shard: the largest ones.
const SAMPLED_IMAGES: usize = 8;
/// Number of random crops per sampled image.
const SAMPLED_CROPS: u64 = 32;

/// Returns the bytes of scratch for the largest images in the first, middle and last shard of each split: the maximum
/// over some random crops, plus a quarter. Ignores shards that cannot be opened. An image that needs more takes the
/// memory of batches.
pub(crate) fn typical_scratch(splits: &Splits, content: &Content) -> u64 {
    let Content::Images(images) = content else { return 0 };
    let largest = splits.as_slice().iter().flat_map(|split| {
        let shards = split.entry().shards.len();
        // In an object store, each costs requests.
        let last = shards.saturating_sub(1);
        let sampled = if split.is_in_store() { vec![0] } else { vec![0, shards / 2, last] };
        let sampled = sampled.into_iter().filter(move |shard| *shard < shards);
        sampled.filter_map(|shard| largest_scratch(&split.shard(shard).ok()?, images))
    });
    let (width, height) = images.pipeline.output_size();
    // If no index has sizes, assumes a photograph of two megapixels.
    let photograph = || shardtool_decode::scratch_bound((1600, 1200), 1 << 20, (width, height));
    largest.max().unwrap_or_else(photograph)
}

/// Returns the maximum of a shard, including records that are read into memory.
fn largest_scratch(shard: &Arc<Shard>, images: &Images) -> Option<u64> {
    let widths = shard.feature::<i64>(names::IMAGE_WIDTH).ok()??;
    let heights = shard.feature::<i64>(names::IMAGE_HEIGHT).ok()??;
    let sizes = widths.iter().zip(heights.iter()).zip(0u64..);
    let mut sizes: Vec<_> = sizes.filter_map(|((w, h), row)| Some((pixels(size(w?, h?)?), row))).collect();
    if sizes.len() > SAMPLED_IMAGES {
        sizes.select_nth_unstable_by(SAMPLED_IMAGES, |a, b| b.cmp(a));
    }
    let scratch = sizes.into_iter().take(SAMPLED_IMAGES).flat_map(|(_, row)| {
        let record = shard.record(row, vec![]).ok();
        let own = record.as_ref().map_or(0, Record::buffer_bytes);
        (0..SAMPLED_CROPS).filter_map(move |crop| {
            let planned = PlannedImage::of(record.as_ref()?, images, &Rng::augment(0, 0, crop)).ok()?;
            Some(planned.scratch + own)
        })
    });
    scratch.max().map(|most| most + most / 4)
}
