//! Where the time goes: one meter a stage, and what they say together.

use crate::budget::Arithmetic;
use crate::tune::Why;
use rustix::time::{ClockId, clock_gettime};
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

    pub(crate) fn get(&self) -> Stage {
        let time = Duration::from_nanos(self.nanos.load(Ordering::Relaxed));
        Stage { time, count: self.count.load(Ordering::Relaxed) }
    }
}

/// The meters of a loader. Times of workers are summed over them.
#[derive(Default)]
pub(crate) struct Meters {
    pub(crate) data_wait: Meter,
    pub(crate) read: Meter,
    pub(crate) decode: Meter,
    pub(crate) resize: Meter,
    pub(crate) slot_wait: Meter,
    pub(crate) caller_wait: Meter,
    pub(crate) caller_busy: Meter,
    pub(crate) bytes: AtomicU64,
    pub(crate) samples: AtomicU64,
}

/// A read being timed. Every 16th is also timed by the thread's own processor clock: while that stands still the thread
/// waits for data. (Asking that clock is a system call, too slow for every record of a small kind.)
pub(crate) struct Reading {
    start: Instant,
    processor: Option<Duration>,
}

const SAMPLED: u64 = 16;

impl Reading {
    pub(crate) fn begin(number: u64) -> Self {
        let processor = number.is_multiple_of(SAMPLED).then(processor_time);
        Reading { start: Instant::now(), processor }
    }

    pub(crate) fn end(self, meters: &Meters) {
        let time = self.start.elapsed();
        meters.read.add(time, 1);
        if let Some(before) = self.processor {
            let waited = time.saturating_sub(processor_time() - before);
            meters.data_wait.add(waited * SAMPLED as u32, SAMPLED);
        }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time spent in one stage, and how often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stage {
    /// Summed over workers.
    pub time: Duration,
    /// Samples, or batches for waits.
    pub count: u64,
}

impl Stage {
    /// How many a second one thread does; 0 before the first.
    pub fn per_second(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.count as f64 / self.time.as_secs_f64().max(1e-9) }
    }

    fn since(self, earlier: Stage) -> Stage {
        Stage { time: self.time.saturating_sub(earlier.time), count: self.count.saturating_sub(earlier.count) }
    }
}

/// What a loader has done so far, by all its replicas in this process.
#[derive(Debug, Clone)]
pub struct Stats {
    /// Since the loader was made.
    pub elapsed: Duration,
    /// Workers in a read while their processor stood still: storage. Part of `read`; estimated from every 16th read.
    pub data_wait: Stage,
    /// Finding, reading and checking records.
    pub read: Stage,
    /// Bytes to pixels.
    pub decode: Stage,
    /// Crop, resize and flip to the batch, and the user's own function.
    pub resize: Stage,
    /// Workers without a batch to fill: the caller is slower than they are.
    pub slot_wait: Stage,
    /// The caller waiting for batches.
    pub caller_wait: Stage,
    /// The caller doing its own work between batches.
    pub caller_busy: Stage,
    /// Bytes of records read.
    pub bytes: u64,
    /// Valid samples delivered.
    pub samples: u64,
    /// Bad samples, each once.
    pub bad: u64,
    /// Batches that stand ready.
    pub ready: usize,
    /// Batches that the caller holds.
    pub held: usize,
    /// Workers at work now, and those there are.
    pub workers: (usize, usize),
    /// Batches built ahead of the caller.
    pub depth: usize,
    /// Batches of each replica that the budget allows in memory.
    pub slots: usize,
    /// Batches in memory beyond the budget, for a consumer that keeps them.
    pub extra: usize,
    /// The last reason to change workers or depth.
    pub why: Why,
    /// The memory.
    pub memory: Arithmetic,
    /// What a sample is called.
    pub unit: &'static str,
}

impl Stats {
    /// What happened since an earlier account of the same loader.
    pub fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            elapsed: self.elapsed.saturating_sub(earlier.elapsed),
            data_wait: self.data_wait.since(earlier.data_wait),
            read: self.read.since(earlier.read),
            decode: self.decode.since(earlier.decode),
            resize: self.resize.since(earlier.resize),
            slot_wait: self.slot_wait.since(earlier.slot_wait),
            caller_wait: self.caller_wait.since(earlier.caller_wait),
            caller_busy: self.caller_busy.since(earlier.caller_busy),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            samples: self.samples.saturating_sub(earlier.samples),
            bad: self.bad.saturating_sub(earlier.bad),
            ..self.clone()
        }
    }

    /// Samples delivered a second.
    pub fn rate(&self) -> f64 {
        self.samples as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The stages by name, in the order in which a sample passes them.
    pub fn stages(&self) -> [(&'static str, Stage); 7] {
        [
            ("wait for data", self.data_wait),
            ("read + CRC", self.read.since(Stage { count: 0, ..self.data_wait })),
            ("decode", self.decode),
            ("resize", self.resize),
            ("wait for a slot", self.slot_wait),
            ("caller waits", self.caller_wait),
            ("caller works", self.caller_busy),
        ]
    }
}
