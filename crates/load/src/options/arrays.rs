//! Arrays of each record, such as volumes.

use super::number;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Features with arrays of equal shape in each record, such as a volume and its label map. They get the same crop, flips and
/// rotations, and a batch has each as `[N, …]` of the stored type by the feature's name; rows without a sample are zeros.
///
/// In this order: the crop, a flip of each dimension, a rotation in each plane. The random numbers of one group do not depend
/// on those of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Arrays {
    /// The features, at least one.
    #[schemars(extend("x-positional" = true, "x-python" = "str | Sequence[str]"))]
    pub features: Vec<String>,
    /// The length of a row in each dimension, at least 1; `None` is the whole dimension, whose length must be the same in all
    /// records. Default: whole arrays, all of the shape that the first record's has.
    #[serde(default)]
    #[schemars(inner(range(min = 1)), extend("x-positional" = true))]
    pub crop: Option<Vec<Option<u64>>>,
    /// Whether the crop is at a random place, else in the middle.
    #[serde(default = "yes")]
    pub random: bool,
    /// For each dimension, the probability that it is flipped, from 0 to 1. Empty for no flips.
    #[serde(default)]
    pub flip: Vec<f64>,
    /// Planes of two dimensions, of equal length in a row. In each, the array is rotated by 0 to 3 quarter turns, from the
    /// first dimension towards the second one, with equal probability, as by `numpy.rot90`.
    #[serde(default)]
    #[schemars(extend("x-python" = "tuple[int, int] | Sequence[tuple[int, int]]"))]
    pub rotate90: Vec<(usize, usize)>,
    /// The value around an array that is smaller than the crop; the array is then in the middle. One number for all features, or one
    /// for each. Default: such a record is a bad sample. With `image_axes`, the value outside the image, where it is padded or
    /// rotated. Default: 0.
    #[serde(default, deserialize_with = "number::list")]
    #[schemars(with = "Option<Vec<f64>>", extend("x-python" = "float | Mapping[str, float] | None"))]
    pub pad_value: Option<Vec<f64>>,
    /// The dimensions that are the height and the width of the record's image, the second one after the first: `(0, 1)` for `[H, W]`
    /// and `[H, W, C]`, `(1, 2)` for `[C, H, W]`. The arrays then follow the geometry of the image's steps by nearest neighbour, as
    /// masks do, and have no crop, flips or rotations of their own. An array that has another size than its image is a bad sample.
    /// Default: the geometry of the image leaves the arrays as they are; a warning says so if one has the size of its image.
    #[serde(default)]
    pub image_axes: Option<(usize, usize)>,
}

fn yes() -> bool {
    true
}

impl Arrays {
    /// Returns a group of whole arrays.
    pub fn new(features: Vec<String>) -> Self {
        let (flip, rotate90) = (vec![], vec![]);
        Arrays { features, crop: None, random: true, flip, rotate90, pad_value: None, image_axes: None }
    }
}
