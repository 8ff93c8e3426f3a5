//! Uploads batches through two staging buffers and two streams. The host waits only until a staging buffer's previous
//! upload is done.
//!
//! ```text
//! copy stream   │ pixels of batch 0 ▶ staging 0 │ batch 1 ▶ staging 1 │ batch 2 ▶ staging 0 │
//! work stream                                   │ row data, kernel 0  │ row data, kernel 1  │
//! ```
//! Pixels arrive as u8 in a staging buffer, and the kernel writes them normalised into a slot. While it runs, the next
//! batch is copied, so the copies follow each other without a gap.

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
use cudarc::driver::{CudaEvent, CudaStream, result};
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
    /// Recorded after the pixels have arrived.
    copied: CudaEvent,
    /// The event that must pass before this buffer and `host` are used again.
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

    /// Waits until the next staging buffer is free, and drops the host batch that was uploaded through it: the feed may
    /// need its memory for the next batch.
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
        // SAFETY: the buffer has `pixel_bytes` bytes, as many as `pixels`, and `free_staging` has waited for its last
        // kernel. The pixels stay where they are in `staging.host`, which is dropped after `reuse`, recorded behind
        // this copy, has passed (`free_staging`), or after `upload` or `drop` has waited for both streams.
        unsafe { result::memcpy_htod_async(staging.pixels.address(), pixels, self.copy.cu_stream()) }
            .during("queueing a copy")?;
        staging.copied.record(&self.copy).during("recording a copy")?;
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
        let (staging, work) = (&self.staging[self.next], &self.work);
        let filled = (|| {
            slot.reuse.order_before(work)?;
            work.wait(&staging.copied).during("ordering a kernel after its copy")?;
            let [n, h, w, _] = layout.pixels;
            let target = slot.buffer.address() + layout.row_data().start as u64;
            // SAFETY: the slot has `layout.total()` bytes, of which the row data are the last; the staging buffer keeps
            // its side until `reuse` has passed. `order_before` made this stream wait for the slot's last consumers.
            unsafe { result::memcpy_htod_async(target, staging.row_data.as_slice(), work.cu_stream()) }
                .during("queueing a copy")?;
            let (from, to) = (staging.pixels.address(), slot.buffer.address());
            let images = Images { from, to, n: n as u32, hw: (h * w) as u32, width: w as u32 };
            let mixes = layout.mixes().filter(|_| mixed).map(|start| to + start as u64);
            // SAFETY: the staging buffer holds [n, h, w, 3] u8 once `copied` has passed, and the slot begins with the
            // images; both come from `DeviceBuffer`, aligned to 256 bytes. The row data, copied above on this stream,
            // have the words of a `BatchMix` of [n, h, w] at `mixes` (`check_mix`), also aligned to 256 bytes. `reuse`
            // and `ready`, recorded behind the kernel, keep all from being written before it is done.
            unsafe { self.kernel.launch(work, &images, mixes) }?;
            staging.reuse.record(work)?;
            slot.ready.record(work).during("recording an upload")
        })();
        if filled.is_err() {
            // The slot's memory is about to be freed.
            wait_for_streams(&[work]);
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
                copied: context.new_event(None).during("creating an event")?,
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
