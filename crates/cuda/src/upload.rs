//! Uploads batches through two staging buffers and two streams. The host waits only until the copies of the batch before
//! the previous one are done, and if memory must grow.
//!
//! ```text
//! copy stream   │ batch 0: pixels ▶ staging 0, other arrays ▶ slot │ batch 1 ▶ staging 1, slot │ batch 2 ▶ staging 0, slot │
//! work stream                                                      │ kernels 0 ▶ slot          │ kernels 1 ▶ slot          │
//! ```
//! Pixels arrive as u8 in a staging buffer, and kernels write them normalised into a slot. Arrays that are delivered as they are
//! and the row data are copied into the slot itself. While the kernels run, the next batch is copied, so the copies follow each
//! other without a gap: all are on one stream, since a copy on another stream would wait for those that occupy the bus, and the
//! kernel behind it too.
//!
//! Batches may differ in size. A slot or a buffer that is too small for one is replaced, by one for the largest so far.

use crate::batch::DeviceBatch;
use crate::config::Config;
use crate::device::Device;
use crate::error::{During, Error, Result};
use crate::feed::{HostArray, HostBatch};
use crate::kernel::{Images, Kernel};
use crate::layout::{Arrival, Room, SlotLayout, StagedImages};
use crate::memory::{DeviceBuffer, DeviceMemory, PinnedAlloc, PinnedBuffer, Reservation};
use crate::reuse::{StagingReuse, wait_for_streams};
use crate::row_data;
use crate::slot::{Lease, Slot, SlotExchange};
use cudarc::driver::{CudaStream, result};
use shardtool_decode::PixelFormat;
use std::sync::Arc;

/// Uploads batches into slots, on the upload thread.
pub(crate) struct Uploader<B> {
    exchange: Arc<SlotExchange>,
    config: Config,
    /// `None` if the images of the configuration have none.
    kernel: Option<Kernel>,
    copy: Arc<CudaStream>,
    work: Arc<CudaStream>,
    device_memory: DeviceMemory,
    pinned: PinnedAlloc,
    /// Whether the first batch was mixed; `None` before.
    mixes: Option<bool>,
    /// Bytes of new slots.
    slot_bytes: usize,
    staging: Vec<Staging<B>>,
    /// Index of the staging buffer that the next batch goes through.
    next: usize,
}

/// Where the pixels of one upload arrive.
struct Staging<B> {
    /// `None` if the device normalises no images.
    pixels: Option<(DeviceBuffer, Reservation)>,
    /// Ids, `valid`, columns and packed rows, on the host.
    row_data: PinnedBuffer,
    /// The events that must pass before the kernel runs, and before this buffer and `host` are used again.
    reuse: StagingReuse,
    /// The batch that arrays are copied from.
    host: Option<B>,
}

impl<B> Staging<B> {
    /// Bytes of pixels that fit.
    fn pixel_bytes(&self) -> usize {
        self.pixels.as_ref().map_or(0, |(_, reservation)| reservation.bytes() as usize)
    }

    /// Address of the pixels; 0 without any.
    fn pixels(&self) -> u64 {
        self.pixels.as_ref().map_or(0, |(buffer, _)| buffer.address())
    }
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
        let output = config.normalization().filter(|output| output.pixel_format() == PixelFormat::RGB8);
        Ok(Uploader {
            exchange,
            kernel: output.map(|output| Kernel::load(device, *output)).transpose()?,
            copy: stream()?,
            work: stream()?,
            device_memory,
            pinned,
            mixes: None,
            slot_bytes: 0,
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
        let mut rows = batch.rows();
        if let Some(length) = batch.row_length() {
            row_data::pad(&mut rows, &self.config.padded, length);
        }
        let row_arrays = row_data::arrays(&rows);
        let layout = self.layout_of(&batch, &row_arrays, rows.valid.len())?;
        self.prepare_staging(&layout)?;
        let staging = &mut self.staging[self.next];
        let host: &B = staging.host.insert(batch);
        let mix = host.mix().filter(|mix| !mix.is_identity());
        self.copy.context().bind_to_thread().during("entering the device's context")?;
        staging.reuse.order_before(&self.copy)?;
        let pixels = staging.pixels.as_ref().map_or(0, |(buffer, _)| buffer.address());
        for (array, (_, arrival)) in same_arrays(host, &layout)?.iter().zip(layout.arrays()) {
            let Arrival::Normalized(StagedImages { bytes, .. }) = arrival else { continue };
            check_bytes(array, bytes.len())?;
            // SAFETY: the buffer has `layout.staging().used` bytes (`prepare_staging`), of which these are as many as the array
            // has, and the stream waits for its last kernel (`order_before`). The pixels stay where they are in `staging.host`,
            // which is dropped after this copy is done: `free_staging` waits for an event behind it, `upload` and `drop` for both
            // streams.
            unsafe { result::memcpy_htod_async(pixels + bytes.start as u64, array.bytes, self.copy.cu_stream()) }
                .during("queueing a copy")?;
        }
        let target = &mut staging.row_data.as_mut_slice()[..layout.pinned().used];
        layout.write_row_data(&row_arrays, mix, target);
        let mixed = mix.is_some();
        drop(row_arrays);

        let Some(slot) = self.acquire(layout.slot().used)? else { return Ok(None) };
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

    /// Queues the work that turns the current staging buffer and its host batch into a batch in `slot`; `mixed` says whether its
    /// rows are mixed.
    fn fill(&mut self, mut slot: Slot, layout: &SlotLayout, mixed: bool) -> Result<Slot> {
        let (staging, copy, work) = (&self.staging[self.next], &self.copy, &self.work);
        let filled = (|| {
            slot.order_before(copy)?;
            let to = slot.buffer.address();
            let host = staging.host.as_ref().expect("`queue` has put the batch there");
            for (array, (part, arrival)) in same_arrays(host, layout)?.iter().zip(layout.arrays()) {
                if *arrival != Arrival::Copied || part.bytes.is_empty() {
                    continue;
                }
                check_bytes(array, part.bytes.len())?;
                // SAFETY: the slot has `layout.slot().used` bytes (`acquire`), of which these are as many as the array has.
                // `order_before` made the stream wait for the slot's last upload and its consumers. The array stays where it is
                // in `staging.host` until this copy is done, as the pixels in `queue`.
                unsafe { result::memcpy_htod_async(to + part.bytes.start as u64, array.bytes, copy.cu_stream()) }
                    .during("queueing a copy")?;
            }
            let row_data = &staging.row_data.as_slice()[..layout.pinned().used];
            let target = to + layout.row_data().start as u64;
            // SAFETY: the row data are the last of the `layout.slot().used` bytes; the staging buffer keeps its side until this
            // copy is done (`free_staging`). The stream waits as above.
            unsafe { result::memcpy_htod_async(target, row_data, copy.cu_stream()) }.during("queueing a copy")?;
            staging.reuse.copied(copy, work)?;
            let mut mixes = layout.mixes().filter(|_| mixed).map(|start| to + start as u64);
            for (part, arrival) in layout.arrays() {
                let (Arrival::Normalized(StagedImages { bytes, n, hw, width }), Some(kernel)) = (arrival, &self.kernel)
                else {
                    continue;
                };
                let (from, to) = (staging.pixels() + bytes.start as u64, to + part.bytes.start as u64);
                let images = Images { from, to, n: *n, hw: *hw, width: *width };
                // SAFETY: this stream waits for all copies (`copied`). The staging buffer then holds [n, h, w, 3] u8 at `bytes`,
                // and `part` of the slot has room for as many values; both are aligned to 256 bytes, as are `DeviceBuffer`s. The
                // row data have the words of a `BatchMix` of the first images at `mixes`, also aligned to 256 bytes. `reuse` and
                // `ready`, recorded behind the kernels, keep all from being written before they are done.
                unsafe { kernel.launch(work, &images, mixes.take()) }?;
            }
            staging.reuse.read(work)?;
            slot.ready.record(work).during("recording an upload")
        })();
        if filled.is_err() {
            // The slot's memory is about to be freed.
            wait_for_streams(&[copy, work]);
        }
        filled.map(|()| slot)
    }

    /// Lays out a batch.
    fn layout_of(&mut self, batch: &B, row_arrays: &[row_data::RowArray<'_>], rows: usize) -> Result<Arc<SlotLayout>> {
        let mix = batch.mix();
        if let (Some(mix), Some(false)) = (mix, self.mixes) {
            return Err(Error::Mix { expected: None, found: mix.shape() });
        }
        let layout = SlotLayout::new(rows, &batch.arrays(), row_arrays, self.config.normalization(), mix)?;
        self.mixes.get_or_insert(mix.is_some());
        self.slot_bytes = self.slot_bytes.max(layout.slot().reserved);
        Ok(Arc::new(layout))
    }

    /// Allocates both staging buffers, and replaces the next one if it is too small.
    fn prepare_staging(&mut self, layout: &SlotLayout) -> Result<()> {
        let (pixels, row_data) = (layout.staging(), layout.pinned());
        let allocate = |room: Room| (room.used > 0).then(|| self.device_memory.allocate(room.reserved)).transpose();
        while self.staging.len() < STAGING {
            self.staging.push(Staging {
                pixels: allocate(pixels)?,
                row_data: self.pinned.buffer(row_data.reserved)?,
                reuse: StagingReuse::new(self.copy.context())?,
                host: None,
            });
        }
        let staging = &mut self.staging[self.next];
        if staging.row_data.as_slice().len() < row_data.used {
            // Its last copy is done (`free_staging`).
            staging.row_data = self.pinned.buffer(row_data.reserved)?;
        }
        if staging.pixel_bytes() < pixels.used {
            wait_for_streams(&[&self.copy, &self.work]);
            staging.pixels = None;
            staging.pixels = allocate(pixels)?;
        }
        Ok(())
    }

    /// Returns a slot to fill, of at least `bytes` bytes: a free one, a new one within the limits, or the next one that is
    /// released. `None` if the consumer is gone.
    fn acquire(&mut self, bytes: usize) -> Result<Option<Slot>> {
        let memory = &self.device_memory;
        let allocate = |others: bool| {
            let allocated = match memory.allocate(self.slot_bytes) {
                // Without what is reserved for larger batches.
                Err(Error::DeviceMemory(_)) if bytes < self.slot_bytes => memory.allocate(bytes),
                allocated => allocated,
            };
            match allocated {
                Ok((buffer, reservation)) => Slot::new(buffer, reservation).map(Ok),
                Err(Error::DeviceMemory(shortage)) if others => Ok(Err(shortage)),
                Err(error) => Err(error),
            }
        };
        self.exchange.fitting_slot(|slot| slot.bytes() >= bytes, allocate)
    }

    /// Ends an epoch: if memory is not to be kept, frees what exceeds `retain_bytes` until the consumer requests the
    /// next epoch.
    pub(crate) fn end_epoch(&mut self) {
        let Some(retain) = self.config.retain_bytes else { return };
        let usage = self.device_memory.usage();
        let above = || usage.now() > retain;
        let staging_bytes: u64 = self.staging.iter().map(|staging| staging.pixel_bytes() as u64).sum();
        if staging_bytes > retain {
            self.wait();
            self.staging.clear();
            self.next = 0;
        }
        self.exchange.idle(above, drop);
    }
}

/// Returns the arrays of a batch, which must be as many as were laid out.
fn same_arrays<'b, B: HostBatch>(batch: &'b B, layout: &SlotLayout) -> Result<Vec<HostArray<'b>>> {
    let arrays = batch.arrays();
    let (expected, found) = (layout.arrays().count(), arrays.len());
    if expected == found { Ok(arrays) } else { Err(Error::Arrays { expected, found }) }
}

/// Checks that an array has as many bytes as were laid out.
fn check_bytes(array: &HostArray<'_>, expected: usize) -> Result<()> {
    let found = array.bytes.len();
    if expected == found { Ok(()) } else { Err(Error::ArrayBytes { expected, found }) }
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
