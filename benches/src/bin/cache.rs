//! Measures what the cache on a local disk saves: bytes and requests of three epochs from an S3 server on this machine, for 1
//! and 4 ranks, caches of 10, 50 and 90 % of the data, two orders. For comparison, simulated on the same samples in the same order:
//! a cache that removes the block that was used least recently (LRU), and one that keeps the first blocks.
//!
//! `cargo run --release -p shardtool-benches --bin cache -- FOLDER [COPIES]`: a folder of photographs, packed COPIES times
//! (default 8). Each record that arrives is compared with that of the local dataset.

use shardtool_load::{Config, Field, Loader};
use shardtool_order::{Order, Replica};
use shardtool_pack::{CopyOptions, Options as Pack, Shards, copy, pack};
use shardtool_read::{Cache, Dataset, Options, Split};
use shardtool_store_server::{Options as Serve, Server};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Barrier, Mutex};

const BATCH: u32 = 32;
const EPOCHS: u64 = 3;
const BLOCK: u64 = 4 << 20;

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next() else { panic!("name a folder of photographs") };
    let copies: u32 = args.next().map_or(8, |n| n.parse().expect("a number of copies"));
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let (photographs, dataset) = (scratch.path().join("photographs"), scratch.path().join("dataset"));
    for copy in 0..copies {
        let target = photographs.join(format!("{copy}"));
        std::fs::create_dir_all(&target).expect("a folder");
        link(Path::new(&folder), &target);
    }
    let mut options = Pack::new(&photographs, &dataset);
    options.shards = Shards::Size(64 << 20);
    pack(&options, &()).expect("a pack");
    std::fs::create_dir_all(scratch.path().join("s3/bucket")).expect("a bucket");
    let server = Server::start(&scratch.path().join("s3"), Serve::default()).expect("a server");
    for (name, value) in server.environment() {
        // SAFETY: no other thread reads the environment yet.
        unsafe { std::env::set_var(name, value) };
    }
    let url = Path::new("s3://bucket/dataset");
    copy(&dataset, url, &CopyOptions::default(), &()).expect("a copy");
    let local = open(&dataset, Options::default());
    let bytes: u64 = local.entry().shards.iter().map(|shard| shard.bytes).sum();
    println!("{} records, {} MB, {} blocks", local.len(), bytes / 1_000_000, bytes.div_ceil(BLOCK));
    println!("bytes of {EPOCHS} epochs from the store, in multiples of the data; requests");
    let size = |n| NonZeroU32::new(n).expect("not 0");
    for order in [Order::Shuffled, Order::Interleaved { run: size(64), window: size(8) }] {
        for ranks in [1, 4] {
            let steps = steps(&local, order, ranks);
            for percent in [10, 50, 90] {
                let room = bytes * percent / 100;
                let lru = simulate(&local, &steps, room, true);
                let first = simulate(&local, &steps, room, false);
                let ours = measure(&local, url, &server, order, ranks, room, &scratch.path().join("cache"));
                print!("{order}, {ranks} ranks, cache of {percent} %:");
                for (name, (loaded, requests)) in [("LRU", lru), ("keep first", first), ("measured", ours)] {
                    print!("  {name} {:.2}, {requests}", loaded as f64 / bytes as f64);
                }
                println!();
            }
        }
    }
}

fn link(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let (path, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).expect("an entry");
        if path.is_dir() {
            std::fs::create_dir(&target).expect("a folder");
            link(&path, &target);
        } else {
            std::os::unix::fs::symlink(std::path::absolute(&path).expect("a path"), &target).expect("a link");
        }
    }
}

fn open(path: &Path, options: Options) -> Split {
    Dataset::open_with(path, options).expect("a dataset").splits()[0].clone()
}

fn config(split: Split, order: Order, rank: u32, ranks: u32) -> Config {
    let mut config = Config::new(split, [Field::Record], BATCH);
    (config.order, config.seed, config.epochs, config.workers) = (order, 3, Some(EPOCHS), Some(1));
    (config.replica, config.local_world) = (Replica::new(rank, ranks).expect("a replica"), ranks);
    config
}

/// The samples of each step, by rank.
fn steps(local: &Split, order: Order, ranks: u32) -> Vec<Vec<Vec<u64>>> {
    let mut steps: BTreeMap<usize, Vec<Vec<u64>>> = BTreeMap::new();
    for rank in 0..ranks {
        let mut step = 0;
        let mut loader = Loader::new(&config(local.clone(), order, rank, ranks)).expect("a loader");
        for _ in 0..EPOCHS {
            while let Some(batch) = loader.next_batch().expect("a batch") {
                steps.entry(step).or_default().push(batch.ids().iter().map(|id| *id as u64).collect());
                step += 1;
            }
        }
    }
    steps.into_values().collect()
}

/// Bytes and requests of a cache that holds whole blocks: LRU, or one that keeps the first ones and reads other records singly.
fn simulate(local: &Split, steps: &[Vec<Vec<u64>>], room: u64, lru: bool) -> (u64, u64) {
    let (most, mut used) = ((room / BLOCK) as usize, HashMap::<(usize, u64), u64>::new());
    let (mut bytes, mut requests, mut now) = (0, 0, 0);
    for id in steps.iter().flatten().flatten() {
        let (shard, row) = local.locate(*id).expect("a record");
        let frame = local.shard(shard).and_then(|shard| shard.frame(row)).expect("a frame");
        let end = local.entry().shards[shard].bytes;
        let blocks = frame.start / BLOCK..frame.end.div_ceil(BLOCK);
        let mut single = false;
        for block in blocks {
            now += 1;
            if let Some(last) = used.get_mut(&(shard, block)) {
                *last = now;
                continue;
            }
            if used.len() == most && !lru {
                single = true;
                continue;
            }
            if used.len() == most {
                let oldest = *used.iter().min_by_key(|(_, last)| **last).expect("blocks").0;
                used.remove(&oldest);
            }
            used.insert((shard, block), now);
            (bytes, requests) = (bytes + BLOCK.min(end - block * BLOCK), requests + 1);
        }
        if single {
            (bytes, requests) = (bytes + frame.end - frame.start, requests + 1);
        }
    }
    (bytes, requests)
}

/// Measures bytes and requests of ranks that share a cache, each with the state of a separate process.
fn measure(
    local: &Split,
    url: &Path,
    server: &Server,
    order: Order,
    ranks: u32,
    room: u64,
    cache: &Path,
) -> (u64, u64) {
    let _ = std::fs::remove_dir_all(cache);
    let before = (server.bytes(), server.requests());
    // Ranks of a training job wait for each other after each step.
    let (barrier, seen) = (Barrier::new(ranks as usize), Mutex::new(HashSet::new()));
    std::thread::scope(|scope| {
        for rank in 0..ranks {
            let (barrier, seen) = (&barrier, &seen);
            scope.spawn(move || {
                let options =
                    Options::default().with_cache(Cache::with_blocks(cache, Some(room), BLOCK).expect("a cache"));
                let mut loader = Loader::new(&config(open(url, options), order, rank, ranks)).expect("a loader");
                for epoch in 0..EPOCHS {
                    while let Some(batch) = loader.next_batch().expect("a batch") {
                        for (id, record) in batch.ids().iter().zip(batch.records()) {
                            let expected = local.get(*id as u64).expect("a record");
                            assert!(record.as_ref().is_some_and(|r| r.data() == expected.data()), "record {id}");
                            seen.lock().expect("no panic").insert((epoch, *id));
                        }
                        barrier.wait();
                    }
                }
            });
        }
    });
    let dropped = local.len() % u64::from(BATCH * ranks);
    let seen = seen.into_inner().expect("no panic").len() as u64;
    assert_eq!(seen, EPOCHS * (local.len() - dropped), "every record, once in each epoch");
    let used = Cache::open(cache, Some(room)).and_then(|cache| cache.used()).expect("a count");
    assert!(used <= room, "{used} bytes in a cache of {room}");
    (server.bytes() - before.0, server.requests() - before.1)
}
