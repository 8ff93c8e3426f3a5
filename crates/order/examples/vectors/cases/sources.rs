//! Sources: ids, canonical JSON and checksums.

use serde_json::{Value, json};
use shardtool_order::Order;

use super::configuration::{int, source};
use super::{TWO_63, points};

pub(super) fn sources() -> Vec<Value> {
    let labels = [4i64, -1, 4, 7, 4, 7, 4];
    let samples: Vec<(u64, i64)> = labels.iter().enumerate().map(|(i, &label)| (10 + i as u64, label)).collect();
    let mut out = Vec::new();
    for given in [
        json!({"kind": "all", "split": 6}),
        json!({"kind": "list", "split": 10, "ids": [5, 3, 3, 9]}),
        json!({"kind": "balanced", "samples": samples}),
        json!({"kind": "weighted", "weights": [1, 0, 3, 2, 0, 0, 10], "draws": null}),
        json!({"kind": "weighted", "weights": [1, 1, 1], "draws": 8}),
        json!({"kind": "weighted", "weights": [1u64 << 61, 1u64 << 62, 5, 0], "draws": 9}),
        json!({"kind": "mixture", "datasets": [[5, 1], [7, 1], [3, 2]], "draws": null}),
        json!({"kind": "mixture", "datasets": [[5, 1], [0, 0], [7, 1], [3, 1]], "draws": 8}),
        json!({"kind": "mixture", "datasets": [[1u64 << 62, 3], [10, 5]], "draws": TWO_63}),
    ] {
        out.extend([(1, 0), (1, 1), (9, 1 << 40)].map(|(seed, epoch)| mapped(&given, seed, epoch)));
    }
    for given in [
        json!({"kind": "all", "split": TWO_63}),
        json!({"kind": "list", "split": TWO_63, "ids": [TWO_63 - 1, 1u64 << 33, 0]}),
        json!({"kind": "balanced", "samples": [[5, i64::MAX], [1, i64::MIN], [4, 0], [2, -1], [3, i64::MAX], [0, 1]]}),
        json!({"kind": "balanced", "samples": [[8, 3], [9, 3], [7, 3]]}),
        json!({"kind": "weighted", "weights": [0, 1u64 << 62, 0, 1u64 << 62], "draws": TWO_63}),
        json!({"kind": "weighted", "weights": [0, 0, 3], "draws": 2}),
        json!({"kind": "weighted", "weights": [5, 4, 3, 2, 1, 6], "draws": 4}),
        json!({"kind": "mixture", "datasets": [[4, 1], [4, 1], [4, 1]], "draws": 1}),
        json!({"kind": "mixture", "datasets": [[9, 2], [3, 3], [2, 2]], "draws": 10}),
        json!({"kind": "mixture", "datasets": [[1u64 << 62, u64::MAX], [1u64 << 62, u64::MAX], [0, 0]], "draws": null}),
    ] {
        out.extend([(3, 7), (u64::MAX, u64::MAX)].map(|(seed, epoch)| mapped(&given, seed, epoch)));
    }
    out
}

fn mapped(given: &Value, seed: u64, epoch: u64) -> Value {
    let source = source(&json!({"source": given})).expect("a valid source");
    let len = match &given["draws"] {
        Value::Number(_) => int(&given["draws"]),
        _ => source.len(),
    };
    let places: Vec<u64> = if len <= 20 { (0..len).collect() } else { points(len) };
    let ids: Vec<u64> = places.iter().map(|&v| source.id(Order::Sequential, seed, epoch, v)).collect();
    json!({
        "source": given, "seed": seed, "epoch": epoch, "len": source.len(), "place": places, "id": ids,
        "json": source.canonical_json(), "crc32c": format!("{:08x}", source.crc()),
    })
}
