use crate::error::{Doing, Result, Shortage};
use crate::exchange::Exchange;
use crate::memory::{Counted, DeviceBuffer};
use cudarc::driver::{CudaEvent, CudaStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Device memory for one batch, and what must have happened before it is written again.
pub(crate) struct Slot {
    pub(crate) buffer: DeviceBuffer,
    /// The batch is there.
    pub(crate) ready: CudaEvent,
    /// One for each stream that used the last batch; the first `uses` count.
    consumed: Vec<CudaEvent>,
    uses: usize,
    /// Somebody used the last batch on a stream that we do not know.
    unknown: bool,
    _counted: Counted,
}

/// Hand-over of slots between the upload thread and the consumer.
pub(crate) type SlotExchange = Exchange<Slot, crate::batch::DeviceBatch, crate::Error, Shortage>;

impl Slot {
    pub(crate) fn new(buffer: DeviceBuffer, counted: Counted) -> Result<Self> {
        let ready = buffer.slice().context().new_event(None).doing("making an event")?;
        Ok(Slot { buffer, ready, consumed: Vec::new(), uses: 0, unknown: false, _counted: counted })
    }

    /// Makes `stream` wait until nobody uses the last batch any more. The host waits only for those it does not know.
    pub(crate) fn reuse_on(&mut self, stream: &CudaStream) -> Result<()> {
        if std::mem::take(&mut self.unknown) {
            stream.context().synchronize().doing("waiting for a consumer whose stream is not known")?;
        }
        for event in &self.consumed[..std::mem::take(&mut self.uses)] {
            stream.wait(event).doing("ordering an upload after its slot's consumer")?;
        }
        Ok(())
    }

    /// Notes that what is queued on `stream` by now uses the batch.
    fn used_on(&mut self, stream: &CudaStream) -> Result<()> {
        if self.uses == self.consumed.len() {
            self.consumed.push(self.ready.context().new_event(None).doing("making an event")?);
        }
        self.consumed[self.uses].record(stream).doing("recording the end of a batch's use")?;
        self.uses += 1;
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The memory goes back to the driver, which may give it to anyone: the host waits for its users. Errors mean that
        // the device is lost, and then nobody uses it.
        let _ = self.ready.synchronize();
        for event in &self.consumed[..self.uses] {
            let _ = event.synchronize();
        }
        if self.unknown {
            let _ = self.ready.context().synchronize();
        }
    }
}

/// A slot in the consumer's hands: shared by a batch and the tensors exported from it, given back with the last of them.
pub(crate) struct Held {
    /// `None` only while it is dropped.
    slot: Option<Slot>,
    exchange: Arc<SlotExchange>,
    users: Mutex<Users>,
}

#[derive(Default)]
struct Users {
    streams: Vec<Arc<CudaStream>>,
    unknown: bool,
}

impl Held {
    pub(crate) fn new(slot: Slot, exchange: Arc<SlotExchange>) -> Self {
        Held { slot: Some(slot), exchange, users: Mutex::default() }
    }

    pub(crate) fn slot(&self) -> &Slot {
        self.slot.as_ref().expect("there until it is dropped")
    }

    /// Makes `stream` wait for the batch, and remembers it: the slot is written again only after what is queued there by
    /// the time that this is dropped.
    pub(crate) fn use_on(&self, stream: &Arc<CudaStream>) -> Result<()> {
        stream.wait(&self.slot().ready).doing("making the consumer's stream wait for its batch")?;
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if !users.streams.contains(stream) {
            users.streams.push(stream.clone());
        }
        Ok(())
    }

    /// Somebody will use the batch without saying where.
    pub(crate) fn use_anywhere(&self) {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).unknown = true;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(mut slot) = self.slot.take() else { return };
        let users = std::mem::take(self.users.get_mut().unwrap_or_else(PoisonError::into_inner));
        slot.unknown = users.unknown;
        for stream in &users.streams {
            // What cannot be recorded is waited for in another way, and if the device is lost, that says so.
            slot.unknown |= slot.used_on(stream).is_err();
        }
        drop(self.exchange.release(slot));
    }
}
