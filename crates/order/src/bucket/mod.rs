//! Buckets: batches of one shape each, from samples of many shapes.

mod aspect;
mod budget;
mod cursor;
mod length;
mod members;

use std::num::NonZeroU32;

pub use aspect::AspectRatios;
pub use budget::shapes_within;
pub(crate) use cursor::BucketCursor;
pub use length::{LengthBounds, Longer};
pub use members::Buckets;
pub(crate) use members::MAX_MEMBERS;

/// The largest number of buckets, Y.
const MAX_BUCKETS: usize = 1 << 16;

/// The sides of an image in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageShape {
    /// Height in pixels.
    pub height: NonZeroU32,
    /// Width in pixels.
    pub width: NonZeroU32,
}

/// What the samples of a batch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Images are resized to this height and width.
    Image(ImageShape),
    /// Samples have at most this many tokens.
    Length(NonZeroU32),
}

impl Shape {
    /// Returns the pixels or tokens of one row.
    pub fn size(self) -> u64 {
        match self {
            Shape::Image(ImageShape { height, width }) => u64::from(height.get()) * u64::from(width.get()),
            Shape::Length(tokens) => tokens.get().into(),
        }
    }

    /// Returns the number of rows of this shape in a batch of at most `budget` pixels or tokens: at least 1, at most
    /// 2³² − 1.
    pub fn batch_within(self, budget: u64) -> NonZeroU32 {
        let rows = u32::try_from(budget / self.size()).unwrap_or(u32::MAX);
        NonZeroU32::new(rows).unwrap_or(NonZeroU32::MIN)
    }
}

/// A bucket: samples whose batches have one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The shape of a row.
    pub shape: Shape,
    /// Rows of a batch.
    pub batch: NonZeroU32,
}
