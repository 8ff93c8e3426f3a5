//! Uploads batches through two staging buffers and two streams. The host waits only until the copies of the batch before
//! the previous one are done.
//!
//! ```text
//! copy stream   │ batch 0: pixels ▶ staging 0, row data ▶ slot │ batch 1 ▶ staging 1, slot │ batch 2 ▶ staging 0, slot │
//! work stream                                                  │ kernel 0 ▶ slot           │ kernel 1 ▶ slot           │
//! ```
//! Pixels arrive as u8 in a staging buffer, and the kernel writes them normalised into a slot. While it runs, the next
//! batch is copied, so the copies follow each other without a gap: all are on one stream, since a copy on another stream
//! would wait for those that occupy the bus, and the kernel behind it too.

use crate::batch::DeviceBatch;
use crate::config::Config;
use crate::device::Device;
use crate::error::{During, Error, Result};
use crate::exchange::Acquired;
use crate::feed::{HostBatch, Rows};
use crate::kernel::{Images, Kernel};
use crate::layout::SlotLayout;
use crate::memory::{DeviceBuffer, DeviceMemory, PinnedAlloc, PinnedBuffer, Reservation};
use crate::reuse::{StagingReuse, wait_for_streams};
use crate::slot::{Lease, Slot, SlotExchange};
use cudarc::driver::{CudaStream, result};
use std::sync::Arc;

/// Uploads batches into slots, on the upload thread.
pub(crate) struct Uploader<B> {
    exchange: Arc<SlotExchange>,
    config: Config,
    kernel: Kernel,
    copy: Arc<CudaStream>,
    work: Arc<CudaStream>,
    device_memory: DeviceMemory,
    pinned: PinnedAlloc,
    layout: Option<Arc<SlotLayout>>,
    staging: Vec<Staging<B>>,
    /// Index of the staging buffer that the next batch goes through.
    next: usize,
}

/// Where the pixels of one upload arrive.
struct Staging<B> {
    pixels: DeviceBuffer,
    /// Ids, `valid` and columns, on the host.
    row_data: PinnedBuffer,
    /// The events that must pass before the kernel runs, and before this buffer and `host` are used again.
    reuse: StagingReuse,
    /// The batch that pixels are copied from.
    host: Option<B>,
    reservation: Reservation,
}

/// Number of staging buffers: one is copied to while the kernel reads the other.
const STAGING: usize = 2;

impl<B: HostBatch> Uploader<B> {
    pub(crate) fn new(
        device: &Device,
        config: Config,
        pinned: PinnedAlloc,
        device_memory: DeviceMemory,
        exchange: Arc<SlotExchange>,
    ) -> Result<Self> {
        let stream = || device.context().new_stream().during("creating a stream");
        Ok(Uploader {
            exchange,
            kernel: Kernel::load(device, config.output)?,
            copy: stream()?,
            work: stream()?,
            device_memory,
            pinned,
            layout: None,
            staging: Vec::with_capacity(STAGING),
            next: 0,
            config,
        })
    }

    /// Waits until the last copies through the next staging buffer are done, and drops the host batch that they read:
    /// the feed may need its memory for the next batch.
    pub(crate) fn free_staging(&mut self) -> Result<()> {
        if let Some(staging) = self.staging.get_mut(self.next) {
            staging.reuse.wait()?;
            staging.host = None;
        }
        Ok(())
    }

    /// Queues the upload of a batch, after [`Uploader::free_staging`]. Returns `None` if the consumer is gone.
    pub(crate) fn upload(&mut self, batch: B) -> Result<Option<DeviceBatch>> {
        let uploaded = self.queue(batch);
        if !matches!(uploaded, Ok(Some(_))) {
            // Part of the work may be queued, without an event recorded behind it.
            self.wait();
        }
        uploaded
    }

    fn queue(&mut self, batch: B) -> Result<Option<DeviceBatch>> {
        let rows = batch.rows();
        let layout = self.layout_of(&batch, &rows)?;
        if self.staging.len() < STAGING {
            self.add_staging(&layout)?;
        }
        let staging = &mut self.staging[self.next];
        let host: &B = staging.host.insert(batch);
        let pixels = host.images().ok_or(Error::NoImages)?;
        if pixels.len() != layout.pixel_bytes() {
            return Err(Error::PixelBytes { expected: layout.pixel_bytes(), found: pixels.len() });
        }
        let mix = host.mix().map(|mix| layout.check_mix(mix)).transpose()?.filter(|mix| !mix.is_identity());
        self.copy.context().bind_to_thread().during("entering the device's context")?;
        staging.reuse.order_before(&self.copy)?;
        // SAFETY: the buffer has `pixel_bytes` bytes, as many as `pixels`, and the stream waits for its last kernel
        // (`order_before`). The pixels stay where they are in `staging.host`, which is dropped after this copy is done:
        // `free_staging` waits for an event behind it, `upload` and `drop` for both streams.
        unsafe { result::memcpy_htod_async(staging.pixels.address(), pixels, self.copy.cu_stream()) }
            .during("queueing a copy")?;
        layout.write_row_data(&rows, mix, staging.row_data.as_mut_slice());
        let mixed = mix.is_some();

        let Some(slot) = self.acquire(&layout)? else { return Ok(None) };
        match self.fill(slot, &layout, mixed) {
            Ok(slot) => {
                self.next = (self.next + 1) % STAGING;
                let lease = Lease::new(slot, self.exchange.clone());
                Ok(Some(DeviceBatch::new(lease, layout, self.config.output, rows)))
            }
            Err(error) => {
                self.exchange.lost();
                Err(error)
            }
        }
    }

    /// Queues the work that turns the current staging buffer into a batch in `slot`; `mixed` says whether its rows are
    /// mixed.
    fn fill(&mut self, mut slot: Slot, layout: &SlotLayout, mixed: bool) -> Result<Slot> {
        let (staging, copy, work) = (&self.staging[self.next], &self.copy, &self.work);
        let filled = (|| {
            slot.order_before(copy)?;
            let [n, h, w, _] = layout.pixels;
            let target = slot.buffer.address() + layout.row_data().start as u64;
            // SAFETY: the slot has `layout.total()` bytes, of which the row data are the last; the staging buffer keeps
            // its side until this copy is done (`free_staging`). `order_before` made the stream wait for the slot's last
            // upload and its consumers.
            unsafe { result::memcpy_htod_async(target, staging.row_data.as_slice(), copy.cu_stream()) }
                .during("queueing a copy")?;
            staging.reuse.copied(copy, work)?;
            let (from, to) = (staging.pixels.address(), slot.buffer.address());
            let images = Images { from, to, n: n as u32, hw: (h * w) as u32, width: w as u32 };
            let mixes = layout.mixes().filter(|_| mixed).map(|start| to + start as u64);
            // SAFETY: this stream waits for both copies (`copied`). The staging buffer then holds [n, h, w, 3] u8, and
            // the slot begins with the images; both come from `DeviceBuffer`, aligned to 256 bytes. The row data have the
            // words of a `BatchMix` of [n, h, w] at `mixes` (`check_mix`), also aligned to 256 bytes. `reuse` and
            // `ready`, recorded behind the kernel, keep all from being written before it is done.
            unsafe { self.kernel.launch(work, &images, mixes) }?;
            staging.reuse.read(work)?;
            slot.ready.record(work).during("recording an upload")
        })();
        if filled.is_err() {
            // The slot's memory is about to be freed.
            wait_for_streams(&[copy, work]);
        }
        filled.map(|()| slot)
    }

    /// Returns the layout of the loader's slots, which the first batch decides.
    fn layout_of(&mut self, batch: &B, rows: &Rows) -> Result<Arc<SlotLayout>> {
        let found = batch.shape().ok_or(Error::NoImages)?;
        match &self.layout {
            Some(layout) if layout.pixels == found => Ok(layout.clone()),
            Some(layout) => Err(Error::Shape { expected: layout.pixels, found }),
            None => {
                let [n, h, w, _] = found;
                let fits = found[3] == 3 && n <= u32::MAX as usize && h * w <= u32::MAX as usize;
                if !fits || found.contains(&0) {
                    return Err(Error::Shape { expected: [n.max(1), h.max(1), w.max(1), 3], found });
                }
                let layout = SlotLayout::new(found, rows, &self.config.output, batch.mix().is_some());
                Ok(self.layout.insert(Arc::new(layout)).clone())
            }
        }
    }

    fn add_staging(&mut self, layout: &SlotLayout) -> Result<()> {
        while self.staging.len() < STAGING {
            let bytes = layout.pixel_bytes();
            let (pixels, reservation) = self.device_memory.allocate(bytes)?;
            let context = self.copy.context();
            self.staging.push(Staging {
                pixels,
                row_data: self.pinned.buffer(layout.row_data().len())?,
                reuse: StagingReuse::new(context)?,
                host: None,
                reservation,
            });
        }
        Ok(())
    }

    /// Returns a slot to fill: a free one, a new one within the limits, or the next one that is released. `None` if the
    /// consumer is gone.
    fn acquire(&mut self, layout: &SlotLayout) -> Result<Option<Slot>> {
        let mut refused = None;
        loop {
            match self.exchange.acquire(refused) {
                Acquired::Slot(slot) => return Ok(Some(slot)),
                Acquired::Stopped => return Ok(None),
                Acquired::Grow => match self.device_memory.allocate(layout.total()) {
                    Ok((buffer, reservation)) => {
                        let slot = Slot::new(buffer, reservation)?;
                        self.exchange.grew();
                        return Ok(Some(slot));
                    }
                    Err(Error::DeviceMemory(shortage)) if self.exchange.slots() > 0 => refused = Some(shortage),
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Ends an epoch: if memory is not to be kept, frees what exceeds `retain_bytes` until the consumer requests the
    /// next epoch.
    pub(crate) fn end_epoch(&mut self) {
        let Some(retain) = self.config.retain_bytes else { return };
        let usage = self.device_memory.usage();
        let above = || usage.now() > retain;
        let staging_bytes: u64 = self.staging.iter().map(|staging| staging.reservation.bytes()).sum();
        if staging_bytes > retain {
            self.wait();
            self.staging.clear();
            self.next = 0;
        }
        self.exchange.idle(above, drop);
    }
}

impl<B> Uploader<B> {
    /// Waits until all queued work is done.
    fn wait(&self) {
        wait_for_streams(&[&self.copy, &self.work]);
    }
}

impl<B> Drop for Uploader<B> {
    fn drop(&mut self) {
        // Queued work uses the staging buffers' memory, on the device and on the host.
        self.wait();
    }
}
