//! The configuration of arrays.

/// Features with arrays of equal shape in each record, such as a volume and its label map. They get the same crop, flips and
/// rotations, and are arrays of the batch by their features' names: `[N, …]` of the stored type.
///
/// In this order: the crop, a flip of each dimension, a rotation in each plane. The random numbers of one group do not depend
/// on those of another.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ArrayGroup {
    /// At least one.
    pub features: Vec<String>,
    /// The part of each array that a row holds; `None` if the arrays of all records have the same shape, which is that of
    /// the first record.
    pub crop: Option<ArrayCrop>,
    /// For each dimension, the probability that it is flipped, from 0 to 1. Empty for no flips.
    pub flip: Vec<f64>,
    /// Planes of two dimensions, of equal length in a row. In each, the array is rotated by 0 to 3 quarter turns, from the
    /// first dimension towards the second one, with equal probability.
    pub rotate: Vec<(usize, usize)>,
    /// For each feature, the value around an array that is smaller than the crop; the array is then in the middle. `None`
    /// makes such a record a bad sample. With `image_axes`, the value outside the image, where it is padded or rotated; `None` is 0.
    pub pad: Option<Vec<f64>>,
    /// The dimensions that are the height and the width of the record's image, the second one after the first: (0, 1) for `[H, W]`
    /// and `[H, W, C]`, (1, 2) for `[C, H, W]`. The arrays then follow the geometry of the image's steps by nearest neighbour, as
    /// label maps do, and have no crop, flips or rotations of their own. With one view only.
    pub image_axes: Option<(usize, usize)>,
}

impl ArrayGroup {
    /// Returns a group of whole arrays.
    pub fn new(features: Vec<String>) -> Self {
        ArrayGroup { features, crop: None, flip: vec![], rotate: vec![], pad: None, image_axes: None }
    }
}

/// The part of an array that a row of a batch holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayCrop {
    /// The length of each dimension, at least 1. `None` takes the whole dimension, whose length must be the same in all
    /// records.
    pub size: Vec<Option<u64>>,
    /// Whether the crop is at a random place, else in the middle.
    pub random: bool,
}

/// What is wrong with the configuration of arrays.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayProblem {
    /// A group without features.
    #[error("a group has no feature: name at least one")]
    NoFeature,
    /// A feature that is given twice.
    #[error("it is given twice: name each feature once")]
    Repeated,
    /// A list with another length than the array has dimensions.
    #[error("`{option}` has {found} entries, but the array has {dimensions} dimensions: give one for each")]
    Dimensions {
        /// The option.
        option: &'static str,
        /// Entries given.
        found: usize,
        /// Dimensions of the array.
        dimensions: usize,
    },
    /// A crop or an array without elements.
    #[error("dimension {dimension} of a row has length 0: expected at least 1")]
    Empty {
        /// The dimension, from 0.
        dimension: usize,
    },
    /// Something other than a probability.
    #[error("`flip` is {found} for dimension {dimension}: expected a probability from 0 to 1")]
    Probability {
        /// The dimension, from 0.
        dimension: usize,
        /// As given.
        found: f64,
    },
    /// A plane that is not of two dimensions of the array.
    #[error(
        "`rotate` in plane {plane:?} of an array of {dimensions} dimensions: expected two dimensions, counted from 0"
    )]
    Plane {
        /// As given.
        plane: (usize, usize),
        /// Dimensions of the array.
        dimensions: usize,
    },
    /// A rotation that would change the shape.
    #[error(
        "`rotate` in plane {plane:?} needs equal lengths, but a row has {lengths:?}: give a crop with equal lengths"
    )]
    Sides {
        /// As given.
        plane: (usize, usize),
        /// The lengths of both dimensions.
        lengths: (u64, u64),
    },
    /// Another number of pad values than features.
    #[error("`pad` has {found} values for {features} features: give one for each")]
    PadCount {
        /// Values given.
        found: usize,
        /// Features of the group.
        features: usize,
    },
    /// A pad value that the type of the array cannot hold.
    #[error("`pad` is {value}, which {dtype} cannot hold")]
    Pad {
        /// As given.
        value: f64,
        /// The type of the array.
        dtype: &'static str,
    },
    /// Image axes that are not two dimensions of the array, one after the other.
    #[error(
        "`image_axes` is {axes:?} for an array of {dimensions} dimensions: expected the height and the width, one after the other, \
         such as (0, 1) for [H, W] and [H, W, C], or (1, 2) for [C, H, W]"
    )]
    ImageAxes {
        /// As given.
        axes: (usize, usize),
        /// Dimensions of the array.
        dimensions: usize,
    },
    /// Image axes, and something that they do not go with.
    #[error("`image_axes`: {reason}")]
    InImage {
        /// What does not fit.
        reason: &'static str,
    },
    /// Padding without a crop.
    #[error("`pad` without a crop: give the size to pad to as a crop")]
    PadWithoutCrop,
    /// Rows or batches of more bytes than any machine has.
    #[error("a row of shape {shape:?} and {dtype} is too large for memory: use a smaller crop")]
    TooLarge {
        /// The shape of a row.
        shape: Vec<u64>,
        /// The type of the array.
        dtype: &'static str,
    },
}
