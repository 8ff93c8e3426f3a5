//! Batches of one shape: which samples belong to which bucket, from the columns of the indexes.

use crate::error::{Error, Result};
use crate::image;
use crate::lengths::{for_each_shard, lengths, of_source};
use crate::options::{Buckets, Config, Field, Longer};
use crate::splits::Splits;
use crate::views::shapes;
use shardtool_format::names;
use shardtool_order::{AspectRatios, Bucket, BucketReplicas, ImageShape, LengthBounds, Plan, Shape, Source};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Creates the plan of a loader with buckets.
pub(crate) fn plan(
    config: &Config,
    given: &Buckets,
    source: Source,
    splits: &Splits,
    replicas: BucketReplicas,
) -> Result<Plan> {
    let batch = NonZeroU32::new(config.batch_size).ok_or(Error::Zero { option: "batch_size" })?;
    let (shapes, most, numbers): (Vec<Shape>, _, _) = match given {
        Buckets::AspectRatio(given) => {
            let shapes = shapes(given)?;
            let numbers = of_source(&source, by_aspect_ratio(config, &shapes, splits)?);
            (shapes.into_iter().map(Shape::Image).collect(), given.max_pixels, numbers)
        }
        // Only the samples of the source need fit a bound.
        Buckets::Length(given) => {
            let longer = match given.longer {
                Longer::Error => shardtool_order::Longer::Refuse,
                Longer::Cut => shardtool_order::Longer::Last,
            };
            let bounds = LengthBounds::new(&given.bounds, longer)?;
            let numbers = bounds.assign(of_source(&source, lengths(&given.feature, splits)?))?;
            (bounds.shapes().collect(), given.max_tokens, numbers)
        }
    };
    let rows = |shape: Shape| most.map_or(batch, |most| shape.batch_within(most).min(batch));
    let buckets = shapes.into_iter().map(|shape| Bucket { shape, batch: rows(shape) }).collect();
    let buckets = shardtool_order::Buckets::new(buckets, numbers.iter().copied())?;
    Ok(Plan::bucketed(source, config.order, config.seed, replicas, Arc::new(buckets))?)
}

/// Returns the bucket of each image.
fn by_aspect_ratio(config: &Config, shapes: &[ImageShape], splits: &Splits) -> Result<Vec<u16>> {
    let ratios = AspectRatios::new(shapes)?;
    let oriented = |field: &Field| matches!(field, Field::Image(image) if image.pixels.apply_orientation);
    let oriented = config.fields.iter().any(oriented);
    let mut numbers = Vec::with_capacity(splits.len() as usize);
    for_each_shard(splits, |shard, rows| {
        let column = |name| shard.feature::<i64>(name);
        let (widths, heights) = (column(names::IMAGE_WIDTH)?, column(names::IMAGE_HEIGHT)?);
        let Some((widths, heights)) = widths.zip(heights) else {
            return Err(Error::NoIndexColumn { path: shard.path().to_owned(), feature: names::IMAGE_WIDTH.to_owned() });
        };
        let orientations = if oriented { column(names::IMAGE_ORIENTATION)? } else { None };
        numbers.extend(rows.map(|(_, row)| {
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
