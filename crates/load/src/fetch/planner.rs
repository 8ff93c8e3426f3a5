//! The thread that walks ahead of the workers.

use super::merge::{Limits, Wanted, merge};
use super::{Ahead, Fetcher, PlannedRow, RowKey};
use shardtool_order::{Order, Walk};
use shardtool_read::Shard;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shards that are opened at once: the index of each is a request.
const OPENED_AT_ONCE: usize = 16;

/// Merged requests exceed the bytes of their records by up to a third.
const UNUSED: (u64, u64) = (4, 3);

/// Plans until the fetcher is closed: the replica with the fewest rows ahead first.
pub(super) fn run(fetcher: &Arc<Fetcher>) {
    let mut planner = Planner { fetcher, walks: fetcher.config.ranks.iter().map(|_| None).collect() };
    let chunk = planner.chunk_bytes();
    let mut state = fetcher.lock();
    while !state.closed {
        let (wanted, held) = (chunk * UNUSED.0 / UNUSED.1, fetcher.held.load(Ordering::Relaxed));
        let fits = held == 0 || held + wanted <= fetcher.config.fetch;
        let room = |ahead: &Ahead| {
            let own = ahead.bytes == 0 || ahead.bytes + wanted <= planner.share();
            fits && own && ahead.rows.len() < fetcher.most_rows()
        };
        for ahead in &mut state.replicas {
            ahead.full = !room(ahead);
        }
        let waiting = state.replicas.iter().enumerate().filter(|(_, ahead)| ahead.next.is_some() && !ahead.full);
        let Some((replica, ahead)) = waiting.min_by_key(|(_, ahead)| ahead.rows.len()) else {
            // A worker whose row is not planned yet need not wait for it.
            fetcher.changed.notify_all();
            state = fetcher.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let (generation, Some(from)) = (ahead.generation, ahead.next) else { continue };
        drop(state);
        planner.plan(replica, generation, from, chunk);
        state = fetcher.lock();
    }
}

struct Planner<'a> {
    fetcher: &'a Arc<Fetcher>,
    /// For each replica, a cursor through the epoch it is in.
    walks: Vec<Option<(u64, Walk)>>,
}

impl Planner<'_> {
    /// Bytes that each replica may have under way.
    fn share(&self) -> u64 {
        self.fetcher.config.fetch / self.fetcher.config.ranks.len() as u64
    }

    /// Bytes of records that are planned together, and so can be merged: a window of the interleaved order if two fit
    /// into memory, else a quarter of it.
    fn chunk_bytes(&self) -> u64 {
        let config = &self.fetcher.config;
        // The other replicas read their part of each window.
        let sharers = (config.plan.schedule().step_len() / config.batch as u64).max(1);
        let window = self.window().map_or(0, |samples| samples * config.splits.mean_record() / sharers);
        let fits = 2 * window * UNUSED.0 / UNUSED.1 <= self.share();
        if window > 0 && fits { window } else { self.share() / 4 }
    }

    /// Plans about `chunk` bytes of records, from a row on.
    fn plan(&mut self, replica: usize, generation: u64, from: RowKey, chunk: u64) {
        let (mut rows, mut next) = self.rows(replica, from, chunk);
        let shards = self.open_shards(&rows, replica, generation);
        let splits = &self.fetcher.config.splits;
        let (mut wanted, mut bytes) = (vec![], 0);
        for (number, row) in rows.iter().enumerate() {
            // Without a shard or its index, the worker reads the record and reports why.
            let frame = row.id.and_then(|id| {
                let (shard, at) = (splits.shard_of(id).ok()?, splits.locate(id).ok()?);
                let open = shards.get(&shard)?;
                let (frame, object) = (open.frame(at.row).ok()?, open.bytes().object()?.clone());
                (frame.end - frame.start <= self.share()).then_some(Wanted { number, shard, object, frame })
            });
            let Some(frame) = frame else { continue };
            bytes += frame.frame.end - frame.frame.start;
            if bytes > chunk && !wanted.is_empty() {
                // Records are larger than most: the rest is planned later.
                next = Some(row.key);
                rows.truncate(number);
                break;
            }
            wanted.push(frame);
        }
        let limits = Limits { gap: self.fetcher.config.fetch_gap, size: self.fetcher.config.fetch_size };
        self.fetcher.start(replica, generation, rows, next, merge(wanted, limits));
    }

    /// Returns the rows from `from` on whose records have about `chunk` bytes, and the row after them unless the last epoch
    /// ends.
    fn rows(&mut self, replica: usize, from: RowKey, chunk: u64) -> (Vec<PlannedRow>, Option<RowKey>) {
        let config = self.fetcher.config.clone();
        let schedule = config.plan.schedule();
        let most = (chunk / config.splits.mean_record().max(1)).max(1);
        let window = self.window();
        let (mut planned_rows, mut at) = (vec![], from);
        let mut in_window: Option<Range<u64>> = None;
        if config.epochs.is_some_and(|epochs| from.epoch >= epochs) {
            return (planned_rows, None);
        }
        while (planned_rows.len() as u64) < most {
            let rows = schedule.rows(at.p, config.ranks[replica]);
            let (count, skipped) = (rows.len(), at.row);
            for (row, planned) in rows.enumerate().skip(skipped) {
                let mut id = None;
                if let Some(q) = planned.position() {
                    // Rows of one window only: its runs are then requested whole.
                    if in_window.as_ref().is_some_and(|positions| !positions.contains(&q)) {
                        return (planned_rows, Some(at));
                    }
                    in_window = window.map(|length| q / length * length..(q / length + 1) * length);
                    id = Some(self.walk(replica, at.epoch).sample(q).id);
                }
                planned_rows.push(PlannedRow { key: at, id });
                at.row = row + 1;
                if planned_rows.len() as u64 >= most {
                    break;
                }
            }
            if at.row >= count {
                let (epoch, p) = schedule.after(at.epoch, at.p);
                let next_epoch = epoch != at.epoch;
                at = RowKey { epoch, p, row: 0 };
                if next_epoch {
                    break;
                }
            }
        }
        (planned_rows, Some(at))
    }

    /// Returns the positions of a window of the interleaved order.
    fn window(&self) -> Option<u64> {
        match self.fetcher.config.order {
            Order::Interleaved { run, window } => Some(u64::from(run.get()) * u64::from(window.get())),
            Order::Sequential | Order::Shuffled => None,
        }
    }

    fn walk(&mut self, replica: usize, epoch: u64) -> &mut Walk {
        let (config, walk) = (&self.fetcher.config, &mut self.walks[replica]);
        if walk.as_ref().is_none_or(|(other, _)| *other != epoch) {
            let new = config.plan.walk(epoch, config.ranks[replica]);
            *walk = Some((epoch, new.expect("`ResolvedConfig::new` has validated the ranks")));
        }
        &mut walk.as_mut().expect("set above").1
    }

    /// Opens the shards of records, several at once, and returns those that could be opened. Ends early if the replica jumps
    /// or the loader ends.
    fn open_shards(&self, rows: &[PlannedRow], replica: usize, generation: u64) -> HashMap<(usize, usize), Arc<Shard>> {
        let splits = &self.fetcher.config.splits;
        let mut shards: Vec<_> =
            rows.iter().filter_map(|row| Some((splits.shard_of(row.id?).ok()?, row.id?))).collect();
        shards.sort_unstable();
        shards.dedup_by_key(|(shard, _)| *shard);
        let (next, opened) = (AtomicUsize::new(0), Mutex::new(HashMap::new()));
        let needed = || {
            let state = self.fetcher.lock();
            !state.closed && state.replicas[replica].generation == generation
        };
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
}
