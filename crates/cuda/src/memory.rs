use crate::device::Device;
use crate::error::{During, Error, Result, Shortage};
use cudarc::driver::{CudaContext, result, sys};
use shardtool_load::{BatchAlloc, BatchBuffer};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Allocates pinned host memory for a loader's batches: workers write pixels there, and the device copies them
/// asynchronously.
#[derive(Debug, Clone)]
pub struct PinnedAlloc {
    device: Device,
    write_combined: bool,
    bytes: Arc<AtomicU64>,
}

impl PinnedAlloc {
    /// Returns an allocator of ordinary, cached memory that is pinned for all contexts of this process.
    pub fn new(device: &Device) -> Self {
        PinnedAlloc { device: device.clone(), write_combined: false, bytes: Arc::default() }
    }

    /// Returns an allocator of write-combined memory, which bypasses the CPU's caches: for batches that the CPU only
    /// writes, since reading it is very slow.
    pub fn write_combined(device: &Device) -> Self {
        PinnedAlloc { write_combined: true, ..Self::new(device) }
    }

    /// Returns the number of bytes that are pinned now.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Allocates `len` bytes, all zero.
    pub(crate) fn buffer(&self, len: usize) -> Result<PinnedBuffer> {
        let combined = if self.write_combined { sys::CU_MEMHOSTALLOC_WRITECOMBINED } else { 0 };
        self.device.context().bind_to_thread().during("entering the device's context")?;
        // SAFETY: a `Device` exists, so the driver is loaded; its context is bound to this thread; the size is not 0.
        let start = unsafe { result::malloc_host(len.max(1), sys::CU_MEMHOSTALLOC_PORTABLE | combined) };
        let start = start.during("pinning host memory")?.cast::<u8>();
        // SAFETY: the driver returned at least `len` bytes there, to which nothing else has a pointer.
        unsafe { start.write_bytes(0, len) };
        self.bytes.fetch_add(len as u64, Ordering::Relaxed);
        let start = NonNull::new(start).expect("the driver returns memory or an error");
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

/// Pinned host memory, freed on drop. It is aligned to a page, since only whole pages can be pinned.
pub(crate) struct PinnedBuffer {
    start: NonNull<u8>,
    len: usize,
    alloc: PinnedAlloc,
}

impl PinnedBuffer {
    /// Returns the bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `PinnedAlloc::buffer` initialised these bytes, which live as long as `self`; writing them needs
        // `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Returns the bytes for writing.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

// SAFETY: the buffer owns its memory exclusively, and pinned memory belongs to the process, not to a thread.
unsafe impl Send for PinnedBuffer {}
// SAFETY: `&PinnedBuffer` allows reading only, or returns the pointer, whose uses carry their own obligations.
unsafe impl Sync for PinnedBuffer {}

// SAFETY: `PinnedAlloc::buffer` returns zeroed memory that is aligned to a page; this value owns it and frees it on
// drop.
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
        // The driver frees memory of the context that is bound to the thread. Errors: see `DeviceBuffer`.
        let _ = self.alloc.device.context().bind_to_thread();
        // SAFETY: made by `malloc_host` and freed only here. No queued copy reads it: `Staging` and the host batch in
        // it are dropped only after their copies are done (`reuse`).
        let _ = unsafe { result::free_host(self.start.as_ptr().cast()) };
    }
}

/// Device memory, freed on drop. It is allocated from the driver, not from a shared pool, so that the bytes counted
/// here are those allocated on the device.
pub(crate) struct DeviceBuffer {
    context: Arc<CudaContext>,
    address: u64,
}

impl DeviceBuffer {
    /// Allocates `len` bytes, not initialised; `None` if the device does not have enough memory.
    fn new(context: &Arc<CudaContext>, len: usize) -> Result<Option<Self>> {
        context.bind_to_thread().during("entering the device's context")?;
        // SAFETY: a context exists, so the driver is loaded, and it is bound to this thread; the size is not 0.
        match unsafe { result::malloc_sync(len.max(1)) } {
            Ok(address) => Ok(Some(DeviceBuffer { context: context.clone(), address })),
            Err(e) if e.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            Err(error) => Err(error).during("allocating device memory"),
        }
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Returns the address on the device, aligned to 256 bytes. The caller orders the streams that use it.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // `drop` cannot return an error. These calls fail only if the device is lost or the process is ending, which
        // frees the memory anyway.
        let _ = self.context.bind_to_thread();
        // SAFETY: made by `malloc_sync` and freed only here; `Slot` and `Uploader` wait for the work that uses the
        // buffer before they drop it.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// Allocates the device memory of one loader, within its limit.
pub(crate) struct DeviceMemory {
    device: Device,
    limit: Option<u64>,
    usage: Arc<Usage>,
}

/// Bytes that are allocated now, and their peak.
#[derive(Default)]
pub(crate) struct Usage {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Usage {
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

/// Counts bytes as allocated until it is dropped.
pub(crate) struct Reservation {
    bytes: u64,
    usage: Arc<Usage>,
}

impl DeviceMemory {
    pub(crate) fn new(device: &Device, limit: Option<u64>) -> Self {
        DeviceMemory { device: device.clone(), limit, usage: Arc::default() }
    }

    pub(crate) fn usage(&self) -> Arc<Usage> {
        self.usage.clone()
    }

    /// Allocates `len` bytes.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] if the limit or the free device memory does not suffice, and [`Error::Driver`].
    pub(crate) fn allocate(&self, len: usize) -> Result<(DeviceBuffer, Reservation)> {
        let (needed, held) = (len as u64, self.usage.now());
        let (free, _) = self.device.memory()?;
        let fits = needed <= free && self.limit.is_none_or(|limit| held + needed <= limit);
        let buffer = if fits { DeviceBuffer::new(self.device.context(), len)? } else { None };
        let Some(buffer) = buffer else {
            return Err(Error::DeviceMemory(Shortage { needed, free, held, limit: self.limit }));
        };
        let now = self.usage.now.fetch_add(needed, Ordering::Relaxed) + needed;
        self.usage.peak.fetch_max(now, Ordering::Relaxed);
        Ok((buffer, Reservation { bytes: needed, usage: self.usage.clone() }))
    }
}

impl Reservation {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.usage.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
