//! Arrays of each record, such as volumes.

use super::number;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Features with arrays of equal shape in each record, such as a volume and its label map. They get the same crop, flips and
/// rotations, and a batch has each as `[N, …]` of the stored type by the feature's name; rows without a sample are zeros, and NaN of a flow.
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
    /// rotated. Default: 0, and NaN for a flow.
    #[serde(default, deserialize_with = "number::list")]
    #[schemars(with = "Option<Vec<f64>>", extend("x-python" = "float | Mapping[str, float] | None"))]
    pub pad_value: Option<Vec<f64>>,
    /// The dimensions that are the height and the width of the record's image, the second one after the first: `(0, 1)` for `[H, W]`
    /// and `[H, W, C]`, `(1, 2)` for `[C, H, W]`. The arrays then follow the geometry of the image's steps by nearest neighbour, as
    /// masks do, and have no crop, flips or rotations of their own. An array that has another size than its image is a bad sample.
    /// Default: the geometry of the image leaves the arrays as they are; a warning says so if one has the size of its image.
    #[serde(default)]
    pub image_axes: Option<(usize, usize)>,
    /// What the elements are, if the geometry of the image changes them as well: `"flow"`, two values for each pixel,
    /// `"disparity"`, or surface `"normals"`, of which `"normals_y_up"` are those whose second axis points up. With `image_axes`. Default: elements are moved, and their values stay, as those of depths do.
    #[serde(default)]
    pub kind: Option<ArrayKind>,
}

/// What the elements of an array in an image are that change with its geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ArrayKind {
    /// Optical flow: how far each pixel moves to the right and down, in pixels of the stored image, `[H, W, 2]` or `[2, H, W]`. The
    /// vectors are scaled, mirrored and turned with the image: those of a batch are in pixels of its images.
    Flow,
    /// Disparities, `[H, W]`: how far a pixel of the other image of a pair lies from this one in its row. They are scaled with the
    /// image's width; where it is mirrored, their sign changes. Not with steps that turn or shear the image.
    Disparity,
    /// Surface normals, `[H, W, 3]` or `[3, H, W]`: unit vectors, as floats, or as integers of 8 or 16 bits of which 0 is -1 and the
    /// largest 1. The first two numbers are to the right and down, as the image's, or both the other way. They are turned and mirrored
    /// with the image; a vector keeps its length and its third number. What stretches or shears the image turns them as the nearest
    /// rotation does. A normal of three zeros is not known and stays.
    Normals,
    /// Surface normals whose first two numbers are to the right and up, or both the other way. Flips do the same to them as to
    /// [`Normals`](ArrayKind::Normals), turns the opposite.
    NormalsYUp,
}

fn yes() -> bool {
    true
}

impl Arrays {
    /// Returns a group of whole arrays.
    pub fn new(features: Vec<String>) -> Self {
        let (flip, rotate90) = (vec![], vec![]);
        Arrays { features, crop: None, random: true, flip, rotate90, pad_value: None, image_axes: None, kind: None }
    }
}
