//! Open shards, a bounded number of them: a mapping costs an entry of `vm.max_map_count`, a file a descriptor.

use crate::{Result, Shard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Shards kept open at most, whatever the system allows: enough for any window of an order to be resident.
const MOST: usize = 1024;

#[derive(Debug)]
pub(crate) struct Cache {
    open: RwLock<HashMap<usize, Entry>>,
    capacity: usize,
    /// Counts uses; an entry remembers the count of its last one.
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

    /// The shard, opened by `open` when it is not. Shards still in use elsewhere stay open when they leave the cache.
    pub(crate) fn get(&self, number: usize, open: impl FnOnce() -> Result<Shard>) -> Result<Arc<Shard>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        {
            let shards = self.open.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(entry) = shards.get(&number) {
                entry.used.store(now, Ordering::Relaxed);
                return Ok(entry.shard.clone());
            }
        }
        // Two threads may open the same shard at once: one of them then drops its own, which costs less than a lock
        // held over the opening.
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

/// A quarter of what the system allows this process, since several splits and loaders share it: two descriptors or
/// mappings a shard.
fn capacity() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let maps = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|s| s.trim().parse().ok());
    let least = files.min(maps.unwrap_or(65_530u64)) / 8;
    (least as usize).clamp(8, MOST)
}
