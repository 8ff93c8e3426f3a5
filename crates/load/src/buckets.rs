//! Batches of one shape: which samples belong to which bucket, from the columns of the indexes.

use crate::config::{Config, Content, View};
use crate::error::{Error, Result};
use crate::image;
use crate::splits::Splits;
use shardtool_decode::Pipeline;
use shardtool_format::example::Logical;
use shardtool_format::manifest::DType;
use shardtool_format::names;
use shardtool_order::{AspectRatios, Bucket, BucketReplicas, Buckets, ImageShape, LengthBounds, Plan, Shape, Source};
use shardtool_read::Shard;
use std::num::NonZeroU32;
use std::sync::Arc;

/// How samples are grouped into buckets. Every batch has rows of one bucket, which have one shape.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Bucketing {
    /// What the rows of a bucket have in common.
    pub by: BucketBy,
    /// Pixels or tokens of a batch, at most: a bucket has as many rows as fit, at least 1 and at most
    /// [`Config::batch`]. `None`: every bucket has that many rows.
    pub budget: Option<u64>,
}

/// What the rows of a bucket have in common.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BucketBy {
    /// The shape with the nearest aspect ratio. Needs the sizes of images in the indexes; images without one belong to the
    /// first bucket.
    AspectRatio(Vec<ImageBucket>),
    /// The smallest bound that is at least their length.
    Length {
        /// An integer feature with the length of each sample.
        feature: String,
        /// The bounds.
        bounds: LengthBounds,
    },
}

/// Images of one shape.
#[derive(Clone, Debug)]
pub struct ImageBucket {
    /// Height and width of the results in pixels.
    pub shape: ImageShape,
    /// The steps that give an image this shape. They take the place of the views of [`Images`](crate::Images).
    pub pipeline: Pipeline,
}

impl Bucketing {
    /// Returns buckets whose batches have [`Config::batch`] rows each.
    pub fn new(by: BucketBy) -> Self {
        Bucketing { by, budget: None }
    }

    fn shapes(&self) -> Vec<Shape> {
        match &self.by {
            BucketBy::AspectRatio(buckets) => buckets.iter().map(|bucket| Shape::Image(bucket.shape)).collect(),
            BucketBy::Length { bounds, .. } => bounds.shapes().collect(),
        }
    }
}

/// The views of every bucket; without buckets there is one list.
pub(crate) struct Views {
    lists: Vec<Vec<View>>,
    /// Finds the list of an image; `None` if there is one.
    ratios: Option<AspectRatios>,
}

impl Views {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let Content::Images(images) = &config.content else { return Ok(Views { lists: vec![vec![]], ratios: None }) };
        let Some(Bucketing { by: BucketBy::AspectRatio(buckets), .. }) = &config.buckets else {
            return Ok(Views { lists: vec![images.views.clone()], ratios: None });
        };
        if images.views.len() > 1 {
            return Err(Error::Views { option: "buckets", views: images.views.len() });
        }
        for (number, ImageBucket { shape, pipeline }) in buckets.iter().enumerate() {
            let (expected, found) = ((shape.width.get(), shape.height.get()), pipeline.output_size());
            if found != expected {
                return Err(Error::BucketSize { number, expected, found });
            }
        }
        let ratios = AspectRatios::new(&buckets.iter().map(|bucket| bucket.shape).collect::<Vec<_>>())?;
        let view = |bucket: &ImageBucket| View { name: String::new(), pipeline: bucket.pipeline.clone() };
        Ok(Views { lists: buckets.iter().map(|bucket| vec![view(bucket)]).collect(), ratios: Some(ratios) })
    }

    /// Returns the views of a bucket.
    pub(crate) fn of(&self, bucket: usize) -> &[View] {
        // Buckets of lengths share one list.
        &self.lists[bucket.min(self.lists.len() - 1)]
    }

    /// Returns the views of an image of this width and height.
    pub(crate) fn of_size(&self, (width, height): (u32, u32)) -> &[View] {
        let sides = NonZeroU32::new(height).zip(NonZeroU32::new(width));
        let number = self.ratios.as_ref().zip(sides).map_or(0, |(ratios, (h, w))| ratios.nearest(h, w));
        self.of(number.into())
    }

    /// Returns the lists of views.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &[View]> {
        self.lists.iter().map(Vec::as_slice)
    }
}

/// Creates the plan of a loader with buckets.
pub(crate) fn plan(
    config: &Config,
    bucketing: &Bucketing,
    source: Source,
    splits: &Splits,
    replicas: BucketReplicas,
) -> Result<Plan> {
    let batch = NonZeroU32::new(config.batch).ok_or(Error::Zero { option: "batch" })?;
    let rows = |shape: Shape| bucketing.budget.map_or(batch, |budget| shape.batch_within(budget).min(batch));
    let buckets = bucketing.shapes().into_iter().map(|shape| Bucket { shape, batch: rows(shape) }).collect();
    let numbers = match &bucketing.by {
        BucketBy::AspectRatio(buckets) => of_source(&source, by_aspect_ratio(config, buckets, splits)?),
        // Only the samples of the source need fit a bound.
        BucketBy::Length { feature, bounds } => bounds.assign(of_source(&source, lengths(feature, splits)?))?,
    };
    let buckets = Buckets::new(buckets, numbers.iter().copied())?;
    Ok(Plan::bucketed(source, config.order, config.seed, replicas, Arc::new(buckets))?)
}

/// Returns the values of a source's samples, given those of all records; none of a source that buckets and packing refuse.
pub(crate) fn of_source<T: Copy + Default>(source: &Source, values: Vec<T>) -> Vec<T> {
    let value = |id: u64| usize::try_from(id).ok().and_then(|id| values.get(id)).copied().unwrap_or_default();
    match source {
        Source::All(_) => values,
        // The ids of a list depend on neither seed nor epoch.
        Source::List(_) => (0..source.len()).map(|v| value(source.id(0, 0, v))).collect(),
        Source::Balanced(_) | Source::Weighted(_) | Source::Mixture(_) => vec![],
    }
}

/// Returns the bucket of each image.
fn by_aspect_ratio(config: &Config, buckets: &[ImageBucket], splits: &Splits) -> Result<Vec<u16>> {
    let ratios = AspectRatios::new(&buckets.iter().map(|bucket| bucket.shape).collect::<Vec<_>>())?;
    let oriented = matches!(&config.content, Content::Images(images) if images.apply_orientation);
    let mut numbers = Vec::with_capacity(splits.len() as usize);
    for_each_shard(splits, |shard| {
        let column = |name| shard.feature::<i64>(name);
        let (widths, heights) = (column(names::IMAGE_WIDTH)?, column(names::IMAGE_HEIGHT)?);
        let Some((widths, heights)) = widths.zip(heights) else {
            return Err(Error::NoIndexColumn { path: shard.path().to_owned(), feature: names::IMAGE_WIDTH.to_owned() });
        };
        let orientations = if oriented { column(names::IMAGE_ORIENTATION)? } else { None };
        numbers.extend((0..shard.records()).map(|row| {
            let stored = widths.get(row).zip(heights.get(row)).and_then(|(w, h)| image::size(w, h));
            let turned = orientations.as_ref().and_then(|o| o.get(row)).is_some_and(|o| (5..=8).contains(&o));
            let size = stored.map(|(w, h)| if turned { (h, w) } else { (w, h) });
            let sides = size.and_then(|(w, h)| NonZeroU32::new(h).zip(NonZeroU32::new(w)));
            sides.map_or(0, |(height, width)| ratios.nearest(height, width))
        }));
        Ok(())
    })?;
    Ok(numbers)
}

/// Returns the length of each sample: 0 where the feature is missing or negative.
pub(crate) fn lengths(feature: &str, splits: &Splits) -> Result<Vec<u64>> {
    let mut lengths = Vec::with_capacity(splits.len() as usize);
    let unsigned = splits.as_slice().iter().any(|split| split.manifest().dtype(feature) == Some(DType::Uint64));
    for_each_shard(splits, |shard| {
        let missing = || Error::NoIndexColumn { path: shard.path().to_owned(), feature: feature.to_owned() };
        let rows = 0..shard.records();
        if unsigned && let Some(column) = shard.feature_bytes(feature)? {
            lengths.extend(rows.map(|row| column.get(row).and_then(u64::from_bytes).unwrap_or(0)));
            return Ok(());
        }
        let column = shard.feature::<i64>(feature)?.ok_or_else(missing)?;
        let length = |row| column.get(row).and_then(|length| u64::try_from(length).ok()).unwrap_or(0);
        lengths.extend(rows.map(length));
        Ok(())
    })?;
    Ok(lengths)
}

fn for_each_shard(splits: &Splits, mut f: impl FnMut(&Shard) -> Result<()>) -> Result<()> {
    for split in splits.as_slice() {
        for number in 0..split.entry().shards.len() {
            f(&*split.shard(number)?)?;
        }
    }
    Ok(())
}
