//! Replicas for a table of world sizes, batches, orders, remainders and dataset sizes: equal steps, no overlap, no omitted
//! sample; and runs that stop at every position and resume with other replicas.

use std::num::NonZeroU32;
use std::sync::Arc;

use shardtool_order::{
    Balanced, Error, List, Order, Plan, Policy, Remainder, Replicas, ResumeState, Row, Sample, Source, substitutes,
};

const SEED: u64 = 77;
const FINGERPRINT: u32 = 0x1234_5678;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

fn orders() -> [Order; 3] {
    [Order::Sequential, Order::Shuffled, Order::Interleaved { run: number(3), window: number(4) }]
}

fn replicas(world: u32, batch: u32, policy: Policy, remainder: Remainder) -> Replicas {
    Replicas { world: number(world), batch: number(batch), policy, remainder: Some(remainder) }
}

/// One delivered row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Delivered {
    row: Row,
    sample: Option<Sample>,
}

/// What `rank` delivers in the step at p.
fn step(plan: &Arc<Plan>, epoch: u64, p: u64, rank: u32) -> Vec<Delivered> {
    let mut walk = plan.walk(epoch, rank).expect("a rank of the plan");
    plan.schedule().rows(p, rank).map(|row| Delivered { row, sample: row.position().map(|q| walk.sample(q)) }).collect()
}

/// Every replica's rows from (epoch, p) to that epoch's end, step after step.
fn rest_of_epoch(plan: &Arc<Plan>, epoch: u64, mut p: u64) -> Vec<Vec<Delivered>> {
    let mut out = vec![Vec::new(); plan.schedule().world() as usize];
    let steps = plan.schedule().steps(p);
    for left in (1..=steps).rev() {
        assert_eq!(plan.schedule().steps(p), left);
        (0..).zip(&mut out).for_each(|(rank, rows)| rows.extend(step(plan, epoch, p, rank)));
        let after = plan.schedule().after(epoch, p);
        p += plan.schedule().step_len();
        assert_eq!(after, if left == 1 { (epoch + 1, 0) } else { (epoch, p) });
    }
    out
}

/// Ids of the rows with a sample, sorted, without repeats.
fn ids(rows: &[Vec<Delivered>]) -> Vec<u64> {
    let mut ids: Vec<u64> = rows
        .iter()
        .flatten()
        .filter(|d| matches!(d.row, Row::Sample(_)))
        .filter_map(|d| d.sample.map(|s| s.id))
        .collect();
    ids.sort_unstable();
    ids
}

fn assert_masked_trail(rows: &[Delivered], batch: u32) {
    for batch in rows.chunks(batch as usize) {
        let real = batch.iter().take_while(|d| d.row != Row::Masked).count();
        assert!(batch[real..].iter().all(|d| d.row == Row::Masked && d.sample.is_none()));
    }
}

#[test]
fn every_world_batch_order_remainder_and_size() {
    for world in 1..=17 {
        for batch in [1, 2, 5, 16] {
            for order in orders() {
                for remainder in [Remainder::Drop, Remainder::Pad, Remainder::Mask] {
                    for n in [1u64, 2, 16, 17, 100, 272, 301] {
                        sample_policy(world, batch, order, remainder, n);
                    }
                }
            }
        }
    }
}

fn sample_policy(world: u32, batch: u32, order: Order, remainder: Remainder, n: u64) {
    let case = format!("world {world}, batch {batch}, {order}, {remainder:?}, N = {n}");
    let global = u64::from(world * batch);
    let plan = Plan::new(Source::All(n), order, SEED, replicas(world, batch, Policy::Sample, remainder), &[]);
    if remainder == Remainder::Drop && n < global {
        assert!(matches!(plan, Err(Error::DropWithoutStep { len, .. }) if len == n), "{case}");
        return;
    }
    let plan = Arc::new(plan.expect(&case));
    let steps = if remainder == Remainder::Drop { n / global } else { n.div_ceil(global) };
    assert_eq!(plan.schedule().steps(0), steps, "{case}");
    let rows = rest_of_epoch(&plan, 5, 0);
    for (rank, own) in (0..).zip(&rows) {
        assert_eq!(own.len() as u64, steps * u64::from(batch), "{case}");
        let samples = own.iter().filter(|d| matches!(d.row, Row::Sample(_))).count() as u64;
        assert_eq!(samples, plan.schedule().samples(0, rank), "{case}");
        assert_masked_trail(own, batch);
    }
    let delivered = ids(&rows);
    assert!(delivered.windows(2).all(|pair| pair[0] < pair[1]), "{case}: a sample twice");
    assert_eq!(delivered.len() as u64 + plan.schedule().dropped(0), n, "{case}");
    match remainder {
        Remainder::Drop => assert_eq!(delivered.len() as u64, steps * global, "{case}"),
        Remainder::Mask => assert!(delivered.into_iter().eq(0..n), "{case}"),
        Remainder::Pad => {
            assert!(delivered.into_iter().eq(0..n), "{case}");
            assert!(rows.iter().flatten().all(|d| d.sample.is_some()), "{case}");
            let mut repeats: Vec<u64> =
                rows.iter().flatten().filter_map(|d| if let Row::Repeat(q) = d.row { Some(q) } else { None }).collect();
            let mut expected: Vec<u64> = (n..steps * global).map(|q| q % n).collect();
            repeats.sort_unstable();
            expected.sort_unstable();
            assert_eq!(repeats, expected, "{case}");
        }
        _ => unreachable!("{case}"),
    }
}

#[test]
fn under_shard_each_replica_reads_only_its_own_shards() {
    let records = [10u64, 0, 7, 23, 1, 16, 16, 2, 40, 5];
    let n: u64 = records.iter().sum();
    let shard_of = |id: u64| {
        let mut left = id;
        records.iter().position(|&count| left.checked_sub(count).map(|rest| left = rest).is_none()).expect("an id")
    };
    let every_third: Vec<u64> = (0..n).filter(|id| id % 3 == 0).collect();
    let sources = [Source::All(n), Source::List(List::new(every_third.clone(), n).expect("ids in range"))];
    for (source, all) in sources.into_iter().zip([(0..n).collect(), every_third]) {
        for world in 1..=17u32 {
            for batch in [1, 3, 8] {
                for order in orders() {
                    let case = format!("{source:?}, world {world}, batch {batch}, {order}");
                    let make = |remainder| {
                        let replicas = replicas(world, batch, Policy::Shard, remainder);
                        Plan::new(source.clone(), order, SEED, replicas, &records).map(Arc::new)
                    };
                    let owned =
                        |rank: u32| all.iter().filter(|&&id| shard_of(id) as u32 % world == rank).count() as u64;
                    let (least, most) = ((0..world).map(owned).min(), (0..world).map(owned).max());
                    let (least, most, b) = (least.unwrap_or(0), most.unwrap_or(0), u64::from(batch));

                    let mask = make(Remainder::Mask).expect(&case);
                    assert_eq!(mask.schedule().steps(0), most.div_ceil(b), "{case}");
                    let rows = rest_of_epoch(&mask, 2, 0);
                    assert_eq!(ids(&rows), all, "{case}");
                    for (rank, own) in (0..).zip(&rows) {
                        assert_eq!(own.len() as u64, most.div_ceil(b) * b);
                        assert_eq!(mask.schedule().samples(0, rank), owned(rank), "{case}");
                        assert_masked_trail(own, batch);
                        let foreign = |d: &&Delivered| d.sample.is_some_and(|s| shard_of(s.id) as u32 % world != rank);
                        assert!(!own.iter().any(|d| foreign(&d)), "{case}, rank {rank}");
                    }

                    match make(Remainder::Drop) {
                        Ok(drop) => {
                            assert_eq!(drop.schedule().steps(0), least / b, "{case}");
                            let rows = rest_of_epoch(&drop, 2, 0);
                            let delivered = ids(&rows);
                            assert!(rows.iter().all(|own| own.len() as u64 == least / b * b), "{case}");
                            assert!(delivered.windows(2).all(|pair| pair[0] < pair[1]), "{case}: a sample twice");
                            assert_eq!(delivered.len() as u64 + drop.schedule().dropped(0), all.len() as u64, "{case}");
                        }
                        Err(e) => assert!(matches!(e, Error::DropShareWithoutStep { .. }) && least < b, "{case}: {e}"),
                    }
                    match make(Remainder::Pad) {
                        Ok(pad) => {
                            let rows = rest_of_epoch(&pad, 2, 0);
                            assert_eq!(ids(&rows), all, "{case}");
                            assert!(rows.iter().flatten().all(|d| d.sample.is_some()), "{case}");
                        }
                        Err(e) => assert!(matches!(e, Error::PadWithoutSamples { .. }) && least == 0, "{case}: {e}"),
                    }
                }
            }
        }
    }
}

#[test]
fn under_off_every_replica_gets_the_rows_of_a_single_one() {
    for order in orders() {
        let plan = |world, policy| {
            Arc::new(
                Plan::new(Source::All(50), order, SEED, replicas(world, 8, policy, Remainder::Mask), &[])
                    .expect("a plan"),
            )
        };
        let (single, off) = (plan(1, Policy::Sample), plan(4, Policy::Off));
        let expected = rest_of_epoch(&single, 1, 0);
        assert!(rest_of_epoch(&off, 1, 0).iter().all(|own| *own == expected[0]));
    }
}

/// A run of `steps` steps from a state, ids in canonical order of positions, and the state after it.
fn run(plan: &Arc<Plan>, state: ResumeState, steps: u64) -> (Vec<(u64, u64)>, ResumeState) {
    let (mut epoch, mut p) = plan.resume(&state, FINGERPRINT).expect("a state of this dataset");
    let mut out = Vec::new();
    for _ in 0..steps {
        for rank in 0..plan.schedule().world() {
            let rows = step(plan, epoch, p, rank);
            out.extend(
                rows.iter().filter(|d| matches!(d.row, Row::Sample(_))).filter_map(|d| Some((epoch, d.sample?.id))),
            );
        }
        (epoch, p) = plan.schedule().after(epoch, p);
    }
    (out, ResumeState::new(plan.identity(FINGERPRINT), (epoch, p)))
}

#[test]
fn resume_at_any_position_with_other_replicas_loses_and_repeats_nothing() {
    let labels = (0..23u64).map(|id| (id, i64::from(id % 5 == 0)));
    let sources = [Source::All(23), Source::Balanced(Balanced::new(labels))];
    for (source, order) in sources.iter().flat_map(|s| orders().map(|o| (s, o))) {
        let plan = |world, batch, remainder| {
            Plan::new(source.clone(), order, SEED, replicas(world, batch, Policy::Sample, remainder), &[])
                .map(Arc::new)
                .expect("a plan")
        };
        let one_by_one = plan(1, 1, Remainder::Mask);
        let start = ResumeState::new(one_by_one.identity(FINGERPRINT), (0, 0));
        let n = source.len();
        let (canonical, _) = run(&one_by_one, start, 2 * n);
        for (world, batch) in [(1, 1), (1, 4), (2, 3), (3, 1)] {
            let first = plan(world, batch, Remainder::Mask);
            for steps in 0..first.schedule().steps(0) + 2 {
                let (mut got, state) = run(&first, start, steps);
                let state = ResumeState::parse(&state.to_string()).expect("its own JSON");
                for (world, batch) in [(1, 1), (5, 1), (2, 7), (4, 2)] {
                    let second = plan(world, batch, Remainder::Mask);
                    let before = got.len();
                    let (more, _) = run(&second, state, 2);
                    got.extend(more);
                    assert_eq!(got, canonical[..got.len()], "{order}, {steps} steps, then {world} x {batch}");
                    got.truncate(before);
                }
            }
        }
        // `drop`: if the larger global batch does not fit in the rest of the epoch, the next epoch begins and the rest
        // counts as dropped.
        let dropping = plan(2, 5, Remainder::Drop);
        for p in 0..=n {
            let (more, _) = run(&dropping, ResumeState { p, ..start }, 1);
            let (epoch, q) = if p + 10 <= n { (0, p) } else { (1, 0) };
            let at = (epoch * n + q) as usize;
            assert_eq!(more, canonical[at..at + 10], "{order}, p = {p}");
            assert_eq!(dropping.schedule().dropped(p), (n - p) % 10);
        }
    }
}

#[test]
fn under_shard_the_batch_may_change_inside_an_epoch_and_the_world_between_epochs() {
    let records = [6u64, 5, 9, 4];
    let plan = |world, batch| {
        let replicas = replicas(world, batch, Policy::Shard, Remainder::Mask);
        Arc::new(Plan::new(Source::All(24), Order::Shuffled, SEED, replicas, &records).expect("a plan"))
    };
    let whole = ids(&rest_of_epoch(&plan(2, 1), 0, 0));
    let (first, second) = (plan(2, 3), plan(2, 4));
    let start = ResumeState::new(first.identity(FINGERPRINT), (0, 0));
    for steps in 1..first.schedule().steps(0) {
        let (before, state) = run(&first, start, steps);
        let mut all: Vec<u64> = before.iter().map(|&(_, id)| id).collect();
        let (epoch, p) = second.resume(&state, FINGERPRINT).expect("the same world size");
        all.extend(ids(&rest_of_epoch(&second, epoch, p)));
        all.sort_unstable();
        assert_eq!(all, whole, "{steps} steps");
        let refused = plan(3, 3).resume(&state, FINGERPRINT);
        assert!(matches!(refused, Err(Error::StateWorld { state: Some(2), current: Some(3) })));
        let odd = ResumeState { p: state.p + 1, ..state };
        assert!(matches!(second.resume(&odd, FINGERPRINT), Err(Error::StatePosition { multiple: 2, .. })));
    }
    let (_, ended) = run(&first, start, first.schedule().steps(0));
    assert_eq!(plan(3, 3).resume(&ended, FINGERPRINT).ok(), Some((1, 0)));
}

#[test]
fn random_positions_of_a_large_dataset_do_not_depend_on_replicas() {
    let n = 1_000_000_007;
    let plan = |world, batch| {
        let replicas = replicas(world, batch, Policy::Sample, Remainder::Mask);
        Arc::new(Plan::new(Source::All(n), orders()[2], SEED, replicas, &[]).expect("a plan"))
    };
    let (one, many) = (plan(1, 24), plan(6, 4));
    for p in (0..n).step_by(99_999_989).chain([n - 24, n - 5]) {
        let expected = step(&one, 9, p, 0);
        let got: Vec<Delivered> = (0..6).flat_map(|rank| step(&many, 9, p, rank)).collect();
        assert_eq!(got, expected, "p = {p}");
    }
}

#[test]
fn refusals_name_the_numbers() {
    let plan = |source, world, batch, policy, remainder, records: &[u64]| {
        Plan::new(source, Order::Shuffled, SEED, replicas(world, batch, policy, remainder), records).map(|_| ())
    };
    use {Policy::*, Remainder::*};
    let text = plan(Source::All(31), 4, 8, Sample, Drop, &[]).unwrap_err().to_string();
    assert!(text.contains("31 samples") && text.contains("4 replicas x batch 8"), "{text}");
    assert!(matches!(plan(Source::All(0), 1, 1, Sample, Mask, &[]), Err(Error::EmptySource)));
    assert!(matches!(plan(Source::All(9), 2, 1, Shard, Mask, &[4, 4]), Err(Error::ShardTotal { shards: 8, split: 9 })));
    let list = |ids: &[u64]| Source::List(List::new(ids.to_vec(), 9).expect("ids in range"));
    assert!(matches!(plan(list(&[1, 4, 4]), 2, 1, Shard, Mask, &[9]), Err(Error::ShardListOrder { index: 2 })));
    assert!(matches!(plan(list(&[1, 8]), 2, 1, Shard, Mask, &[8]), Err(Error::ShardTotal { shards: 8, split: 9 })));
    let classes = Source::Balanced(Balanced::new((0..9).map(|id| (id, 1))));
    assert!(matches!(plan(classes, 2, 1, Shard, Mask, &[9]), Err(Error::ShardSource { source_kind: "balanced" })));
    assert!(matches!(plan(Source::All(9), u32::MAX, u32::MAX, Sample, Mask, &[]), Err(Error::GlobalBatch { .. })));
    assert!(matches!(plan(Source::All((1 << 63) + 1), 1, 1, Sample, Mask, &[]), Err(Error::TooManySamples { .. })));
    let two = Plan::new(Source::All(9), Order::Shuffled, SEED, replicas(2, 1, Sample, Mask), &[]).map(Arc::new);
    assert!(matches!(two.expect("a plan").walk(0, 2), Err(Error::Rank { rank: 2, world: 2 })));
}

#[test]
fn under_shard_positions_of_an_epoch_are_at_most_two_to_the_63() {
    let (half, max) = (1u64 << 62, 1u64 << 63);
    let plan = |records: &[u64]| {
        let replicas = replicas(2, 1, Policy::Shard, Remainder::Mask);
        Plan::new(Source::All(max), Order::Shuffled, SEED, replicas, records)
    };
    let refused = plan(&[half - 1, half + 1]);
    assert!(matches!(refused, Err(Error::TooManyPositions { rank: 1, world: 2, len }) if len == half + 1));
    let plan = plan(&[half, half]).expect("a plan");
    assert_eq!(plan.schedule().steps(0), half);
    assert_eq!(plan.schedule().after(3, max - 4), (3, max - 2));
    assert_eq!(plan.schedule().after(3, max - 2), (4, 0));
}

#[test]
fn under_shard_replicas_without_shards_take_no_memory() {
    let replicas = replicas(u32::MAX, 2, Policy::Shard, Remainder::Mask);
    let plan = Plan::new(Source::All(9), Order::Shuffled, SEED, replicas, &[4, 5]).map(Arc::new).expect("a plan");
    for rank in [2, u32::MAX - 1] {
        assert_eq!(plan.schedule().samples(0, rank), 0);
        assert!(step(&plan, 0, 0, rank).iter().all(|delivered| delivered.row == Row::Masked));
    }
    assert_eq!(plan.schedule().steps(0), 3);
}

#[test]
fn epoch_0_follows_the_last_epoch() {
    let replicas = replicas(1, 4, Policy::Sample, Remainder::Mask);
    let plan = Plan::new(Source::All(9), Order::Shuffled, SEED, replicas, &[]).expect("a plan");
    assert_eq!(plan.schedule().after(u64::MAX, 4), (u64::MAX, 8));
    assert_eq!(plan.schedule().after(u64::MAX, 8), (0, 0));
}

#[test]
fn default_remainders_follow_the_order() {
    let defaults = orders().map(Remainder::default_for);
    assert_eq!(defaults, [Remainder::Mask, Remainder::Drop, Remainder::Drop]);
}

#[test]
fn substitutes_are_other_positions_in_range() {
    for n in [2u64, 3, 10, 1_000, 1 << 63] {
        for q in [0, 1, n / 2, n - 1] {
            let candidates: Vec<u64> = substitutes(SEED, 3, q, n).collect();
            assert_eq!(candidates.len(), 16);
            assert!(candidates[0] != q && candidates.iter().all(|&c| c < n), "N = {n}, q = {q}: {candidates:?}");
            assert_eq!(candidates, substitutes(SEED, 3, q, n).collect::<Vec<_>>());
        }
    }
    assert_eq!(substitutes(SEED, 3, 0, 1).count(), 0);
    assert_eq!(substitutes(SEED, 3, 0, 0).count(), 0);
}
