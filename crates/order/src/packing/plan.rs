//! Source, order, seed, replicas and packing combined.

use std::sync::Arc;

use super::lengths::Packing;
use crate::Error;
use crate::batching::check_batching;
use crate::order::Order;
use crate::permutation::MAX;
use crate::plan::Replicas;
use crate::remainder::Remainder;
use crate::schedule::{Policy, Schedule};
use crate::source::Source;
use crate::state::Identity;

/// Everything that decides which samples are in which packed row of which batch.
#[derive(Clone, Debug)]
pub struct PackedPlan {
    pub(super) source: Source,
    pub(super) order: Order,
    pub(super) seed: u64,
    replicas: Replicas,
    pub(super) packing: Arc<Packing>,
}

impl PackedPlan {
    /// Combines a source with the lengths of its samples. `replicas.batch` counts packed rows.
    ///
    /// # Errors
    /// If the source is neither everything nor a list, the policy is `shard`, the lengths are those of another number of
    /// source positions, the source is empty or too large, or `drop` might leave an epoch without a step.
    pub fn new(
        source: Source,
        order: Order,
        seed: u64,
        replicas: Replicas,
        packing: Arc<Packing>,
    ) -> Result<Self, Error> {
        let Replicas { world, batch, policy, remainder } = replicas;
        check_batching(&source, policy, None, packing.len())?;
        let sharers = if policy == Policy::Off { 1 } else { world.get() };
        let step = u64::from(sharers) * u64::from(batch.get());
        if step > MAX {
            return Err(Error::GlobalBatch { world: sharers, batch: batch.get() });
        }
        if source.len() == 0 {
            return Err(Error::EmptySource);
        }
        let (remainder, rows) = (remainder.unwrap_or(Remainder::default_for(order)), packing.fewest_rows());
        if remainder == Remainder::Drop && rows < step {
            return Err(Error::DropWithoutRows { rows, world: sharers, batch: batch.get() });
        }
        let replicas = Replicas { remainder: Some(remainder), ..replicas };
        Ok(PackedPlan { source, order, seed, replicas, packing })
    }

    /// Returns the lengths and the parameters of packing.
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// Returns the source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the identity of this plan for a resume state. `fingerprint` is that of the split.
    pub fn identity(&self, fingerprint: u32) -> Identity {
        Identity {
            fingerprint,
            source_crc: self.source.crc(),
            stages: None,
            order: self.order,
            seed: self.seed,
            shard_world: None,
            batching: Some(self.packing.crc()),
        }
    }

    /// Returns the steps of an epoch of `rows` packed rows, of which `drop` has enough for a step.
    pub(super) fn schedule(&self, rows: u64) -> Schedule {
        let Replicas { world, batch, policy, remainder } = self.replicas;
        let remainder = remainder.unwrap_or(Remainder::default_for(self.order));
        Schedule::new(policy, remainder, world, batch, vec![rows]).expect("`new` has made these checks")
    }
}
