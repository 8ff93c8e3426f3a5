//! The memory budget: what a configuration needs, what there is, and how it is divided.

mod limit;
mod scratch;

pub(crate) use limit::Limits;
pub use limit::{Limit, LimitSource, Usage};
pub(crate) use scratch::{Admitted, ScratchPool};

use crate::config::{Config, Content};
use crate::error::{Error, Result};
use crate::image;
use crate::spec::Spec;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Batches ahead of the caller, unless told otherwise.
pub(crate) const DEPTH: usize = 2;
/// Batches a lane must have: one that the caller holds, one being built.
pub(crate) const FLOOR: u64 = 2;

/// How a loader's memory was computed. All in bytes but counts.
///
/// By default the budget is what [`Config::depth`] (or 2) batches ahead need, at most half of what there is; where that is
/// less than the floor, the floor, as long as there is so much:
///
/// - a batch: rows × (pixels + columns)
/// - wish = source + lanes × (depth + 1) × batch + workers × scratch
/// - floor = source + lanes × 2 × batch + scratch
/// - there is: limit ÷ local world − anonymous memory of this process − what its other loaders may still take
///
/// Page cache counts as free: the system gives it up when memory is short.
///
/// A given budget is hard. The default one is soft: batches that the consumer keeps beyond the plan are the consumer's, and
/// the loader allocates others in their place, one at a time, until 90 % of a limit is in use ([`Usage`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arithmetic {
    /// One batch: pixels, masks, columns (ragged ones as long as those of a few records), ids, flags.
    pub batch: u64,
    /// Replicas that this loader serves.
    pub lanes: u64,
    /// Worker threads.
    pub workers: u64,
    /// Batches ahead that the budget was made for.
    pub depth: u64,
    /// Ids that the source holds.
    pub source: u64,
    /// Scratch to decode the largest image of a few shards looked at.
    pub scratch: u64,
    /// The smallest limit on this process.
    pub limit: Option<Limit>,
    /// Processes that share the limit.
    pub local_world: u64,
    /// Anonymous memory of this process when the loader was made, without what its loaders hold.
    pub anonymous: u64,
    /// Budgets of this process's other loaders.
    pub others: u64,
    /// Whether the budget was given.
    pub given: bool,
    /// The budget.
    pub budget: u64,
}

impl Arithmetic {
    pub(crate) fn new(config: &Config, spec: &Spec, workers: usize, limits: &Limits) -> Result<Self> {
        let mut a = Arithmetic {
            batch: spec.batch_bytes(),
            lanes: spec.ranks.len() as u64,
            workers: workers as u64,
            depth: config.depth.unwrap_or(DEPTH) as u64,
            source: spec.plan.source().bytes(),
            scratch: match &config.content {
                Content::Images(images) => image::typical_scratch(&spec.input, images),
                Content::Records | Content::Columns => 0,
            },
            limit: limits.smallest(),
            local_world: config.local_world.into(),
            anonymous: limit::anonymous(Path::new("/")).saturating_sub(LIVE.load(Ordering::Relaxed)),
            others: reserved(),
            given: config.memory_budget.is_some(),
            budget: 0,
        };
        let there_is = a.there_is();
        a.budget = match config.memory_budget {
            Some(budget) => budget,
            None => a.wish().min((there_is / 2).max(a.floor())),
        };
        if a.floor() > if a.given { a.budget } else { there_is } {
            return Err(Error::Budget(Box::new(a)));
        }
        Ok(a)
    }

    /// Bytes that `depth` batches ahead need.
    pub fn wish(&self) -> u64 {
        self.source + self.lanes * (self.depth + 1) * self.batch + self.workers * self.scratch
    }

    /// Bytes below which nothing works.
    pub fn floor(&self) -> u64 {
        self.source + self.lanes * FLOOR * self.batch + self.scratch
    }

    /// Bytes that this process may still take.
    pub fn there_is(&self) -> u64 {
        let limit = self.limit.as_ref().map_or(u64::MAX, |l| l.bytes);
        (limit / self.local_world).saturating_sub(self.anonymous).saturating_sub(self.others)
    }

    /// Bytes of this process's memory beside its anonymous memory and all budgets: what the page cache may take.
    pub(crate) fn beside(&self) -> u64 {
        self.there_is().saturating_sub(self.budget)
    }

    /// Bytes for decode scratch: what [`slots`](Arithmetic::slots) batches leave. A part is the workers' to keep from one
    /// image to the next, the rest is admitted to larger images one by one; an image that needs more than that waits until
    /// fewer batches are in memory.
    pub fn scratch_bytes(&self) -> u64 {
        let batches = self.slots(0) as u64 * self.lanes * self.batch;
        self.budget.saturating_sub(self.source).saturating_sub(batches)
    }

    /// Bytes of scratch that each worker keeps: what half of the largest image looked at needs, as far as a whole one can
    /// still be admitted beside.
    pub(crate) fn kept_scratch(&self) -> u64 {
        let spare = self.scratch_bytes().saturating_sub(self.scratch);
        (self.scratch / 2).min(spare / self.workers.saturating_sub(1).max(1))
    }

    /// Bytes by which a budget by default may grow for an image that is larger than foreseen.
    pub(crate) fn may_grow(&self) -> u64 {
        if self.given { 0 } else { (self.there_is() / 2).saturating_sub(self.budget) }
    }

    /// Batches that each lane may have in memory, those that the caller holds included, when a batch takes `unforeseen`
    /// bytes more than planned.
    pub fn slots(&self, unforeseen: u64) -> usize {
        let scratch = self.workers * self.scratch;
        let left = self.budget.saturating_sub(self.source).saturating_sub(scratch);
        let most = if self.given { usize::MAX } else { self.depth as usize + 1 };
        ((left / (self.lanes * (self.batch + unforeseen)).max(1)).max(FLOOR) as usize).min(most.max(FLOOR as usize))
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Arithmetic { batch, lanes, source, scratch, anonymous, others, local_world, .. } = self;
        let (mib, floor) = (|bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)), self.floor());
        if self.given {
            write!(f, "the memory budget is {}", mib(self.budget))?;
        } else if let Some(limit) = &self.limit {
            let (there_is, all) = (mib(self.there_is()), mib(limit.bytes));
            write!(f, "available: {there_is} = {all} ({}) / {local_world} local processes", limit.from)?;
            write!(f, " - {} anonymous - {} of other loaders", mib(*anonymous), mib(*others))?;
        }
        write!(f, "; the least is {} = {lanes} replica(s) x 2 batches x {}", mib(floor), mib(*batch))?;
        write!(f, " + {} of decode scratch + {} of ids", mib(*scratch), mib(*source))
    }
}

/// Budgets of all loaders of this process, in bytes.
static RESERVED: Mutex<u64> = Mutex::new(0);

fn reserved() -> u64 {
    *RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of batches that the loaders of this process have in memory: part of their budgets, and of the process's anonymous
/// memory.
static LIVE: AtomicU64 = AtomicU64::new(0);

/// Counts a batch's memory as long as it exists.
pub(crate) struct Live(u64);

impl Live {
    pub(crate) fn new(bytes: u64) -> Self {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
        Live(bytes)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// A loader's part of the process's allowance; returned when dropped.
pub(crate) struct Reservation(AtomicU64);

impl Reservation {
    pub(crate) fn new(bytes: u64) -> Self {
        *RESERVED.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        Reservation(AtomicU64::new(bytes))
    }

    /// Reserves `bytes` more.
    pub(crate) fn grow(&self, bytes: u64) {
        *RESERVED.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *RESERVED.lock().unwrap_or_else(PoisonError::into_inner) -= *self.0.get_mut();
    }
}
