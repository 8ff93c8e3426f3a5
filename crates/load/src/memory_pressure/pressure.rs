//! How much room large images need of the batches.

/// Batches that each replica has in memory, at least: one is built while the consumer has the other.
pub(crate) const MIN_BATCHES: usize = 2;

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
            (0, yielded) => ((batches * replicas).saturating_sub(yielded) / replicas).max(MIN_BATCHES),
            _ => MIN_BATCHES,
        }
    }
}
