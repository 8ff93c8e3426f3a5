//! The hand-over of batches from workers to consumers: one queue per replica, all under one lock.
//!
//! Workers begin the batches of a replica in order and complete them in any order; its consumer takes them in order.
//! Any thread may return a buffer. The traits [`Work`] (the contents of a batch) and [`Supply`] (when another batch may
//! begin) keep this folder independent of images and of memory planning, so that `tests/model.rs` can include it and
//! check every interleaving, with the types of a model checker in `super::sync`.
//!
//! ```text
//!   next (begin)             completed            take              give_back
//! ──────────────▶ building ───────────▶ complete ──────▶ held ───────────────▶ buffer in the supply
//!                     │                    │                                            ▲
//!                     └── seek, evict, failure before it: cancelled ────────────────────┘
//! ```

mod queue;

use super::sync::{Arc, Condvar, Instant, Mutex, MutexGuard};
use queue::Item;
pub(crate) use queue::{Position, Queue, Work};
use std::time::Duration;

/// Decides when work begins, and keeps its buffers. Called with the hand-over's lock held.
pub(crate) trait Supply: Sized {
    /// A batch.
    type Work: Work;
    /// The memory that work occupies.
    type Buffer;
    /// Why work cannot begin, or was not completed.
    type Error;
    /// Why no memory is left for a consumer that holds every batch.
    type Exhausted;

    /// Returns whether this worker is active at present.
    fn is_active(&self, worker: usize) -> bool;

    /// Returns whether the run ends before this position.
    fn ends_before(&self, position: Position) -> bool;

    /// Begins the work at [`Queue::next`] of a replica, if its share of memory allows it.
    fn begin(&mut self, queues: &[Queue<Self::Work, Self::Error>], replica: usize) -> Begin<Self::Work, Self::Error>;

    /// Returns why a replica whose queue is empty gets no work until its consumer, or another process, frees memory;
    /// `None` if work will begin without that.
    fn exhausted(&self, queue: &Queue<Self::Work, Self::Error>, replica: usize) -> Option<Self::Exhausted>;

    /// Records that every row of this work is done.
    fn completed(&mut self, work: &Self::Work);

    /// Records that a consumer took a batch after waiting for `waited`, while `ready` more were complete. Returns whether
    /// workers became active.
    fn delivered(&mut self, waited: Duration, ready: usize) -> bool;

    /// Takes a buffer back. Returns it if it is surplus, for the caller to free outside the lock.
    fn give_back(&mut self, buffer: Self::Buffer, closed: bool) -> Option<Self::Buffer>;

    /// Returns the buffers that are not in use, for the caller to free outside the lock.
    fn drain(&mut self) -> Vec<Self::Buffer>;
}

/// The result of [`Supply::begin`].
pub(crate) enum Begin<W, E> {
    /// The work, and the position after it.
    Work(Arc<W>, Position),
    /// There is not enough memory at present.
    Later,
    /// Its memory cannot be allocated.
    Failed(E),
}

/// What a consumer receives.
pub(crate) enum Delivery<W> {
    /// Complete work, and how long the consumer waited for it.
    Work(Arc<W>, Duration),
    /// The end of this epoch.
    EpochEnd(u64),
    /// The end of the last epoch, again.
    End,
}

/// Why a consumer receives nothing.
#[derive(Debug)]
pub(crate) enum Empty<E, X> {
    /// The next work failed, or could not begin.
    Failed(E),
    /// Work failed before, and the consumer has not moved since.
    Stopped,
    /// The consumer holds all the memory, so no other work can begin.
    Starved { held: usize, waited: Duration, why: X },
    /// The consumer's callback ended the wait.
    Interrupted,
}

/// What a waiting worker does next; see [`Handover::wait_for`].
pub(crate) enum Step<W, T> {
    /// The wait is over.
    Done(T),
    /// Drops these outside the lock, then decides again.
    Drop(Vec<Arc<W>>),
    /// Waits for a change, at most this long, then decides again.
    Wait(Duration),
}

/// The result of [`Handover::take`].
type Taken<S> = Result<Delivery<<S as Supply>::Work>, Empty<<S as Supply>::Error, <S as Supply>::Exhausted>>;

/// How often a waiting consumer's callback is called.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// Queues of work between workers and consumers.
pub(crate) struct Handover<S: Supply> {
    state: Mutex<State<S>>,
    /// Active workers wait here until there are rows to claim or work may begin. One of them is woken, and wakes another
    /// one if it finds work: what has no use for many workers wakes few.
    work: Condvar,
    /// Workers that are not active wait here.
    inactive: Condvar,
    /// Workers with a row in progress wait here; see [`Handover::wait_for`].
    row: Condvar,
    /// Consumers wait here until work is complete.
    ready: Condvar,
}

struct State<S: Supply> {
    queues: Vec<Queue<S::Work, S::Error>>,
    supply: S,
    closed: bool,
}

impl<S: Supply> Handover<S> {
    /// Creates the queues of `replicas` replicas, each at the beginning of epoch 0.
    pub(crate) fn new(replicas: usize, supply: S) -> Self {
        let queues = (0..replicas).map(|_| Queue::new()).collect();
        Handover {
            state: Mutex::new(State { queues, supply, closed: false }),
            work: Condvar::new(),
            inactive: Condvar::new(),
            row: Condvar::new(),
            ready: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // Under the lock, only an allocation of a few bytes could panic.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Worker: returns work with rows to claim, and how long the worker waited for it, if it did. Returns no work once
    /// the hand-over is closed.
    pub(crate) fn next(&self, worker: usize) -> (Option<Arc<S::Work>>, Option<Duration>) {
        let mut state = self.lock();
        let mut waiting = None;
        let work = loop {
            if state.closed {
                break None;
            }
            let active = state.supply.is_active(worker);
            if active && let Some(work) = self.open(&mut state) {
                // It may have more rows, and other work may begin.
                self.work.notify_one();
                break Some(work);
            }
            let waits = if active { &self.work } else { &self.inactive };
            if !active && waiting.is_some() {
                // It may have been woken when it was active.
                self.work.notify_one();
            }
            waiting.get_or_insert_with(Instant::now);
            state = waits.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        };
        (work, waiting.map(|since| since.elapsed()))
    }

    /// Returns work with rows to claim, preferably of the replica with the shortest queue.
    fn open(&self, state: &mut State<S>) -> Option<Arc<S::Work>> {
        let mut replicas: Vec<_> = (0..state.queues.len()).collect();
        replicas.sort_by_key(|replica| state.queues[*replica].queued());
        replicas.into_iter().find_map(|replica| match state.queues[replica].items.iter().rev().find_map(Item::work) {
            Some(work) if work.has_unclaimed() => Some(work.clone()),
            _ => self.begin(state, replica),
        })
    }

    /// Begins the next work of a replica, if the supply allows it.
    fn begin(&self, state: &mut State<S>, replica: usize) -> Option<Arc<S::Work>> {
        let State { queues, supply, .. } = state;
        let queue = &queues[replica];
        if queue.stopped || supply.ends_before(queue.next) {
            return None;
        }
        let begun = supply.begin(queues, replica);
        let queue = &mut queues[replica];
        match begun {
            Begin::Later => None,
            Begin::Failed(error) => {
                (queue.stopped, queue.error) = (true, Some(error));
                self.ready.notify_all();
                None
            }
            Begin::Work(work, after) => {
                let start = std::mem::replace(&mut queue.next, after);
                queue.live += 1;
                queue.items.push_back(Item::Work { work: work.clone(), start, after, failure: None });
                queue.first = after.0 != start.0;
                if queue.first {
                    queue.items.push_back(Item::EpochEnd);
                }
                Some(work)
            }
        }
    }

    /// Worker: the last row of this work is done.
    pub(crate) fn completed(&self, work: &S::Work) {
        // A consumer that saw the work incomplete did so under this lock, so it is waiting by now and is woken.
        self.lock().supply.completed(work);
        self.ready.notify_all();
    }

    /// Worker: reports that a row of this work failed. Work before it is still delivered, and no work after it begins.
    /// Ignored if the work was cancelled or has failed before, since the replica may have moved in the meantime.
    pub(crate) fn fail(&self, replica: usize, failed: &S::Work, error: S::Error) {
        let mut state = self.lock();
        if failed.is_cancelled() {
            return;
        }
        failed.cancel();
        let queue = &mut state.queues[replica];
        queue.stopped = true;
        for item in &mut queue.items {
            if let Item::Work { work, failure, .. } = item
                && std::ptr::eq(&**work, failed)
            {
                *failure = Some(error);
                break;
            }
        }
        drop(state);
        // Another worker may be waiting in `wait_for` with a row of this work.
        self.row.notify_all();
    }

    /// Worker, with a row of `work` in progress: waits until `decide` returns [`Step::Done`]. Returns `None` if the
    /// work is cancelled or the hand-over is closed during the wait.
    pub(crate) fn wait_for<T>(
        &self,
        work: &S::Work,
        mut decide: impl FnMut(&mut [Queue<S::Work, S::Error>], &mut S) -> Step<S::Work, T>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if work.is_cancelled() || state.closed {
                return None;
            }
            let State { queues, supply, .. } = &mut *state;
            match decide(queues, supply) {
                Step::Done(value) => return Some(value),
                Step::Drop(evicted) => {
                    drop(state);
                    drop(evicted);
                    // A worker that waits with a row of evicted work holds its buffer.
                    self.row.notify_all();
                    state = self.lock();
                }
                Step::Wait(most) => {
                    let woken = self.row.wait_timeout(state, most);
                    state = woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
                }
            }
        }
    }

    /// Consumer: takes the next delivery. If the consumer holds all the memory, waits at most `patience`. During the
    /// wait, calls `interrupted` about ten times per second, which may end the wait.
    pub(crate) fn take(&self, replica: usize, patience: Duration, interrupted: &mut dyn FnMut() -> bool) -> Taken<S> {
        let called = Instant::now();
        let mut starving: Option<Instant> = None;
        let (mut waited, mut asked) = (false, Duration::ZERO);
        let mut state = self.lock();
        loop {
            let State { queues, supply, .. } = &mut *state;
            let queue = &mut queues[replica];
            let kept = std::mem::replace(&mut queue.kept, queue.held);
            if queue.kept > kept.max(1) {
                // The supply may add batches for a consumer that keeps some.
                self.wake_one();
            }
            match queue.items.front() {
                Some(Item::Work { work, .. }) if work.is_complete() => {
                    return self.deliver(state, replica, if waited { called.elapsed() } else { Duration::ZERO });
                }
                Some(Item::Work { .. }) => starving = None,
                Some(Item::EpochEnd) => {
                    queue.items.pop_front();
                    return Ok(Delivery::EpochEnd(queue.delivered.0.saturating_sub(1)));
                }
                None if queue.stopped => return Err(queue.error.take().map_or(Empty::Stopped, Empty::Failed)),
                None if supply.ends_before(queue.next) => return Ok(Delivery::End),
                None => match supply.exhausted(queue, replica) {
                    Some(why) => {
                        let waited = starving.get_or_insert_with(Instant::now).elapsed();
                        if waited >= patience {
                            return Err(Empty::Starved { held: queue.held, waited, why });
                        }
                        // Memory may have been freed by other processes.
                        self.wake_one();
                    }
                    None => starving = None,
                },
            }
            waited = true;
            queue.waiting = true;
            // Those that wait for memory may learn that it is for the batch that is awaited.
            self.row.notify_all();
            let patience_left = starving.map_or(INTERRUPT_INTERVAL, |since| patience.saturating_sub(since.elapsed()));
            let woken = self.ready.wait_timeout(state, patience_left.min(INTERRUPT_INTERVAL));
            state = woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
            state.queues[replica].waiting = false;
            if called.elapsed() >= asked + INTERRUPT_INTERVAL {
                asked = called.elapsed();
                // The callback may wait for a thread that waits for the lock.
                drop(state);
                if interrupted() {
                    return Err(Empty::Interrupted);
                }
                state = self.lock();
            }
        }
    }

    /// Removes the front of a queue, which is complete.
    fn deliver(&self, mut state: MutexGuard<'_, State<S>>, replica: usize, waited: Duration) -> Taken<S> {
        let State { queues, supply, .. } = &mut *state;
        let queue = &mut queues[replica];
        let Some(Item::Work { work, after, failure, .. }) = queue.items.pop_front() else {
            unreachable!("the caller saw work at the front, under the same lock");
        };
        if let Some(error) = failure {
            let rest = std::mem::take(&mut queue.items);
            rest.iter().for_each(Item::cancel);
            drop(state);
            // Dropping work returns its buffer, which takes the lock.
            drop((rest, work));
            return Err(Empty::Failed(error));
        }
        queue.delivered = after;
        queue.held += 1;
        let more_active = supply.delivered(waited, queue.ready());
        drop(state);
        if more_active {
            self.inactive.notify_all();
        }
        self.wake_one();
        Ok(Delivery::Work(work, waited))
    }

    /// Any thread: records that the consumer dropped its work. The worker that completed it may still hold a reference.
    pub(crate) fn release(&self, replica: usize) {
        self.lock().queues[replica].held -= 1;
    }

    /// Any thread: returns a buffer for reuse.
    pub(crate) fn give_back(&self, replica: usize, buffer: S::Buffer) {
        let mut state = self.lock();
        state.queues[replica].live -= 1;
        let closed = state.closed;
        let surplus = state.supply.give_back(buffer, closed);
        drop(state);
        drop(surplus);
        self.wake_one();
    }

    /// Consumer: moves to another position and cancels the work begun for the old one.
    pub(crate) fn seek(&self, replica: usize, to: Position) {
        let mut state = self.lock();
        let queue = &mut state.queues[replica];
        (queue.next, queue.first, queue.delivered) = (to, true, to);
        (queue.stopped, queue.error) = (false, None);
        let cancelled = std::mem::take(&mut queue.items);
        cancelled.iter().for_each(Item::cancel);
        drop(state);
        drop(cancelled);
        self.wake_all();
    }

    /// Consumer: moves to the start of an epoch. If the consumer is already there, keeps the work begun for it.
    pub(crate) fn start_epoch(&self, replica: usize, epoch: u64) {
        let mut state = self.lock();
        let queue = &mut state.queues[replica];
        if queue.delivered == (epoch, 0) && !queue.stopped {
            if let Some(Item::EpochEnd) = queue.items.front() {
                queue.items.pop_front();
            }
            return;
        }
        drop(state);
        self.seek(replica, (epoch, 0));
    }

    /// Reads the state.
    pub(crate) fn read<T>(&self, f: impl FnOnce(&[Queue<S::Work, S::Error>], &S) -> T) -> T {
        let state = self.lock();
        f(&state.queues, &state.supply)
    }

    /// Changes the supply, and wakes the workers, since other work may begin now.
    pub(crate) fn update<T>(&self, f: impl FnOnce(&[Queue<S::Work, S::Error>], &mut S) -> T) -> T {
        let mut state = self.lock();
        let State { queues, supply, .. } = &mut *state;
        let value = f(queues, supply);
        drop(state);
        self.wake_all();
        value
    }

    /// Ends every worker's wait and cancels all work.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let buffers = state.supply.drain();
        let queues: Vec<_> = state.queues.iter_mut().map(|queue| std::mem::take(&mut queue.items)).collect();
        queues.iter().flatten().for_each(Item::cancel);
        drop(state);
        drop((buffers, queues));
        self.wake_all();
    }

    /// Wakes one worker, since work may begin, and those whose row waits for memory.
    fn wake_one(&self) {
        self.work.notify_one();
        self.row.notify_all();
    }

    fn wake_all(&self) {
        self.work.notify_all();
        self.inactive.notify_all();
        self.row.notify_all();
    }
}
