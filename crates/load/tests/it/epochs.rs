//! Each sample is delivered once, in the order of `order`, with pixels that do not depend on workers or replicas.

use crate::{dataset, samples};
use shardtool_decode::Pipeline;
use shardtool_load::{Column, Config, Field, Image, Loader, Values};
use shardtool_order::{Order, Policy, Remainder, Replica};
use shardtool_read::{Dataset, Split};
use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU32;

fn split(folder: &tempfile::TempDir, samples: &[dataset::Sample], per_shard: usize) -> Split {
    dataset::write(folder.path(), "train", samples, per_shard);
    Dataset::open(folder.path()).unwrap().split("train").unwrap().clone()
}

fn images() -> [Image; 1] {
    [Image::new(Pipeline::train(16).unwrap())]
}

/// Ids of the valid rows of one epoch, and its steps.
fn epoch(loader: &mut Loader) -> (Vec<i64>, u64) {
    let (mut ids, mut steps) = (vec![], 0);
    while let Some(batch) = loader.next_batch().unwrap() {
        for (id, valid) in batch.ids().iter().zip(batch.valid()) {
            assert_eq!(*valid, *id >= 0);
            ids.extend(valid.then_some(*id));
        }
        steps += 1;
    }
    (ids, steps)
}

#[test]
fn share_equals_what_its_replica_reads() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(&folder, &samples::numbers(101), 12);
    for policy in [Policy::Sample, Policy::Shard, Policy::Off] {
        for (remainder, order) in [
            (Remainder::Mask, Order::Sequential),
            (Remainder::Pad, Order::Shuffled),
            (Remainder::Drop, Order::Shuffled),
        ] {
            let mut config = Config::new(split.clone(), [Field::Record], 4);
            (config.order, config.policy, config.epochs) = (order, policy, Some(1));
            (config.remainder, config.replica) = (Some(remainder), Replica::new(0, 3).unwrap());
            for share in Loader::shares(&config).unwrap() {
                config.replica = Replica::new(share.rank, 3).unwrap();
                let mut loader = Loader::new(&config).unwrap();
                let (mut rows, mut shards, mut ids, mut bytes) = (0, HashSet::new(), HashSet::<i64>::new(), 0);
                while let Some(batch) = loader.next_batch().unwrap() {
                    rows += batch.len() as u64;
                    ids.extend(batch.ids().iter().filter(|id| **id >= 0));
                    for record in batch.records().iter().flatten() {
                        shards.insert(record.shard().path().to_owned());
                        bytes += record.data().len() + 16;
                    }
                }
                let what = format!("{policy:?}, {remainder:?}, {order:?}: {share:?}");
                assert_eq!(share.samples + share.padding, rows, "{what}");
                // A padded step is filled with samples of other replicas, if there are any.
                let filled =
                    if remainder == Remainder::Pad { share.samples..=rows } else { share.samples..=share.samples };
                assert!(filled.contains(&(ids.len() as u64)), "{what}: {} ids", ids.len());
                let reads = share.reads;
                assert!(!reads.estimated);
                assert_eq!(reads.shards, shards.len() as u64, "{what}");
                assert!((reads.bytes as f64 / bytes as f64 - 1.0).abs() < 0.05, "{what}: {bytes}");
            }
        }
    }
}

#[test]
fn delivers_each_sample_once_in_equal_steps_for_any_world_size() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples::numbers(101);
    let split = split(&folder, &samples, 30);
    let interleaved = Order::Interleaved { run: NonZeroU32::new(4).unwrap(), window: NonZeroU32::new(3).unwrap() };
    for world in [1, 2, 3, 5, 8, 17] {
        for batch in [1, 4, 7] {
            for order in [Order::Sequential, Order::Shuffled, interleaved] {
                for policy in [Policy::Sample, Policy::Shard] {
                    let mut all = vec![];
                    let mut steps = vec![];
                    for rank in 0..world {
                        let mut config = Config::new(split.clone(), Vec::<Field>::new(), batch);
                        config.replica = Replica::new(rank, world).unwrap();
                        (config.order, config.policy) = (order, policy);
                        (config.remainder, config.epochs) = (Some(Remainder::Mask), Some(1));
                        let mut loader = Loader::new(&config).unwrap();
                        let (ids, n) = epoch(&mut loader);
                        assert_eq!(n, loader.len());
                        all.extend(ids);
                        steps.push(n);
                    }
                    all.sort_unstable();
                    assert_eq!(all, (0..101).collect::<Vec<_>>(), "{world} x {batch}, {order}, {policy:?}");
                    assert!(steps.iter().all(|n| *n == steps[0]));
                }
            }
        }
    }
}

#[test]
fn masked_rows_of_the_last_batch_are_zero() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(&folder, &samples::photographs(10), 4);
    let mut config = Config::new(split, images(), 4);
    config.order = Order::Sequential;
    config.fields.extend(["image/class/label", "boxes", "image/key"].map(|feature| Column::new(feature).into()));
    let mut loader = Loader::new(&config).unwrap();
    let mut last = None;
    while let Some(batch) = loader.next_batch().unwrap() {
        last = Some(batch);
    }
    let batch = last.unwrap();
    assert_eq!(batch.ids(), [8, 9, -1, -1]);
    assert_eq!(batch.valid(), [true, true, false, false]);
    assert_eq!(batch.image_shape(), Some([4, 16, 16, 3]));
    let row = 16 * 16 * 3;
    assert!(batch.images().unwrap()[..2 * row].iter().any(|b| *b != 0));
    assert!(batch.images().unwrap()[2 * row..].iter().all(|b| *b == 0));
    assert_eq!(batch.column("image/class/label"), Some(&Values::Int64(vec![3, 4, -100, -100])));
    let boxes = vec![8.0, 8.1, 8.2, 8.3, 9.0, 9.1, 9.2, 9.3, 9.4];
    assert_eq!(batch.column("boxes"), Some(&Values::RaggedFloat { offsets: vec![0, 4, 9, 9, 9], values: boxes }));
    let keys = b"c3/000008.jpgc4/000009.jpg".to_vec();
    assert_eq!(batch.column("image/key"), Some(&Values::Bytes { offsets: vec![0, 13, 26, 26, 26], values: keys }));
}

/// Pixels of each sample of an epoch, by id.
fn pixels(split: &Split, world: u32, batch: u32, workers: usize) -> BTreeMap<i64, Vec<u8>> {
    let mut all = BTreeMap::new();
    for rank in 0..world {
        let mut config = Config::new(split.clone(), images(), batch);
        config.replica = Replica::new(rank, world).unwrap();
        (config.workers, config.remainder, config.seed) = (Some(workers), Some(Remainder::Mask), 5);
        let mut loader = Loader::new(&config).unwrap();
        while let Some(batch) = loader.next_batch().unwrap() {
            let rows = batch.images().unwrap().chunks(16 * 16 * 3);
            for (row, id) in rows.zip(batch.ids()).filter(|(_, id)| **id >= 0) {
                assert!(all.insert(*id, row.to_vec()).is_none());
            }
        }
    }
    all
}

#[test]
fn pixels_do_not_depend_on_workers_and_replicas() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(&folder, &samples::photographs(40), 7);
    let one = pixels(&split, 1, 8, 1);
    assert_eq!(one.len(), 40);
    assert!(one.values().collect::<std::collections::BTreeSet<_>>().len() == 40, "every sample looks different");
    assert_eq!(pixels(&split, 1, 8, 5), one);
    assert_eq!(pixels(&split, 3, 5, 2), one);
}

#[test]
fn state_of_another_dataset_is_refused() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (a, b) = (split(&a, &samples::numbers(8), 8), split(&b, &samples::numbers(9), 9));
    let state = Loader::new(&Config::new(a.clone(), Vec::<Field>::new(), 2)).unwrap().state();
    let error = Loader::new(&Config::new(b.clone(), Vec::<Field>::new(), 2)).unwrap().load_state(&state).unwrap_err();
    let text = error.to_string();
    for split in [a, b] {
        assert!(text.contains(&format!("{:08x}", split.entry().fingerprint())), "{text}");
    }
}

#[test]
fn several_replicas_of_one_process_share_the_workers() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(&folder, &samples::numbers(50), 20);
    let mut config = Config::new(split, Vec::<Field>::new(), 4);
    config.replica = Replica::new(0, 3).unwrap();
    (config.remainder, config.workers, config.epochs) = (Some(Remainder::Mask), Some(2), Some(1));
    let mut group = Loader::group(&config, &[0, 1, 2]).unwrap();
    // One after the other: no replica waits until another one takes batches.
    let mut ids: Vec<_> = group.iter_mut().flat_map(|loader| epoch(loader).0).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
}

#[test]
fn delivers_records_as_stored() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(&folder, &samples::numbers(10), 4);
    let mut config = Config::new(split.clone(), [Field::Record], 5);
    config.order = Order::Sequential;
    let mut loader = Loader::new(&config).unwrap();
    let batch = loader.next_batch().unwrap().unwrap();
    for (id, record) in batch.records().iter().enumerate() {
        assert_eq!(record.as_ref().unwrap().data(), split.get(id as u64).unwrap().data());
    }
    assert!(batch.images().is_none());
}

#[test]
fn start_epoch_moves_to_any_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(&folder, &samples::numbers(12), 5);
    let mut loader = Loader::new(&Config::new(split, Vec::<Field>::new(), 4)).unwrap();
    let epochs: Vec<_> = (0..3).map(|_| epoch(&mut loader).0).collect();
    assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
    for number in [1, 0, 2, 2] {
        loader.start_epoch(number);
        // Stops before the end: what was built ahead is cancelled.
        assert_eq!(loader.next_batch().unwrap().unwrap().ids(), &epochs[number as usize][..4], "epoch {number}");
    }
    loader.start_epoch(1);
    assert_eq!(epoch(&mut loader).0, epochs[1]);
    loader.start_epoch(2);
    assert_eq!(epoch(&mut loader).0, epochs[2]);
}
