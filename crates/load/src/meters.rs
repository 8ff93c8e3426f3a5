//! Measures the time spent in each stage.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time spent in one stage, and how often it was entered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stage {
    /// Summed over workers.
    pub time: Duration,
    /// Samples; for waits, batches.
    pub count: u64,
}

impl Stage {
    /// Returns the rate of one thread per second; 0 if `count` is 0.
    pub fn per_second(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.count as f64 / self.time.as_secs_f64().max(1e-9) }
    }

    pub(crate) fn since(self, earlier: Stage) -> Stage {
        Stage { time: self.time.saturating_sub(earlier.time), count: self.count.saturating_sub(earlier.count) }
    }
}

/// Measures one stage.
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

/// The meters of a loader.
pub(crate) struct Meters {
    workers: Box<[WorkerMeters]>,
    pub(crate) buffer_wait: Meter,
    pub(crate) consumer_wait: Meter,
    pub(crate) consumer_busy: Meter,
    /// Valid samples delivered.
    pub(crate) samples: AtomicU64,
}

/// The meters of one worker, which counts every sample: in cache lines that no other worker writes.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct WorkerMeters {
    pub(crate) data_wait: Meter,
    pub(crate) read: Meter,
    pub(crate) decode: Meter,
    pub(crate) resize: Meter,
    pub(crate) function: Meter,
    /// Bytes of records read.
    pub(crate) bytes: AtomicU64,
    /// Cut and damaged images that were decoded.
    pub(crate) filled: AtomicU64,
}

impl Meters {
    pub(crate) fn new(workers: usize) -> Self {
        let [buffer_wait, consumer_wait, consumer_busy] = std::array::from_fn(|_| Meter::default());
        let workers = (0..workers).map(|_| WorkerMeters::default()).collect();
        Meters { workers, buffer_wait, consumer_wait, consumer_busy, samples: AtomicU64::new(0) }
    }

    pub(crate) fn worker(&self, number: usize) -> &WorkerMeters {
        &self.workers[number]
    }

    /// Returns a stage of all workers.
    pub(crate) fn sum(&self, stage: impl Fn(&WorkerMeters) -> &Meter) -> Stage {
        let stages = self.workers.iter().map(|worker| stage(worker).get());
        stages.fold(Stage::default(), |sum, one| Stage { time: sum.time + one.time, count: sum.count + one.count })
    }

    /// Returns a count of all workers.
    pub(crate) fn count(&self, of: impl Fn(&WorkerMeters) -> &AtomicU64) -> u64 {
        self.workers.iter().map(|worker| of(worker).load(Ordering::Relaxed)).sum()
    }
}

/// Times one read. Every 16th is also timed by the thread's CPU clock, which stops while the thread waits for storage.
/// (Reading that clock is a system call, too slow for every small record.)
pub(crate) struct ReadTimer {
    start: Instant,
    cpu: Option<Duration>,
}

const CPU_SAMPLING: u64 = 16;

impl ReadTimer {
    /// Starts timing the worker's read number `number`.
    pub(crate) fn start(number: u64) -> Self {
        let cpu = number.is_multiple_of(CPU_SAMPLING).then(cpu_time);
        ReadTimer { start: Instant::now(), cpu }
    }

    pub(crate) fn stop(self, meters: &WorkerMeters) {
        let time = self.start.elapsed();
        meters.read.add(time, 1);
        if let Some(before) = self.cpu {
            let waited = time.saturating_sub(cpu_time() - before);
            meters.data_wait.add(waited * CPU_SAMPLING as u32, CPU_SAMPLING);
        }
    }
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
