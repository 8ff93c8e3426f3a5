//! Hands slots over between the upload thread and the consumer. It does not depend on CUDA, so that `tests/model.rs`
//! can include this file and check every interleaving with loom, whose locks it puts into `super::sync`.
//!
//! ```text
//!            acquire            publish             take             release
//!   (free) ──────────▶ filling ─────────▶ ready ──────────▶ held ─────────────▶ (free)
//!      ▲                  one at a time     in order           by the consumer     │
//!      └───────────────────────────────────────────────────────────────────────────┘
//! ```

use super::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What the consumer receives.
pub(crate) enum Delivery<B, E> {
    Batch(B),
    EpochEnd,
    Failed(E),
}

/// What the uploader receives to fill.
pub(crate) enum Acquired<S> {
    /// A free slot.
    Slot(S),
    /// Permission to allocate one more.
    Grow,
    /// The consumer is gone.
    Stopped,
}

/// Why the consumer receives nothing.
pub(crate) enum NoBatch<W> {
    /// It holds every slot.
    Exhausted {
        held: usize,
        waited: Duration,
        /// Why the uploader could not allocate another slot, if it tried.
        why: Option<W>,
    },
    /// `interrupted` returned true.
    Interrupted,
}

/// How often `interrupted` is called while the consumer waits.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// Slots `S`, batches `B` (each owns a slot), errors `E` of the uploader, and reasons `W` for not growing.
pub(crate) struct Exchange<S, B, E, W> {
    state: Mutex<State<S, B, E, W>>,
    changed: Condvar,
}

struct State<S, B, E, W> {
    free: Vec<S>,
    ready: VecDeque<Delivery<B, E>>,
    held: usize,
    /// Number of slots: free, filling, ready and held.
    slots: usize,
    max_slots: usize,
    /// The uploader waits for a slot that only the consumer can release.
    exhausted: bool,
    why: Option<W>,
    /// The consumer waits in `take`.
    consumer_waits: bool,
    stopped: bool,
}

impl<S, B, E, W: Copy> Exchange<S, B, E, W> {
    /// An exchange of at most `max_slots` slots.
    pub(crate) fn new(max_slots: usize) -> Self {
        Exchange {
            state: Mutex::new(State {
                free: Vec::with_capacity(max_slots),
                ready: VecDeque::with_capacity(max_slots + 1),
                held: 0,
                slots: 0,
                max_slots,
                exhausted: false,
                why: None,
                consumer_waits: false,
                stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<S, B, E, W>> {
        // Nothing that may panic runs under this lock, so a poisoned state is consistent.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<S, B, E, W>>) -> MutexGuard<'a, State<S, B, E, W>> {
        self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Uploader: returns a slot to fill; waits for a free one if no more may be allocated. `refused` is the reason why
    /// allocation failed after the last [`Acquired::Grow`].
    pub(crate) fn acquire(&self, refused: Option<W>) -> Acquired<S> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Acquired::Stopped;
            }
            if let Some(slot) = state.free.pop() {
                state.exhausted = false;
                return Acquired::Slot(slot);
            }
            if refused.is_none() && state.slots < state.max_slots {
                return Acquired::Grow;
            }
            state.why = refused;
            state.exhausted = true;
            self.changed.notify_all();
            state = self.wait(state);
        }
    }

    /// Uploader: returns a slot that `fits`: a free one, a new one, or the next one that is released. Frees slots that do not fit,
    /// so that larger ones take their memory. `allocate` returns the reason if memory is short for another one, and fails if its
    /// argument says that no other slot will be released. `None` if the consumer is gone.
    pub(crate) fn fitting_slot<X>(
        &self,
        fits: impl Fn(&S) -> bool,
        mut allocate: impl FnMut(bool) -> Result<Result<S, W>, X>,
    ) -> Result<Option<S>, X> {
        let mut refused = None;
        loop {
            match self.acquire(refused) {
                Acquired::Slot(slot) if fits(&slot) => return Ok(Some(slot)),
                Acquired::Slot(slot) => {
                    drop(slot);
                    self.lost();
                    refused = None;
                }
                Acquired::Stopped => return Ok(None),
                Acquired::Grow => match allocate(self.slots() > 0)? {
                    Ok(slot) => {
                        self.grew();
                        return Ok(Some(slot));
                    }
                    Err(reason) => refused = Some(reason),
                },
            }
        }
    }

    /// Uploader: records that it allocated a slot after [`Acquired::Grow`].
    pub(crate) fn grew(&self) {
        self.lock().slots += 1;
    }

    /// Uploader: records that its acquired slot could not be filled, and was freed.
    pub(crate) fn lost(&self) {
        self.lock().slots -= 1;
    }

    /// Uploader: returns the number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.lock().slots
    }

    /// Uploader: publishes a batch in a slot that it had acquired. Returns the batch if the consumer is gone.
    pub(crate) fn publish(&self, batch: B) -> Result<(), B> {
        let mut state = self.lock();
        if state.stopped {
            state.held += 1;
            return Err(batch);
        }
        state.ready.push_back(Delivery::Batch(batch));
        self.changed.notify_all();
        Ok(())
    }

    /// Uploader: publishes the end of an epoch. Waits until the consumer has taken the previous end, so that epochs
    /// without batches do not queue up.
    pub(crate) fn end_epoch(&self) {
        let mut state = self.lock();
        while !state.stopped && state.ready.iter().any(|d| matches!(d, Delivery::EpochEnd)) {
            state = self.wait(state);
        }
        state.ready.push_back(Delivery::EpochEnd);
        self.changed.notify_all();
    }

    /// Uploader: publishes its last delivery, an error.
    pub(crate) fn fail(&self, error: E) {
        self.lock().ready.push_back(Delivery::Failed(error));
        self.changed.notify_all();
    }

    /// Uploader: waits until the consumer has taken everything and waits for more. Meanwhile passes released slots to
    /// `free` as long as `too_many` returns true.
    pub(crate) fn idle(&self, too_many: impl Fn() -> bool, mut free: impl FnMut(S)) {
        let mut state = self.lock();
        while !(state.stopped || state.consumer_waits && state.ready.is_empty()) {
            match if too_many() { state.free.pop() } else { None } {
                Some(slot) => {
                    state.slots -= 1;
                    drop(state);
                    free(slot);
                    state = self.lock();
                }
                None => state = self.wait(state),
            }
        }
    }

    /// Consumer: returns the next delivery. If it holds every slot itself, waits at most `longest_wait`; while it
    /// waits, calls `interrupted` every [`INTERRUPT_INTERVAL`], and stops waiting once that returns true.
    pub(crate) fn take(
        &self,
        longest_wait: Duration,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Delivery<B, E>, NoBatch<W>> {
        let mut state = self.lock();
        let mut exhausted_since: Option<Instant> = None;
        loop {
            if let Some(delivery) = state.ready.pop_front() {
                state.consumer_waits = false;
                state.held += matches!(delivery, Delivery::Batch(_)) as usize;
                self.changed.notify_all();
                return Ok(delivery);
            }
            if !state.consumer_waits {
                state.consumer_waits = true;
                self.changed.notify_all();
            }
            let waiting = if state.exhausted && state.free.is_empty() {
                let waited = exhausted_since.get_or_insert_with(Instant::now).elapsed();
                if waited >= longest_wait {
                    state.consumer_waits = false;
                    return Err(NoBatch::Exhausted { held: state.held, waited, why: state.why });
                }
                INTERRUPT_INTERVAL.min(longest_wait - waited)
            } else {
                exhausted_since = None;
                INTERRUPT_INTERVAL
            };
            let timed_out;
            (state, timed_out) = self.wait_for(state, waiting);
            if timed_out {
                // `interrupted` may wait for a thread that waits for this lock (in Python, for the GIL).
                drop(state);
                let stop = interrupted();
                state = self.lock();
                if stop {
                    state.consumer_waits = false;
                    return Err(NoBatch::Interrupted);
                }
            }
        }
    }

    /// Waits for a change, and returns whether the wait timed out.
    fn wait_for<'a>(
        &self,
        state: MutexGuard<'a, State<S, B, E, W>>,
        timeout: Duration,
    ) -> (MutexGuard<'a, State<S, B, E, W>>, bool) {
        let (state, waited) =
            self.changed.wait_timeout(state, timeout).unwrap_or_else(|poisoned| poisoned.into_inner());
        (state, waited.timed_out())
    }

    /// Any thread: takes back the slot of a dropped batch. Returns it, to be freed, if the consumer is gone.
    pub(crate) fn release(&self, slot: S) -> Option<S> {
        let mut state = self.lock();
        state.held -= 1;
        if state.stopped {
            state.slots -= 1;
            return Some(slot);
        }
        state.free.push(slot);
        self.changed.notify_all();
        None
    }

    /// Uploader: returns whether the consumer is gone.
    pub(crate) fn stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Consumer: stops. The uploader ends soon; call [`Exchange::clear`] after that.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// After the uploader has ended: returns ready deliveries and free slots, for the caller to drop. With `restart`,
    /// keeps the free slots, and a new uploader may start.
    pub(crate) fn clear(&self, restart: bool) -> (VecDeque<Delivery<B, E>>, Vec<S>) {
        let mut state = self.lock();
        let ready = std::mem::take(&mut state.ready);
        state.held += ready.iter().filter(|d| matches!(d, Delivery::Batch(_))).count();
        state.stopped = !restart;
        state.exhausted = false;
        let free = if restart { Vec::new() } else { std::mem::take(&mut state.free) };
        state.slots -= free.len();
        (ready, free)
    }

    /// Returns the number of batches that are ready, and of those that the consumer holds.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.ready.iter().filter(|d| matches!(d, Delivery::Batch(_))).count(), state.held)
    }
}
