//! The uploads themselves: two stages, two streams, no waiting on the host but for a stage's own last use.
//!
//! ```text
//! copy stream   │ pixels of batch 0 ▶ stage 0 │ batch 1 ▶ stage 1 │ batch 2 ▶ stage 0 │
//! work stream                                 │ side, kernel 0    │ side, kernel 1    │
//! ```
//! A stage is where pixels arrive as u8; a slot is where they lie normalised. The copies follow each other without a gap,
//! because the kernel of one batch runs while the next one is copied.

use crate::batch::DeviceBatch;
use crate::config::Config;
use crate::device::Device;
use crate::error::{Doing, Error, Result};
use crate::exchange::Acquired;
use crate::feed::{HostBatch, Rows};
use crate::kernel::Kernel;
use crate::memory::{Account, Counted, DeviceBuffer, PinnedAlloc, PinnedBuffer};
use crate::parts::Parts;
use crate::slot::{Held, Slot, SlotExchange};
use cudarc::driver::{CudaEvent, CudaStream, result, sys};
use std::sync::Arc;

/// Uploads batches into slots. Lives on the upload thread.
pub(crate) struct Ring<B> {
    exchange: Arc<SlotExchange>,
    config: Config,
    kernel: Kernel,
    copy: Arc<CudaStream>,
    work: Arc<CudaStream>,
    account: Account,
    pinned: PinnedAlloc,
    parts: Option<Arc<Parts>>,
    stages: Vec<Stage<B>>,
    turn: usize,
}

/// Where pixels arrive.
struct Stage<B> {
    pixels: DeviceBuffer,
    /// Ids, `valid` and columns, on the host.
    side: PinnedBuffer,
    /// The pixels have arrived.
    copied: CudaEvent,
    /// The slot is written: the stage, and the host batch, are free.
    done: CudaEvent,
    host: Option<B>,
    counted: Counted,
}

const STAGES: usize = 2;

impl<B: HostBatch> Ring<B> {
    pub(crate) fn new(
        device: &Device,
        config: Config,
        pinned: PinnedAlloc,
        account: Account,
        exchange: Arc<SlotExchange>,
    ) -> Result<Self> {
        let stream = || device.context().new_stream().doing("making a stream");
        Ok(Ring {
            exchange,
            kernel: Kernel::load(device, config.output)?,
            copy: stream()?,
            work: stream()?,
            account,
            pinned,
            parts: None,
            stages: Vec::with_capacity(STAGES),
            turn: 0,
            config,
        })
    }

    /// Waits until the next stage is free, and lets go of the host batch that was uploaded through it: the feed may need
    /// its memory for the next one.
    pub(crate) fn make_way(&mut self) -> Result<()> {
        if let Some(stage) = self.stages.get_mut(self.turn) {
            stage.done.synchronize().doing("waiting for an upload")?;
            stage.host = None;
        }
        Ok(())
    }

    /// Queues the upload of a batch; `None` when the consumer went away. After [`Ring::make_way`].
    pub(crate) fn upload(&mut self, batch: B) -> Result<Option<DeviceBatch>> {
        let uploaded = self.queue(batch);
        if !matches!(uploaded, Ok(Some(_))) {
            // Part of the work may be queued, with no event to tell when it is done.
            self.wait();
        }
        uploaded
    }

    fn queue(&mut self, batch: B) -> Result<Option<DeviceBatch>> {
        let rows = batch.rows();
        let parts = self.parts_of(&batch, &rows)?;
        if self.stages.len() < STAGES {
            self.add_stages(&parts)?;
        }
        let stage = &mut self.stages[self.turn];
        let pixels = stage.host.insert(batch).images().ok_or(Error::NoImages)?;
        self.copy.context().bind_to_thread().doing("entering the device's context")?;
        // SAFETY: the stage has as many bytes, and its last kernel is done; the pixels stay in `stage.host` until the event
        // `done` has passed, which is recorded behind this copy, or until `upload` has waited for it.
        unsafe { result::memcpy_htod_async(stage.pixels.address(), pixels, self.copy.cu_stream()) }
            .doing("queueing a copy")?;
        stage.copied.record(&self.copy).doing("recording a copy")?;
        parts.write_side(&rows, stage.side.as_mut_slice());

        let Some(slot) = self.acquire(&parts)? else { return Ok(None) };
        match self.fill(slot, &parts) {
            Ok(slot) => {
                self.turn = (self.turn + 1) % STAGES;
                let held = Held::new(slot, self.exchange.clone());
                Ok(Some(DeviceBatch::new(held, parts, self.config.output, rows)))
            }
            Err(error) => {
                self.exchange.lost();
                Err(error)
            }
        }
    }

    /// Queues what turns the current stage into a batch in `slot`.
    fn fill(&mut self, mut slot: Slot, parts: &Parts) -> Result<Slot> {
        let (stage, work) = (&self.stages[self.turn], &self.work);
        let filled = (|| {
            slot.reuse_on(work)?;
            work.wait(&stage.copied).doing("ordering a kernel after its copy")?;
            let [n, h, w, _] = parts.pixels;
            let side = slot.buffer.address() + parts.side().start as u64;
            // SAFETY: the slot has room for the side, which the stage keeps until `done` has passed; work that uses the
            // slot's last batch was waited for above.
            unsafe { result::memcpy_htod_async(side, stage.side.as_slice(), work.cu_stream()) }
                .doing("queueing a copy")?;
            // SAFETY: the stage holds [n, h, w, 3] u8 once `copied` has passed, the slot begins with room for the images,
            // both are aligned as the driver aligns; `done` and `ready` say when they may be used again.
            unsafe {
                self.kernel.launch(work, stage.pixels.address(), slot.buffer.address(), n as u32, (h * w) as u32)
            }?;
            stage.done.record(work).doing("recording an upload")?;
            slot.ready.record(work).doing("recording an upload")
        })();
        if filled.is_err() {
            // The slot's memory is about to be freed.
            let _ = work.synchronize();
        }
        filled.map(|()| slot)
    }

    fn parts_of(&mut self, batch: &B, rows: &Rows) -> Result<Arc<Parts>> {
        let found = batch.shape().ok_or(Error::NoImages)?;
        match &self.parts {
            Some(parts) if parts.pixels == found => Ok(parts.clone()),
            Some(parts) => Err(Error::Shape { expected: parts.pixels, found }),
            None => {
                let [n, h, w, _] = found;
                let fits = found[3] == 3 && n <= u32::MAX as usize && h * w <= u32::MAX as usize;
                if !fits || found.contains(&0) {
                    return Err(Error::Shape { expected: [n.max(1), h.max(1), w.max(1), 3], found });
                }
                Ok(self.parts.insert(Arc::new(Parts::new(found, rows, &self.config.output))).clone())
            }
        }
    }

    fn add_stages(&mut self, parts: &Parts) -> Result<()> {
        while self.stages.len() < STAGES {
            let bytes = parts.pixel_bytes();
            let (pixels, counted) = self.account.take(bytes as u64, || DeviceBuffer::new(&self.copy, bytes))?;
            let event = |flags| self.copy.context().new_event(flags).doing("making an event");
            self.stages.push(Stage {
                pixels,
                side: self.pinned.buffer(parts.side().len())?,
                copied: event(None)?,
                done: event(Some(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC))?,
                host: None,
                counted,
            });
        }
        Ok(())
    }

    /// A slot to fill: a free one, a new one within the limits, or the first that comes back.
    fn acquire(&mut self, parts: &Parts) -> Result<Option<Slot>> {
        let mut refused = None;
        loop {
            match self.exchange.acquire(refused) {
                Acquired::Slot(slot) => return Ok(Some(slot)),
                Acquired::Stopped => return Ok(None),
                Acquired::Grow => {
                    let make = || DeviceBuffer::new(&self.work, parts.total());
                    match self.account.take(parts.total() as u64, make) {
                        Ok((buffer, counted)) => {
                            let slot = Slot::new(buffer, counted)?;
                            self.exchange.grew();
                            return Ok(Some(slot));
                        }
                        Err(Error::DeviceMemory(shortage)) if self.exchange.slots() > 0 => refused = Some(shortage),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// An epoch's end: where memory is not to be kept, waits for the next epoch to be asked for, and meanwhile frees what
    /// comes back.
    pub(crate) fn rest(&mut self) {
        let Some(retain) = self.config.retain_bytes else { return };
        let held = self.account.held();
        let above = || held.now() > retain;
        let stage_bytes: u64 = self.stages.iter().map(|stage| stage.counted.bytes()).sum();
        if stage_bytes > retain {
            self.wait();
            self.stages.clear();
            self.turn = 0;
        }
        self.exchange.idle(above, drop);
    }
}

impl<B> Ring<B> {
    fn wait(&self) {
        // Errors mean that the device is lost, and nothing runs on it.
        let _ = (self.copy.synchronize(), self.work.synchronize());
    }
}

impl<B> Drop for Ring<B> {
    fn drop(&mut self) {
        // What is queued uses the stages' memory, on both sides.
        self.wait();
    }
}
