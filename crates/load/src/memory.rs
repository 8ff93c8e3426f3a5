//! Memory of batches: where it comes from, and how several threads write one batch at once. The only unsafe code of this
//! crate.

use rustix::mm::{Advice, madvise};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Where the pixels of batches lie. The loader keeps the buffers it is given and uses them again, so this is called a few
/// times a run.
pub trait BatchAlloc: Send + Sync {
    /// Memory for the images of one batch: at least `bytes` bytes, aligned to 64.
    ///
    /// # Errors
    /// The allocator's own account of why there is none.
    fn alloc(&self, bytes: usize) -> Result<Box<dyn BatchBuffer>, Box<dyn std::error::Error + Send + Sync>>;
}

/// Memory of one batch; given back by dropping it. `Any`, so that who made it can find it again behind a
/// [`Batch`](crate::Batch).
///
/// # Safety
/// `as_ptr` always returns the same pointer, aligned to 64 bytes, to `len` initialised bytes which stay valid for reads
/// and writes, from any thread, until this value is dropped (moving it changes nothing), and which nobody else writes
/// while the loader may; nobody reads them through another way before the batch is delivered.
#[expect(clippy::len_without_is_empty, reason = "memory, not a collection")]
pub unsafe trait BatchBuffer: Any + Send + Sync {
    /// The first byte.
    fn as_ptr(&self) -> NonNull<u8>;
    /// How many bytes.
    fn len(&self) -> usize;
}

/// Ordinary memory of this process, aligned to 64 bytes: the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostAlloc;

impl BatchAlloc for HostAlloc {
    fn alloc(&self, bytes: usize) -> Result<Box<dyn BatchBuffer>, Box<dyn std::error::Error + Send + Sync>> {
        // Asked for without alignment, memory of this size comes zeroed from the system, page by page as it is written;
        // asked for with it, the standard library writes zeros over all of it first.
        let layout = Layout::from_size_align(bytes.saturating_add(ALIGNMENT), 1)?;
        // SAFETY: the layout's size is at least `ALIGNMENT`.
        let allocated = NonNull::new(unsafe { alloc_zeroed(layout) });
        let allocated = allocated.ok_or(std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
        let gap = allocated.as_ptr().align_offset(ALIGNMENT);
        // SAFETY: the gap is less than `ALIGNMENT`, so that start and `bytes` bytes from it lie in what was allocated.
        let start = unsafe { allocated.add(gap) };
        prefer_huge_pages(start, bytes);
        Ok(Box::new(HostBuffer { start, len: bytes, allocated, layout }))
    }
}

/// What DLPack consumers and SIMD want.
const ALIGNMENT: usize = 64;

/// Asks for huge pages: a batch is tens of megabytes, whose small pages would be faulted in one by one. Only a wish.
fn prefer_huge_pages(start: NonNull<u8>, bytes: usize) {
    const PAGE: usize = 4096;
    let gap = start.as_ptr().align_offset(PAGE);
    let Some(bytes) = bytes.checked_sub(gap).map(|n| n / PAGE * PAGE).filter(|n| *n >= 2 << 20) else { return };
    // SAFETY: the range is whole pages of memory that this allocator just made and nobody else knows; the advice changes
    // how it is backed, never what is in it.
    let _ = unsafe { madvise(start.as_ptr().add(gap).cast(), bytes, Advice::LinuxHugepage) };
}

struct HostBuffer {
    start: NonNull<u8>,
    len: usize,
    /// What the allocator gave, at or before the start.
    allocated: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory alone, as a `Vec<u8>` does; nothing in it belongs to a thread.
unsafe impl Send for HostBuffer {}
// SAFETY: through a shared reference only the pointer and the length can be had.
unsafe impl Sync for HostBuffer {}

// SAFETY: the memory is zeroed, its start aligned above, owned by this value alone and freed when it is dropped.
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
        // SAFETY: allocated with this layout in `alloc`, and freed only here.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) }
    }
}

/// A buffer cut into rows of equal length, each written by one thread, all read when every row is done.
///
/// What makes it sound: a row can be taken once, which the flag of each row sees to, and the whole can be read only when
/// all rows were given back, which the count sees to. Both start anew only through `&mut self`.
pub(crate) struct Rows {
    buffer: Box<dyn BatchBuffer>,
    row_bytes: usize,
    taken: Box<[AtomicBool]>,
    done: AtomicUsize,
}

impl Rows {
    /// `rows` rows of `row_bytes` bytes.
    ///
    /// # Panics
    /// If the buffer is too short.
    pub(crate) fn new(buffer: Box<dyn BatchBuffer>, rows: usize, row_bytes: usize) -> Self {
        assert!(rows.checked_mul(row_bytes).is_some_and(|n| n <= buffer.len()), "a buffer as long as was asked for");
        let taken = (0..rows).map(|_| AtomicBool::new(false)).collect();
        Rows { buffer, row_bytes, taken, done: AtomicUsize::new(0) }
    }

    /// The row, for one writer. Dropping it says that it is done.
    ///
    /// # Panics
    /// If the row was taken before.
    pub(crate) fn take(&self, row: usize) -> RowMut<'_> {
        assert!(!self.taken[row].swap(true, Ordering::Relaxed), "row {row} is taken once");
        // SAFETY: `new` checked that all rows lie in the buffer, whose contract makes it valid for reads and writes until
        // it is dropped, which the borrow of `self` delays. This row was not taken before, rows do not overlap, and
        // `bytes` gives nothing out until this row is done: so the reference is the only one.
        let bytes = unsafe {
            let start = self.buffer.as_ptr().add(row * self.row_bytes);
            std::slice::from_raw_parts_mut(start.as_ptr(), self.row_bytes)
        };
        RowMut { bytes, done: &self.done }
    }

    /// All rows; `None` while one is not done.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if self.done.load(Ordering::Acquire) != self.taken.len() {
            return None;
        }
        // SAFETY: the bytes are initialised and valid by the buffer's contract. Every row was taken and is done, so no
        // reference for writing is left, and none can come while `self` is borrowed.
        Some(unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().as_ptr(), self.taken.len() * self.row_bytes) })
    }

    /// The buffer itself, for who made it.
    pub(crate) fn buffer(&self) -> &dyn BatchBuffer {
        &*self.buffer
    }

    /// All rows may be taken once more.
    pub(crate) fn reset(&mut self) {
        self.taken.iter_mut().for_each(|t| *t.get_mut() = false);
        *self.done.get_mut() = 0;
    }
}

/// One row, for writing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_write_rows_and_the_whole_is_read_when_all_are_done() {
        let mut rows = Rows::new(HostAlloc.alloc(7 * 100).unwrap(), 7, 100);
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
    #[should_panic(expected = "taken once")]
    fn a_row_is_taken_once() {
        let rows = Rows::new(HostAlloc.alloc(10).unwrap(), 1, 10);
        drop(rows.take(0));
        rows.take(0);
    }
}
