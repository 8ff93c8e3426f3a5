//! The batches of an epoch as an iterator.

use crate::batch::Batch;
use crate::error::Result;
use crate::loader::Loader;
use std::iter::FusedIterator;

/// The batches that are left of an epoch: see [`Loader::epoch`]. After an error, and at the end of the epoch, it returns `None` for
/// ever. Its length is that of a run that does not fail.
#[derive(Debug)]
pub struct Epoch<'l> {
    loader: &'l mut Loader,
    left: u64,
    done: bool,
}

impl Loader {
    /// Returns the batches that are left of the current epoch; all of the next one, if the current one was delivered to its end. What
    /// the iterator does not take comes with the next call.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let split = shardtool_read::Dataset::open("dataset")?.split("train")?.clone();
    /// # let mut loader = shardtool_load::Loader::new(&shardtool_load::Config::new(split, [shardtool_load::Field::Record], 32))?;
    /// for _ in 0..90 {
    ///     for batch in loader.epoch() {
    ///         let batch = batch?;
    ///         println!("step of {} samples", batch.valid().iter().filter(|valid| **valid).count());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn epoch(&mut self) -> Epoch<'_> {
        let left = self.left_of_epoch();
        Epoch { loader: self, left, done: false }
    }
}

impl Iterator for Epoch<'_> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if self.done {
            return None;
        }
        // At the end of the epoch this takes the end too, so that the next call begins the next epoch.
        match self.loader.next_batch().transpose() {
            Some(Ok(batch)) => {
                self.left = self.left.saturating_sub(1);
                Some(Ok(batch))
            }
            last => {
                (self.left, self.done) = (0, true);
                last
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Epoch<'_> {}
impl FusedIterator for Epoch<'_> {}
