//! Compares the loader with two plain threads that decode and resize the same photographs, and with two threads that only
//! read. The difference is the cost of orders, batches, memory budget and statistics. The pixels are compared first.
//!
//! `cargo run --release -p shardtool-benches --bin load -- FOLDER [ROUNDS [SIDE]]`: a folder of photographs, and
//! the side of an image in a batch.

use shardtool_benches::photographs::Draw;
use shardtool_benches::{Candidate, compare, print};
use shardtool_decode::{
    Decoder, Dtype, Filter, Layout, Limits, Normalizer, Orientation, Output, Pipeline, RegionOptions, ResizeScratch,
    apply_geometry, probe,
};
use shardtool_load::{Config, Field, Image, Loader, PixelDtype};
use shardtool_order::{List, Order, Plan, Policy, Remainder, Replicas, Rng, Source};
use shardtool_read::{Dataset, Split};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

const THREADS: usize = 2;
const BATCH: u32 = 256;
/// Repetitions of each photograph in an epoch.
const REPEAT: u64 = 4;
const SEED: u64 = 7;

/// Returns the side of an image in a batch, in pixels.
fn side() -> u32 {
    static SIDE: OnceLock<u32> = OnceLock::new();
    *SIDE.get_or_init(|| std::env::args().nth(3).map_or(224, |side| side.parse().expect("a number of pixels")))
}

/// Returns the bytes of an image in a batch.
fn row() -> usize {
    (side() * side() * 3) as usize
}

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next() else { panic!("name a folder of photographs") };
    let rounds = args.next().map_or(5, |n| n.parse().expect("a number of rounds"));
    let scratch = tempfile::tempdir().expect("a scratch folder");
    shardtool_pack::pack(&shardtool_pack::Options::new(folder, scratch.path()), &()).expect("a pack");
    let split = Dataset::open(scratch.path()).expect("a dataset").splits()[0].clone();
    let train = Pipeline::train(side()).expect("a pipeline");
    let eval = Pipeline::eval(side() * 8 / 7, side()).expect("a pipeline");
    for (name, pipeline) in [("train", train), ("eval", eval)] {
        let expected = pixels(&split, &pipeline, Engine::Threads);
        assert_eq!(expected.len() as u64, split.len(), "every photograph");
        assert!(
            expected == pixels(&split, &pipeline, Engine::Loader),
            "the loader's pixels equal those of the plain threads"
        );
        let rates = compare(
            rounds,
            &mut [
                Candidate::new("two plain threads", || run_threads(&split, &pipeline, None) as f64),
                Candidate::new("the loader, two workers", || run_loader(&split, &pipeline, None) as f64),
            ],
        );
        print(&format!("{name}, {} photographs", split.len() * REPEAT), "images/s", 1.0, &rates);
        first_batch(&split, &pipeline, rates[0].median);
    }
    outputs(&split, rounds);
    read(&split, rounds);
}

/// Compares images normalised by the workers with u8 images of the same loader.
fn outputs(split: &Split, rounds: usize) {
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    let field = |output: Option<(PixelDtype, Layout)>| {
        let mut image = Image::new(Pipeline::train(side()).expect("a pipeline"));
        if let Some((dtype, layout)) = output {
            (image.pixels.dtype, image.pixels.layout) = (Some(dtype), Some(layout));
            (image.pixels.mean, image.pixels.std) = (Some(mean.to_vec()), Some(std.to_vec()));
        }
        image
    };
    let bytes = |output| field(output).pixels.output().expect("an output").map_or(1, |output| output.dtype().bytes());
    let run = |output| {
        let mut loader = Loader::new(&config(split, field(output).into())).expect("a loader");
        let mut n = 0;
        while let Some(batch) = loader.next_batch().expect("a batch") {
            assert_eq!(batch.images().expect("images").len(), row() * BATCH as usize * bytes(output));
            n += batch.valid().iter().filter(|v| **v).count() as u64;
        }
        assert_eq!(n, split.len() * REPEAT);
        n as f64
    };
    // The first batch of each equals the formula applied to the u8 batch.
    let first = |output| {
        let mut loader = Loader::new(&config(split, field(output).into())).expect("a loader");
        loader.next_batch().expect("a batch").expect("a batch")
    };
    let plain = first(None);
    let cases = [
        ("float32 NCHW", Dtype::F32, PixelDtype::Float32, Layout::Nchw),
        ("float32 NHWC", Dtype::F32, PixelDtype::Float32, Layout::Nhwc),
        ("float16 NCHW", Dtype::F16, PixelDtype::Float16, Layout::Nchw),
        ("bfloat16 NCHW", Dtype::Bf16, PixelDtype::Bfloat16, Layout::Nchw),
    ];
    for (name, dtype, option, layout) in cases {
        let normalizer = Normalizer::new(Output::new(dtype, layout, mean, std).expect("an output"));
        let mut expected = vec![0; row() * normalizer.output().dtype().bytes()];
        normalizer.write(&plain.images().expect("images")[..row()], &mut expected);
        assert!(first(Some((option, layout))).images().expect("images").starts_with(&expected), "{name}: the formula");
    }
    let mut candidates = vec![Candidate::new("u8 NHWC", || run(None))];
    candidates.extend(cases.map(|(name, _, option, layout)| Candidate::new(name, move || run(Some((option, layout))))));
    print("train, normalised by the workers", "images/s", 1.0, &compare(rounds, &mut candidates));
}

enum Engine {
    Threads,
    Loader,
}

type Hashes = HashMap<u64, u64>;

/// Returns a hash of the pixels of each sample, summed over its repetitions.
fn pixels(split: &Split, pipeline: &Pipeline, engine: Engine) -> Hashes {
    let hashes = std::sync::Mutex::new(Hashes::new());
    let callback = |id: u64, pixels: &[u8]| {
        let mut hasher = DefaultHasher::new();
        hasher.write(pixels);
        // Repetitions of a photograph have different crops.
        let mut hashes = hashes.lock().expect("no panic");
        let sum = hashes.entry(id).or_default();
        *sum = sum.wrapping_add(hasher.finish());
    };
    match engine {
        Engine::Threads => run_threads(split, pipeline, Some(&callback)),
        Engine::Loader => run_loader(split, pipeline, Some(&callback)),
    };
    hashes.into_inner().expect("no panic")
}

type Callback<'a> = Option<&'a (dyn Fn(u64, &[u8]) + Sync)>;

fn source(split: &Split) -> Source {
    let ids = (0..REPEAT).flat_map(|_| 0..split.len()).collect();
    Source::List(List::new(ids, split.len()).expect("ids of the split"))
}

/// Returns the loader's order.
fn plan(split: &Split) -> Arc<Plan> {
    let one = NonZeroU32::MIN;
    let replicas = Replicas { world: one, batch: one, policy: Policy::Sample, remainder: Some(Remainder::Mask) };
    Arc::new(Plan::new(source(split), Order::Shuffled, SEED, replicas, &[]).expect("a plan"))
}

/// Decodes and resizes samples in the loader's order with plain threads.
fn run_threads(split: &Split, pipeline: &Pipeline, callback: Callback<'_>) -> u64 {
    let plan = plan(split);
    let (next, n) = (AtomicU64::new(0), split.len() * REPEAT);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut walk = plan.walk(0, 0).expect("rank 0");
                let (mut decoder, mut scratch, mut out) =
                    (Decoder::default(), ResizeScratch::default(), vec![0; row()]);
                let options = RegionOptions::default();
                loop {
                    let q = next.fetch_add(1, Ordering::Relaxed);
                    if q >= n {
                        return;
                    }
                    let sample = walk.sample(q);
                    let record = split.get(sample.id).expect("a record");
                    let bytes = record.image().expect("an index").expect("an image");
                    let info = probe(bytes, &Limits::default()).expect("a header");
                    let mut draw = Draw(Rng::augment(SEED, 0, sample.source_position));
                    let size = (info.width, info.height);
                    let geometry =
                        pipeline.plan(size, Orientation::default(), &mut draw, &[]).expect("a geometry").geometry();
                    let window = decoder.decode_region(bytes, None, &geometry, &options).expect("pixels");
                    apply_geometry(&geometry, &window, Filter::Bilinear, &mut out, &mut scratch).expect("a row");
                    if let Some(callback) = callback {
                        callback(sample.id, &out);
                    }
                }
            });
        }
    });
    n
}

fn config(split: &Split, field: Field) -> Config {
    let mut config = Config::new(split.clone(), [field], BATCH);
    (config.source, config.seed, config.epochs) = (Some(source(split)), SEED, Some(1));
    (config.workers, config.remainder) = (Some(THREADS), Some(Remainder::Mask));
    config
}

/// Runs one epoch of a new loader.
fn run_loader(split: &Split, pipeline: &Pipeline, callback: Callback<'_>) -> u64 {
    let mut loader = Loader::new(&config(split, Image::new(pipeline.clone()).into())).expect("a loader");
    let mut n = 0;
    while let Some(batch) = loader.next_batch().expect("a batch") {
        for (id, row) in batch.ids().iter().zip(batch.images().expect("images").chunks(row())) {
            if let (Ok(id), Some(callback)) = (u64::try_from(*id), callback) {
                callback(id, row);
            }
        }
        n += batch.valid().iter().filter(|v| **v).count() as u64;
    }
    assert_eq!((n, loader.bad_samples().len()), (split.len() * REPEAT, 0));
    n
}

/// Prints the time to the first batch, the peak of anonymous memory, and the verdict of the loader.
fn first_batch(split: &Split, pipeline: &Pipeline, images_per_s: f64) {
    let start = Instant::now();
    let mut loader = Loader::new(&config(split, Image::new(pipeline.clone()).into())).expect("a loader");
    let mut first = None;
    let mut peak = 0;
    while let Some(batch) = loader.next_batch().expect("a batch") {
        first.get_or_insert_with(|| start.elapsed().as_secs_f64());
        peak = peak.max(anonymous());
        drop(batch);
    }
    let (first, decoding) = (first.expect("a batch"), f64::from(BATCH) / images_per_s);
    println!("  first batch after {first:.3} s: x{:.2} of decoding one batch", first / decoding);
    println!("  anonymous memory at most {:.0} MB", peak as f64 / 1e6);
    println!("  {}", loader.stats().bottleneck());
}

fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Epochs of a reading round: one takes 10 ms, and a loader starts with threads and a look at its records.
const READ_EPOCHS: u64 = 40;

/// Compares reading of records in the loader's order, in bytes per second.
fn read(split: &Split, rounds: usize) {
    let bytes = split.entry().bytes() * REPEAT * READ_EPOCHS;
    let n = split.len() * REPEAT;
    let threads = || {
        let plan = plan(split);
        let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let (mut epoch, mut walk) = (0, plan.walk(0, 0).expect("rank 0"));
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= n * READ_EPOCHS {
                            return;
                        }
                        if at / n != epoch {
                            (epoch, walk) = (at / n, plan.walk(at / n, 0).expect("rank 0"));
                        }
                        let record = split.get(walk.sample(at % n).id).expect("a record");
                        sum.fetch_add(record.data().len() as u64 + 16, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), bytes);
        bytes as f64
    };
    let loader = || {
        let mut config = config(split, Field::Record);
        config.epochs = Some(READ_EPOCHS);
        let mut loader = Loader::new(&config).expect("a loader");
        let mut sum = 0;
        for _ in 0..READ_EPOCHS {
            while let Some(batch) = loader.next_batch().expect("a batch") {
                sum += batch.records().iter().flatten().map(|r| r.data().len() as u64 + 16).sum::<u64>();
            }
        }
        assert_eq!(sum, bytes);
        bytes as f64
    };
    let candidates =
        &mut [Candidate::new("two plain threads", threads), Candidate::new("the loader, two workers", loader)];
    print("read: records checked, shuffled", "MB/s", 1e6, &compare(rounds, candidates));
}
