use crate::dlpack::{self, Exported};
use crate::error::{Doing, Error, Result};
use crate::feed::Rows;
use crate::parts::{Element, Part, Parts, Value};
use crate::slot::Held;
use cudarc::driver::{CudaStream, CudaView};
use shardtool_decode::Output;
use std::fmt;
use std::sync::Arc;

/// A batch on the device. May be held as long as the caller likes, outlives its loader, and can be dropped on any thread;
/// while it is held its slot is not used again.
///
/// Its arrays may still be on their way: whoever asks for one names the stream that will use it, and that stream waits,
/// not the host. When the batch is dropped, what was queued on those streams is waited for by the next upload into its
/// slot; so queue the work first, then drop the batch.
pub struct DeviceBatch {
    held: Arc<Held>,
    parts: Arc<Parts>,
    output: Output,
    rows: Rows,
}

impl DeviceBatch {
    pub(crate) fn new(held: Held, parts: Arc<Parts>, output: Output, rows: Rows) -> Self {
        DeviceBatch { held: Arc::new(held), parts, output, rows }
    }

    /// N, rows that show no sample included.
    #[expect(clippy::len_without_is_empty, reason = "a batch has at least one row")]
    pub fn len(&self) -> usize {
        self.parts.pixels[0]
    }

    /// Type and layout of the images.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Ids, `valid`, labels and other columns on the host, and where in the epoch the batch stands.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// N of `cuda:N`.
    pub fn ordinal(&self) -> usize {
        self.held.slot().ready.context().ordinal()
    }

    /// Bytes of the pixels as they travelled: u8, N·H·W·3.
    pub fn pixel_bytes(&self) -> usize {
        self.parts.pixel_bytes()
    }

    /// Makes the host wait until the batch is there. Who uses it on a stream has no need to: see [`DeviceBatch::view`].
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn synchronize(&self) -> Result<()> {
        self.held.slot().ready.synchronize().doing("waiting for a batch")
    }

    /// Names of the columns that have an array here.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.parts.columns()
    }

    /// Shape of an array.
    ///
    /// # Errors
    /// [`Error::NoColumn`].
    pub fn shape(&self, part: Part<'_>) -> Result<&[usize]> {
        self.parts.place(part).map(|place| place.shape.as_slice())
    }

    /// Type of an array's values.
    ///
    /// # Errors
    /// [`Error::NoColumn`].
    pub fn element(&self, part: Part<'_>) -> Result<Element> {
        self.parts.place(part).map(|place| place.element)
    }

    /// An array's address on the device, for users of the CUDA array interface: work that is queued behind the legacy
    /// default stream from now on finds it there, as long as this batch is held. That interface does not say on which
    /// streams it is used: before its memory is used again, the whole device is waited for.
    ///
    /// # Errors
    /// [`Error::NoColumn`], and errors of the driver.
    pub fn address(&self, part: Part<'_>) -> Result<u64> {
        let place = self.parts.place(part)?;
        self.held.use_on(&self.held.slot().ready.context().default_stream())?;
        self.held.use_anywhere();
        Ok(self.held.slot().buffer.address() + place.bytes.start as u64)
    }

    /// An array, for work that is queued on `stream` from now on.
    ///
    /// # Errors
    /// [`Error::Type`] where `T` is not what the values are, [`Error::NoColumn`], and errors of the driver.
    pub fn view<T: Value>(&self, part: Part<'_>, stream: &Arc<CudaStream>) -> Result<CudaView<'_, T>> {
        let place = self.parts.place(part)?;
        place.expect::<T>()?;
        self.held.use_on(stream)?;
        let bytes = self.held.slot().buffer.slice().slice(place.bytes.clone());
        // SAFETY: these bytes hold values of type T, which was checked, aligned to 256 bytes; the upload writes nothing
        // else there, and `stream` waits for it.
        let view = unsafe { bytes.transmute::<T>(place.bytes.len() / size_of::<T>()) };
        view.ok_or(Error::Type { expected: "a part of the slot", found: T::NAME })
    }

    /// An array for another framework, through DLPack. `stream` is what that framework gives to `__dlpack__`: 1 its legacy
    /// default stream (also for none), 2 the per-thread one, above 2 a handle, −1 that it will see to the waiting.
    ///
    /// The array keeps the slot until the framework lets go of it. The work that uses it is waited for on the stream named
    /// here; where that is not known (2 or −1), the next upload waits for the whole device.
    ///
    /// # Errors
    /// [`Error::Stream`] for other numbers, [`Error::NoColumn`], and errors of the driver.
    ///
    /// # Safety
    /// A handle above 2 is a stream of this device's primary context, and lives until the array is let go of.
    pub unsafe fn export(&self, part: Part<'_>, stream: i64) -> Result<Exported> {
        let place = self.parts.place(part)?;
        let context = self.held.slot().ready.context();
        if stream < -1 || stream == 0 {
            return Err(Error::Stream(stream));
        }
        if stream > 0 {
            // SAFETY: 1 and 2 are the driver's own names for the default streams; for others the caller promises it.
            let stream = unsafe { context.wrap_borrowed_stream(stream as usize as _) };
            self.held.use_on(&stream)?;
        }
        // The per-thread stream is another one on the thread that lets go.
        if stream == -1 || stream == 2 {
            self.held.use_anywhere();
        }
        let device = dlpack::Device { kind: dlpack::CUDA, ordinal: self.ordinal() as i32 };
        let data = self.held.slot().buffer.address() + place.bytes.start as u64;
        let owner = Box::new(self.held.clone());
        // SAFETY: the address is that of the part, in this device's memory, which `owner` keeps.
        Ok(unsafe { Exported::new(owner, data as *mut _, device, place.element, &place.shape) })
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
