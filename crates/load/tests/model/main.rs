//! Checks every interleaving, up to a bound on preemptions, with loom: of the hand-over of batches (`delivery`), and of the loop that
//! fills a row, with memory pressure and with requests made ahead (`rows`). Batches arrive in order, no buffer has two owners, memory
//! stays within its bound, and no thread waits for ever.

#![allow(clippy::arc_with_non_send_sync, reason = "the model runs its threads one at a time, its cells are not `Sync`")]

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    // Loom's `Arc` has no weak references. No thread waits for a reference count, so loom need not track it.
    pub(crate) use std::sync::Arc;
    use std::time::Duration;

    /// A clock that never advances: timed waits of the model end only with a notification.
    #[derive(Clone, Copy)]
    pub(crate) struct Instant;

    impl Instant {
        pub(crate) fn now() -> Self {
            Instant
        }

        pub(crate) fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
    }
}
#[path = "../../src/worker/attempt.rs"]
mod attempt;
#[expect(dead_code, reason = "the library uses more of it")]
#[path = "../../src/handover/mod.rs"]
mod handover;
#[expect(dead_code, reason = "the library uses more of it")]
#[path = "../../src/memory_pressure/mod.rs"]
mod memory_pressure;
#[expect(unreachable_pub, reason = "public where it belongs")]
#[path = "../../../host/src/scratch_pool.rs"]
mod scratch_pool;

mod delivery;
mod rows;

use handover::{Begin, Delivery, Empty, Handover, Position, Queue, Supply, Work};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use memory_pressure::{Lender, Pressure};
use std::sync::{Arc, Weak};
use std::time::Duration;

const PATIENT: Duration = Duration::from_secs(1 << 30);

/// Memory that one thread writes at a time, as loom checks.
#[derive(Default)]
struct Buffer(UnsafeCell<u64>);

/// A batch of one value.
struct Batch {
    home: Weak<Tested>,
    replica: usize,
    p: u64,
    rows: usize,
    unclaimed: AtomicUsize,
    left: AtomicUsize,
    complete: AtomicBool,
    cancelled: AtomicBool,
    buffer: Option<Buffer>,
}

impl Batch {
    fn claim(&self) -> bool {
        self.unclaimed.fetch_add(1, Ordering::Relaxed) < self.rows
    }

    /// Marks a row as done; the last one writes the value.
    fn finish(&self) -> bool {
        let last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            // SAFETY: the checker fails the test if another thread accesses the cell meanwhile.
            self.cell().with_mut(|value| unsafe { *value = value_of(self.replica, self.p) });
            self.complete.store(true, Ordering::Release);
        }
        last
    }

    /// Returns the value that the last row wrote.
    fn value(&self) -> u64 {
        // SAFETY: the checker fails the test if another thread writes the cell meanwhile.
        self.cell().with(|value| unsafe { *value })
    }

    fn cell(&self) -> &UnsafeCell<u64> {
        &self.buffer.as_ref().expect("taken only by drop").0
    }
}

/// Returns the value of the batch at position `p` of a replica.
fn value_of(replica: usize, p: u64) -> u64 {
    100 * (replica as u64 + 1) + p
}

impl Work for Batch {
    fn has_unclaimed(&self) -> bool {
        self.unclaimed.load(Ordering::Relaxed) < self.rows
    }

    fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let (Some(home), Some(buffer)) = (self.home.upgrade(), self.buffer.take()) {
            home.handover.give_back(self.replica, buffer);
        }
    }
}

/// Up to `most` buffers for each replica, batches of `rows` rows, one epoch of `len` batches.
struct Buffers {
    home: Weak<Tested>,
    most: usize,
    replicas: usize,
    /// How many of them images use as scratch.
    pressure: Pressure,
    /// Whether `most` counts the buffers of all replicas.
    shared: bool,
    rows: usize,
    len: u64,
    free: Vec<Buffer>,
    made: usize,
    active: usize,
    /// The number of active workers once a batch was delivered, if it changes then.
    active_then: Option<usize>,
    /// Batches from this position on cannot be allocated.
    fails_at: u64,
    /// Batches that may be building or complete.
    prefetch: usize,
    /// Whether batches that the consumer keeps in addition to one do not count.
    grows: bool,
}

impl Buffers {
    fn is_full(&self, queue: &Queue<Batch, &'static str>) -> bool {
        let kept = if self.grows { queue.kept().saturating_sub(1) } else { 0 };
        queue.live() >= self.pressure.batches_per_replica(self.most, self.replicas) + kept
    }
}

impl Supply for Buffers {
    type Work = Batch;
    type Buffer = Buffer;
    type Error = &'static str;
    type Exhausted = ();

    fn is_active(&self, worker: usize) -> bool {
        worker < self.active
    }

    fn ends_before(&self, (epoch, _): Position) -> bool {
        epoch > 0
    }

    fn begin(&mut self, queues: &[Queue<Batch, &'static str>], replica: usize) -> Begin<Batch, &'static str> {
        let (epoch, p) = queues[replica].next();
        if p >= self.fails_at {
            return Begin::Failed("no memory");
        }
        let live: usize = queues.iter().map(Queue::live).sum();
        if self.is_full(&queues[replica])
            || (self.shared && live >= self.most)
            || queues[replica].queued() >= self.prefetch
        {
            return Begin::Later;
        }
        let buffer = self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            Buffer::default()
        });
        assert_eq!(self.made, live + 1 + self.free.len(), "every buffer has one owner");
        let after = if p + 1 == self.len { (epoch + 1, 0) } else { (epoch, p + 1) };
        let batch = Batch {
            home: self.home.clone(),
            replica,
            p,
            rows: self.rows,
            unclaimed: AtomicUsize::new(0),
            left: AtomicUsize::new(self.rows),
            complete: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            buffer: Some(buffer),
        };
        Begin::Work(Arc::new(batch), after)
    }

    fn exhausted(&self, queue: &Queue<Batch, &'static str>, _: usize) -> Option<()> {
        self.is_full(queue).then_some(())
    }

    fn completed(&mut self, batch: &Batch) {
        assert!(batch.is_complete());
    }

    fn delivered(&mut self, _: Duration, _: usize) -> bool {
        let before = self.active;
        self.active = self.active_then.unwrap_or(before);
        self.active > before
    }

    fn give_back(&mut self, buffer: Buffer, closed: bool) -> Option<Buffer> {
        if closed {
            self.made -= 1;
            return Some(buffer);
        }
        self.free.push(buffer);
        None
    }

    fn drain(&mut self) -> Vec<Buffer> {
        self.made -= self.free.len();
        std::mem::take(&mut self.free)
    }
}

impl Lender for Buffers {
    fn replica(work: &Batch) -> usize {
        work.replica
    }

    fn batches(&self) -> usize {
        self.most * self.replicas
    }

    fn live(&self, queues: &[Queue<Batch, &'static str>]) -> usize {
        queues.iter().map(Queue::live).sum()
    }

    fn pressure(&mut self) -> &mut Pressure {
        &mut self.pressure
    }

    fn grow_scratch(&mut self, _: u64) -> bool {
        false
    }
}

struct Tested {
    handover: Arc<Handover<Buffers>>,
}

/// A batch that the consumer holds.
struct Held(Arc<Batch>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.home.upgrade().expect("outlives the test's batches").handover.release(self.0.replica);
    }
}

impl Tested {
    fn new(most: usize, rows: usize, len: u64, active: usize) -> Arc<Self> {
        Self::with_replicas(1, most, rows, len, active)
    }

    fn with_replicas(replicas: usize, most: usize, rows: usize, len: u64, active: usize) -> Arc<Self> {
        Arc::new_cyclic(|home: &Weak<Tested>| {
            let supply = Buffers {
                home: home.clone(),
                most,
                replicas,
                pressure: Pressure::default(),
                shared: false,
                rows,
                len,
                free: vec![],
                made: 0,
                active,
                active_then: None,
                fails_at: u64::MAX,
                prefetch: usize::MAX,
                grows: false,
            };
            Tested { handover: Arc::new(Handover::new(replicas, supply)) }
        })
    }

    /// Takes the next batch, whose value must be that of position `p`.
    fn take(&self, p: u64) -> Held {
        self.take_of(0, p)
    }

    /// As [`Self::take`], for a replica.
    fn take_of(&self, replica: usize, p: u64) -> Held {
        match self.handover.take(replica, PATIENT, &mut || false) {
            Ok(Delivery::Work(batch, _)) => {
                assert_eq!(batch.value(), value_of(replica, p));
                Held(batch)
            }
            Ok(_) => panic!("the epoch of replica {replica} ended before {p}"),
            Err(error) => panic!("{error:?} at {p} of replica {replica}"),
        }
    }

    /// Takes and drops `count` batches of a replica in another thread.
    fn consumer(self: &Arc<Self>, replica: usize, count: u64) -> Thread {
        let tested = self.clone();
        thread::spawn(move || (0..count).for_each(|p| drop(tested.take_of(replica, p))))
    }

    fn take_error(&self) -> Empty<&'static str, ()> {
        self.handover.take(0, Duration::ZERO, &mut || false).err().expect("no batch, and no end")
    }

    fn worker(
        self: &Arc<Self>,
        number: usize,
        row: impl Fn(&Tested, &Batch) -> Result<(), &'static str> + 'static,
    ) -> Thread {
        let tested = self.clone();
        thread::spawn(move || {
            let mut current: Option<Arc<Batch>> = None;
            loop {
                if let Some(batch) = &current
                    && batch.claim()
                {
                    if !batch.is_cancelled()
                        && let Err(error) = row(&tested, batch)
                    {
                        tested.handover.fail(0, batch, error);
                    }
                    if batch.finish() {
                        tested.handover.completed(batch);
                    }
                    continue;
                }
                drop(current.take());
                match tested.handover.next(number).0 {
                    Some(batch) => current = Some(batch),
                    None => return,
                }
            }
        })
    }

    /// Ends the workers; every buffer must have come back.
    fn end(&self, workers: impl IntoIterator<Item = Thread>) {
        self.handover.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        self.handover.read(|queues, supply| {
            let left: Vec<_> = queues.iter().map(|queue| (queue.live(), queue.held())).collect();
            assert!(left.iter().all(|left| *left == (0, 0)) && supply.made == 0, "{left:?}, {}", supply.made);
        });
    }
}

type Thread = thread::JoinHandle<()>;

fn good(_: &Tested, _: &Batch) -> Result<(), &'static str> {
    Ok(())
}

/// Checks every interleaving with up to `preemptions` preemptions. One or two suffice to find lost wake-ups and races.
fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}
