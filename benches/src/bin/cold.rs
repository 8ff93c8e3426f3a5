//! Measures reading records that are not in the page cache: the loader with two workers, compared with what the disk gives
//! many plain threads that read the same records in the same order. Also prints the bytes that the disk read, compared
//! with those of the dataset. Before each run, all pages of the dataset are dropped from the page cache.
//!
//! `cargo run --release -p shardtool-benches --bin cold -- [FOLDER [ROUNDS]]`: a folder on the disk to measure, with 2.2 GB of
//! free space (default: a temporary folder).

use shardtool_benches::{Candidate, compare, print, records};
use shardtool_load::{Config, Field, Loader};
use shardtool_order::{Order, Plan, Policy, Remainder, Replicas, Source};
use shardtool_read::{Access, Dataset, Options, Split};
use std::cell::Cell;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SEED: u64 = 7;
/// Plain threads: the number of requests that the disk gets at once.
const THREADS: [usize; 3] = [8, 32, 128];
const PAYLOAD: usize = 110_000;
const RECORDS: u64 = 5_000;
const SHARDS: u64 = 4;

fn main() {
    let mut args = std::env::args().skip(1);
    let scratch = match args.next() {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.expect("a scratch folder");
    let rounds = args.next().map_or(3, |n| n.parse().expect("a number of rounds"));
    let sum = records::write(scratch.path(), PAYLOAD, RECORDS, SHARDS);
    let open = |access| {
        let dataset = Dataset::open_with(scratch.path(), Options::default().with_access(access)).expect("a dataset");
        dataset.splits()[0].clone()
    };
    let split = open(Access::Mmap);
    let files: Vec<PathBuf> = (0..SHARDS as usize).map(|shard| split.shard_path(shard)).collect();
    // Mapped pages would stay in the page cache: each run opens the shards again.
    drop(split);
    let evict = || {
        for path in &files {
            let file = std::fs::File::open(path).expect("a shard");
            file.sync_all().expect("written to the disk");
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("dropped from the page cache");
        }
    };
    let number = |n| NonZeroU32::new(n).expect("not 0");
    let orders = [
        ("shuffled", Order::Shuffled),
        ("interleaved, runs of 64, window of 8", Order::Interleaved { run: number(64), window: number(8) }),
    ];
    for (name, order) in orders {
        let amplification = Cell::new(0.0);
        let names = THREADS.map(|threads| format!("{threads} plain threads"));
        let mut candidates: Vec<Candidate<'_>> = THREADS
            .iter()
            .zip(&names)
            .map(|(threads, name)| {
                Candidate::new(name, || plain(&open(Access::Pread), order, *threads, sum)).after(evict)
            })
            .collect();
        let loader = || {
            let before = disk_bytes();
            let bytes = load(&open(Access::Mmap), order, sum);
            amplification.set((disk_bytes() - before) as f64 / bytes);
            bytes
        };
        candidates.push(Candidate::new("the loader, two workers", loader).after(evict));
        let by_pread = || load(&open(Access::Pread), order, sum);
        candidates.push(Candidate::new("the same, by pread", by_pread).after(evict));
        evict();
        print(name, "MB/s", 1e6, &compare(rounds, &mut candidates));
        println!("  bytes read by the loader from the disk: {:.2} of those of the records", amplification.get());
    }
}

/// Reads every record once, and returns the bytes of their frames.
fn plain(split: &Split, order: Order, threads: usize, sum: u64) -> f64 {
    let replicas = Replicas {
        world: NonZeroU32::MIN,
        batch: NonZeroU32::MIN,
        policy: Policy::Sample,
        remainder: Some(Remainder::Mask),
    };
    let plan = Arc::new(Plan::new(Source::All(split.len()), order, SEED, replicas, &[]).expect("a plan"));
    let (next, bytes, found) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let (mut walk, mut buffer) = (plan.walk(0, 0).expect("rank 0"), vec![]);
                loop {
                    let q = next.fetch_add(1, Ordering::Relaxed);
                    if q >= split.len() {
                        return;
                    }
                    let record = split.get_with(walk.sample(q).id, buffer).expect("a good record");
                    bytes.fetch_add(record.data().len() as u64 + 16, Ordering::Relaxed);
                    found
                        .fetch_add(last_bytes(record.image().expect("an index").expect("an image")), Ordering::Relaxed);
                    buffer = record.into_buffer();
                }
            });
        }
    });
    assert_eq!(found.into_inner(), sum, "every record once");
    bytes.into_inner() as f64
}

/// Loads every record once, and returns the bytes of their frames.
fn load(split: &Split, order: Order, sum: u64) -> f64 {
    let mut config = Config::new(split.clone(), [Field::Record], 256);
    (config.order, config.seed, config.epochs) = (order, SEED, Some(1));
    (config.workers, config.remainder) = (Some(2), Some(Remainder::Mask));
    let mut loader = Loader::new(&config).expect("a loader");
    let (mut bytes, mut found) = (0, 0u64);
    while let Some(batch) = loader.next_batch().expect("a batch") {
        for record in batch.records().iter().flatten() {
            bytes += record.data().len() + 16;
            found = found.wrapping_add(last_bytes(record.image().expect("an index").expect("an image")));
        }
    }
    assert_eq!(found, sum, "every record once");
    bytes as f64
}

fn last_bytes(image: &[u8]) -> u64 {
    u64::from_le_bytes(*image.last_chunk().expect("eight bytes"))
}

/// Returns the bytes that this process has made the disk read.
fn disk_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap_or_default();
    line.trim().parse().unwrap_or(0)
}
