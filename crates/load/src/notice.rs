//! Notices: events of a run that a person should know about. They are logged, and returned to the consumer.

use crate::bad::BadSample;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Something that happened and did not end the run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// The consumer keeps batches while it asks for more, and the loader allocated one beyond the default budget. Reported
    /// once a loader.
    Growth {
        /// Batches that the consumer holds.
        held: usize,
        /// Bytes of a batch.
        batch: u64,
    },
    /// The first bad sample of a run.
    BadSample(Arc<BadSample>),
    /// An epoch ended, and the run has met further bad samples since the last notice.
    BadSamples {
        /// The epoch that ended, from 0.
        epoch: u64,
        /// Bad samples of the run, each once.
        count: u64,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Growth { held, batch } => write!(
                f,
                "the consumer keeps {held} batches while it asks for more, one was planned: allocating others, {:.1} MiB \
                 each, up to 90 % of the memory limit; release batches sooner, or set a memory budget to get an error \
                 instead",
                *batch as f64 / f64::from(1 << 20)
            ),
            Notice::BadSample(sample) => write!(f, "bad sample: {sample}; further ones are counted"),
            Notice::BadSamples { epoch, count } => {
                write!(f, "{count} bad samples in this run by the end of epoch {epoch}")
            }
        }
    }
}

/// Notices that the consumer has not taken yet.
#[derive(Default)]
pub(crate) struct Notices {
    list: Mutex<Vec<Notice>>,
    /// The growth was reported.
    growth: AtomicBool,
}

impl Notices {
    pub(crate) fn add(&self, notice: Notice) {
        if let Notice::Growth { .. } = notice
            && self.growth.swap(true, Ordering::Relaxed)
        {
            return;
        }
        log::warn!("{notice}");
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    pub(crate) fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
