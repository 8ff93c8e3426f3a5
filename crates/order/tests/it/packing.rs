//! Runs with packing: what an epoch delivers, how full its rows are, and what a resumed run continues with.

use std::num::NonZeroU32;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use shardtool_order::{
    EpochOrder, Error, Order, PackedPlan, PackedSample, Packing, Policy, Remainder, Replicas, ResumeState, Rng, Row,
    Source, Truncation,
};

const FINGERPRINT: u32 = 7;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

/// A run's configuration except its replicas.
#[derive(Clone, Debug)]
struct Run {
    lengths: Vec<u64>,
    capacity: u32,
    window: u32,
    order: Order,
    seed: u64,
}

impl Run {
    fn plan(&self, (world, batch): (u32, u32), policy: Policy, remainder: Remainder) -> Result<Arc<PackedPlan>, Error> {
        let (capacity, window) = (number(self.capacity), number(self.window));
        let packing = Packing::new(self.lengths.iter().copied(), capacity, window, Truncation::Truncate)?;
        let replicas = Replicas { world: number(world), batch: number(batch), policy, remainder: Some(remainder) };
        let source = Source::All(self.lengths.len() as u64);
        PackedPlan::new(source, self.order, self.seed, replicas, Arc::new(packing)).map(Arc::new)
    }
}

fn run() -> impl Strategy<Value = Run> {
    let interleaved =
        (1..9u32, 1..5u32).prop_map(|(run, window)| Order::Interleaved { run: number(run), window: number(window) });
    let order = prop_oneof![Just(Order::Sequential), Just(Order::Shuffled), interleaved];
    (vec(0..60u64, 1..200), 1..50u32, 1..80u32, order, any::<u64>())
        .prop_map(|(lengths, capacity, window, order, seed)| Run { lengths, capacity, window, order, seed })
}

fn remainder() -> impl Strategy<Value = Remainder> {
    prop_oneof![Just(Remainder::Drop), Just(Remainder::Pad), Just(Remainder::Mask)]
}

/// Returns the packed rows of a window with these tokens by first-fit decreasing, as items in ascending order.
fn first_fit(tokens: &[u64], capacity: u64) -> Vec<Vec<usize>> {
    let mut items: Vec<usize> = (0..tokens.len()).collect();
    items.sort_by_key(|&i| (std::cmp::Reverse(tokens[i]), i));
    let mut rows: Vec<(u64, Vec<usize>)> = vec![];
    for item in items {
        let row = rows.iter().position(|(free, _)| *free >= tokens[item]).unwrap_or(rows.len());
        if row == rows.len() {
            rows.push((capacity, vec![]));
        }
        rows[row].0 -= tokens[item];
        rows[row].1.push(item);
    }
    rows.iter_mut().for_each(|(_, items)| items.sort_unstable());
    rows.into_iter().map(|(_, items)| items).collect()
}

/// Returns the rows of all replicas from p, those without a sample left out, in up to `steps` steps; and what follows.
fn deliver(plan: &Arc<PackedPlan>, (epoch, mut p): (u64, u64), steps: u64) -> (Vec<Vec<PackedSample>>, (u64, u64)) {
    let mut packed = plan.epoch(epoch);
    let mut delivered = vec![];
    for _ in 0..steps.min(packed.schedule().steps(p)) {
        for rank in 0..packed.schedule().world() {
            for row in packed.schedule().rows(p, rank) {
                if let Row::Sample(e) = row {
                    delivered.push(packed.row(e).to_vec());
                }
            }
        }
        let after = packed.schedule().after(epoch, p);
        if after.0 != epoch {
            return (delivered, after);
        }
        p = after.1;
    }
    (delivered, (epoch, p))
}

proptest! {
    #[test]
    fn an_epoch_packs_every_sample_once(run in run(), epoch in 0..5u64) {
        let plan = run.plan((1, 1), Policy::Sample, Remainder::Mask).unwrap();
        let mut packed = plan.epoch(epoch);
        let order = EpochOrder::new(run.order, run.lengths.len() as u64, run.seed, epoch).unwrap();
        let (mut positions, mut tokens) = (vec![], 0);
        for e in 0..packed.rows() {
            let row = packed.row(e).to_vec();
            prop_assert!(!row.is_empty() && row.is_sorted_by_key(|s| s.position));
            prop_assert!(row.iter().map(|s| s.tokens).sum::<u32>() <= run.capacity);
            // A row is packed from one window.
            prop_assert_eq!(row[0].position / u64::from(run.window), row[row.len() - 1].position / u64::from(run.window));
            for sample in row {
                prop_assert_eq!(sample.sample.source_position, order.at(sample.position));
                let length = run.lengths[sample.sample.id as usize];
                prop_assert_eq!(u64::from(sample.tokens), length.min(run.capacity.into()));
                prop_assert_eq!(packed.sample(sample.position), sample.sample);
                positions.push(sample.position);
                tokens += u64::from(sample.tokens);
            }
        }
        positions.sort_unstable();
        prop_assert_eq!(positions, (0..run.lengths.len() as u64).collect::<Vec<_>>());
        let fill = tokens as f64 / (packed.rows() * u64::from(run.capacity)) as f64;
        prop_assert!((packed.fill() - fill).abs() < 1e-12);
    }

    #[test]
    fn rows_are_those_of_first_fit_decreasing(run in run(), epoch in 0..3u64) {
        let plan = run.plan((1, 1), Policy::Sample, Remainder::Mask).unwrap();
        let mut packed = plan.epoch(epoch);
        let order = EpochOrder::new(run.order, run.lengths.len() as u64, run.seed, epoch).unwrap();
        let tokens = |q: u64| run.lengths[order.at(q) as usize].min(run.capacity.into());
        let positions: Vec<u64> = (0..run.lengths.len() as u64).collect();
        let mut e = 0;
        for window in positions.chunks(run.window as usize) {
            let of_window: Vec<u64> = window.iter().map(|&q| tokens(q)).collect();
            let mut expected: Vec<Vec<u64>> = first_fit(&of_window, run.capacity.into())
                .iter().map(|row| row.iter().map(|&item| window[item]).collect()).collect();
            let found = (e..e + expected.len() as u64).map(|e| packed.row(e).iter().map(|s| s.position).collect());
            let mut found: Vec<Vec<u64>> = found.collect();
            e += expected.len() as u64;
            if run.order != Order::Sequential {
                expected.sort();
                found.sort();
            }
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!(e, packed.rows());
    }

    #[test]
    fn resume_yields_the_remaining_rows_for_any_world_size_and_batch(
        run in run(), replicas in vec((1..5u32, 1..5u32), 1..5), steps in vec(0..9u64, 4), last in remainder(),
    ) {
        let whole = deliver(&run.plan((1, 1), Policy::Sample, Remainder::Mask).unwrap(), (2, 0), u64::MAX).0;
        let (mut at, mut delivered) = ((2, 0), vec![]);
        for (replicas, steps) in replicas.into_iter().zip(steps) {
            let plan = run.plan(replicas, Policy::Sample, Remainder::Mask).unwrap();
            let state = ResumeState::new(plan.identity(FINGERPRINT), at).to_string();
            prop_assert_eq!(plan.resume(&ResumeState::parse(&state).unwrap(), FINGERPRINT).unwrap(), at);
            let (rows, after) = deliver(&plan, at, steps);
            delivered.extend(rows);
            at = after;
            if at.0 != 2 {
                break;
            }
        }
        prop_assert_eq!(&delivered[..], &whole[..delivered.len()]);
        let Ok(plan) = run.plan((2, 2), Policy::Sample, last) else { return Ok(()) };
        let state = ResumeState::new(plan.identity(FINGERPRINT), at);
        let at = plan.resume(&state, FINGERPRINT).unwrap();
        if at.0 == 2 {
            delivered.extend(deliver(&plan, at, u64::MAX).0);
            prop_assert_eq!(&delivered[..], &whole[..delivered.len()]);
            prop_assert!(last == Remainder::Drop && whole.len() - delivered.len() < 4 || delivered.len() == whole.len());
        }
    }

    #[test]
    fn drop_has_a_step_in_every_epoch(run in run(), world in 1..4u32, batch in 1..6u32) {
        if let Ok(plan) = run.plan((world, batch), Policy::Sample, Remainder::Drop) {
            for epoch in 0..4 {
                prop_assert!(plan.epoch(epoch).schedule().steps(0) > 0);
            }
        }
    }
}

fn example(order: Order) -> Run {
    // Captions: a few to some hundred tokens, most of them short.
    let mut rng = Rng::new(9);
    let length = |_| (rng.next_f64() * 18.0).exp2().sqrt() as u64 + 4;
    Run { lengths: (0..40_000).map(length).collect(), capacity: 512, window: 4_096, order, seed: 3 }
}

#[test]
fn rows_are_filled_to_more_than_95_percent() {
    for window in [1_024, 4_096, 1 << 16] {
        let run = Run { window, ..example(Order::Shuffled) };
        let fill = run.plan((1, 1), Policy::Sample, Remainder::Mask).expect("a plan").epoch(0).fill();
        println!("window {window}: {fill:.4} of the tokens");
        assert!(fill > 0.95, "window {window}: {fill}");
    }
}

#[test]
fn epochs_differ_in_which_samples_share_a_row() {
    let plan = example(Order::Shuffled).plan((1, 1), Policy::Sample, Remainder::Mask).expect("a plan");
    let companions = |epoch| {
        let mut packed = plan.epoch(epoch);
        let row = (0..packed.rows()).find(|&e| packed.row(e).iter().any(|s| s.sample.id == 77)).expect("a row");
        let mut ids: Vec<u64> = packed.row(row).iter().map(|s| s.sample.id).collect();
        ids.sort_unstable();
        ids
    };
    assert_ne!(companions(0), companions(1));
}

#[test]
fn refuses_samples_longer_than_a_row_if_asked_to() {
    let refused = Packing::new([3, 9, 10, 11, 40], number(10), number(4), Truncation::Refuse);
    assert!(matches!(refused, Err(Error::LongSample { count: 2, longest: 40, most: 10 })));
    let packing = Packing::new([3, 9, 10, 11, 40], number(10), number(4), Truncation::Truncate).expect("packing");
    assert_eq!((0..5).map(|v| packing.tokens(v)).collect::<Vec<_>>(), [3, 9, 10, 10, 10]);
    assert_eq!((packing.total(), packing.len(), packing.bytes()), (42, 5, 20));
    let refused = Packing::new([3], number(10), number((1 << 16) + 1), Truncation::Truncate);
    assert!(matches!(refused, Err(Error::PackingWindow { window: 65_537, most: 65_536 })));
}

#[test]
fn refuses_other_lengths_and_parameters_inside_an_epoch() {
    let base = example(Order::Shuffled);
    let plan = |run: &Run| run.plan((2, 3), Policy::Sample, Remainder::Mask).expect("a plan");
    let state = |p| ResumeState::new(plan(&base).identity(FINGERPRINT), (1, p));
    let mut lengths = base.lengths.clone();
    lengths[5] += 1;
    let others =
        [Run { lengths, ..base.clone() }, Run { capacity: 511, ..base.clone() }, Run { window: 4_095, ..base.clone() }];
    for other in others.map(|run| plan(&run)) {
        assert!(matches!(other.resume(&state(6), FINGERPRINT), Err(Error::StateBatching { .. })));
        assert_eq!(other.resume(&state(0), FINGERPRINT).ok(), Some((1, 0)));
    }
    let rows = plan(&base).epoch(1).rows();
    assert_eq!(plan(&base).resume(&state(rows), FINGERPRINT).ok(), Some((2, 0)));
    let beyond = plan(&base).resume(&state(rows + 1), FINGERPRINT);
    assert!(matches!(beyond, Err(Error::StatePosition { .. })));
}
