//! Counts images whose metadata has a position or a thumbnail, by the headers of the image files. Their pixels and CRCs are not read.

use crate::text;
use rayon::prelude::*;
use shardtool_decode::{EmbeddedMetadata, embedded_metadata};
use shardtool_format::{frame, index};
use shardtool_read::{Error, Split};

/// Images of a split, and how many have what identifies people and places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MetadataCounts {
    /// Records whose image was examined.
    pub(crate) images: u64,
    /// Images with a latitude or a longitude.
    pub(crate) positions: u64,
    /// Images with a smaller copy of themselves.
    pub(crate) thumbnails: u64,
}

impl MetadataCounts {
    fn add(self, other: MetadataCounts) -> MetadataCounts {
        MetadataCounts {
            images: self.images + other.images,
            positions: self.positions + other.positions,
            thumbnails: self.thumbnails + other.thumbnails,
        }
    }

    /// Describes the counts in a sentence, and what to do.
    pub(crate) fn words(counts: Option<MetadataCounts>) -> String {
        let Some(MetadataCounts { images, positions, thumbnails }) = counts else {
            return "Positions and thumbnails in image files were not counted: in a store, each image would take a request.".to_owned();
        };
        let found = format!(
            "{} of {} have a GPS position, and {} an embedded thumbnail",
            text::count(positions),
            text::plural(images, "image"),
            text::count(thumbnails)
        );
        match positions + thumbnails {
            0 => found + ".",
            _ => found + "; `pack --strip-metadata` and `compact --strip-metadata` remove them.",
        }
    }
}

/// Counts the images of a split that is on a disk; `None` of one in a store. Records that cannot be read are left out.
pub(crate) fn count(split: &Split) -> Option<MetadataCounts> {
    if split.is_in_store() {
        return None;
    }
    let of_shard = |shard: usize| {
        let rows = split.rows(shard).into_iter().flatten();
        let found = rows.filter_map(|(id, row)| found(split, shard, id, row).ok().flatten());
        found.fold(MetadataCounts::default(), |counts, EmbeddedMetadata { position, thumbnail, .. }| {
            counts.add(MetadataCounts { images: 1, positions: position.into(), thumbnails: thumbnail.into() })
        })
    };
    let shards = (0..split.entry().shards.len()).into_par_iter();
    Some(shards.map(of_shard).reduce(MetadataCounts::default, MetadataCounts::add))
}

/// Returns what the image of a record has; `None` if the record has no image file.
fn found(split: &Split, shard: usize, id: u64, row: u64) -> Result<Option<EmbeddedMetadata>, Error> {
    let shard = split.shard(shard)?;
    let (offsets, lengths) = (shard.column::<u32>(index::IMAGE_OFFSET)?, shard.column::<u32>(index::IMAGE_LENGTH)?);
    let range = offsets.and_then(|offsets| offsets.get(row)).zip(lengths.and_then(|lengths| lengths.get(row)));
    let (Some(mapped), Some((offset, length))) = (shard.bytes().mapped(), range) else {
        return Ok(split.get(id)?.image()?.map(embedded_metadata));
    };
    if offset == 0 {
        return Ok(None);
    }
    let start = shard.frame(row)?.start as usize + frame::HEADER_BYTES + offset as usize;
    let image = start.checked_add(length as usize).and_then(|end| mapped.get(start..end));
    Ok(image.map(embedded_metadata))
}
