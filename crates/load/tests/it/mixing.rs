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
