//! Compares `pack` of a folder with copying the same files, with and without JPEG entry points; also plans a long list.
//!
//! `cargo run --release -p shardtool-benches --bin pack -- FOLDER [SCRATCH]`: a folder of images in the page cache, and
//! a folder to write to (default: the folder for temporary files). Every run writes new files and syncs them to disk.

use shardtool_benches::{Candidate, compare, print};
use shardtool_format::index;
use shardtool_pack::{Options, Shards, pack, plan};
use shardtool_read::Dataset;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Entries of the planned list.
const LIST: usize = 100_000;

fn main() {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(source) = args.next() else { panic!("name a folder of images") };
    let scratch =
        args.next().unwrap_or_else(std::env::temp_dir).join(format!("shardtool-bench-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("a scratch folder");
    let planned = plan(&Options::new(&source, scratch.join("plan"))).expect("a source");
    let (images, bytes) = (planned.images(), planned.source_bytes());
    println!("{images} files, {bytes} bytes");
    let mut candidates = vec![copy(&source, &scratch, bytes)];
    for jobs in [1, 2, 4] {
        let name = ["", "pack, 1 thread", "pack, 2 threads", "", "pack, 4 threads"][jobs];
        candidates.push(packed(name, &source, &scratch, (jobs, false), bytes));
    }
    print("pack against cp -r and sync", "MB/s", 1e6, &compare(7, &mut candidates));
    let mut candidates = [("without", false), ("with", true)]
        .map(|(name, entry_points)| packed(name, &source, &scratch, (2, entry_points), bytes));
    print("pack, 2 threads, with JPEG entry points", "MB/s", 1e6, &compare(21, &mut candidates));
    check(&source, &scratch, images);
    list(&source, &scratch);
    fs::remove_dir_all(&scratch).expect("remove the scratch folder");
}

/// Removes the output of a run, so that the next run reuses its page cache memory: first-touch page faults are slow in a
/// virtual machine.
fn remove(folder: &Path) {
    fs::remove_dir_all(folder).expect("a folder");
}

fn copy<'a>(source: &'a Path, scratch: &'a Path, bytes: u64) -> Candidate<'a> {
    let folder = scratch.join("copy");
    let written = folder.clone();
    let run = move || {
        let copied = Command::new("cp").arg("-rL").args([source, &folder]).status().expect("cp");
        let synced = Command::new("sync").arg("-f").arg(&folder).status().expect("sync");
        assert!(copied.success() && synced.success());
        bytes as f64
    };
    Candidate::new("cp -r, sync -f", run).after(move || remove(&written))
}

fn packed<'a>(
    name: &'a str,
    source: &'a Path,
    scratch: &'a Path,
    (jobs, entry_points): (usize, bool),
    bytes: u64,
) -> Candidate<'a> {
    let jobs = NonZeroUsize::new(jobs).expect("a thread");
    let mut options = Options::new(source, scratch.join("packed"));
    (options.jobs, options.entry_points) = (jobs, entry_points);
    let written = options.destination.clone();
    let run = move || {
        let summary = pack(&options, &()).expect("a pack");
        assert_eq!(summary.source_bytes, bytes);
        bytes as f64
    };
    Candidate::new(name, run).after(move || remove(&written))
}

/// Checks that all images are packed and, if requested, that most have entry points. Small images have none.
fn check(source: &Path, scratch: &Path, images: u64) {
    for entry_points in [false, true] {
        let mut options = Options::new(source, scratch.join("packed"));
        options.entry_points = entry_points;
        let summary = pack(&options, &()).expect("a pack");
        assert_eq!(summary.split.records() + summary.rejected, images);
        let dataset = Dataset::open(&options.destination).expect("a dataset");
        let split = &dataset.splits()[0];
        let entered = |&id: &u64| {
            let (number, row) = split.locate(id).expect("a record");
            let shard = split.shard(number).expect("a shard");
            let entries = shard.variable(index::JPEG_ENTRIES).expect("an index");
            entries.and_then(|column| column.get(row)).is_some_and(|entries| !entries.is_empty())
        };
        let entered = (0..split.len()).filter(entered).count() as u64;
        remove(&options.destination);
        assert!(if entry_points { entered > images / 2 } else { entered == 0 }, "{entered} of {images}");
    }
}

/// Plans a list of hard links to one image.
fn list(source: &Path, scratch: &Path) {
    let first = plan(&Options::new(source, scratch.join("plan"))).expect("a source");
    let folder = scratch.join("links");
    fs::create_dir_all(&folder).expect("a folder");
    let image = folder.join("image.jpg");
    fs::write(&image, vec![0; (first.source_bytes() / first.images()) as usize]).expect("an image");
    let mut text = String::from("path,label,weight\n");
    // Some file systems allow at most 65,000 hard links per file.
    for i in 0..LIST {
        let name = format!("{:02}-{i:06}.jpg", i % 10);
        if i % 10_000 == 0 {
            fs::copy(&image, folder.join("original.jpg")).expect("an image");
            fs::rename(folder.join("original.jpg"), &image).expect("an image");
        }
        fs::hard_link(&image, folder.join(&name)).expect("a hard link");
        text += &format!("{name},class {},{}.5\n", i % 1000, i);
    }
    fs::write(folder.join("list.csv"), text).expect("a list");
    for (what, source) in [("list", folder.join("list.csv")), ("flat folder", folder.clone())] {
        let start = Instant::now();
        let mut options = Options::new(source, scratch.join("plan"));
        options.shards = Shards::Size(256 << 20);
        let planned = plan(&options).expect("a plan");
        let seconds = start.elapsed().as_secs_f64();
        assert!(planned.images() as usize >= LIST, "{}", planned.images());
        println!("plan of a {what} of {LIST} hard links: {seconds:.2} s; peak memory {} kB", peak_memory());
    }
}

/// Returns the peak resident memory of this process in kB.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".to_owned(), |line| line.trim().trim_end_matches(" kB").to_owned())
}
