//! Room for an image that needs more scratch than there is beside the batches: fewer batches, for as long as it takes.

use crate::batch::Slot;
use crate::budget::{Admitted, FLOOR};
use crate::engine::{Engine, State};
use std::sync::PoisonError;
use std::time::Instant;

/// Who wants room, and who has it.
#[derive(Default)]
pub(crate) struct Squeeze {
    /// Workers that wait for room.
    waiting: usize,
    /// Batches that there may be fewer at present, through all lanes.
    fewer: usize,
}

impl Squeeze {
    /// Batches that a lane may have, of the `slots` that it may have otherwise.
    pub(crate) fn slots(&self, slots: usize, lanes: usize) -> usize {
        match (self.waiting, self.fewer) {
            (0, 0) => slots,
            (0, fewer) => ((slots * lanes).saturating_sub(fewer) / lanes).max(FLOOR as usize),
            _ => FLOOR as usize,
        }
    }
}

/// Scratch admitted to one image; given back when dropped.
pub(crate) struct Admission<'a> {
    engine: &'a Engine,
    squeezed: bool,
    needed: u64,
    held: Admitted<'a>,
}

impl Admission<'_> {
    /// Makes it one of `needed` bytes in all, if that takes no waiting.
    pub(crate) fn extend(&mut self, needed: u64) -> bool {
        let beyond = |needed: u64| needed.saturating_sub(self.engine.keep);
        let more = beyond(needed).saturating_sub(beyond(self.needed));
        let extended = self.held.extend(more);
        if extended {
            self.needed = self.needed.max(needed);
        }
        extended
    }
}

/// Why there is no scratch.
pub(crate) enum Refused {
    /// The batch is not wanted any more.
    Void,
    /// There can never be so much: this many bytes there can be.
    TooLarge(u64),
}

impl Engine {
    /// Waits for `needed` bytes of scratch for a row of `slot`.
    pub(crate) fn admit(&self, slot: &Slot, needed: u64) -> Result<Admission<'_>, Refused> {
        let beyond = needed.saturating_sub(self.keep);
        let squeezed = match self.scratch.admit(beyond) {
            Ok(held) => return Ok(Admission { engine: self, squeezed: false, needed, held }),
            Err(most) => self.make_room(slot, beyond, most)?,
        };
        // All there is beside the batches, in turn; what is still lacking was just taken from the batches.
        let held = self.scratch.admit(beyond).or_else(|most| self.scratch.admit(most));
        match held {
            Ok(held) => Ok(Admission { engine: self, squeezed, needed, held }),
            Err(most) => Err(Refused::TooLarge(self.keep + most)),
        }
    }

    /// Makes room for what `beyond` bytes exceed the pool's `most` by: batches that were begun after this one are taken
    /// back, no others are begun, and this one waits until its turn has come and there are few enough. Returns whether
    /// batches made the room; if not, the pool has grown.
    fn make_room(&self, slot: &Slot, beyond: u64, most: u64) -> Result<bool, Refused> {
        let mut state = self.lock();
        let lanes = state.lanes.len();
        let total = self.slots(&state) * lanes;
        let most_fewer = total.saturating_sub(FLOOR as usize * lanes);
        let fewer = (beyond - most).div_ceil(self.spec.batch_bytes()) as usize;
        if fewer > most_fewer {
            return match self.grow_scratch(&mut state, beyond - most) {
                true => Ok(false),
                false => Err(Refused::TooLarge(self.keep + most + most_fewer as u64 * self.spec.batch_bytes())),
            };
        }
        state.squeeze.waiting += 1;
        let mut hopeless: Option<Instant> = None;
        let outcome = loop {
            if slot.is_void() || Engine::is_stopping(&state) {
                break Err(Refused::Void);
            }
            let live = state.planned_live();
            if state.squeeze.fewer == 0 && live + fewer <= total {
                state.squeeze.fewer = fewer;
                break Ok(true);
            }
            let given_up: Vec<_> =
                state.lanes.iter_mut().filter(|l| l.live > FLOOR as usize).filter_map(|l| l.retract(slot)).collect();
            if !given_up.is_empty() {
                // Outside the lock, which a batch takes when it is dropped.
                drop(state);
                drop(given_up);
                state = self.lock();
                continue;
            }
            // The caller waits for this very batch and holds too many others: only it can make room, and will not.
            let lane = &state.lanes[slot.lane];
            if lane.awaited && lane.is_front(slot) && self.grow_scratch(&mut state, beyond - most) {
                break Ok(false);
            }
            let lane = &state.lanes[slot.lane];
            hopeless = (lane.awaited && lane.is_front(slot)).then(|| hopeless.unwrap_or_else(Instant::now));
            let left = hopeless.map_or(self.spec.starve_after, |h| self.spec.starve_after.saturating_sub(h.elapsed()));
            if left.is_zero() {
                break Err(Refused::TooLarge(self.keep + most));
            }
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        state.squeeze.waiting -= 1;
        drop(state);
        self.work.notify_all();
        outcome
    }

    /// Lets a default budget grow by `bytes` of scratch, if the system's limits allow it.
    fn grow_scratch(&self, state: &mut State, bytes: u64) -> bool {
        let planned = bytes <= self.arithmetic.may_grow().saturating_sub(state.grown);
        let grows = planned || (!self.arithmetic.given && self.limits.exceeded_by(bytes).is_none());
        if grows {
            state.grown += bytes;
            state.reservation.grow(bytes);
            self.scratch.grow(bytes);
        }
        grows
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.squeezed {
            self.engine.lock().squeeze.fewer = 0;
            self.engine.work.notify_all();
        }
    }
}
