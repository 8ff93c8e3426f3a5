//! Measures positions per second of every order on one core, and how well each shuffles a dataset sorted by class, compared
//! with the buffer shuffles of tf.data (simulated: a buffer of K records is filled in order; each step takes a random one) and of
//! WebDataset (the same over tars in random order, with its beginning: the buffer grows by one record a step).
//!
//! Checks that a cursor agrees with the pure function at every 997th position and in a batch, and that every shuffled order
//! is a permutation.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;

use shardtool_benches::{Candidate, compare, print};
use shardtool_order::{
    Balanced, EpochOrder, Member, Mixture, Order, Plan, Policy, Remainder, Replicas, Rng, Scheduled, Source,
    StageWeights, Weighted,
};

const SEED: u64 = 20_261_121;
const POSITIONS: u64 = 1 << 21;

fn main() {
    for len in [4_096, 1_281_167, 1_000_000_000, 1 << 40] {
        speed(len);
    }
    sources();
    mixing();
}

fn interleaved(run: u32, window: u32) -> Order {
    let number = |n| NonZeroU32::new(n).expect("not 0");
    Order::Interleaved { run: number(run), window: number(window) }
}

fn speed(len: u64) {
    let orders = [
        ("sequential", Order::Sequential),
        ("shuffled", Order::Shuffled),
        ("interleaved 64 x 64", interleaved(64, 64)),
        ("interleaved 64 x 256", interleaved(64, 256)),
        ("interleaved 1024 x 64", interleaved(1024, 64)),
    ];
    let (mut single, mut batches) = (Vec::new(), Vec::new());
    for (name, order) in orders {
        let epoch = EpochOrder::new(order, len, SEED, 3).expect("a length in range");
        let mut cursor = epoch.cursor();
        let mut batch = vec![0; BATCH.min(len as usize)];
        (0..POSITIONS.min(len)).step_by(997).for_each(|q| assert_eq!(cursor.at(q), epoch.at(q), "{name} at {q}"));
        cursor.fill(0, &mut batch);
        assert!(batch.iter().zip(0..).all(|(&place, q)| place == epoch.at(q)), "{name}, a batch");
        let mut one_by_one = cursor.clone();
        single.push(Candidate::new(name, move || {
            let sum = (0..POSITIONS).fold(0u64, |sum, q| sum.wrapping_add(one_by_one.at(q % len)));
            black_box(sum);
            POSITIONS as f64
        }));
        batches.push(Candidate::new(name, move || {
            for q in (0..POSITIONS).step_by(batch.len()) {
                cursor.fill(q % (len - batch.len() as u64 + 1), &mut batch);
                black_box(&mut batch);
            }
            POSITIONS as f64
        }));
    }
    print(&format!("N = {len}, {BATCH} positions a call"), "M/s", 1e6, &compare(7, &mut batches));
    print(&format!("N = {len}, one position a call"), "M/s", 1e6, &compare(7, &mut single));
}

/// Measures position to id through a whole plan, shuffled.
fn sources() {
    let weights = || (0..SAMPLES).map(|id| id % 100);
    let shares = [(1_000_000, 3), (250_000, 1), (31_167, 2)];
    let sources = [
        ("everything", Source::All(SAMPLES)),
        ("balanced", Source::Balanced(Balanced::new((0..SAMPLES).map(|id| (id, (id % CLASSES) as i64))))),
        ("weighted", Source::Weighted(Weighted::new(weights(), None).expect("weights"))),
        ("mixture of 3", Source::Mixture(Mixture::new(&shares, None).expect("datasets"))),
        ("scheduled, 3 members, 2 stages", scheduled(&[1_000_000, 250_000, 31_167], 2)),
        ("scheduled, 50 members, 20 stages", scheduled(&[SAMPLES / 50; 50], 20)),
    ];
    let mut candidates = Vec::new();
    for (name, source) in sources {
        let one = NonZeroU32::MIN;
        let replicas = Replicas { world: one, batch: one, policy: Policy::Sample, remainder: Some(Remainder::Mask) };
        let plan = Arc::new(Plan::new(source, Order::Shuffled, SEED, replicas, &[]).expect("a plan"));
        let epoch = EpochOrder::new(Order::Shuffled, plan.source().len(), SEED, 3).expect("in range");
        let mut walk = plan.walk(3, 0).expect("the only replica");
        for q in (0..SAMPLES).step_by(997) {
            let v = if let Source::Scheduled(_) = plan.source() { q } else { epoch.at(q) };
            assert_eq!(walk.sample(q).id, plan.source().id(Order::Shuffled, SEED, 3, v), "{name} at {q}");
        }
        candidates.push(Candidate::new(name, move || {
            let sum = (0..SAMPLES).fold(0u64, |sum, q| sum.wrapping_add(walk.sample(q).id));
            black_box(sum);
            SAMPLES as f64
        }));
    }
    print(&format!("Sources, shuffled, N = {SAMPLES}"), "M/s", 1e6, &compare(7, &mut candidates));
}

/// Members of these sizes, whose weights change in each of `stages` stages.
fn scheduled(sizes: &[u64], stages: u64) -> Source {
    let mut first = 0;
    let member = |&len: &u64| {
        first += len;
        Member::Range { first: first - len, len }
    };
    let members: Vec<Member> = sizes.iter().map(member).collect();
    let weights = |stage: u64| (0..sizes.len() as u64).map(move |d| 1 + (7 * d + 3 * stage) % 50).collect();
    let stages: Vec<StageWeights> =
        (0..stages).map(|t| StageWeights { start: t * 4 * SAMPLES / stages, weights: weights(t) }).collect();
    Source::Scheduled(Scheduled::new(members, &stages, SAMPLES, first).expect("a schedule"))
}

/// A dataset like ImageNet's training split: 1,000 classes, sorted by class.
const SAMPLES: u64 = 1_281_167;
const CLASSES: u64 = 1_000;
const BATCH: usize = 256;

fn mixing() {
    println!(
        "\nMixing: {SAMPLES} records sorted into {CLASSES} classes, one epoch; 1.00 is what independent draws give"
    );
    println!("  {:<34} {:>10} {:>12} {:>12} {:>12}", "", "neighbours", "same class", "in a batch", "moved");
    row("sequential", (0..SAMPLES).collect());
    for buffer in [1_024, 16_384, 65_536] {
        row(&format!("tf.data shuffle({buffer})"), buffer_shuffle(buffer));
    }
    for buffer in [1_000, 10_000] {
        row(&format!("WebDataset tars, shuffle({buffer})"), webdataset_shuffle(buffer));
    }
    for (run, window) in [(64, 64), (64, 256), (64, 1024), (256, 64), (1024, 64)] {
        row(&format!("interleaved {run} x {window}"), visits(interleaved(run, window)));
    }
    row("shuffled", visits(Order::Shuffled));
    println!("  neighbours: mean distance of consecutive ids, over N / 3");
    println!("  same class: share of consecutive records of one class, over the share in the dataset");
    println!("  in a batch: distinct classes among {BATCH} consecutive records, over the mean for independent draws");
    println!("  moved: root mean square of id - position, over N / sqrt 6");
}

fn visits(order: Order) -> Vec<u64> {
    let epoch = EpochOrder::new(order, SAMPLES, SEED, 0).expect("a length in range");
    let mut ids = vec![0; SAMPLES as usize];
    epoch.cursor().fill(0, &mut ids);
    ids
}

fn buffer_shuffle(size: usize) -> Vec<u64> {
    let mut rng = Rng::new(SEED);
    let mut buffer: Vec<u64> = (0..size as u64).collect();
    let mut out = Vec::with_capacity(SAMPLES as usize);
    for next in size as u64..SAMPLES {
        let slot = rng.below(size as u32) as usize;
        out.push(std::mem::replace(&mut buffer[slot], next));
    }
    while !buffer.is_empty() {
        let slot = rng.below(buffer.len() as u32) as usize;
        out.push(buffer.swap_remove(slot));
    }
    out
}

/// Records of a tar, as ImageNet's are usually written.
const TAR: u64 = 1_000;
/// Records before WebDataset delivers the first one, its default.
const INITIAL: usize = 100;

fn webdataset_shuffle(size: usize) -> Vec<u64> {
    let mut rng = Rng::new(SEED);
    let mut tars: Vec<u64> = (0..SAMPLES.div_ceil(TAR)).collect();
    for i in (1..tars.len()).rev() {
        tars.swap(i, rng.below(i as u32 + 1) as usize);
    }
    let mut records = tars.into_iter().flat_map(|tar| tar * TAR..((tar + 1) * TAR).min(SAMPLES));
    let mut buffer = Vec::with_capacity(size);
    let mut out = Vec::with_capacity(SAMPLES as usize);
    while let Some(record) = records.next() {
        buffer.push(record);
        if buffer.len() < size {
            buffer.extend(records.next());
        }
        if buffer.len() >= INITIAL {
            let slot = rng.below(buffer.len() as u32) as usize;
            out.push(buffer.swap_remove(slot));
        }
    }
    while !buffer.is_empty() {
        let slot = rng.below(buffer.len() as u32) as usize;
        out.push(buffer.swap_remove(slot));
    }
    out
}

fn row(name: &str, ids: Vec<u64>) {
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..SAMPLES), "{name} is a permutation");

    let n = SAMPLES as f64;
    let class = |id: u64| id * CLASSES / SAMPLES;
    let pairs = ids.windows(2).map(|w| (w[0], w[1]));
    let distance = pairs.clone().map(|(a, b)| a.abs_diff(b) as f64).sum::<f64>() / (n - 1.0);
    let same = pairs.filter(|&(a, b)| class(a) == class(b)).count() as f64 / (n - 1.0);
    let batches = ids.chunks_exact(BATCH);
    let in_batch = batches.len() as f64;
    let distinct: usize = batches
        .map(|batch| {
            let mut classes: Vec<u64> = batch.iter().map(|&id| class(id)).collect();
            classes.sort_unstable();
            classes.dedup();
            classes.len()
        })
        .sum();
    let moved = (ids.iter().zip(0u64..).map(|(&id, q)| (id.abs_diff(q) as f64).powi(2)).sum::<f64>() / n).sqrt();

    let c = CLASSES as f64;
    let independent = c * (1.0 - (1.0 - 1.0 / c).powi(BATCH as i32));
    println!(
        "  {name:<34} {:>10.3} {:>12.2} {:>12.3} {:>12.3}",
        distance / (n / 3.0),
        same * c,
        distinct as f64 / in_batch / independent,
        moved / (n / 6f64.sqrt())
    );
}
