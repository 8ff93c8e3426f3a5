//! A bounded LRU cache of open shards: each costs two mappings (`vm.max_map_count`) or two file descriptors.

use crate::{Result, Shard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Upper bound of open shards: enough for all shards of an interleaved order's window.
const MAX_OPEN: usize = 1024;

#[derive(Debug)]
pub(crate) struct Cache {
    open: RwLock<HashMap<usize, Entry>>,
    capacity: usize,
    /// Number of uses so far; an entry keeps the value of its last use.
    clock: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    shard: Arc<Shard>,
    used: AtomicU64,
}

impl Cache {
    pub(crate) fn new() -> Self {
        Cache { open: RwLock::default(), capacity: capacity(), clock: AtomicU64::new(0) }
    }

    /// Returns the shard, and opens it with `open` if it is not in the cache. An evicted shard stays open while it is in
    /// use elsewhere.
    pub(crate) fn get(&self, number: usize, open: impl FnOnce() -> Result<Shard>) -> Result<Arc<Shard>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        {
            let shards = self.open.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(entry) = shards.get(&number) {
                entry.used.store(now, Ordering::Relaxed);
                return Ok(entry.shard.clone());
            }
        }
        // Two threads may open the same shard at once, and one of them drops its copy: cheaper than holding the lock
        // while opening.
        let shard = Arc::new(open()?);
        let mut shards = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if shards.len() >= self.capacity && !shards.contains_key(&number) {
            let oldest = shards.iter().min_by_key(|(_, e)| e.used.load(Ordering::Relaxed)).map(|(n, _)| *n);
            oldest.and_then(|n| shards.remove(&n));
        }
        let entry = shards.entry(number).or_insert(Entry { shard, used: AtomicU64::new(now) });
        Ok(entry.shard.clone())
    }
}

/// Returns the number of shards to keep open: a quarter of this process's limit, which several splits and loaders
/// share, at two descriptors or mappings per shard.
fn capacity() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let maps = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|s| s.trim().parse().ok());
    let least = files.min(maps.unwrap_or(65_530u64)) / 8;
    (least as usize).clamp(8, MAX_OPEN)
}
