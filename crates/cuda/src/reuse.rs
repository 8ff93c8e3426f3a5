//! Decides when memory that a batch went through may be written again. CUDA works asynchronously, so memory is in use until
//! an event says that it is not:
//!
//! | memory | in use by | may be written again when |
//! |---|---|---|
//! | a slot: device memory of a delivered batch | streams of the consumer | the events recorded on those streams when the batch was dropped have passed; if a stream is not known, the whole context is idle |
//! | a staging buffer: device memory of u8 pixels and pinned memory of the row data | the copies and the kernel of one upload | the event recorded behind them has passed |
//! | the host batch that pixels are copied from (pinned) | the copy of the same upload | the same event has passed |
//!
//! Device memory orders streams, and the host waits only if a stream is not known or memory is freed; the host writes pinned
//! memory itself, so it has to wait for the event.

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
        // CU_STREAM_PER_THREAD is another stream on the thread that drops the batch.
        self.unknown |= stream.cu_stream() as usize == 2;
        if !self.streams.contains(stream) {
            self.streams.push(stream.clone());
        }
    }

    /// Adds a stream that is not known.
    pub(crate) fn add_unknown(&mut self) {
        self.unknown = true;
    }
}

/// What has to happen before a slot is written again.
pub(crate) struct SlotReuse {
    context: Arc<CudaContext>,
    /// Events, reused from batch to batch; the first `pending` ones belong to the last batch.
    events: Vec<CudaEvent>,
    pending: usize,
    /// A stream that used the last batch is not known.
    unknown: bool,
}

impl SlotReuse {
    /// A slot that nothing uses yet.
    pub(crate) fn new(context: &Arc<CudaContext>) -> Self {
        SlotReuse { context: context.clone(), events: Vec::new(), pending: 0, unknown: false }
    }

    /// Records that the batch is in use by the work that is queued on its consumers' streams by now.
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

    /// Makes `stream` wait for the last batch's consumers. The host waits only if one of them is not known.
    pub(crate) fn order_before(&mut self, stream: &CudaStream) -> Result<()> {
        if std::mem::take(&mut self.unknown) {
            self.context.synchronize().during("waiting for a consumer whose stream is not known")?;
        }
        for event in &self.events[..std::mem::take(&mut self.pending)] {
            stream.wait(event).during("ordering an upload after its slot's consumers")?;
        }
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

/// Waits on the host until the context is idle. An error means that the device is lost, and then nothing runs on it.
fn wait_for_all(context: &CudaContext) {
    let _ = context.synchronize();
}

/// What has to happen before a staging buffer, and the host batch that was uploaded through it, are written again.
pub(crate) struct StagingReuse(CudaEvent);

impl StagingReuse {
    /// A staging buffer that nothing uses yet.
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Self> {
        // The upload thread sleeps while it waits, rather than spins.
        let event = context.new_event(Some(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC)).during("creating an event")?;
        Ok(StagingReuse(event))
    }

    /// Records that the buffer is in use by the work that is queued on `stream` by now.
    pub(crate) fn record(&self, stream: &CudaStream) -> Result<()> {
        self.0.record(stream).during("recording an upload")
    }

    /// Waits on the host until the buffer's last upload is done; returns at once if there was none.
    pub(crate) fn wait(&self) -> Result<()> {
        self.0.synchronize().during("waiting for an upload")
    }
}
