//! Numbers of logical types, each stored as a byte string of eight bytes, little-endian.

use super::BytesList;
use crate::manifest::DType;

/// Bytes of a number.
pub const LOGICAL_BYTES: usize = 8;

/// A number of a logical type.
pub trait Logical: Copy {
    /// The type.
    const DTYPE: DType;

    /// Returns the number that eight bytes hold.
    fn from_stored(bytes: [u8; LOGICAL_BYTES]) -> Self;

    /// Returns the bytes that hold the number.
    fn to_stored(self) -> [u8; LOGICAL_BYTES];

    /// Returns the number that a byte string holds; `None` if it has another length than eight.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_stored)
    }
}

impl Logical for f64 {
    const DTYPE: DType = DType::Float64;

    fn from_stored(bytes: [u8; LOGICAL_BYTES]) -> Self {
        f64::from_le_bytes(bytes)
    }

    fn to_stored(self) -> [u8; LOGICAL_BYTES] {
        self.to_le_bytes()
    }
}

impl Logical for u64 {
    const DTYPE: DType = DType::Uint64;

    fn from_stored(bytes: [u8; LOGICAL_BYTES]) -> Self {
        u64::from_le_bytes(bytes)
    }

    fn to_stored(self) -> [u8; LOGICAL_BYTES] {
        self.to_le_bytes()
    }
}

impl BytesList<'_> {
    /// Returns the numbers that the byte strings hold; `None` if one has another length than eight.
    pub fn numbers<T: Logical>(&self) -> Option<Vec<T>> {
        self.iter().map(T::from_bytes).collect()
    }
}
