//! What is wrong with one sample that a program writes.

use shardtool_format::manifest::DType;

/// Why a sample cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleProblem {
    /// The image, or the record as a whole, cannot be packed.
    #[error(transparent)]
    Reason(#[from] crate::Reason),
    /// The writer has written that key already.
    #[error("its key was written before; keys are unique in a split")]
    DuplicateKey,
    /// The split is complete and does not contain the key.
    #[error("the split is complete without it; choose another --split, or replace it with --force")]
    Complete,
    /// A value of a feature that the writer does not have.
    #[error("`{feature}` is not among the writer's features; name it in `features` with its type")]
    UnknownFeature {
        /// The feature.
        feature: String,
    },
    /// A value that is not of its feature's type.
    #[error("`{feature}` is not {}, the feature's type", .expected.name())]
    Type {
        /// The feature.
        feature: String,
        /// Its type.
        expected: DType,
    },
    /// A value that is not an array, for a feature of arrays.
    #[error("`{feature}` is not an array, as the writer's features say")]
    NoArray {
        /// The feature.
        feature: String,
    },
    /// An array that cannot be stored.
    #[error("array `{feature}`")]
    Array {
        /// The feature.
        feature: String,
        /// Why not.
        source: crate::ArrayRefusal,
    },
    /// A feature that is given twice.
    #[error("`{feature}` is given twice")]
    Twice {
        /// The feature.
        feature: String,
    },
    /// A label although the writer has none, or none although it has them.
    #[error("{}", if *.given { "it has a label, but the writer has neither classes nor labels" } else { "it has no label" })]
    Label {
        /// Whether the sample has one.
        given: bool,
    },
    /// A label that is not a class.
    #[error("its label `{label}` is not among the {classes} classes; give all names in advance, in `classes`")]
    Class {
        /// The label.
        label: String,
        /// Number of classes.
        classes: usize,
    },
    /// An image although the writer has none, or none although it has them.
    #[error("{}", if *.given { "it has an image, but the writer was opened without images" } else { "it has no image" })]
    Image {
        /// Whether the sample has one.
        given: bool,
    },
}
