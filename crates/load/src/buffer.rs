//! Memory of batches: allocators, and rows that several threads write at once. The only unsafe code of this crate.

use crate::system;
use rustix::mm::madvise;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Allocates the memory of images. The loader reuses buffers, so this is called a few times per run.
pub trait BatchAlloc: Send + Sync {
    /// Allocates memory for the images of one batch: at least `bytes` bytes, aligned to 64.
    ///
    /// # Errors
    /// The allocator's own.
    fn alloc(&self, bytes: usize) -> Result<Box<dyn BatchBuffer>, Box<dyn std::error::Error + Send + Sync>>;
}

/// Memory of one batch, freed when dropped. `Any`, so that its allocator can downcast what
/// [`Batch::buffer`](crate::Batch::buffer) returns.
///
/// # Safety
/// `as_ptr` always returns the same pointer, aligned to 64 bytes, to `len` initialised bytes which stay valid for reads
/// and writes, from any thread, until this value is dropped (moving it changes nothing). Nothing else reads or writes them
/// while the loader fills the batch, or writes them while slices of the batch (`Batch::images`, `Batch::masks`) are used.
#[expect(clippy::len_without_is_empty, reason = "memory, not a collection")]
pub unsafe trait BatchBuffer: Any + Send + Sync {
    /// Returns a pointer to the first byte.
    fn as_ptr(&self) -> NonNull<u8>;
    /// Returns the number of bytes.
    fn len(&self) -> usize;
}

/// Ordinary memory of this process, aligned to 64 bytes: the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostAlloc;

impl BatchAlloc for HostAlloc {
    fn alloc(&self, bytes: usize) -> Result<Box<dyn BatchBuffer>, Box<dyn std::error::Error + Send + Sync>> {
        // Without alignment, the system returns zeroed memory of this size, page by page as it is written; with it, the
        // standard library would write zeros over all of it first.
        let layout = Layout::from_size_align(bytes.saturating_add(ALIGNMENT), 1)?;
        // SAFETY: the layout's size is at least `ALIGNMENT`, so not zero.
        let allocated = NonNull::new(unsafe { alloc_zeroed(layout) });
        let allocated = allocated.ok_or(std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
        let gap = allocated.as_ptr().align_offset(ALIGNMENT);
        // SAFETY: the gap is less than `ALIGNMENT`, so that start and `bytes` bytes from it lie in what was allocated.
        let start = unsafe { allocated.add(gap) };
        prefer_huge_pages(start, bytes);
        Ok(Box::new(HostBuffer { start, len: bytes, allocated, layout }))
    }
}

/// In bytes, as DLPack consumers and SIMD code expect.
const ALIGNMENT: usize = 64;

/// Advises the system to use huge pages: a batch is tens of megabytes, whose small pages would be faulted in one by
/// one.
fn prefer_huge_pages(start: NonNull<u8>, bytes: usize) {
    let (gap, bytes) = whole_pages(start.addr().get(), bytes, rustix::param::page_size());
    if let Some(advice) = system::HUGE_PAGES.filter(|_| bytes >= 2 << 20) {
        // SAFETY: the range is whole pages within the memory that `alloc` has just allocated and not shared yet; the advice
        // changes how the pages are backed, not their contents.
        let _ = unsafe { madvise(start.as_ptr().add(gap).cast(), bytes, advice) };
    }
}

/// Returns the distance from an address to the first page of `page` bytes, and the bytes of the whole pages in a range.
fn whole_pages(start: usize, bytes: usize, page: usize) -> (usize, usize) {
    let gap = start.next_multiple_of(page) - start;
    (gap, bytes.saturating_sub(gap) / page * page)
}

struct HostBuffer {
    start: NonNull<u8>,
    len: usize,
    /// What the global allocator returned, at or before `start`.
    allocated: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory exclusively, as a `Vec<u8>` does; no field is tied to a thread.
unsafe impl Send for HostBuffer {}
// SAFETY: a shared reference gives access to the pointer and the length only, which never change.
unsafe impl Sync for HostBuffer {}

// SAFETY: `alloc` zeroes the memory and aligns `start`; this value owns it exclusively and frees it when dropped.
unsafe impl BatchBuffer for HostBuffer {
    fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // SAFETY: `alloc` allocated it with this layout; nothing else frees it.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) }
    }
}

/// Bytes of any number in memory of their own, aligned to 64 bytes. Who owns the batch that they belong to may write them, as it may
/// write its images ([`BatchBuffer`]).
#[derive(Default)]
pub struct OwnedBytes {
    /// `None` for no bytes.
    buffer: Option<Box<dyn BatchBuffer>>,
    len: usize,
}

impl OwnedBytes {
    /// Allocates this many bytes, all 0.
    ///
    /// # Errors
    /// If the allocation fails.
    pub(crate) fn alloc(bytes: usize) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let buffer = if bytes > 0 { Some(HostAlloc.alloc(bytes)?) } else { None };
        Ok(OwnedBytes { buffer, len: bytes })
    }

    /// Copies bytes.
    ///
    /// # Panics
    /// If the allocation fails, as `Vec` does.
    pub fn of(bytes: &[u8]) -> Self {
        let mut owned = OwnedBytes::alloc(bytes.len()).expect("memory for a copy");
        owned.copy_from_slice(bytes);
        owned
    }

    /// Returns the number of bytes that were allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len())
    }

    /// Makes it `len` of the bytes that were allocated.
    ///
    /// # Panics
    /// If these are fewer.
    pub(crate) fn cut(self, len: usize) -> Self {
        assert!(len <= self.capacity(), "{len} of {} bytes", self.capacity());
        OwnedBytes { len, ..self }
    }

    /// Returns a pointer to the first byte; dangling for no bytes.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.buffer.as_ref().map_or(NonNull::dangling(), |buffer| buffer.as_ptr())
    }
}

impl Deref for OwnedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer has at least `len` initialised bytes (`cut`, contract of `BatchBuffer`), and the borrow of `self` keeps
        // it alive; nothing writes them while slices are used (the type's contract). Without a buffer `len` is 0.
        unsafe { std::slice::from_raw_parts(self.as_ptr().as_ptr(), self.len) }
    }
}

impl DerefMut for OwnedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr().as_ptr(), self.len) }
    }
}

impl Clone for OwnedBytes {
    fn clone(&self) -> Self {
        OwnedBytes::of(self)
    }
}

impl PartialEq for OwnedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for OwnedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedBytes").field("len", &self.len).finish_non_exhaustive()
    }
}

/// A buffer of rows of equal length. Each row is written by one thread; the buffer is read after all rows are done.
///
/// It is sound because each row can be taken only once (its flag), and the buffer can be read only after every row was
/// returned (the count). Before that, all rows may be borrowed once more for writing, by one thread. Flags and count are reset
/// only through `&mut self`.
pub(crate) struct RowBuffer {
    buffer: Box<dyn BatchBuffer>,
    row_bytes: usize,
    taken: Vec<AtomicBool>,
    /// The number of rows that are done, up to all; then [`SHARED`] or [`EXCLUSIVE`].
    done: AtomicUsize,
}

/// All rows are done, and were returned for reading.
const SHARED: usize = usize::MAX;
/// All rows are done, and are borrowed for writing.
const EXCLUSIVE: usize = usize::MAX - 1;

impl RowBuffer {
    /// Divides a buffer into `rows` rows of `row_bytes` bytes.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(crate) fn new(buffer: Box<dyn BatchBuffer>, rows: usize, row_bytes: usize) -> Self {
        let mut divided = RowBuffer { buffer, row_bytes: 0, taken: vec![], done: AtomicUsize::new(0) };
        divided.divide(rows, row_bytes);
        divided
    }

    /// Divides the buffer into other rows, none of which is taken.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(crate) fn divide(&mut self, rows: usize, row_bytes: usize) {
        let fits = rows.checked_mul(row_bytes).is_some_and(|bytes| bytes <= self.buffer.len());
        assert!(fits, "the allocator returned as many bytes as requested");
        self.row_bytes = row_bytes;
        self.taken.resize_with(rows, AtomicBool::default);
        self.reset();
    }

    /// Returns a row for writing. Dropping it marks the row as done.
    ///
    /// # Panics
    /// If the row was taken before.
    pub(crate) fn take(&self, row: usize) -> RowMut<'_> {
        assert!(!self.taken[row].swap(true, Ordering::Relaxed), "row {row} can be taken once");
        // SAFETY: `divide` has checked that all rows lie in the buffer, which is valid for reads and writes until it is
        // dropped (contract of `BatchBuffer`), and the borrow of `self` keeps it alive. The flag shows that this row
        // was not taken before, rows do not overlap, and `bytes` returns nothing until this row is done: the reference
        // is exclusive.
        let bytes = unsafe {
            let start = self.buffer.as_ptr().add(row * self.row_bytes);
            std::slice::from_raw_parts_mut(start.as_ptr(), self.row_bytes)
        };
        RowMut { bytes, done: &self.done }
    }

    /// Calls `change` with all rows.
    ///
    /// # Panics
    /// If a row is not done, or the rows were read before.
    pub(crate) fn change_all(&self, change: impl FnOnce(&mut [u8])) {
        let all = self.taken.len();
        let taken = self.done.compare_exchange(all, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed);
        assert!(taken.is_ok(), "rows change after each is done and before they are read");
        // SAFETY: the bytes are initialised and valid (contract of `BatchBuffer`). The count shows that every row was taken and
        // is done, and that none was read; while it is `EXCLUSIVE`, `bytes` returns nothing, `change_all` panics, and `take`
        // does as all flags are set: the reference is exclusive until the count is set back.
        change(unsafe { std::slice::from_raw_parts_mut(self.buffer.as_ptr().as_ptr(), all * self.row_bytes) });
        self.done.store(all, Ordering::Release);
    }

    /// Returns all rows; `None` until each is done.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        let first = self.done.compare_exchange(self.taken.len(), SHARED, Ordering::Acquire, Ordering::Acquire);
        if first.is_err_and(|found| found != SHARED) {
            return None;
        }
        // SAFETY: the bytes are initialised and valid (contract of `BatchBuffer`). The count shows that every row was
        // taken and is done: no exclusive reference is left. `take` and `change_all`, which see `SHARED`, return no other
        // until `reset`, which needs `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().as_ptr(), self.taken.len() * self.row_bytes) })
    }

    /// Returns the buffer itself.
    pub(crate) fn buffer(&self) -> &dyn BatchBuffer {
        &*self.buffer
    }

    /// Allows every row to be taken once more.
    pub(crate) fn reset(&mut self) {
        self.taken.iter_mut().for_each(|t| *t.get_mut() = false);
        *self.done.get_mut() = 0;
    }
}

/// One row, borrowed for writing.
pub(crate) struct RowMut<'a> {
    bytes: &'a mut [u8],
    done: &'a AtomicUsize,
}

impl Deref for RowMut<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for RowMut<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

impl Drop for RowMut<'_> {
    fn drop(&mut self) {
        self.done.fetch_add(1, Ordering::Release);
    }
}

/// Where the pixels of one row are written.
#[derive(Default)]
pub(crate) struct RowPixels<'a> {
    /// `[H, W, 3]` each, in the order of [`ResolvedConfig::pictures`](crate::resolved_config::ResolvedConfig::pictures).
    pub(crate) images: Vec<RowMut<'a>>,
    /// `[H, W]` labels of [`Mask::dtype`](crate::Mask::dtype) each.
    pub(crate) masks: Vec<RowMut<'a>>,
    /// In the order of [`ResolvedArrays::outputs`](crate::arrays::ResolvedArrays::outputs).
    pub(crate) arrays: Vec<RowMut<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_given_about_whole_pages_for_every_size_of_a_page() {
        for page in [4, 16, 64].map(|kib| kib << 10) {
            let base = 1 << 40;
            assert_eq!(whole_pages(base, 3 * page, page), (0, 3 * page));
            assert_eq!(whole_pages(base, 3 * page - 1, page), (0, 2 * page));
            assert_eq!(whole_pages(base + 64, 3 * page, page), (page - 64, 2 * page));
            assert_eq!(whole_pages(base + 64, page - 65, page).1, 0);
        }
        // Memory that the allocator aligned to 4 KiB.
        assert_eq!(whole_pages(0x7f00_0000_3000, 100_000, 4 << 10), (0, 98_304));
        assert_eq!(whole_pages(0x7f00_0000_3000, 100_000, 16 << 10), (4096, 81_920));
        assert_eq!(whole_pages(0x7f00_0000_3000, 100_000, 64 << 10), (53_248, 0));
    }

    #[test]
    fn returns_the_buffer_once_every_row_is_written() {
        let mut rows = RowBuffer::new(HostAlloc.alloc(7 * 100).unwrap(), 7, 100);
        for round in 0..3u8 {
            std::thread::scope(|scope| {
                for row in 0..6 {
                    let rows = &rows;
                    scope.spawn(move || rows.take(row).fill(round * 10 + row as u8));
                }
            });
            assert!(rows.bytes().is_none());
            rows.take(6).fill(99);
            let bytes = rows.bytes().unwrap();
            assert_eq!(bytes.as_ptr() as usize % 64, 0);
            for (row, bytes) in bytes.chunks(100).enumerate() {
                let expected = if row == 6 { 99 } else { round * 10 + row as u8 };
                assert!(bytes.iter().all(|b| *b == expected));
            }
            rows.reset();
        }
    }

    #[test]
    fn all_rows_change_once_before_they_are_read() {
        let rows = RowBuffer::new(HostAlloc.alloc(20).unwrap(), 2, 10);
        (0..2).for_each(|row| rows.take(row).fill(row as u8));
        rows.change_all(|bytes| {
            assert!(rows.bytes().is_none());
            bytes.reverse();
        });
        assert_eq!(rows.bytes().unwrap()[9..11], [1, 0]);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rows.change_all(|_| ()))).is_err());
        assert!(rows.bytes().is_some());
    }

    #[test]
    #[should_panic(expected = "can be taken once")]
    fn panics_if_a_row_is_taken_twice() {
        let rows = RowBuffer::new(HostAlloc.alloc(10).unwrap(), 1, 10);
        drop(rows.take(0));
        rows.take(0);
    }
}
