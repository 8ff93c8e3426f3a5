//! Where the time goes: one meter a stage.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time spent on something, and how often.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    nanos: AtomicU64,
    count: AtomicU64,
}

impl Meter {
    pub(crate) fn add(&self, time: Duration, count: u64) {
        self.nanos.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        self.count.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> (Duration, u64) {
        (Duration::from_nanos(self.nanos.load(Ordering::Relaxed)), self.count.load(Ordering::Relaxed))
    }
}

/// The meters of a loader. Times of workers are summed over them.
pub(crate) struct Meters {
    pub(crate) start: Instant,
    /// Reading while the processor had nothing to do: the storage's part.
    pub(crate) data_wait: Meter,
    /// Finding, reading and checking records, `data_wait` included.
    pub(crate) read: Meter,
    pub(crate) decode: Meter,
    pub(crate) resize: Meter,
    /// Workers without a batch to fill.
    pub(crate) slot_wait: Meter,
    /// The caller inside `next_batch`.
    pub(crate) consumer_wait: Meter,
    /// The caller elsewhere.
    pub(crate) consumer_busy: Meter,
    /// Records' bytes.
    pub(crate) bytes: AtomicU64,
    /// Valid samples delivered.
    pub(crate) samples: AtomicU64,
}

impl Default for Meters {
    fn default() -> Self {
        Meters {
            start: Instant::now(),
            data_wait: Meter::default(),
            read: Meter::default(),
            decode: Meter::default(),
            resize: Meter::default(),
            slot_wait: Meter::default(),
            consumer_wait: Meter::default(),
            consumer_busy: Meter::default(),
            bytes: AtomicU64::new(0),
            samples: AtomicU64::new(0),
        }
    }
}
