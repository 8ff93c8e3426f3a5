//! Arrays of each record that differ in length, such as point clouds.

use super::number;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// Features with arrays whose first dimension differs between records, and is the same for all features of a record: the points of
/// a cloud with their colours and classes, or a sequence of embeddings. A batch has each as `[N, length, …]` of the stored type by
/// the feature's name, and `NAME/length`, of the first feature, as `[N]` of int64: how many elements of a row are the record's. The
/// others are padding; rows without a sample are zeros.
///
/// In this order: elements are selected, coordinates and directions are rotated, noise is added to the coordinates. The random numbers
/// of one group do not depend on those of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RaggedArrays {
    /// The features, at least one.
    #[schemars(extend("x-positional" = true, "x-python" = "str | Sequence[str]"))]
    pub features: Vec<String>,
    /// Elements of a row, at least 1.
    #[schemars(extend("x-positional" = true))]
    pub length: NonZeroU64,
    /// Which elements of a longer array a row has: `subset`, a random subset in the stored order; `window`, neighbours from a random
    /// element on; `first`, the first ones.
    #[serde(default)]
    pub select: Select,
    /// The axis about which the first three columns of the coordinates are rotated, by an angle that is drawn for each sample. Default:
    /// no rotation.
    #[serde(default)]
    pub rotate: Option<Axis>,
    /// The largest angle of the rotation, in degrees, to either side; above 0, at most 180.
    #[serde(default = "half_turn", deserialize_with = "number::one")]
    #[schemars(range(min = 0, max = 180))]
    pub degrees: f64,
    /// The standard deviation of the normal noise that is added to the first three columns of the coordinates, in their unit; at least 0.
    #[serde(default, deserialize_with = "number::one")]
    #[schemars(range(min = 0))]
    pub jitter: f64,
    /// The largest noise, to either side; above 0. Default: no limit.
    #[serde(default, deserialize_with = "number::some")]
    #[schemars(range(min = 0))]
    pub jitter_limit: Option<f64>,
    /// The feature whose first three columns are coordinates x, y and z, of float32 or float64. Default: the first feature.
    #[serde(default)]
    pub coordinates: Option<String>,
    /// Features whose first three columns are directions, such as normals: they are rotated with the coordinates.
    #[serde(default)]
    #[schemars(extend("x-python" = "str | Sequence[str]"))]
    pub directions: Vec<String>,
    /// The value of padding: one number for all features, or one for each. Default: 0.
    #[serde(default, deserialize_with = "number::list")]
    #[schemars(with = "Option<Vec<f64>>", extend("x-python" = "float | Mapping[str, float] | None"))]
    pub pad_value: Option<Vec<f64>>,
}

/// Which elements of an array a row has that has room for fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Select {
    /// A random subset, in the stored order.
    #[default]
    Subset,
    /// Neighbours, from a random element on.
    Window,
    /// The first ones.
    First,
}

/// An axis of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// The first column.
    X,
    /// The second column.
    Y,
    /// The third column.
    Z,
}

fn half_turn() -> f64 {
    180.0
}

impl RaggedArrays {
    /// Returns a group of arrays of which a row has up to `length` elements.
    pub fn new(features: Vec<String>, length: NonZeroU64) -> Self {
        RaggedArrays {
            features,
            length,
            select: Select::default(),
            rotate: None,
            degrees: half_turn(),
            jitter: 0.0,
            jitter_limit: None,
            coordinates: None,
            directions: vec![],
            pad_value: None,
        }
    }
}
