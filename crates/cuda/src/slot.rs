use crate::batch::DeviceBatch;
use crate::error::{During, Error, Result, Shortage};
use crate::exchange::Exchange;
use crate::memory::{DeviceBuffer, Reservation};
use crate::reuse::{Consumers, SlotReuse};
use cudarc::driver::{CudaEvent, CudaStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Device memory for one batch.
pub(crate) struct Slot {
    pub(crate) buffer: DeviceBuffer,
    /// Recorded after the upload of the batch.
    pub(crate) ready: CudaEvent,
    /// The events that must pass before the next upload.
    pub(crate) reuse: SlotReuse,
    reservation: Reservation,
}

/// Hand-over of slots between the upload thread and the consumer.
pub(crate) type SlotExchange = Exchange<Slot, DeviceBatch, Error, Shortage>;

impl Slot {
    pub(crate) fn new(buffer: DeviceBuffer, reservation: Reservation) -> Result<Self> {
        let ready = buffer.context().new_event(None).during("creating an event")?;
        let reuse = SlotReuse::new(buffer.context());
        Ok(Slot { buffer, ready, reuse, reservation })
    }

    /// Returns its size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.reservation.bytes() as usize
    }

    /// Makes `stream` wait for the last upload, whose kernel reads the row data, and for the consumers of its batch.
    pub(crate) fn order_before(&mut self, stream: &CudaStream) -> Result<()> {
        stream.wait(&self.ready).during("ordering an upload after the last one into its slot")?;
        self.reuse.order_before(stream)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The driver may reuse freed memory at once, so the host waits for all work that uses it.
        self.reuse.wait_before_free(&self.ready);
    }
}

/// A slot whose batch was delivered: shared by the batch and the tensors exported from it, and released with the last
/// of them.
pub(crate) struct Lease {
    /// `None` only during `drop`.
    slot: Option<Slot>,
    exchange: Arc<SlotExchange>,
    consumers: Mutex<Consumers>,
}

impl Lease {
    pub(crate) fn new(slot: Slot, exchange: Arc<SlotExchange>) -> Self {
        Lease { slot: Some(slot), exchange, consumers: Mutex::default() }
    }

    pub(crate) fn slot(&self) -> &Slot {
        self.slot.as_ref().expect("taken only by `drop`")
    }

    /// Makes `stream` wait for the upload. The slot is written again only after the work that is queued on `stream`
    /// when the lease is dropped.
    ///
    /// # Errors
    /// [`Error::StreamContext`] if the stream belongs to another context, and [`Error::Driver`].
    pub(crate) fn use_on(&self, stream: &Arc<CudaStream>) -> Result<()> {
        let context = self.slot().buffer.context();
        // An event of this context cannot be recorded on a stream of another one.
        if stream.context() != context {
            return Err(Error::StreamContext { batch: context.ordinal(), stream: stream.context().ordinal() });
        }
        stream.wait(&self.slot().ready).during("making the consumer's stream wait for its batch")?;
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner).add(stream);
        Ok(())
    }

    /// Records that the batch is used on an unknown stream.
    pub(crate) fn use_on_unknown_stream(&self) {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner).add_unknown();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(mut slot) = self.slot.take() else { return };
        slot.reuse.record(std::mem::take(self.consumers.get_mut().unwrap_or_else(PoisonError::into_inner)));
        drop(self.exchange.release(slot));
    }
}
