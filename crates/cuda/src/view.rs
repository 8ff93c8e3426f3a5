use crate::error::{During, Error, Result};
use crate::part::Value;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut, result};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// An array of a batch, bound to the stream that [`DeviceBatch::view`](crate::DeviceBatch::view) was called with: that
/// stream waits for the upload, and the batch's memory is not written again before the work that is queued there until
/// the batch is dropped.
///
/// A view cannot be read on another stream by safe code, since that stream would not wait for the upload:
///
/// ```compile_fail,E0277
/// use shardtool_cuda::{DeviceBatch, Part, cudarc::driver::CudaStream};
/// use std::sync::Arc;
///
/// fn read_too_early(batch: &DeviceBatch, waits: &Arc<CudaStream>, other: &Arc<CudaStream>) {
///     let valid = batch.view::<bool>(Part::Valid, waits).unwrap();
///     other.clone_dtoh(&valid).unwrap();
/// }
/// ```
///
/// A view cannot outlive its batch:
///
/// ```compile_fail,E0505
/// use shardtool_cuda::{DeviceBatch, Part, cudarc::driver::CudaStream};
/// use std::sync::Arc;
///
/// fn read_too_late(batch: DeviceBatch, stream: &Arc<CudaStream>) {
///     let ids = batch.view::<i64>(Part::Ids, stream).unwrap();
///     drop(batch);
///     ids.to_host().unwrap();
/// }
/// ```
///
/// A view cannot be sent to another thread, because the per-thread default stream differs between threads:
///
/// ```compile_fail,E0277
/// fn send<T: Send>() {}
/// send::<shardtool_cuda::View<'static, i64>>();
/// ```
pub struct View<'a, T> {
    address: u64,
    len: usize,
    stream: Arc<CudaStream>,
    /// Borrows the batch. A raw pointer is neither `Send` nor `Sync`.
    batch: PhantomData<(&'a (), *const T)>,
}

impl<'a, T: Value> View<'a, T> {
    /// # Safety
    /// `address` is that of `len` initialised values of type `T` on the device of `stream`. Work queued on `stream`
    /// from now on finds them there, and they are neither written nor freed before the work that is queued there within
    /// `'a`.
    pub(crate) unsafe fn new(address: u64, len: usize, stream: Arc<CudaStream>) -> Self {
        View { address, len, stream, batch: PhantomData }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no values, as a ragged column of empty rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the array's address on the device, as an argument for kernels that are launched on the view's stream
    /// while the batch is alive. They must not write there: exported tensors of the batch show the same memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Copies the array to the host, and waits for the copy.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn to_host(&self) -> Result<Vec<T>> {
        let mut values = vec![T::default(); self.len];
        self.stream.context().bind_to_thread().during("entering the device's context")?;
        // SAFETY: `values` has `len` values, and the device has as many at `address` on this stream, as `View::new`
        // requires; `values` is used only after the stream was synchronised. Memory of the host that is not pinned is
        // copied before the call returns.
        unsafe { result::memcpy_dtoh_async(&mut values, self.address, self.stream.cu_stream()) }
            .during("copying an array to the host")?;
        self.stream.synchronize().during("waiting for a copy to the host")?;
        Ok(values)
    }

    /// Queues a copy of the array to the beginning of other device memory.
    ///
    /// # Errors
    /// [`Error::Room`] if `target` has fewer values than the array, [`Error::StreamContext`] if it belongs to another
    /// context, and [`Error::Driver`].
    pub fn copy_to(&self, target: &mut CudaSlice<T>) -> Result<()> {
        if target.len() < self.len {
            return Err(Error::Room { needed: self.len, found: target.len() });
        }
        // cudarc orders uses of `target` only within its context.
        let (context, of_target) = (self.stream.context(), target.stream().context());
        if !Arc::ptr_eq(context, of_target) {
            return Err(Error::StreamContext { batch: context.ordinal(), stream: of_target.ordinal() });
        }
        self.stream.context().bind_to_thread().during("entering the device's context")?;
        let bytes = self.len * size_of::<T>();
        let (target, _recorded_when_dropped) = target.device_ptr_mut(&self.stream);
        // SAFETY: both sides have `bytes` bytes: the array as `View::new` requires, the target as checked above. cudarc
        // orders this write with other uses of the target, which has the same context.
        unsafe { result::memcpy_dtod_async(target, self.address, bytes, self.stream.cu_stream()) }
            .during("queueing a copy on the device")
    }
}

impl<T: Value> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View of {} values of type {} at {:#x}", self.len, T::NAME, self.address)
    }
}
