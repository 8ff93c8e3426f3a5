//! A bounded cache of a split's open shards: each costs two mappings (`vm.max_map_count`) or two file descriptors, in a
//! store the memory of its index.

use crate::{Result, Shard, system};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Upper bound of open shards. An open shard takes 1 to 2 kB.
const MAX_OPEN: usize = 1 << 14;

/// Open shards. If one more would be too many, one that was not used lately is evicted (the CLOCK algorithm).
#[derive(Debug)]
pub(crate) struct ShardCache {
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    /// One slot for each shard of the split.
    slots: Vec<Option<Slot>>,
    /// The numbers of the open shards, in a ring, and the position of its hand.
    ring: Vec<usize>,
    hand: usize,
    /// The length of the ring, at most; 0 before the first shard is opened.
    capacity: usize,
    /// A bound of the capacity in addition to the process's limits.
    most: usize,
}

#[derive(Debug)]
struct Slot {
    shard: Arc<Shard>,
    /// Whether it was used since the hand passed.
    used: AtomicBool,
}

impl ShardCache {
    /// Creates the cache of a split of `shards` shards, of which at most `most` are kept open.
    pub(crate) fn new(shards: usize, most: usize) -> Self {
        let slots = (0..shards).map(|_| None).collect();
        ShardCache { state: RwLock::new(State { slots, ring: vec![], hand: 0, capacity: 0, most }) }
    }

    /// Returns the shard if it is in the cache.
    pub(crate) fn cached(&self, number: usize) -> Option<Arc<Shard>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.slots[number].as_ref().map(Slot::shard)
    }

    /// Returns the shard, and opens it with `open` if it is not in the cache. An evicted shard stays open while it is in
    /// use elsewhere.
    pub(crate) fn get(&self, number: usize, open: impl FnOnce() -> Result<Shard>) -> Result<Arc<Shard>> {
        if let Some(shard) = self.cached(number) {
            return Ok(shard);
        }
        // Two threads may open the same shard at once, and one of them drops its copy: cheaper than holding the lock
        // while opening.
        let shard = Arc::new(open()?);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = &state.slots[number] {
            return Ok(slot.shard());
        }
        let evicted = state.insert(number, shard.clone());
        drop(state);
        // Outside of the lock: it may be unmapped here.
        drop(evicted);
        Ok(shard)
    }
}

impl State {
    /// Adds a shard. Returns the one that is evicted for it.
    fn insert(&mut self, number: usize, shard: Arc<Shard>) -> Option<Slot> {
        if self.ring.is_empty() {
            self.capacity = capacity().min(self.most).max(1);
        }
        self.slots[number] = Some(Slot { shard, used: AtomicBool::new(true) });
        if self.ring.len() < self.capacity {
            self.ring.push(number);
            return None;
        }
        loop {
            let place = self.hand;
            self.hand = (place + 1) % self.ring.len();
            let slot = &mut self.slots[self.ring[place]];
            if !slot.as_mut().is_some_and(|slot| std::mem::take(slot.used.get_mut())) {
                let evicted = slot.take();
                self.ring[place] = number;
                return evicted;
            }
        }
    }
}

impl Slot {
    fn shard(&self) -> Arc<Shard> {
        // Written only if it changes: all threads read the same line.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        self.shard.clone()
    }
}

/// Returns the number of shards to keep open: a quarter of this process's limits, which several splits and loaders share,
/// at two mappings or descriptors per shard. (A mapped file is opened again when its pages are released.)
fn capacity() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let limit = files.min(system::most_mappings().unwrap_or(65_530));
    usize::try_from(limit / 8).unwrap_or(MAX_OPEN).clamp(8, MAX_OPEN)
}
