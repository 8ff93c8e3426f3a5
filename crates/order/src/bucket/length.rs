//! Length → the bucket of lengths.

use std::num::NonZeroU32;

use super::{MAX_BUCKETS, Shape};
use crate::Error;

/// What happens to samples that are longer than the last bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Longer {
    /// They are an error.
    #[default]
    Refuse,
    /// They belong to the last bucket.
    Last,
}

/// Ascending bounds of lengths: a sample belongs to the first bucket whose bound is at least its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthBounds {
    bounds: Box<[NonZeroU32]>,
    longer: Longer,
}

impl LengthBounds {
    /// Makes buckets with these bounds in tokens.
    ///
    /// # Errors
    /// [`Error::BucketBounds`] unless the bounds are strictly ascending from 1 or more; [`Error::BucketCount`] for more than
    /// 2¹⁶ of them.
    pub fn new(bounds: &[u32], longer: Longer) -> Result<Self, Error> {
        if bounds.len() > MAX_BUCKETS {
            return Err(Error::BucketCount { count: bounds.len() });
        }
        let ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        let positive: Option<Box<[NonZeroU32]>> = bounds.iter().map(|&bound| NonZeroU32::new(bound)).collect();
        match positive.filter(|bounds| ascending && !bounds.is_empty()) {
            Some(bounds) => Ok(LengthBounds { bounds, longer }),
            None => Err(Error::BucketBounds),
        }
    }

    /// Returns the shapes of the buckets.
    pub fn shapes(&self) -> impl ExactSizeIterator<Item = Shape> {
        self.bounds.iter().map(|&bound| Shape::Length(bound))
    }

    /// Returns the bucket of each length in tokens.
    ///
    /// # Errors
    /// [`Error::LongSample`] with the number of lengths above the last bound, if those are refused.
    pub fn assign(&self, lengths: impl IntoIterator<Item = u64>) -> Result<Vec<u16>, Error> {
        let last = self.bounds[self.bounds.len() - 1];
        let (mut count, mut longest) = (0, 0);
        let assigned = lengths.into_iter().map(|length| {
            if length > last.get().into() {
                (count, longest) = (count + 1, length.max(longest));
            }
            let bucket = self.bounds.partition_point(|bound| u64::from(bound.get()) < length);
            bucket.min(self.bounds.len() - 1) as u16
        });
        let assigned = assigned.collect();
        match self.longer {
            Longer::Refuse if count > 0 => Err(Error::LongSample { count, longest, most: last.get() }),
            Longer::Refuse | Longer::Last => Ok(assigned),
        }
    }
}
