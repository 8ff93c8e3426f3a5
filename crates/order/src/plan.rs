//! Source, order, seed and replicas combined: what a loader holds for the whole run.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::Error;
use crate::batching::check_batching;
use crate::bucket::Buckets;
use crate::order::{EpochOrder, Order};
use crate::remainder::Remainder;
use crate::schedule::{Policy, Schedule};
use crate::shares::ShardShares;
use crate::source::Source;
use crate::state::{Identity, ResumeState};

/// How replicas divide the work.
#[derive(Clone, Copy, Debug)]
pub struct Replicas {
    /// R.
    pub world: NonZeroU32,
    /// B, rows of each replica's batch.
    pub batch: NonZeroU32,
    /// How replicas share an epoch.
    pub policy: Policy,
    /// What happens to an incomplete last step; `None` is [`Remainder::default_for`] the order.
    pub remainder: Option<Remainder>,
}

/// How replicas divide bucket batches, of which each gets one in a step.
#[derive(Clone, Copy, Debug)]
pub struct BucketReplicas {
    /// R.
    pub world: NonZeroU32,
    /// How replicas share an epoch: [`Policy::Sample`] or [`Policy::Off`].
    pub policy: Policy,
    /// What happens to incomplete batches, and to batches that do not fill the last step; `None` is
    /// [`Remainder::default_for`] the order.
    pub remainder: Option<Remainder>,
}

/// Everything that decides which sample is in which row of which batch.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) source: Source,
    pub(crate) order: Order,
    pub(crate) seed: u64,
    pub(crate) schedule: Schedule,
    pub(crate) shares: Option<ShardShares>,
    pub(crate) buckets: Option<Arc<Buckets>>,
}

/// One sample of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// v, the source position: with seed and epoch it decides the augmentation.
    pub source_position: u64,
    /// Id in the split (in a mixture, counted through all datasets).
    pub id: u64,
}

impl Plan {
    /// Combines a source with an order and replicas. `records` is the number of records of each shard, used by policy
    /// `shard` only.
    ///
    /// # Errors
    /// Those of the parts: an empty or too large source, a step that cannot be filled, shards that do not match the source.
    pub fn new(source: Source, order: Order, seed: u64, replicas: Replicas, records: &[u64]) -> Result<Self, Error> {
        EpochOrder::new(Order::Sequential, source.len(), seed, 0)?;
        let Replicas { world, batch, policy, remainder } = replicas;
        let shares = match policy {
            Policy::Shard => Some(ShardShares::new(&source, records, world.get())?),
            Policy::Sample | Policy::Off => None,
        };
        let lens = match &shares {
            // Replicas without a shard have no samples. Only the first of them is counted, so that memory does not grow with
            // the world size.
            Some(shares) => (0..world.get()).take(records.len() + 1).map(|rank| shares.len(rank)).collect(),
            None => vec![source.len()],
        };
        let remainder = remainder.unwrap_or(Remainder::default_for(order));
        let schedule = Schedule::new(policy, remainder, world, batch, lens)?;
        Ok(Plan { source, order, seed, schedule, shares, buckets: None })
    }

    /// Combines a source with the buckets of its source positions. Every batch has the rows of one bucket, and p counts
    /// bucket batches: in the step that begins at p, replica r gets batch p + r of the epoch.
    ///
    /// # Errors
    /// If the source is neither everything nor a list, the order is interleaved, the policy is `shard`, the buckets are
    /// those of another number of source positions, the source is empty or too large, or a step cannot be filled.
    pub fn bucketed(
        source: Source,
        order: Order,
        seed: u64,
        replicas: BucketReplicas,
        buckets: Arc<Buckets>,
    ) -> Result<Self, Error> {
        let BucketReplicas { world, policy, remainder } = replicas;
        check_batching(&source, policy, Some(order), buckets.len())?;
        if source.len() == 0 {
            return Err(Error::EmptySource);
        }
        let remainder = remainder.unwrap_or(Remainder::default_for(order));
        let batches = match remainder {
            Remainder::Drop => buckets.complete_batches(),
            Remainder::Pad | Remainder::Mask => buckets.batches(),
        };
        let sharers = if policy == Policy::Off { 1 } else { world.get() };
        if remainder == Remainder::Drop && batches < sharers.into() {
            return Err(Error::DropWithoutBatch { batches, world: sharers });
        }
        let schedule = Schedule::new(policy, remainder, world, NonZeroU32::MIN, vec![batches])?;
        Ok(Plan { source, order, seed, schedule, shares: None, buckets: Some(buckets) })
    }

    /// Returns the steps, and the rows of their batches. With [buckets](Plan::buckets), steps distribute bucket batches:
    /// take [`Walk::rows`](crate::Walk::rows) and [`Walk::counts`](crate::Walk::counts) for rows and samples.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the buckets; `None` if all batches have the same size.
    pub fn buckets(&self) -> Option<&Buckets> {
        self.buckets.as_deref()
    }

    /// Returns the source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the state of a run that has delivered everything before position p = `at.1` of epoch `at.0`. `fingerprint` is that
    /// of the splits; with a [scheduled](Source::Scheduled) source, of those that have an id below [`ids_end`](Plan::ids_end).
    pub fn state(&self, at: (u64, u64), fingerprint: u32) -> ResumeState {
        ResumeState::new(self.identity_at(at, fingerprint), at)
    }

    /// Returns one past the largest id on which the state at this epoch and p depends: a scheduled source may get other members
    /// in stages that have not begun. `None` with another source, whose states depend on all.
    pub fn ids_end(&self, (epoch, p): (u64, u64)) -> Option<u64> {
        match &self.source {
            Source::Scheduled(source) => Some(source.ids_end(source.begun(epoch, p))),
            _ => None,
        }
    }

    /// Returns the identity of this plan for a resume state at the start of the run. `fingerprint` is that of the split.
    pub fn identity(&self, fingerprint: u32) -> Identity {
        self.identity_at((0, 0), fingerprint)
    }

    fn identity_at(&self, (epoch, p): (u64, u64), fingerprint: u32) -> Identity {
        let (source_crc, stages) = match &self.source {
            Source::Scheduled(source) => {
                let begun = source.begun(epoch, p);
                (source.begun_crc(begun), Some(source.marks(begun)))
            }
            source => (source.crc(), None),
        };
        Identity {
            fingerprint,
            source_crc,
            stages,
            order: self.order,
            seed: self.seed,
            shard_world: self.shares.as_ref().map(|_| self.schedule.world()),
            batching: self.buckets.as_ref().map(|buckets| buckets.crc()),
        }
    }

    /// Returns where a run continues from a state: its (epoch, p), or the start of the next epoch if no step is left.
    /// `fingerprint` is that of [`state`](Plan::state) at the state's epoch and p.
    ///
    /// # Errors
    /// If the state belongs to another dataset, source, order or seed, its position is impossible, or it is inside an epoch
    /// of other buckets.
    pub fn resume(&self, state: &ResumeState, fingerprint: u32) -> Result<(u64, u64), Error> {
        state.check(&self.identity_at((state.epoch, state.p), fingerprint))?;
        // The end does not depend on the remainder, which may have changed.
        let (p, end) = (state.p, self.buckets().map_or(self.schedule.end(), Buckets::batches));
        let multiple = u64::from(state.identity.shard_world.unwrap_or(1));
        // The last step of a `mask` or `pad` epoch may reach past the end, but after it the epoch is over.
        if p > end || p % multiple != 0 {
            return Err(Error::StatePosition { p, end, multiple });
        }
        Ok(self.schedule.normalize(state.epoch, p))
    }
}
