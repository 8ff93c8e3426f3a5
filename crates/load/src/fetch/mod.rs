//! Records of datasets in object stores, requested before the workers need them.
//!
//! The order of samples is known, so a thread ([`planner`]) walks ahead of the workers and groups the records of the next
//! rows into requests: of clips only the frames that a row needs ([`wanted`]), of arrays only
//! the chunks that a crop meets ([`crops`]), and neighbours in a shard become one request
//! ([`merge`]). Workers take the bytes of their rows from here.
//! The order of delivery does not depend on any of it: a worker whose record was not requested, or did not arrive, reads it
//! directly.
//!
//! With a cache on a local disk ([`lookahead`]), blocks that the cache has room for are requested whole, further ahead, and
//! written to it; the workers read the records of such blocks from there.
//!
//! Memory: at most [`ResolvedConfig::fetch`] bytes are under way or wait for their rows, divided between the replicas. A
//! single record that is larger is not requested ahead.

mod crops;
mod epoch;
mod lookahead;
mod merge;
mod open_shards;
mod planner;
mod run;
mod wanted;

pub use epoch::EpochRequests;
pub(crate) use epoch::{epoch_requests, fitting_order};

use crate::batch::SharedBatch;
use crate::handover::Work;
use crate::notices::{Notice, Notices};
use crate::resolved_config::ResolvedConfig;
use merge::Request;
use planner::{ChunkSize, Planner};
use shardtool_order::Sample;
use shardtool_read::Cache;
use shardtool_store::Object;
use shardtool_store::cache::Pending;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Returns how long a worker waits for its row to be planned, before it reads the record itself: shards may be slow to open. A
/// sixtieth of the time limit of a request: 1 s by default.
fn planned_within() -> Duration {
    shardtool_store::time_limit() / 60
}

/// How long a thread waits for what another process, or another loader, does without a notification.
const PAUSE: Duration = Duration::from_millis(20);

/// A row of an epoch, in the order in which a replica's rows are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct RowKey {
    epoch: u64,
    /// Positions of the epoch before the row's batch.
    p: u64,
    row: usize,
}

/// Bytes of one request, shared by the rows whose records they contain.
struct Block {
    /// Where they begin in the shard.
    start: u64,
    len: u64,
    /// Or why the request failed.
    bytes: OnceLock<Result<Vec<u8>, io::Error>>,
    /// Parts of rows that have not used it yet.
    parts: AtomicUsize,
    /// Bytes of all blocks of the loader that exist, those whose rows were dropped included.
    held: Arc<AtomicU64>,
}

impl Drop for Block {
    fn drop(&mut self) {
        self.held.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// A range of a shard, which lies in a block.
#[derive(Clone)]
struct Part {
    block: Arc<Block>,
    range: Range<u64>,
}

/// The parts of a row's record that have arrived.
pub(crate) struct Fetched(Vec<Part>);

impl Fetched {
    /// Returns the bytes of a range of the shard, if a part contains it.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> Option<&[u8]> {
        let part = self.0.iter().find(|part| part.range.start <= range.start && range.end <= part.range.end)?;
        let (start, bytes) = (part.block.start, part.block.bytes.get()?.as_ref().ok()?);
        bytes.get((range.start - start) as usize..(range.end - start) as usize)
    }
}

/// Bytes of a shard that have arrived, and their range.
type Arrived = (Range<u64>, Vec<u8>);

/// The parts of planned rows, whose numbers count from the first of the rows.
struct Parts {
    arrived: Vec<(usize, Vec<Arrived>)>,
    requests: Vec<Request<Object>>,
}

/// A row, and its sample unless the row is masked.
#[derive(Debug, Clone, Copy)]
struct PlannedRow {
    key: RowKey,
    sample: Option<Sample>,
}

impl PlannedRow {
    fn id(&self) -> Option<u64> {
        self.sample.map(|sample| sample.id)
    }
}

/// A row whose record was considered.
struct Planned {
    row: PlannedRow,
    /// The parts of its record that were requested: all of its frame, or single values.
    parts: Vec<Part>,
    /// Blocks of the cache that the record lies in and that are under way.
    pending: Vec<Arc<Pending>>,
    /// Whether its worker has filled it.
    done: bool,
}

impl Planned {
    /// Returns whether a worker has yet to read its record.
    fn is_open(&self) -> bool {
        !self.done && self.row.sample.is_some()
    }
}

/// What was requested for one replica.
#[derive(Default)]
struct Ahead {
    /// In the order of their keys.
    rows: VecDeque<Planned>,
    /// Of these, the rows that workers have not filled.
    open: usize,
    /// Bytes of the blocks in `rows`.
    bytes: u64,
    /// The first row that was not considered; `None` before the first worker asks, and after the last epoch.
    next: Option<RowKey>,
    /// Incremented with each jump to another row: what was planned before is dropped.
    generation: u64,
    /// Whether the cache had no memory for its next rows.
    refused: bool,
    /// The epoch and p of the first batch, or the one after a seek, for which `next` was last set.
    begun: Option<(u64, u64)>,
}

impl Ahead {
    /// Removes the row's claims on its blocks. Returns whether bytes became free.
    fn release(&mut self, at: usize) -> bool {
        let parts = self.rows.get_mut(at).map(|planned| std::mem::take(&mut planned.parts)).unwrap_or_default();
        let unused = parts.into_iter().filter(|part| part.block.parts.fetch_sub(1, Ordering::Relaxed) == 1);
        let bytes: u64 = unused.map(|part| part.block.len).sum();
        self.bytes -= bytes;
        bytes > 0
    }

    /// Removes the rows that are so far before `key` that no worker fills them any more.
    fn forget_before(&mut self, key: RowKey, margin: usize) {
        let before = self.rows.partition_point(|planned| planned.row.key < key);
        for _ in 0..before.saturating_sub(margin) {
            self.done(0);
            self.rows.pop_front();
        }
    }

    /// Returns the rows that workers have not filled.
    fn open_rows(&self) -> usize {
        debug_assert_eq!(self.open, self.rows.iter().filter(|planned| planned.is_open()).count());
        self.open
    }

    /// Marks a row as done. Returns whether bytes became free.
    fn done(&mut self, at: usize) -> bool {
        self.open -= usize::from(self.rows[at].is_open());
        self.rows[at].done = true;
        self.release(at)
    }

    /// Lets planning continue at a row, unless it has begun for this batch.
    fn begin(&mut self, start: RowKey) -> bool {
        if self.begun == Some((start.epoch, start.p)) {
            return false;
        }
        let planned = self.next == Some(start) || self.rows.binary_search_by_key(&start, |row| row.row.key).is_ok();
        if !planned {
            *self = Ahead { next: Some(start), generation: self.generation + 1, ..Ahead::default() };
        }
        self.begun = Some((start.epoch, start.p));
        !planned
    }

    /// Leaves a row to its worker, and plans from the next one on.
    fn skip(&mut self, key: RowKey) {
        if self.next.is_some_and(|next| next <= key) {
            // What is being planned now is dropped.
            self.generation += 1;
            self.next = Some(RowKey { row: key.row + 1, ..key });
        }
    }
}

struct State {
    /// One for each replica that the loader serves.
    replicas: Vec<Ahead>,
    closed: bool,
}

pub(crate) struct Fetcher {
    config: Arc<ResolvedConfig>,
    /// What is planned at once.
    chunk: ChunkSize,
    /// Whether a dataset has a cache.
    cached: bool,
    state: Mutex<State>,
    held: Arc<AtomicU64>,
    /// Of these, the bytes that are on their way to a cache.
    filling: AtomicU64,
    notices: Arc<Notices>,
    /// Notified when bytes arrive or become free, when rows were planned, and when a replica jumps.
    changed: Condvar,
}

impl Fetcher {
    /// Returns the fetcher of a loader, or `None` if all its datasets are local, read-ahead is off, or rows are packed. Makes no request.
    pub(crate) fn new(config: &Arc<ResolvedConfig>, notices: &Arc<Notices>) -> Option<Arc<Self>> {
        // A row is one record.
        if config.fetch == 0 || !config.splits.in_store() || config.plan.packing().is_some() {
            return None;
        }
        let replicas = config.ranks.iter().map(|_| Ahead::default()).collect();
        let state = Mutex::new(State { replicas, closed: false });
        let held = Arc::new(AtomicU64::new(0));
        Some(Arc::new(Fetcher {
            config: config.clone(),
            chunk: Planner::new(config.clone()).chunk_size(),
            cached: !config.splits.caches().is_empty(),
            state,
            held,
            filling: AtomicU64::new(0),
            notices: notices.clone(),
            changed: Condvar::new(),
        }))
    }

    /// Runs the planner until the fetcher is closed.
    pub(crate) fn run(self: Arc<Self>) {
        // Also after a panic: the workers then read directly.
        struct Close<'a>(&'a Fetcher);
        impl Drop for Close<'_> {
            fn drop(&mut self) {
                self.0.close();
            }
        }
        let _close = Close(&self);
        run::run(&self);
    }

    /// Drops what was requested for a replica, which moves to another position.
    pub(crate) fn forget(&self, replica: usize) {
        let mut state = self.lock();
        let ahead = &mut state.replicas[replica];
        *ahead = Ahead { generation: ahead.generation + 1, ..Ahead::default() };
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the planner.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Returns the parts of a row's record, that of sample `id`, once they have arrived; `None` if the worker must read it.
    ///
    /// # Errors
    /// `TimedOut`: reading the record again would take as long. After other errors, the worker reads it and reports why.
    pub(crate) fn fetched(&self, batch: &SharedBatch, row: usize, id: u64) -> Option<io::Result<Fetched>> {
        let key = RowKey { epoch: batch.epoch, p: batch.p, row };
        let mut since = None;
        let mut state = self.lock();
        loop {
            let State { replicas, closed } = &mut *state;
            if *closed || batch.is_cancelled() {
                return None;
            }
            let ahead = &mut replicas[batch.replica];
            // An epoch's first batch, or one after a seek. The planner reaches the next epoch by itself.
            let begins = batch.first && ahead.begin(RowKey { row: 0, ..key });
            let before = (ahead.bytes, ahead.rows.len());
            ahead.forget_before(key, self.margin());
            let room = ahead.bytes < before.0 || (!self.cached && ahead.rows.len() < before.1);
            if room || begins {
                self.changed.notify_all();
            }
            match ahead.rows.binary_search_by_key(&key, |planned| planned.row.key) {
                Ok(at) => {
                    let planned = &ahead.rows[at];
                    // A CRC does not distinguish one record from another.
                    debug_assert_eq!(planned.row.id(), Some(id), "the planner and the workers follow the same order");
                    if let Some(pending) = planned.pending.iter().find(|pending| !pending.is_done()) {
                        // Another loader, or a reader, may be requesting it, and then notifies only itself.
                        let _pending = pending.clone();
                        state = self.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
                        continue;
                    }
                    if let Some(Err(error)) = planned.pending.iter().map(|pending| pending.wait()).find(Result::is_err)
                    {
                        return Some(Err(error));
                    }
                    if planned.parts.is_empty() || planned.row.id() != Some(id) {
                        return None;
                    }
                    let arrived = planned.parts.iter().map_while(|part| part.block.bytes.get());
                    match arrived.clone().find_map(|bytes| bytes.as_ref().err()) {
                        Some(error) if error.kind() == io::ErrorKind::TimedOut => {
                            return Some(Err(io::Error::new(error.kind(), error.to_string())));
                        }
                        Some(_) => return None,
                        None if arrived.count() == planned.parts.len() => {
                            return Some(Ok(Fetched(planned.parts.clone())));
                        }
                        None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                    }
                }
                Err(_) => {
                    if since.is_none() {
                        // The planner may have waited for bytes that are free by now.
                        self.changed.notify_all();
                    }
                    let left = planned_within().saturating_sub(since.get_or_insert_with(Instant::now).elapsed());
                    if self.is_full(ahead) || left.is_zero() || ahead.next.is_none_or(|next| next > key) {
                        ahead.skip(key);
                        return None;
                    }
                    state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Marks a row as done: its bytes are not needed any more.
    pub(crate) fn done(&self, batch: &SharedBatch, row: usize) {
        let key = RowKey { epoch: batch.epoch, p: batch.p, row };
        let mut state = self.lock();
        let ahead = &mut state.replicas[batch.replica];
        if let Ok(at) = ahead.rows.binary_search_by_key(&key, |planned| planned.row.key) {
            // With a cache, often no bytes become free, and the planner is not woken for each row.
            if ahead.done(at) || (self.cached && ahead.open == self.cached_rows() / 2) {
                drop(state);
                self.changed.notify_all();
            }
        }
    }

    /// Reports a cache that cannot be written any more.
    fn report(&self, cache: &Cache, problem: &str) {
        self.notices.add(Notice::CacheFailed { path: cache.path().to_owned(), problem: problem.to_owned() });
    }

    /// Returns whether more rows of a replica may be planned: bytes are free, and its share of them is not used.
    fn has_room(&self, ahead: &Ahead) -> bool {
        let (held, wanted) = (self.held.load(Ordering::Relaxed), self.chunk.memory());
        let few = match self.cached {
            true => ahead.open_rows() < self.cached_rows(),
            false => ahead.rows.len() < self.most_rows(),
        };
        let fits = held == 0 || held + wanted <= self.config.fetch;
        fits && few && (ahead.bytes == 0 || ahead.bytes + wanted <= self.config.fetch_share())
    }

    /// Returns whether no more rows of a replica are planned until bytes are free.
    fn is_full(&self, ahead: &Ahead) -> bool {
        // What is on its way to a cache will be there soon.
        self.filling.load(Ordering::Relaxed) == 0 && (ahead.refused || !self.has_room(ahead))
    }

    /// Returns how many rows are considered ahead of the workers, whatever their bytes.
    fn most_rows(&self) -> usize {
        let records = self.config.fetch / self.config.splits.mean_record().max(1);
        self.margin() + 2 * records as usize
    }

    /// Returns how many rows are planned ahead of the workers with a cache: its blocks are requested further ahead.
    fn cached_rows(&self) -> usize {
        2 * self.config.batch + 64
    }

    /// Rows that may be filled at once, by all workers: older ones were cancelled.
    fn margin(&self) -> usize {
        8 * self.config.batch + 64
    }

    /// Returns whether a replica has not jumped since, and the loader has not ended.
    fn is_at(&self, replica: usize, generation: u64) -> bool {
        let state = self.lock();
        !state.closed && state.replicas[replica].generation == generation
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the requests of planned rows, whose numbers in `parts` count from the first of `rows`. Ignores them if the
    /// replica has jumped meanwhile.
    fn start(
        self: &Arc<Self>,
        replica: usize,
        generation: u64,
        rows: Vec<(PlannedRow, Vec<Arc<Pending>>)>,
        next: Option<RowKey>,
        parts: Parts,
    ) {
        let mut state = self.lock();
        let ahead = &mut state.replicas[replica];
        if ahead.generation != generation {
            return;
        }
        let first = ahead.rows.len();
        ahead.open += rows.iter().filter(|(row, _)| row.sample.is_some()).count();
        ahead.rows.extend(rows.into_iter().map(|(row, pending)| Planned { row, parts: vec![], pending, done: false }));
        ahead.next = next;
        for (number, parts) in parts.arrived {
            for (range, bytes) in parts {
                let block = self.block(&range, 1);
                let _ = block.bytes.set(Ok(bytes));
                ahead.bytes += block.len;
                ahead.rows[first + number].parts.push(Part { block, range });
            }
        }
        for Request { object, bytes, parts } in parts.requests {
            let block = self.block(&bytes, parts.len());
            ahead.bytes += block.len;
            for (number, range) in parts {
                ahead.rows[first + number].parts.push(Part { block: block.clone(), range });
            }
            let fetcher = self.clone();
            object.read_then(bytes, move |result| {
                let _ = block.bytes.set(result);
                // Its bytes are free at once if its rows were dropped.
                drop(block);
                // Under the lock: a worker may be between its check and its wait.
                drop(fetcher.lock());
                fetcher.changed.notify_all();
            });
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Returns a block for this number of parts of rows, whose bytes are to arrive.
    fn block(&self, bytes: &Range<u64>, parts: usize) -> Arc<Block> {
        let (start, len, held) = (bytes.start, bytes.end - bytes.start, self.held.clone());
        held.fetch_add(len, Ordering::Relaxed);
        Arc::new(Block { start, len, bytes: OnceLock::new(), parts: AtomicUsize::new(parts), held })
    }
}
