//! Read-ahead: exact, since the order is known, and bounded in bytes.

use crate::batch::Slot;
use crate::spec::Spec;
use shardtool_order::Walk;

/// Records smaller than this are not asked for one by one: the system's own read-around brings a page's neighbours.
const LEAST_RECORD: u64 = 4096;

/// How many samples ahead of the workers the system reads: `bytes` of records of the mean size.
pub(crate) fn samples(bytes: u64, mean_record: u64) -> usize {
    if mean_record < LEAST_RECORD { 0 } else { (bytes / mean_record) as usize }
}

/// Asks for the record that lies [`Spec::ahead`] samples ahead of a row; at the first row of a lane's way through an epoch,
/// for all on the way there.
pub(crate) fn read(spec: &Spec, slot: &Slot, row: usize, walk: &mut Walk) {
    let first = if slot.fresh && row == 0 { 1 } else { spec.ahead };
    if spec.ahead == 0 {
        return;
    }
    let schedule = spec.plan.schedule();
    for ahead in first..=spec.ahead {
        let (steps, row) = ((row + ahead) / spec.batch, (row + ahead) % spec.batch);
        let p = slot.p.saturating_add(steps as u64 * schedule.step_len());
        if schedule.steps(p) == 0 {
            return;
        }
        if let Some(q) = schedule.rows(p, spec.ranks[slot.lane]).nth(row).and_then(|row| row.position()) {
            spec.input.will_need(walk.sample(q).id);
        }
    }
}
