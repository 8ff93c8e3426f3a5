//! Checks every interleaving of the hand-over of batches, up to a bound on preemptions, with loom: batches arrive in
//! order, no buffer has two owners, and no thread waits for ever.

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
#[expect(dead_code, reason = "the library uses more of it")]
#[path = "../src/handover/mod.rs"]
mod handover;

use handover::{Begin, Delivery, Empty, Handover, Position, Queue, Step, Supply, Work};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
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
        queue.live() >= self.most + kept
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

struct Tested {
    handover: Handover<Buffers>,
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
            Tested { handover: Handover::new(replicas, supply) }
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

    fn worker(self: &Arc<Self>, number: usize, row: fn(&Tested, &Batch) -> Result<(), &'static str>) -> Thread {
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

#[test]
fn delivers_in_order_with_one_worker() {
    check(3, || {
        let tested = Tested::new(2, 1, 3, 1);
        let worker = tested.worker(0, good);
        (0..3).for_each(|p| drop(tested.take(p)));
        assert!(matches!(tested.handover.take(0, PATIENT, &mut || false), Ok(Delivery::EpochEnd(0))));
        assert!(matches!(tested.handover.take(0, PATIENT, &mut || false), Ok(Delivery::End)));
        tested.end([worker]);
    });
}

#[test]
fn delivers_in_order_with_two_workers_on_the_rows_of_a_batch() {
    check(2, || {
        let tested = Tested::new(2, 2, 2, 2);
        let workers = [tested.worker(0, good), tested.worker(1, good)];
        (0..2).for_each(|p| drop(tested.take(p)));
        tested.end(workers);
    });
}

#[test]
fn reuses_a_buffer_that_another_thread_returns() {
    check(3, || {
        let tested = Tested::new(1, 1, 2, 1);
        let worker = tested.worker(0, good);
        let held = tested.take(0);
        let other = thread::spawn(move || drop(held));
        drop(tested.take(1));
        other.join().unwrap();
        tested.end([worker]);
    });
}

#[test]
fn consumer_may_stop_at_any_moment() {
    check(3, || {
        let tested = Tested::new(2, 1, 3, 1);
        let worker = tested.worker(0, good);
        drop(tested.take(0));
        tested.end([worker]);
    });
}

#[test]
fn a_batch_that_outlives_the_workers_returns_its_buffer() {
    check(3, || {
        let tested = Tested::new(2, 1, 3, 1);
        let worker = tested.worker(0, good);
        let held = tested.take(0);
        tested.handover.close();
        worker.join().unwrap();
        drop(held);
        tested.end([]);
    });
}

#[test]
fn seek_cancels_what_was_begun() {
    check(2, || {
        let tested = Tested::new(2, 1, 4, 1);
        let worker = tested.worker(0, good);
        drop(tested.take(0));
        tested.handover.seek(0, (0, 2));
        (2..4).for_each(|p| drop(tested.take(p)));
        tested.end([worker]);
    });
}

#[test]
fn delivers_what_precedes_a_failure_then_the_failure_then_nothing_until_a_seek() {
    check(2, || {
        let tested = Tested::new(2, 1, 3, 2);
        let fails = |_: &Tested, batch: &Batch| if batch.p == 1 { Err("panic") } else { Ok(()) };
        let workers = [tested.worker(0, fails), tested.worker(1, fails)];
        drop(tested.take(0));
        match tested.handover.take(0, PATIENT, &mut || false) {
            Err(Empty::Failed("panic")) => {}
            other => panic!("{:?}", other.err()),
        }
        assert!(matches!(tested.take_error(), Empty::Stopped));
        tested.handover.seek(0, (0, 2));
        drop(tested.take(2));
        tested.end(workers);
    });
}

#[test]
fn a_batch_without_memory_is_an_error_after_those_before_it() {
    check(3, || {
        let tested = Tested::new(2, 1, 2, 1);
        tested.handover.update(|_, supply| supply.fails_at = 1);
        let worker = tested.worker(0, good);
        drop(tested.take(0));
        match tested.handover.take(0, PATIENT, &mut || false) {
            Err(Empty::Failed("no memory")) => {}
            other => panic!("{:?}", other.err()),
        }
        tested.end([worker]);
    });
}

#[test]
fn a_batch_that_begins_wakes_the_other_workers() {
    check(2, || {
        let tested = Tested::new(1, 2, 1, 2);
        // The first row is done only once another worker has claimed the second one.
        let row = |tested: &Tested, batch: &Batch| {
            tested.handover.update(|_, _| ());
            let claimed = |_: &mut [_], _: &mut _| match batch.has_unclaimed() {
                true => Step::Wait(PATIENT),
                false => Step::Done(()),
            };
            tested.handover.wait_for(batch, claimed).ok_or("cancelled")
        };
        let workers = [tested.worker(0, row), tested.worker(1, row)];
        drop(tested.take(0));
        tested.end(workers);
    });
}

#[test]
fn seek_wakes_a_worker_that_waits_with_a_row_in_progress() {
    check(3, || {
        let tested = Tested::new(2, 1, 2, 1);
        // Waits until cancelled.
        let waits = |tested: &Tested, batch: &Batch| match batch.p {
            0 => tested.handover.wait_for(batch, |_, _| Step::Wait::<_, ()>(PATIENT)).ok_or("cancelled"),
            _ => Ok(()),
        };
        let worker = tested.worker(0, waits);
        tested.handover.seek(0, (0, 1));
        drop(tested.take(1));
        tested.end([worker]);
    });
}

#[test]
fn a_failed_row_wakes_a_worker_that_waits_with_another_row() {
    check(2, || {
        let tested = Tested::new(1, 2, 1, 2);
        // One row waits until the batch is cancelled, which the other one's failure does.
        let row = |tested: &Tested, batch: &Batch| match batch.left.load(Ordering::Relaxed) {
            2 if batch.unclaimed.load(Ordering::Relaxed) == 1 => {
                tested.handover.wait_for(batch, |_, _| Step::Wait::<_, ()>(PATIENT)).ok_or("cancelled")
            }
            _ => Err("failed"),
        };
        let workers = [tested.worker(0, row), tested.worker(1, row)];
        match tested.handover.take(0, PATIENT, &mut || false) {
            Err(Empty::Failed("failed")) => {}
            other => panic!("{:?}", other.err()),
        }
        tested.end(workers);
    });
}

#[test]
fn evicted_batches_begin_again_in_order() {
    check(2, || {
        let tested = Tested::new(2, 1, 2, 2);
        // The first batch waits until it is alone in memory.
        let alone = |tested: &Tested, batch: &Batch| {
            if batch.p > 0 {
                return Ok(());
            }
            let decide = |queues: &mut [Queue<Batch, &'static str>], _: &mut Buffers| match queues[0].live() {
                1 => Step::Done(()),
                _ => match queues[0].evict_last(batch) {
                    Some(evicted) => Step::Drop(vec![evicted]),
                    None => Step::Wait(PATIENT),
                },
            };
            tested.handover.wait_for(batch, decide).ok_or("cancelled")
        };
        let workers = [tested.worker(0, alone), tested.worker(1, alone)];
        (0..2).for_each(|p| drop(tested.take(p)));
        tested.end(workers);
    });
}

#[test]
fn eviction_wakes_a_worker_that_waits_with_a_row_of_the_evicted_batch() {
    check(2, || {
        let tested = Tested::new(2, 1, 2, 2);
        // The first batch waits until it is alone in memory, and lets no other begin; the second until the first is delivered.
        let row = |tested: &Tested, batch: &Batch| {
            let decide = |queues: &mut [Queue<Batch, &'static str>], supply: &mut Buffers| match batch.p {
                0 if queues[0].live() == 1 => Step::Done(()),
                0 => {
                    supply.prefetch = 1;
                    match queues[0].evict_last(batch) {
                        Some(evicted) => Step::Drop(vec![evicted]),
                        None => Step::Wait(PATIENT),
                    }
                }
                _ if queues[0].delivered() == (0, 1) => Step::Done(()),
                _ => Step::Wait(PATIENT),
            };
            tested.handover.wait_for(batch, decide).ok_or("cancelled")
        };
        let workers = [tested.worker(0, row), tested.worker(1, row)];
        (0..2).for_each(|p| drop(tested.take(p)));
        tested.end(workers);
    });
}

#[test]
fn a_consumer_that_holds_everything_is_starved_until_it_returns_a_batch() {
    check(3, || {
        let tested = Tested::new(1, 1, 2, 1);
        let worker = tested.worker(0, good);
        let held = tested.take(0);
        let Empty::Starved { held: 1, why: (), .. } = tested.take_error() else { panic!("nothing can be complete") };
        drop(held);
        drop(tested.take(1));
        tested.end([worker]);
    });
}

#[test]
fn a_consumer_that_keeps_batches_gets_more_where_the_supply_grows() {
    check(3, || {
        let tested = Tested::new(2, 1, 3, 1);
        tested.handover.update(|_, supply| supply.grows = true);
        let worker = tested.worker(0, good);
        let held: Vec<_> = (0..3).map(|p| tested.take(p)).collect();
        drop(held);
        tested.end([worker]);
    });
}

#[test]
fn taking_a_batch_lets_the_next_one_begin() {
    check(3, || {
        let tested = Tested::new(3, 1, 3, 1);
        tested.handover.update(|_, supply| supply.prefetch = 1);
        let worker = tested.worker(0, good);
        let held: Vec<_> = (0..3).map(|p| tested.take(p)).collect();
        drop(held);
        tested.end([worker]);
    });
}

/// Takes two batches of `rows` rows with one buffer. After the first delivery, `then` of two workers are active.
fn with_another_number_of_workers(rows: usize, active: usize, then: usize) {
    check(2, move || {
        let tested = Tested::new(1, rows, 2, active);
        tested.handover.update(|_, supply| supply.active_then = Some(then));
        let workers = [tested.worker(0, good), tested.worker(1, good)];
        (0..2).for_each(|p| drop(tested.take(p)));
        tested.end(workers);
    });
}

#[test]
fn a_worker_that_is_no_longer_active_passes_its_wake_up_on() {
    with_another_number_of_workers(1, 2, 1);
}

#[test]
fn a_worker_that_becomes_active_with_a_delivery_begins_to_work() {
    with_another_number_of_workers(2, 1, 2);
}

#[test]
fn a_worker_that_becomes_active_begins_to_work() {
    check(3, || {
        let tested = Tested::new(1, 1, 1, 0);
        let worker = tested.worker(0, good);
        tested.handover.update(|_, supply| supply.active = 1);
        drop(tested.take(0));
        tested.end([worker]);
    });
}

#[test]
fn two_replicas_each_get_their_batches_in_order() {
    check(2, || {
        let tested = Tested::with_replicas(2, 1, 1, 2, 1);
        let worker = tested.worker(0, good);
        let other = tested.consumer(1, 2);
        (0..2).for_each(|p| drop(tested.take_of(0, p)));
        other.join().unwrap();
        tested.end([worker]);
    });
}

#[test]
fn two_workers_serve_two_replicas() {
    check(1, || {
        let tested = Tested::with_replicas(2, 1, 1, 1, 2);
        let workers = [tested.worker(0, good), tested.worker(1, good)];
        let other = tested.consumer(1, 1);
        drop(tested.take_of(0, 0));
        other.join().unwrap();
        tested.end(workers);
    });
}

#[test]
fn a_replica_whose_consumer_holds_everything_does_not_stop_the_other() {
    check(3, || {
        let tested = Tested::with_replicas(2, 1, 1, 2, 1);
        let worker = tested.worker(0, good);
        let held = tested.take_of(0, 0);
        (0..2).for_each(|p| drop(tested.take_of(1, p)));
        drop(held);
        drop(tested.take_of(0, 1));
        tested.end([worker]);
    });
}

#[test]
fn a_buffer_that_one_replica_returns_lets_the_other_begin() {
    check(2, || {
        let tested = Tested::with_replicas(2, 1, 1, 1, 1);
        tested.handover.update(|_, supply| supply.shared = true);
        let worker = tested.worker(0, good);
        let other = tested.consumer(1, 1);
        drop(tested.take_of(0, 0));
        other.join().unwrap();
        tested.end([worker]);
    });
}

#[test]
fn a_failure_or_seek_of_one_replica_does_not_change_the_other() {
    check(2, || {
        let tested = Tested::with_replicas(2, 1, 1, 2, 1);
        let fails = |_: &Tested, batch: &Batch| match (batch.replica, batch.p) {
            (0, 0) => Err("panic"),
            _ => Ok(()),
        };
        let worker = tested.worker(0, fails);
        let other = tested.consumer(1, 2);
        match tested.handover.take(0, PATIENT, &mut || false) {
            Err(Empty::Failed("panic")) => {}
            other => panic!("{:?}", other.err()),
        }
        tested.handover.seek(0, (0, 1));
        drop(tested.take_of(0, 1));
        other.join().unwrap();
        tested.end([worker]);
    });
}
