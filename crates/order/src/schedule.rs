//! Steps of an epoch, and the rows of each replica's batch, as positions. With buckets or packing, steps distribute units
//! (bucket batches or packed rows) instead, in the same way.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

use crate::permutation::MAX;
use crate::rows::Rows;
use crate::{Error, Remainder};

/// How replicas share an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Policy {
    /// All share one order: a step covers consecutive positions, and replica r gets the r-th run of them.
    #[default]
    Sample,
    /// Each replica visits the samples of its shards only, in a separate order.
    Shard,
    /// Each replica visits all samples.
    Off,
}

/// The steps of an epoch. p counts the positions that all replicas together (under policy `off`, each replica) have
/// delivered in the epoch so far. From the same p, every replica makes the same number of steps.
///
/// The schedule of a plan with buckets counts bucket batches, one per replica and step, in place of positions;
/// [`Walk::rows`](crate::Walk::rows) returns their rows. That of a [`PackedEpoch`](crate::PackedEpoch) counts packed rows.
#[derive(Clone, Debug)]
pub struct Schedule {
    world: u32,
    batch: u32,
    policy: Policy,
    remainder: Remainder,
    /// Positions: one number for all replicas, or under policy `shard` one for each of the first ones; the others have none.
    lens: Vec<u64>,
}

impl Schedule {
    /// Makes a schedule of `world` replicas with `batch` rows each. `lens` is the number of positions, once; under policy
    /// `shard` that of each replica up to the first one without a shard.
    ///
    /// # Errors
    /// A step or, under policy `shard`, an epoch of more than 2⁶³ positions; no samples; a `drop` epoch without a step; a
    /// replica without samples to pad with.
    pub(crate) fn new(
        policy: Policy,
        remainder: Remainder,
        world: NonZeroU32,
        batch: NonZeroU32,
        lens: Vec<u64>,
    ) -> Result<Self, Error> {
        let (world, batch) = (world.get(), batch.get());
        let schedule = Schedule { world, batch, policy, remainder, lens };
        if schedule.step_len() > MAX {
            return Err(Error::GlobalBatch { world, batch });
        }
        let shard = policy == Policy::Shard;
        let richest = (0..).zip(&schedule.lens).max_by_key(|(_, n)| **n);
        if let Some((rank, &len)) = richest.filter(|(_, n)| shard && **n > MAX / u64::from(world)) {
            return Err(Error::TooManyPositions { rank, world, len });
        }
        if schedule.largest() == 0 {
            return Err(Error::EmptySource);
        }
        let poorest = (0..).zip(&schedule.lens).min_by_key(|(_, n)| **n);
        if let Some((rank, &len)) = poorest {
            match remainder {
                Remainder::Drop if shard && len < batch.into() => {
                    return Err(Error::DropShareWithoutStep { rank, world, len, batch });
                }
                Remainder::Drop if len < schedule.step_len() && !shard => {
                    return Err(Error::DropWithoutStep { len, world: schedule.sharers(), batch });
                }
                Remainder::Pad if len == 0 => return Err(Error::PadWithoutSamples { rank, world }),
                _ => {}
            }
        }
        Ok(schedule)
    }

    /// Returns the number of replicas.
    pub fn world(&self) -> u32 {
        self.world
    }

    /// Returns the number of rows of each replica's batch.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// Returns how replicas share an epoch.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns what happens to an incomplete last step.
    pub fn remainder(&self) -> Remainder {
        self.remainder
    }

    /// Returns the number of positions that one step covers, RB, or B under policy `off`. p grows by it.
    pub fn step_len(&self) -> u64 {
        u64::from(self.sharers()) * u64::from(self.batch)
    }

    /// Returns the end of p: N or, under policy `shard`, R times the largest share.
    pub fn end(&self) -> u64 {
        match self.policy {
            Policy::Sample | Policy::Off => self.lens[0],
            Policy::Shard => self.largest() * u64::from(self.world),
        }
    }

    /// Returns the number of steps left in the epoch from p.
    pub fn steps(&self, p: u64) -> u64 {
        let done = self.own(p);
        let batch = self.own(self.step_len());
        match self.remainder {
            Remainder::Drop => self.lens.iter().map(|n| n.saturating_sub(done) / batch).min().unwrap_or(0),
            Remainder::Pad | Remainder::Mask => self.largest().saturating_sub(done).div_ceil(batch),
        }
    }

    /// Returns the number of samples that a replica delivers from p to the end of the epoch, without repeats.
    pub fn samples(&self, p: u64, rank: u32) -> u64 {
        let (steps, left) = (self.steps(p), self.len(rank).saturating_sub(self.own(p)));
        if self.policy != Policy::Sample {
            return left.min(steps.saturating_mul(self.batch.into()));
        }
        let (full, rest) = (left / self.step_len(), left % self.step_len());
        let (batch, before) = (u64::from(self.batch), u64::from(rank) * u64::from(self.batch));
        let last = if steps > full { rest.saturating_sub(before).min(batch) } else { 0 };
        full * batch + last
    }

    /// Returns the number of samples that no replica delivers between p and the end of the epoch; 0 except for `drop`.
    pub fn dropped(&self, p: u64) -> u64 {
        let delivered = self.steps(p).saturating_mul(self.own(self.step_len()));
        self.lens.iter().map(|n| n.saturating_sub(self.own(p)).saturating_sub(delivered)).sum()
    }

    /// Returns the rows of `rank`'s batch in the step that begins at p: [`batch`](Schedule::batch) of them, masked ones last.
    pub fn rows(&self, p: u64, rank: u32) -> Rows {
        Rows::new(self.first(p, rank), self.batch, 0..self.len(rank), self.remainder)
    }

    /// Returns the position of `rank`'s first row in the step that begins at p; it can be beyond the last position.
    pub(crate) fn first(&self, p: u64, rank: u32) -> u64 {
        let before = if self.policy == Policy::Sample { u64::from(rank) * u64::from(self.batch) } else { 0 };
        self.own(p).saturating_add(before)
    }

    /// Returns (epoch, p) after one step: (epoch + 1, 0) if that was the last step of the epoch.
    pub fn after(&self, epoch: u64, p: u64) -> (u64, u64) {
        self.normalize(epoch, p.saturating_add(self.step_len()))
    }

    /// Returns (epoch, p), or (epoch + 1, 0) if that epoch has no step left, as after a resume with a larger batch. Epoch
    /// 2⁶⁴ − 1 is followed by epoch 0.
    pub fn normalize(&self, epoch: u64, p: u64) -> (u64, u64) {
        if self.steps(p) == 0 { (epoch.wrapping_add(1), 0) } else { (epoch, p) }
    }

    /// Returns the number of positions in `rank`'s order.
    pub(crate) fn len(&self, rank: u32) -> u64 {
        match self.policy {
            Policy::Sample | Policy::Off => self.lens[0],
            Policy::Shard => self.lens.get(rank as usize).copied().unwrap_or(0),
        }
    }

    /// Converts p to the positions of one replica.
    fn own(&self, p: u64) -> u64 {
        if self.policy == Policy::Shard { p / u64::from(self.world) } else { p }
    }

    /// Returns the number of replicas that divide the positions of a step.
    pub(crate) fn sharers(&self) -> u32 {
        if self.policy == Policy::Off { 1 } else { self.world }
    }

    fn largest(&self) -> u64 {
        self.lens.iter().copied().max().unwrap_or(0)
    }
}
