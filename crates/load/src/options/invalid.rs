//! Options that contradict each other.

use super::Part;
use shardtool_format::manifest::DType;

/// Options that contradict each other, whatever the dataset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOptions {
    /// Two parts of the configuration that do not go together: see [`EXCLUSIONS`](crate::EXCLUSIONS).
    #[error("{} does not go with {}: {reason}", part.name(), other.name())]
    Excluded {
        /// A part.
        part: Part,
        /// Another one.
        other: Part,
        /// Why not.
        reason: &'static str,
    },
    /// A part of the configuration that needs another one.
    #[error("{} goes through the steps of an image: add {} with steps", part.name(), needs.name())]
    Alone {
        /// The part.
        part: Part,
        /// What it needs.
        needs: Part,
    },
    /// A field that may occur once.
    #[error("the fields have {field} twice: give it once")]
    Twice {
        /// What occurs twice.
        field: String,
    },
    /// A column that draws one value of those that it delivers all.
    #[error(
        "column `{feature}` has `draw` and `multi_hot`: of class ids that are all delivered none is drawn; give one of the two"
    )]
    DrawnMultiHot {
        /// The feature.
        feature: String,
    },
    /// A value of `padded` that the type of its feature cannot hold.
    #[error("`padded` is {value} for `{feature}`, which {} cannot hold: give a number of this type", .dtype.name())]
    PaddedValue {
        /// The feature.
        feature: String,
        /// As given.
        value: f64,
        /// The type of the feature's values.
        dtype: DType,
    },
    /// A label outside the image that the type of a mask does not hold.
    #[error(
        "mask `{feature}`: `fill` is {fill}, which {dtype} does not hold; choose another label, or a larger `dtype`"
    )]
    MaskFill {
        /// The feature.
        feature: String,
        /// As given.
        fill: i32,
        /// The type.
        dtype: &'static str,
    },
    /// Options of pixels that contradict each other.
    #[error("{reason}")]
    Pixels {
        /// What does not fit.
        reason: String,
    },
    /// A mean or standard deviation out of range.
    #[error(transparent)]
    Output(#[from] shardtool_decode::OutputError),
}
