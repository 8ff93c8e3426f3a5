//! Batches of one shape each.

use super::number;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shardtool_decode::Pipeline;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// How samples are grouped into buckets. Every batch has rows of one bucket, which have one shape. Batches of all buckets are mixed,
/// and every rank makes the same number of steps.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Buckets {
    /// Images of similar aspect ratios share a batch.
    AspectRatio(AspectRatioBuckets),
    /// Samples of similar lengths share a batch.
    Length(LengthBuckets),
}

/// Images of similar aspect ratios share a batch: each image goes to the shape whose aspect ratio is nearest, as the sizes in the
/// index say; images without a size there go to the first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-written-by-hand" = true))]
#[non_exhaustive]
pub struct AspectRatioBuckets {
    /// Height and width of each shape in pixels, at least one shape.
    pub shapes: Vec<(NonZeroU32, NonZeroU32)>,
    /// The steps that give an image each shape, in place of those of the image.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub steps: Vec<Pipeline>,
    /// Pixels of a batch, at most: a batch has as many rows as fit, at least 1 and at most the batch size. Default: every batch has
    /// that many rows.
    #[serde(default)]
    pub max_pixels: Option<u64>,
}

/// Samples of similar lengths share a batch: each sample goes to the smallest bound that is at least its length, as a column of the
/// index says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LengthBuckets {
    /// The integer feature with the length of each sample.
    #[schemars(extend("x-positional" = true))]
    pub feature: String,
    /// The bounds, ascending.
    #[schemars(inner(range(min = 1)), extend("x-positional" = true))]
    pub bounds: Vec<u32>,
    /// Tokens of a batch, at most: a batch has as many rows as fit at its bound, at least 1 and at most the batch size. Default: every
    /// batch has that many rows.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// What happens to samples that are longer than the last bound: `"error"`, or `"cut"`: they belong to the last bucket.
    #[serde(default)]
    pub longer: Longer,
    /// Features of numbers that become `[N, bound]` arrays, and the number after the values of a row.
    #[serde(default, deserialize_with = "number::map")]
    pub padded: BTreeMap<String, f64>,
}

/// What happens to samples that are longer than the largest length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Longer {
    /// They are an error.
    #[default]
    Error,
    /// They are cut to the largest length.
    Cut,
}

impl AspectRatioBuckets {
    /// Returns buckets of these shapes (height, width), each with the steps that give an image that shape.
    pub fn new(shapes: impl IntoIterator<Item = ((NonZeroU32, NonZeroU32), Pipeline)>) -> Self {
        let (shapes, steps) = shapes.into_iter().unzip();
        AspectRatioBuckets { shapes, steps, max_pixels: None }
    }
}

impl LengthBuckets {
    /// Returns buckets of samples whose length is at most each of these bounds.
    pub fn new(feature: impl Into<String>, bounds: Vec<u32>) -> Self {
        let (feature, padded) = (feature.into(), BTreeMap::new());
        LengthBuckets { feature, bounds, max_tokens: None, longer: Longer::Error, padded }
    }
}

impl From<AspectRatioBuckets> for Buckets {
    fn from(buckets: AspectRatioBuckets) -> Self {
        Buckets::AspectRatio(buckets)
    }
}

impl From<LengthBuckets> for Buckets {
    fn from(buckets: LengthBuckets) -> Self {
        Buckets::Length(buckets)
    }
}
