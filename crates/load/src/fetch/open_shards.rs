//! Shards that are opened ahead of the workers.

use super::PlannedRow;
use crate::splits::Splits;
use shardtool_read::Shard;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shards that are opened at once: the index of each is a request.
const OPENED_AT_ONCE: usize = 16;

/// Open shards, by the numbers of split and shard.
pub(super) type OpenShards = HashMap<(usize, usize), Arc<Shard>>;

/// Opens the shards of records, several at once, while they are needed. Returns those that could be opened.
pub(super) fn open_shards(splits: &Splits, rows: &[PlannedRow], needed: impl Fn() -> bool + Sync) -> OpenShards {
    let mut shards: Vec<_> =
        rows.iter().filter_map(|row| Some((splits.shard_of(row.id()?).ok()?, row.id()?))).collect();
    shards.sort_unstable();
    shards.dedup_by_key(|(shard, _)| *shard);
    let (next, opened) = (AtomicUsize::new(0), Mutex::new(HashMap::new()));
    let open = || {
        while let Some((number, id)) = shards.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| needed()) {
            if let Some(shard) = splits.locate(*id).ok().and_then(|at| at.open().ok()) {
                opened.lock().unwrap_or_else(PoisonError::into_inner).insert(*number, shard);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..shards.len().min(OPENED_AT_ONCE) {
            // Without more threads, this one opens them all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, open);
        }
        open();
    });
    opened.into_inner().unwrap_or_else(PoisonError::into_inner)
}
