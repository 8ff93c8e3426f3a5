//! The order of a loader: which samples are in which row of which batch.
//!
//! A row has one sample or, with packing, several, and the steps of an epoch then depend on the epoch.

use crate::error::Result;
use shardtool_order::{
    Buckets, Counts, PackedEpoch, PackedPlan, PackedSample, Packing, ResumeState, Rows, Sample, Schedule, Source,
};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Packed epochs that are kept: replicas of one process may be in different ones.
const KEPT_EPOCHS: usize = 3;

/// Bytes of the tables of two small permutations.
const PERMUTATIONS: u64 = 16 << 10;

pub(crate) enum Plan {
    Samples(Arc<shardtool_order::Plan>),
    Packed(PackedRows),
}

/// A plan whose rows have several samples, and the epochs that were packed last.
pub(crate) struct PackedRows {
    plan: Arc<PackedPlan>,
    epochs: Mutex<VecDeque<(u64, PackedEpoch)>>,
}

impl PackedRows {
    pub(crate) fn new(plan: PackedPlan) -> Self {
        PackedRows { plan: Arc::new(plan), epochs: Mutex::default() }
    }

    /// Calls `f` with a packed epoch. Packs it unless it is one of the last ones.
    fn with_epoch<T>(&self, epoch: u64, f: impl FnOnce(&PackedEpoch) -> T) -> T {
        let mut epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        let found = epochs.iter().position(|(other, _)| *other == epoch);
        let at = found.unwrap_or_else(|| {
            if epochs.len() == KEPT_EPOCHS {
                epochs.pop_front();
            }
            epochs.push_back((epoch, self.plan.epoch(epoch)));
            epochs.len() - 1
        });
        f(&epochs[at].1)
    }
}

impl Plan {
    /// Returns the steps of an epoch.
    pub(crate) fn schedule(&self, epoch: u64) -> Cow<'_, Schedule> {
        match self {
            Plan::Samples(plan) => Cow::Borrowed(plan.schedule()),
            Plan::Packed(rows) => Cow::Owned(rows.with_epoch(epoch, |packed| packed.schedule().clone())),
        }
    }

    /// Returns the rows of one replica in one epoch. Each thread needs its own, or a clone.
    pub(crate) fn walk(&self, epoch: u64, rank: u32) -> Result<Walk> {
        Ok(match self {
            Plan::Samples(plan) => Walk::Samples(Box::new(plan.walk(epoch, rank)?)),
            Plan::Packed(rows) => Walk::Packed(Box::new(rows.with_epoch(epoch, PackedEpoch::clone)), rank),
        })
    }

    pub(crate) fn seed(&self) -> u64 {
        match self {
            Plan::Samples(plan) => plan.seed(),
            Plan::Packed(rows) => rows.plan.seed(),
        }
    }

    pub(crate) fn source(&self) -> &Source {
        match self {
            Plan::Samples(plan) => plan.source(),
            Plan::Packed(rows) => rows.plan.source(),
        }
    }

    /// Returns the buckets; `None` if all batches have the same rows.
    pub(crate) fn buckets(&self) -> Option<&Buckets> {
        match self {
            Plan::Samples(plan) => plan.buckets(),
            Plan::Packed(_) => None,
        }
    }

    /// Returns how samples are packed; `None` if each has a row.
    pub(crate) fn packing(&self) -> Option<&Packing> {
        match self {
            Plan::Samples(_) => None,
            Plan::Packed(rows) => Some(rows.plan.packing()),
        }
    }

    /// Returns the memory of source, buckets and packing in bytes, of `threads` that walk through an epoch.
    pub(crate) fn bytes(&self, threads: u64) -> u64 {
        let batching = match self {
            Plan::Samples(plan) => plan.buckets().map_or(0, Buckets::bytes),
            Plan::Packed(rows) => {
                let packing = rows.plan.packing();
                let (windows, window) = (packing.len().div_ceil(packing.window().into()), u64::from(packing.window()));
                let kept = KEPT_EPOCHS as u64;
                // Of each window its end, in each kept epoch; of each thread the samples of one, what packs them, and two
                // permutations.
                let thread = 80 * window.min(packing.len()) + PERMUTATIONS;
                packing.bytes() + kept * 8 * windows + (threads + kept) * thread
            }
        };
        self.source().bytes() + threads * self.source().walk_bytes() + batching
    }

    /// Returns the state of a run at an epoch and a position, with the fingerprint of the splits that have an id below
    /// [`ids_end`](Plan::ids_end).
    pub(crate) fn state(&self, at: (u64, u64), fingerprint: u32) -> ResumeState {
        match self {
            Plan::Samples(plan) => plan.state(at, fingerprint),
            Plan::Packed(rows) => ResumeState::new(rows.plan.identity(fingerprint), at),
        }
    }

    /// Returns one past the largest id on which the state at an epoch and a position depends; `None` if it depends on all.
    pub(crate) fn ids_end(&self, at: (u64, u64)) -> Option<u64> {
        match self {
            Plan::Samples(plan) => plan.ids_end(at),
            Plan::Packed(_) => None,
        }
    }

    /// Returns the epoch and position at which a state resumes.
    pub(crate) fn resume(&self, state: &ResumeState, fingerprint: u32) -> Result<(u64, u64)> {
        Ok(match self {
            Plan::Samples(plan) => plan.resume(state, fingerprint)?,
            Plan::Packed(rows) => rows.plan.resume(state, fingerprint)?,
        })
    }
}

/// The rows of one replica in one epoch.
#[derive(Clone)]
pub(crate) enum Walk {
    Samples(Box<shardtool_order::Walk>),
    /// A packed epoch, and the rank.
    Packed(Box<PackedEpoch>, u32),
}

impl Walk {
    /// Returns the rows of the batch in the step that begins at p: positions or, with packing, numbers of packed rows.
    pub(crate) fn rows(&self, p: u64) -> Rows {
        match self {
            Walk::Samples(walk) => walk.rows(p),
            Walk::Packed(epoch, rank) => epoch.schedule().rows(p, *rank),
        }
    }

    /// Returns the bucket of the batch in the step that begins at p; `None` without buckets.
    pub(crate) fn bucket(&self, p: u64) -> Option<usize> {
        match self {
            Walk::Samples(walk) => walk.bucket(p),
            Walk::Packed(..) => None,
        }
    }

    /// Returns the sample at a position.
    pub(crate) fn sample(&mut self, q: u64) -> Sample {
        match self {
            Walk::Samples(walk) => walk.sample(q),
            Walk::Packed(epoch, _) => epoch.sample(q),
        }
    }

    /// Returns the samples of the packed row with this number; `None` without packing.
    pub(crate) fn packed(&mut self, row: u64) -> Option<&[PackedSample]> {
        match self {
            Walk::Samples(_) => None,
            Walk::Packed(epoch, _) => Some(epoch.row(row)),
        }
    }

    /// Calls `f` with each sample of the row with this position, or number of a packed row.
    pub(crate) fn for_each_sample(&mut self, row: u64, mut f: impl FnMut(Sample)) {
        match self {
            Walk::Samples(walk) => f(walk.sample(row)),
            Walk::Packed(epoch, _) => epoch.row(row).iter().for_each(|packed| f(packed.sample)),
        }
    }

    /// Returns the samples to try, in turn, for a bad one at position `q`.
    pub(crate) fn substitutes(&mut self, q: u64) -> Vec<Sample> {
        match self {
            Walk::Samples(walk) => walk.substitutes(q),
            Walk::Packed(epoch, _) => epoch.substitutes(q),
        }
    }

    /// Returns the number of positions of the order.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Walk::Samples(walk) => walk.len(),
            Walk::Packed(epoch, _) => epoch.rows(),
        }
    }

    /// Counts the rows that the replica delivers from p to the end of the epoch, and of these the ones that no other has.
    pub(crate) fn counts(&self, p: u64) -> Counts {
        match self {
            Walk::Samples(walk) => walk.counts(p),
            Walk::Packed(epoch, rank) => {
                let schedule = epoch.schedule();
                let rows = schedule.steps(p).saturating_mul(schedule.batch().into());
                Counts { rows, samples: schedule.samples(p, *rank) }
            }
        }
    }
}
