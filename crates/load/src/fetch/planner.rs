//! The thread that walks ahead of the workers.

use super::lookahead::{Lookahead, SeenRow};
use super::merge::{Limits, Wanted, merge};
use super::{Ahead, Fetcher, PlannedRow, RowKey};
use shardtool_order::{Order, Walk};
use shardtool_read::Shard;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Shards that are opened at once: the index of each is a request.
const OPENED_AT_ONCE: usize = 16;

/// Open shards, by the numbers of split and shard.
pub(super) type OpenShards = HashMap<(usize, usize), Arc<Shard>>;

/// Merged requests exceed the bytes of their records by up to a third.
const UNUSED: (u64, u64) = (4, 3);

/// How long the planner waits for memory if nothing tells it of any: a block that another process requests, say.
const PAUSE: Duration = Duration::from_millis(20);

/// Plans until the fetcher is closed: the replica with the fewest rows ahead first.
pub(super) fn run(fetcher: &Arc<Fetcher>) {
    let caches = fetcher.config.splits.caches();
    let mut writable = caches.clone();
    let lookahead = || (!caches.is_empty()).then(|| Lookahead::new(caches.clone()));
    let ranks = &fetcher.config.ranks;
    let mut lookaheads: Vec<_> = ranks.iter().map(|_| lookahead()).collect();
    let mut planner = Planner { fetcher, walks: ranks.iter().map(|_| None).collect() };
    let chunk = planner.chunk_bytes();
    let mut state = fetcher.lock();
    // Replicas that had no memory for more rows.
    let mut waiting = vec![false; ranks.len()];
    while !state.closed {
        let wanted = chunk * UNUSED.0 / UNUSED.1;
        let (held, filling) = (fetcher.held.load(Ordering::Relaxed), fetcher.filling.load(Ordering::Relaxed));
        let fits = held == 0 || held + wanted <= fetcher.config.fetch;
        let room = |ahead: &Ahead| {
            let own = ahead.bytes == 0 || ahead.bytes + wanted <= planner.share();
            let few = match caches.is_empty() {
                true => ahead.rows.len() < fetcher.most_rows(),
                false => ahead.open_rows() < fetcher.cached_rows(),
            };
            fits && own && few
        };
        for ahead in &mut state.replicas {
            // What is on its way to a cache will be there soon.
            ahead.full = !room(ahead) && filling == 0;
        }
        let next = state.replicas.iter().enumerate();
        let next = next.filter(|(replica, ahead)| ahead.next.is_some() && room(ahead) && !waiting[*replica]);
        let Some((replica, ahead)) = next.min_by_key(|(_, ahead)| ahead.rows.len()) else {
            // A worker whose row is not planned yet need not wait for it.
            fetcher.changed.notify_all();
            state = if waiting.contains(&true) || filling > 0 {
                fetcher.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0
            } else {
                fetcher.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
            waiting.fill(false);
            continue;
        };
        let (generation, Some(from)) = (ahead.generation, ahead.next) else { continue };
        let read = ahead.rows.iter().find(|planned| !planned.done).map(|planned| planned.row.key);
        drop(state);
        match &mut lookaheads[replica] {
            None => planner.plan(replica, generation, from, chunk),
            Some(lookahead) => {
                lookahead.begin(from, read);
                waiting[replica] = !planner.plan_seen(lookahead, replica, generation, chunk);
            }
        }
        writable.retain(|cache| cache.failure().inspect(|problem| fetcher.report(cache, problem)).is_none());
        state = fetcher.lock();
    }
}

pub(super) struct Planner<'a> {
    fetcher: &'a Arc<Fetcher>,
    /// For each replica, a cursor through the epoch it is in.
    walks: Vec<Option<(u64, Walk)>>,
}

impl Planner<'_> {
    pub(super) fn fetcher(&self) -> &Arc<Fetcher> {
        self.fetcher
    }

    /// Returns how many rows are looked at before they are planned: two windows of the interleaved order, the next one and one
    /// that other replicas learn of in time; else as many as are planned without a cache.
    pub(super) fn rows_ahead(&self) -> usize {
        let rows = |window: u64| usize::try_from(window / self.sharers()).unwrap_or(usize::MAX).max(1);
        self.window().map_or(self.fetcher.most_rows(), |window| rows(2 * window))
    }

    /// Returns how many replicas read each window together.
    fn sharers(&self) -> u64 {
        let config = &self.fetcher.config;
        (config.plan.schedule().step_len() / config.batch as u64).max(1)
    }

    /// Bytes that each replica may have under way.
    fn share(&self) -> u64 {
        self.fetcher.config.fetch / self.fetcher.config.ranks.len() as u64
    }

    /// Bytes of records that are planned together, and so can be merged: a window of the interleaved order if two fit
    /// into memory, else a quarter of it.
    fn chunk_bytes(&self) -> u64 {
        let config = &self.fetcher.config;
        let window = self.window().map_or(0, |samples| samples * config.splits.mean_record() / self.sharers());
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
                let (open, frame) = self.locate(&shards, id)?;
                let (shard, object) = (splits.shard_of(id).ok()?, open.bytes().object()?.clone());
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
        let rows = rows.into_iter().map(|row| (row, vec![])).collect();
        self.fetcher.start(replica, generation, rows, next, merge(wanted, self.limits()));
    }

    /// Plans rows with a cache: what it does not take is requested for the rows alone. Returns whether it planned any.
    fn plan_seen(&mut self, lookahead: &mut Lookahead, replica: usize, generation: u64, chunk: u64) -> bool {
        lookahead.extend(self, replica, generation, chunk);
        lookahead.publish();
        lookahead.consider(self, self.fetcher.config.fetch.saturating_sub(chunk * UNUSED.0 / UNUSED.1));
        let (seen, next) = lookahead.take(chunk);
        if seen.is_empty() && next.is_some() {
            return false;
        }
        let (mut rows, mut wanted) = (vec![], vec![]);
        for (number, SeenRow { row, frame, pending, cached }) in seen.into_iter().enumerate() {
            let located = row.id.zip(frame).filter(|(_, frame)| !cached && frame.end - frame.start <= self.share());
            if let Some((id, frame)) = located
                && let Some(object) = self.open(id).and_then(|shard| shard.bytes().object().cloned())
                && let Ok(shard) = self.fetcher.config.splits.shard_of(id)
            {
                wanted.push(Wanted { number, shard, object, frame });
            }
            rows.push((row, pending));
        }
        self.fetcher.start(replica, generation, rows, next, merge(wanted, self.limits()));
        true
    }

    fn limits(&self) -> Limits {
        Limits { gap: self.fetcher.config.fetch_gap, size: self.fetcher.config.fetch_size }
    }

    /// Opens the shard of a sample. Without it, the worker reads the record and reports why.
    pub(super) fn open(&self, id: u64) -> Option<Arc<Shard>> {
        self.fetcher.config.splits.locate(id).ok()?.open().ok()
    }

    /// Returns the shard of a sample among those that are open, and the frame of its record.
    pub(super) fn locate<'s>(&self, shards: &'s OpenShards, id: u64) -> Option<(&'s Arc<Shard>, Range<u64>)> {
        let splits = &self.fetcher.config.splits;
        let (shard, at) = (splits.shard_of(id).ok()?, splits.locate(id).ok()?);
        let open = shards.get(&shard)?;
        Some((open, open.frame(at.row).ok()?))
    }

    /// Returns the rows from `from` on whose records have about `chunk` bytes, and the row after them unless the last epoch
    /// ends.
    pub(super) fn rows(&mut self, replica: usize, from: RowKey, chunk: u64) -> (Vec<PlannedRow>, Option<RowKey>) {
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
    pub(super) fn open_shards(&self, rows: &[PlannedRow], replica: usize, generation: u64) -> OpenShards {
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
