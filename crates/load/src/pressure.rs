//! How much room large images need of the batches.

use crate::budget::MIN_BATCHES;

/// How much room large images need. Part of the supply, under the hand-over's lock.
#[derive(Default)]
pub(crate) struct Pressure {
    /// Workers that wait for room.
    pub(crate) waiting: usize,
    /// Number of batches, of all replicas, whose memory an image uses as scratch.
    pub(crate) yielded: usize,
}

impl Pressure {
    /// Returns how many batches each of `replicas` replicas may have now, where `batches` is the number without
    /// pressure.
    pub(crate) fn batches_per_replica(&self, batches: usize, replicas: usize) -> usize {
        match (self.waiting, self.yielded) {
            (0, 0) => batches,
            (0, yielded) => ((batches * replicas).saturating_sub(yielded) / replicas).max(MIN_BATCHES as usize),
            _ => MIN_BATCHES as usize,
        }
    }
}
