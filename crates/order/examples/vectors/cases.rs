//! The cases behind the test vectors. Only add cases: a changed vector means a changed order, and training runs that
//! cannot resume.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde_json::{Value, json};
use shardtool_order::{
    Balanced, Domain, EpochOrder, Identity, List, Mixture, Order, Permutation, Plan, Policy, Remainder, Replicas,
    ResumeState, Rng, Row, Source, Weighted, key, mixture_fingerprint, pack_permutation, substitutes,
};

const LARGE: [u64; 6] = [4_096, 4_097, 1_281_167, 1_000_000_007, (1 << 40) + 1, 1 << 63];

/// File name and text of every file of vectors: one JSON object per line.
pub(crate) fn files() -> Vec<(&'static str, String)> {
    let lines = |values: Vec<Value>| values.iter().map(|v| format!("{v}\n")).collect::<String>();
    vec![
        ("keys.jsonl", lines(keys())),
        ("permutations.jsonl", lines(permutations())),
        ("orders.jsonl", lines(orders())),
        ("sources.jsonl", lines(sources())),
        ("steps.jsonl", lines(steps())),
        ("substitutes.jsonl", lines(substitute_cases())),
        ("states.jsonl", lines(states())),
    ]
}

fn hex(value: u64) -> String {
    format!("{value:016x}")
}

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

fn interleaved(run: u32, window: u32) -> Order {
    Order::Interleaved { run: number(run), window: number(window) }
}

fn keys() -> Vec<Value> {
    let domains = [
        ("shuffled", Domain::Shuffled),
        ("blocks", Domain::Blocks),
        ("window", Domain::Window),
        ("pack", Domain::Pack),
        ("shard", Domain::Shard),
        ("spare", Domain::Substitute),
        ("weighted", Domain::Weighted),
        ("augment", Domain::Augment),
    ];
    let mut out = Vec::new();
    for (name, domain) in domains {
        for (seed, epoch, tweak) in [(0, 0, 0), (7, 2, 5), (u64::MAX, 1 << 33, 1 << 62)] {
            let k = key(domain, seed, epoch, tweak);
            let (mut words, mut floats, mut dice) = (Rng::new(k), Rng::new(k), Rng::new(k));
            out.push(json!({
                "domain": name, "seed": seed, "epoch": epoch, "tweak": tweak, "key": hex(k),
                "words": (0..4).map(|_| hex(words.next_u64())).collect::<Vec<_>>(),
                "floats_times_2_53": (0..4).map(|_| (floats.next_f64() * (1u64 << 53) as f64) as u64).collect::<Vec<_>>(),
                "below_1000": (0..4).map(|_| dice.below(1000)).collect::<Vec<_>>(),
            }));
        }
    }
    out
}

fn permutations() -> Vec<Value> {
    let case = |len: u64, k: u64, p: Permutation| {
        let xs: Vec<u64> = if len <= 20 { (0..len).collect() } else { points(len) };
        let ys: Vec<u64> = xs.iter().map(|&x| p.forward(x)).collect();
        json!({"len": len, "key": hex(k), "x": xs, "y": ys})
    };
    let mut out = Vec::new();
    for len in [1, 2, 3, 7, 20, 64, 100].into_iter().chain(LARGE) {
        for k in [0, 0x0123_4567_89ab_cdef] {
            out.push(case(len, k, Permutation::new(len, k).expect("in range")));
        }
    }
    for (seed, len) in [(0, 16), (42, 1_281_167)] {
        out.push(case(len, key(Domain::Pack, seed, 0, 0), pack_permutation(seed, len).expect("in range")));
    }
    out
}

/// Positions of a long domain: both ends, and some between.
fn points(len: u64) -> Vec<u64> {
    let between = (1..8).map(|i| (u128::from(len) * i / 8) as u64);
    (0..4).chain(between).chain([len - 2, len - 1]).collect()
}

fn order_members(order: Order) -> Value {
    match order {
        Order::Sequential => json!({"order": "sequential"}),
        Order::Shuffled => json!({"order": "shuffled"}),
        Order::Interleaved { run, window } => json!({"order": "interleaved", "run": run, "window": window}),
    }
}

fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(to), Value::Object(from)) = (&mut object, more) {
        to.extend(from);
    }
    object
}

fn orders() -> Vec<Value> {
    let mut cases: Vec<(Order, u64)> = Vec::new();
    for len in [1, 10, 24, 31] {
        cases.extend([Order::Sequential, Order::Shuffled].map(|o| (o, len)));
        cases.extend([(1, 1), (3, 2), (4, 3), (5, 100), (40, 2)].map(|(run, window)| (interleaved(run, window), len)));
    }
    for len in LARGE {
        cases.push((Order::Shuffled, len));
        cases.extend([(64, 256), (1000, 64)].map(|(run, window)| (interleaved(run, window), len)));
    }
    let mut out = Vec::new();
    for (order, len) in cases {
        for (seed, epoch) in [(1, 0), (1, 1), (0xdead_beef, 12)] {
            let bound = EpochOrder::new(order, len, seed, epoch).expect("in range");
            let qs: Vec<u64> = if len <= 31 { (0..len).collect() } else { points(len) };
            let vs: Vec<u64> = qs.iter().map(|&q| bound.at(q)).collect();
            out.push(with(
                order_members(order),
                json!({"len": len, "seed": seed, "epoch": epoch, "position": qs, "place": vs}),
            ));
        }
    }
    out
}

fn sources() -> Vec<Value> {
    let list = [5u64, 3, 3, 9];
    let labels = [4i64, -1, 4, 7, 4, 7, 4];
    let samples: Vec<(u64, i64)> = labels.iter().enumerate().map(|(i, &label)| (10 + i as u64, label)).collect();
    let mut cases = vec![
        (json!({"kind": "all", "split": 6}), Source::All(6)),
        (
            json!({"kind": "list", "split": 10, "ids": list}),
            Source::List(List::new(list.to_vec(), 10).expect("ids in range")),
        ),
        (json!({"kind": "balanced", "samples": samples}), Source::Balanced(Balanced::new(samples.iter().copied()))),
    ];
    for (weights, draws) in
        [(vec![1u64, 0, 3, 2, 0, 0, 10], None), (vec![1, 1, 1], Some(8)), (vec![1 << 61, 1 << 62, 5, 0], Some(9))]
    {
        cases.push((
            json!({"kind": "weighted", "weights": weights, "draws": draws}),
            Source::Weighted(Weighted::new(weights, draws).expect("weights")),
        ));
    }
    for (datasets, draws) in [
        (vec![(5u64, 1u64), (7, 1), (3, 2)], None),
        (vec![(5, 1), (0, 0), (7, 1), (3, 1)], Some(8)),
        (vec![(1 << 62, 3), (10, 5)], Some(1 << 63)),
    ] {
        cases.push((
            json!({"kind": "mixture", "datasets": datasets, "draws": draws}),
            Source::Mixture(Mixture::new(&datasets, draws).expect("datasets")),
        ));
    }
    let mut out = Vec::new();
    for (given, source) in cases {
        for (seed, epoch) in [(1, 0), (1, 1), (9, 1 << 40)] {
            let places: Vec<u64> = if source.len() <= 20 { (0..source.len()).collect() } else { points(source.len()) };
            let ids: Vec<u64> = places.iter().map(|&v| source.id(seed, epoch, v)).collect();
            out.push(json!({
                "source": given, "seed": seed, "epoch": epoch, "len": source.len(), "place": places, "id": ids,
                "json": source.canonical_json(), "crc32c": format!("{:08x}", source.crc()),
            }));
        }
    }
    out
}

fn steps() -> Vec<Value> {
    let mut out = Vec::new();
    let records = [4u64, 0, 5, 9, 2, 1];
    let (seed, epoch) = (3, 2);
    for policy in [Policy::Sample, Policy::Shard, Policy::Off] {
        for remainder in [Remainder::Drop, Remainder::Pad, Remainder::Mask] {
            for (world, batch) in [(1, 4), (2, 3), (3, 2)] {
                let source = Source::All(records.iter().sum());
                let replicas =
                    Replicas { world: number(world), batch: number(batch), policy, remainder: Some(remainder) };
                let plan = Plan::new(source, interleaved(2, 3), seed, replicas, &records);
                out.extend(plan.into_iter().flat_map(|plan| steps_of(Arc::new(plan), &records, seed, epoch)));
            }
        }
    }
    out
}

fn steps_of(plan: Arc<Plan>, records: &[u64], seed: u64, epoch: u64) -> Vec<Value> {
    let schedule = plan.schedule();
    let mut out = Vec::new();
    let mut p = 0;
    for _ in 0..schedule.steps(0) {
        let rows: Vec<Vec<Row>> = (0..schedule.world()).map(|rank| schedule.rows(p, rank).collect()).collect();
        let ids: Vec<Vec<i64>> = (0..)
            .zip(&rows)
            .map(|(rank, rows)| {
                let mut walk = plan.walk(epoch, rank).expect("a rank of the plan");
                rows.iter().map(|row| row.position().map_or(-1, |q| walk.sample(q).id as i64)).collect()
            })
            .collect();
        let texts: Vec<Vec<String>> = rows.iter().map(|rows| rows.iter().map(|&row| row_text(row)).collect()).collect();
        let after = schedule.after(epoch, p);
        out.push(json!({
            "policy": format!("{:?}", schedule.policy()).to_lowercase(),
            "remainder": format!("{:?}", schedule.remainder()).to_lowercase(),
            "world": schedule.world(), "batch": schedule.batch(), "records": records, "order": "interleaved",
            "run": 2, "window": 3, "seed": seed, "epoch": epoch, "p": p, "steps_left": schedule.steps(p),
            "dropped": schedule.dropped(p), "after": [after.0, after.1], "rows": texts, "ids": ids,
        }));
        p += schedule.step_len();
    }
    out
}

/// `5`: the sample at position 5; `+5`: the same, repeated; `-`: masked.
fn row_text(row: Row) -> String {
    match row {
        Row::Sample(q) => q.to_string(),
        Row::Repeat(q) => format!("+{q}"),
        Row::Masked => "-".to_owned(),
    }
}

fn substitute_cases() -> Vec<Value> {
    let mut out = Vec::new();
    for (seed, epoch, q, len) in
        [(1, 0, 0, 1), (1, 0, 1, 2), (1, 0, 9, 10), (5, 3, 77, 1_281_167), (5, 3, (1 << 63) - 1, 1 << 63)]
    {
        let candidates: Vec<u64> = substitutes(seed, epoch, q, len).collect();
        out.push(json!({"seed": seed, "epoch": epoch, "position": q, "len": len, "candidates": candidates}));
    }
    out
}

fn states() -> Vec<Value> {
    let mut out = Vec::new();
    for (order, shard_world) in [
        (Order::Sequential, None),
        (Order::Shuffled, Some(16)),
        (interleaved(64, 256), None),
        (interleaved(u32::MAX, u32::MAX), Some(u32::MAX)),
    ] {
        for (fingerprint, seed, epoch, p) in [(0x00c0_ffee, 0, 0, 0), (u32::MAX, u64::MAX, u64::MAX, 1 << 63)] {
            let source_crc = Source::All(1).crc();
            let identity = Identity { fingerprint, source_crc, order, seed, shard_world };
            let state = ResumeState { identity, epoch, p };
            let members = json!({
                "fingerprint": format!("{fingerprint:08x}"), "source": r#"{"source":"all"}"#, "world": shard_world,
                "seed": seed, "epoch": epoch, "p": p, "json": state.to_string(),
            });
            out.push(with(order_members(order), members));
        }
    }
    let datasets = [0x00c0_ffeeu32, 0x0123_4567, u32::MAX];
    let fingerprints: Vec<String> = datasets.iter().map(|f| format!("{f:08x}")).collect();
    out.push(json!({"fingerprints": fingerprints, "mixture": format!("{:08x}", mixture_fingerprint(&datasets))}));
    out
}
