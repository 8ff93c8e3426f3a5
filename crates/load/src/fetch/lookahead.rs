//! Rows of a dataset with a cache on a local disk, looked at before they are planned: blocks that the cache lacks and has room
//! for are requested, in the order in which they are needed.

use super::merge::{Wanted, merge};
use super::open_shards::open_shards;
use super::planner::{ChunkSize, Planner};
use super::{Fetcher, Parts, PlannedRow, RowKey};
use shardtool_read::{Cache, Shard};
use shardtool_store::cache::{CachedObject, Fetched, Need, Pending, new_order};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the blocks of the next rows are published to other processes.
const PUBLISHED: Duration = Duration::from_millis(50);

/// Rows that are looked at ahead, at most.
const MAX_ROWS: usize = 1 << 15;

/// The rows of one replica that were looked at.
pub(super) struct Lookahead {
    fetcher: Arc<Fetcher>,
    /// Identifies the replica's order to the caches.
    order: u64,
    caches: Vec<Cache>,
    chunks: VecDeque<Chunk>,
    /// The row after those in `chunks`.
    next: Option<RowKey>,
    /// Rows that were taken and may not have been read yet: the last row of each chunk, and its blocks.
    taken: VecDeque<(RowKey, HashMap<u64, u64>)>,
    /// Bytes of records in each block, of `chunks` and `taken`.
    needs: HashMap<u64, u64>,
    published: Option<Instant>,
}

/// Rows that are planned together.
struct Chunk {
    rows: VecDeque<SeenRow>,
    /// Rows whose blocks were requested.
    considered: usize,
    /// Bytes of records in each block.
    needs: HashMap<u64, u64>,
}

/// A row, and where its record lies.
struct SeenRow {
    row: PlannedRow,
    /// The frame in the shard; `None` if the worker must read the record and report why.
    frame: Option<Range<u64>>,
    /// Blocks that are under way to the cache.
    pending: Vec<Arc<Pending>>,
    /// Whether the cache has the record, or will: otherwise it is requested for this row.
    cached: bool,
}

impl Lookahead {
    pub(super) fn new(fetcher: Arc<Fetcher>, caches: Vec<Cache>) -> Self {
        Lookahead {
            fetcher,
            order: new_order(),
            caches,
            chunks: VecDeque::new(),
            next: None,
            taken: VecDeque::new(),
            needs: HashMap::new(),
            published: None,
        }
    }

    /// Moves to a row, and forgets those before `read`, which the workers have read.
    pub(super) fn begin(&mut self, from: RowKey, read: Option<RowKey>) {
        while self.taken.front().is_some_and(|(last, _)| read.is_none_or(|read| *last < read)) {
            let (_, needs) = self.taken.pop_front().expect("looked at above");
            self.subtract(&needs);
        }
        let last = |chunk: &Chunk| chunk.rows.back().map(|seen| seen.row.key);
        let first =
            self.chunks.front().and_then(|chunk| chunk.rows.front()).map_or(self.next, |seen| Some(seen.row.key));
        if first == Some(from) {
            return;
        }
        if first.is_some_and(|first| first < from) && self.chunks.back().and_then(last).is_some_and(|last| from <= last)
        {
            // Workers have read rows by themselves.
            while let Some(chunk) = self.chunks.front_mut() {
                if chunk.rows.front().is_some_and(|seen| seen.row.key >= from) {
                    break;
                }
                chunk.rows.pop_front();
                chunk.considered = chunk.considered.saturating_sub(1);
                self.drop_empty();
            }
            return;
        }
        self.chunks.clear();
        self.taken.clear();
        self.needs.clear();
        self.next = Some(from);
    }

    /// Plans rows: what the cache does not take is requested for the rows alone. Returns whether it planned any.
    pub(super) fn start(&mut self, planner: &mut Planner, replica: usize, generation: u64) -> bool {
        let size = self.fetcher.chunk;
        self.extend(planner, replica, generation, size);
        self.publish();
        self.consider(self.fetcher.config.fetch.saturating_sub(size.memory()));
        let (seen, next) = self.take(size.bytes);
        if seen.is_empty() && next.is_some() {
            return false;
        }
        let (mut rows, mut wanted) = (vec![], vec![]);
        for (number, SeenRow { row, frame, pending, cached }) in seen.into_iter().enumerate() {
            let located = row
                .id()
                .zip(frame)
                .filter(|(_, frame)| !cached && frame.end - frame.start <= self.fetcher.config.fetch_share());
            if let Some((id, frame)) = located
                && let Some(object) = open(&self.fetcher, id).and_then(|shard| shard.bytes().object().cloned())
                && let Ok(shard) = self.fetcher.config.splits.shard_of(id)
            {
                wanted.push(Wanted { number, shard, object, range: frame });
            }
            rows.push((row, pending));
        }
        let parts = Parts { arrived: vec![], requests: merge(wanted, planner.limits()) };
        self.fetcher.start(replica, generation, rows, next, parts);
        true
    }

    /// Returns how many rows are looked at before they are planned: two windows of the interleaved order, the next one and one
    /// that other replicas learn of in time; else as many as are planned without a cache.
    fn rows_ahead(&self, planner: &Planner) -> usize {
        let mean = self.fetcher.config.splits.mean_record().max(1);
        let windows = planner.window_bytes().map(|window| usize::try_from(2 * window / mean).unwrap_or(usize::MAX));
        windows.unwrap_or_else(|| self.fetcher.most_rows()).clamp(1, MAX_ROWS)
    }

    /// Looks at more rows, unless enough are known.
    fn extend(&mut self, planner: &mut Planner, replica: usize, generation: u64, size: ChunkSize) {
        let most = self.rows_ahead(planner);
        while let Some(from) = self.next.filter(|_| self.rows() < most) {
            let (rows, next) = planner.rows(replica, from, size);
            let splits = &self.fetcher.config.splits;
            let shards = open_shards(splits, &rows, || self.fetcher.is_at(replica, generation));
            let mut seen = Chunk { rows: VecDeque::with_capacity(rows.len()), considered: 0, needs: HashMap::new() };
            for row in rows {
                let frame = row.id().and_then(|id| {
                    let (shard, at) = (splits.shard_of(id).ok()?, splits.locate(id).ok()?);
                    let shard = shards.get(&shard)?;
                    let frame = shard.frame(at.row).ok()?;
                    if let Some(cached) = shard.bytes().cached() {
                        for block in cached.blocks(&frame) {
                            let bytes = cached.block_range(block);
                            let own = bytes.end.min(frame.end) - bytes.start.max(frame.start);
                            *seen.needs.entry(cached.id(block)).or_default() += own;
                        }
                    }
                    Some(frame)
                });
                seen.rows.push_back(SeenRow { row, frame, pending: vec![], cached: false });
            }
            for (id, bytes) in &seen.needs {
                *self.needs.entry(*id).or_default() += bytes;
            }
            if self.next == next {
                // Nothing more is known of the next rows now.
                return;
            }
            self.next = next;
            if !seen.rows.is_empty() {
                self.chunks.push_back(seen);
            }
        }
    }

    /// Requests the blocks of the next rows, while at most `memory` bytes are under way.
    fn consider(&mut self, memory: u64) {
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            while let Some(seen) = chunk.rows.get_mut(chunk.considered) {
                let located = seen.row.id().zip(seen.frame.clone());
                let opened = located.and_then(|(id, frame)| Some((open(&self.fetcher, id)?, frame)));
                if let Some((shard, frame)) = opened
                    && let Some(cached) = shard.bytes().cached()
                {
                    // In a full cache, blocks take the place of others when they are needed, not earlier.
                    let need = |id| {
                        let now = chunk.needs.get(&id).copied().unwrap_or(0);
                        let later = self.needs.get(&id).copied().unwrap_or(0).saturating_sub(now);
                        (number == 0).then_some(Need { order: self.order, now, later })
                    };
                    match fetch(&self.fetcher, memory, cached, &frame, need) {
                        Some(Considered { cached: false, .. }) if number > 0 => return,
                        Some(Considered { cached, pending }) => (seen.cached, seen.pending) = (cached, pending),
                        None => return,
                    }
                }
                chunk.considered += 1;
            }
        }
    }

    /// Takes the next rows whose blocks were requested: a chunk, or what is known of it, with at most `most` bytes that are not
    /// in the cache; and the key of the row after them.
    fn take(&mut self, most: u64) -> (Vec<SeenRow>, Option<RowKey>) {
        let Some(chunk) = self.chunks.front_mut() else { return (vec![], self.next) };
        let (mut rows, mut bytes) = (vec![], 0);
        while chunk.considered > 0 {
            let next = &chunk.rows[0];
            let frame = next.frame.as_ref().filter(|_| !next.cached).map_or(0, |frame| frame.end - frame.start);
            if bytes > 0 && bytes + frame > most {
                break;
            }
            bytes += frame;
            chunk.considered -= 1;
            rows.extend(chunk.rows.pop_front());
        }
        if let Some(last) = rows.last().filter(|_| chunk.rows.is_empty()) {
            let last = last.row.key;
            self.taken.push_back((last, std::mem::take(&mut chunk.needs)));
        }
        self.drop_empty();
        let next = self.chunks.front().and_then(|chunk| chunk.rows.front());
        (rows, next.map_or(self.next, |seen| Some(seen.row.key)))
    }

    /// Publishes the blocks of the next rows to the caches.
    fn publish(&mut self) {
        if self.published.is_none_or(|published| published.elapsed() >= PUBLISHED) {
            self.published = Some(Instant::now());
            self.caches.iter().for_each(|cache| cache.will_use(self.order, self.needs.clone()));
        }
    }

    fn rows(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.rows.len()).sum()
    }

    fn drop_empty(&mut self) {
        while self.chunks.front().is_some_and(|chunk| chunk.rows.is_empty()) {
            let chunk = self.chunks.pop_front().expect("looked at above");
            self.subtract(&chunk.needs);
        }
    }

    fn subtract(&mut self, needs: &HashMap<u64, u64>) {
        for (id, bytes) in needs {
            if let Some(sum) = self.needs.get_mut(id) {
                *sum = sum.saturating_sub(*bytes);
                if *sum == 0 {
                    self.needs.remove(id);
                }
            }
        }
    }
}

impl Drop for Lookahead {
    fn drop(&mut self) {
        self.caches.iter().for_each(|cache| cache.end_order(self.order));
    }
}

/// Opens the shard of a sample; `None` if its worker must report why that fails.
fn open(fetcher: &Fetcher, id: u64) -> Option<Arc<Shard>> {
    fetcher.config.splits.locate(id).ok()?.open().ok()
}

/// What became of the blocks of a row.
struct Considered {
    cached: bool,
    pending: Vec<Arc<Pending>>,
}

/// Requests the blocks of a frame; `None` if memory does not allow it yet. Blocks that are larger than the memory are not
/// requested.
fn fetch(
    fetcher: &Arc<Fetcher>,
    memory: u64,
    cached: &CachedObject,
    frame: &Range<u64>,
    need: impl Fn(u64) -> Option<Need>,
) -> Option<Considered> {
    let mut considered = Considered { cached: true, pending: vec![] };
    for block in cached.blocks(frame) {
        if cached.has(block) {
            continue;
        }
        let bytes = cached.block_range(block);
        if bytes.end - bytes.start > memory {
            return Some(Considered { cached: false, pending: vec![] });
        }
        let filling = Filling::new(fetcher, memory, bytes.end - bytes.start)?;
        match cached.fetch(block, need(cached.id(block)), move || drop(filling)) {
            Fetched::Pending(pending) => considered.pending.push(pending),
            Fetched::Refused => return Some(Considered { cached: false, pending: vec![] }),
            // A worker waits for another process.
            Fetched::Present | Fetched::Elsewhere => {}
        }
    }
    Some(considered)
}

/// Memory of a block that is on its way to a cache.
struct Filling {
    fetcher: Arc<Fetcher>,
    bytes: u64,
}

impl Filling {
    /// Returns `None` if the memory is not free.
    fn new(fetcher: &Arc<Fetcher>, memory: u64, bytes: u64) -> Option<Self> {
        let held = fetcher.held.load(Ordering::Relaxed);
        if held + bytes > memory {
            return None;
        }
        fetcher.held.fetch_add(bytes, Ordering::Relaxed);
        fetcher.filling.fetch_add(bytes, Ordering::Relaxed);
        Some(Filling { fetcher: fetcher.clone(), bytes })
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.fetcher.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.fetcher.filling.fetch_sub(self.bytes, Ordering::Relaxed);
        // Under the lock: a worker may be between its check and its wait.
        drop(self.fetcher.lock());
        self.fetcher.changed.notify_all();
    }
}
