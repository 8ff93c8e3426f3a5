//! How many shards of a store are read at once, and with how much memory each, so that the tool stays within the memory of its
//! container.

use shardtool_host::system_memory::{SystemLimits, anonymous};
use std::num::NonZeroUsize;
use std::path::Path;

/// Memory for reading one shard: at most, and at least. (`shardtool_store::Window`.)
const MOST: u64 = 16 << 20;
const LEAST: u64 = 1 << 20;
/// A part of the available memory. Half of it is for decoding (`DecodeBudget`); a quarter is for records, indexes and what
/// the connections hold.
const SHARE: u64 = 4;

/// Threads, and the memory that each takes for the shard that it reads, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoreReads {
    pub(crate) threads: usize,
    pub(crate) shard_bytes: u64,
}

impl StoreReads {
    /// Returns at most `threads` threads, as many as the smallest limit on the memory of this process allows at present.
    pub(crate) fn of_process(threads: Option<usize>) -> Self {
        let root = Path::new("/");
        let limit = SystemLimits::find(root).smallest().map_or(u64::MAX, |limit| limit.bytes);
        let threads = threads.filter(|threads| *threads > 0);
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));
        Self::within(limit.saturating_sub(anonymous(root)), threads)
    }

    /// Fewer threads read with fewer and larger requests. One thread remains, however little memory there is.
    fn within(available: u64, threads: usize) -> Self {
        let share = available / SHARE;
        let fitting = usize::try_from(share / MOST).unwrap_or(usize::MAX);
        let threads = threads.min(fitting).max(1);
        StoreReads { threads, shard_bytes: (share / threads as u64).clamp(LEAST, MOST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_their_memory_fit_in_a_quarter_of_what_is_available() {
        let reads = |mib: u64, threads| {
            let StoreReads { threads, shard_bytes } = StoreReads::within(mib << 20, threads);
            (threads, shard_bytes >> 20)
        };
        assert_eq!(reads(64 << 10, 16), (16, 16));
        assert_eq!(reads(512, 16), (8, 16));
        assert_eq!(reads(512, 2), (2, 16));
        assert_eq!(reads(100, 16), (1, 16));
        assert_eq!(reads(20, 16), (1, 5));
        assert_eq!(reads(0, 16), (1, 1));
    }
}
