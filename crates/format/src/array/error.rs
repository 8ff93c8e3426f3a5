//! What is wrong with an array.

use crate::Damage;

/// Why a record's array is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// An unknown type of elements.
    #[error("unknown array dtype `{found}`")]
    Dtype {
        /// The value of `NAME/dtype`.
        found: String,
    },
    /// An unknown codec.
    #[error("unknown array codec `{found}`; expected `raw` or `zstd`")]
    Codec {
        /// The value of `NAME/codec`.
        found: String,
    },
    /// Shape and chunk have different numbers of dimensions, or none.
    #[error("a shape of {shape} dimensions with chunks of {chunk}; expected the same number, at least 1")]
    Dimensions {
        /// Dimensions of the shape.
        shape: usize,
        /// Dimensions of the chunks.
        chunk: usize,
    },
    /// A dimension of negative length, or without chunks.
    #[error("dimension {dimension} has length {length} and chunks of {chunk}; expected at least 0 and 1")]
    Length {
        /// The dimension, from 0.
        dimension: usize,
        /// Its length.
        length: i64,
        /// Length of its chunks.
        chunk: i64,
    },
    /// The array or its chunks are larger than 2⁶³ bytes.
    #[error("an array or a chunk of more than 2^63 bytes")]
    TooLarge,
    /// Another number of chunks than the shape needs.
    #[error("an array of {expected} chunks has {found}")]
    Chunks {
        /// The number that the shape needs.
        expected: u64,
        /// The number in the record.
        found: u64,
    },
    /// A chunk of another length than its shape needs.
    #[error("chunk {number} of an array has {found} bytes of elements, expected {expected}")]
    ChunkBytes {
        /// The chunk, from 0.
        number: u64,
        /// The bytes that its shape needs.
        expected: u64,
        /// The bytes in the record, or the content size of its zstd frame.
        found: u64,
    },
}

impl ArrayError {
    /// Returns the kind of damage, as named in `format-spec.md`.
    pub fn damage(&self) -> Damage {
        match self {
            ArrayError::Chunks { .. } | ArrayError::ChunkBytes { .. } => Damage::PixelsLength,
            ArrayError::Dtype { .. }
            | ArrayError::Codec { .. }
            | ArrayError::Dimensions { .. }
            | ArrayError::Length { .. }
            | ArrayError::TooLarge => Damage::ImageDecode,
        }
    }
}
