//! What the thread that walks ahead of the workers requests.

use super::crops;
use super::merge::{Limits, Request, Wanted, merge};
use super::open_shards::open_shards;
use super::wanted::{length_of, ranges};
use super::{Fetcher, Parts, PlannedRow, RowKey};
use crate::plan::Walk;
use crate::read_ahead::cursor;
use crate::resolved_config::ResolvedConfig;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a chunk, at most: a manifest may claim that records are tiny.
const MOST_ROWS: u64 = 1 << 16;

/// Merged requests exceed the bytes of their records by up to a third.
const UNUSED: (u64, u64) = (4, 3);

/// Records that are planned together, and so can be merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkSize {
    /// Rows, at most.
    rows: u64,
    /// Bytes of their records, at most.
    pub(super) bytes: u64,
}

impl ChunkSize {
    /// Returns the bytes of its requests, at most.
    pub(super) fn memory(self) -> u64 {
        self.bytes * UNUSED.0 / UNUSED.1
    }
}

/// Consecutive rows of a replica and the requests for their records.
pub(super) struct Chunk<O> {
    pub(super) rows: Vec<PlannedRow>,
    /// The row after them; `None` after the last epoch.
    pub(super) next: Option<RowKey>,
    pub(super) requests: Vec<Request<O>>,
    /// Rows whose records their workers read, with a request for each.
    pub(super) left: u64,
    /// Bytes of these records, as far as they are known.
    pub(super) left_bytes: u64,
}

/// Decides which records are requested together.
pub(super) struct Planner {
    config: Arc<ResolvedConfig>,
    /// For each replica, a cursor through the epoch it is in.
    walks: Vec<Option<(u64, Walk)>>,
}

impl Planner {
    pub(super) fn new(config: Arc<ResolvedConfig>) -> Self {
        let walks = config.ranks.iter().map(|_| None).collect();
        Planner { config, walks }
    }

    /// Returns the size of a chunk: a window of the interleaved order if two fit into memory, else a quarter of it.
    pub(super) fn chunk_size(&self) -> ChunkSize {
        let share = self.config.fetch_share();
        let (mean, most_rows) = match self.config.arrays.partial {
            true => (self.config.arrays.expected.max(1), crops::MOST_ROWS),
            false => (self.config.splits.mean_record().max(1), MOST_ROWS),
        };
        match self.window_bytes().filter(|window| Some(*window) <= self.most_window_bytes()) {
            // Its records may be larger than most.
            Some(window) => {
                let bytes = (window + window / 2).min(share / 2 * UNUSED.1 / UNUSED.0);
                ChunkSize { rows: (2 * (window / mean)).clamp(1, most_rows), bytes }
            }
            None => ChunkSize { rows: (share / 4 / mean).clamp(1, most_rows), bytes: share / 4 },
        }
    }

    /// Returns the mean bytes that a replica reads of a window of the interleaved order; `None` in other orders.
    pub(super) fn window_bytes(&self) -> Option<u64> {
        let (run, window) = self.config.runs_and_windows()?;
        // The other replicas read their part of each window.
        let sharers = (self.config.plan.schedule(0).step_len() / self.config.batch as u64).max(1);
        let samples = u64::from(run.get()) * u64::from(window.get());
        Some(samples.saturating_mul(self.config.splits.mean_record()) / sharers)
    }

    /// Returns the mean bytes of the largest window of which two fit into memory; `None` in other orders.
    pub(super) fn most_window_bytes(&self) -> Option<u64> {
        self.window_bytes().map(|_| self.config.fetch_share() / 2 * UNUSED.1 / UNUSED.0)
    }

    /// Returns the bytes ahead into which two windows of the interleaved order fit; `None` in other orders.
    pub(super) fn two_windows(&self) -> Option<u64> {
        let replicas = self.config.ranks.len() as u64;
        self.window_bytes().map(|window| (window * UNUSED.0).div_ceil(UNUSED.1).saturating_mul(2 * replicas))
    }

    /// Plans a chunk from a row on, and starts its requests.
    pub(super) fn start(&mut self, fetcher: &Arc<Fetcher>, replica: usize, generation: u64, from: RowKey) {
        let size = fetcher.chunk;
        let (rows, next) = self.rows(replica, from, size);
        let splits = &fetcher.config.splits;
        let shards = open_shards(splits, &rows, || fetcher.is_at(replica, generation));
        // Without a shard or its index, the worker reads the record and reports why.
        let mut crops = match fetcher.config.arrays.partial {
            true => crops::find(&fetcher.config, &rows, &shards),
            false => HashMap::new(),
        };
        let chunk = self.chunk(rows, next, size, |shard, row| {
            let (open, at) = (shards.get(&shard)?, splits.locate(row.id()?).ok()?.row);
            let ranges = match crops.get(&row.key) {
                Some(crop) => crop.chunks.clone(),
                None => ranges(&fetcher.config, open, at, row)?,
            };
            Some((ranges, open.bytes().object()?.clone()))
        });
        let keys = chunk.rows.iter().enumerate();
        let arrived = keys.filter_map(|(number, row)| Some((number, crops.remove(&row.key)?.around))).collect();
        let rows = chunk.rows.into_iter().map(|row| (row, vec![])).collect();
        fetcher.start(replica, generation, rows, chunk.next, Parts { arrived, requests: chunk.requests });
    }

    /// Groups what rows need into requests, given a function from shard and row to the ranges that it needs and the object.
    /// Leaves rows to the next chunk if their records are larger than most.
    pub(super) fn chunk<O: Clone>(
        &self,
        mut rows: Vec<PlannedRow>,
        mut next: Option<RowKey>,
        size: ChunkSize,
        ranges: impl Fn((usize, usize), &PlannedRow) -> Option<(Vec<Range<u64>>, O)>,
    ) -> Chunk<O> {
        let (mut wanted, mut bytes, mut left, mut left_bytes) = (vec![], 0, 0, 0);
        for (number, row) in rows.iter().enumerate() {
            let Some(id) = row.id() else { continue };
            let found = self.config.splits.shard_of(id).ok().and_then(|shard| Some((shard, ranges(shard, row)?)));
            let length = found.as_ref().map(|(_, (ranges, _))| length_of(ranges));
            let Some((shard, (ranges, object))) = found.filter(|_| length <= Some(self.config.fetch_share())) else {
                left += 1;
                left_bytes += length.unwrap_or(0);
                continue;
            };
            bytes += length_of(&ranges);
            if bytes > size.bytes && !wanted.is_empty() {
                next = Some(row.key);
                rows.truncate(number);
                break;
            }
            wanted.extend(ranges.into_iter().map(|range| Wanted { number, shard, object: object.clone(), range }));
        }
        Chunk { rows, next, requests: merge(wanted, self.limits()), left, left_bytes }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { gap: self.config.fetch_gap, size: self.config.fetch_size }
    }

    /// Returns the rows from `from` on, at most as many as a chunk has, and the row after them unless the last epoch ends.
    pub(super) fn rows(&mut self, replica: usize, from: RowKey, size: ChunkSize) -> (Vec<PlannedRow>, Option<RowKey>) {
        let config = self.config.clone();
        let most = size.rows;
        let (mut planned_rows, mut at) = (vec![], from);
        let mut in_window: Option<Range<u64>> = None;
        if config.epochs.is_some_and(|epochs| from.epoch >= epochs) {
            return (planned_rows, None);
        }
        while (planned_rows.len() as u64) < most {
            let rows = self.walk(replica, at.epoch).rows(at.p);
            let (count, skipped) = (rows.len(), at.row);
            for (row, planned) in rows.enumerate().skip(skipped) {
                let mut sample = None;
                if let Some(q) = planned.position() {
                    // Rows of one window only: its runs are then requested whole.
                    if in_window.as_ref().is_some_and(|positions| !positions.contains(&q)) {
                        return (planned_rows, Some(at));
                    }
                    in_window = self.window_of(replica, at.epoch, q);
                    sample = Some(self.walk(replica, at.epoch).sample(q));
                }
                planned_rows.push(PlannedRow { key: at, sample });
                at.row = row + 1;
                if planned_rows.len() as u64 >= most {
                    break;
                }
            }
            if at.row >= count {
                let (epoch, p) = config.plan.schedule(at.epoch).after(at.epoch, at.p);
                let next_epoch = epoch != at.epoch;
                at = RowKey { epoch, p, row: 0 };
                if next_epoch {
                    break;
                }
            }
        }
        (planned_rows, Some(at))
    }

    /// Returns the positions of the window that holds position `q`; `None` if the order is not interleaved. The last window
    /// includes the positions after the last whole run.
    pub(super) fn window_of(&mut self, replica: usize, epoch: u64, q: u64) -> Option<Range<u64>> {
        let (run, window) = self.config.runs_and_windows()?;
        let (positions, runs) = (self.walk(replica, epoch).len(), u64::from(window.get()));
        let (length, windows) = (u64::from(run.get()) * runs, (positions / u64::from(run.get())).div_ceil(runs).max(1));
        let number = (q / length).min(windows - 1);
        Some(number * length..if number + 1 == windows { positions } else { (number + 1) * length })
    }

    pub(super) fn walk(&mut self, replica: usize, epoch: u64) -> &mut Walk {
        cursor(&self.config, &mut self.walks[replica], replica, epoch)
    }
}
