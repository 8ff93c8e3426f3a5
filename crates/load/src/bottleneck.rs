//! Finds the stage that limits the rate, and estimates the rate without that limit, from the statistics.

use crate::meters::Stage;
use crate::stats::{StageName, Stats};
use crate::units::Bytes;
use std::time::Duration;

/// The first stages of [`Stats::stages`] are the work of workers; this is their number.
const WORK_STAGES: usize = 5;

/// If the consumer waits for a smaller fraction of its time, the consumer itself limits the rate.
const MIN_CONSUMER_WAIT: f64 = 0.05;

impl Stats {
    /// Returns what limits the rate, in a sentence.
    pub fn bottleneck(&self) -> String {
        let stages = self.stages();
        let work: Duration = stages[..WORK_STAGES].iter().map(|(_, s)| s.time).sum();
        let consumer = self.consumer_wait.time + self.consumer_busy.time;
        if self.samples == 0 || work.is_zero() || consumer.is_zero() {
            return "nothing was delivered yet".to_owned();
        }
        let (rate, unit) = (self.rate(), self.unit);
        let waits = fraction(self.consumer_wait, consumer);
        let idle = fraction(self.buffer_wait, work + self.buffer_wait.time);
        // The rate if the same workers were never idle.
        let loader = rate / (1.0 - idle).max(0.01);
        if waits < MIN_CONSUMER_WAIT || waits < idle {
            return format!(
                "the consumer bounds the rate: {rate:.0} {unit}/s; it waits for batches {:.0} % of its time, the workers \
                 wait for it {:.0} % of theirs; they could deliver about {loader:.0} {unit}/s",
                waits * 100.0,
                idle * 100.0
            );
        }
        let Some((name, stage)) = stages[..WORK_STAGES].iter().max_by_key(|(_, s)| s.time).copied() else {
            unreachable!("there are {WORK_STAGES} stages")
        };
        let part = fraction(stage, work);
        let without = loader / (1.0 - part).max(0.001);
        let own = self.samples as f64 / self.consumer_busy.time.as_secs_f64().max(1e-9);
        let (ceiling, next) =
            if own < without { (own, "the consumer's own work") } else { (without, "the other stages") };
        let (name, cure) = match (name, &self.store) {
            (StageName::DataWait, Some(store)) => {
                let bytes = store.bytes as f64 / store.requests.max(1) as f64;
                let cure = format!(
                    "; {} per request: more read-ahead, or interleaved order with longer runs, makes fewer and larger \
                     requests; a cache on a local disk saves those of later epochs",
                    Bytes(bytes as u64)
                );
                ("the network".to_owned(), cure)
            }
            _ => (name.to_string(), String::new()),
        };
        format!(
            "{name} bounds the rate: {rate:.0} {unit}/s; it takes {:.0} % of the workers' time, and the consumer waits \
             {:.0} % of its time; without it, {next} would allow about {ceiling:.0} {unit}/s{cure}",
            part * 100.0,
            waits * 100.0
        )
    }
}

fn fraction(stage: Stage, whole: Duration) -> f64 {
    stage.time.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}
