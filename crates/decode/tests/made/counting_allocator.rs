//! The allocator of a test binary that measures memory. It counts for all threads, so tests measure one after the other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded to the system allocator, which upholds the contract of `GlobalAlloc`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`, which is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`, which is that of the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a call allocated.
pub(crate) struct Allocated {
    /// Calls of the allocator.
    pub(crate) count: usize,
    /// The most bytes that it held at a time.
    pub(crate) peak: usize,
}

/// Calls `work`. Returns its result, and what it allocated.
pub(crate) fn allocated<T>(work: impl FnOnce() -> T) -> (T, Allocated) {
    let (count, held) = (COUNT.load(Ordering::Relaxed), HELD.load(Ordering::Relaxed));
    MOST.store(held, Ordering::Relaxed);
    let result = work();
    let allocated =
        Allocated { count: COUNT.load(Ordering::Relaxed) - count, peak: MOST.load(Ordering::Relaxed) - held };
    (result, allocated)
}
