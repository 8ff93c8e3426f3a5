use crate::device::Device;
use crate::error::{Doing, Error, Result};
use cudarc::driver::{CudaSlice, CudaStream, result, sys};
use shardtool_load::{BatchAlloc, BatchBuffer};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pinned host memory for a loader's batches: workers write pixels where the device copies them from.
#[derive(Debug, Clone)]
pub struct PinnedAlloc {
    device: Device,
    write_combined: bool,
    bytes: Arc<AtomicU64>,
}

impl PinnedAlloc {
    /// Memory that every context of this process sees as pinned, through the CPU's caches as usual.
    pub fn new(device: &Device) -> Self {
        PinnedAlloc { device: device.clone(), write_combined: false, bytes: Arc::default() }
    }

    /// Memory past the CPU's caches: reading it from the CPU is very slow, so only for batches that are only written.
    pub fn write_combined(device: &Device) -> Self {
        PinnedAlloc { write_combined: true, ..Self::new(device) }
    }

    /// Bytes pinned now.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Pinned memory of `len` bytes, all zero.
    pub(crate) fn buffer(&self, len: usize) -> Result<PinnedBuffer> {
        let combined = if self.write_combined { sys::CU_MEMHOSTALLOC_WRITECOMBINED } else { 0 };
        self.device.context().bind_to_thread().doing("entering the device's context")?;
        // SAFETY: the driver is loaded and a context bound to this thread; the size is not 0.
        let start = unsafe { result::malloc_host(len.max(1), sys::CU_MEMHOSTALLOC_PORTABLE | combined) };
        let start = start.doing("pinning host memory")?.cast::<u8>();
        // SAFETY: the driver just gave `len` bytes there, which are this function's alone.
        unsafe { start.write_bytes(0, len) };
        self.bytes.fetch_add(len as u64, Ordering::Relaxed);
        let start = NonNull::new(start).expect("the driver gives memory or an error");
        Ok(PinnedBuffer { start, len, alloc: self.clone() })
    }
}

impl BatchAlloc for PinnedAlloc {
    fn alloc(
        &self,
        bytes: usize,
    ) -> std::result::Result<Box<dyn BatchBuffer>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Box::new(self.buffer(bytes)?))
    }
}

/// Pinned host memory, freed when it is dropped. Pages are pinned whole, so that its start is aligned to far more than 64.
pub(crate) struct PinnedBuffer {
    start: NonNull<u8>,
    len: usize,
    alloc: PinnedAlloc,
}

impl PinnedBuffer {
    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the memory is initialised, and lives as long as `self`; writing needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, for writing.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

// SAFETY: the buffer owns its memory alone; pinned memory belongs to the process, not to a thread.
unsafe impl Send for PinnedBuffer {}
// SAFETY: a shared reference gives reads only, and the pointer, whose use the caller answers for.
unsafe impl Sync for PinnedBuffer {}

// SAFETY: the memory is zeroed when it is made, aligned to a page, owned by this value and freed when it is dropped.
unsafe impl BatchBuffer for PinnedBuffer {
    fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        self.alloc.bytes.fetch_sub(self.len as u64, Ordering::Relaxed);
        // Without a context on this thread the driver cannot tell whose memory it is. Errors: see `DeviceBuffer`.
        let _ = self.alloc.device.context().bind_to_thread();
        // SAFETY: made by `malloc_host`, freed only here; nobody copies from it any more, because who queues a copy keeps
        // the buffer until the copy's event has passed.
        let _ = unsafe { result::free_host(self.start.as_ptr().cast()) };
    }
}

/// Device memory, freed when it is dropped. It comes from the driver itself, never from a pool that others share, so that
/// what is counted here is what the device gives.
pub(crate) struct DeviceBuffer(ManuallyDrop<CudaSlice<u8>>);

impl DeviceBuffer {
    /// `len` bytes, whatever they hold; `None` when the device has not so many. `stream` is the one that it is used on
    /// here.
    pub(crate) fn new(stream: &Arc<CudaStream>, len: usize) -> Result<Option<Self>> {
        stream.context().bind_to_thread().doing("entering the device's context")?;
        // SAFETY: the driver is loaded and a context bound to this thread; the size is not 0.
        let start = match unsafe { result::malloc_sync(len.max(1)) } {
            Err(e) if e.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => return Ok(None),
            start => start.doing("allocating device memory")?,
        };
        // SAFETY: `len` bytes lie there, and any bytes are valid as u8. The slice is never dropped, so that its own way of
        // freeing does not run.
        Ok(Some(DeviceBuffer(ManuallyDrop::new(unsafe { stream.upgrade_device_ptr(start, len) }))))
    }

    pub(crate) fn slice(&self) -> &CudaSlice<u8> {
        &self.0
    }

    /// Address on the device. Nothing is waited for: who uses it orders its streams.
    pub(crate) fn address(&self) -> u64 {
        use cudarc::driver::DevicePtr;
        self.0.device_ptr(self.0.stream()).0
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // SAFETY: taken only here, and not used afterwards.
        let slice = unsafe { ManuallyDrop::take(&mut self.0) };
        let context = slice.context().clone();
        // A drop cannot report. What makes these fail is a lost device or a process at its end, and then the memory is
        // gone anyway.
        let _ = context.bind_to_thread();
        // SAFETY: made by `malloc_sync`, freed only here; whoever drops the buffer has waited for its users' events.
        let _ = unsafe { result::free_sync(slice.leak()) };
    }
}

/// Device memory of one loader, against its limit.
pub(crate) struct Account {
    device: Device,
    limit: Option<u64>,
    held: Arc<Held>,
}

/// Bytes of an account, to watch from elsewhere.
#[derive(Default)]
pub(crate) struct Held {
    now: AtomicU64,
    most: AtomicU64,
}

impl Held {
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The most that were held at once so far.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

/// Counts its bytes while it lives.
pub(crate) struct Counted {
    bytes: u64,
    held: Arc<Held>,
}

impl Account {
    pub(crate) fn new(device: &Device, limit: Option<u64>) -> Self {
        Account { device: device.clone(), limit, held: Arc::default() }
    }

    /// Bytes that are held, to watch from elsewhere.
    pub(crate) fn held(&self) -> Arc<Held> {
        self.held.clone()
    }

    /// Takes `needed` bytes, if limit and device have them, by calling `make`, which answers `None` when the device has not
    /// so many after all.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] when they are not to be had; errors of the driver.
    pub(crate) fn take<T>(&self, needed: u64, make: impl FnOnce() -> Result<Option<T>>) -> Result<(T, Counted)> {
        let held = self.held.now();
        let (free, _) = self.device.memory()?;
        let fits = needed <= free && self.limit.is_none_or(|limit| held + needed <= limit);
        let made = if fits { make()? } else { None };
        let Some(made) = made else {
            return Err(Error::DeviceMemory(crate::error::Shortage { needed, free, held, limit: self.limit }));
        };
        let now = self.held.now.fetch_add(needed, Ordering::Relaxed) + needed;
        self.held.most.fetch_max(now, Ordering::Relaxed);
        Ok((made, Counted { bytes: needed, held: self.held.clone() }))
    }
}

impl Counted {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
