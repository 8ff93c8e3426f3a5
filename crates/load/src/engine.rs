//! What workers and callers share: which batch is next, which is being built, which is ready.

use crate::bad::{BadList, BadSample};
use crate::batch::{Memory, Slot};
use crate::budget::{Arithmetic, Limits, Reservation, ScratchPool, Usage};
use crate::error::{Error, Result};
use crate::memory::BatchAlloc;
use crate::notice::{Notice, Notices};
use crate::spec::Spec;
use crate::squeeze::Squeeze;
use crate::stats::{Meters, Stats};
use crate::tune::Tuning;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod pool;

/// How often whoever waits for a batch is asked whether to go on.
const ASK: Duration = Duration::from_millis(100);

pub(crate) struct Engine {
    pub(crate) spec: Spec,
    pub(crate) arithmetic: Arithmetic,
    /// Bytes of scratch that a worker keeps from one image to the next.
    pub(crate) keep: u64,
    pub(crate) scratch: ScratchPool,
    pub(crate) meters: Meters,
    pub(crate) bad: BadList,
    pub(crate) notices: Notices,
    pub(crate) limits: Limits,
    start: Instant,
    alloc: Arc<dyn BatchAlloc>,
    pub(crate) state: Mutex<State>,
    /// Workers wait here for something to do.
    pub(crate) work: Condvar,
    /// Callers wait here for a batch.
    ready: Condvar,
}

pub(crate) struct State {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) tuning: Tuning,
    stop: bool,
    free: Vec<Memory>,
    /// Batches of the budget whose memory exists, free or in use.
    planned: usize,
    /// Batches beyond the budget that are in memory.
    extra: usize,
    /// Bad samples at the last notice.
    noticed: u64,
    /// The most that a batch took beyond its plan so far, in bytes.
    unforeseen: u64,
    pub(crate) squeeze: Squeeze,
    pub(crate) reservation: Reservation,
    /// Bytes by which the budget has grown for images larger than foreseen.
    pub(crate) grown: u64,
}

/// One replica's batches, in order.
pub(crate) struct Lane {
    /// Where the next batch to be built stands.
    next: (u64, u64),
    /// That is the first batch of the lane's way through the epoch.
    fresh: bool,
    /// Where the caller stands.
    delivered: (u64, u64),
    queue: VecDeque<Item>,
    /// Batches in memory: being built, ready, or held by the consumer.
    pub(crate) live: usize,
    /// Batches that the consumer holds.
    held: usize,
    /// The caller is waiting for a batch.
    pub(crate) awaited: bool,
    /// Batches that the consumer held when it last asked for one.
    kept: usize,
    /// The limit that refused the lane's next batch.
    refused: Option<Usage>,
    /// No batch is begun any more, until the caller goes elsewhere.
    stopped: bool,
}

enum Item {
    Batch(Arc<Slot>),
    EpochEnd,
}

impl Item {
    /// Says that nobody wants the batch any more. Under the lock, so that who waits for room sees it.
    fn make_void(&self) {
        if let Item::Batch(slot) = self {
            slot.make_void();
        }
    }
}

impl Lane {
    fn new() -> Self {
        Lane {
            next: (0, 0),
            fresh: true,
            delivered: (0, 0),
            queue: VecDeque::new(),
            live: 0,
            held: 0,
            awaited: false,
            kept: 0,
            refused: None,
            stopped: false,
        }
    }

    fn queued(&self) -> usize {
        self.queue.iter().filter(|i| matches!(i, Item::Batch(_))).count()
    }

    pub(crate) fn ready(&self) -> usize {
        self.queue.iter().filter(|i| matches!(i, Item::Batch(b) if b.is_complete())).count()
    }

    pub(crate) fn is_front(&self, slot: &Slot) -> bool {
        matches!(self.queue.front(), Some(Item::Batch(front)) if std::ptr::eq(&**front, slot))
    }

    /// Takes back the last batch begun, to be begun anew later, unless it is the first or `but`.
    pub(crate) fn retract(&mut self, but: &Slot) -> Option<Arc<Slot>> {
        let at = self.queue.iter().rposition(|i| matches!(i, Item::Batch(_))).filter(|at| *at > 0)?;
        match &self.queue[at] {
            Item::Batch(slot) if std::ptr::eq(&**slot, but) || self.stopped => return None,
            _ => {}
        }
        let mut given_up = self.queue.split_off(at);
        let Some(Item::Batch(slot)) = given_up.pop_front() else { return None };
        self.next = (slot.epoch, slot.p);
        slot.make_void();
        Some(slot)
    }
}

/// What a caller gets.
pub(crate) enum Delivery {
    Batch(Arc<Slot>),
    EpochEnd,
}

impl Engine {
    pub(crate) fn new(
        spec: Spec,
        arithmetic: Arithmetic,
        (limits, reservation): (Limits, Reservation),
        tuning: Tuning,
        alloc: Arc<dyn BatchAlloc>,
    ) -> Self {
        let lanes = spec.ranks.iter().map(|_| Lane::new()).collect();
        Engine {
            keep: arithmetic.kept_scratch(),
            scratch: ScratchPool::new(arithmetic.scratch_bytes() - arithmetic.workers * arithmetic.kept_scratch()),
            meters: Meters::default(),
            bad: BadList::new(spec.max_bad),
            notices: Notices::default(),
            limits,
            start: Instant::now(),
            alloc,
            state: Mutex::new(State {
                lanes,
                tuning,
                stop: false,
                free: vec![],
                planned: 0,
                extra: 0,
                noticed: 0,
                unforeseen: 0,
                squeeze: Squeeze::default(),
                reservation,
                grown: 0,
            }),
            work: Condvar::new(),
            ready: Condvar::new(),
            arithmetic,
            spec,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rows for a worker: the next of the batch it is at, or of another; `None` when the loader ends. Waits while there
    /// is nothing to do.
    pub(crate) fn claim(self: &Arc<Self>, worker: usize, at: &mut Option<Arc<Slot>>) -> Option<Range<usize>> {
        loop {
            if let Some(rows) = at.as_ref().and_then(|slot| slot.claim(self.spec.claim())) {
                return Some(rows);
            }
            // Outside the lock, which a batch takes when it is dropped.
            *at = None;
            let mut state = self.lock();
            let mut waiting = None;
            let slot = loop {
                if state.stop {
                    break None;
                }
                if worker < state.tuning.workers
                    && let Some(slot) = self.open(&mut state)
                {
                    break Some(slot);
                }
                waiting.get_or_insert_with(Instant::now);
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            if let Some(since) = waiting {
                self.meters.slot_wait.add(since.elapsed(), 1);
            }
            *at = Some(slot?);
        }
    }

    /// A batch with rows to claim, of the lane that has the fewest batches.
    fn open(self: &Arc<Self>, state: &mut State) -> Option<Arc<Slot>> {
        let mut lanes: Vec<_> = (0..state.lanes.len()).collect();
        lanes.sort_by_key(|lane| state.lanes[*lane].queued());
        lanes.into_iter().find_map(|lane| {
            let last = state.lanes[lane].queue.iter().rev().find_map(|item| match item {
                Item::Batch(slot) => Some(slot),
                Item::EpochEnd => None,
            });
            match last {
                Some(slot) if slot.unclaimed() => Some(slot.clone()),
                _ => self.begin(state, lane),
            }
        })
    }

    /// Begins the lane's next batch, if there may be one.
    fn begin(self: &Arc<Self>, state: &mut State, number: usize) -> Option<Arc<Slot>> {
        let slots = state.squeeze.slots(self.slots(state), state.lanes.len());
        let lane = &mut state.lanes[number];
        let (epoch, p) = lane.next;
        if lane.stopped || self.spec.epochs.is_some_and(|n| epoch >= n) {
            return None;
        }
        // What the consumer keeps beyond the one batch at hand is its own, unless the budget was given.
        let kept = if self.arithmetic.given { 0 } else { lane.kept.saturating_sub(1) };
        if lane.live >= slots + kept || lane.queued() >= state.tuning.depth {
            return None;
        }
        let memory = match self.take_memory(state, number, slots) {
            Ok(Ok(memory)) => memory,
            Ok(Err(usage)) => {
                state.lanes[number].refused = Some(usage);
                return None;
            }
            Err(error) => {
                state.tuning.refused = Some(error);
                state.lanes[number].stopped = true;
                self.ready.notify_all();
                return None;
            }
        };
        let lane = &mut state.lanes[number];
        lane.refused = None;
        let after = self.spec.plan.schedule().after(epoch, p);
        let slot = Arc::new(Slot::new(self, number, (epoch, p), after, lane.fresh, memory));
        lane.live += 1;
        lane.next = after;
        lane.fresh = after.0 != epoch;
        lane.queue.push_back(Item::Batch(slot.clone()));
        if after.0 != epoch {
            lane.queue.push_back(Item::EpochEnd);
        }
        // Others may claim its rows as well.
        self.work.notify_all();
        Some(slot)
    }

    /// Says that rows of a batch are done.
    pub(crate) fn finish(&self, slot: &Slot, rows: usize) {
        if slot.finish(rows) {
            let mut state = self.lock();
            state.unforeseen = state.unforeseen.max(slot.unforeseen());
            drop(state);
            self.ready.notify_all();
        }
    }

    /// Ends a batch with an error: what comes before it is still delivered, nothing after it is begun. A batch that was
    /// given up, or has failed before, ends nothing: the lane may be elsewhere since.
    pub(crate) fn fail(&self, slot: &Slot, error: Error) {
        let mut state = self.lock();
        state.lanes[slot.lane].stopped |= !slot.is_void();
        slot.fail(error);
    }

    /// The lane's next batch; waits for it, and asks from time to time whether to go on waiting.
    pub(crate) fn next(&self, number: usize, interrupted: &mut dyn FnMut() -> bool) -> Result<Delivery> {
        let called = Instant::now();
        let mut starving: Option<Instant> = None;
        let (mut waited, mut asked) = (false, Duration::ZERO);
        let mut state = self.lock();
        loop {
            let slots = self.slots(&state);
            let lane = &mut state.lanes[number];
            let kept = std::mem::replace(&mut lane.kept, lane.held);
            if lane.kept > kept.max(1) && !self.arithmetic.given {
                self.work.notify_all();
            }
            match lane.queue.front() {
                Some(Item::EpochEnd) => {
                    lane.queue.pop_front();
                    let epoch = lane.delivered.0.saturating_sub(1);
                    self.count_bad(&mut state, epoch);
                    return Ok(Delivery::EpochEnd);
                }
                Some(Item::Batch(slot)) if slot.is_complete() => {
                    let slot = slot.clone();
                    lane.queue.pop_front();
                    if let Some(error) = slot.failure() {
                        // What is dropped here takes the lock.
                        let rest = std::mem::take(&mut lane.queue);
                        rest.iter().for_each(Item::make_void);
                        drop(state);
                        drop((rest, slot));
                        return Err(error);
                    }
                    lane.delivered = slot.after;
                    lane.held += 1;
                    let (ready, waited) = (lane.ready(), if waited { called.elapsed() } else { Duration::ZERO });
                    state.tuning.delivered(waited, ready, slots);
                    drop(state);
                    self.work.notify_all();
                    self.meters.caller_wait.add(waited, 1);
                    self.meters.samples.fetch_add(slot.valid_rows(), Ordering::Relaxed);
                    return Ok(Delivery::Batch(slot));
                }
                Some(Item::Batch(_)) => starving = None,
                None if lane.stopped => return Err(state.tuning.refused.take().unwrap_or(Error::Stopped)),
                None if self.spec.epochs.is_some_and(|n| lane.next.0 >= n) => return Ok(Delivery::EpochEnd),
                None if lane.refused.is_some() || (self.arithmetic.given && lane.live >= slots) => {
                    let since = *starving.get_or_insert_with(Instant::now);
                    let waited = since.elapsed();
                    if waited >= self.spec.starve_after {
                        let (held, usage) = (lane.held, lane.refused.clone().map(Box::new));
                        return Err(Error::Starved { held, slots, waited, usage });
                    }
                    // Memory may have been released elsewhere.
                    self.work.notify_all();
                }
                None => starving = None,
            }
            waited = true;
            state.lanes[number].awaited = true;
            let left = starving.map_or(ASK, |since| self.spec.starve_after.saturating_sub(since.elapsed()).min(ASK));
            state = self.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.lanes[number].awaited = false;
            if called.elapsed() >= asked + ASK {
                asked = called.elapsed();
                // Whoever is asked may wait for a thread that waits for the lock.
                drop(state);
                if interrupted() {
                    return Err(Error::Interrupted);
                }
                state = self.lock();
            }
        }
    }

    /// Reports bad samples that were met since the last notice.
    fn count_bad(&self, state: &mut State, epoch: u64) {
        let count = self.bad.count();
        if count > state.noticed.max(1) {
            state.noticed = count;
            self.notices.add(Notice::BadSamples { epoch, count });
        }
    }

    /// Adds a bad sample; the first one of the run is reported.
    pub(crate) fn add_bad(&self, sample: BadSample) -> Result<Arc<BadSample>> {
        let (sample, first) = self.bad.add(sample)?;
        if first {
            self.notices.add(Notice::BadSample(sample.clone()));
        }
        Ok(sample)
    }

    /// Sends a lane elsewhere: what was built ahead is given up.
    pub(crate) fn seek(&self, number: usize, (epoch, p): (u64, u64)) {
        let mut state = self.lock();
        let lane = &mut state.lanes[number];
        let at = self.spec.plan.schedule().settle(epoch, p);
        (lane.next, lane.fresh, lane.delivered, lane.stopped) = (at, true, at, false);
        let given_up = std::mem::take(&mut lane.queue);
        given_up.iter().for_each(Item::make_void);
        drop(state);
        drop(given_up);
        self.work.notify_all();
    }

    /// Begins `epoch`, keeping what was built ahead where it is the beginning of that epoch.
    pub(crate) fn start_epoch(&self, number: usize, epoch: u64) {
        let mut state = self.lock();
        let lane = &mut state.lanes[number];
        if lane.delivered == (epoch, 0) && !lane.stopped {
            if let Some(Item::EpochEnd) = lane.queue.front() {
                lane.queue.pop_front();
            }
            return;
        }
        drop(state);
        self.seek(number, (epoch, 0));
    }

    pub(crate) fn stats(&self) -> Stats {
        let state = self.lock();
        let (tuning, meters) = (&state.tuning, &self.meters);
        Stats {
            elapsed: self.start.elapsed(),
            data_wait: meters.data_wait.get(),
            read: meters.read.get(),
            decode: meters.decode.get(),
            resize: meters.resize.get(),
            slot_wait: meters.slot_wait.get(),
            caller_wait: meters.caller_wait.get(),
            caller_busy: meters.caller_busy.get(),
            bytes: meters.bytes.load(Ordering::Relaxed),
            samples: meters.samples.load(Ordering::Relaxed),
            bad: self.bad.count(),
            ready: state.lanes.iter().map(Lane::ready).sum(),
            held: state.lanes.iter().map(|lane| lane.held).sum(),
            workers: (tuning.workers, self.arithmetic.workers as usize),
            depth: tuning.depth,
            slots: self.slots(&state),
            extra: state.extra,
            why: tuning.why,
            memory: Arithmetic { budget: self.arithmetic.budget + state.grown, ..self.arithmetic.clone() },
            unit: if self.spec.image_size().is_some() { "images" } else { "records" },
        }
    }

    pub(crate) fn delivered(&self, number: usize) -> (u64, u64) {
        self.lock().lanes[number].delivered
    }

    pub(crate) fn is_stopping(state: &State) -> bool {
        state.stop
    }

    /// Tells every worker to end, and gives up what was built ahead.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stop = true;
        let free = std::mem::take(&mut state.free);
        let queues: Vec<_> = state.lanes.iter_mut().map(|l| std::mem::take(&mut l.queue)).collect();
        queues.iter().flatten().for_each(Item::make_void);
        drop(state);
        drop((free, queues));
        self.work.notify_all();
    }
}
