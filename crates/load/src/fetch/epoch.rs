//! Counts the requests of an epoch, with the code that plans them.

use super::open_shards::open_shards;
use super::planner::{Chunk, ChunkSize, Planner};
use super::wanted::ranges;
use super::{PlannedRow, RowKey};
use crate::error::Result;
use crate::resolved_config::ResolvedConfig;
use shardtool_format::frame;
use shardtool_order::{Order, Policy};
use shardtool_read::Split;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

/// What one replica requests from an object store in an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochRequests {
    /// The order.
    pub order: Order,
    /// Requests for records. Each shard's index costs another one, when it is opened.
    pub requests: u64,
    /// Bytes of these requests, with those between records that are requested for nothing.
    pub bytes: u64,
    /// Whether the numbers are estimated: from parts of a large epoch, or with records of equal size in each shard because
    /// the indexes are many or cannot be read.
    pub estimated: bool,
    /// Bytes that are requested ahead: `read_ahead`, limited by the memory budget.
    pub ahead: u64,
    /// Mean bytes that the replica reads of a window of the interleaved order; `None` in other orders.
    pub window_bytes: Option<u64>,
    /// Bytes of requests ahead into which two of these windows fit.
    pub two_windows: Option<u64>,
    /// One request for each 4 MiB, and one for each shard that the replica reads.
    pub few: u64,
}

impl EpochRequests {
    /// Returns whether the epoch needs more than one request per 4 MiB.
    pub fn is_costly(&self) -> bool {
        self.requests > self.few
    }
}

/// Bytes of a request below which requests dominate the cost of an epoch.
const LARGE: u64 = 4 << 20;
/// Epochs with at most this many rows are counted whole.
const COUNTED_ROWS: u64 = 1 << 18;
/// Parts of a larger epoch that are counted.
const PARTS: u64 = 16;
/// Shards whose indexes are read to count exactly, at most, and bytes of these indexes.
const READ_INDEXES: (usize, u64) = (256, 64 << 20);

/// Counts the requests of a configuration's first replica in its first epoch.
pub(crate) fn epoch_requests(config: &Arc<ResolvedConfig>) -> Result<EpochRequests> {
    Counter::new(config).count(COUNTED_ROWS)
}

/// Returns the requests of the interleaved order with runs of at least 4 MiB of which two windows fit into the bytes that
/// are requested ahead; `None` if that needs more than one request per 4 MiB too. `resolve` resolves the configuration in
/// another order.
pub(crate) fn fitting_order(
    config: &Arc<ResolvedConfig>,
    resolve: impl Fn(Order) -> Result<Arc<ResolvedConfig>>,
) -> Result<Option<EpochRequests>> {
    let mean = config.splits.mean_record().max(1);
    if is_impossible(config) {
        return Ok(None);
    }
    for run_bytes in [LARGE, LARGE * 5 / 4, LARGE * 3 / 2, 2 * LARGE] {
        let run = run_bytes.div_ceil(mean);
        let order = |window: u64| {
            let size = |n: u64| u32::try_from(n).ok().and_then(NonZeroU32::new);
            Some(Order::Interleaved { run: size(run)?, window: size(window)? })
        };
        let Some(one) = order(1) else { continue };
        // Of a window of one run.
        let planner = Planner::new(resolve(one)?);
        let (Some(bytes), Some(most)) = (planner.window_bytes(), planner.most_window_bytes()) else { continue };
        let Some(order) = order(most / bytes.max(1)).filter(|_| most >= 2 * bytes) else { continue };
        let counted = epoch_requests(&resolve(order)?)?;
        if !counted.is_costly() {
            return Ok(Some(counted));
        }
    }
    Ok(None)
}

/// Returns whether the manifest claims more records than its bytes can hold. Such an epoch is not counted: it could take for ever.
fn is_impossible(config: &ResolvedConfig) -> bool {
    config.splits.mean_record() < frame::OVERHEAD_BYTES as u64
}

struct Counter<'a> {
    config: &'a Arc<ResolvedConfig>,
    planner: Planner,
    size: ChunkSize,
    /// Whether records have their sizes in the indexes.
    exact: bool,
    requests: u64,
    bytes: u64,
    /// Rows that have a sample.
    rows: u64,
}

impl<'a> Counter<'a> {
    fn new(config: &'a Arc<ResolvedConfig>) -> Self {
        let shards = || config.splits.as_slice().iter().flat_map(|split| &split.entry().shards);
        let index_bytes = shards().map(|shard| shard.index_bytes).sum::<u64>();
        let exact = shards().count() <= READ_INDEXES.0 && index_bytes <= READ_INDEXES.1;
        let planner = Planner::new(config.clone());
        let size = planner.chunk_size();
        Counter { config, planner, size, exact, requests: 0, bytes: 0, rows: 0 }
    }

    fn count(mut self, counted_rows: u64) -> Result<EpochRequests> {
        let (plan, rank) = (self.config.plan.clone(), self.config.ranks[0]);
        let schedule = plan.schedule(0);
        let steps = schedule.steps(0);
        let counts = plan.walk(0, rank)?.counts(0);
        let rows = if schedule.remainder().repeats() { counts.rows } else { counts.samples };
        let whole = rows <= counted_rows;
        let parts = match (is_impossible(self.config), whole) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => PARTS,
        };
        for part in 0..parts {
            let step = (u128::from(steps) * u128::from(part) / u128::from(PARTS)) as u64;
            let mut next = Some(RowKey { epoch: 0, p: step * schedule.step_len(), row: 0 });
            if part > 0 {
                next = self.next_window(next);
            }
            let until = if whole { u64::MAX } else { self.rows + counted_rows / PARTS };
            while let Some(from) = next.filter(|from| from.epoch == 0 && self.rows < until) {
                next = self.chunk(from);
            }
        }
        let scaled = |n: u64| (u128::from(n) * u128::from(rows)).div_ceil(u128::from(self.rows.max(1))) as u64;
        let (requests, bytes) = (scaled(self.requests), scaled(self.bytes));
        let splits = self.config.splits.as_slice().iter();
        let shards = splits.clone().map(|split| split.entry().shards.len() as u64).sum::<u64>();
        let shards = if schedule.policy() == Policy::Shard { shards.div_ceil(schedule.world().into()) } else { shards };
        Ok(EpochRequests {
            order: self.config.order,
            requests,
            bytes,
            // Which chunks of a large array a row needs, only its record says.
            estimated: !whole || !self.exact || parts == 0 || self.config.arrays.partial,
            ahead: self.config.fetch,
            window_bytes: self.planner.window_bytes(),
            two_windows: self.planner.two_windows(),
            few: bytes.div_ceil(LARGE) + shards.min(rows),
        })
    }

    /// Counts a chunk, and returns the row after it.
    fn chunk(&mut self, from: RowKey) -> Option<RowKey> {
        let (rows, next) = self.planner.rows(0, from, self.size);
        let splits = &self.config.splits;
        let shards = if self.exact { open_shards(splits, &rows, || true) } else { Default::default() };
        let known = |shard, row: &PlannedRow| {
            Some((ranges(self.config, shards.get(&shard)?, splits.locate(row.id()?).ok()?.row, row)?, ()))
        };
        let of_mean = |(split, shard): (usize, usize), row: &PlannedRow| {
            let frame = mean_frame(&splits.as_slice()[split], shard, splits.locate(row.id()?).ok()?.row);
            Some((vec![frame], ()))
        };
        let mut unknown = false;
        if self.exact {
            let found = |row: &PlannedRow| splits.shard_of(row.id()?).ok().and_then(|shard| known(shard, row));
            unknown = rows.iter().any(|row| row.sample.is_some() && found(row).is_none());
        }
        self.exact &= !unknown;
        let Chunk { rows, next, requests, left, left_bytes } = match self.exact {
            true => self.planner.chunk(rows, next, self.size, known),
            false => self.planner.chunk(rows, next, self.size, of_mean),
        };
        self.requests += requests.len() as u64 + left;
        self.bytes += requests.iter().map(|request| request.bytes.end - request.bytes.start).sum::<u64>() + left_bytes;
        self.rows += rows.iter().filter(|row| row.sample.is_some()).count() as u64;
        next
    }

    /// Returns the first row from `from` on that begins a window; `from` if the order has none.
    fn next_window(&mut self, mut from: Option<RowKey>) -> Option<RowKey> {
        let mut first = None;
        while let Some(at) = from.filter(|at| at.epoch == 0) {
            let row = self.planner.walk(0, at.epoch).rows(at.p).nth(at.row);
            let Some(q) = row.and_then(shardtool_order::Row::position) else { break };
            let Some(window) = self.planner.window_of(0, 0, q) else { break };
            if *first.get_or_insert(window.start) != window.start || q == window.start {
                break;
            }
            from = self.planner.rows(0, at, self.size).1;
        }
        from
    }
}

/// Returns where a record lies if all records of its shard have the same size.
fn mean_frame(split: &Split, shard: usize, row: u64) -> Range<u64> {
    let entry = &split.entry().shards[shard];
    let at = |row: u64| (u128::from(entry.bytes) * u128::from(row) / u128::from(entry.records.max(1))) as u64;
    at(row)..at(row + 1)
}
