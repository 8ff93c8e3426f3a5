//! Decides when the memory of an upload may be written again. CUDA works asynchronously, so memory is in use until an
//! event has passed:
//!
//! | memory | in use by | may be written again when |
//! |---|---|---|
//! | a slot: device memory of a delivered batch | the copies and kernels of its upload; streams of the consumer | the event recorded behind the kernels has passed, and those recorded on the consumer's streams when the batch was dropped; if a stream is unknown, the whole context is idle |
//! | a staging buffer on the device: u8 pixels | the copies and kernels of one upload | the event recorded behind the kernels has passed |
//! | its memory on the host (pinned): the batch that arrays are copied from, and the row data | the copies of the same upload | the event recorded behind the copies has passed |
//!
//! Uses of device memory are ordered between streams; the host waits only if a stream is unknown or memory is freed.
//! The host writes pinned memory itself, so it must wait for the event.

use crate::error::{During, Result};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, sys};
use std::sync::Arc;

/// The streams on which a delivered batch is used.
#[derive(Default)]
pub(crate) struct Consumers {
    streams: Vec<Arc<CudaStream>>,
    unknown: bool,
}

impl Consumers {
    /// Adds a stream.
    pub(crate) fn add(&mut self, stream: &Arc<CudaStream>) {
        // CU_STREAM_PER_THREAD denotes a different stream on the thread that drops the batch.
        self.unknown |= stream.cu_stream() as usize == 2;
        if !self.streams.contains(stream) {
            self.streams.push(stream.clone());
        }
    }

    /// Adds an unknown stream.
    pub(crate) fn add_unknown(&mut self) {
        self.unknown = true;
    }
}

/// The events that must pass before a slot is written again.
pub(crate) struct SlotReuse {
    context: Arc<CudaContext>,
    /// Events, reused from batch to batch; the first `pending` ones belong to the last batch.
    events: Vec<CudaEvent>,
    pending: usize,
    /// Whether an unknown stream used the last batch.
    unknown: bool,
}

impl SlotReuse {
    /// Creates the state of an unused slot.
    pub(crate) fn new(context: &Arc<CudaContext>) -> Self {
        SlotReuse { context: context.clone(), events: Vec::new(), pending: 0, unknown: false }
    }

    /// Records that work queued so far on the consumers' streams uses the batch.
    pub(crate) fn record(&mut self, consumers: Consumers) {
        self.unknown |= consumers.unknown;
        for stream in &consumers.streams {
            // If recording fails, `order_before` waits for the whole context, which reports a lost device.
            self.unknown |= self.record_on(stream).is_err();
        }
    }

    fn record_on(&mut self, stream: &CudaStream) -> Result<()> {
        if self.pending == self.events.len() {
            self.events.push(self.context.new_event(None).during("creating an event")?);
        }
        self.events[self.pending].record(stream).during("recording the end of a batch's use")?;
        self.pending += 1;
        Ok(())
    }

    /// Makes `stream` wait for the last batch's consumers. The host waits only if one of them is unknown.
    pub(crate) fn order_before(&mut self, stream: &CudaStream) -> Result<()> {
        // Forgotten only after every wait succeeded: otherwise `wait_before_free` waits for them.
        if self.unknown {
            self.context.synchronize().during("waiting for a consumer whose stream is unknown")?;
        }
        for event in &self.events[..self.pending] {
            stream.wait(event).during("ordering an upload after its slot's consumers")?;
        }
        (self.unknown, self.pending) = (false, 0);
        Ok(())
    }

    /// Waits on the host for the last batch's upload and consumers, before the slot's memory is freed.
    pub(crate) fn wait_before_free(&self, ready: &CudaEvent) {
        let events = std::iter::once(ready).chain(&self.events[..self.pending]);
        let failed = events.filter(|event| event.synchronize().is_err()).count();
        if failed > 0 || self.unknown {
            wait_for_all(&self.context);
        }
    }
}

/// Waits on the host until the streams are idle, before memory that they use is freed.
pub(crate) fn wait_for_streams(streams: &[&CudaStream]) {
    for stream in streams {
        if stream.synchronize().is_err() {
            wait_for_all(stream.context());
        }
    }
}

/// Waits on the host until the context is idle. An error means that the device is lost, so no work runs on it.
fn wait_for_all(context: &CudaContext) {
    let _ = context.synchronize();
}

/// The events of the last upload through a staging buffer.
pub(crate) struct StagingReuse {
    /// Recorded behind the copies.
    copied: CudaEvent,
    /// Recorded behind the kernel.
    read: CudaEvent,
}

impl StagingReuse {
    /// Creates the state of an unused staging buffer.
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Self> {
        let event = |flags| context.new_event(flags).during("creating an event");
        // With this flag, the upload thread sleeps during `wait` instead of spinning.
        Ok(StagingReuse { copied: event(Some(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC))?, read: event(None)? })
    }

    /// Makes `copy` wait until the buffer's last kernel is done.
    pub(crate) fn order_before(&self, copy: &CudaStream) -> Result<()> {
        copy.wait(&self.read).during("ordering a copy after the kernel before it")
    }

    /// Records that the copies are queued on `copy`, and makes `work` wait for them.
    pub(crate) fn copied(&self, copy: &CudaStream, work: &CudaStream) -> Result<()> {
        self.copied.record(copy).during("recording a copy")?;
        work.wait(&self.copied).during("ordering a kernel after its copy")
    }

    /// Records that the kernel is queued on `work`.
    pub(crate) fn read(&self, work: &CudaStream) -> Result<()> {
        self.read.record(work).during("recording an upload")
    }

    /// Waits on the host until the last copies through the buffer are done; returns at once if there were none.
    pub(crate) fn wait(&self) -> Result<()> {
        self.copied.synchronize().during("waiting for an upload")
    }
}
