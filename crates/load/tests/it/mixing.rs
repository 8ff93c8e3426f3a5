//! What a batch is mixed with.

use crate::dataset;
use crate::samples::photographs;
use shardtool_decode::{Pipeline, Random, beta};
use shardtool_load::{BatchTransform, Config, Content, Images, Loader, Mixing, Values};
use shardtool_order::{Domain, Replica, Rng, key};
use shardtool_read::Dataset;

/// The stream of a key.
struct Stream(Rng);

impl Random for Stream {
    fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n as u32).into()
    }
}

/// The draw is that of the position of the batch's first row: replicas of one step differ.
#[test]
fn each_replica_draws_for_the_position_of_its_first_row() {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &photographs(48), 10);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let (seed, batch, world, classes) = (9, 4, 3, 5);
    let mut images = Images::new(Pipeline::train(8).unwrap());
    images.mixing = Some(Mixing { transforms: vec![BatchTransform::MixUp { alpha: 0.7 }], classes });
    let mut config = Config::new(split, Content::Images(images), batch);
    (config.seed, config.replica) = (seed, Replica::new(0, world).unwrap());
    let mut group = Loader::group(&config, &[0, 1, 2]).unwrap();
    let mut compared = 0;
    for epoch in 0..2 {
        for step in 0..4 {
            for (rank, loader) in (0..).zip(&mut group) {
                let delivered = loader.next_batch().unwrap().unwrap();
                let first = u64::from(batch) * (step * u64::from(world) + rank);
                let mut stream = Stream(Rng::new(key(Domain::Mix, seed, epoch, first)));
                assert_eq!(stream.below(1), 0, "one number chooses the transform");
                let share = beta(0.7, &mut stream) as f32;
                let Some(Values::Float(soft)) = delivered.column("image/class/label") else { panic!("soft labels") };
                for row in soft.chunks(classes as usize) {
                    let weights: Vec<f32> = row.iter().copied().filter(|weight| *weight > 0.0).collect();
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
                    if weights.len() == 2 {
                        assert!(weights.iter().any(|weight| (weight - share).abs() < 1e-6), "{weights:?}, {share}");
                        compared += 1;
                    }
                }
            }
        }
        group.iter_mut().for_each(|loader| assert!(loader.next_batch().unwrap().is_none()));
    }
    assert!(compared > 2 * 48 / 2, "{compared} rows of two classes");
}

/// A batch whose pixels are mixed by its consumer has them unmixed, says how to mix them, and is otherwise the batch that the
/// host mixes. It needs no memory for copies of images.
#[test]
fn deferred_mixing_gives_the_batches_that_the_host_mixes() {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &photographs(30), 10);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mosaic = BatchTransform::Mosaic { p: 0.5, centre: [0.25, 0.75] };
    let transforms = vec![BatchTransform::MixUp { alpha: 0.7 }, BatchTransform::CutMix { alpha: 1.0 }, mosaic];
    let config = |mixing: Option<Mixing>, defer_mixing: bool| {
        let mut images = Images::new(Pipeline::train(9).unwrap());
        (images.mixing, images.defer_mixing) = (mixing, defer_mixing);
        let mut config = Config::new(split.clone(), Content::Images(images), 7);
        config.remainder = Some(shardtool_order::Remainder::Mask);
        config
    };
    let mixing = Some(Mixing { transforms, classes: 5 });
    let [mut host, mut deferred, mut unmixed] = [(mixing.clone(), false), (mixing.clone(), true), (None, true)]
        .map(|(mixing, defer)| Loader::new(&config(mixing, defer)).unwrap());
    let mut changed = 0;
    for _epoch in 0..3 {
        while let Some(theirs) = host.next_batch().unwrap() {
            let (ours, plain) = (deferred.next_batch().unwrap().unwrap(), unmixed.next_batch().unwrap().unwrap());
            assert_eq!(ours.images(), plain.images());
            assert_eq!(ours.column("image/class/label"), theirs.column("image/class/label"));
            assert!(theirs.mix().is_none() && plain.mix().is_none());
            let mix = ours.mix().unwrap();
            assert_eq!(mix.shape(), [7, 9, 9]);
            let mut pixels = ours.images().unwrap().to_vec();
            mix.mix(&mut pixels);
            assert_eq!(pixels, theirs.images().unwrap());
            changed += u32::from(theirs.images() != ours.images());
        }
        assert!(deferred.next_batch().unwrap().is_none() && unmixed.next_batch().unwrap().is_none());
    }
    assert!(changed >= 10, "{changed} of 15 batches were mixed");

    let planned = |loader: &Loader| loader.stats().memory.batch;
    assert_eq!(planned(&host) - planned(&deferred), 3 * 9 * 9 * 3);

    let mut normalized = config(mixing, true);
    let Content::Images(images) = &mut normalized.content else { unreachable!() };
    images.output = Some(shardtool_decode::Output::default());
    let refused = Loader::new(&normalized).map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "batches cannot be mixed: pixels that the host normalises cannot be mixed later");
}
