//! Damage, panics, large images, and consumers that hold every batch or stop early.

use crate::{dataset, samples};
use shardtool_decode::Pipeline;
use shardtool_format::Chain;
use shardtool_load::{Config, Custom, Error, Field, Image, Loader, OnBad, SampleError};
use shardtool_order::{Order, Remainder};
use shardtool_read::{Access, Dataset, Split};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SIDE: u32 = 16;
const ROW: usize = (SIDE * SIDE * 3) as usize;

fn image() -> Image {
    Image::new(Pipeline::train(SIDE).unwrap())
}

fn split(folder: &Path, n: u64, per_shard: usize) -> Split {
    dataset::write(folder, "train", &samples::photographs(n), per_shard);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

/// Flips a byte in the middle of a record.
fn damage(folder: &Path, shard: &str, split: &Split, id: u64) {
    let (number, row) = split.locate(id).unwrap();
    let frame = split.shard(number).unwrap().frame(row).unwrap();
    let path = folder.join(shard);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(frame.start + frame.end) as usize / 2] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

/// A split of 20 samples in shards of 8 whose records 9 and 10 are damaged (rows 1 and 2 of the second shard).
fn damaged(folder: &Path) -> Split {
    let whole = split(folder, 20, 8);
    for id in [9, 10] {
        damage(folder, "train-00001.tfrecord", &whole, id);
    }
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn damage_ends_the_run_after_the_batches_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(damaged(folder.path()), [image()], 3);
    (config.order, config.bad_samples.on_bad) = (Order::Sequential, Some(OnBad::Error));
    let mut loader = Loader::new(&config).unwrap();
    for first in [0, 3, 6] {
        assert_eq!(loader.next_batch().unwrap().unwrap().ids(), [first, first + 1, first + 2]);
    }
    let error = loader.next_batch().unwrap_err();
    let Error::BadSample(bad) = &error else { panic!("{error}") };
    assert!(bad.id == 9 || bad.id == 10, "{error}");
    assert_eq!((bad.record, bad.key.as_deref().unwrap().len()), (bad.id - 8, 13));
    assert!(bad.shard.ends_with("train-00001.tfrecord"));
    assert!(matches!(bad.error, SampleError::Read(_)), "{error}");
    let text = Chain(&error).to_string();
    assert!(text.contains("train-00001.tfrecord") && text.contains(&format!("{:06}.jpg", bad.id)), "{text}");
    assert!(matches!(loader.next_batch(), Err(Error::Stopped)));
    loader.start_epoch(0);
    assert_eq!(loader.next_batch().unwrap().unwrap().ids(), [0, 1, 2]);
}

#[test]
fn masked_damage_leaves_other_rows_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(damaged(folder.path()), [image()], 4);
    config.order = Order::Sequential;
    let mut loader = Loader::new(&config).unwrap();
    let batches: Vec<_> = (0..2).map(|_| loader.next_batch().unwrap().unwrap()).collect();
    assert_eq!(batches[1].ids(), [4, 5, 6, 7]);
    drop(batches);
    let batch = loader.next_batch().unwrap().unwrap();
    assert_eq!(batch.ids(), [8, -1, -1, 11]);
    assert_eq!(batch.valid(), [true, false, false, true]);
    let rows: Vec<_> = batch.images().unwrap().chunks(ROW).map(|row| row.iter().any(|b| *b != 0)).collect();
    assert_eq!(rows, [true, false, false, true]);
    let bad: BTreeSet<_> = loader.bad_samples().iter().map(|b| (b.id, b.record)).collect();
    assert_eq!(bad, [(9, 1), (10, 2)].into());
}

#[test]
fn shard_that_is_truncated_meanwhile_costs_its_lost_samples() {
    let folder = tempfile::tempdir().unwrap();
    let large = |sample: dataset::Sample| {
        let image = Some((dataset::jpeg(sample.label as u64, 300, 200), (300, 200)));
        dataset::Sample { image, ..sample }
    };
    let samples: Vec<_> = samples::photographs(24).into_iter().map(large).collect();
    dataset::write(folder.path(), "train", &samples, 24);
    for field in [Field::from(image()), Field::Record] {
        dataset::write(folder.path(), "train", &samples, 24);
        let options = shardtool_read::Options::default().with_access(Access::Mmap);
        let split = Dataset::open_with(folder.path(), options).unwrap().split("train").unwrap().clone();
        let (shard, end) = (split.shard(0).unwrap(), split.shard(0).unwrap().frame(16).unwrap().start + 99);
        let mut config = Config::new(split.clone(), [field], 4);
        (config.order, config.bad_samples.on_bad, config.workers) = (Order::Sequential, Some(OnBad::Mask), Some(3));
        (config.bad_samples.max_bad, config.epochs) = (Some(24), Some(2));
        let mut loader = Loader::new(&config).unwrap();
        let first = loader.next_batch().unwrap().unwrap();
        assert_eq!(first.ids(), [0, 1, 2, 3]);
        std::fs::OpenOptions::new().write(true).open(shard.path()).unwrap().set_len(end).unwrap();
        drop(first);
        while loader.next_batch().unwrap().is_some() {}
        let mut ids = vec![];
        while let Some(batch) = loader.next_batch().unwrap() {
            ids.extend(batch.ids().iter().copied().filter(|id| *id >= 0));
        }
        assert_eq!(ids, (0..16).collect::<Vec<_>>(), "the epoch after the truncation");
        for bad in loader.bad_samples() {
            assert!(bad.id >= 16);
            assert!(Chain(&bad.error).to_string().contains("truncated"), "{}", Chain(&bad.error));
        }
        assert_eq!(loader.bad_samples().len(), 8);
    }
}

#[test]
fn substitutes_do_not_depend_on_workers_and_batch_size() {
    let folder = tempfile::tempdir().unwrap();
    let split = damaged(folder.path());
    let run = |workers: usize, batch: u32| {
        let mut config = Config::new(split.clone(), [image()], batch);
        (config.remainder, config.bad_samples.on_bad) = (Some(Remainder::Mask), Some(OnBad::Substitute));
        (config.workers, config.epochs) = (Some(workers), Some(3));
        let mut loader = Loader::new(&config).unwrap();
        let mut seen = vec![];
        for _ in 0..3 {
            while let Some(batch) = loader.next_batch().unwrap() {
                let rows = batch.ids().iter().zip(batch.images().unwrap().chunks(ROW));
                seen.extend(rows.filter(|(id, _)| **id >= 0).map(|(id, row)| (*id, row.to_vec())));
            }
        }
        assert_eq!(loader.bad_samples().len(), 2);
        seen
    };
    let one = run(1, 4);
    assert_eq!(one.len(), 60, "all samples arrive");
    assert!(one.iter().all(|(id, _)| *id != 9 && *id != 10));
    assert_eq!(run(4, 7), one);
}

#[test]
fn more_than_max_bad_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(damaged(folder.path()), [image()], 20);
    (config.bad_samples.max_bad, config.workers) = (Some(1), Some(1));
    let error = Loader::new(&config).unwrap().next_batch().unwrap_err();
    assert!(matches!(error, Error::TooManyBad { found: 2, allowed: 1, .. }), "{error}");
}

#[test]
fn reports_a_bad_sample_whose_substitutes_are_all_bad() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = samples::photographs(30);
    samples.iter_mut().for_each(|s| s.image.as_mut().unwrap().0.truncate(40));
    dataset::write(folder.path(), "train", &samples, 30);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mut config = Config::new(split, [image()], 2);
    config.bad_samples.max_bad = Some(100);
    let error = Loader::new(&config).unwrap().next_batch().unwrap_err();
    let Error::NoSubstitute { sample, tried: 16 } = &error else { panic!("{error}") };
    assert!(matches!(sample.error, SampleError::Decode(_)));
}

#[test]
fn panic_in_the_users_function_names_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 20, 8);
    let mut image = image();
    image.pixels.custom = Some(Custom(Arc::new(|pixels, _| {
        // Sample 13: the 14th that the only worker makes, in sequential order.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        assert!(COUNT.fetch_add(1, Ordering::SeqCst) != 13, "too dark for {} pixels", pixels.width());
    })));
    let mut config = Config::new(split, [image], 4);
    (config.order, config.workers) = (Order::Sequential, Some(1));
    let mut loader = Loader::new(&config).unwrap();
    for _ in 0..3 {
        loader.next_batch().unwrap().unwrap();
    }
    let error = loader.next_batch().unwrap_err();
    assert!(matches!(&error, Error::Panic { id: 13, record: 5, .. }), "{error}");
    assert!(error.to_string().contains("too dark for 16 pixels"), "{error}");
}

#[test]
fn consumer_that_holds_every_batch_gets_an_error_and_can_continue() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(split(folder.path(), 20, 8), [image()], 2);
    config.memory = Some(Loader::plan(&config).unwrap().memory.minimum());
    config.prefetch.starve_after = Duration::from_millis(50);
    let mut loader = Loader::new(&config).unwrap();
    let batches = loader.stats().batches_per_replica;
    assert_eq!(batches, 2);
    let mut held: Vec<_> = (0..batches).map(|_| loader.next_batch().unwrap().unwrap()).collect();
    let error = loader.next_batch().unwrap_err();
    assert!(matches!(error, Error::Starved { held: 2, batches: 2, .. }), "{error}");
    held.pop();
    assert!(loader.next_batch().unwrap().is_some());
}

#[test]
fn budget_too_small_for_two_batches_is_refused_with_its_minimum() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(split(folder.path(), 20, 8), [image()], 2);
    let minimum = Loader::plan(&config).unwrap().memory.minimum();
    config.memory = Some(minimum - 1);
    let error = Loader::new(&config).err().unwrap();
    assert!(matches!(error, Error::Budget(_)));
    let text = error.to_string();
    assert!(text.contains("1 replica x 2 batches x") && text.contains("decode scratch"), "{text}");
}

/// Photographs of which one is far larger than the others, in a shard that the loader does not sample at its start (not the first,
/// the middle or the last).
fn one_large(folder: &Path) -> Split {
    let mut samples = samples::photographs(30);
    samples[7].image = Some((dataset::jpeg(7, 1500, 1000), (1500, 1000)));
    dataset::write(folder, "train", &samples, 5);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

#[test]
fn image_too_large_for_the_budget_is_an_error_not_a_bad_sample() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(one_large(folder.path()), [image()], 2);
    config.order = Order::Sequential;
    for workers in [1, 3] {
        config.workers = Some(workers);
        config.memory = None;
        config.memory = Some(Loader::plan(&config).unwrap().memory.requested());
        let mut loader = Loader::new(&config).unwrap();
        let error = loop {
            match loader.next_batch() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        let Error::Scratch { record: 2, width: 1500, height: 1000, needed, allowed, .. } = error else {
            panic!("{error}")
        };
        // Raises the budget by the amount in the message.
        config.memory = config.memory.map(|b| b + needed - allowed);
        let mut loader = Loader::new(&config).unwrap();
        while loader.next_batch().unwrap().is_some() {}
        assert!(loader.bad_samples().is_empty());
    }
    // A default budget grows for it.
    config.memory = None;
    let mut loader = Loader::new(&config).unwrap();
    while loader.next_batch().unwrap().is_some() {}
    assert!(loader.bad_samples().is_empty());
}

#[test]
fn large_image_evicts_batches() {
    let folder = tempfile::tempdir().unwrap();
    let split = one_large(folder.path());
    let ids = |budget: Option<u64>, prefetch: usize, workers: usize| {
        // Batches of 230 kB, so that about ten of them make room for the image.
        let mut config = Config::new(split.clone(), [Image::new(Pipeline::train(196).unwrap())], 2);
        (config.memory, config.prefetch.batches) = (budget, Some(prefetch));
        (config.workers, config.epochs) = (Some(workers), Some(3));
        let memory = Loader::plan(&config).unwrap().memory;
        let mut loader = Loader::new(&config).unwrap();
        let mut ids = vec![];
        for _ in 0..3 {
            while let Some(batch) = loader.next_batch().unwrap() {
                ids.push((batch.ids().to_vec(), batch.images().unwrap().iter().map(|b| u64::from(*b)).sum::<u64>()));
            }
        }
        (ids, memory)
    };
    let (expected, _) = ids(None, 2, 1);
    let (_, memory) = ids(Some(1 << 30), 100, 1);
    assert!(memory.batches_per_replica(0) > 100);
    for workers in [1, 2, 5] {
        // The image needs more than the scratch of all workers: 18 MB.
        let budget = 110 * memory.batch + workers as u64 * memory.scratch;
        let (found, memory) = ids(Some(budget), 100, workers);
        assert!(memory.scratch_bytes() < 12 * 1500 * 1000);
        assert_eq!(found, expected);
    }
}

#[test]
fn size_in_the_header_prevails_over_a_wrong_size_in_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = samples::photographs(6);
    let right = samples[3].image.as_ref().unwrap().1;
    samples[3].image.as_mut().unwrap().1 = (right.0 + 5, right.1);
    let pixels = |samples: &[dataset::Sample]| {
        let folder = tempfile::tempdir().unwrap();
        dataset::write(folder.path(), "train", samples, 6);
        let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
        let mut config = Config::new(split, [image()], 6);
        config.order = Order::Sequential;
        Loader::new(&config).unwrap().next_batch().unwrap().unwrap().images().unwrap().to_vec()
    };
    let wrong = pixels(&samples);
    samples[3].image.as_mut().unwrap().1 = right;
    assert_eq!(wrong, pixels(&samples));
    drop(folder);
}

/// Runs in a separate process, so that threads and descriptors of other tests do not count.
#[test]
fn dropping_early_leaks_no_thread_or_descriptor() {
    const CHILD: &str = "SHARDTOOL_TEST_ALONE";
    if std::env::var_os(CHILD).is_none() {
        let test = "trouble::dropping_early_leaks_no_thread_or_descriptor";
        let exe = std::env::current_exe().unwrap();
        let done = std::process::Command::new(exe).args([test, "--exact", "--nocapture"]).env(CHILD, "1").status();
        assert!(done.unwrap().success());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 40, 8);
    let mut config = Config::new(split, [image()], 8);
    config.workers = Some(3);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let (alone, mut before) = (threads(), None);
    for round in 0..60 {
        let mut loader = Loader::new(&config).unwrap();
        assert_eq!(threads(), alone + 3);
        let batch = (round % 3 > 0).then(|| loader.next_batch().unwrap().unwrap());
        drop(loader);
        // The system counts a thread until shortly after it was joined.
        let deadline = Instant::now() + Duration::from_secs(10);
        while threads() > alone && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(threads(), alone, "joined on drop");
        // A batch outlives its loader.
        assert!(batch.is_none_or(|b| b.images().unwrap().iter().any(|v| *v != 0)));
        if round == 4 {
            before = Some(descriptors());
        }
    }
    assert_eq!(Some(descriptors()), before);
}

#[test]
fn interrupted_wait_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(split(folder.path(), 64, 64), [image()], 4);
    config.prefetch.starve_after = Duration::from_secs(60);
    config.memory = Some(Loader::plan(&config).unwrap().memory.requested());
    let mut loader = Loader::new(&config).unwrap();
    // Holds every batch that the given budget allows, so that the loader waits.
    let (mut held, mut asked) = (vec![], 0);
    let error = loop {
        let mut second_time = || {
            asked += 1;
            asked == 2
        };
        match loader.next_batch_unless(&mut second_time) {
            Ok(batch) => held.push(batch.expect("more batches than may be held")),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert_eq!(asked, 2);
    let state = loader.state();
    assert_eq!(state.p, held.len() as u64 * 4);
    held.clear();
    assert_eq!(loader.next_batch().unwrap().unwrap().position(), state.p);
}

/// Both workers fail late, in a cancelled batch. That must not end the run that started in the meantime.
#[test]
fn late_failure_of_a_cancelled_batch_does_not_end_the_next_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 20, 8);
    let (calls, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let wait = |done: &dyn Fn() -> bool| {
        while !done() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let mut image = image();
    image.pixels.custom = Some(Custom(Arc::new({
        let (calls, released) = (calls.clone(), released.clone());
        move |_, _| {
            match calls.fetch_add(1, Ordering::SeqCst) {
                // One row of the first batch, which fails once the other worker is at the second batch.
                0 => wait(&|| calls.load(Ordering::SeqCst) > 2),
                // The rows of the second batch.
                2 | 3 => wait(&|| released.load(Ordering::SeqCst)),
                _ => return,
            }
            std::panic::resume_unwind(Box::new("no good"));
        }
    })));
    let mut config = Config::new(split, [image], 2);
    (config.workers, config.prefetch.batches) = (Some(2), Some(2));
    let mut loader = Loader::new(&config).unwrap();
    wait(&|| calls.load(Ordering::SeqCst) == 4);
    assert!(matches!(loader.next_batch(), Err(Error::Panic { .. })));
    loader.start_epoch(0);
    released.store(true, Ordering::SeqCst);
    assert_eq!(loader.next_batch().unwrap().unwrap().valid(), [true, true]);
}
