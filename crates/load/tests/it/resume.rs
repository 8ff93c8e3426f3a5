//! Resume is exact: after a stop at any step, for any world size before and after, batch size and number of workers,
//! the samples that follow are those of an uninterrupted run.

use crate::{dataset, samples};
use proptest::prelude::*;
use shardtool_decode::Pipeline;
use shardtool_load::{BatchTransform, Config, Error, Field, Image, Loader, Mosaic, Notice};
use shardtool_order::{Order, Remainder, Replica, ResumeState};
use shardtool_read::{Dataset, Split};
use std::num::NonZeroU32;
use std::sync::LazyLock;

const EPOCHS: u64 = 2;

/// Splits of 1, 24 and 37 samples; the folders live as long as the process.
static SPLITS: LazyLock<Vec<Split>> = LazyLock::new(|| {
    let write = |n| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
        dataset::write(&folder, "train", &samples::numbers(n), 5);
        // Mapped files stay readable once they are opened.
        let split = Dataset::open(&folder).unwrap().split("train").unwrap().clone();
        (0..n).for_each(|id| drop(split.get(id).unwrap()));
        std::fs::remove_dir_all(folder).unwrap();
        split
    };
    [1, 24, 37].map(write).into()
});

/// How a job runs before or after its stop.
#[derive(Debug, Clone, Copy)]
struct Job {
    world: u32,
    batch: u32,
    workers: usize,
}

fn job() -> impl Strategy<Value = Job> {
    (1..5u32, 1..9u32, 1..4usize).prop_map(|(world, batch, workers)| Job { world, batch, workers })
}

fn order() -> impl Strategy<Value = Order> {
    let size = || (1..9u32).prop_map(|n| NonZeroU32::new(n).unwrap());
    let interleaved = (size(), size()).prop_map(|(run, window)| Order::Interleaved { run, window });
    prop_oneof![Just(Order::Sequential), Just(Order::Shuffled), interleaved]
}

/// The loaders of all replicas.
fn loaders(config: &Config, job: Job) -> Vec<Loader> {
    let mut config = config.clone();
    (config.batch_size, config.workers) = (job.batch, Some(job.workers));
    let loader = |rank| {
        config.replica = Replica::new(rank, job.world).unwrap();
        Loader::new(&config).unwrap()
    };
    (0..job.world).map(loader).collect()
}

/// The ids of one step, replica after replica; `None` at an epoch's end, which comes for all replicas at once.
fn step(loaders: &mut [Loader]) -> Option<Vec<i64>> {
    let batches: Vec<_> = loaders.iter_mut().map(|loader| loader.next_batch().unwrap()).collect();
    assert!(batches.iter().all(|batch| batch.is_some() == batches[0].is_some()));
    batches[0].is_some().then(|| batches.iter().flatten().flat_map(|batch| batch.ids().to_vec()).collect())
}

/// Steps until the run ends; an end of epoch is `None`.
fn rest(loaders: &mut [Loader]) -> Vec<Option<Vec<i64>>> {
    let mut steps = vec![];
    while state(loaders).epoch < EPOCHS {
        steps.push(step(loaders));
    }
    steps
}

/// The state, the same for all replicas.
fn state(loaders: &[Loader]) -> ResumeState {
    let state = loaders[0].state();
    assert!(loaders.iter().all(|loader| loader.state() == state));
    state
}

/// Samples in order, without masked rows and ends of epochs.
fn samples_of(steps: &[Option<Vec<i64>>]) -> Vec<i64> {
    steps.iter().flatten().flatten().copied().filter(|id| *id >= 0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn resume_yields_the_same_batches_at_any_step(
        (split, order, seed) in (0..3usize, order(), any::<u64>()),
        remainder in prop_oneof![Just(Remainder::Drop), Just(Remainder::Pad), Just(Remainder::Mask)],
        (before, stop) in (job(), any::<prop::sample::Index>()),
        workers in 1..4usize,
    ) {
        let mut config = Config::new(SPLITS[split].clone(), Vec::<Field>::new(), 1);
        (config.order, config.seed, config.remainder) = (order, seed, Some(remainder));
        config.epochs = Some(EPOCHS);
        // An epoch has at least one step.
        prop_assume!(remainder != Remainder::Drop || config.splits[0].len() >= u64::from(before.world * before.batch));
        let whole = rest(&mut loaders(&config, before));
        let stop = stop.index(whole.len());
        let mut stopped = loaders(&config, before);
        let seen: Vec<_> = (0..stop).map(|_| step(&mut stopped)).collect();
        let mut resumed = loaders(&config, Job { workers, ..before });
        resumed.iter_mut().for_each(|loader| loader.load_state(&state(&stopped)).unwrap());
        let mut expected = &whole[stop..];
        if let Some((None, after)) = expected.split_first() {
            // The state after an epoch's last batch is the start of the next epoch.
            expected = after;
        }
        prop_assert_eq!([&seen[..], &rest(&mut resumed)[..]].concat(), [&whole[..stop], expected].concat());
    }

    #[test]
    fn resume_yields_the_same_samples_for_any_world_size(
        (split, order, seed) in (0..3usize, order(), any::<u64>()),
        (before, after, stop) in (job(), job(), any::<prop::sample::Index>()),
    ) {
        let mut config = Config::new(SPLITS[split].clone(), Vec::<Field>::new(), 1);
        (config.order, config.seed, config.remainder) = (order, seed, Some(Remainder::Mask));
        config.epochs = Some(EPOCHS);
        let whole = rest(&mut loaders(&config, before));
        let mut stopped = loaders(&config, before);
        let seen: Vec<_> = (0..stop.index(whole.len())).map(|_| step(&mut stopped)).collect();
        let mut resumed = loaders(&config, after);
        resumed.iter_mut().for_each(|loader| loader.load_state(&state(&stopped)).unwrap());
        let found = [&seen[..], &rest(&mut resumed)[..]].concat();
        prop_assert_eq!(samples_of(&found), samples_of(&whole));
    }
}

/// Loads eight photographs with these transforms, in batches of two.
fn mixed(split: &Split, transforms: &[BatchTransform]) -> Loader {
    let of_classes = |mut transform: BatchTransform| {
        match &mut transform {
            BatchTransform::Mosaic(Mosaic { num_classes, .. }) => *num_classes = Some(5),
            BatchTransform::MixUp(pairs) | BatchTransform::CutMix(pairs) => pairs.num_classes = Some(5),
            _ => {}
        }
        transform
    };
    let mut config = Config::new(split.clone(), [Image::new(Pipeline::train(8).unwrap())], 2);
    config.batch_transform = transforms.iter().copied().map(of_classes).collect();
    Loader::new(&config).unwrap()
}

#[test]
fn another_batch_transform_is_refused_inside_an_epoch_and_reported_at_its_start() {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &samples::photographs(8), 5);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mix_up = [BatchTransform::mix_up(0.8)];
    let mut first = mixed(&split, &mix_up);
    first.next_batch().unwrap().unwrap();
    let inside = first.state();
    while first.next_batch().unwrap().is_some() {}
    let start = first.state();
    assert_eq!((inside.p, start.p, start.epoch), (2, 0, 1));

    let mut same = mixed(&split, &mix_up);
    same.load_state(&inside).unwrap();
    same.load_state(&start).unwrap();
    assert!(same.notices().is_empty());

    let others =
        [vec![], vec![BatchTransform::mix_up(0.7)], vec![BatchTransform::mix_up(0.8), BatchTransform::mosaic(0.0)]];
    for other in others {
        let mut loader = mixed(&split, &other);
        let crc = inside.transforms.batch_transform.expect("named");
        match loader.load_state(&inside) {
            Err(Error::StateTransform { member: "batch_transform", state, .. }) => assert_eq!(state, crc),
            found => panic!("{other:?}: {found:?}"),
        }
        assert!(loader.notices().is_empty());
        loader.load_state(&start).unwrap();
        let notices = loader.notices();
        assert!(matches!(notices[..], [Notice::OtherTransform { state: Some(_), .. }]), "{notices:?}");
        let batch = loader.next_batch().unwrap().unwrap();
        assert_eq!((batch.epoch(), batch.position()), (1, 0));
    }

    // A state of an earlier version, or of a run that mixed nothing.
    for mut plain in [inside, mixed(&split, &[BatchTransform::mosaic(0.0)]).state()] {
        (plain.transforms.batch_transform, plain.p) = (None, 2);
        same.load_state(&plain).unwrap();
        let notices = same.notices();
        assert!(matches!(notices[..], [Notice::OtherTransform { state: None, .. }]), "{notices:?}");
        let mut nothing = mixed(&split, &[BatchTransform::mosaic(0.0)]);
        nothing.load_state(&plain).unwrap();
        assert!(nothing.notices().is_empty());
    }
}
