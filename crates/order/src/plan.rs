//! Source, order, seed and replicas combined: what a loader holds for the whole run.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::Error;
use crate::order::{Cursor, EpochOrder, Order};
use crate::prf::{Domain, key};
use crate::remainder::Remainder;
use crate::schedule::{Policy, Schedule};
use crate::shares::ShardShares;
use crate::source::Source;
use crate::state::{Identity, ResumeState};
use crate::substitute::substitutes;

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

/// Everything that decides which sample is in which row of which batch.
#[derive(Clone, Debug)]
pub struct Plan {
    source: Source,
    order: Order,
    seed: u64,
    schedule: Schedule,
    shares: Option<ShardShares>,
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
        Ok(Plan { source, order, seed, schedule, shares })
    }

    /// Returns the steps, and the rows of their batches.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns the source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the samples of one replica in one epoch. Each thread needs its own, or a clone.
    ///
    /// # Errors
    /// [`Error::Rank`] if the rank is not below the world size.
    pub fn walk(self: &Arc<Self>, epoch: u64, rank: u32) -> Result<Walk, Error> {
        let world = self.schedule.world();
        if rank >= world {
            return Err(Error::Rank { rank, world });
        }
        let seed = match self.shares {
            Some(_) => key(Domain::Shard, self.seed, 0, rank.into()),
            None => self.seed,
        };
        let order = EpochOrder::new(self.order, self.schedule.len(rank), seed, epoch)?;
        Ok(Walk { plan: Arc::clone(self), cursor: order.cursor(), seed, epoch, rank })
    }

    /// Returns the identity of this plan for a resume state. `fingerprint` is that of the split.
    pub fn identity(&self, fingerprint: u32) -> Identity {
        Identity {
            fingerprint,
            source_crc: self.source.crc(),
            order: self.order,
            seed: self.seed,
            shard_world: self.shares.as_ref().map(|_| self.schedule.world()),
        }
    }

    /// Returns where a run continues from a state: its (epoch, p), or the start of the next epoch if no step is left.
    ///
    /// # Errors
    /// If the state belongs to another dataset, source, order or seed, or its position is impossible.
    pub fn resume(&self, state: &ResumeState, fingerprint: u32) -> Result<(u64, u64), Error> {
        state.check(&self.identity(fingerprint))?;
        let (p, end) = (state.p, self.schedule.end());
        let multiple = u64::from(state.identity.shard_world.unwrap_or(1));
        // The last step of a `mask` or `pad` epoch may reach past the end, but after it the epoch is over.
        if p > end || p % multiple != 0 {
            return Err(Error::StatePosition { p, end, multiple });
        }
        Ok(self.schedule.normalize(state.epoch, p))
    }
}

/// The samples of one replica in one epoch: position → sample.
#[derive(Clone, Debug)]
pub struct Walk {
    plan: Arc<Plan>,
    cursor: Cursor,
    /// The plan's seed, or the replica's own under policy `shard`.
    seed: u64,
    epoch: u64,
    rank: u32,
}

impl Walk {
    /// Returns the sample at position `q` (a [`Row::position`](crate::Row::position)).
    ///
    /// # Panics
    /// If the order has no such position.
    #[inline]
    pub fn sample(&mut self, q: u64) -> Sample {
        let v = self.cursor.at(q);
        let v = self.plan.shares.as_ref().map_or(v, |shares| shares.source_position(self.rank, v));
        Sample { source_position: v, id: self.plan.source.id(self.plan.seed, self.epoch, v) }
    }

    /// Returns the number of positions.
    #[expect(clippy::len_without_is_empty, reason = "the length of an order, not of a collection")]
    pub fn len(&self) -> u64 {
        self.cursor.len()
    }

    /// Returns the positions to try, in turn, for a bad sample at position `q`: at most 16, none if `q` is the only position.
    pub fn substitutes(&self, q: u64) -> impl Iterator<Item = u64> + use<> {
        substitutes(self.seed, self.epoch, q, self.cursor.len())
    }
}
