//! A cache on a local disk: the same batches whatever it holds, fewer requests, and nothing lost that was not its own.

mod dataset;

use dataset::Sample;
use shardtool_decode::Pipeline;
use shardtool_load::{Config, Image, Loader, OnBad};
use shardtool_order::{Order, Replica};
use shardtool_read::{Cache, Dataset, Options as Open, Split};
use shardtool_store_server::{Faults, Options, Server};
use std::num::NonZeroU32;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Bytes of a block: a record or two.
const BLOCK: u64 = 4096;

/// A dataset in a bucket, as a folder and as a URL; and a folder for caches.
struct Bucket {
    folder: TempDir,
    server: Server,
}

impl Bucket {
    fn new(samples: u64) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let bucket = Bucket::serve(folder, Faults::default());
        bucket.write("dataset", 0, samples);
        bucket
    }

    fn serve(folder: TempDir, faults: Faults) -> Self {
        std::fs::create_dir_all(folder.path().join("bucket")).unwrap();
        let server = Server::start(folder.path(), Options { anonymous: true, faults, ..Options::default() }).unwrap();
        Bucket { folder, server }
    }

    fn write(&self, name: &str, first: u64, samples: u64) {
        let dataset = self.folder.path().join("bucket").join(name);
        let _ = std::fs::remove_dir_all(&dataset);
        std::fs::create_dir_all(&dataset).unwrap();
        let samples: Vec<_> = (first..first + samples).map(sample).collect();
        dataset::write(&dataset, "train", &samples, 17);
    }

    fn local(&self, name: &str) -> Split {
        split(&self.folder.path().join("bucket").join(name), Open::default())
    }

    fn cached(&self, name: &str, size: Option<u64>) -> (Split, Cache) {
        let cache = Cache::with_blocks(&self.cache(), size, BLOCK).unwrap();
        let url = format!("{}/bucket/{name}", self.server.endpoint());
        (split(Path::new(&url), Open::default().with_cache(cache.clone())), cache)
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// The files in which the cache keeps blocks.
    /// Returns the files that hold blocks: one for each object, or in a folder for each object.
    fn files(&self) -> Vec<PathBuf> {
        let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_folder = |path: &Path| std::fs::symlink_metadata(path).unwrap().is_dir();
        let objects = entries(&self.cache().join(format!("shardtool-cache-1-{BLOCK}/blocks")));
        objects.flat_map(|path| if is_folder(&path) { entries(&path).collect() } else { vec![path] }).collect()
    }

    /// Runs `epochs` of a loader, and compares them with those of files. Returns the requests that they took.
    fn compare(&self, name: &str, split: &Split, order: Order, epochs: u64, replica: Replica) -> u64 {
        let expected = run(config(self.local(name), order, epochs, replica));
        let before = self.server.requests();
        let found = run(config(split.clone(), order, epochs, replica));
        assert!(found == expected, "{order}");
        self.server.requests() - before
    }
}

fn split(path: &Path, options: Open) -> Split {
    Dataset::open_with(path, options).unwrap().split("train").unwrap().clone()
}

fn sample(number: u64) -> Sample {
    let size = (40 + (number % 9) as u32, 32);
    let image = Some((dataset::jpeg(number, size.0, size.1), size));
    Sample { key: format!("{number}"), image, label: number as i64 % 5, boxes: vec![], mask: vec![] }
}

fn config(split: Split, order: Order, epochs: u64, replica: Replica) -> Config {
    let mut config = Config::new(split, [Image::new(Pipeline::train(16).unwrap())], 7);
    (config.order, config.seed, config.epochs, config.workers) = (order, 3, Some(epochs), Some(2));
    (config.bad_samples.on_bad, config.replica, config.prefetch.read_ahead) = (Some(OnBad::Error), replica, 64 << 10);
    config
}

fn orders() -> [Order; 3] {
    let size = |n| NonZeroU32::new(n).unwrap();
    [Order::Sequential, Order::Shuffled, Order::Interleaved { run: size(8), window: size(4) }]
}

/// The ids, pixels and state of each batch.
fn run(config: Config) -> Vec<(Vec<i64>, Vec<u8>, String)> {
    let epochs = config.epochs.unwrap();
    let mut loader = Loader::new(&config).unwrap();
    let mut all = vec![];
    for _ in 0..epochs {
        while let Some(batch) = loader.next_batch().unwrap() {
            let pixels = batch.images().unwrap().to_vec();
            all.push((batch.ids().to_vec(), pixels, batch.state_after().to_string()));
        }
    }
    all
}

fn alone() -> Replica {
    Replica::new(0, 1).unwrap()
}

#[test]
fn a_warm_cache_makes_no_requests() {
    // A multiple of the batch: no sample is left out.
    let bucket = Bucket::new(196);
    for order in orders() {
        let _ = std::fs::remove_dir_all(bucket.cache());
        let (split, cache) = bucket.cached("dataset", Some(64 << 20));
        let cold = bucket.compare("dataset", &split, order, 1, alone());
        assert!(cold > 0);
        assert_eq!(bucket.compare("dataset", &split, order, 2, alone()), 0, "{order}");
        let bytes: u64 = split.entry().shards.iter().map(|shard| shard.bytes + shard.index_bytes).sum();
        let used = cache.used().unwrap();
        assert!((bytes..=bytes + 4096).contains(&used), "{used} for {bytes}");
        // Another process begins: it requests the manifest alone.
        drop((split, cache));
        let before = bucket.server.requests();
        let (split, _cache) = bucket.cached("dataset", Some(64 << 20));
        bucket.compare("dataset", &split, order, 1, alone());
        assert_eq!(bucket.server.requests() - before, 1, "{order}");
    }
}

/// Returns the bytes of the records that are not wholly in the cache.
fn missing(split: &Split) -> u64 {
    let shards = (0..split.entry().shards.len()).map(|number| split.shard(number).unwrap());
    let records = shards.flat_map(|shard| (0..shard.records()).map(move |row| (shard.clone(), row)));
    let bytes = records.map(|(shard, row)| {
        let (frame, cached) = (shard.frame(row).unwrap(), shard.bytes().cached().unwrap());
        if cached.blocks(&frame).all(|block| cached.has(block)) { 0 } else { frame.end - frame.start }
    });
    bytes.sum()
}

#[test]
fn a_small_cache_is_never_larger_than_its_size_and_saves_requests() {
    let bucket = Bucket::new(300);
    let local = bucket.local("dataset");
    let bytes: u64 = local.entry().shards.iter().map(|shard| shard.bytes + shard.index_bytes).sum();
    for order in orders() {
        let _ = std::fs::remove_dir_all(bucket.cache());
        let size = bytes / 2;
        let (split, cache) = bucket.cached("dataset", Some(size));
        bucket.compare("dataset", &split, order, 1, alone());
        let (before, missing) = (bucket.server.bytes(), missing(&split));
        assert!(missing < bytes * 65 / 100, "{order}: {missing} of {bytes} are not in a cache of {size}");
        bucket.compare("dataset", &split, order, 1, alone());
        let answered = bucket.server.bytes() - before;
        let used = cache.used().unwrap();
        assert!(used <= size && used + 4 * BLOCK > size, "{order}: {used} of {size}");
        match order {
            // Blocks that are needed soon take the place of others, whose records are then requested again.
            Order::Interleaved { .. } => assert!(answered <= bytes * 95 / 100, "{order}: {answered} of {bytes}"),
            // At most a quarter of a request lies between records.
            _ => assert!(answered <= missing * 4 / 3, "{order}: {answered}, {missing} were missing"),
        }
    }
}

#[test]
fn whatever_happens_to_its_files_the_batches_are_right() {
    let bucket = Bucket::new(98);
    for order in orders() {
        let (split, cache) = bucket.cached("dataset", Some(64 << 20));
        bucket.compare("dataset", &split, order, 1, alone());
        let damages: [&dyn Fn(&Path); 5] = [
            &|path| {
                let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
                for at in (0..file.metadata().unwrap().len()).step_by(997) {
                    let mut byte = [0];
                    file.read_exact_at(&mut byte, at).unwrap();
                    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
                }
            },
            &|path| {
                let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                file.set_len(file.metadata().unwrap().len() / 2).unwrap();
            },
            &|path| {
                let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                let len = file.metadata().unwrap().len();
                file.write_all_at(&vec![0; len as usize], 0).unwrap();
            },
            &|path| std::fs::remove_file(path).unwrap(),
            &|path| {
                std::fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
            },
        ];
        for (number, damage) in damages.iter().enumerate() {
            bucket.files().iter().for_each(|path| damage(path));
            bucket.compare("dataset", &split, order, 1, alone());
            drop(bucket.cached("dataset", Some(64 << 20)));
            if number < 3 {
                // Blocks whose last record was damaged are written again in the next epoch.
                bucket.compare("dataset", &split, order, 1, alone());
                assert_eq!(bucket.compare("dataset", &split, order, 1, alone()), 0, "{order}, damage {number}");
            }
        }
        drop((split, cache));
        std::fs::remove_dir_all(bucket.cache()).unwrap();
    }
}

#[test]
fn a_dataset_that_changes_is_not_served_from_the_cache() {
    let bucket = Bucket::new(60);
    for first in [0, 1000, 2000] {
        bucket.write("dataset", first, 60);
        let (split, _cache) = bucket.cached("dataset", Some(64 << 20));
        bucket.compare("dataset", &split, Order::Shuffled, 2, alone());
    }
}

#[test]
fn abandoned_contents_make_room_and_other_files_stay() {
    let bucket = Bucket::new(100);
    bucket.write("other", 1000, 100);
    std::fs::create_dir(bucket.cache()).unwrap();
    std::fs::write(bucket.cache().join("mine"), "mine").unwrap();
    let size = 100 << 10;
    let (split, cache) = bucket.cached("dataset", Some(size));
    bucket.compare("dataset", &split, Order::Sequential, 1, alone());
    let before = bucket.files();
    drop((split, cache));
    let (split, cache) = bucket.cached("other", Some(size));
    bucket.compare("other", &split, Order::Sequential, 1, alone());
    assert!(cache.used().unwrap() <= size);
    assert!(bucket.files().iter().all(|path| !before.contains(path)), "the first dataset is still there");
    assert!(std::fs::read_to_string(bucket.cache().join("mine")).unwrap() == "mine");
    // A smaller size is kept to at once.
    drop((split, cache));
    let (_split, cache) = bucket.cached("other", Some(10 * BLOCK));
    assert!(cache.used().unwrap() <= 10 * BLOCK);
}

#[test]
fn ranks_share_a_cache() {
    let bucket = Bucket::new(240);
    let local = bucket.local("dataset");
    let bytes: u64 = local.entry().shards.iter().map(|shard| shard.bytes + shard.index_bytes).sum();
    for (order, size) in orders().into_iter().flat_map(|order| [(order, 4 * bytes), (order, bytes / 3)]) {
        let _ = std::fs::remove_dir_all(bucket.cache());
        let before = bucket.server.requests();
        std::thread::scope(|scope| {
            for rank in 0..3 {
                let bucket = &bucket;
                scope.spawn(move || {
                    // Each with what a process of its own would have.
                    let (split, _cache) = bucket.cached("dataset", Some(size));
                    let replica = Replica::new(rank, 3).unwrap();
                    let expected = run(config(bucket.local("dataset"), order, 2, replica));
                    assert!(run(config(split, order, 2, replica)) == expected, "{order}, rank {rank}");
                });
            }
        });
        let requests = bucket.server.requests() - before;
        if size > bytes {
            // The manifests, and each block once; twice if two ranks asked for it at the same time.
            let blocks = local
                .entry()
                .shards
                .iter()
                .map(|s| s.bytes.div_ceil(BLOCK) + s.index_bytes.div_ceil(BLOCK))
                .sum::<u64>();
            assert!(requests <= 3 + blocks + blocks / 8, "{order}: {requests} requests for {blocks} blocks");
        }
    }
}

#[test]
fn a_loader_beside_readers_of_the_same_blocks_does_not_wait_for_ever() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bucket = Bucket::serve(folder, Faults { delay: Duration::from_millis(300), ..Faults::default() });
    bucket.write("dataset", 0, 35);
    let cache = Cache::with_blocks(&bucket.cache(), Some(64 << 20), 1 << 20).unwrap();
    let url = format!("{}/bucket/dataset", bucket.server.endpoint());
    let split = split(Path::new(&url), Open::default().with_cache(cache));
    let firsts: Vec<_> = split.starts()[..split.starts().len() - 1].to_vec();
    for shard in 0..firsts.len() {
        split.shard(shard).unwrap();
    }
    let readers: Vec<_> = firsts
        .into_iter()
        .map(|id| {
            let split = split.clone();
            std::thread::spawn(move || split.get(id).map(drop).unwrap())
        })
        .collect();
    // They have asked for all blocks, and not received any.
    std::thread::sleep(Duration::from_millis(100));
    let mut config = config(split, Order::Sequential, 1, alone());
    config.prefetch.read_ahead = 64 << 20;
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(run(config).len()));
    assert_eq!(ended.recv_timeout(Duration::from_secs(30)), Ok(5));
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

#[test]
fn links_in_the_folder_are_refused_and_nothing_behind_them_is_removed() {
    for name in ["claims", "users", "blocks"] {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (home, cache) = (folder.path().join("home"), folder.path().join("cache"));
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("thesis"), "mine").unwrap();
        std::fs::create_dir_all(cache.join("shardtool-cache-1")).unwrap();
        std::os::unix::fs::symlink(&home, cache.join("shardtool-cache-1").join(name)).unwrap();
        let error = Cache::open(&cache, Some(64 << 20)).unwrap_err();
        assert!(error.to_string().contains("is not a folder of this user"), "{error}");
        assert!(home.join("thesis").exists());
    }
}

#[test]
fn contents_that_somebody_has_opened_meanwhile_are_not_removed() {
    let bucket = Bucket::new(60);
    bucket.write("other", 1000, 200);
    let size = 1 << 20;
    let (first, cache) = bucket.cached("dataset", Some(size));
    (0..first.len()).for_each(|id| drop(first.get(id).unwrap()));
    let size = cache.used().unwrap() + 4 * BLOCK;
    drop((first, cache));
    // The other one lists the files of the first as abandoned, and removes one.
    let (other, _other_cache) = bucket.cached("other", Some(size));
    let before = bucket.files().len();
    let mut id = 0;
    while bucket.files().len() >= before {
        other.get(id).unwrap();
        id += 1;
    }
    let (first, _cache) = bucket.cached("dataset", Some(size));
    let is_first = |path: &PathBuf| {
        let path = path.to_str().unwrap();
        first.entry().shards.iter().any(|shard| path.contains(&format!("/{:08x}-{}-", shard.crc32c, shard.bytes)))
    };
    let kept = bucket.files().iter().filter(|path| is_first(path)).count();
    assert!(kept > 0);
    (id..other.len()).for_each(|id| drop(other.get(id).unwrap()));
    assert_eq!(bucket.files().iter().filter(|path| is_first(path)).count(), kept);
}

#[test]
#[cfg(not(shardtool_portable_unix))] // Blocks in sparse files; elsewhere they are renamed when they are whole.
fn halves_of_blocks_are_counted_and_removed() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let block = 4 << 20;
    drop(Cache::open(folder.path(), Some(64 << 20)).unwrap());
    let path = folder.path().join("shardtool-cache-1/blocks/half.shard");
    let file = std::fs::File::create(&path).unwrap();
    // What a process leaves that is killed before it writes the beginning.
    for at in (0..8).map(|number| number * block + (64 << 10)) {
        file.write_all_at(&vec![1; block as usize - (64 << 10)], at).unwrap();
    }
    let cache = Cache::open(folder.path(), Some(64 << 20)).unwrap();
    assert!(cache.used().unwrap() > 7 * block);
    cache.use_contents(["half.shard"].into_iter());
    let small = Cache::open(folder.path(), Some(2 * block)).unwrap();
    assert!(small.used().unwrap() <= 2 * block);
    assert!(file.metadata().unwrap().blocks() * 512 <= 2 * block);
}

#[test]
fn a_full_cache_costs_no_further_requests() {
    let bucket = Bucket::new(60);
    let url = format!("{}/bucket/dataset", bucket.server.endpoint());
    let requests = |options| {
        let split = split(Path::new(&url), options);
        let before = bucket.server.requests();
        (0..split.len()).for_each(|id| drop(split.get(id).unwrap()));
        bucket.server.requests() - before
    };
    let without = requests(Open::default());
    // Records of many blocks.
    let cache = Cache::with_blocks(&bucket.cache(), Some(4096), 4096).unwrap();
    assert!(requests(Open::default().with_cache(cache)) <= without + 2);
}
