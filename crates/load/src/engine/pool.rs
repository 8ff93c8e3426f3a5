//! The memory of batches: how many there may be, allocated as they are needed, used again, freed.
//!
//! A lane may have `slots` batches by the budget. What the consumer keeps beyond the batch at hand is its own where the
//! budget was not given: then another batch is allocated in its place, until a limit of the system is reached.

use super::{Engine, State};
use crate::batch::Memory;
use crate::budget::Usage;
use crate::error::{Error, Result};
use crate::memory::{BatchAlloc, HostAlloc, Rows};
use crate::notice::Notice;

impl State {
    /// Batches of the budget that are being built, ready, or held by the consumer.
    pub(crate) fn planned_live(&self) -> usize {
        let live: usize = self.lanes.iter().map(|lane| lane.live).sum();
        live - self.extra
    }
}

impl Engine {
    /// Takes memory for the next batch of a lane: from the budget, unless the lane has its share already and another lane
    /// does not; else beyond the budget. Returns the usage of the limit that another batch would exceed.
    pub(super) fn take_memory(
        &self,
        state: &mut State,
        number: usize,
        slots: usize,
    ) -> Result<std::result::Result<Memory, Usage>> {
        let has_share = state.lanes[number].live >= slots;
        let others_lack = state.lanes.iter().enumerate().any(|(n, lane)| n != number && lane.live < slots);
        if !(has_share && others_lack) {
            if let Some(memory) = state.free.pop() {
                return Ok(Ok(memory));
            }
            if state.planned < self.slots(state) * state.lanes.len() {
                let memory = self.new_memory(&*self.alloc, false)?;
                state.planned += 1;
                return Ok(Ok(memory));
            }
        }
        // Pages of batches that are being built are not in use yet.
        let building: usize = state.lanes.iter().map(|lane| lane.queued() - lane.ready()).sum();
        if let Some(usage) = self.limits.exceeded_by((building as u64 + 1) * self.spec.batch_bytes()) {
            return Ok(Err(usage));
        }
        let memory = self.new_memory(&HostAlloc, true)?;
        state.extra += 1;
        let held = state.lanes.iter().map(|lane| lane.held).sum();
        self.notices.add(Notice::Growth { held, batch: self.spec.batch_bytes() });
        Ok(Ok(memory))
    }

    fn new_memory(&self, alloc: &dyn BatchAlloc, extra: bool) -> Result<Memory> {
        let batch = self.spec.batch;
        let rows = |alloc: &dyn BatchAlloc, row_bytes: usize| {
            let bytes = row_bytes * batch;
            let buffer = (bytes > 0).then(|| alloc.alloc(bytes)).transpose();
            let buffer = buffer.map_err(|source| Error::Alloc { bytes, source })?;
            Result::Ok(buffer.map(|buffer| Rows::new(buffer, batch, row_bytes)))
        };
        let images = rows(alloc, self.spec.image_bytes())?;
        let masks = rows(&HostAlloc, self.spec.mask_bytes())?;
        Ok(Memory::new(batch, &self.spec.columns, images, masks, extra))
    }

    /// Batches that a lane may have in memory by the budget.
    pub(crate) fn slots(&self, state: &State) -> usize {
        self.arithmetic.slots(state.unforeseen)
    }

    /// The consumer released a batch. A worker that has just finished it may hold its memory a moment longer.
    pub(crate) fn release(&self, lane: usize) {
        self.lock().lanes[lane].held -= 1;
    }

    /// Takes back the memory of a batch that nobody needs any more.
    pub(crate) fn give_back(&self, lane: usize, memory: Memory) {
        let mut state = self.lock();
        state.lanes[lane].live -= 1;
        let most = self.slots(&state) * state.lanes.len();
        let surplus = if memory.extra {
            state.extra -= 1;
            Some(memory)
        } else if state.stop || state.planned > most {
            state.planned -= 1;
            Some(memory)
        } else {
            state.free.push(memory);
            None
        };
        drop(state);
        drop(surplus);
        self.work.notify_all();
        self.ready.notify_all();
    }
}
