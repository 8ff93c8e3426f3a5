//! What of a loader's configuration cannot be combined: the one table of it, with reasons.

use super::{BatchTransform, Buckets, Config, Field, InvalidOptions};
use shardtool_order::{Order, Policy};

/// A part of a configuration that does not go with every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Stored records.
    Record,
    /// Images with steps.
    Image,
    /// An image with several lists of steps.
    SeveralViews,
    /// A further image.
    FurtherImage,
    /// A label map.
    Mask,
    /// Which pixels show the image.
    PixelMask,
    /// Boxes and points.
    Objects,
    /// Frames of a video.
    Clip,
    /// Arrays with a geometry of their own, or none.
    Arrays,
    /// Arrays that follow the geometry of the image.
    ArraysInImage,
    /// Arrays that differ in length.
    RaggedArrays,
    /// Packed rows.
    Tokens,
    /// Mixing of any kind.
    BatchTransform,
    /// Mixing whose images are on top of each other.
    MixUp,
    /// Mixing whose images are on top of each other, or replace rectangles of each other.
    MixUpOrCutMix,
    /// Buckets of shapes.
    AspectRatioBuckets,
    /// Buckets of lengths.
    LengthBuckets,
    /// Replicas that read their own shards.
    ShardPolicy,
    /// The interleaved order.
    Interleaved,
}

/// Parts that cannot be combined: the first with each of the second, for this reason.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Exclusion {
    /// A part.
    pub part: Part,
    /// What it does not go with.
    pub others: &'static [Part],
    /// Why, as part of a sentence.
    pub reason: &'static str,
}

/// Every exclusion.
pub const EXCLUSIONS: [Exclusion; 10] = {
    use Part::*;
    const fn row(part: Part, others: &'static [Part], reason: &'static str) -> Exclusion {
        Exclusion { part, others, reason }
    }
    [
        row(
            Clip,
            &[Image, Record, Mask, PixelMask, Objects, FurtherImage],
            "the frames of a clip take the place of the image that these belong to",
        ),
        row(
            Clip,
            &[Arrays, ArraysInImage, RaggedArrays, BatchTransform, AspectRatioBuckets],
            "a row has several frames, but arrays, mixing and buckets are defined for one image",
        ),
        row(
            SeveralViews,
            &[Mask, PixelMask, Objects, ArraysInImage],
            "each view has its own geometry, and a batch has one mask, one list of boxes, one array for each row",
        ),
        row(
            SeveralViews,
            &[BatchTransform, AspectRatioBuckets],
            "a batch has one label and one bucket for each row, which are not those of every view",
        ),
        row(
            MixUp,
            &[Mask, PixelMask, FurtherImage, ArraysInImage],
            "the mean of two labels, masks or depths is a third one, of neither image; `CutMix`, `Mosaic` and `CopyPaste` move them",
        ),
        row(
            MixUpOrCutMix,
            &[Objects],
            "boxes of two images that share their pixels are not defined; `Mosaic` and `CopyPaste` change boxes too",
        ),
        row(
            Tokens,
            &[Image, Record, Clip, Arrays, RaggedArrays, AspectRatioBuckets, LengthBuckets],
            "a row has the tokens of several samples: only columns are packed",
        ),
        row(AspectRatioBuckets, &[ArraysInImage], "rows of an array have one shape, but the buckets have several"),
        row(
            ShardPolicy,
            &[AspectRatioBuckets, LengthBuckets, Tokens],
            "which samples share a batch or a row depends on all samples, not on those of one replica's shards",
        ),
        row(
            Interleaved,
            &[AspectRatioBuckets, LengthBuckets],
            "samples of one bucket are far apart, so that no long runs are left to read",
        ),
    ]
};

impl Part {
    /// Every part.
    pub const ALL: [Part; 19] = [
        Part::Record,
        Part::Image,
        Part::SeveralViews,
        Part::FurtherImage,
        Part::Mask,
        Part::PixelMask,
        Part::Objects,
        Part::Clip,
        Part::Arrays,
        Part::ArraysInImage,
        Part::RaggedArrays,
        Part::Tokens,
        Part::BatchTransform,
        Part::MixUp,
        Part::MixUpOrCutMix,
        Part::AspectRatioBuckets,
        Part::LengthBuckets,
        Part::ShardPolicy,
        Part::Interleaved,
    ];

    /// Returns what the part is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Part::Record => "a stored record",
            Part::Image => "`Image`",
            Part::SeveralViews => "an image of several views",
            Part::FurtherImage => "`FurtherImage`",
            Part::Mask => "`Mask`",
            Part::PixelMask => "`PixelMask`",
            Part::Objects => "`Objects`",
            Part::Clip => "`Clip`",
            Part::Arrays => "`Arrays`",
            Part::ArraysInImage => "`Arrays` with `image_axes`",
            Part::RaggedArrays => "`RaggedArrays`",
            Part::Tokens => "`Tokens`",
            Part::BatchTransform => "a batch transform",
            Part::MixUp => "`MixUp`",
            Part::MixUpOrCutMix => "`MixUp` or `CutMix`",
            Part::AspectRatioBuckets => "`AspectRatioBuckets`",
            Part::LengthBuckets => "`LengthBuckets`",
            Part::ShardPolicy => "the policy `shard`",
            Part::Interleaved => "the interleaved order",
        }
    }

    /// Returns what it cannot be without: one of these parts.
    pub fn needs(self) -> &'static [Part] {
        match self {
            Part::FurtherImage
            | Part::Mask
            | Part::PixelMask
            | Part::Objects
            | Part::ArraysInImage
            | Part::AspectRatioBuckets => &[Part::Image],
            // With its own exclusion of clips.
            Part::BatchTransform => &[Part::Image, Part::Clip],
            _ => &[],
        }
    }

    /// Returns the parts that a configuration has.
    pub fn of(config: &Config) -> Vec<Part> {
        let mut parts = vec![];
        for field in &config.fields {
            match field {
                Field::Record => parts.push(Part::Record),
                Field::Image(image) => {
                    parts.push(Part::Image);
                    parts.extend((image.views.len() > 1).then_some(Part::SeveralViews));
                }
                Field::FurtherImage(_) => parts.push(Part::FurtherImage),
                Field::Mask(_) => parts.push(Part::Mask),
                Field::PixelMask(_) => parts.push(Part::PixelMask),
                Field::Objects(_) => parts.push(Part::Objects),
                Field::Clip(_) => parts.push(Part::Clip),
                Field::Arrays(arrays) => {
                    parts.push(if arrays.image_axes.is_some() { Part::ArraysInImage } else { Part::Arrays });
                }
                Field::RaggedArrays(_) => parts.push(Part::RaggedArrays),
                Field::Column(_) => {}
                Field::Tokens(_) => parts.push(Part::Tokens),
            }
        }
        for transform in &config.batch_transform {
            parts.push(Part::BatchTransform);
            parts.extend(matches!(transform, BatchTransform::MixUp(_)).then_some(Part::MixUp));
            parts.extend((!transform.changes_objects()).then_some(Part::MixUpOrCutMix));
        }
        parts.extend(config.buckets.as_ref().map(|buckets| match buckets {
            Buckets::AspectRatio(_) => Part::AspectRatioBuckets,
            Buckets::Length(_) => Part::LengthBuckets,
        }));
        parts.extend((config.policy == Policy::Shard).then_some(Part::ShardPolicy));
        parts.extend(matches!(config.order, Order::Interleaved { .. }).then_some(Part::Interleaved));
        parts
    }
}

/// Checks that the parts of a configuration go together.
///
/// # Errors
/// [`InvalidOptions::Excluded`] with the first two that do not; [`InvalidOptions::Alone`] with a part that another one is missing for.
pub(crate) fn check(config: &Config) -> Result<(), InvalidOptions> {
    let parts = Part::of(config);
    for Exclusion { part, others, reason } in EXCLUSIONS.iter().filter(|row| parts.contains(&row.part)) {
        if let Some(other) = others.iter().find(|other| parts.contains(other)) {
            return Err(InvalidOptions::Excluded { part: *part, other: *other, reason });
        }
    }
    let alone = |part: &&Part| !part.needs().is_empty() && !part.needs().iter().any(|needed| parts.contains(needed));
    match parts.iter().find(alone) {
        Some(part) => Err(InvalidOptions::Alone { part: *part, needs: part.needs()[0] }),
        None => Ok(()),
    }
}
