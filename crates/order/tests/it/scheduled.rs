//! Properties of schedules, of random members, stages and worlds: shares at every prefix, passes without gaps or repeats, and
//! resumes in other worlds. `SHARDTOOL_SCHEDULES` is the number of schedules, `SHARDTOOL_SCHEDULE_SEED` the first seed.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use shardtool_order::{
    Error, Member, Order, Plan, Policy, Remainder, Replicas, ResumeState, Rng, Row, Scheduled, Source, StageWeights,
};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: expected a number")))
}

/// A random schedule, and the order of its passes.
struct Random {
    source: Scheduled,
    lens: Vec<u64>,
    order: Order,
    rng: Rng,
}

impl Random {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut below = |n: u32| u64::from(rng.below(n));
        let members = 2 + below(49);
        let (mut first, mut list) = (0, vec![]);
        let lens: Vec<u64> =
            (0..members).map(|_| if below(4) == 0 { 1 + below(9000) } else { 1 + below(40) }).collect();
        for &len in &lens {
            // Every third is a list, of the same ids from the last to the first.
            list.push(match below(3) {
                0 => Member::List((first..first + len).rev().collect()),
                _ => Member::Range { first, len },
            });
            first += len;
        }
        let (mut start, mut stages) = (0, vec![]);
        for _ in 0..1 + below(20) {
            let most = [2, 10, 1000][below(3) as usize];
            let mut weights: Vec<u64> = (0..members).map(|_| if below(3) == 0 { 0 } else { below(most) }).collect();
            if weights.iter().all(|weight| *weight == 0) {
                weights[below(members as u32) as usize] = 1;
            }
            stages.push(StageWeights { start, weights });
            start += 1 + below(3000);
        }
        let order = match below(3) {
            0 => Order::Sequential,
            1 => Order::Shuffled,
            _ => Order::Interleaved {
                run: NonZeroU32::new(1 + below(9) as u32).expect("not 0"),
                window: NonZeroU32::new(1 + below(9) as u32).expect("not 0"),
            },
        };
        let draws = 64 * (1 + below(60));
        let source = Scheduled::new(list, &stages, draws, first).expect("a valid schedule");
        Random { source, lens, order, rng }
    }

    fn plan(&self, world: u32, batch: u32) -> Arc<Plan> {
        let replicas = Replicas {
            world: NonZeroU32::new(world).expect("not 0"),
            batch: NonZeroU32::new(batch).expect("not 0"),
            policy: Policy::Sample,
            remainder: Some(Remainder::Mask),
        };
        Arc::new(Plan::new(Source::Scheduled(self.source.clone()), self.order, 5, replicas, &[]).expect("a valid plan"))
    }

    /// The member that holds an id.
    fn member(&self, id: u64) -> usize {
        let mut end = 0;
        self.lens
            .iter()
            .position(|len| {
                end += len;
                id < end
            })
            .expect("an id of a member")
    }
}

/// The ids of a run of `epochs`, which changes its world and its batch at random steps, through the text of a state.
fn ids(random: &mut Random, epochs: u64) -> Vec<u64> {
    let (mut epoch, mut p, mut out) = (0, 0, vec![]);
    while epoch < epochs {
        let (world, batch) = (1 + random.rng.below(64), 1 + random.rng.below(64));
        let plan = random.plan(world, batch);
        let text = plan.state((epoch, p), 7).to_string();
        assert!(text.len() < 300);
        (epoch, p) = plan.resume(&text.parse::<ResumeState>().expect("a state"), 7).expect("the same run");
        for _ in 0..1 + random.rng.below(40) {
            for rank in 0..world {
                let mut walk = plan.walk(epoch, rank).expect("a rank");
                for row in walk.rows(p) {
                    if let Row::Sample(q) = row {
                        out.push(walk.sample(q).id);
                    }
                }
            }
            (epoch, p) = plan.schedule().after(epoch, p);
            if epoch == epochs {
                break;
            }
        }
    }
    out
}

#[test]
fn shares_hold_at_every_prefix_and_passes_have_each_sample_once() {
    let (first, count) = (number("SHARDTOOL_SCHEDULE_SEED", 0), number("SHARDTOOL_SCHEDULES", 40));
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let ids = ids(&mut random, 3);
        let source = random.source.clone();
        let starts: Vec<u64> = source.starts().collect();
        let (mut had, mut passes) = (vec![0u64; random.lens.len()], vec![BTreeSet::new(); random.lens.len()]);
        let (mut stage, mut in_stage) = (0, vec![0u64; random.lens.len()]);
        for (g, &id) in (0..).zip(&ids) {
            if starts.get(stage + 1) == Some(&g) {
                (stage, in_stage) = (stage + 1, vec![0; random.lens.len()]);
            }
            let member = random.member(id);
            had[member] += 1;
            in_stage[member] += 1;
            let (weights, k) = (source.weights(stage), g + 1 - starts[stage]);
            let sum: u64 = weights.iter().sum();
            for (count, weight) in in_stage.iter().zip(weights) {
                assert!((count * sum).abs_diff(k * weight) < sum, "seed {seed}, position {g}");
            }
            assert!(passes[member].insert(id), "seed {seed}, position {g}: id {id} comes twice in a pass");
            if passes[member].len() as u64 == random.lens[member] {
                passes[member].clear();
            }
        }
        assert_eq!(source.counts(5, 3, 0), had.iter().copied().map(u128::from).collect::<Vec<_>>(), "seed {seed}");
    }
}

fn stages(last: u64) -> [StageWeights; 2] {
    [StageWeights { start: 0, weights: vec![3, 1] }, StageWeights { start: 50, weights: vec![1, last] }]
}

fn two(stages: &[StageWeights], draws: u64) -> Result<Scheduled, Error> {
    let members = vec![Member::Range { first: 0, len: 10 }, Member::Range { first: 10, len: 5 }];
    Scheduled::new(members, stages, draws, 15)
}

#[test]
fn a_stage_that_has_not_begun_may_change_and_one_that_has_is_named() {
    let plan = |last| {
        let one = NonZeroU32::MIN;
        let replicas = Replicas { world: one, batch: one, policy: Policy::Sample, remainder: None };
        let source = Source::Scheduled(two(&stages(last), 20).expect("a schedule"));
        Plan::new(source, Order::Shuffled, 0, replicas, &[]).expect("a plan")
    };
    let before = plan(1).state((2, 10), 7);
    assert_eq!(plan(4).resume(&before, 7).ok(), Some((2, 10)));
    let after = plan(1).state((2, 11), 7);
    let error = plan(4).resume(&after, 7).expect_err("another stage");
    assert!(error.to_string().contains("stage 1"), "{error}");
    assert_eq!(plan(1).resume(&after, 7).ok(), Some((2, 11)));
}

/// The samples of each member that the steps of `epochs` deliver to one rank.
fn delivered(source: &Scheduled, seed: u64, (world, rank): (u32, u32), batch: u32, epochs: u64) -> Vec<u64> {
    let number = |n| NonZeroU32::new(n).expect("not 0");
    let replicas = Replicas {
        world: number(world),
        batch: number(batch),
        policy: Policy::Sample,
        remainder: Some(Remainder::Drop),
    };
    let source = Source::Scheduled(source.clone());
    let plan = Arc::new(Plan::new(source, Order::Shuffled, seed, replicas, &[]).expect("a plan"));
    let mut had = vec![0; 3];
    for epoch in 0..epochs {
        let mut walk = plan.walk(epoch, rank).expect("a rank");
        let steps = plan.schedule().steps(0);
        for step in 0..steps {
            for row in walk.rows(step * plan.schedule().step_len()) {
                had[(walk.sample(row.position().expect("a sample")).id / 100) as usize] += 1;
            }
        }
    }
    had
}

/// Three members of 100 samples.
fn three(stages: &[StageWeights], draws: u64) -> Scheduled {
    let members = (0..3).map(|d| Member::Range { first: 100 * d, len: 100 }).collect();
    Scheduled::new(members, stages, draws, 300).expect("a schedule")
}

/// Whether a count is what independent draws give with a probability of 0.999999: five standard deviations.
fn is_about(count: u64, draws: u64, share: f64) -> bool {
    let (mean, deviation) = (draws as f64 * share, (draws as f64 * share * (1.0 - share)).sqrt());
    (count as f64 - mean).abs() < 5.0 * deviation
}

#[test]
fn shares_are_not_bound_to_ranks_or_to_the_ends_of_epochs() {
    let one = |weights: &[u64]| vec![StageWeights { start: 0, weights: weights.to_vec() }];
    for seed in 0..3 {
        // The last sample of each epoch of 11 is dropped.
        let had = delivered(&three(&one(&[10, 1, 0]), 11), seed, (1, 0), 10, 2000);
        assert!(is_about(had[1], 20_000, 1.0 / 11.0), "{had:?}");
        // As many ranks as turns, and a row for each.
        for rank in 0..10 {
            let had = delivered(&three(&one(&[9, 1, 0]), 100), seed, (10, rank), 1, 200);
            assert!(is_about(had[1], 2_000, 0.1), "rank {rank}: {had:?}");
        }
        for rank in 0..2 {
            let had = delivered(&three(&one(&[1, 1, 0]), 100), seed, (2, rank), 1, 20);
            assert!(is_about(had[1], 1_000, 0.5), "rank {rank}: {had:?}");
        }
        // Three hundred stages of ten samples in which a member has a hundredth, and two are equal.
        let short: Vec<StageWeights> =
            (0..300).map(|t| StageWeights { start: 10 * t, weights: vec![97, 2, 1] }).collect();
        let had = delivered(&three(&short, 10), seed, (1, 0), 10, 300);
        assert!(is_about(had[1], 3_000, 0.02) && is_about(had[2], 3_000, 0.01), "{had:?}");
    }
}

#[test]
fn periods_begin_only_where_all_shares_hold() {
    for weights in [
        vec![3, 1],
        vec![5, 0, 3, 1],
        vec![2, 3, 5, 7, 11, 13],
        vec![10, 10, 9, 9, 9, 1, 1, 1],
        vec![6, 6, 6, 1, 1, 1, 1],
    ] {
        let members = weights.iter().map(|_| Member::Range { first: 0, len: 1 }).collect();
        let stages = [StageWeights { start: 0, weights: weights.clone() }];
        let source = Scheduled::new(members, &stages, 1, 1).expect("a schedule");
        let sum: u64 = weights.iter().sum();
        let holds = |first: u64| {
            let mut had = vec![0; weights.len()];
            (1..=sum).all(|k| {
                had[source.turn_member(0, ((first + k - 1) % sum) as u32)] += 1;
                had.iter().zip(&weights).all(|(had, weight)| (had * sum).abs_diff(k * weight) < sum)
            })
        };
        let expected: Vec<u32> = (0..sum).filter(|first| holds(*first)).map(|first| first as u32).collect();
        assert_eq!(source.period_firsts(0), expected, "{weights:?}");
    }
}

#[test]
fn memory_depends_on_weights_and_not_on_samples() {
    let bytes = |len: u64, weights: Vec<u64>| {
        let members = vec![Member::Range { first: 0, len }, Member::Range { first: len, len }];
        let stages = [StageWeights { start: 0, weights }];
        Source::Scheduled(Scheduled::new(members, &stages, len, 2 * len).expect("a schedule")).bytes()
    };
    assert_eq!(bytes(10, vec![9, 1]), bytes(1 << 40, vec![9, 1]));
    assert!(bytes(1 << 40, vec![(1 << 20) - 1, 1]) < 11 << 20);
}
