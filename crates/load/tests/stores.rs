//! Datasets in object stores: the same batches, states and bad samples as from files, whatever the network does.
//!
//! The server is another project's, on 127.0.0.1; its answers are changed on request. `SHARDTOOL_STORE_FAULTS` is the number
//! of changed answers after which the test of faults ends (default 60; `scripts/campaign stores` asks for 1,000).

mod dataset;

use dataset::Sample;
use shardtool_decode::{Filter, Pipeline, Transform};
use shardtool_load::{AspectRatioBuckets, Batch, Config, Field, Image, Loader, OnBad, Tokens};
use shardtool_order::{List, Order, Policy, Remainder, Replica, ResumeState, Source};
use shardtool_read::{Dataset, Split};
use shardtool_store_server::{Fault, Faults, Options, Server};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A dataset in a bucket, as a folder and as a URL.
struct Bucket {
    folder: TempDir,
    server: Server,
}

impl Bucket {
    fn new(samples: u64, per_shard: usize, faults: Faults) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let samples: Vec<_> = (0..samples).map(sample).collect();
        let dataset = folder.path().join("bucket/dataset");
        std::fs::create_dir_all(&dataset).unwrap();
        dataset::write(&dataset, "train", &samples, per_shard);
        let server = Server::start(folder.path(), Options { anonymous: true, faults, ..Options::default() }).unwrap();
        Bucket { folder, server }
    }

    fn local(&self) -> Split {
        open(&self.folder.path().join("bucket/dataset"))
    }

    fn remote(&self) -> Split {
        open(Path::new(&format!("{}/bucket/dataset", self.server.endpoint())))
    }
}

fn open(path: &Path) -> Split {
    Dataset::open(path).unwrap().split("train").unwrap().clone()
}

fn sample(number: u64) -> Sample {
    let size = (40 + (number % 9) as u32, 32);
    let image = Some((dataset::jpeg(number, size.0, size.1), size));
    Sample { key: format!("{number}"), image, label: number as i64 % 5, boxes: vec![], mask: vec![] }
}

fn config(split: Split, order: Order) -> Config {
    let mut config = Config::new(split, [Image::new(Pipeline::train(16).unwrap())], 7);
    (config.order, config.seed, config.epochs, config.workers) = (order, 3, Some(2), Some(2));
    config.bad_samples.on_bad = Some(OnBad::Mask);
    config
}

fn orders() -> [Order; 3] {
    let size = |n| NonZeroU32::new(n).unwrap();
    [Order::Sequential, Order::Shuffled, Order::Interleaved { run: size(5), window: size(4) }]
}

/// What a batch delivers, and the state after it.
#[derive(Debug, PartialEq)]
struct Delivered {
    ids: Vec<i64>,
    valid: Vec<bool>,
    pixels: Vec<u8>,
    state: String,
}

fn delivered(batch: &Batch) -> Delivered {
    let (ids, valid) = (batch.ids().to_vec(), batch.valid().to_vec());
    Delivered { ids, valid, pixels: batch.images().unwrap().to_vec(), state: batch.state_after().to_string() }
}

/// Loads the epochs that are left, `None` between them.
fn run(loader: &mut Loader, epochs: u64) -> Vec<Option<Delivered>> {
    let mut all = vec![];
    for _ in 0..epochs {
        while let Some(batch) = loader.next_batch().unwrap() {
            all.push(Some(delivered(&batch)));
        }
        all.push(None);
    }
    all
}

#[test]
fn batches_equal_those_of_files() {
    let bucket = Bucket::new(100, 17, Faults::default());
    for order in orders() {
        let local = run(&mut Loader::new(&config(bucket.local(), order)).unwrap(), 2);
        assert!(local.len() > 25, "{}", local.len());
        let mut loader = Loader::new(&config(bucket.remote(), order)).unwrap();
        assert!(run(&mut loader, 2) == local, "{order}");
        // The counts are those of the process, and so of all tests.
        assert!(loader.stats().store.unwrap().requests > 0);
    }
}

#[test]
fn neighbours_are_requested_together() {
    let bucket = Bucket::new(100, 25, Faults::default());
    let [sequential, _, interleaved] = orders();
    for (order, most) in [(sequential, 4), (interleaved, 8 + 20)] {
        let before = bucket.server.requests();
        let mut config = config(bucket.remote(), order);
        config.epochs = Some(1);
        run(&mut Loader::new(&config).unwrap(), 1);
        let requests = bucket.server.requests() - before;
        // The manifest, four indexes, and the sample that the memory plan decodes, in addition.
        assert!(requests <= most + 1 + 4 + 1, "{order}: {requests} requests");
    }
}

/// Returns the requests for records in one epoch that the server has counted, without the one before it.
fn requested(bucket: &Bucket, config: &Config) -> u64 {
    let before = bucket.server.requests_of(".tfrecord");
    let mut config = config.clone();
    config.splits = vec![bucket.remote()];
    config.epochs = Some(1);
    let mut loader = Loader::new(&config).unwrap();
    while loader.next_batch().unwrap().is_some() {}
    bucket.server.requests_of(".tfrecord") - before - 1
}

#[test]
fn requests_are_those_that_were_planned() {
    let bucket = Bucket::new(300, 25, Faults::default());
    let size = |n| NonZeroU32::new(n).unwrap();
    let interleaved = |run, window| Order::Interleaved { run: size(run), window: size(window) };
    let orders = [orders()[0], orders()[1], interleaved(8, 4), interleaved(7, 3), interleaved(40, 1)];
    let ahead = [64 << 20, 100_000];
    let mut counts = vec![];
    for (order, read_ahead) in orders.into_iter().flat_map(|order| ahead.map(|ahead| (order, ahead))) {
        // For files as for objects.
        let mut config = config(bucket.local(), order);
        (config.prefetch.read_ahead, config.prefetch.fetch_gap, config.remainder) =
            (read_ahead, 100, Some(Remainder::Mask));
        let planned = Loader::epoch_requests(&config).unwrap();
        assert!(!planned.estimated);
        assert_eq!(planned.requests, requested(&bucket, &config), "{order}, {read_ahead} bytes ahead");
        config.splits = vec![bucket.remote()];
        assert_eq!(Loader::epoch_requests(&config).unwrap(), planned);
        counts.push(planned.requests);
    }
    // Twelve shards. A run is one request unless a shard ends in it.
    assert_eq!(counts[0], 12, "{counts:?}");
    assert!(counts[3] > 250 && (38..=38 + 12).contains(&counts[4]) && (8..=8 + 12).contains(&counts[8]), "{counts:?}");
    // Two windows of this order do not fit into 100 kB.
    assert!(counts[9] > counts[8], "{counts:?}");
}

#[test]
fn requests_of_replicas_and_small_requests_are_those_that_were_planned() {
    let bucket = Bucket::new(300, 25, Faults::default());
    for policy in [Policy::Sample, Policy::Shard] {
        let mut config = config(bucket.local(), orders()[2]);
        config.replica = Replica::new(1, 3).unwrap();
        (config.policy, config.prefetch.fetch_size, config.remainder) = (policy, 4000, Some(Remainder::Pad));
        let planned = Loader::epoch_requests(&config).unwrap().requests;
        assert!(planned > 50, "{policy:?}: {planned}");
        assert_eq!(planned, requested(&bucket, &config), "{policy:?}");
    }
}

#[test]
fn batches_and_requests_of_buckets_are_those_of_files() {
    let bucket = Bucket::new(300, 25, Faults::default());
    let side = |n| NonZeroU32::new(n).unwrap();
    let shapes = [[16, 20], [16, 24]].map(|[height, width]| {
        let steps = vec![Transform::ResizeTo { size: [height, width], interpolation: Filter::Bilinear }];
        ((side(height), side(width)), Pipeline::new(steps).unwrap())
    });
    for order in [Order::Sequential, Order::Shuffled] {
        let mut config = config(bucket.local(), order);
        config.buckets = Some(AspectRatioBuckets::new(shapes.clone()).into());
        config.remainder = Some(Remainder::Pad);
        let local = run(&mut Loader::new(&config).unwrap(), 2);
        let planned = Loader::epoch_requests(&config).unwrap().requests;
        assert_eq!(planned, requested(&bucket, &config), "{order}");
        config.splits = vec![bucket.remote()];
        assert!(run(&mut Loader::new(&config).unwrap(), 2) == local, "{order}");
    }
}

/// Each worker reads the records of its packed row.
#[test]
fn packed_rows_are_those_of_files() {
    let bucket = Bucket::new(60, 25, Faults::default());
    let rows = |split: Split| {
        // Every label counts as one token: the labels of samples 1, 6, 11 and so on are 1.
        let padded = [("image/class/label".to_owned(), 0.0)];
        let tokens = Tokens::new("image/class/label", NonZeroU32::new(4).unwrap(), padded);
        let mut config = Config::new(split, [tokens], 3);
        let ones: Vec<u64> = (0..12).map(|number| 5 * number + 1).collect();
        config.source = Some(Source::List(List::new(ones, 60).unwrap()));
        (config.workers, config.order) = (Some(2), Order::Shuffled);
        let mut loader = Loader::new(&config).unwrap();
        let batch = loader.next_batch().unwrap().unwrap();
        (batch.ids().to_vec(), batch.column("image/class/label").cloned(), batch.packed().unwrap().offsets.to_vec())
    };
    let local = rows(bucket.local());
    assert_eq!((local.0.len(), &local.2[..]), (12, &[0, 4, 8, 12][..]));
    assert_eq!(rows(bucket.remote()), local);
}

#[test]
fn requests_of_large_epochs_are_estimated_within_5_percent() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let sample = |n: u64| Sample { key: format!("{n}"), image: None, label: n as i64 % 5, boxes: vec![], mask: vec![] };
    let dataset = folder.path().join("bucket/dataset");
    std::fs::create_dir_all(&dataset).unwrap();
    dataset::write(&dataset, "train", &(0..300_000).map(sample).collect::<Vec<_>>(), 30_000);
    let server = Server::start(folder.path(), Options { anonymous: true, ..Options::default() }).unwrap();
    let bucket = Bucket { folder, server };
    let size = |n| NonZeroU32::new(n).unwrap();
    for order in [Order::Sequential, Order::Interleaved { run: size(100), window: size(10) }] {
        let mut config = Config::new(bucket.local(), [Field::Record], 1000);
        (config.order, config.prefetch.read_ahead, config.workers) = (order, 1 << 20, Some(2));
        let planned = Loader::epoch_requests(&config).unwrap();
        let counted = requested(&bucket, &config);
        assert!(planned.estimated && counted > 100, "{order}: {counted}");
        let difference = planned.requests.abs_diff(counted) as f64 / counted as f64;
        assert!(difference < 0.05, "{order}: about {} planned, {counted} counted", planned.requests);
    }
}

#[test]
fn a_fitting_order_needs_fewer_requests_than_one_that_does_not_fit() {
    let bucket = Bucket::new(300, 25, Faults::default());
    let mut config = config(bucket.local(), Order::Interleaved { run: NonZeroU32::MIN, window: NonZeroU32::MIN });
    assert!(Loader::epoch_requests(&config).unwrap().is_costly());
    let fitting = Loader::fitting_order(&config).unwrap().expect("an order");
    assert!(!fitting.is_costly(), "{fitting:?}");
    config.order = fitting.order;
    assert_eq!(Loader::epoch_requests(&config).unwrap(), fitting);
    assert_eq!(requested(&bucket, &config), fitting.requests);
    // One record is requested at a time.
    config.prefetch.read_ahead = 0;
    assert_eq!(Loader::epoch_requests(&config).unwrap().requests, 300 / 7 * 7);
    assert_eq!(Loader::fitting_order(&config).unwrap(), None);
}

#[test]
fn the_start_costs_three_requests_whatever_the_number_of_shards() {
    for shards in [5, 500] {
        let bucket = Bucket::new(2 * shards, 2, Faults::default());
        let split = bucket.remote();
        assert_eq!((split.entry().shards.len() as u64, bucket.server.requests()), (shards, 1), "the manifest");
        let mut config = config(split, Order::Sequential);
        // Nothing is requested ahead, and nothing is read unless a batch is wanted.
        (config.prefetch.read_ahead, config.workers) = (0, Some(1));
        let checked = Loader::plan(&config).unwrap();
        assert!(checked.memory.requested() > 0);
        // The first index, and an image for the memory plan.
        assert_eq!(bucket.server.requests(), 3, "{shards} shards");
    }
}

#[test]
fn without_read_ahead_each_record_is_requested() {
    let bucket = Bucket::new(20, 5, Faults::default());
    let mut with = config(bucket.remote(), Order::Shuffled);
    with.prefetch.read_ahead = 0;
    let local = run(&mut Loader::new(&config(bucket.local(), Order::Shuffled)).unwrap(), 2);
    assert!(run(&mut Loader::new(&with).unwrap(), 2) == local);
}

#[test]
fn resume_and_seek_are_exact() {
    let bucket = Bucket::new(100, 17, Faults::default());
    for order in orders() {
        let whole = run(&mut Loader::new(&config(bucket.local(), order)).unwrap(), 2);
        let steps: Vec<_> = whole.iter().flatten().collect();
        for stop in [0, 4, 13, 20] {
            let state: ResumeState = ResumeState::parse(&steps[stop].state).unwrap();
            let mut loader = Loader::new(&config(bucket.remote(), order)).unwrap();
            // It has begun elsewhere.
            drop(loader.next_batch().unwrap());
            loader.load_state(&state).unwrap();
            let mut rest = vec![];
            while rest.len() < steps.len() - stop - 1 {
                rest.extend(loader.next_batch().unwrap().map(|batch| delivered(&batch)));
            }
            assert!(rest.iter().eq(steps[stop + 1..].iter().copied()), "{order}, after step {stop}");
        }
    }
}

#[test]
fn faults_change_no_sample() {
    let wanted = std::env::var("SHARDTOOL_STORE_FAULTS").map_or(60, |text| text.parse().unwrap());
    let (mut injected, mut seed) = (0, 0);
    while injected < wanted {
        let faults = Faults { seed, one_in: 4, ..Faults::default() };
        let bucket = Bucket::new(60, 7, faults);
        let order = orders()[seed as usize % 3];
        let local = run(&mut Loader::new(&config(bucket.local(), order)).unwrap(), 2);
        let since = Instant::now();
        let mut config = config(bucket.remote(), order);
        // Many small requests.
        (config.prefetch.fetch_gap, config.prefetch.fetch_size) = (0, 4 << 10);
        let mut loader = Loader::new(&config).unwrap();
        assert!(run(&mut loader, 2) == local, "seed {seed}, {order}");
        assert!(loader.bad_samples().is_empty(), "seed {seed}");
        assert!(since.elapsed() < Duration::from_secs(120), "seed {seed}");
        injected += bucket.server.injected();
        seed += 1;
    }
    println!("{injected} answers changed, seeds 0 to {seed}");
}

#[test]
fn every_fault_is_survived() {
    use Fault::*;
    for fault in [Unavailable, TooMany, Forbidden, Reset, Cut, WrongByte] {
        // Every second answer: a request succeeds after a few attempts, and a wrong byte is followed by a right one. Without
        // attempts, what is read ahead would fail, be read again when it is needed, and fail again.
        let one_in = if fault == WrongByte { 6 } else { 2 };
        let bucket = Bucket::new(30, 7, Faults { seed: 5, one_in, only: Some(fault), ..Faults::default() });
        let local = run(&mut Loader::new(&config(bucket.local(), Order::Shuffled)).unwrap(), 2);
        let mut loader = Loader::new(&config(bucket.remote(), Order::Shuffled)).unwrap();
        assert!(run(&mut loader, 2) == local, "{fault:?}");
        assert!(bucket.server.injected() > 0, "{fault:?}");
    }
}

#[test]
fn stored_damage_is_a_bad_sample() {
    let bucket = Bucket::new(40, 8, Faults::default());
    let shard = bucket.folder.path().join("bucket/dataset/train-00001.tfrecord");
    let mut bytes = std::fs::read(&shard).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 4;
    std::fs::write(&shard, bytes).unwrap();
    let load = |split| {
        let mut loader = Loader::new(&config(split, Order::Shuffled)).unwrap();
        let delivered = run(&mut loader, 2);
        let bad = loader.bad_samples().iter().map(|bad| (bad.id, bad.record, bad.key.clone())).collect::<Vec<_>>();
        (delivered, bad, loader.stats().store)
    };
    let (local, local_bad, none) = load(bucket.local());
    let (remote, remote_bad, store) = load(bucket.remote());
    assert!(local == remote && local_bad == remote_bad && local_bad.len() == 1 && none.is_none());
    assert!(store.unwrap().refetched > 0);
}

#[test]
fn a_lost_shard_and_a_lost_server_are_errors_by_name() {
    let mut bucket = Bucket::new(40, 8, Faults::default());
    let split = bucket.remote();
    std::fs::remove_file(bucket.folder.path().join("bucket/dataset/train-00002.tfrecord")).unwrap();
    let error = split.get(17).unwrap_err();
    assert!(error.to_string().contains("train-00002.tfrecord is missing"), "{error}");
    assert!(split.get(1).is_ok());
    bucket.server = Server::start(bucket.folder.path(), Options::default()).unwrap();
    let error = bucket.remote_error();
    assert!(error.contains("dataset.json") && error.contains("refuses"), "{error}");
}

impl Bucket {
    fn remote_error(&self) -> String {
        let error = Dataset::open(format!("{}/bucket/dataset", self.server.endpoint())).unwrap_err();
        shardtool_format::Chain(&error).to_string()
    }
}
