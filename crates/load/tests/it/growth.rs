//! A default budget grows for a consumer that keeps batches, up to 90 % of the container's limit; a given one never
//! grows.

use crate::{dataset, samples};
use shardtool_decode::Pipeline;
use shardtool_load::{Batch, Config, Image, Loader, Notice};
use shardtool_order::{Remainder, Replica};
use shardtool_read::Dataset;
use std::path::Path;
use std::time::Duration;

fn config(folder: &Path) -> Config {
    dataset::write(folder, "train", &samples::photographs(40), 8);
    let split = Dataset::open(folder).unwrap().split("train").unwrap().clone();
    let mut config = Config::new(split, [Image::new(Pipeline::train(32).unwrap())], 2);
    config.workers = Some(2);
    config
}

/// Ids and pixels of the next `steps` batches, each released before the next one is taken.
fn expected(config: &Config, steps: usize) -> Vec<(Vec<i64>, Vec<u8>)> {
    let mut loader = Loader::new(config).unwrap();
    (0..steps).map(|_| content(&next(&mut loader))).collect()
}

fn content(batch: &Batch) -> (Vec<i64>, Vec<u8>) {
    (batch.ids().to_vec(), batch.images().unwrap().to_vec())
}

/// The next batch, of the next epoch at an epoch's end.
fn next(loader: &mut Loader) -> Batch {
    loop {
        if let Some(batch) = loader.next_batch().unwrap() {
            return batch;
        }
    }
}

/// A system whose host has `total` KiB of memory, of which `available` KiB are available.
#[cfg(not(shardtool_portable_unix))]
fn host(config: &mut Config, folder: &Path, total: u64, available: u64) {
    std::fs::create_dir_all(folder.join("proc")).unwrap();
    let info = format!("MemTotal: {total} kB\nMemAvailable: {available} kB\n");
    std::fs::write(folder.join("proc/meminfo"), info).unwrap();
    config.system_root = folder.to_owned();
}

#[test]
fn default_budget_grows_for_a_consumer_that_keeps_batches() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let mut loader = Loader::new(&config).unwrap();
    for window in [2, 4, 64] {
        loader.start_epoch(0);
        let held: Vec<_> = (0..window).map(|_| next(&mut loader)).collect();
        assert_eq!(held.iter().map(content).collect::<Vec<_>>(), expected(&config, window));
        let stats = loader.stats();
        assert_eq!(stats.held, window);
        assert!(stats.extra_batches + stats.batches_per_replica >= window, "{stats:?}, window {window}");
        drop(held);
        assert_eq!(
            loader.stats().extra_batches.saturating_sub(loader.stats().prefetch),
            0,
            "surplus batches are freed when they return"
        );
    }
    let notices = loader.notices();
    assert!(matches!(notices[..], [Notice::Growth { held: 2.., .. }]), "reported once: {notices:?}");
    assert!(notices[0].to_string().contains("the consumer keeps"), "{}", notices[0]);
}

#[test]
fn consumer_that_keeps_one_batch_gets_no_extra_memory() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let mut loader = Loader::new(&config).unwrap();
    let mut kept = None;
    for _ in 0..100 {
        // Releases the last batch after taking the next one, as a `for` loop in Python does.
        drop(kept.replace(next(&mut loader)));
        assert_eq!(loader.stats().extra_batches, 0);
    }
    // Batches that a seek cancels are not the consumer's.
    for epoch in 0..50 {
        loader.start_epoch(epoch);
        drop(kept.replace(next(&mut loader)));
        assert_eq!((loader.stats().extra_batches, loader.stats().held), (0, 1));
    }
    assert!(loader.notices().is_empty());
}

#[cfg(not(shardtool_portable_unix))] // Only Linux reads memory from files.
#[test]
fn growth_stops_at_90_percent_of_the_limit_and_continues_when_memory_is_freed() {
    use shardtool_load::{Error, LimitSource, Usage};
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder.path().join("dataset"));
    // Enough for the plan, but not for another batch.
    host(&mut config, folder.path(), 1 << 20, 110_000);
    config.prefetch.starve_after = Duration::from_millis(300);
    let mut loader = Loader::new(&config).unwrap();
    let mut held = vec![];
    for _ in 0..3 {
        held.push(next(&mut loader));
    }
    host(&mut config, folder.path(), 1 << 20, 1000);
    let error = loop {
        match loader.next_batch() {
            Ok(batch) => held.extend(batch),
            Err(error) => break error,
        }
    };
    let Error::Starved { held: found, usage: Some(usage), .. } = &error else { panic!("{error}") };
    assert_eq!(*found, held.len());
    let Usage { limit, used } = &**usage;
    assert_eq!((limit.bytes, limit.from.clone(), *used), (1 << 30, LimitSource::Host, ((1 << 20) - 1000) << 10));
    assert!(error.to_string().contains("90 % of the memory limit (1.1 GB of 1.1 GB in use"), "{error}");
    // Other processes end: the same call succeeds.
    host(&mut config, folder.path(), 1 << 20, 500_000);
    let before = held.len();
    held.extend((0..5).map(|_| next(&mut loader)));
    assert_eq!(held.len(), before + 5);
    assert_eq!(held.iter().map(content).collect::<Vec<_>>(), expected(&config, held.len()));
}

#[test]
fn replicas_of_one_process_grow_independently() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.replica = Replica::new(0, 2).unwrap();
    config.remainder = Some(Remainder::Pad);
    let mut group = Loader::group(&config, &[0, 1]).unwrap();
    // One keeps every batch and the other one none; neither waits for the other.
    let held: Vec<_> = (0..12).map(|_| next(&mut group[0])).collect();
    let ids: Vec<_> = (0..10).flat_map(|_| next(&mut group[1]).ids().to_vec()).collect();
    let all: std::collections::BTreeSet<i64> = held[..10].iter().flat_map(|b| b.ids().to_vec()).chain(ids).collect();
    assert_eq!(all.len(), 40, "every sample of the epoch once");
}

#[cfg(not(shardtool_portable_unix))] // Only Linux reads memory from files.
#[test]
fn replica_that_keeps_no_batch_is_served_when_another_one_reaches_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder.path().join("dataset"));
    config.replica = Replica::new(0, 2).unwrap();
    config.remainder = Some(Remainder::Pad);
    config.prefetch.starve_after = Duration::from_millis(300);
    host(&mut config, folder.path(), 1 << 20, 110_000);
    let mut group = Loader::group(&config, &[0, 1]).unwrap();
    let mut held = vec![next(&mut group[0]), next(&mut group[0])];
    drop(next(&mut group[1]));
    host(&mut config, folder.path(), 1 << 20, 1000);
    let error = loop {
        match group[0].next_batch() {
            Ok(batch) => held.extend(batch),
            Err(error) => break error,
        }
        // The other replica could take each released batch.
        drop(next(&mut group[1]));
    };
    assert!(matches!(error, shardtool_load::Error::Starved { usage: Some(_), .. }), "{error}");
    (0..10).for_each(|_| drop(next(&mut group[1])));
    held.clear();
    drop(next(&mut group[0]));
}

#[test]
fn default_budget_does_not_starve_while_it_may_grow() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.prefetch.starve_after = Duration::ZERO;
    let mut loader = Loader::new(&config).unwrap();
    let held: Vec<_> = (0..30).map(|_| next(&mut loader)).collect();
    assert_eq!(held.len(), 30);
}

#[test]
fn first_bad_sample_is_reported_by_name_and_the_others_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    for record in [1, 5] {
        let frame = config.splits[0].shard(0).unwrap().frame(record).unwrap();
        let path = folder.path().join("train-00000.tfrecord");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[(frame.start + frame.end) as usize / 2] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    config.splits = vec![Dataset::open(folder.path()).unwrap().split("train").unwrap().clone()];
    let mut loader = Loader::new(&config).unwrap();
    let mut notices = vec![];
    for _ in 0..2 {
        while loader.next_batch().unwrap().is_some() {}
        notices.push(loader.notices());
    }
    let [first, second] = &notices[..] else { panic!("{notices:?}") };
    assert!(matches!(first[..], [Notice::BadSample(_), Notice::BadSamples { epoch: 0, count: 2 }]), "{first:?}");
    assert!(first[0].to_string().contains("train-00000.tfrecord"), "{}", first[0]);
    assert!(second.is_empty(), "nothing new in the second epoch: {second:?}");
}
