//! Runs with buckets: what an epoch delivers, on every replica and after every resume.

use std::num::NonZeroU32;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use shardtool_order::{
    Bucket, BucketReplicas, Buckets, Error, ImageShape, Order, Plan, Policy, Remainder, ResumeState, Row, Shape, Source,
};

const FINGERPRINT: u32 = 0x00c0_ffee;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

/// A run's configuration except its replicas.
#[derive(Clone, Debug)]
struct Run {
    batches: Vec<u32>,
    members: Vec<u16>,
    order: Order,
    seed: u64,
}

impl Run {
    fn plan(&self, world: u32, policy: Policy, remainder: Remainder) -> Result<Arc<Plan>, Error> {
        let shape = |y: usize| Shape::Image(ImageShape { height: number(y as u32 + 1), width: number(7) });
        let bucket = |(y, &batch)| Bucket { shape: shape(y), batch: number(batch) };
        let buckets =
            Buckets::new(self.batches.iter().enumerate().map(bucket).collect(), self.members.iter().copied())?;
        let replicas = BucketReplicas { world: number(world), policy, remainder: Some(remainder) };
        let source = Source::All(self.members.len() as u64);
        Plan::bucketed(source, self.order, self.seed, replicas, Arc::new(buckets)).map(Arc::new)
    }
}

fn run() -> impl Strategy<Value = Run> {
    (1..7u16).prop_flat_map(|buckets| {
        let order = prop_oneof![Just(Order::Sequential), Just(Order::Shuffled)];
        (vec(1..9u32, usize::from(buckets)), vec(0..buckets, 1..300), order, any::<u64>())
            .prop_map(|(batches, members, order, seed)| Run { batches, members, order, seed })
    })
}

fn remainder() -> impl Strategy<Value = Remainder> {
    prop_oneof![Just(Remainder::Drop), Just(Remainder::Pad), Just(Remainder::Mask)]
}

/// A row with its source position in place of its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivered {
    Sample(u64),
    Repeat(u64),
    Masked,
}

/// The bucket and the rows of a batch.
type Batch = (usize, Vec<Delivered>);

/// Returns the batches of up to `steps` steps from p, step after step and rank after rank, and the (epoch, p) that follows.
fn deliver(plan: &Arc<Plan>, (epoch, mut p): (u64, u64), steps: u64) -> (Vec<Batch>, (u64, u64)) {
    let schedule = plan.schedule();
    let mut walks: Vec<_> = (0..schedule.world()).map(|rank| plan.walk(epoch, rank).expect("a rank")).collect();
    let mut batches = vec![];
    for _ in 0..steps.min(schedule.steps(p)) {
        for walk in &mut walks {
            let rows: Vec<Row> = walk.rows(p).collect();
            let mut position = |q| walk.sample(q).source_position;
            let delivered = rows.into_iter().map(|row| match row {
                Row::Sample(q) => Delivered::Sample(position(q)),
                Row::Repeat(q) => Delivered::Repeat(position(q)),
                Row::Masked => Delivered::Masked,
            });
            let delivered = delivered.collect();
            batches.push((walk.bucket(p).expect("a plan with buckets"), delivered));
        }
        let after = schedule.after(epoch, p);
        if after.0 != epoch {
            return (batches, after);
        }
        p = after.1;
    }
    (batches, (epoch, p))
}

fn samples(batches: &[Batch]) -> Vec<u64> {
    let rows = batches.iter().flat_map(|(_, rows)| rows);
    let mut samples: Vec<u64> =
        rows.filter_map(|row| if let Delivered::Sample(v) = row { Some(*v) } else { None }).collect();
    samples.sort_unstable();
    samples
}

/// Batches that hold at least one sample of their own.
fn own(batches: Vec<Batch>) -> Vec<Batch> {
    batches.into_iter().filter(|(_, rows)| matches!(rows[0], Delivered::Sample(_))).collect()
}

proptest! {
    #[test]
    fn an_epoch_delivers_every_sample_once_except_what_drop_omits(
        run in run(), remainder in remainder(), world in 1..6u32, epoch in 0..9u64,
    ) {
        let Ok(plan) = run.plan(world, Policy::Sample, remainder) else {
            prop_assert_eq!(remainder, Remainder::Drop);
            return Ok(());
        };
        let (batches, end) = deliver(&plan, (epoch, 0), u64::MAX);
        prop_assert_eq!(end, (epoch + 1, 0));
        // Every replica makes the same number of steps.
        prop_assert_eq!(batches.len() as u64, plan.schedule().steps(0) * u64::from(world));
        let delivered = samples(&batches);
        let dropped = plan.walk(epoch, 0).unwrap().dropped(0);
        prop_assert_eq!(delivered.len() as u64 + dropped, run.members.len() as u64);
        let mut distinct = delivered.clone();
        distinct.dedup();
        prop_assert_eq!(&distinct, &delivered, "delivered twice");
        prop_assert!(remainder == Remainder::Drop || dropped == 0);
        // Fewer complete batches are omitted than a step has.
        let incomplete: u64 = (0u16..).zip(&run.batches).map(|(y, &batch)| {
            run.members.iter().filter(|&&m| m == y).count() as u64 % u64::from(batch)
        }).sum();
        let largest = u64::from(*run.batches.iter().max().unwrap());
        prop_assert!(dropped <= incomplete + u64::from(world - 1) * largest);
    }

    #[test]
    fn every_row_of_a_batch_is_of_its_bucket(run in run(), remainder in remainder(), world in 1..6u32, off: bool) {
        let policy = if off { Policy::Off } else { Policy::Sample };
        let Ok(plan) = run.plan(world, policy, remainder) else { return Ok(()) };
        for (bucket, rows) in deliver(&plan, (3, 0), u64::MAX).0 {
            prop_assert_eq!(rows.len() as u32, run.batches[bucket]);
            for row in rows {
                match row {
                    Delivered::Sample(v) => prop_assert_eq!(usize::from(run.members[v as usize]), bucket),
                    Delivered::Repeat(v) => {
                        prop_assert_eq!(usize::from(run.members[v as usize]), bucket);
                        prop_assert_eq!(remainder, Remainder::Pad);
                    }
                    Delivered::Masked => prop_assert_eq!(remainder, Remainder::Mask),
                }
            }
        }
    }

    #[test]
    fn replicas_share_the_batches_of_a_single_one(run in run(), world in 1..6u32, remainder in remainder()) {
        let Ok(plan) = run.plan(world, Policy::Sample, remainder) else { return Ok(()) };
        let single = deliver(&run.plan(1, Policy::Sample, remainder).unwrap(), (1, 0), u64::MAX).0;
        let shared = own(deliver(&plan, (1, 0), u64::MAX).0);
        prop_assert_eq!(&shared[..], &single[..shared.len()]);
        prop_assert!(remainder == Remainder::Drop || shared.len() == single.len());
        // Under `off`, each replica gets all of them.
        let off = run.plan(2, Policy::Off, remainder).unwrap();
        let all = deliver(&off, (1, 0), u64::MAX).0;
        let (even, odd): (Vec<_>, Vec<_>) = all.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).unzip();
        prop_assert_eq!(&even, &single);
        prop_assert_eq!(&odd, &single);
    }

    #[test]
    fn resume_yields_the_remaining_batches_for_any_world_size_and_remainder(
        run in run(), worlds in vec(1..6u32, 1..5), steps in vec(0..9u64, 4), other in remainder(),
    ) {
        // A run that changes its world size several times, and its remainder at last.
        let single = deliver(&run.plan(1, Policy::Sample, Remainder::Mask).unwrap(), (5, 0), u64::MAX).0;
        let (mut at, mut delivered) = ((5, 0), vec![]);
        for (world, steps) in worlds.into_iter().zip(steps) {
            let plan = run.plan(world, Policy::Sample, Remainder::Mask).unwrap();
            let state = ResumeState::new(plan.identity(FINGERPRINT), at).to_string();
            prop_assert_eq!(plan.resume(&ResumeState::parse(&state).unwrap(), FINGERPRINT).unwrap(), at);
            let (batches, after) = deliver(&plan, at, steps);
            delivered.extend(own(batches));
            at = after;
            if at.0 != 5 {
                break;
            }
        }
        prop_assert_eq!(&delivered[..], &single[..delivered.len()]);
        let Ok(last) = run.plan(2, Policy::Sample, other) else { return Ok(()) };
        let state = ResumeState::new(last.identity(FINGERPRINT), at);
        let at = last.resume(&state, FINGERPRINT).unwrap();
        if at.0 == 5 {
            let (batches, end) = deliver(&last, at, u64::MAX);
            prop_assert_eq!(end, (6, 0));
            delivered.extend(own(batches));
            // `pad` fills the rows that `mask` masks.
            let own = |rows: &Batch| rows.1.iter().filter(|row| matches!(row, Delivered::Sample(_))).copied().collect();
            let (found, expected): (Vec<Vec<_>>, Vec<Vec<_>>) =
                (delivered.iter().map(own).collect(), single.iter().map(own).collect());
            prop_assert_eq!(&found[..], &expected[..found.len()]);
            prop_assert!(other == Remainder::Drop || found.len() == expected.len());
        }
    }

    #[test]
    fn counts_equal_the_rows(run in run(), remainder in remainder(), world in 1..6u32, p in 0..40u64) {
        let Ok(plan) = run.plan(world, Policy::Sample, remainder) else { return Ok(()) };
        let schedule = plan.schedule();
        let p = p.min(plan.buckets().unwrap().batches());
        let mut all = 0;
        for rank in 0..world {
            let walk = plan.walk(0, rank).unwrap();
            let rows: Vec<Row> =
                (0..schedule.steps(p)).flat_map(|step| walk.rows(p + step * schedule.step_len())).collect();
            let counts = walk.counts(p);
            prop_assert_eq!(counts.rows, rows.len() as u64);
            prop_assert_eq!(counts.samples, rows.iter().filter(|row| matches!(row, Row::Sample(_))).count() as u64);
            // The rows of a batch can be counted, and taken from any of them.
            let batch = walk.rows(p);
            let (len, third) = (batch.len(), batch.clone().nth(2));
            let listed: Vec<Row> = batch.collect();
            prop_assert_eq!((len, third), (listed.len(), listed.get(2).copied()));
            all += counts.samples;
        }
        if remainder != Remainder::Drop && p == 0 {
            prop_assert_eq!(all, run.members.len() as u64);
        }
    }

    #[test]
    fn substitutes_are_other_members_of_the_bucket(run in run(), q in 0..300u64, epoch: u64) {
        let plan = run.plan(1, Policy::Sample, Remainder::Mask).unwrap();
        let mut walk = plan.walk(epoch, 0).unwrap();
        prop_assert_eq!(walk.len(), run.members.len() as u64);
        let q = q % walk.len();
        let bucket = |v: u64| run.members[v as usize];
        let own = bucket(walk.sample(q).source_position);
        let candidates = walk.substitute_positions(q);
        let members = run.members.iter().filter(|&&m| m == own).count();
        prop_assert_eq!(candidates.len(), if members > 1 { 16 } else { 0 });
        prop_assert!(candidates.first() != Some(&q));
        for candidate in candidates {
            prop_assert_eq!(bucket(walk.sample(candidate).source_position), own);
        }
    }
}

fn example() -> Run {
    let members = (0..60).map(|v| [0, 1, 0, 2, 0][v % 5]).collect();
    Run { batches: vec![4, 3, 13], members, order: Order::Shuffled, seed: 1 }
}

#[test]
fn epochs_and_seeds_differ_and_sequential_does_not() {
    let epoch = |run: &Run, epoch| {
        deliver(&run.plan(1, Policy::Sample, Remainder::Mask).expect("a plan"), (epoch, 0), u64::MAX).0
    };
    let run = example();
    assert_ne!(epoch(&run, 0), epoch(&run, 1));
    assert_ne!(epoch(&run, 0), epoch(&Run { seed: 2, ..run.clone() }, 0));
    let sequential = Run { order: Order::Sequential, ..run };
    assert_eq!(epoch(&sequential, 0), epoch(&sequential, 1));
    assert_eq!(samples(&epoch(&sequential, 0)[..1]), [0, 2, 4, 5]);
}

#[test]
fn delivers_every_sample_once_from_many_buckets() {
    let members = (0..3_000u32).map(|v| (v.wrapping_mul(2_654_435_761) >> 20) as u16 % 300).collect();
    let batches = (0..300).map(|y| y % 5 + 1).collect();
    let run = Run { batches, members, order: Order::Shuffled, seed: 5 };
    let batches = deliver(&run.plan(3, Policy::Sample, Remainder::Mask).expect("a plan"), (0, 0), u64::MAX).0;
    assert_eq!(samples(&batches), (0..3_000).collect::<Vec<_>>());
}

#[test]
fn reports_buckets_that_drop_never_delivers() {
    let plan = example().plan(2, Policy::Sample, Remainder::Drop).expect("a plan");
    let buckets = plan.buckets().expect("buckets");
    assert_eq!(buckets.without_complete_batch().collect::<Vec<_>>(), [2]);
    assert_eq!((buckets.members(0), buckets.members(2)), (36, 12));
    // An empty bucket has nothing to deliver.
    let run = Run { batches: vec![4, 3, 12, 5], ..example() };
    let plan = run.plan(2, Policy::Sample, Remainder::Drop).expect("a plan");
    assert_eq!(plan.buckets().expect("buckets").without_complete_batch().count(), 0);
}

#[test]
fn refuses_other_buckets_inside_an_epoch() {
    let plan = |run: &Run| run.plan(2, Policy::Sample, Remainder::Mask).expect("a plan");
    let base = plan(&example());
    let state = |p| ResumeState::new(base.identity(FINGERPRINT), (4, p));
    let mut members = example().members;
    members.swap(0, 1);
    let fixed = shardtool_order::Replicas {
        world: number(2),
        batch: number(2),
        policy: Policy::Sample,
        remainder: Some(Remainder::Mask),
    };
    let fixed = Arc::new(Plan::new(Source::All(60), Order::Shuffled, 1, fixed, &[]).expect("a plan"));
    let others = [
        plan(&Run { batches: vec![4, 3, 12], ..example() }),
        plan(&Run { batches: vec![4, 3, 13, 1], ..example() }),
        plan(&Run { members, ..example() }),
        fixed,
    ];
    for other in others {
        let refused = other.resume(&state(6), FINGERPRINT);
        assert!(matches!(refused, Err(Error::StateBatching { state: Some(_), .. })), "{refused:?}");
        assert_eq!(other.resume(&state(0), FINGERPRINT).ok(), Some((4, 0)));
    }
    assert_eq!(base.resume(&state(6), FINGERPRINT).ok(), Some((4, 6)));
    // 9 + 4 complete batches, and one incomplete one.
    assert_eq!(base.resume(&state(14), FINGERPRINT).ok(), Some((5, 0)));
    assert!(matches!(base.resume(&state(15), FINGERPRINT), Err(Error::StatePosition { p: 15, end: 14, multiple: 1 })));
}
