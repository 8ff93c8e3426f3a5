//! Read-ahead of exactly the records that come next in the order, bounded in bytes.

use crate::batch::SharedBatch;
use crate::resolved_config::ResolvedConfig;
use shardtool_order::Walk;
use std::sync::Arc;

/// Asks the system to read records before the workers need them. Has separate cursors, [`ResolvedConfig::read_ahead`]
/// samples ahead of the worker's, since in interleaved order a cursor rebuilds a permutation whenever it changes the
/// window.
pub(crate) struct ReadAhead {
    config: Arc<ResolvedConfig>,
    /// For each replica, a cursor through the epoch it is in.
    cursors: Vec<Option<(u64, Walk)>>,
}

impl ReadAhead {
    pub(crate) fn new(config: Arc<ResolvedConfig>) -> Self {
        let cursors = config.ranks.iter().map(|_| None).collect();
        ReadAhead { config, cursors }
    }

    /// Requests the record that is [`ResolvedConfig::read_ahead`] samples ahead of a row. At the first row of an epoch,
    /// or after a seek, requests all records up to there.
    pub(crate) fn advance(&mut self, batch: &SharedBatch, row: usize) {
        let ReadAhead { config, cursors } = self;
        if config.read_ahead == 0 {
            return;
        }
        let first = if batch.first && row == 0 { 1 } else { config.read_ahead };
        let schedule = config.plan.schedule();
        let walk = cursor(config, &mut cursors[batch.replica], batch);
        for ahead in first..=config.read_ahead {
            let (steps, row) = ((row + ahead) / config.batch, (row + ahead) % config.batch);
            let p = batch.p.saturating_add(steps as u64 * schedule.step_len());
            if schedule.steps(p) == 0 {
                return;
            }
            if let Some(q) = schedule.rows(p, config.ranks[batch.replica]).nth(row).and_then(|row| row.position()) {
                config.splits.will_need(walk.sample(q).id);
            }
        }
    }
}

/// Returns the cursor through the epoch of a batch, a new one if `cursor` is in another epoch.
pub(crate) fn cursor<'a>(
    config: &ResolvedConfig,
    cursor: &'a mut Option<(u64, Walk)>,
    batch: &SharedBatch,
) -> &'a mut Walk {
    if cursor.as_ref().is_none_or(|(epoch, _)| *epoch != batch.epoch) {
        let walk = config.plan.walk(batch.epoch, config.ranks[batch.replica]);
        *cursor = Some((batch.epoch, walk.expect("`ResolvedConfig::new` has validated the ranks")));
    }
    &mut cursor.as_mut().expect("set above").1
}
