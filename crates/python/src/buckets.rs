//! Converts the arguments of buckets and packing.

use crate::error;
use pyo3::prelude::*;
use shardtool_decode::Pipeline;
use shardtool_load::{BucketBy, Bucketing, ImageBucket, SequencePacking};
use shardtool_order::{ImageShape, LengthBounds, Longer, Truncation};
use std::num::NonZeroU32;

/// Arguments of `shardtool.AspectRatioBuckets` or `shardtool.LengthBuckets`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct BucketOptions {
    /// Height and width of each bucket.
    shapes: Vec<(u32, u32)>,
    /// JSON of the list of steps of each bucket.
    steps: Vec<String>,
    /// The feature with the lengths, the bounds, and whether longer samples belong to the last one; `None` for shapes.
    lengths: Option<(String, Vec<u32>, bool)>,
    /// Pixels or tokens of a batch, at most.
    budget: Option<u64>,
    /// Columns that become `[N, bound]`, and what is after the values of a row.
    pub(crate) padded: Vec<(String, f64)>,
}

impl BucketOptions {
    pub(crate) fn resolve(self, py: Python<'_>) -> PyResult<Bucketing> {
        let by = match self.lengths {
            None => {
                let buckets = self.shapes.iter().zip(&self.steps).map(|(shape, steps)| bucket(py, *shape, steps));
                BucketBy::AspectRatio(buckets.collect::<PyResult<_>>()?)
            }
            Some((feature, bounds, cut)) => {
                let longer = if cut { Longer::Last } else { Longer::Refuse };
                let bounds = LengthBounds::new(&bounds, longer).map_err(|e| error::order(py, e))?;
                BucketBy::Length { feature, bounds }
            }
        };
        let mut bucketing = Bucketing::new(by);
        bucketing.budget = self.budget;
        Ok(bucketing)
    }
}

/// Arguments of `shardtool.SequencePacking`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PackingOptions {
    /// The feature with the lengths.
    feature: String,
    capacity: u32,
    window: u32,
    /// Whether longer samples are truncated.
    cut: bool,
    /// Columns that become `[N, capacity]`, and what is after the values of a row.
    pub(crate) padded: Vec<(String, f64)>,
}

impl PackingOptions {
    pub(crate) fn resolve(self, py: Python<'_>) -> PyResult<SequencePacking> {
        let mut packing = SequencePacking::new(self.feature, at_least_one(py, "capacity", self.capacity)?);
        packing.window = at_least_one(py, "window", self.window)?;
        packing.truncation = if self.cut { Truncation::Truncate } else { Truncation::Refuse };
        Ok(packing)
    }
}

fn bucket(py: Python<'_>, (height, width): (u32, u32), steps: &str) -> PyResult<ImageBucket> {
    let pipeline: Pipeline = serde_json::from_str(steps).map_err(|e| error::transform(py, &e))?;
    let shape = ImageShape { height: at_least_one(py, "buckets", height)?, width: at_least_one(py, "buckets", width)? };
    Ok(ImageBucket { shape, pipeline })
}

/// Returns height and width of the shapes of at most `cells` squares of `step` pixels.
#[pyfunction]
pub(crate) fn shapes_within(py: Python<'_>, step: u32, cells: u32, ratio: u32) -> PyResult<Vec<(u32, u32)>> {
    let [step, cells, ratio] = [step, cells, ratio].map(|n| at_least_one(py, "buckets", n));
    let shapes = shardtool_order::shapes_within(step?, cells?, ratio?).map_err(|e| error::order(py, e))?;
    Ok(shapes.iter().map(|shape| (shape.height.get(), shape.width.get())).collect())
}

fn at_least_one(py: Python<'_>, option: &'static str, n: u32) -> PyResult<NonZeroU32> {
    NonZeroU32::new(n).ok_or_else(|| error::load(py, shardtool_load::Error::Zero { option }))
}
