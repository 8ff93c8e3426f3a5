//! Counts of requests, for all stores that this process uses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What this process has asked of object stores so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests, also those that were repeated.
    pub requests: u64,
    /// Bytes of the answers that were used.
    pub bytes: u64,
    /// Requests that repeat one that failed.
    pub retries: u64,
    /// Second requests for stragglers.
    pub hedged: u64,
    /// Records and indexes that were requested again because their CRC did not match.
    pub refetched: u64,
    /// Time that threads waited for answers.
    pub waited: Duration,
    /// Ranges that were read from a cache on a local disk, without a request.
    pub cache_hits: u64,
    /// Their bytes.
    pub cache_bytes: u64,
    /// Blocks of a cache that were removed because a CRC in them did not match.
    pub cache_bad: u64,
}

impl Stats {
    /// Returns what happened since an earlier reading.
    pub fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            requests: self.requests.saturating_sub(earlier.requests),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            retries: self.retries.saturating_sub(earlier.retries),
            hedged: self.hedged.saturating_sub(earlier.hedged),
            refetched: self.refetched.saturating_sub(earlier.refetched),
            waited: self.waited.saturating_sub(earlier.waited),
            cache_hits: self.cache_hits.saturating_sub(earlier.cache_hits),
            cache_bytes: self.cache_bytes.saturating_sub(earlier.cache_bytes),
            cache_bad: self.cache_bad.saturating_sub(earlier.cache_bad),
        }
    }
}

pub(crate) static REQUESTS: AtomicU64 = AtomicU64::new(0);
pub(crate) static BYTES: AtomicU64 = AtomicU64::new(0);
pub(crate) static RETRIES: AtomicU64 = AtomicU64::new(0);
pub(crate) static HEDGED: AtomicU64 = AtomicU64::new(0);
pub(crate) static REFETCHED: AtomicU64 = AtomicU64::new(0);
pub(crate) static WAITED_NANOS: AtomicU64 = AtomicU64::new(0);
pub(crate) static CACHE_HITS: AtomicU64 = AtomicU64::new(0);
pub(crate) static CACHE_BYTES: AtomicU64 = AtomicU64::new(0);
pub(crate) static CACHE_BAD: AtomicU64 = AtomicU64::new(0);

/// Returns what this process has asked of object stores so far.
pub fn stats() -> Stats {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Stats {
        requests: get(&REQUESTS),
        bytes: get(&BYTES),
        retries: get(&RETRIES),
        hedged: get(&HEDGED),
        refetched: get(&REFETCHED),
        waited: Duration::from_nanos(get(&WAITED_NANOS)),
        cache_hits: get(&CACHE_HITS),
        cache_bytes: get(&CACHE_BYTES),
        cache_bad: get(&CACHE_BAD),
    }
}

/// Counts a record or an index that is requested again because its CRC did not match.
pub fn count_refetched() {
    REFETCHED.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
