//! The statistics for machines: JSON, and the text format of Prometheus.

use crate::budget::Arithmetic;
use crate::stats::Stats;
use serde_json::{Value, json};
use std::fmt::Write;

impl Stats {
    /// One JSON object. Times are seconds summed over workers, memory is bytes.
    pub fn to_json(&self) -> Value {
        let stages = self.stages().map(|(name, stage)| {
            json!({ "stage": name, "seconds": stage.time.as_secs_f64(), "count": stage.count,
                    "per_second_and_thread": stage.per_second() })
        });
        json!({
            "elapsed_s": self.elapsed.as_secs_f64(),
            "unit": self.unit,
            "samples": self.samples,
            "samples_per_s": self.rate(),
            "bytes": self.bytes,
            "bad_samples": self.bad,
            "batches_ready": self.ready,
            "batches_held": self.held,
            "workers": self.workers.0,
            "most_workers": self.workers.1,
            "depth": self.depth,
            "slots": self.slots,
            "extra_batches": self.extra,
            "tuning": self.why.to_string(),
            "stages": stages,
            "memory": self.memory.to_json(),
            "verdict": self.verdict(),
        })
    }

    /// The text format of Prometheus (version 0.0.4), each metric named `shardtool_load_…`.
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
            let _ = writeln!(out, "# HELP shardtool_load_{name} {help}\n# TYPE shardtool_load_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(out, "shardtool_load_{name}{labels} {value}");
            }
        };
        let stages = self.stages();
        let label = |name: &str| format!("{{stage=\"{}\"}}", name.replace([' ', '+'], "_").replace("___", "_"));
        let seconds = stages.map(|(name, s)| (label(name), s.time.as_secs_f64()));
        metric("stage_seconds_total", "counter", "Time in each stage, summed over workers.", &seconds);
        let counts = stages.map(|(name, s)| (label(name), s.count as f64));
        metric("stage_count_total", "counter", "Samples, or waits, in each stage.", &counts);
        let one = |value: f64| [(String::new(), value)];
        metric("samples_total", "counter", "Valid samples delivered.", &one(self.samples as f64));
        metric("record_bytes_total", "counter", "Bytes of records read.", &one(self.bytes as f64));
        metric("bad_samples_total", "counter", "Bad samples, each once.", &one(self.bad as f64));
        metric("batches_ready", "gauge", "Batches that stand ready.", &one(self.ready as f64));
        metric("batches_held", "gauge", "Batches that the caller holds.", &one(self.held as f64));
        metric("workers", "gauge", "Workers at work.", &one(self.workers.0 as f64));
        metric("depth", "gauge", "Batches built ahead of the caller.", &one(self.depth as f64));
        metric("memory_budget_bytes", "gauge", "Memory budget.", &one(self.memory.budget as f64));
        out
    }
}

impl Arithmetic {
    /// One JSON object, in bytes but for counts.
    pub fn to_json(&self) -> Value {
        json!({
            "budget": self.budget,
            "given": self.given,
            "batch": self.batch,
            "replicas": self.lanes,
            "workers": self.workers,
            "depth": self.depth,
            "source": self.source,
            "scratch_per_worker": self.scratch,
            "scratch": self.scratch_bytes(),
            "slots": self.slots(0),
            "wish": self.wish(),
            "floor": self.floor(),
            "limit": self.limit.as_ref().map(|l| json!({ "bytes": l.bytes, "from": l.from.to_string() })),
            "local_world": self.local_world,
            "anonymous": self.anonymous,
            "other_loaders": self.others,
        })
    }
}
