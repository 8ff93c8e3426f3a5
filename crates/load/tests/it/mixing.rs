//! What a batch is mixed with.

use crate::dataset;
use crate::samples::photographs;
use shardtool_decode::{Layout, Pipeline, Random, beta};
use shardtool_load::{BatchTransform, Config, Image, Loader, Mosaic, Pairs, Values};
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

/// Sets the number of classes.
fn of_classes(mut transform: BatchTransform, classes: u32) -> BatchTransform {
    let (BatchTransform::MixUp(Pairs { num_classes, .. })
    | BatchTransform::CutMix(Pairs { num_classes, .. })
    | BatchTransform::Mosaic(Mosaic { num_classes, .. })) = &mut transform
    else {
        unreachable!("there are three")
    };
    *num_classes = Some(classes);
    transform
}

/// The draw is that of the position of the batch's first row: replicas of one step differ.
#[test]
fn each_replica_draws_for_the_position_of_its_first_row() {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &photographs(48), 10);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let (seed, batch, world, classes) = (9, 4, 3, 5);
    let mut config = Config::new(split, [Image::new(Pipeline::train(8).unwrap())], batch);
    config.batch_transform = vec![of_classes(BatchTransform::mix_up(0.7), classes)];
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
/// host mixes. It needs no memory for copies of images. If they are to be normalised, its consumer does that too.
#[test]
fn deferred_mixing_gives_the_batches_that_the_host_mixes() {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &photographs(30), 10);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let transforms = [BatchTransform::mix_up(0.7), BatchTransform::cut_mix(1.0), BatchTransform::mosaic(0.5)];
    let transforms = transforms.map(|transform| of_classes(transform, 5));
    let config = |transforms: &[BatchTransform], defer_pixels: bool, layout: Option<Layout>| {
        let mut image = Image::new(Pipeline::train(9).unwrap());
        image.pixels.layout = layout;
        let mut config = Config::new(split.clone(), [image], 7);
        (config.batch_transform, config.defer_pixels) = (transforms.to_vec(), defer_pixels);
        config.remainder = Some(shardtool_order::Remainder::Mask);
        config
    };
    let nchw = Some(Layout::Nchw);
    let [mut host, mut deferred, mut unmixed, mut later] =
        [(&transforms[..], false, None), (&transforms, true, None), (&[], true, None), (&transforms, true, nchw)]
            .map(|(transforms, defer, layout)| Loader::new(&config(transforms, defer, layout)).unwrap());
    let mut changed = 0;
    for _epoch in 0..3 {
        while let Some(theirs) = host.next_batch().unwrap() {
            let (ours, plain) = (deferred.next_batch().unwrap().unwrap(), unmixed.next_batch().unwrap().unwrap());
            assert_eq!(ours.images(), plain.images());
            let normalized_later = later.next_batch().unwrap().unwrap();
            assert!(normalized_later.images() == plain.images() && normalized_later.mix().is_some());
            assert_eq!(ours.column("image/class/label"), theirs.column("image/class/label"));
            assert!(theirs.mix().is_none() && plain.mix().is_none());
            let mix = ours.mix().unwrap();
            assert_eq!(mix.shape(), [7, 9, 9]);
            let mut pixels = ours.images().unwrap().to_vec();
            mix.mix(&mut pixels);
            assert_eq!(pixels, theirs.images().unwrap());
            changed += u32::from(theirs.images() != ours.images());
        }
        assert!(
            [&mut deferred, &mut unmixed, &mut later].map(|loader| loader.next_batch().unwrap().is_none()) == [true; 3]
        );
    }
    assert!(changed >= 10, "{changed} of 15 batches were mixed");

    let planned = |loader: &Loader| loader.stats().memory.batch;
    assert_eq!(planned(&host) - planned(&deferred), 3 * 9 * 9 * 3);
}
