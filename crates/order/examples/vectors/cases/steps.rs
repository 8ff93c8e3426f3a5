//! Steps of all replicas.

use std::sync::Arc;

use serde_json::{Value, json};
use shardtool_order::{Plan, Rng, Row, Walk};

use super::configuration::{int, plan};
use super::{TWO_63, hex, with};

const RECORDS: [u64; 6] = [4, 0, 5, 9, 2, 1];

pub(super) fn steps() -> Vec<Value> {
    let mut out = Vec::new();
    for policy in ["sample", "shard", "off"] {
        for remainder in ["drop", "pad", "mask"] {
            for (world, batch) in [(1, 4), (2, 3), (3, 2)] {
                let given = json!({
                    "policy": policy, "remainder": remainder, "world": world, "batch": batch, "records": RECORDS,
                    "order": "interleaved", "run": 2, "window": 3, "seed": 3, "epoch": 2,
                });
                if let Ok(plan) = plan(&given) {
                    let plan = Arc::new(plan);
                    let starts = (0..plan.schedule().steps(0)).map(|step| step * plan.schedule().step_len());
                    out.extend(starts.map(|p| step(&plan, &given, p)));
                }
            }
        }
    }
    for (given, starts) in more() {
        let plan = Arc::new(plan(&given).expect("a valid configuration"));
        out.extend(starts.into_iter().map(|p| with(step(&plan, &given, p), augmentations(&plan, &given, p))));
    }
    out
}

/// Configurations with the values of p at which a step begins.
fn more() -> Vec<(Value, Vec<u64>)> {
    let base = json!({"policy": "sample", "order": "sequential", "seed": 11, "epoch": 4, "records": RECORDS});
    let run = |more: Value| with(base.clone(), more);
    let list = json!({"kind": "list", "split": 21, "ids": [0, 2, 3, 5, 7, 9, 10, 11, 13, 17, 19]});
    let repeats = json!({"kind": "list", "split": 21, "ids": [20, 3, 3, 9, 0]});
    let balanced = json!({"kind": "balanced", "samples": [[0, 1], [1, 1], [2, 1], [3, 0], [4, 1]]});
    let weighted = json!({"kind": "weighted", "weights": [1, 0, 3, 2, 5], "draws": 7});
    let mixture = json!({"kind": "mixture", "datasets": [[15, 1], [6, 2]], "draws": null});
    let huge = [1u64 << 62, 0, (1 << 62) - 1];
    let shards = [1u64 << 61, 0, 3, (1 << 62) - 1];
    vec![
        // Remainders by default.
        (run(json!({"world": 2, "batch": 4})), vec![0, 16]),
        (run(json!({"world": 2, "batch": 4, "order": "shuffled"})), vec![0, 8]),
        (run(json!({"world": 2, "batch": 4, "order": "interleaved", "run": 4, "window": 2})), vec![8]),
        // p that is not a multiple of RB, as after a resume with another batch.
        (run(json!({"world": 2, "batch": 4, "remainder": "drop"})), vec![5, 13]),
        (run(json!({"world": 2, "batch": 4, "remainder": "mask"})), vec![20]),
        (run(json!({"world": 2, "batch": 5, "remainder": "mask", "policy": "off"})), vec![13]),
        // Rows that `pad` repeats several times.
        (run(json!({"world": 3, "batch": 2, "remainder": "pad", "records": [2]})), vec![0, 1]),
        (run(json!({"world": 2, "batch": 2, "remainder": "pad", "records": [1], "order": "shuffled"})), vec![0]),
        (run(json!({"world": 2, "batch": 3, "remainder": "pad", "policy": "off", "records": [2, 2]})), vec![3]),
        (
            run(
                json!({"world": 2, "batch": 3, "remainder": "pad", "policy": "shard", "records": [2, 7], "order": "shuffled"}),
            ),
            vec![0, 6, 12],
        ),
        // Replicas without samples.
        (run(json!({"world": 7, "batch": 2, "policy": "shard"})), vec![0, 14, 56]),
        (
            run(json!({"world": 3, "batch": 2, "policy": "shard", "remainder": "mask", "records": [5, 0, 1],
                "order": "interleaved", "run": 2, "window": 2})),
            vec![0, 12],
        ),
        // Other sources.
        (run(json!({"world": 2, "batch": 2, "policy": "shard", "source": list, "order": "shuffled"})), vec![0, 8]),
        (
            run(json!({"world": 2, "batch": 2, "policy": "shard", "source": list, "remainder": "mask",
                "order": "interleaved", "run": 2, "window": 2})),
            vec![0, 12],
        ),
        (run(json!({"world": 6, "batch": 1, "policy": "shard", "source": list, "remainder": "mask"})), vec![0, 6]),
        (run(json!({"world": 1, "batch": 3, "source": repeats, "order": "shuffled", "remainder": "mask"})), vec![0, 3]),
        (run(json!({"world": 2, "batch": 2, "source": balanced, "order": "shuffled", "remainder": "pad"})), vec![4]),
        (run(json!({"world": 2, "batch": 2, "source": weighted, "order": "shuffled", "policy": "off"})), vec![0]),
        (
            run(json!({"world": 2, "batch": 4, "source": mixture, "order": "interleaved", "run": 3, "window": 2})),
            vec![0, 8],
        ),
        // The last epoch, which epoch 0 follows.
        (run(json!({"world": 2, "batch": 4, "epoch": u64::MAX, "seed": u64::MAX})), vec![8, 16]),
        (
            run(json!({"world": 2, "batch": 4, "epoch": u64::MAX, "policy": "shard", "remainder": "drop",
                "order": "shuffled"})),
            vec![0],
        ),
        // Large numbers.
        (
            run(json!({"world": 5, "batch": 3, "records": huge, "order": "interleaved", "run": 1000, "window": 7,
                "remainder": "pad"})),
            vec![0, TWO_63 - 16, TWO_63 - 2],
        ),
        (run(json!({"world": 5, "batch": 3, "records": huge, "order": "shuffled"})), vec![(1 << 62) + 1, TWO_63 - 16]),
        (
            run(json!({"world": 2, "batch": 2, "policy": "shard", "records": shards, "order": "shuffled",
                "remainder": "mask"})),
            vec![0, (1 << 62) + 2, TWO_63 - 4],
        ),
    ]
}

/// Each replica's rows in the step at p, with a function of the replica's samples.
fn rows_of<T>(plan: &Arc<Plan>, given: &Value, p: u64, value: impl Fn(&mut Walk, Row) -> T) -> Vec<Vec<T>> {
    let ranks = 0..plan.schedule().world();
    let row_values = |rank| {
        let mut walk = plan.walk(int(&given["epoch"]), rank).expect("a rank of the plan");
        plan.schedule().rows(p, rank).map(|row| value(&mut walk, row)).collect()
    };
    ranks.map(row_values).collect()
}

fn step(plan: &Arc<Plan>, given: &Value, p: u64) -> Value {
    let schedule = plan.schedule();
    let after = schedule.after(int(&given["epoch"]), p);
    let computed = json!({
        "p": p, "steps_left": schedule.steps(p), "dropped": schedule.dropped(p), "after": [after.0, after.1],
        "remainder": format!("{:?}", schedule.remainder()).to_lowercase(),
        "rows": rows_of(plan, given, p, |_, row| row_text(row)),
        "ids": rows_of(plan, given, p, |walk, row| row.position().map_or(-1, |q| walk.sample(q).id as i64)),
    });
    let default = if given["remainder"].is_null() { json!({"default_remainder": true}) } else { json!({}) };
    with(with(given.clone(), default), computed)
}

/// The first draw of each row's augmentation.
fn augmentations(plan: &Arc<Plan>, given: &Value, p: u64) -> Value {
    let first_draw = |walk: &mut Walk, row: Row| {
        let v = walk.sample(row.position()?).source_position;
        Some(hex(Rng::augment(plan.seed(), int(&given["epoch"]), v).next_u64()))
    };
    json!({"augment": rows_of(plan, given, p, first_draw)})
}

/// `5`: the sample at position 5; `+5`: the same, repeated; `-`: masked.
fn row_text(row: Row) -> String {
    match row {
        Row::Sample(q) => q.to_string(),
        Row::Repeat(q) => format!("+{q}"),
        Row::Masked => "-".to_owned(),
    }
}
