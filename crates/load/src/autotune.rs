//! Adjusts the number of active workers and of batches built ahead to the speed of the consumer.

use std::fmt;
use std::time::Duration;

/// The numbers of workers and batches ahead.
#[derive(Debug)]
pub(crate) struct Autotune {
    /// Number of active workers: those with smaller numbers.
    pub(crate) workers: usize,
    /// Batches built ahead of the consumer.
    pub(crate) prefetch: usize,
    pub(crate) reason: TuningReason,
    max_workers: usize,
    fixed: Fixed,
    /// Batches that were delivered from a full queue since the consumer last waited.
    full: u32,
}

/// Which numbers were given, and are not adjusted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    pub(crate) workers: bool,
    pub(crate) prefetch: bool,
}

/// Why workers or prefetch changed last. `Display` writes it as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TuningReason {
    /// No change yet: the given or default numbers.
    Initial,
    /// The consumer waited after it had found the queue full: one more batch ahead evens out such bursts.
    Bursts,
    /// The consumer waited: all workers are active.
    ConsumerWaited,
    /// The consumer found the queue full for many batches: one worker fewer.
    ConsumerSlow,
}

impl fmt::Display for TuningReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TuningReason::Initial => "unchanged",
            TuningReason::Bursts => "the consumer waited after it had found the queue full: one more batch ahead",
            TuningReason::ConsumerWaited => "the consumer waited: all workers take part",
            TuningReason::ConsumerSlow => "the consumer found the queue full for many batches: one worker fewer",
        })
    }
}

/// Shorter waits are ignored, since waking a thread takes as long.
const MIN_WAIT: Duration = Duration::from_millis(1);
/// Batches from a full queue after which one worker fewer is active.
const FULL_BATCHES: u32 = 32;

impl Autotune {
    pub(crate) fn new(workers: usize, prefetch: usize, fixed: Fixed) -> Self {
        Autotune { workers, prefetch, reason: TuningReason::Initial, max_workers: workers, fixed, full: 0 }
    }

    /// Records that the consumer took a batch after waiting for `waited`, while `ready` more were complete and up to
    /// `max_batches` could be in memory.
    pub(crate) fn delivered(&mut self, waited: Duration, ready: usize, max_batches: usize) {
        if waited > MIN_WAIT {
            let was_full = self.full > 0;
            self.full = 0;
            if self.workers < self.max_workers && !self.fixed.workers {
                (self.workers, self.reason) = (self.max_workers, TuningReason::ConsumerWaited);
            } else if was_full && self.prefetch + 1 < max_batches && !self.fixed.prefetch {
                (self.prefetch, self.reason) = (self.prefetch + 1, TuningReason::Bursts);
            }
            return;
        }
        // The queue also counts as full while one batch is in progress.
        if ready + 1 >= self.prefetch {
            self.full += 1;
        }
        if self.full >= FULL_BATCHES && self.workers > 1 && !self.fixed.workers {
            (self.workers, self.full, self.reason) = (self.workers - 1, 1, TuningReason::ConsumerSlow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITED: Duration = Duration::from_millis(5);

    fn autotune(fixed: bool) -> Autotune {
        Autotune::new(4, 2, Fixed { workers: fixed, prefetch: fixed })
    }

    #[test]
    fn slow_consumer_reduces_workers_until_it_waits() {
        let mut autotune = autotune(false);
        (0..FULL_BATCHES).for_each(|_| autotune.delivered(Duration::ZERO, 1, 3));
        assert_eq!((autotune.workers, autotune.reason), (3, TuningReason::ConsumerSlow));
        (0..10 * FULL_BATCHES).for_each(|_| autotune.delivered(Duration::ZERO, 1, 3));
        assert_eq!(autotune.workers, 1, "at least one");
        autotune.delivered(WAITED, 0, 3);
        assert_eq!((autotune.workers, autotune.reason), (4, TuningReason::ConsumerWaited));
    }

    #[test]
    fn bursts_raise_prefetch_within_memory() {
        let mut autotune = autotune(false);
        for _ in 0..10 {
            autotune.delivered(Duration::ZERO, 9, 6);
            autotune.delivered(WAITED, 0, 6);
        }
        assert_eq!((autotune.prefetch, autotune.reason), (5, TuningReason::Bursts));
    }

    #[test]
    fn consumer_that_always_waits_changes_nothing() {
        let mut autotune = autotune(false);
        (0..100).for_each(|_| autotune.delivered(WAITED, 0, 9));
        assert_eq!((autotune.workers, autotune.prefetch, autotune.reason), (4, 2, TuningReason::Initial));
    }

    #[test]
    fn given_numbers_stay() {
        let mut autotune = autotune(true);
        (0..100).for_each(|_| autotune.delivered(Duration::ZERO, 9, 9));
        (0..100).for_each(|i| autotune.delivered(if i % 2 == 0 { WAITED } else { Duration::ZERO }, 9, 9));
        assert_eq!((autotune.workers, autotune.prefetch), (4, 2));
    }
}
