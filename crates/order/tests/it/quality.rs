//! Orders look random: positions, whole permutations, neighbours and epochs.
//!
//! Seeds are fixed, so each test has one outcome. Limits are five standard deviations (of the statistic, or of the
//! normal variate that Wilson and Hilferty's cube root turns a chi-square into): one test in 3.5 million exceeds that by
//! chance, and no file here makes more than a few thousand. A shuffle with a known bias shows that the test
//! detects one.

use std::num::NonZeroU32;
use std::sync::Arc;

use shardtool_order::{
    Bucket, BucketReplicas, Buckets, EpochOrder, Order, PackedPlan, Packing, Permutation, Plan, Policy, Remainder,
    Replicas, Rng, Row, Shape, Source, Truncation,
};

const LIMIT: f64 = 5.0;

/// Standard deviations between the chi-square of `counts` and its mean, if all counts have the same expectation.
fn deviation(counts: &[u32]) -> f64 {
    let expected = counts.iter().map(|&c| f64::from(c)).sum::<f64>() / counts.len() as f64;
    let chi = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum::<f64>();
    let df = (counts.len() - 1) as f64;
    ((chi / df).cbrt() - (1.0 - 2.0 / (9.0 * df))) / (2.0 / (9.0 * df)).sqrt()
}

/// The largest deviation of any position of `[0, n)`, over 4,096 epochs of `visit` (epoch → source positions in order).
fn worst_position(n: usize, visit: impl Fn(u64) -> Vec<u64>) -> f64 {
    let mut counts = vec![0u32; n * n];
    for epoch in 0..4_096 {
        visit(epoch).into_iter().enumerate().for_each(|(q, v)| counts[q * n + v as usize] += 1);
    }
    // With two values a position's chi-square has one degree of freedom, so an exact balance is not unlikely.
    counts.chunks_exact(n).map(|c| if n > 8 { deviation(c).abs() } else { deviation(c) }).fold(0.0, f64::max)
}

fn visit(order: Order, n: usize, seed: u64, epoch: u64) -> Vec<u64> {
    let mut visited = vec![0; n];
    EpochOrder::new(order, n as u64, seed, epoch).expect("in range").cursor().fill(0, &mut visited);
    visited
}

fn interleaved(run: u32, window: u32) -> Order {
    let number = |n| NonZeroU32::new(n).expect("not 0");
    Order::Interleaved { run: number(run), window: number(window) }
}

#[test]
fn every_position_of_small_domains_is_uniform() {
    for n in 2..=64 {
        let worst = worst_position(n, |epoch| visit(Order::Shuffled, n, 11, epoch));
        assert!(worst < LIMIT, "shuffled, N = {n}: {worst} standard deviations");
    }
    for n in [5, 16, 33, 64] {
        let worst = worst_position(n, |epoch| visit(interleaved(4, 100), n, 12, epoch));
        assert!(worst < LIMIT, "interleaved in one window, N = {n}: {worst} standard deviations");
    }
}

#[test]
fn position_test_detects_a_biased_shuffle() {
    for n in [8, 64] {
        let worst = worst_position(n, |epoch| {
            let (mut rng, mut t) = (Rng::new(epoch << 32), (0..n as u64).collect::<Vec<_>>());
            (0..n).for_each(|i| t.swap(i, rng.below(n as u32) as usize));
            t
        });
        assert!(worst > LIMIT, "swapping with any element is biased, but N = {n} deviates by only {worst}");
    }
}

#[test]
fn every_permutation_of_a_small_domain_is_equally_likely() {
    for (n, count) in [(3, 6), (4, 24), (5, 120)] {
        let mut counts = std::collections::BTreeMap::<Vec<u64>, u32>::new();
        (0..count as u64 * 200).for_each(|e| *counts.entry(visit(Order::Shuffled, n, 5, e)).or_default() += 1);
        assert_eq!(counts.len(), count);
        let z = deviation(&counts.into_values().collect::<Vec<_>>());
        assert!(z < LIMIT, "N = {n}: {z} standard deviations");
    }
}

/// Positions and pairs of neighbours, where the permutation is a network: which eighth of the domain a value lies in.
#[test]
fn positions_and_pairs_of_large_domains_are_uniform() {
    for n in [4_097u64, 4_100, 5_000, 10_007, 1 << 16, 1_281_167, (1 << 40) + 7, 1 << 63] {
        let eighth = |v: u64| (u128::from(v) * 8 / u128::from(n)) as usize;
        for q in [0, 1, 63, 64, 65, n / 2, n - 3, n - 2] {
            let (mut single, mut pair) = (vec![0u32; 8], vec![0u32; 64]);
            for epoch in 0..4_096 {
                let order = EpochOrder::new(Order::Shuffled, n, 21, epoch).expect("in range");
                let (a, b) = (eighth(order.at(q)), eighth(order.at(q + 1)));
                single[a] += 1;
                pair[a * 8 + b] += 1;
            }
            let (s, p) = (deviation(&single), deviation(&pair));
            assert!(s < LIMIT && p < LIMIT, "N = {n}, position {q}: {s} and {p} standard deviations");
        }
    }
}

/// Times the square root of the sample's size, the correlation of independent pairs is a standard normal variate.
fn correlation(pairs: impl Iterator<Item = (u64, u64)>, n: u64) -> f64 {
    let centre = |v: u64| (v as f64 / n as f64 - 0.5) * 12f64.sqrt();
    let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), (a, b)| (sum + centre(a) * centre(b), count + 1.0));
    sum / f64::sqrt(count)
}

#[test]
fn neighbours_epochs_and_seeds_are_uncorrelated() {
    for n in [3_000u64, 5_000, 100_003, 1_281_167, 1_000_000_000] {
        let count = n.min(100_000) as usize;
        let at = |seed, epoch| {
            let mut visited = vec![0; count];
            EpochOrder::new(Order::Shuffled, n, seed, epoch).expect("in range").cursor().fill(0, &mut visited);
            visited
        };
        let base = at(1, 1);
        for lag in [1, 2, 3, 64, 71] {
            let r = correlation(base.iter().zip(&base[lag..]).map(|(&a, &b)| (a, b)), n);
            assert!(r.abs() < LIMIT, "N = {n}, neighbours {lag} apart: {r} standard deviations");
        }
        let counting: Vec<u64> = (0..count as u64).map(|q| q * (n / count as u64)).collect();
        for (what, other) in [
            ("the next epoch", at(1, 2)),
            ("the next seed", at(2, 1)),
            ("seed and epoch exchanged by one", at(0, 2)),
            ("position", counting),
        ] {
            let r = correlation(base.iter().copied().zip(other.iter().copied()), n);
            assert!(r.abs() < LIMIT, "N = {n}, against {what}: {r} standard deviations");
            // Equal source positions at equal positions are rare and independent: their number has mean below 1.
            let equal = base.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(equal < 10, "N = {n}, against {what}: {equal} equal source positions");
        }
    }
}

#[test]
fn the_network_has_as_many_cycles_as_a_random_permutation() {
    // A random permutation has H(N) cycles on average, with a variance of about H(N) - pi^2 / 6.
    let (n, trials) = (5_000u64, 400);
    let mut cycles = 0u32;
    for k in 0..trials {
        let p = Permutation::new(n, Rng::new(k).next_u64()).expect("in range");
        let mut seen = vec![false; n as usize];
        for start in 0..n {
            let mut x = start;
            cycles += u32::from(!seen[start as usize]);
            while !std::mem::replace(&mut seen[x as usize], true) {
                x = p.forward(x);
            }
        }
    }
    let mean: f64 = (1..=n).map(|i| 1.0 / i as f64).sum();
    let sd = ((mean - std::f64::consts::PI.powi(2) / 6.0) * trials as f64).sqrt();
    let z = (f64::from(cycles) - mean * trials as f64) / sd;
    assert!(z.abs() < LIMIT, "{cycles} cycles in {trials} permutations: {z} standard deviations");
}

#[test]
fn bucket_batches_and_their_members_are_uniform() {
    // 12 + 4 + 8 batches of 2, 3 and 1 members each: every batch at every place of the epoch, every member of a bucket in
    // every row of each of its batches.
    let number = |n| NonZeroU32::new(n).expect("not 0");
    let buckets = [2, 3, 1].map(|batch| Bucket { shape: Shape::Length(number(64)), batch: number(batch) });
    let members: Vec<u16> = (0..44).map(|v| if v < 24 { 0 } else { 1 + u16::from(v >= 36) }).collect();
    let buckets = Arc::new(Buckets::new(buckets.to_vec(), members.iter().copied()).expect("buckets"));
    let replicas = BucketReplicas { world: number(1), policy: Policy::Sample, remainder: Some(Remainder::Mask) };
    let plan = Plan::bucketed(Source::All(44), Order::Shuffled, 6, replicas, buckets).expect("a plan");
    let plan = Arc::new(plan);
    let (mut batches, mut rows) = (vec![0u32; 24 * 24], vec![0u32; 44 * 44]);
    for epoch in 0..4_096 {
        let mut walk = plan.walk(epoch, 0).expect("a rank");
        for p in 0..24 {
            for (i, row) in walk.rows(p).enumerate() {
                let Row::Sample(q) = row else { panic!("only complete batches") };
                // The batch is known from its first position.
                let batch = if q < 24 {
                    q / 2
                } else if q < 36 {
                    12 + (q - 24) / 3
                } else {
                    16 + (q - 36)
                };
                batches[p as usize * 24 + batch as usize] += u32::from(i == 0);
                rows[q as usize * 44 + walk.sample(q).source_position as usize] += 1;
            }
        }
    }
    let worst = batches.chunks_exact(24).map(|c| deviation(c).abs()).fold(0.0, f64::max);
    assert!(worst < LIMIT, "batches: {worst} standard deviations");
    for (q, counts) in rows.chunks_exact(44).enumerate() {
        let bucket = if q < 24 {
            0..24
        } else if q < 36 {
            24..36
        } else {
            36..44
        };
        assert_eq!(counts[bucket.clone()].iter().sum::<u32>(), 4_096);
        let z = deviation(&counts[bucket]);
        assert!(z < LIMIT, "position {q}: {z} standard deviations");
    }
}

#[test]
fn packed_rows_of_a_window_are_uniform() {
    // Samples of half a row and more do not share rows: 30 rows, begun in the order of their lengths.
    let number = |n| NonZeroU32::new(n).expect("not 0");
    let packing = Packing::new(51..81, number(100), number(64), Truncation::Truncate).expect("packing");
    let replicas = Replicas { world: number(1), batch: number(1), policy: Policy::Sample, remainder: None };
    let plan = PackedPlan::new(Source::All(30), Order::Shuffled, 8, replicas, Arc::new(packing)).expect("a plan");
    let plan = Arc::new(plan);
    let mut counts = vec![0u32; 30 * 30];
    for epoch in 0..4_096 {
        let mut packed = plan.epoch(epoch);
        for e in 0..30 {
            counts[e as usize * 30 + packed.row(e)[0].sample.id as usize] += 1;
        }
    }
    let worst = counts.chunks_exact(30).map(|c| deviation(c).abs()).fold(0.0, f64::max);
    assert!(worst < LIMIT, "{worst} standard deviations");
}

#[test]
fn draws_are_uniform() {
    let (mut by_byte, mut below, mut floats) = (vec![0u32; 256], vec![0u32; 100], vec![0u32; 50]);
    for source_position in 0..20_000 {
        let mut rng = Rng::augment(4, 9, source_position);
        by_byte[(rng.next_u64() & 255) as usize] += 1;
        below[rng.below(100) as usize] += 1;
        let f = rng.next_f64();
        assert!((0.0..1.0).contains(&f));
        floats[(f * 50.0) as usize] += 1;
    }
    for (what, counts) in [("low byte", by_byte), ("below(100)", below), ("next_f64", floats)] {
        let z = deviation(&counts);
        assert!(z.abs() < LIMIT, "{what}: {z} standard deviations");
    }
    assert_eq!(Rng::new(1).below(0), 0);
}
