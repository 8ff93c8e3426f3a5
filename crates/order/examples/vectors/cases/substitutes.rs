//! Substitutes of positions, and of the rows of a step.

use std::sync::Arc;

use serde_json::{Value, json};
use shardtool_order::substitutes;

use super::configuration::{int, plan};
use super::{TWO_63, with};

pub(super) fn substitute_cases() -> Vec<Value> {
    let mut out = Vec::new();
    for (seed, epoch, q, len) in [
        (1u64, 0u64, 0u64, 1u64),
        (1, 0, 1, 2),
        (1, 0, 9, 10),
        (5, 3, 77, 1_281_167),
        (5, 3, TWO_63 - 1, TWO_63),
        (5, u64::MAX, 0, 3),
        (6, 1, 16, 17),
        (u64::MAX, 2, 0, TWO_63),
    ] {
        let candidates: Vec<u64> = substitutes(seed, epoch, q, len).collect();
        out.push(json!({"seed": seed, "epoch": epoch, "position": q, "len": len, "candidates": candidates}));
    }
    let base = json!({
        "policy": "sample", "order": "shuffled", "remainder": "pad", "seed": 11, "epoch": 4, "world": 2, "batch": 4,
        "records": [4, 0, 5, 9, 2, 1],
    });
    for (more, p, rank, row) in [
        (json!({}), 0, 1, 2),
        // Repeated rows, a masked row, and one row repeated several times.
        (json!({}), 16, 1, 1),
        (json!({}), 16, 1, 3),
        (json!({"remainder": "mask"}), 16, 1, 3),
        (json!({"records": [3]}), 0, 1, 3),
        (json!({"records": [1]}), 0, 1, 3),
        (json!({"policy": "off", "order": "sequential"}), 20, 1, 3),
        // A replica's own positions and seed.
        (json!({"policy": "shard"}), 0, 1, 2),
        (json!({"policy": "shard"}), 8, 1, 3),
        (json!({"policy": "shard"}), 16, 0, 3),
        (json!({"policy": "shard", "order": "interleaved", "run": 2, "window": 2}), 16, 1, 3),
    ] {
        out.push(of_row(with(base.clone(), more), p, rank, row));
    }
    out
}

/// Adds the row's position, its candidates, and their ids.
fn of_row(given: Value, p: u64, rank: u32, row: usize) -> Value {
    let plan = Arc::new(plan(&given).expect("a valid configuration"));
    let mut walk = plan.walk(int(&given["epoch"]), rank).expect("a rank of the plan");
    let position = plan.schedule().rows(p, rank).nth(row).and_then(|row| row.position());
    let candidates: Vec<u64> = position.into_iter().flat_map(|q| walk.substitute_positions(q)).collect();
    let ids: Vec<u64> = candidates.iter().map(|&q| walk.sample(q).id).collect();
    let computed = json!({"position": position, "candidates": candidates, "ids": ids});
    with(with(given, json!({"p": p, "rank": rank, "row": row})), computed)
}
