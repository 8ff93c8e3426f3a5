//! The bucket batches of one epoch.

use super::Buckets;
use crate::order::Order;
use crate::permutation::Permutation;
use crate::prf::{Domain, key};

/// Permutations of members that a cursor keeps: at most 512 KiB.
const KEPT: usize = 64;

/// Seed and epoch of buckets: unit → batch, and position → source position. Memory does not depend on the number of
/// samples.
#[derive(Clone, Debug)]
pub(crate) struct BucketCursor {
    /// `None` if members and batches are in order.
    shuffled: Option<Shuffled>,
}

#[derive(Clone, Debug)]
struct Shuffled {
    seed: u64,
    epoch: u64,
    complete: Permutation,
    incomplete: Permutation,
    /// Permutations of members with their bucket; that of bucket y is in slot y mod [`KEPT`].
    members: Vec<Option<(usize, Permutation)>>,
}

impl BucketCursor {
    pub(crate) fn new(buckets: &Buckets, order: Order, seed: u64, epoch: u64) -> Self {
        if order == Order::Sequential {
            return BucketCursor { shuffled: None };
        }
        let batches = |n, tweak| Permutation::bounded(n, key(Domain::Batches, seed, epoch, tweak));
        let complete = buckets.complete_batches();
        let shuffled = Shuffled {
            seed,
            epoch,
            complete: batches(complete, 0),
            incomplete: batches(buckets.batches() - complete, 1),
            members: vec![None; buckets.as_slice().len().min(KEPT)],
        };
        BucketCursor { shuffled: Some(shuffled) }
    }

    /// Returns the bucket y and the number f in it of batch `e`, below A + D.
    pub(crate) fn batch(&self, buckets: &Buckets, e: u64) -> (usize, u64) {
        match (e.checked_sub(buckets.complete_batches()), &self.shuffled) {
            (None, None) => buckets.complete(e),
            (None, Some(shuffled)) => buckets.complete(shuffled.complete.forward(e)),
            (Some(e), None) => buckets.incomplete(e),
            (Some(e), Some(shuffled)) => buckets.incomplete(shuffled.incomplete.forward(e)),
        }
    }

    /// Returns the source position at position `q`.
    ///
    /// # Panics
    /// If `q` is N or more.
    pub(crate) fn source_position(&mut self, buckets: &Buckets, q: u64) -> u64 {
        assert!(q < buckets.len(), "position {q} of an epoch of {}", buckets.len());
        let Some(shuffled) = &mut self.shuffled else { return buckets.source_position(q) };
        let y = buckets.bucket_of(q);
        let positions = buckets.positions(y);
        let number = shuffled.members_of(y, positions.end - positions.start).forward(q - positions.start);
        buckets.source_position(positions.start + number)
    }
}

impl Shuffled {
    /// Returns the permutation of the members of a bucket: the one kept, or a new one that replaces another.
    fn members_of(&mut self, y: usize, count: u64) -> &Permutation {
        let slots = self.members.len();
        let slot = &mut self.members[y % slots];
        if slot.as_ref().is_some_and(|(bucket, _)| *bucket != y) {
            *slot = None;
        }
        let new = || (y, Permutation::bounded(count, key(Domain::Bucket, self.seed, self.epoch, y as u64)));
        &slot.get_or_insert_with(new).1
    }
}
