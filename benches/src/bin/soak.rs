//! Runs epochs and observes anonymous memory, threads and file descriptors: growth is a leak.
//!
//! `cargo run --release -p shardtool-benches --bin soak -- FOLDER [--minutes N]`: a folder of photographs; 10 minutes
//! by default. Fails if one of them grows after the first fifth of the time.

use shardtool_decode::Pipeline;
use shardtool_load::{Config, Image, Loader};
use shardtool_read::Dataset;
use std::time::{Duration, Instant};

/// Interval of observations.
const EVERY: Duration = Duration::from_secs(5);
/// Allowed growth of anonymous memory in bytes, for arenas of the allocator and for larger images.
const SLACK: u64 = 16 << 20;

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let Some(folder) = args.first().filter(|a| !a.starts_with("--")) else { panic!("name a folder of photographs") };
    let minutes = args.windows(2).find(|w| w[0] == "--minutes").map_or(10.0, |w| w[1].parse().expect("minutes"));
    let scratch = tempfile::tempdir().expect("a scratch folder");
    shardtool_pack::pack(&shardtool_pack::Options::new(folder, scratch.path()), &()).expect("a pack");
    let split = Dataset::open(scratch.path()).expect("a dataset").splits()[0].clone();
    let image = Image::new(Pipeline::train(224).expect("a pipeline"));
    let mut loader = Loader::new(&Config::new(split, [image], 128)).expect("a loader");
    let (start, total) = (Instant::now(), Duration::from_secs_f64(minutes * 60.0));
    let (mut observed, mut settled, mut last) = (Instant::now(), None, observe());
    while start.elapsed() < total {
        let _ = loader.next_batch().expect("a batch");
        if observed.elapsed() >= EVERY {
            (observed, last) = (Instant::now(), observe());
            let Observation { anonymous, threads, descriptors } = last;
            let (seconds, mb) = (start.elapsed().as_secs(), anonymous as f64 / 1e6);
            let stats = loader.stats();
            println!(
                "{seconds:>5} s  epoch {:>4}  {:>9} images  {mb:>7.1} MB anonymous  {threads} threads  {descriptors} descriptors",
                loader.state().epoch,
                stats.samples
            );
            if start.elapsed() > total / 5 {
                settled.get_or_insert(last);
            }
        }
    }
    let settled = settled.unwrap_or(last);
    assert!(
        last.anonymous <= settled.anonymous + SLACK,
        "memory grew from {} to {}",
        settled.anonymous,
        last.anonymous
    );
    assert_eq!((last.threads, last.descriptors), (settled.threads, settled.descriptors), "threads, descriptors");
    println!("flat: {:.1} MB after a fifth of the time, {:.1} MB at the end", mb(settled), mb(last));
    println!("{}", loader.stats().bottleneck());
}

#[derive(Clone, Copy)]
struct Observation {
    anonymous: u64,
    threads: usize,
    descriptors: usize,
}

fn mb(observation: Observation) -> f64 {
    observation.anonymous as f64 / 1e6
}

fn observe() -> Observation {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap_or_default();
    let anonymous = line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024;
    let count = |folder| std::fs::read_dir(folder).expect("Linux").count();
    Observation { anonymous, threads: count("/proc/self/task"), descriptors: count("/proc/self/fd") }
}
