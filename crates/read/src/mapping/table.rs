//! The mappings of this process, in a table that a signal handler can read: atomics only, never freed.

use std::ops::Range;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};

/// One mapping.
#[derive(Debug)]
pub(super) struct Entry {
    /// Counts the changes of the entry. The two low bits are its state: [`FREE`], [`FILLING`] or [`USED`].
    version: AtomicUsize,
    /// Addresses of the mapping.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The smallest range of addresses that holds all lost pages; empty if there are none.
    lost_start: AtomicUsize,
    lost_end: AtomicUsize,
    /// Number of borrowers that cannot learn of lost pages.
    lent: AtomicUsize,
}

const FREE: usize = 0;
const FILLING: usize = 1;
const USED: usize = 2;
const STATE: usize = 3;

/// Entries of one block of the table.
const BLOCK: usize = 64;

struct Block {
    entries: [Entry; BLOCK],
    next: AtomicPtr<Block>,
}

static TABLE: Block = Block::new();

/// Whether a page of any mapping was lost, ever: the question that every record asks, without a look at its entry.
static ANY_LOST: AtomicBool = AtomicBool::new(false);

/// Entries that are probably free. The lock is only ever tried: a thread that held it may not exist after `fork`, and then
/// the table is searched instead.
static FREE_ENTRIES: Mutex<Vec<&Entry>> = Mutex::new(vec![]);

impl Entry {
    const fn new() -> Self {
        Entry {
            version: AtomicUsize::new(FREE),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            lost_start: AtomicUsize::new(usize::MAX),
            lost_end: AtomicUsize::new(0),
            lent: AtomicUsize::new(0),
        }
    }

    fn is_free(&self) -> bool {
        self.version.load(Relaxed) & STATE == FREE
    }

    /// Takes the entry for a mapping. Returns `false` if it is in use.
    fn take(&self, addresses: &Range<usize>) -> bool {
        let version = self.version.load(Relaxed);
        let filling = version.wrapping_add(FILLING);
        if version & STATE != FREE || self.version.compare_exchange(version, filling, Acquire, Relaxed).is_err() {
            return false;
        }
        self.start.store(addresses.start, Relaxed);
        self.end.store(addresses.end, Relaxed);
        self.lost_start.store(usize::MAX, Relaxed);
        self.lost_end.store(0, Relaxed);
        self.lent.store(0, Relaxed);
        self.version.store(version.wrapping_add(USED), Release);
        true
    }

    /// Returns whether the entry is in use and its mapping holds the address.
    fn holds(&self, address: usize) -> bool {
        let version = self.version.load(Acquire);
        let addresses = self.start.load(Relaxed)..self.end.load(Relaxed);
        fence(Acquire);
        // An entry that changes meanwhile is another mapping's: the faulting thread borrows its own.
        version & STATE == USED && addresses.contains(&address) && self.version.load(Relaxed) == version
    }

    /// Adds a page to the lost range. Must precede the replacement of the page, so that every reader of its zeros finds it
    /// lost.
    pub(super) fn lose(&self, page: Range<usize>) {
        ANY_LOST.store(true, SeqCst);
        self.lost_start.fetch_min(page.start, SeqCst);
        self.lost_end.fetch_max(page.end, SeqCst);
    }

    /// Returns the addresses of lost pages; an empty range if there are none. Loads that precede the call are not
    /// reordered after it.
    #[inline]
    pub(super) fn lost(&self) -> Range<usize> {
        fence(Acquire);
        match self.lost_end.load(Relaxed) {
            0 => 0..0,
            end => self.lost_start.load(Relaxed)..end,
        }
    }

    pub(super) fn lend(&self) {
        self.lent.fetch_add(1, Relaxed);
    }

    pub(super) fn unlend(&self) {
        self.lent.fetch_sub(1, Relaxed);
    }

    pub(super) fn is_lent(&self) -> bool {
        self.lent.load(Relaxed) > 0
    }
}

impl Block {
    const fn new() -> Self {
        Block { entries: [const { Entry::new() }; BLOCK], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Block> {
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `next_or_new`; blocks are never freed.
        unsafe { self.next.load(Acquire).as_ref() }
    }

    fn next_or_new(&self) -> &'static Block {
        if let Some(next) = self.next() {
            return next;
        }
        let new = Box::into_raw(Box::new(Block::new()));
        match self.next.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
            // SAFETY: `new` is a valid block, which is never freed from here on.
            Ok(_) => unsafe { &*new },
            Err(next) => {
                // SAFETY: `new` was not published, so this is its only owner. `next` is another thread's published block.
                unsafe {
                    drop(Box::from_raw(new));
                    &*next
                }
            }
        }
    }
}

/// Returns whether this process lost a page of any mapping. Loads that precede the call are not reordered after it.
#[inline(always)]
pub(crate) fn any_lost() -> bool {
    fence(Acquire);
    ANY_LOST.load(Relaxed)
}

/// Adds a mapping. Its pages must stay mapped until [`remove`].
pub(super) fn insert(addresses: Range<usize>) -> &'static Entry {
    let mut free = FREE_ENTRIES.try_lock().ok();
    while let Some(entry) = free.as_mut().and_then(|free| free.pop()) {
        if entry.take(&addresses) {
            return entry;
        }
    }
    let mut block = &TABLE;
    loop {
        if let Some(entry) = block.entries.iter().find(|entry| entry.take(&addresses)) {
            if let Some(mut free) = free {
                free.extend(block.entries.iter().filter(|entry| entry.is_free()));
            }
            return entry;
        }
        block = block.next_or_new();
    }
}

/// Removes a mapping, whose bytes nothing borrows any more.
pub(super) fn remove(entry: &'static Entry) {
    // From `USED` to the next version's `FREE`.
    entry.version.fetch_add(STATE + 1 - USED, AcqRel);
    if let Ok(mut free) = FREE_ENTRIES.try_lock() {
        free.push(entry);
    }
}

/// Returns the mapping that holds an address. Async-signal-safe.
pub(super) fn find(address: usize) -> Option<&'static Entry> {
    let mut block = Some(&TABLE);
    while let Some(Block { entries, .. }) = block {
        if let Some(entry) = entries.iter().find(|entry| entry.holds(address)) {
            return Some(entry);
        }
        block = block.and_then(Block::next);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_mappings_of_several_blocks_until_they_are_removed() {
        let page = |n: usize| 1 << 62 | n << 12;
        let entries: Vec<_> = (0..5 * BLOCK).map(|n| insert(page(2 * n)..page(2 * n) + 10)).collect();
        for (n, entry) in entries.iter().enumerate() {
            assert!(find(page(2 * n) + 9).is_some_and(|found| ptr::eq(found, *entry)));
            assert!(find(page(2 * n + 1)).is_none());
        }
        entries[3].lose(page(6)..page(7));
        assert_eq!(entries[3].lost(), page(6)..page(7));
        entries.iter().for_each(|entry| remove(entry));
        assert!(find(page(6)).is_none());
        let again = insert(page(6)..page(7));
        assert!(again.lost().is_empty(), "a new mapping has lost nothing");
        remove(again);
    }
}
