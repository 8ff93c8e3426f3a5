//! The packed rows of one epoch.

use std::ops::Range;
use std::sync::Arc;

use super::first_fit::FirstFit;
use super::plan::PackedPlan;
use crate::Error;
use crate::order::{Cursor, EpochOrder, Order};
use crate::permutation::Permutation;
use crate::plan::Sample;
use crate::prf::{Domain, key};
use crate::schedule::Schedule;
use crate::state::ResumeState;
use crate::substitute::substitutes;

/// A sample of a packed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedSample {
    /// Position in the epoch.
    pub position: u64,
    /// Source position and id.
    pub sample: Sample,
    /// Tokens that it takes: its length, or those of a whole row if it is longer.
    pub tokens: u32,
}

/// The packed rows of one epoch. Holds 8 bytes per packing window, which clones share, and one packed window.
#[derive(Clone, Debug)]
pub struct PackedEpoch {
    plan: Arc<PackedPlan>,
    epoch: u64,
    schedule: Schedule,
    /// End of each packing window in rows.
    ends: Arc<[u64]>,
    packer: Packer,
    window: Option<Window>,
}

/// Packs windows of an epoch.
#[derive(Clone, Debug)]
struct Packer {
    cursor: Cursor,
    source_positions: Vec<u64>,
    tokens: Vec<u32>,
    fit: FirstFit,
}

/// A packed window.
#[derive(Clone, Debug)]
struct Window {
    /// Its rows in the epoch.
    rows: Range<u64>,
    /// The samples of row after row, as the rows were begun.
    samples: Vec<PackedSample>,
    /// End of each row in `samples`.
    ends: Vec<u32>,
    /// Number of a row in the window → the number in which it was begun; `None` if these are equal.
    permutation: Option<Permutation>,
}

impl PackedPlan {
    /// Packs one epoch, reading every length once. Each thread needs a clone of the result.
    pub fn epoch(self: &Arc<Self>, epoch: u64) -> PackedEpoch {
        let order = EpochOrder::new(self.order, self.source.len(), self.seed, epoch);
        let cursor = order.expect("`PackedPlan::new` has checked the length").cursor();
        let mut packer = Packer { cursor, source_positions: vec![], tokens: vec![], fit: FirstFit::default() };
        let mut end = 0;
        let ends: Arc<[u64]> = (0..self.packing.windows())
            .map(|number| {
                end += u64::from(packer.pack(self, number));
                end
            })
            .collect();
        PackedEpoch { plan: Arc::clone(self), epoch, schedule: self.schedule(end), ends, packer, window: None }
    }

    /// Returns where a run continues from a state: its (epoch, p), or the start of the next epoch if no step is left. Packs
    /// the state's epoch, unless it is at its start.
    ///
    /// # Errors
    /// If the state belongs to another dataset, source, order or seed, its position is impossible, or it is inside an epoch
    /// of other lengths or parameters.
    pub fn resume(self: &Arc<Self>, state: &ResumeState, fingerprint: u32) -> Result<(u64, u64), Error> {
        state.check(&self.identity(fingerprint))?;
        if state.p == 0 {
            return Ok((state.epoch, 0));
        }
        let epoch = self.epoch(state.epoch);
        let (p, end) = (state.p, epoch.schedule().end());
        if p > end {
            return Err(Error::StatePosition { p, end, multiple: 1 });
        }
        Ok(epoch.schedule().normalize(state.epoch, p))
    }
}

impl PackedEpoch {
    /// Returns the steps of this epoch. [`Schedule::rows`] returns the numbers of packed rows, for [`PackedEpoch::row`].
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns E, the number of packed rows.
    pub fn rows(&self) -> u64 {
        self.ends[self.ends.len() - 1]
    }

    /// Returns the share of the tokens of all rows that hold a sample's token, in [0, 1].
    pub fn fill(&self) -> f64 {
        let packing = &self.plan.packing;
        packing.total() as f64 / (self.rows() as f64 * f64::from(packing.capacity()))
    }

    /// Returns the samples of packed row `e` by ascending position. If it is in another window than the preceding call's,
    /// packs that window.
    ///
    /// # Panics
    /// If `e` is E or more.
    pub fn row(&mut self, e: u64) -> &[PackedSample] {
        assert!(e < self.rows(), "row {e} of an epoch of {}", self.rows());
        if self.window.as_ref().is_some_and(|window| !window.rows.contains(&e)) {
            self.window = None;
        }
        let PackedEpoch { plan, epoch, ends, packer, window, .. } = self;
        let window = window.get_or_insert_with(|| {
            let number = ends.partition_point(|&end| end <= e);
            let first = number.checked_sub(1).map_or(0, |before| ends[before]);
            packer.window(plan, *epoch, number as u64, first)
        });
        window.row(e)
    }

    /// Returns the sample at position `q`, as for a substitute.
    ///
    /// # Panics
    /// If `q` is N or more.
    pub fn sample(&mut self, q: u64) -> Sample {
        self.packer.sample(&self.plan, self.epoch, q)
    }

    /// Returns the samples to try, in turn, for a bad one at position `q`: at most 16, none if `q` is the only position. A
    /// substitute takes the tokens of the sample that it replaces: a longer one is truncated.
    pub fn substitutes(&mut self, q: u64) -> Vec<Sample> {
        let positions = substitutes(self.plan.seed, self.epoch, q, self.plan.source.len());
        positions.map(|q| self.sample(q)).collect()
    }
}

impl Packer {
    /// Packs a window, and returns its number of rows.
    fn pack(&mut self, plan: &PackedPlan, number: u64) -> u32 {
        let packing = &plan.packing;
        let first = number * u64::from(packing.window());
        let len = (packing.len() - first).min(packing.window().into());
        self.source_positions.resize(len as usize, 0);
        self.cursor.fill(first, &mut self.source_positions);
        self.tokens.clear();
        self.tokens.extend(self.source_positions.iter().map(|&v| packing.tokens(v)));
        self.fit.pack(&self.tokens, packing.capacity())
    }

    /// Packs the window with this number, whose first row is `first` of the epoch.
    fn window(&mut self, plan: &PackedPlan, epoch: u64, number: u64, first: u64) -> Window {
        let rows = self.pack(plan, number);
        let mut ends = vec![0u32; rows as usize];
        self.fit.rows().iter().for_each(|&row| ends[row as usize] += 1);
        // Turns each row's count into its next free slot, which is its end after all samples are placed.
        let mut start = 0;
        for slot in &mut ends {
            start += std::mem::replace(slot, start);
        }
        let position = number * u64::from(plan.packing.window());
        let sample = |v| Sample { source_position: v, id: plan.source.id(plan.order, plan.seed, epoch, v) };
        let none = PackedSample { position: 0, sample: Sample { source_position: 0, id: 0 }, tokens: 0 };
        let mut samples = vec![none; self.tokens.len()];
        for (((position, &v), &tokens), &row) in
            (position..).zip(&self.source_positions).zip(&self.tokens).zip(self.fit.rows())
        {
            let slot = &mut ends[row as usize];
            samples[*slot as usize] = PackedSample { position, sample: sample(v), tokens };
            *slot += 1;
        }
        let permutation = (plan.order != Order::Sequential)
            .then(|| Permutation::bounded(rows.into(), key(Domain::Packed, plan.seed, epoch, number)));
        Window { rows: first..first + u64::from(rows), samples, ends, permutation }
    }

    fn sample(&mut self, plan: &PackedPlan, epoch: u64, q: u64) -> Sample {
        let v = self.cursor.at(q);
        Sample { source_position: v, id: plan.source.id(plan.order, plan.seed, epoch, v) }
    }
}

impl Window {
    /// Returns the samples of a row of the epoch that is in this window.
    fn row(&self, e: u64) -> &[PackedSample] {
        let number = e - self.rows.start;
        let begun = self.permutation.as_ref().map_or(number, |permutation| permutation.forward(number)) as usize;
        let start = begun.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.samples[start as usize..self.ends[begun] as usize]
    }
}
