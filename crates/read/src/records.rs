//! The records of a split, one after the other.

use crate::{Record, Result, Split};
use std::iter::FusedIterator;
use std::ops::Range;

/// Reads the records of a range of ids: see [`Split::records`].
#[derive(Debug, Clone)]
pub struct Records<'s> {
    split: &'s Split,
    ids: Range<u64>,
}

impl Split {
    /// Returns an iterator over the records of a range of ids, which is cut to those of the split. A record that cannot be read is an
    /// error, after which the next one follows.
    ///
    /// ```
    /// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance/golden/tiny");
    /// # let dataset = shardtool_read::Dataset::open(folder)?;
    /// let train = dataset.split("train")?;
    /// let mut bytes = 0;
    /// for record in train {
    ///     bytes += record?.data().len();
    /// }
    /// assert_eq!(train.records(1..u64::MAX).len() as u64, train.len() - 1);
    /// # assert!(bytes > 0);
    /// # Ok::<(), shardtool_read::Error>(())
    /// ```
    pub fn records(&self, ids: Range<u64>) -> Records<'_> {
        let end = ids.end.min(self.len());
        Records { split: self, ids: ids.start.min(end)..end }
    }
}

impl<'s> IntoIterator for &'s Split {
    type Item = Result<Record>;
    type IntoIter = Records<'s>;

    fn into_iter(self) -> Records<'s> {
        self.records(0..self.len())
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        self.ids.next().map(|id| self.split.get(id))
    }

    fn nth(&mut self, n: usize) -> Option<Result<Record>> {
        self.ids.nth(n).map(|id| self.split.get(id))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.ids.end - self.ids.start).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl DoubleEndedIterator for Records<'_> {
    fn next_back(&mut self) -> Option<Result<Record>> {
        self.ids.next_back().map(|id| self.split.get(id))
    }
}

impl ExactSizeIterator for Records<'_> {}
impl FusedIterator for Records<'_> {}
