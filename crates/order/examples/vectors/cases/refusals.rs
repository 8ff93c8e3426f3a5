//! Configurations that are refused, and their neighbours that are not.

use serde_json::{Value, json};

use super::configuration::plan;
use super::{TWO_63, reason, with};

pub(super) fn refusals() -> Vec<Value> {
    let base = json!({
        "policy": "sample", "order": "shuffled", "remainder": "mask", "seed": 1, "world": 1, "batch": 1, "records": [],
    });
    let refused = |(source, more): (Value, Value)| {
        let given = with(with(base.clone(), json!({"source": source})), more);
        let reason = plan(&given).err().map(|error| reason(&error));
        with(given, json!({"refused": reason}))
    };
    sources().into_iter().chain(shards()).chain(replicas()).map(refused).collect()
}

fn all(split: u64) -> Value {
    json!({"kind": "all", "split": split})
}

fn list(ids: &[u64]) -> Value {
    json!({"kind": "list", "split": 9, "ids": ids})
}

fn weighted(weights: &[u64], draws: Option<u64>) -> Value {
    json!({"kind": "weighted", "weights": weights, "draws": draws})
}

fn mixture(datasets: &[(u64, u64)], draws: Option<u64>) -> Value {
    json!({"kind": "mixture", "datasets": datasets, "draws": draws})
}

/// Sources, with the members of the configuration that matter.
fn sources() -> Vec<(Value, Value)> {
    let balanced = |classes: u64, count: u64| json!({"kind": "balanced", "classes": classes, "count": count});
    [
        all(0),
        all(1),
        all(TWO_63),
        all(TWO_63 + 1),
        all(u64::MAX),
        list(&[]),
        list(&[8, 0, 8]),
        list(&[0, 9]),
        weighted(&[], None),
        weighted(&[0, 0], None),
        weighted(&[0, 1], None),
        weighted(&[TWO_63 - 1, 1], None),
        weighted(&[TWO_63, 1], None),
        weighted(&[u64::MAX, 1], None),
        weighted(&[1], Some(0)),
        weighted(&[1], Some(TWO_63)),
        weighted(&[1], Some(TWO_63 + 1)),
        weighted(&[0], Some(TWO_63 + 1)),
        mixture(&[], None),
        mixture(&[(5, 0), (4, 0)], None),
        mixture(&[(5, 1), (0, 2)], None),
        mixture(&[(5, 1), (0, 0)], None),
        mixture(&[(0, 1), (TWO_63 + 1, 0)], None),
        mixture(&[(TWO_63 + 1, 0)], None),
        mixture(&[(TWO_63, 1), (1, 0)], Some(1)),
        mixture(&[(TWO_63 - 1, 1), (1, 0)], Some(TWO_63)),
        mixture(&[(u64::MAX, 1), (u64::MAX, 1)], None),
        mixture(&[(5, 1)], Some(TWO_63 + 1)),
        mixture(&[(5, 1)], Some(0)),
        json!({"kind": "balanced", "samples": []}),
        balanced(1, TWO_63),
        balanced(2, TWO_63),
        balanced(3, TWO_63),
        balanced(3, TWO_63 - 3),
        balanced(TWO_63 / 2 + 1, TWO_63 / 2 + 2),
        balanced(TWO_63 - 1, TWO_63),
    ]
    .map(|source| (source, json!({})))
    .into()
}

/// Policy `shard`.
fn shards() -> Vec<(Value, Value)> {
    let shard = |source: Value, records: &[u64]| (source, json!({"policy": "shard", "world": 2, "records": records}));
    vec![
        shard(json!({"kind": "balanced", "samples": [[0, 1]]}), &[1]),
        shard(weighted(&[1], None), &[1]),
        shard(mixture(&[(1, 1)], None), &[1]),
        shard(weighted(&[1], Some(0)), &[1]),
        shard(all(9), &[4, 5]),
        shard(all(9), &[4, 4]),
        shard(all(9), &[]),
        shard(all(9), &[u64::MAX, 10]),
        shard(all(0), &[]),
        shard(all(0), &[0, 0]),
        shard(list(&[1, 4, 8]), &[4, 5]),
        shard(list(&[1, 4, 4]), &[4, 5]),
        shard(list(&[4, 1]), &[4, 5]),
        shard(list(&[1, 8]), &[4, 4]),
        shard(list(&[8, 1]), &[4, 4]),
        shard(list(&[]), &[4, 5]),
        // R times the largest share.
        shard(all(TWO_63), &[TWO_63 / 2, TWO_63 / 2]),
        shard(all(TWO_63), &[TWO_63 / 2 + 1, TWO_63 / 2 - 1]),
        shard(all(TWO_63), &[TWO_63]),
    ]
}

/// World size, batch and remainder.
fn replicas() -> Vec<(Value, Value)> {
    let replicas = |policy: &str, remainder: &str, world: u32, batch: u32, records: &[u64]| {
        let more =
            json!({"policy": policy, "remainder": remainder, "world": world, "batch": batch, "records": records});
        (all(records.iter().sum()), more)
    };
    let max = u32::MAX;
    vec![
        replicas("sample", "mask", 1 << 31, max, &[9]),
        replicas("sample", "mask", max, 1 << 31, &[9]),
        replicas("sample", "mask", (1 << 31) + 1, max, &[9]),
        replicas("sample", "drop", max, max, &[]),
        replicas("shard", "mask", max, max, &[9]),
        replicas("off", "mask", max, max, &[9]),
        replicas("sample", "drop", 4, 8, &[31]),
        replicas("sample", "drop", 4, 8, &[32]),
        replicas("off", "drop", 4, 8, &[7]),
        replicas("off", "drop", 4, 8, &[8]),
        replicas("sample", "drop", 4, 8, &[]),
        replicas("shard", "drop", 2, 3, &[3, 2]),
        replicas("shard", "drop", 2, 3, &[3, 3]),
        replicas("shard", "drop", 2, 3, &[3]),
        replicas("shard", "pad", 2, 3, &[3]),
        replicas("shard", "pad", 2, 3, &[3, 1]),
        replicas("shard", "mask", 2, 3, &[3]),
        replicas("sample", "pad", 2, 3, &[1]),
    ]
}
