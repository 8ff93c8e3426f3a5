//! What can be wrong with the configuration of arrays.

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
    /// A feature of an option that is not one of the group.
    #[error("`{option}` names it, but it is not one of the features of its group")]
    NotInGroup {
        /// The option.
        option: &'static str,
    },
    /// An option that changes nothing without another one.
    #[error("`{option}` without {needs}: leave it out, or give {needs} as well")]
    Unused {
        /// The option.
        option: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// A number that an option cannot have.
    #[error("`{name}` is {found}: expected {expected}")]
    Number {
        /// The option.
        name: &'static str,
        /// As given.
        found: f64,
        /// What it can have.
        expected: &'static str,
    },
    /// Ragged arrays without dimensions.
    #[error("it has no dimension: expected arrays with a length, such as [n, 3]")]
    NoLength,
    /// Coordinates or directions that are not points.
    #[error(
        "its elements are rotated or get noise, but it is of {dtype} with shape {shape:?}: expected [n, 3] or more columns of float32 or \
         float64"
    )]
    Coordinates {
        /// The shape of the first record's.
        shape: Vec<u64>,
        /// Its type.
        dtype: &'static str,
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
        "`rotate90` in plane {plane:?} of an array of {dimensions} dimensions: expected two dimensions, counted from 0"
    )]
    Plane {
        /// As given.
        plane: (usize, usize),
        /// Dimensions of the array.
        dimensions: usize,
    },
    /// A rotation that would change the shape.
    #[error(
        "`rotate90` in plane {plane:?} needs equal lengths, but a row has {lengths:?}: give a crop with equal lengths"
    )]
    Sides {
        /// As given.
        plane: (usize, usize),
        /// The lengths of both dimensions.
        lengths: (u64, u64),
    },
    /// Another number of pad values than features.
    #[error("`pad_value` has {found} values for {features} features: give one for each")]
    PadCount {
        /// Values given.
        found: usize,
        /// Features of the group.
        features: usize,
    },
    /// A pad value that the type of the array cannot hold.
    #[error("`pad_value` is {value}, which {dtype} cannot hold")]
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
    /// Elements of a kind in an array or an image that they do not fit.
    #[error("`kind`: expected {expected}; found {found}")]
    Kind {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// Padding without a crop.
    #[error("`pad_value` without a crop: give the size to pad to as a crop")]
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
