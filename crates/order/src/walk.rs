//! One epoch of a plan, as one replica visits it.

use std::sync::Arc;

use crate::Error;
use crate::bucket::{BucketCursor, Buckets};
use crate::order::{Cursor, EpochOrder};
use crate::plan::{Plan, Sample};
use crate::prf::{Domain, key};
use crate::remainder::Remainder;
use crate::rows::Rows;
use crate::source::{ScheduledCursor, Source};
use crate::substitute::{stride_key, substitutes_among};

/// The rows and samples of one replica in one epoch.
#[derive(Clone, Debug)]
pub struct Walk {
    plan: Arc<Plan>,
    path: Path,
    /// The plan's seed, or the replica's own under policy `shard`.
    seed: u64,
    epoch: u64,
    rank: u32,
}

/// Position → source position.
#[derive(Clone, Debug)]
enum Path {
    Order(Cursor),
    Scheduled(ScheduledCursor),
    Buckets(Arc<Buckets>, BucketCursor),
}

/// What one replica delivers from some p to the end of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows, with or without a sample.
    pub rows: u64,
    /// Rows with a sample that is not a repeat.
    pub samples: u64,
}

impl Plan {
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
        let path = match (&self.buckets, &self.source) {
            (Some(buckets), _) => Path::Buckets(buckets.clone(), BucketCursor::new(buckets, self.order, seed, epoch)),
            (None, Source::Scheduled(source)) => Path::Scheduled(ScheduledCursor::new(source, self.order, seed, epoch)),
            (None, _) => Path::Order(EpochOrder::new(self.order, self.schedule.len(rank), seed, epoch)?.cursor()),
        };
        Ok(Walk { plan: Arc::clone(self), path, seed, epoch, rank })
    }
}

impl Walk {
    /// Returns the rows of this replica's batch in the step that begins at p, without a sample of their own last.
    pub fn rows(&self, p: u64) -> Rows {
        let schedule = &self.plan.schedule;
        match &self.path {
            Path::Order(_) | Path::Scheduled(_) => schedule.rows(p, self.rank),
            Path::Buckets(buckets, cursor) => {
                let (unit, units) = (schedule.first(p, self.rank), schedule.len(self.rank));
                let (y, number) = cursor.batch(buckets, unit % units);
                let batch = buckets.as_slice()[y].batch.get();
                let first = number * u64::from(batch);
                Rows::new(first, batch, buckets.positions(y), schedule.remainder()).repeated(unit >= units)
            }
        }
    }

    /// Returns the bucket of this replica's batch in the step that begins at p, as an index into
    /// [`Buckets::as_slice`]; `None` without buckets.
    pub fn bucket(&self, p: u64) -> Option<usize> {
        let Path::Buckets(buckets, cursor) = &self.path else { return None };
        let schedule = &self.plan.schedule;
        Some(cursor.batch(buckets, schedule.first(p, self.rank) % schedule.len(self.rank)).0)
    }

    /// Returns the sample at position `q` (a [`Row::position`](crate::Row::position)).
    ///
    /// # Panics
    /// If the order has no such position.
    #[inline]
    pub fn sample(&mut self, q: u64) -> Sample {
        let v = match &mut self.path {
            Path::Order(cursor) => cursor.at(q),
            Path::Scheduled(cursor) => return Sample { source_position: q, id: cursor.id(q) },
            Path::Buckets(buckets, cursor) => cursor.source_position(buckets, q),
        };
        let v = self.plan.shares.as_ref().map_or(v, |shares| shares.source_position(self.rank, v));
        Sample { source_position: v, id: self.plan.source.id(self.plan.order, self.plan.seed, self.epoch, v) }
    }

    /// Returns the number of positions.
    #[expect(clippy::len_without_is_empty, reason = "the length of an order, not of a collection")]
    pub fn len(&self) -> u64 {
        match &self.path {
            Path::Order(cursor) => cursor.len(),
            Path::Scheduled(cursor) => cursor.len(),
            Path::Buckets(buckets, _) => buckets.len(),
        }
    }

    /// Returns the samples to try, in turn, for a bad one at position `q`: at most 16, none if `q` is the only position. With
    /// buckets, they are of the same bucket; with a scheduled source, of the same pass through the same member.
    pub fn substitutes(&mut self, q: u64) -> Vec<Sample> {
        match &mut self.path {
            Path::Scheduled(cursor) => {
                cursor.substitutes(q).into_iter().map(|id| Sample { source_position: q, id }).collect()
            }
            _ => self.substitute_positions(q).into_iter().map(|q| self.sample(q)).collect(),
        }
    }

    /// Returns the positions of [`substitutes`](Walk::substitutes); none with a scheduled source, whose substitutes need not have
    /// one in this epoch.
    pub fn substitute_positions(&self, q: u64) -> Vec<u64> {
        let among = match &self.path {
            Path::Order(cursor) => 0..cursor.len(),
            Path::Scheduled(_) => return vec![],
            Path::Buckets(buckets, _) => buckets.positions(buckets.bucket_of(q)),
        };
        substitutes_among(stride_key(self.seed, self.epoch, q), q, among).collect()
    }

    /// Counts the rows and samples that this replica delivers from p to the end of the epoch. With buckets, takes time
    /// linear in the steps.
    pub fn counts(&self, p: u64) -> Counts {
        let schedule = &self.plan.schedule;
        let steps = schedule.steps(p);
        if !matches!(self.path, Path::Buckets(..)) {
            let rows = steps.saturating_mul(schedule.batch().into());
            return Counts { rows, samples: schedule.samples(p, self.rank) };
        }
        let batches = (0..steps).map(|step| self.rows(p + step * schedule.step_len()));
        batches.fold(Counts::default(), |counts, rows| Counts {
            rows: counts.rows + rows.len() as u64,
            samples: counts.samples + rows.samples(),
        })
    }

    /// Counts the samples that no replica delivers between p and the end of the epoch; 0 except for `drop`.
    pub fn dropped(&self, p: u64) -> u64 {
        let schedule = &self.plan.schedule;
        let Path::Buckets(buckets, cursor) = &self.path else { return schedule.dropped(p) };
        if schedule.remainder() != Remainder::Drop {
            return 0;
        }
        let delivered = p.saturating_add(schedule.steps(p).saturating_mul(schedule.step_len()));
        let samples = |e| {
            let (y, number) = cursor.batch(buckets, e);
            let batch = u64::from(buckets.as_slice()[y].batch.get());
            (buckets.members(y) - number * batch).min(batch)
        };
        (delivered..buckets.batches()).map(samples).sum()
    }
}
