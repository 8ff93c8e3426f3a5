//! The memory plan: what a loader needs, what is available, and how its budget is divided.

use super::reservation;
use crate::memory_pressure::MIN_BATCHES;
use crate::units::Bytes;
use shardtool_host::system_memory::{self, Limit, SystemLimits};
use std::fmt;
use std::path::Path;

/// Bytes that a worker takes and no budget counts: its stack, and freed memory that the allocator keeps. Measured with 1 to 16
/// workers at the smallest budget: up to 2.3 MiB each.
const WORKER_OVERHEAD: u64 = 11 << 18;

/// The memory that a loader needs.
pub(crate) struct Demand {
    /// Bytes of one batch.
    pub(crate) batch: u64,
    pub(crate) replicas: u64,
    pub(crate) workers: u64,
    pub(crate) prefetch: u64,
    /// Bytes of the ids that the source and the buckets hold.
    pub(crate) source: u64,
    /// Bytes of scratch to decode one of the largest images; 0 if no images are decoded.
    pub(crate) scratch: u64,
    /// Bytes of the tables of all workers' decoders; without images, of what the workers note of samples.
    pub(crate) tables: u64,
    /// Bytes of decoded images that are kept in memory.
    pub(crate) decoded: u64,
    /// Bytes requested ahead from object stores, if memory allows it.
    pub(crate) fetch: u64,
    /// Bytes of the indexes of shards in object stores.
    pub(crate) indexes: u64,
}

/// How a loader divides its memory. All in bytes except counts.
///
/// The default budget is the requested memory, at most half of the available memory, but at least the minimum. If the
/// minimum exceeds the available memory, creating the loader fails. The terms:
///
/// - a batch = rows × (pixels + columns)
/// - store = indexes + records requested ahead, for datasets in object stores; else 0
/// - requested = source + store + tables + decoded images + replicas × (prefetch + 1) × batch + workers × scratch
/// - minimum = source + indexes + tables + decoded images + replicas × 2 × batch + scratch
/// - available = limit ÷ local world − anonymous memory of this process − budgets of its other loaders − overhead of the
///   workers
///
/// Page cache counts as available: the system reclaims it when memory is short.
///
/// A given budget is hard. The default one is soft: batches that the consumer keeps beyond the plan do not count, and
/// the loader allocates others instead, one at a time, until 90 % of a limit is in use ([`Usage`](crate::Usage)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// One batch: pixels, masks, columns (ragged ones as long as those of a few records), ids, flags.
    pub batch: u64,
    /// Replicas that this loader serves.
    pub replicas: u64,
    /// Worker threads.
    pub workers: u64,
    /// Batches built ahead of the consumer that the budget was made for.
    pub prefetch: u64,
    /// The ids that the source and the buckets hold.
    pub source: u64,
    /// Scratch to decode the largest image of a few sampled shards.
    pub scratch: u64,
    /// Tables of all workers' decoders; without images, what the workers note of samples.
    pub tables: u64,
    /// Indexes of shards in object stores.
    pub indexes: u64,
    /// Decoded images that are kept in memory.
    pub decoded: u64,
    /// Records that are requested from object stores ahead of the workers: at most a quarter of a given budget, or an
    /// eighth of the available memory.
    pub fetch: u64,
    /// The smallest limit on this process; `None` if the system does not report one.
    pub limit: Option<Limit>,
    /// Processes that share the limit.
    pub local_world: u64,
    /// Anonymous memory of this process when the loader was created, without the batches of its loaders.
    pub anonymous: u64,
    /// Budgets of this process's other loaders.
    pub reserved: u64,
    /// What the workers take in addition to the budget.
    pub overhead: u64,
    /// Whether the budget was given.
    pub given: bool,
    /// The budget.
    pub budget: u64,
}

impl MemoryPlan {
    /// Plans a given budget, or the default one.
    ///
    /// # Errors
    /// The plan, if it does not fit into the budget or the available memory.
    pub(crate) fn new(
        demand: Demand,
        budget: Option<u64>,
        local_world: u32,
        limits: &SystemLimits,
    ) -> Result<Self, Box<Self>> {
        let Demand { batch, replicas, workers, prefetch, source, scratch, tables, decoded, fetch, indexes } = demand;
        let mut plan = MemoryPlan {
            batch,
            replicas,
            workers,
            prefetch,
            source,
            scratch,
            tables,
            indexes,
            decoded,
            fetch: 0,
            limit: limits.smallest(),
            local_world: local_world.into(),
            anonymous: system_memory::anonymous(Path::new("/")).saturating_sub(reservation::live()),
            reserved: reservation::reserved(),
            overhead: if scratch > 0 { workers * WORKER_OVERHEAD } else { 0 },
            given: budget.is_some(),
            budget: 0,
        };
        let available = plan.available();
        let spare = |bytes: u64| bytes.saturating_sub(plan.minimum());
        plan.fetch = fetch.min(match budget {
            Some(budget) => (budget / 4).min(spare(budget)),
            None => (available / 8).min(spare(available) / 2),
        });
        plan.budget = budget.unwrap_or(plan.requested().min((available / 2).max(plan.minimum() + plan.fetch)));
        let fits = plan.minimum() <= if plan.given { plan.budget } else { available };
        if fits { Ok(plan) } else { Err(Box::new(plan)) }
    }

    /// Bytes for `prefetch` batches ahead of the consumer, with every worker at one of the largest images.
    pub fn requested(&self) -> u64 {
        self.fixed() + self.replicas * (self.prefetch + 1) * self.batch + self.workers * self.scratch
    }

    /// The smallest budget that works, in bytes.
    pub fn minimum(&self) -> u64 {
        let held = self.source + self.indexes + self.tables + self.decoded;
        held + self.replicas * MIN_BATCHES as u64 * self.batch + self.scratch
    }

    /// Bytes that depend neither on batches nor on images that are being decoded.
    fn fixed(&self) -> u64 {
        self.source + self.indexes + self.tables + self.decoded + self.fetch
    }

    /// Bytes that this process may still allocate: the limit's share without memory in use or reserved.
    pub fn available(&self) -> u64 {
        let limit = self.limit.as_ref().map_or(u64::MAX, |l| l.bytes);
        let taken = self.anonymous + self.reserved + self.overhead;
        (limit / self.local_world).saturating_sub(taken)
    }

    /// Available bytes that no budget reserves, which the page cache may use.
    pub(crate) fn unreserved(&self) -> u64 {
        self.available().saturating_sub(self.budget)
    }

    /// Bytes for decode scratch: the budget without the source, what is requested ahead, and the batches of
    /// [`batches_per_replica`](Self::batches_per_replica). Each worker keeps a part of it from one image to the next;
    /// the rest is admitted to larger images one by one. An image that needs more waits until fewer batches are in
    /// memory.
    pub fn scratch_bytes(&self) -> u64 {
        let batches = self.batches_per_replica(0) as u64 * self.replicas * self.batch;
        self.budget.saturating_sub(self.fixed()).saturating_sub(batches)
    }

    /// Bytes of scratch that each worker keeps from one image to the next: what the largest sampled image needs, without what was
    /// added for others, so that images of one size do not allocate. With a given budget at most half of the scratch, because the
    /// buffers of different images together may need more than each image. At most as many as leave enough for one large image.
    pub(crate) fn kept_scratch(&self) -> u64 {
        let bytes = self.scratch_bytes();
        let most = match self.workers {
            0 | 1 => bytes,
            workers => bytes.saturating_sub(self.scratch) / (workers - 1),
        };
        let typical = if self.given { self.scratch / 2 } else { self.scratch - self.scratch / 5 };
        typical.min(most)
    }

    /// Bytes by which a default budget may grow for an image that is larger than planned.
    pub(crate) fn max_growth(&self) -> u64 {
        if self.given { 0 } else { (self.available() / 2).saturating_sub(self.budget) }
    }

    /// Batches that each replica may have in memory, those that the consumer holds included, when a batch takes
    /// `unforeseen` bytes more than planned.
    pub fn batches_per_replica(&self, unforeseen: u64) -> usize {
        let scratch = self.workers * self.scratch;
        let left = self.budget.saturating_sub(self.fixed()).saturating_sub(scratch);
        let most = if self.given { usize::MAX } else { self.prefetch as usize + 1 };
        let fitting = left / (self.replicas * (self.batch + unforeseen)).max(1);
        (fitting as usize).max(MIN_BATCHES).min(most.max(MIN_BATCHES))
    }
}

impl fmt::Display for MemoryPlan {
    /// Writes how the available and the minimum memory are computed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u64, one, many| format!("{n} {}", if n == 1 { one } else { many });
        if self.given {
            write!(f, "memory budget: {}; ", Bytes(self.budget))?;
        } else if let Some(limit) = &self.limit {
            let (limit, processes) = (limit, plural(self.local_world, "process", "processes"));
            write!(f, "available: {} = {} ({})", Bytes(self.available()), Bytes(limit.bytes), limit.from)?;
            write!(f, " ÷ {processes} − {} already used", Bytes(self.anonymous))?;
            if self.overhead > 0 {
                write!(f, " − {} for {}", Bytes(self.overhead), plural(self.workers, "worker", "workers"))?;
            }
            if self.reserved > 0 {
                write!(f, " − {} reserved by other loaders", Bytes(self.reserved))?;
            }
            f.write_str("; ")?;
        }
        let replicas = plural(self.replicas, "replica", "replicas");
        write!(f, "minimum: {} = {replicas} x {MIN_BATCHES} batches x {}", Bytes(self.minimum()), Bytes(self.batch))?;
        write!(f, " + {} decode scratch", Bytes(self.scratch))?;
        if self.tables > 0 {
            write!(f, " + {} tables of the workers", Bytes(self.tables))?;
        }
        if self.source > 0 {
            write!(f, " + {} sample ids", Bytes(self.source))?;
        }
        if self.indexes > 0 {
            write!(f, " + {} indexes of the object store", Bytes(self.indexes))?;
        }
        if self.decoded > 0 {
            write!(f, " + {} decoded images", Bytes(self.decoded))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_keep_scratch_for_images_of_one_size_and_leave_enough_for_a_large_one() {
        let limits = SystemLimits::find(Path::new("/"));
        for workers in [1, 2, 3, 16] {
            let (batch, sampled) = (1_000_000, 100_000);
            let scratch = sampled + sampled / 4;
            let demand = |scratch| Demand {
                batch,
                replicas: 1,
                workers,
                prefetch: 2,
                source: 0,
                scratch,
                tables: 0,
                decoded: 0,
                fetch: 0,
                indexes: 0,
            };
            let plan = |budget| MemoryPlan::new(demand(scratch), budget, 1, &limits).expect("it fits");
            assert_eq!(plan(None).kept_scratch(), sampled, "{workers} workers");
            let least = plan(None).minimum();
            for budget in (least..least + 3_000_000).step_by(77_777) {
                let plan = plan(Some(budget));
                let (kept, pool) = (plan.kept_scratch(), plan.scratch_bytes() - workers * plan.kept_scratch());
                assert!(
                    kept <= scratch / 2 && kept + pool >= scratch,
                    "{workers} workers, {budget} bytes: {kept}, {pool}"
                );
            }
        }
    }
}
