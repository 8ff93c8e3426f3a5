//! Depth and workers, adjusted to the caller.

use std::fmt;
use std::time::Duration;

/// How many workers work and how many batches they build ahead, and why.
#[derive(Debug)]
pub(crate) struct Tuning {
    pub(crate) workers: usize,
    pub(crate) depth: usize,
    most_workers: usize,
    fixed: Fixed,
    /// Batches delivered since the caller last waited.
    calm: u32,
    pub(crate) why: Why,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    pub(crate) workers: bool,
    pub(crate) depth: bool,
}

/// The last thing that changed workers or depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nothing changed yet: as given, or by default.
    Start,
    /// The caller waited although a full queue stood before it: one batch more ahead evens that out.
    Bursts,
    /// The caller waited: all workers work.
    CallerWaited,
    /// For many batches the caller found the queue full: one worker fewer.
    CallerSlow,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Start => "as it began",
            Why::Bursts => "the caller waited after finding the queue full: one batch more ahead",
            Why::CallerWaited => "the caller waited: all workers work",
            Why::CallerSlow => "the caller found the queue full for many batches: a worker rests",
        })
    }
}

/// A caller that waits less than this does not wait: waking up takes as long.
const NOTICEABLE: Duration = Duration::from_millis(1);
/// Batches without a wait after which a worker is sent to rest.
const CALM: u32 = 32;

impl Tuning {
    pub(crate) fn new(workers: usize, depth: usize, fixed: Fixed) -> Self {
        Tuning { workers, depth, most_workers: workers, fixed, calm: 0, why: Why::Start }
    }

    /// A batch was delivered after the caller waited so long; `ready` more stand ready, `slots` may be in memory.
    pub(crate) fn delivered(&mut self, waited: Duration, ready: usize, slots: usize) {
        if waited > NOTICEABLE {
            let was_full = self.calm > 0;
            self.calm = 0;
            if self.workers < self.most_workers && !self.fixed.workers {
                (self.workers, self.why) = (self.most_workers, Why::CallerWaited);
            } else if was_full && self.depth + 1 < slots && !self.fixed.depth {
                (self.depth, self.why) = (self.depth + 1, Why::Bursts);
            }
            return;
        }
        // One place may be just being filled.
        if ready + 1 >= self.depth {
            self.calm += 1;
        }
        if self.calm >= CALM && self.workers > 1 && !self.fixed.workers {
            (self.workers, self.calm, self.why) = (self.workers - 1, 1, Why::CallerSlow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITED: Duration = Duration::from_millis(5);

    fn tuning(fixed: bool) -> Tuning {
        Tuning::new(4, 2, Fixed { workers: fixed, depth: fixed })
    }

    #[test]
    fn a_caller_that_is_slow_sends_workers_to_rest_and_a_wait_brings_them_back() {
        let mut tuning = tuning(false);
        (0..CALM).for_each(|_| tuning.delivered(Duration::ZERO, 1, 3));
        assert_eq!((tuning.workers, tuning.why), (3, Why::CallerSlow));
        (0..10 * CALM).for_each(|_| tuning.delivered(Duration::ZERO, 1, 3));
        assert_eq!(tuning.workers, 1, "one always works");
        tuning.delivered(WAITED, 0, 3);
        assert_eq!((tuning.workers, tuning.why), (4, Why::CallerWaited));
    }

    #[test]
    fn bursts_deepen_the_queue_as_far_as_the_memory_goes() {
        let mut tuning = tuning(false);
        for _ in 0..10 {
            tuning.delivered(Duration::ZERO, 9, 6);
            tuning.delivered(WAITED, 0, 6);
        }
        assert_eq!((tuning.depth, tuning.why), (5, Why::Bursts));
    }

    #[test]
    fn a_caller_that_always_waits_changes_nothing() {
        let mut tuning = tuning(false);
        (0..100).for_each(|_| tuning.delivered(WAITED, 0, 9));
        assert_eq!((tuning.workers, tuning.depth, tuning.why), (4, 2, Why::Start));
    }

    #[test]
    fn what_is_given_stays() {
        let mut tuning = tuning(true);
        (0..100).for_each(|_| tuning.delivered(Duration::ZERO, 9, 9));
        (0..100).for_each(|i| tuning.delivered(if i % 2 == 0 { WAITED } else { Duration::ZERO }, 9, 9));
        assert_eq!((tuning.workers, tuning.depth), (4, 2));
    }
}
