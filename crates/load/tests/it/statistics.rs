//! What the statistics say: counts that add up, and which side is slow.

use crate::{dataset, samples};
use shardtool_decode::Pipeline;
use shardtool_load::{ColumnSpec, Config, Content, Images, Layout, Loader};
use shardtool_read::Dataset;
use std::sync::Arc;
use std::time::Duration;

fn loader(slow: Duration) -> (Loader, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &samples::photographs(40), 10);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mut images = Images::new(Pipeline::train(16).unwrap());
    images.custom = Some(Arc::new(move |_, _| std::thread::sleep(slow)));
    let mut config = Config::new(split, Content::Images(images), 4);
    (config.workers, config.epochs) = (Some(2), Some(1));
    (Loader::new(&config).unwrap(), folder)
}

#[test]
fn a_slow_function_and_a_slow_caller_are_told_apart() {
    let (mut slow_stage, _folder) = loader(Duration::from_millis(5));
    while slow_stage.next_batch().unwrap().is_some() {}
    let verdict = slow_stage.stats().verdict();
    assert!(verdict.starts_with("resize bounds the rate"), "{verdict}");

    let (mut slow_caller, _folder) = loader(Duration::ZERO);
    while let Some(batch) = slow_caller.next_batch().unwrap() {
        std::thread::sleep(Duration::from_millis(60));
        drop(batch);
    }
    let verdict = slow_caller.stats().verdict();
    assert!(verdict.starts_with("the caller bounds the rate"), "{verdict}");
}

#[test]
fn counts_add_up_in_every_form() {
    let (mut loader, _folder) = loader(Duration::ZERO);
    let before = loader.stats();
    assert_eq!((before.samples, before.verdict().as_str()), (0, "nothing was delivered yet"));
    while loader.next_batch().unwrap().is_some() {}
    // A worker lets go of the last batch a moment after it was delivered.
    let stats = std::iter::repeat_with(|| loader.stats())
        .inspect(|_| std::thread::sleep(Duration::from_millis(1)))
        .take(10_000)
        .find(|stats| stats.held == 0)
        .expect("no batch is held");
    assert_eq!((stats.samples, stats.decode.count, stats.resize.count, stats.read.count), (40, 40, 40, 40));
    assert_eq!((stats.caller_wait.count, stats.held, stats.ready), (10, 0, 0));
    assert_eq!(stats.since(&stats).samples, 0);
    let json = stats.to_json();
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
fn byte_strings_and_ragged_columns_do_not_cost_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &samples::photographs(64), 64);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mut config = Config::new(split, Content::Images(Images::new(Pipeline::train(16).unwrap())), 8);
    let column = |feature: &str| ColumnSpec { feature: feature.to_owned(), layout: Layout::Auto };
    config.columns = Some(vec![column("boxes"), column("image/key")]);
    (config.epochs, config.depth) = (Some(1), Some(2));
    let mut loader = Loader::new(&config).unwrap();
    while loader.next_batch().unwrap().is_some() {}
    assert_eq!(loader.stats().slots, 3, "one that the caller holds, two ahead");
}
