//! Properties of orders, plans and states, checked on random arguments.

use proptest::collection::vec;
use proptest::prelude::*;
use shardtool_order::{
    EpochOrder, Identity, List, Order, Permutation, Plan, Policy, Remainder, Replicas, ResumeState, Row, Source,
};
use std::num::NonZeroU32;
use std::sync::Arc;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

fn order() -> impl Strategy<Value = Order> {
    let interleaved =
        (1..40u32, 1..20u32).prop_map(|(run, window)| Order::Interleaved { run: number(run), window: number(window) });
    prop_oneof![Just(Order::Sequential), Just(Order::Shuffled), interleaved]
}

fn plan(
    source: Source,
    order: Order,
    seed: u64,
    (world, batch): (u32, u32),
    policy: Policy,
    records: &[u64],
) -> Arc<Plan> {
    let replicas = Replicas { world: number(world), batch: number(batch), policy, remainder: Some(Remainder::Mask) };
    Arc::new(Plan::new(source, order, seed, replicas, records).expect("a plan"))
}

/// Returns the ids of all `Row::Sample` rows of up to `steps` steps from `p`, and the next (epoch, p).
fn deliver(plan: &Arc<Plan>, epoch: u64, mut p: u64, steps: u64) -> (Vec<u64>, (u64, u64)) {
    let schedule = plan.schedule();
    let mut walks: Vec<_> = (0..schedule.world()).map(|rank| plan.walk(epoch, rank).expect("a rank")).collect();
    let mut ids = vec![];
    for _ in 0..steps.min(schedule.steps(p)) {
        for (rank, walk) in (0..).zip(&mut walks) {
            let rows = schedule.rows(p, rank);
            assert_eq!(rows.len(), schedule.batch() as usize);
            ids.extend(rows.filter_map(|row| match row {
                Row::Sample(q) => Some(walk.sample(q).id),
                Row::Repeat(_) | Row::Masked => None,
            }));
        }
        let after = schedule.after(epoch, p);
        if after.0 != epoch {
            return (ids, after);
        }
        p = after.1;
    }
    (ids, (epoch, p))
}

fn sorted(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids
}

proptest! {
    #[test]
    fn permutation_is_a_bijection_with_its_inverse(len in 1..9_000u64, key: u64) {
        let permutation = Permutation::new(len, key).unwrap();
        let mut seen = vec![false; len as usize];
        for x in 0..len {
            let y = permutation.forward(x);
            prop_assert!(!std::mem::replace(&mut seen[y as usize], true), "{y} occurs twice");
        }
        for x in [0, len / 2, len - 1] {
            prop_assert_eq!(permutation.inverse(permutation.forward(x)), x);
        }
    }

    #[test]
    fn an_epoch_visits_every_source_position_once(order in order(), len in 0..3_000u64, seed: u64, epoch: u64) {
        let mut visited = vec![0; len as usize];
        EpochOrder::new(order, len, seed, epoch).unwrap().cursor().fill(0, &mut visited);
        prop_assert_eq!(sorted(visited), (0..len).collect::<Vec<_>>());
    }

    #[test]
    fn replicas_deliver_every_sample_once(
        order in order(), len in 1..500u64, seed: u64, world in 1..7u32, batch in 1..9u32,
    ) {
        let plan = plan(Source::All(len), order, seed, (world, batch), Policy::Sample, &[]);
        let (ids, end) = deliver(&plan, 3, 0, u64::MAX);
        prop_assert_eq!(sorted(ids), (0..len).collect::<Vec<_>>());
        prop_assert_eq!(end, (4, 0));
    }

    #[test]
    fn replicas_with_their_own_shards_deliver_every_listed_sample_once(
        order in order(), records in vec(0..40u64, 1..12), seed: u64, world in 1..5u32, batch in 1..6u32, keep in 1..4u64,
    ) {
        let len: u64 = records.iter().sum();
        let listed: Vec<u64> = (0..len).filter(|id| id % keep == 0).collect();
        prop_assume!(!listed.is_empty());
        let source = Source::List(List::new(listed.clone(), len).unwrap());
        let plan = plan(source, order, seed, (world, batch), Policy::Shard, &records);
        prop_assert_eq!(sorted(deliver(&plan, 0, 0, u64::MAX).0), listed);
        // A replica reads only its own shards.
        let ends: Vec<u64> = records.iter().scan(0, |sum, n| { *sum += n; Some(*sum) }).collect();
        for rank in 0..world {
            let mut walk = plan.walk(0, rank).unwrap();
            for q in 0..plan.schedule().samples(0, rank) {
                let shard = ends.partition_point(|end| *end <= walk.sample(q).id);
                prop_assert_eq!(shard as u32 % world, rank);
            }
        }
    }

    #[test]
    fn counts_of_a_plan_equal_its_rows(
        len in 1..300u64, world in 1..6u32, batch in 1..7u32, remainder in 0..3usize, p in 0..300u64,
    ) {
        let remainder = [Remainder::Drop, Remainder::Pad, Remainder::Mask][remainder];
        let replicas =
            Replicas { world: number(world), batch: number(batch), policy: Policy::Sample, remainder: Some(remainder) };
        let Ok(plan) = Plan::new(Source::All(len), Order::Shuffled, 1, replicas, &[]) else {
            // The only error: less than one full step.
            prop_assert!(remainder == Remainder::Drop && len < u64::from(world * batch));
            return Ok(());
        };
        let (schedule, p) = (plan.schedule(), p.min(len));
        let mut delivered = 0;
        for rank in 0..world {
            let rows = (0..schedule.steps(p)).flat_map(|step| schedule.rows(p + step * schedule.step_len(), rank));
            let samples = rows.filter(|row| matches!(row, Row::Sample(_))).count() as u64;
            prop_assert_eq!(samples, schedule.samples(p, rank));
            delivered += samples;
        }
        prop_assert_eq!(delivered + schedule.dropped(p), len - p);
    }

    /// A run that stops after any step and continues with another world size and batch delivers the rest of the epoch,
    /// and then the same next epoch.
    #[test]
    fn a_run_resumes_at_any_step_for_any_world_size(
        order in order(), len in 1..400u64, seed: u64, before in (1..6u32, 1..8u32), after in (1..6u32, 1..8u32), steps in 0..60u64,
    ) {
        let first = plan(Source::All(len), order, seed, before, Policy::Sample, &[]);
        let (mut ids, (epoch, p)) = deliver(&first, 0, 0, steps);
        let state = ResumeState::new(first.identity(7), (epoch, p));
        let second = plan(Source::All(len), order, seed, after, Policy::Sample, &[]);
        let (epoch, p) = second.resume(&ResumeState::parse(&state.to_string()).unwrap(), 7).unwrap();
        if epoch == 0 {
            let (rest, end) = deliver(&second, 0, p, u64::MAX);
            ids.extend(rest);
            prop_assert_eq!(end, (1, 0));
        }
        // Positions are delivered in order, so each sample occurs once whatever the world sizes are.
        prop_assert_eq!(sorted(ids), (0..len).collect::<Vec<_>>());
        let (next, again) = (deliver(&first, 1, 0, u64::MAX).0, deliver(&second, 1, 0, u64::MAX).0);
        prop_assert_eq!(sorted(next), sorted(again));
    }

    #[test]
    fn states_round_trip(
        fingerprint: u32, source_crc: u32, order in order(), seed: u64, world in proptest::option::of(1..u32::MAX), epoch: u64, p: u64,
    ) {
        let identity = Identity { fingerprint, source_crc, stages: None, order, seed, shard_world: world, batching: None };
        let state = ResumeState::new(identity, (epoch, p));
        let json = state.to_string();
        prop_assert!(json.len() < 350);
        prop_assert_eq!(ResumeState::parse(&json).unwrap(), state);
    }
}
