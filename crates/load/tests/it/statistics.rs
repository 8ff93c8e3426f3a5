//! Statistics: counts add up, and the slow side is named.

use crate::{dataset, samples};
use shardtool_decode::Pipeline;
use shardtool_load::{Column, Config, Custom, Image, Loader};
use shardtool_read::Dataset;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

fn loader(custom: impl Fn() + Send + Sync + 'static) -> (Loader, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &samples::photographs(40), 10);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mut image = Image::new(Pipeline::train(16).unwrap());
    image.pixels.custom = Some(Custom(Arc::new(move |_, _| custom())));
    let mut config = Config::new(split, [image], 4);
    (config.workers, config.epochs) = (Some(2), Some(1));
    (Loader::new(&config).unwrap(), folder)
}

#[test]
fn slow_function_is_named_as_the_bottleneck() {
    // The user's function runs until the consumer's callback was called twice (every 100 ms of waiting), far longer
    // than 40 small images take in all other stages.
    let callbacks = Arc::new((Mutex::new(0), Condvar::new()));
    let waits = callbacks.clone();
    let (mut loader, _folder) = loader(move || {
        let (count, changed) = &*waits;
        drop(changed.wait_while(count.lock().unwrap(), |count| *count < 2).unwrap());
    });
    let mut called_back = || {
        *callbacks.0.lock().unwrap() += 1;
        callbacks.1.notify_all();
        false
    };
    while loader.next_batch_unless(&mut called_back).unwrap().is_some() {}
    let bottleneck = loader.stats().bottleneck();
    assert!(bottleneck.starts_with("the user function bounds the rate"), "{bottleneck}");
}

#[test]
fn slow_consumer_is_named_as_the_bottleneck() {
    let (mut loader, _folder) = loader(|| {});
    while loader.next_batch().unwrap().is_some() {
        // Works until 98 % of the elapsed time was work.
        let (start, before) = (Instant::now(), loader.stats());
        while before.consumer_busy.time + start.elapsed() < 50 * before.consumer_wait.time {
            std::thread::yield_now();
        }
    }
    let bottleneck = loader.stats().bottleneck();
    assert!(bottleneck.starts_with("the consumer bounds the rate"), "{bottleneck}");
}

#[test]
fn counts_add_up_in_every_form() {
    let (mut loader, _folder) = loader(|| {});
    let before = loader.stats();
    assert_eq!((before.samples, before.bottleneck().as_str()), (0, "nothing was delivered yet"));
    while loader.next_batch().unwrap().is_some() {}
    let stats = loader.stats();
    assert_eq!((stats.samples, stats.decode.count, stats.resize.count, stats.read.count), (40, 40, 40, 40));
    assert_eq!((stats.consumer_wait.count, stats.held, stats.ready), (10, 0, 0));
    assert_eq!(stats.since(&stats).samples, 0);
    let json: serde_json::Value = serde_json::from_str(&stats.to_json()).unwrap();
    assert_eq!((json["samples"].as_u64(), json["unit"].as_str()), (Some(40), Some("images")));
    assert_eq!(json["memory"]["budget"].as_u64(), Some(stats.memory.budget));
    let text = stats.to_prometheus();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("shardtool_load_") && value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(text.contains("shardtool_load_samples_total 40\n"), "{text}");
    assert!(text.contains("shardtool_load_stage_count_total{stage=\"decode\"} 40\n"), "{text}");
    assert!(text.contains("{stage=\"read_CRC\"}"), "{text}");
}

#[test]
fn byte_strings_and_ragged_columns_are_planned() {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &samples::photographs(64), 64);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mut config = Config::new(split, [Image::new(Pipeline::train(16).unwrap())], 8);
    config.fields.extend(["boxes", "image/key"].map(|feature| Column::new(feature).into()));
    (config.epochs, config.prefetch.batches) = (Some(1), Some(2));
    let mut loader = Loader::new(&config).unwrap();
    while loader.next_batch().unwrap().is_some() {}
    assert_eq!(loader.stats().batches_per_replica, 3, "one that the consumer holds, two ahead");
}
