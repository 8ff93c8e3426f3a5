//! Who has which slot: the hand-over between the thread that uploads and whoever consumes. Knows nothing of CUDA, so that
//! `tests/model.rs` can include this file and try every interleaving, with other types in `super::sync`.
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

/// What a consumer takes.
pub(crate) enum Delivery<B, E> {
    Batch(B),
    EpochEnd,
    Failed(E),
}

/// What the uploader gets to fill.
pub(crate) enum Acquired<S> {
    /// A slot that was used before.
    Slot(S),
    /// Leave to make one more.
    Grow,
    /// The consumer went away.
    Stopped,
}

/// Why a consumer goes away with nothing.
pub(crate) enum Empty<W> {
    /// It holds every slot.
    Starved {
        held: usize,
        waited: Duration,
        /// Why there are not more slots, when the uploader was refused one.
        why: Option<W>,
    },
    /// It was told to stop waiting.
    Interrupted,
}

/// How often whoever waits for a batch is asked whether to go on.
const ASK: Duration = Duration::from_millis(100);

/// Slots `S`, batches `B` (each owning a slot), errors `E` of the uploader, and reasons `W` for not growing.
pub(crate) struct Exchange<S, B, E, W> {
    state: Mutex<State<S, B, E, W>>,
    changed: Condvar,
}

struct State<S, B, E, W> {
    free: Vec<S>,
    ready: VecDeque<Delivery<B, E>>,
    held: usize,
    /// Slots that exist: free, filling, ready or held.
    slots: usize,
    most: usize,
    /// The uploader waits for a slot that only the consumer can give.
    short: bool,
    why: Option<W>,
    /// The consumer waits in `take`.
    wanted: bool,
    stopped: bool,
}

impl<S, B, E, W: Copy> Exchange<S, B, E, W> {
    /// At most `most` slots.
    pub(crate) fn new(most: usize) -> Self {
        Exchange {
            state: Mutex::new(State {
                free: Vec::with_capacity(most),
                ready: VecDeque::with_capacity(most + 1),
                held: 0,
                slots: 0,
                most,
                short: false,
                why: None,
                wanted: false,
                stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<S, B, E, W>> {
        // No code of others runs under this lock, so that a panic leaves the state whole.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<S, B, E, W>>) -> MutexGuard<'a, State<S, B, E, W>> {
        self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Uploader: a slot to fill, waiting for one where there may be no more. `refused`: why it could not make one when it
    /// was last given leave to.
    pub(crate) fn acquire(&self, refused: Option<W>) -> Acquired<S> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Acquired::Stopped;
            }
            if let Some(slot) = state.free.pop() {
                state.short = false;
                return Acquired::Slot(slot);
            }
            if refused.is_none() && state.slots < state.most {
                return Acquired::Grow;
            }
            state.why = refused;
            state.short = true;
            self.changed.notify_all();
            state = self.wait(state);
        }
    }

    /// Uploader: it made the slot that it was given leave for.
    pub(crate) fn grew(&self) {
        self.lock().slots += 1;
    }

    /// Uploader: the slot that it had acquired could not be filled, and is gone.
    pub(crate) fn lost(&self) {
        self.lock().slots -= 1;
    }

    /// Uploader: slots that exist.
    pub(crate) fn slots(&self) -> usize {
        self.lock().slots
    }

    /// Uploader: a batch in a slot that it had acquired. Hands it back when the consumer went away.
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

    /// Uploader: the epoch ended. Waits while the end before it was not yet taken, so that nothing runs away.
    pub(crate) fn end_epoch(&self) {
        let mut state = self.lock();
        while !state.stopped && state.ready.iter().any(|d| matches!(d, Delivery::EpochEnd)) {
            state = self.wait(state);
        }
        state.ready.push_back(Delivery::EpochEnd);
        self.changed.notify_all();
    }

    /// Uploader: it failed, and ends.
    pub(crate) fn fail(&self, error: E) {
        self.lock().ready.push_back(Delivery::Failed(error));
        self.changed.notify_all();
    }

    /// Uploader: waits until the consumer has taken everything and asks for more. Meanwhile slots that come back are given
    /// to `free`, as long as there are too many.
    pub(crate) fn idle(&self, too_many: impl Fn() -> bool, mut free: impl FnMut(S)) {
        let mut state = self.lock();
        while !(state.stopped || state.wanted && state.ready.is_empty()) {
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

    /// Consumer: what comes next. When it holds every slot itself, waits no longer than `patience`; while it waits,
    /// `interrupted` is asked from time to time whether to stop.
    pub(crate) fn take(
        &self,
        patience: Duration,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Delivery<B, E>, Empty<W>> {
        let mut state = self.lock();
        let mut starving: Option<Instant> = None;
        loop {
            if let Some(delivery) = state.ready.pop_front() {
                state.wanted = false;
                state.held += matches!(delivery, Delivery::Batch(_)) as usize;
                self.changed.notify_all();
                return Ok(delivery);
            }
            if !state.wanted {
                state.wanted = true;
                self.changed.notify_all();
            }
            let waiting = if state.short && state.free.is_empty() {
                let waited = starving.get_or_insert_with(Instant::now).elapsed();
                if waited >= patience {
                    state.wanted = false;
                    return Err(Empty::Starved { held: state.held, waited, why: state.why });
                }
                ASK.min(patience - waited)
            } else {
                starving = None;
                ASK
            };
            let in_vain;
            (state, in_vain) = self.wait_for(state, waiting);
            if in_vain {
                // Whoever is asked may wait for a thread that waits for the lock.
                drop(state);
                let stop = interrupted();
                state = self.lock();
                if stop {
                    state.wanted = false;
                    return Err(Empty::Interrupted);
                }
            }
        }
    }

    /// Waits for a change; with whether the time went by without one.
    fn wait_for<'a>(
        &self,
        state: MutexGuard<'a, State<S, B, E, W>>,
        most: Duration,
    ) -> (MutexGuard<'a, State<S, B, E, W>>, bool) {
        let (state, waited) = self.changed.wait_timeout(state, most).unwrap_or_else(|poisoned| poisoned.into_inner());
        (state, waited.timed_out())
    }

    /// Anyone, from any thread: a slot whose batch is gone. Hands it back to be freed when nobody will use it again.
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

    /// Uploader: whether the consumer went away.
    pub(crate) fn stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Consumer: no more. The uploader ends soon; then [`Exchange::clear`].
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// After the uploader has ended: everything that was ready, and the free slots, to be dropped by the caller. With
    /// `again`, a new uploader may start.
    pub(crate) fn clear(&self, again: bool) -> (VecDeque<Delivery<B, E>>, Vec<S>) {
        let mut state = self.lock();
        let ready = std::mem::take(&mut state.ready);
        state.held += ready.iter().filter(|d| matches!(d, Delivery::Batch(_))).count();
        state.stopped = !again;
        state.short = false;
        let free = if again { Vec::new() } else { std::mem::take(&mut state.free) };
        state.slots -= free.len();
        (ready, free)
    }

    /// Batches that are ready, and batches that the consumer holds.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.ready.iter().filter(|d| matches!(d, Delivery::Batch(_))).count(), state.held)
    }
}
