//! Memory pressure: admits scratch memory image by image. If an image needs more scratch than the batches leave,
//! batches begun after its own are evicted, and no other batches begin until it is done.
//!
//! Independent of images and of memory planning, as [`handover`](crate::handover) is, so that `tests/model.rs` can include it.

mod pressure;

use super::handover::{Handover, Queue, Step, Supply};
use super::scratch_pool::{Admitted, ScratchPool};
use super::sync::{Arc, Instant};
pub(crate) use pressure::{MIN_BATCHES, Pressure};
use std::time::Duration;

/// A supply whose batches yield memory to large images. Called with the hand-over's lock held.
pub(crate) trait Lender: Supply {
    /// Returns the index of the replica of a batch.
    fn replica(work: &Self::Work) -> usize;

    /// Returns how many batches of all replicas the budget allows in memory.
    fn batches(&self) -> usize;

    /// Returns the number of the budget's batches that are being built, complete, or held by a consumer.
    fn live(&self, queues: &[Queue<Self::Work, Self::Error>]) -> usize;

    /// Returns how much room large images need.
    fn pressure(&mut self) -> &mut Pressure;

    /// Grows a default budget by `bytes` of scratch if the system's limits allow it. Returns whether it grew.
    fn grow_scratch(&mut self, bytes: u64) -> bool;
}

/// Admits scratch memory, so that all images in progress and all batches together stay within the budget.
pub(crate) struct ScratchAdmission<S: Lender> {
    handover: Arc<Handover<S>>,
    pool: ScratchPool,
    /// Bytes that each worker keeps from one image to the next. Only requests beyond these need admission.
    kept: u64,
    batch_bytes: u64,
    /// How long an image waits for batches that its own consumer holds.
    patience: Duration,
}

/// Scratch admitted to one image; returned when dropped.
pub(crate) struct Admission<'a, S: Lender> {
    owner: &'a ScratchAdmission<S>,
    /// Whether batches yielded memory for it.
    yielded: bool,
    needed: u64,
    held: Admitted<'a>,
}

/// Why scratch is refused.
pub(crate) enum Refused {
    /// The batch was cancelled.
    Cancelled,
    /// The request exceeds the largest possible admission, which has this many bytes.
    TooLarge(u64),
}

impl<S: Lender> ScratchAdmission<S> {
    /// Admits `pool` bytes to all images together, beyond the `kept` bytes of each worker.
    pub(crate) fn new(handover: Arc<Handover<S>>, pool: u64, kept: u64, batch_bytes: u64, patience: Duration) -> Self {
        ScratchAdmission { handover, pool: ScratchPool::new(pool), kept, batch_bytes, patience }
    }

    /// Bytes that each worker keeps from one image to the next.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// Waits for `needed` bytes of scratch for a row of `batch`.
    pub(crate) fn admit(&self, batch: &S::Work, needed: u64) -> Result<Admission<'_, S>, Refused> {
        let beyond = needed.saturating_sub(self.kept);
        let yielded = match self.pool.admit(beyond) {
            Ok(held) => return Ok(Admission { owner: self, yielded: false, needed, held }),
            Err(most) => self.make_room(batch, beyond, most)?,
        };
        // Takes the whole pool, in the order of tickets; `make_room` has taken the rest from the batches.
        let held = self.pool.admit(beyond).or_else(|most| self.pool.admit(most));
        match held {
            Ok(held) => Ok(Admission { owner: self, yielded, needed, held }),
            Err(most) => Err(Refused::TooLarge(self.kept + most)),
        }
    }

    /// Makes room for the bytes by which `beyond` exceeds the pool's `most`. Waits until no other image uses the memory
    /// of batches and few enough batches are in memory. Returns true if batches yielded the room, false if the pool has
    /// grown.
    fn make_room(&self, batch: &S::Work, beyond: u64, most: u64) -> Result<bool, Refused> {
        let lacking = beyond - most;
        let needed = lacking.div_ceil(self.batch_bytes) as usize;
        let (batches, minimum) = self.handover.read(|queues, supply| (supply.batches(), MIN_BATCHES * queues.len()));
        let can_yield = batches.saturating_sub(minimum);
        if needed > can_yield {
            return match self.handover.update(|_, supply| self.grow(supply, lacking)) {
                true => Ok(false),
                false => Err(Refused::TooLarge(self.kept + most + can_yield as u64 * self.batch_bytes)),
            };
        }
        let mut hopeless: Option<Instant> = None;
        let decide = |queues: &mut [Queue<S::Work, S::Error>], supply: &mut S| {
            if supply.pressure().yielded == 0 && supply.live(queues) + needed <= batches {
                supply.pressure().yielded = needed;
                return Step::Done(Ok(true));
            }
            let over_minimum = queues.iter_mut().filter(|queue| queue.live() > MIN_BATCHES);
            let evicted: Vec<_> = over_minimum.filter_map(|queue| queue.evict_last(batch)).collect();
            if !evicted.is_empty() {
                return Step::Drop(evicted);
            }
            // If the consumer waits for this batch while it holds too many others, no room will become free.
            let awaited = queues[S::replica(batch)].is_awaited(batch);
            if awaited && self.grow(supply, lacking) {
                return Step::Done(Ok(false));
            }
            hopeless = awaited.then(|| hopeless.unwrap_or_else(Instant::now));
            match hopeless.map_or(self.patience, |since| self.patience.saturating_sub(since.elapsed())) {
                Duration::ZERO => Step::Done(Err(Refused::TooLarge(self.kept + most))),
                left => Step::Wait(left),
            }
        };
        self.handover.update(|_, supply| supply.pressure().waiting += 1);
        let outcome = self.handover.wait_for(batch, decide);
        self.handover.update(|_, supply| supply.pressure().waiting -= 1);
        outcome.unwrap_or(Err(Refused::Cancelled))
    }

    /// Grows the pool if the budget may grow. Returns whether it grew.
    fn grow(&self, supply: &mut S, bytes: u64) -> bool {
        let grows = supply.grow_scratch(bytes);
        if grows {
            self.pool.grow(bytes);
        }
        grows
    }
}

impl<S: Lender> Admission<'_, S> {
    /// Extends it to `needed` bytes in total if that is possible without waiting. Returns whether it was extended.
    pub(crate) fn extend(&mut self, needed: u64) -> bool {
        let beyond = |needed: u64| needed.saturating_sub(self.owner.kept);
        let more = beyond(needed).saturating_sub(beyond(self.needed));
        let extended = self.held.extend(more);
        if extended {
            self.needed = self.needed.max(needed);
        }
        extended
    }
}

impl<S: Lender> Drop for Admission<'_, S> {
    fn drop(&mut self) {
        if self.yielded {
            self.owner.handover.update(|_, supply| supply.pressure().yielded = 0);
        }
    }
}
