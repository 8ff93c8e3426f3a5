//! Read-ahead of exactly the records that come next in the order, bounded in bytes.

use crate::batch::SharedBatch;
use crate::plan::Walk;
use crate::resolved_config::ResolvedConfig;
use std::sync::Arc;

/// Asks the system to read records before the workers need them. Has separate cursors, [`ResolvedConfig::read_ahead`]
/// rows ahead of the worker's, since in interleaved order a cursor rebuilds a permutation whenever it changes the
/// window.
pub(crate) struct ReadAhead {
    config: Arc<ResolvedConfig>,
    /// For each replica, a cursor through the epoch it is in.
    cursors: Vec<Option<(u64, Walk)>>,
    residency: Residency,
}

impl ReadAhead {
    pub(crate) fn new(config: Arc<ResolvedConfig>) -> Self {
        let cursors = config.ranks.iter().map(|_| None).collect();
        ReadAhead { config, cursors, residency: Residency::default() }
    }

    /// Requests the records of the row that is [`ResolvedConfig::read_ahead`] rows ahead of a row. At the first row of an epoch,
    /// or after a seek, requests all records up to there.
    pub(crate) fn advance(&mut self, batch: &SharedBatch, row: usize) {
        let ReadAhead { config, cursors, residency } = self;
        if config.read_ahead == 0 {
            return;
        }
        let first = if batch.first && row == 0 { 1 } else { config.read_ahead };
        let schedule = config.plan.schedule(batch.epoch);
        let walk = cursor(config, &mut cursors[batch.replica], batch.replica, batch.epoch);
        // All batches have the same rows, unless there are buckets.
        let steps = if config.plan.buckets().is_some() { 0 } else { (row + first) / config.batch };
        let mut p = batch.p.saturating_add(steps as u64 * schedule.step_len());
        let mut skipped = row + first - steps * config.batch;
        let mut left = config.read_ahead + 1 - first;
        while left > 0 && schedule.steps(p) > 0 {
            let rows = walk.rows(p);
            let count = rows.len();
            for row in rows.skip(skipped).take(left) {
                if let Some(q) = row.position() {
                    walk.for_each_sample(q, |sample| {
                        if residency.needs_request(|| config.splits.is_in_memory(sample.id)) {
                            config.splits.will_need(sample.id);
                        }
                    });
                }
            }
            left -= count.saturating_sub(skipped).min(left);
            skipped = skipped.saturating_sub(count);
            p = p.saturating_add(schedule.step_len());
        }
    }
}

/// Whether records are in the page cache, from a sample of them: a request for a record that is there takes longer than checking
/// a record of some kilobytes.
#[derive(Debug, Default)]
struct Residency {
    records: u32,
    /// Consecutive records of the sample that were in memory, up to [`Residency::SURE`].
    found: u32,
}

impl Residency {
    /// One record of this number is looked up, first and once all are there.
    const SAMPLED: [u32; 2] = [4, 64];
    /// This number of them in a row means that all are there.
    const SURE: u32 = 256;

    /// Returns whether the next record must be requested. `in_memory` looks it up.
    fn needs_request(&mut self, in_memory: impl FnOnce() -> bool) -> bool {
        let sure = self.found == Residency::SURE;
        self.records = self.records.wrapping_add(1);
        if !self.records.is_multiple_of(Residency::SAMPLED[usize::from(sure)]) {
            return !sure;
        }
        let missing = !in_memory();
        self.found = if missing { 0 } else { Residency::SURE.min(self.found + 1) };
        missing
    }
}

/// Returns the cursor of a replica through an epoch, a new one if `cursor` is in another epoch.
pub(crate) fn cursor<'a>(
    config: &ResolvedConfig,
    cursor: &'a mut Option<(u64, Walk)>,
    replica: usize,
    epoch: u64,
) -> &'a mut Walk {
    if cursor.as_ref().is_none_or(|(other, _)| *other != epoch) {
        let walk = config.plan.walk(epoch, config.ranks[replica]);
        *cursor = Some((epoch, walk.expect("`ResolvedConfig::new` has validated the ranks")));
    }
    &mut cursor.as_mut().expect("set above").1
}

#[cfg(test)]
mod tests {
    use super::Residency;

    #[test]
    fn requests_are_omitted_while_a_sample_of_records_is_in_memory() {
        let mut residency = Residency::default();
        let mut requests = |records: u32, in_memory: bool| {
            (0..records).filter(|_| residency.needs_request(|| in_memory)).count() as u32
        };
        let [first, later] = Residency::SAMPLED;
        let until_sure = first * Residency::SURE;
        assert_eq!(requests(until_sure, true), until_sure - Residency::SURE, "all but those that were looked up");
        assert_eq!(requests(100 * later, true), 0);
        let after_eviction = requests(1_000, false);
        assert!(after_eviction > 1_000 - later, "requested {after_eviction} of 1,000");
    }
}
