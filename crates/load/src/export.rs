//! Statistics for other programs: JSON, and the text format of Prometheus. Other programs parse these names, so they
//! never change.

use crate::budget::MemoryPlan;
use crate::stats::{MemberStats, Stats};
use serde_json::{Value, json};
use std::fmt::Write;

impl Stats {
    /// Returns one JSON object. Times are seconds summed over workers; memory is bytes.
    pub fn to_json(&self) -> String {
        let stages = self.stages().map(|(name, stage)| {
            json!({ "stage": name.stable(), "seconds": stage.time.as_secs_f64(), "count": stage.count,
                    "per_second_and_thread": stage.per_second() })
        });
        let mut object = json!({
            "elapsed_s": self.elapsed.as_secs_f64(),
            "unit": self.unit,
            "samples": self.samples,
            "samples_per_s": self.rate(),
            "bytes": self.bytes,
            "bad_samples": self.bad,
            "filled": self.filled,
            "batches_ready": self.ready,
            "batches_held": self.held,
            "workers": self.workers,
            "most_workers": self.max_workers,
            "depth": self.prefetch,
            "slots": self.batches_per_replica,
            "extra_batches": self.extra_batches,
            "tuning": self.tuning.to_string(),
            "stages": stages,
            "memory": memory(&self.memory),
            "verdict": self.bottleneck(),
        });
        if let (Some(store), Value::Object(members)) = (&self.store, &mut object) {
            members.insert(
                "store".to_owned(),
                json!({ "requests": store.requests, "bytes": store.bytes,
                "retries": store.retries, "hedged": store.hedged, "refetched": store.refetched,
                "cache_hits": store.cache_hits, "cache_bytes": store.cache_bytes, "cache_bad": store.cache_bad }),
            );
        }
        if let (false, Value::Object(members)) = (self.members.is_empty(), &mut object) {
            let each = self.members.iter().map(|member| {
                json!({ "name": member.name, "len": member.len, "samples": member.samples, "share": member.share })
            });
            members.insert("members".to_owned(), each.collect());
        }
        if let (Some(cache), Value::Object(members)) = (&self.decoded_cache, &mut object) {
            let cache = json!({ "hits": cache.hits, "misses": cache.misses, "images": cache.images, "bytes": cache.bytes,
                                "bad": cache.bad });
            members.insert("decoded_cache".to_owned(), cache);
        }
        object.to_string()
    }

    /// Returns the text format of Prometheus (version 0.0.4), each metric named `shardtool_load_…`.
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
            let _ = writeln!(out, "# HELP shardtool_load_{name} {help}\n# TYPE shardtool_load_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(out, "shardtool_load_{name}{labels} {value}");
            }
        };
        let stages = self.stages().map(|(name, stage)| {
            let label = name.stable().replace([' ', '+'], "_").replace("___", "_");
            (format!("{{stage=\"{label}\"}}"), stage)
        });
        let seconds = stages.each_ref().map(|(label, s)| (label.clone(), s.time.as_secs_f64()));
        metric("stage_seconds_total", "counter", "Time in each stage, summed over workers.", &seconds);
        let counts = stages.map(|(label, s)| (label, s.count as f64));
        metric("stage_count_total", "counter", "Samples, or waits, in each stage.", &counts);
        let one = |value: f64| [(String::new(), value)];
        metric("samples_total", "counter", "Valid samples delivered.", &one(self.samples as f64));
        metric("record_bytes_total", "counter", "Bytes of records read.", &one(self.bytes as f64));
        metric("bad_samples_total", "counter", "Bad samples, each counted once.", &one(self.bad as f64));
        metric("filled_total", "counter", "Cut and damaged images that were filled.", &one(self.filled as f64));
        metric("batches_ready", "gauge", "Batches that are complete and not delivered.", &one(self.ready as f64));
        metric("batches_held", "gauge", "Batches that the consumer holds.", &one(self.held as f64));
        metric("workers", "gauge", "Workers that take part.", &one(self.workers as f64));
        metric("depth", "gauge", "Batches built ahead of the consumer.", &one(self.prefetch as f64));
        metric("memory_budget_bytes", "gauge", "Memory budget.", &one(self.memory.budget as f64));
        if let Some(store) = &self.store {
            metric("store_requests_total", "counter", "Requests to object stores.", &one(store.requests as f64));
            metric("store_bytes_total", "counter", "Bytes of their answers.", &one(store.bytes as f64));
            metric("store_retries_total", "counter", "Requests that were repeated.", &one(store.retries as f64));
            metric("store_hedged_total", "counter", "Second requests for stragglers.", &one(store.hedged as f64));
            let cache = "Reads answered by the cache on a local disk.";
            metric("store_cache_hits_total", "counter", cache, &one(store.cache_hits as f64));
            metric("store_cache_bytes_total", "counter", "Their bytes.", &one(store.cache_bytes as f64));
            let bad = "Blocks removed from the cache because a CRC did not match.";
            metric("store_cache_bad_total", "counter", bad, &one(store.cache_bad as f64));
            metric("store_refetched_total", "counter", "Requests after a CRC mismatch.", &one(store.refetched as f64));
        }
        if !self.members.is_empty() {
            let label = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let labelled = |value: fn(&MemberStats) -> f64| -> Vec<(String, f64)> {
                self.members.iter().map(|m| (format!("{{member=\"{}\"}}", label(&m.name)), value(m))).collect()
            };
            metric(
                "member_samples_total",
                "counter",
                "Samples of each member of a schedule since the start of the run.",
                &labelled(|member| member.samples as f64),
            );
            metric("member_share", "gauge", "Share of each member in this stage.", &labelled(|member| member.share));
        }
        if let Some(cache) = &self.decoded_cache {
            let count = |name: &str| format!("decoded_cache_{name}");
            metric(
                &count("hits_total"),
                "counter",
                "Images, frames and label maps that were kept.",
                &one(cache.hits as f64),
            );
            metric(
                &count("misses_total"),
                "counter",
                "Images, frames and label maps that were decoded.",
                &one(cache.misses as f64),
            );
            metric(&count("bytes"), "gauge", "Bytes of decoded images.", &one(cache.bytes as f64));
        }
        out
    }
}

/// One JSON object, in bytes except counts.
fn memory(plan: &MemoryPlan) -> Value {
    json!({
        "budget": plan.budget,
        "given": plan.given,
        "batch": plan.batch,
        "replicas": plan.replicas,
        "workers": plan.workers,
        "depth": plan.prefetch,
        "source": plan.source,
        "store": plan.indexes + plan.fetch,
        "tables": plan.tables,
        "decoded_cache": plan.decoded,
        "scratch_per_worker": plan.scratch,
        "scratch": plan.scratch_bytes(),
        "slots": plan.batches_per_replica(0),
        "wish": plan.requested(),
        "floor": plan.minimum(),
        "limit": plan.limit.as_ref().map(|l| json!({ "bytes": l.bytes, "from": l.from.to_string() })),
        "local_world": plan.local_world,
        "anonymous": plan.anonymous,
        "other_loaders": plan.reserved,
    })
}
