use crate::dlpack::{self, Exported};
use crate::error::{During, Error, Result};
use crate::feed::Rows;
use crate::layout::SlotLayout;
use crate::part::{Element, Part, Value};
use crate::slot::Lease;
use crate::view::View;
use cudarc::driver::CudaStream;
use shardtool_decode::Output;
use std::fmt;
use std::sync::Arc;

/// A batch on the device. It may be kept for any time, outlives its loader, and can be dropped on any thread; its slot
/// is not reused before.
///
/// Its arrays may still be uploading when it is delivered. Every method that returns an array takes the stream that
/// will use it: that stream waits for the upload, not the host. The next upload into the same slot waits for the work
/// that is queued on those streams when the batch is dropped; so queue the work first, then drop the batch.
pub struct DeviceBatch {
    lease: Arc<Lease>,
    layout: Arc<SlotLayout>,
    output: Output,
    rows: Rows,
}

impl DeviceBatch {
    pub(crate) fn new(lease: Lease, layout: Arc<SlotLayout>, output: Output, rows: Rows) -> Self {
        DeviceBatch { lease: Arc::new(lease), layout, output, rows }
    }

    /// Returns N, the number of rows, including rows without a sample.
    #[expect(clippy::len_without_is_empty, reason = "a batch has at least one row")]
    pub fn len(&self) -> usize {
        self.layout.rows()
    }

    /// Returns type, layout and normalisation of the images that are normalised.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Returns what the batch has on the host as well: ids, `valid`, labels and other columns, and its position in the epoch.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Moves the data on the host out of the batch, and leaves it empty.
    pub fn take_rows(&mut self) -> Rows {
        std::mem::take(&mut self.rows)
    }

    /// Returns the device number, the N of `cuda:N`.
    pub fn ordinal(&self) -> usize {
        self.lease.slot().buffer.context().ordinal()
    }

    /// Returns the number of bytes of images that were copied to the device: N·H·W·3 u8 of those that it normalises.
    pub fn pixel_bytes(&self) -> usize {
        self.layout.pixel_bytes()
    }

    /// Blocks the host until the upload is done. Work on a stream does not need this: see [`DeviceBatch::view`].
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn synchronize(&self) -> Result<()> {
        self.lease.slot().ready.synchronize().during("waiting for a batch")
    }

    /// Returns the names of the arrays.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.layout.parts()
    }

    /// Returns the shape of an array.
    ///
    /// # Errors
    /// [`Error::NoColumn`], [`Error::NoPart`].
    pub fn shape(&self, part: Part<'_>) -> Result<&[usize]> {
        self.layout.part(part).map(|part| part.shape.as_slice())
    }

    /// Returns the type of an array's values.
    ///
    /// # Errors
    /// [`Error::NoColumn`], [`Error::NoPart`].
    pub fn element(&self, part: Part<'_>) -> Result<Element> {
        self.layout.part(part).map(|part| part.element)
    }

    /// Returns an array for work that is queued on `stream` from now on. The stream waits for the upload.
    ///
    /// # Errors
    /// [`Error::Type`] if the values are not of type `T`, [`Error::StreamContext`] if `stream` does not belong to the
    /// primary context of this device, [`Error::NoColumn`], [`Error::NoPart`], and [`Error::Driver`].
    pub fn view<T: Value>(&self, part: Part<'_>, stream: &Arc<CudaStream>) -> Result<View<'_, T>> {
        let part = self.layout.part(part)?;
        part.expect::<T>()?;
        self.lease.use_on(stream)?;
        let address = self.lease.slot().buffer.address() + part.bytes.start as u64;
        // SAFETY: these bytes hold values of type `T`, as checked, aligned to 256 bytes (`SlotLayout`): the upload
        // writes rows of that type there, and 0 or 1 for `bool`. `use_on` made `stream` wait for the upload, and keeps
        // the slot from being written or freed before the work queued there until the lease is dropped, which this
        // borrow outlives.
        Ok(unsafe { View::new(address, part.bytes.len() / size_of::<T>(), stream.clone()) })
    }

    /// Returns an array's address for users of the CUDA array interface: work that is queued behind the legacy default
    /// stream from now on finds the array there, as long as this batch is alive.
    ///
    /// The interface does not say on which streams the array is used, so the next upload into this memory synchronises
    /// with the whole device first.
    ///
    /// # Errors
    /// [`Error::NoColumn`], [`Error::NoPart`], and [`Error::Driver`].
    pub fn address(&self, part: Part<'_>) -> Result<u64> {
        let part = self.layout.part(part)?;
        let buffer = &self.lease.slot().buffer;
        self.lease.use_on(&buffer.context().default_stream())?;
        self.lease.use_on_unknown_stream();
        Ok(buffer.address() + part.bytes.start as u64)
    }

    /// Exports an array to another framework through DLPack. `stream` is what that framework passes to `__dlpack__`: 1
    /// its legacy default stream (also for `None`), 2 the per-thread default stream, above 2 a stream handle, −1 if the
    /// framework orders its work itself.
    ///
    /// The slot is kept until the framework deletes the array. The next upload waits for the work that is queued by
    /// then on the given stream; if that stream is unknown (2 or −1), it waits for the whole device.
    ///
    /// # Errors
    /// [`Error::Stream`] for other numbers, [`Error::NoColumn`], [`Error::NoPart`], and [`Error::Driver`].
    ///
    /// # Safety
    /// A handle above 2 is a stream of this device's primary context, and stays valid until the array is deleted. The
    /// array is not written while views of it are used.
    pub unsafe fn export(&self, part: Part<'_>, stream: i64) -> Result<Exported> {
        let part = self.layout.part(part)?;
        let buffer = &self.lease.slot().buffer;
        match stream {
            -1 => self.lease.use_on_unknown_stream(),
            1.. => {
                // SAFETY: 1 and 2 are the driver's handles of the default streams; the caller guarantees other handles.
                let stream = unsafe { buffer.context().wrap_borrowed_stream(stream as usize as _) };
                self.lease.use_on(&stream)?;
            }
            other => return Err(Error::Stream(other)),
        }
        let device = dlpack::Device { kind: dlpack::CUDA, ordinal: self.ordinal() as i32 };
        let data = buffer.address() + part.bytes.start as u64;
        let owner = Box::new(self.lease.clone());
        // SAFETY: `data` is the address of the part (`SlotLayout`) in this device's memory, which the lease keeps.
        Ok(unsafe { Exported::new(owner, data as *mut _, device, part.element, &part.shape) })
    }
}

impl fmt::Debug for DeviceBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBatch")
            .field("epoch", &self.rows.epoch)
            .field("ids", &self.rows.ids)
            .finish_non_exhaustive()
    }
}
