//! Source, order, seed and replicas bound together: what a loader holds for the whole run.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::Error;
use crate::order::{Cursor, EpochOrder, Order};
use crate::prf::{Domain, key};
use crate::schedule::{Policy, Remainder, Schedule};
use crate::shares::ShardShares;
use crate::source::Source;
use crate::state::{Identity, ResumeState};
use crate::substitute::substitutes;

/// How the work is divided.
#[derive(Clone, Copy, Debug)]
pub struct Replicas {
    /// R.
    pub world: NonZeroU32,
    /// B, rows of each replica's batch.
    pub batch: NonZeroU32,
    /// How replicas share an epoch.
    pub policy: Policy,
    /// What happens to the last step; `None` is [`Remainder::default_for`] the order.
    pub remainder: Option<Remainder>,
}

/// Everything that decides which sample stands in which row of which batch.
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
    /// v, its place in the source: with seed and epoch it decides the augmentation.
    pub place: u64,
    /// Its id in the split (in a mixture, through all its datasets).
    pub id: u64,
}

impl Plan {
    /// Binds a source to an order and to replicas. `records` is the number of records of each shard, used by policy
    /// `shard` only.
    ///
    /// # Errors
    /// Whatever the parts refuse: see [`Schedule`] and [`ShardShares`].
    pub fn new(source: Source, order: Order, seed: u64, replicas: Replicas, records: &[u64]) -> Result<Self, Error> {
        EpochOrder::new(Order::Sequential, source.len(), seed, 0)?;
        let Replicas { world, batch, policy, remainder } = replicas;
        let shares = match policy {
            Policy::Shard => Some(ShardShares::new(&source, records, world.get())?),
            Policy::Sample | Policy::Off => None,
        };
        let lens = match &shares {
            Some(shares) => (0..world.get()).map(|rank| shares.len(rank)).collect(),
            None => vec![source.len()],
        };
        let remainder = remainder.unwrap_or(Remainder::default_for(order));
        let schedule = Schedule::new(policy, remainder, world, batch, lens)?;
        Ok(Plan { source, order, seed, schedule, shares })
    }

    /// The steps, and the rows of their batches.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// One replica's way through one epoch. Each thread takes its own, or clones one.
    ///
    /// # Errors
    /// [`Error::Rank`] when there is no such replica.
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

    /// What a resume state of this plan says of the dataset and its order. `fingerprint` is the split's.
    pub fn identity(&self, fingerprint: u32) -> Identity {
        Identity {
            fingerprint,
            source_crc: self.source.crc(),
            order: self.order,
            seed: self.seed,
            shard_world: self.shares.as_ref().map(|_| self.schedule.world()),
        }
    }

    /// Where to go on from a state: its (epoch, p), or the next epoch where no step is left.
    ///
    /// # Errors
    /// When the state belongs to another dataset, source, order or seed, or its position cannot be.
    pub fn resume(&self, state: &ResumeState, fingerprint: u32) -> Result<(u64, u64), Error> {
        state.check(&self.identity(fingerprint))?;
        let (p, end) = (state.p, self.schedule.end());
        let multiple = u64::from(state.identity.shard_world.unwrap_or(1));
        // The last step of a `mask` or `pad` epoch may reach past the end, but after it the epoch is over.
        if p > end || p % multiple != 0 {
            return Err(Error::StatePosition { p, end, multiple });
        }
        Ok(self.schedule.settle(state.epoch, p))
    }
}

/// One replica's way through one epoch: position → sample.
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
    /// The sample at position `q`, as [`Row::position`](crate::Row::position) names it.
    ///
    /// # Panics
    /// When the order has no such position.
    #[inline]
    pub fn sample(&mut self, q: u64) -> Sample {
        let place = self.cursor.at(q);
        let place = self.plan.shares.as_ref().map_or(place, |shares| shares.place(self.rank, place));
        Sample { place, id: self.plan.source.id(self.plan.seed, self.epoch, place) }
    }

    /// The positions to try, in turn, in place of a bad sample at position `q`: at most 16, none where `q` is the only
    /// position.
    pub fn substitutes(&self, q: u64) -> impl Iterator<Item = u64> + use<> {
        substitutes(self.seed, self.epoch, q, self.cursor.len())
    }
}
