//! Keys and draws, permutations, and orders.

use serde_json::{Value, json};
use shardtool_order::{Domain, EpochOrder, Permutation, Rng, key, pack_permutation};

use super::configuration::{int, order};
use super::{TWO_63, hex, points, reason, with};

const LARGE: [u64; 6] = [4_096, 4_097, 1_281_167, 1_000_000_007, (1 << 40) + 1, TWO_63];

const DOMAINS: [(&str, Domain); 8] = [
    ("shuffled", Domain::Shuffled),
    ("blocks", Domain::Blocks),
    ("window", Domain::Window),
    ("pack", Domain::Pack),
    ("shard", Domain::Shard),
    ("spare", Domain::Substitute),
    ("weighted", Domain::Weighted),
    ("augment", Domain::Augment),
];

pub(super) fn keys() -> Vec<Value> {
    let mut out = Vec::new();
    for (name, domain) in DOMAINS {
        for (seed, epoch, tweak) in [(0, 0, 0), (7, 2, 5), (u64::MAX, 1 << 33, 1 << 62)] {
            out.push(drawn(name, domain, seed, epoch, tweak));
        }
    }
    // Draws scaled to bounds that need all 32 bits of a draw.
    for (seed, epoch, tweak) in [(0, u64::MAX, 0), (1 << 32, u64::MAX - 1, u64::MAX)] {
        let bounds = [1, 2, 3, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX, u32::MAX];
        let mut draws = Rng::augment(seed, epoch, tweak);
        let below: Vec<u32> = bounds.iter().map(|&n| draws.below(n)).collect();
        out.push(with(
            drawn("augment", Domain::Augment, seed, epoch, tweak),
            json!({"bounds": bounds, "below": below}),
        ));
    }
    out
}

fn drawn(name: &str, domain: Domain, seed: u64, epoch: u64, tweak: u64) -> Value {
    let k = key(domain, seed, epoch, tweak);
    let (mut words, mut floats, mut dice) = (Rng::new(k), Rng::new(k), Rng::new(k));
    json!({
        "domain": name, "seed": seed, "epoch": epoch, "tweak": tweak, "key": hex(k),
        "words": (0..4).map(|_| hex(words.next_u64())).collect::<Vec<_>>(),
        "floats_times_2_53": (0..4).map(|_| (floats.next_f64() * (1u64 << 53) as f64) as u64).collect::<Vec<_>>(),
        "below_1000": (0..4).map(|_| dice.below(1000)).collect::<Vec<_>>(),
    })
}

pub(super) fn permutations() -> Vec<Value> {
    let images = |p: &Permutation, xs: Vec<u64>| {
        let ys: Vec<u64> = xs.iter().map(|&x| p.forward(x)).collect();
        json!({"x": xs, "y": ys})
    };
    let case = |len: u64, k: u64, p: Permutation| {
        let xs = if len <= 20 { (0..len).collect() } else { points(len) };
        with(json!({"len": len, "key": hex(k)}), images(&p, xs))
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
    // The empty permutation, both sides of a square and of a product a·(a − 1), and the largest keys.
    for len in [0, 4_095, 64 * 65, 64 * 65 + 1, 65 * 65, 65 * 65 + 1, TWO_63 - 1] {
        out.push(case(len, u64::MAX, Permutation::new(len, u64::MAX).expect("in range")));
    }
    // Many values of the smallest networks, so that some leave [0, N) and take another pass.
    for len in [4_097, 4_226] {
        let p = Permutation::new(len, 1).expect("in range");
        out.push(with(json!({"len": len, "key": hex(1)}), images(&p, (0..len).step_by(17).collect())));
    }
    // One pass takes this x to N exactly.
    for (len, k, x) in [(4_097, 0, 3_166), (4_226, 1, 1_637)] {
        let p = Permutation::new(len, k).expect("in range");
        out.push(with(json!({"len": len, "key": hex(k)}), images(&p, vec![x])));
    }
    for (seed, len) in [(0, 0), (3, 1), (7, 5), (u64::MAX, 5_000)] {
        let k = key(Domain::Pack, seed, 0, 0);
        out.push(with(case(len, k, pack_permutation(seed, len).expect("in range")), json!({"seed": seed})));
    }
    let len = TWO_63 + 1;
    let refused = Permutation::new(len, 0).expect_err("too long");
    out.push(json!({"len": len, "key": hex(0), "refused": reason(&refused)}));
    out
}

pub(super) fn orders() -> Vec<Value> {
    let sequential = || json!({"order": "sequential"});
    let shuffled = || json!({"order": "shuffled"});
    let interleaved = |run: u64, window: u64| json!({"order": "interleaved", "run": run, "window": window});
    let mut cases: Vec<(Value, u64)> = Vec::new();
    for len in [1, 10, 24, 31] {
        cases.extend([sequential(), shuffled()].map(|o| (o, len)));
        cases.extend([(1, 1), (3, 2), (4, 3), (5, 100), (40, 2)].map(|(run, window)| (interleaved(run, window), len)));
    }
    for len in LARGE {
        cases.push((shuffled(), len));
        cases.extend([(64, 256), (1000, 64)].map(|(run, window)| (interleaved(run, window), len)));
    }
    let mut out = Vec::new();
    for (given, len) in cases {
        for (seed, epoch) in [(1u64, 0u64), (1, 1), (0xdead_beef, 12)] {
            out.push(visited(with(given.clone(), json!({"len": len, "seed": seed, "epoch": epoch}))));
        }
    }
    let max = u64::from(u32::MAX);
    for (given, len) in [
        (sequential(), 0u64),
        (shuffled(), 0),
        (interleaved(3, 2), 0),
        (sequential(), TWO_63),
        (interleaved(6, 2), 5),
        (interleaved(6, 2), 6),
        (interleaved(6, 2), 11),
        (interleaved(6, 2), 12),
        (interleaved(6, 2), 13),
        (interleaved(6, 2), 18),
        (interleaved(1, 1), TWO_63),
        (interleaved(1, max), TWO_63),
        (interleaved(max, 1), TWO_63),
        (interleaved(max, max), TWO_63),
        (interleaved(5_000, 2), 123_456_789),
        (sequential(), TWO_63 + 1),
        (shuffled(), TWO_63 + 1),
        (interleaved(1, 1), TWO_63 + 1),
    ] {
        out.push(visited(with(given, json!({"len": len, "seed": u64::MAX, "epoch": u64::MAX}))));
    }
    out
}

/// Adds positions and the source positions visited there, or why the order is refused.
fn visited(given: Value) -> Value {
    let len = int(&given["len"]);
    match EpochOrder::new(order(&given), len, int(&given["seed"]), int(&given["epoch"])) {
        Err(error) => with(given, json!({"refused": reason(&error)})),
        Ok(bound) => {
            let qs: Vec<u64> = if len <= 31 { (0..len).collect() } else { points(len) };
            let vs: Vec<u64> = qs.iter().map(|&q| bound.at(q)).collect();
            with(given, json!({"position": qs, "place": vs}))
        }
    }
}
