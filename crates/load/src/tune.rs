//! Depth and workers, adjusted to the caller.

use crate::error::Error;
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
    /// Why memory for a batch was refused.
    pub(crate) refused: Option<Error>,
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
        Tuning { workers, depth, most_workers: workers, fixed, calm: 0, why: Why::Start, refused: None }
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
