//! The statistics in words: what bounds the rate, and what it would be without that.

use crate::stats::{Stage, Stats};
use std::time::Duration;

/// Stages that are workers' work, as [`Stats::stages`] lists them.
const WORK: usize = 4;

impl Stats {
    /// What bounds the rate, in a sentence.
    pub fn verdict(&self) -> String {
        let stages = self.stages();
        let work: Duration = stages[..WORK].iter().map(|(_, s)| s.time).sum();
        let caller = self.caller_wait.time + self.caller_busy.time;
        if self.samples == 0 || work.is_zero() || caller.is_zero() {
            return "nothing was delivered yet".to_owned();
        }
        let (rate, unit) = (self.rate(), self.unit);
        let waits = share(self.caller_wait, caller);
        let idle = share(self.slot_wait, work + self.slot_wait.time);
        // Workers that never rest, and as many as worked so far.
        let loader = rate / (1.0 - idle).max(0.01);
        if waits < 0.05 || waits < idle {
            return format!(
                "the caller bounds the rate: {rate:.0} {unit}/s; it waits for batches {:.0} % of its time, the workers for \
                 it {:.0} %; they could deliver about {loader:.0} {unit}/s",
                waits * 100.0,
                idle * 100.0
            );
        }
        let (name, stage) = stages[..WORK].iter().max_by_key(|(_, s)| s.time).copied().unwrap_or_default();
        let part = share(stage, work);
        let alone = loader / (1.0 - part).max(0.001);
        let own = self.samples as f64 / self.caller_busy.time.as_secs_f64().max(1e-9);
        let (ceiling, whose) = if own < alone { (own, "the caller's own work") } else { (alone, "the other stages") };
        format!(
            "{} bounds the rate: {rate:.0} {unit}/s; it takes {:.0} % of the workers' time, and the caller waits {:.0} % of \
             its own; without it {whose} would allow about {ceiling:.0} {unit}/s",
            name,
            part * 100.0,
            waits * 100.0
        )
    }
}

fn share(stage: Stage, whole: Duration) -> f64 {
    stage.time.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}
