//! `shardtool demo`.

mod photo;

use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Progress;
use crate::text;
use anyhow::{Context, ensure};
use rayon::prelude::*;
use shardtool_pack::{self as pack, Options, Shards};
use shardtool_read::verify::{self, Report};
use shardtool_read::{Dataset, Split};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Try it: generates photographs, packs and verifies them, damages a copy, reads everything back
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Keep everything in this folder, which does not exist yet or is empty [default: a temporary folder, removed at the end]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

const CLASSES: [&str; 6] = ["badger", "heron", "lizard", "owl", "teapot", "tractor"];
/// Photographs of each class.
const EACH: u64 = 60;
const SHARDS: u64 = 4;

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let temporary = || std::env::temp_dir().join(format!("shardtool-demo-{}", std::process::id()));
    let destination = arguments.keep.clone().unwrap_or_else(temporary);
    // Its files appear in the folder at the end; without `--keep` they are removed instead.
    let folder = pack::Output::new(&destination, false)?;
    let (photos, dataset) = (folder.path().join("photos"), folder.path().join("dataset"));

    writeln!(out, "1. Photographs: {} of {} classes, generated", EACH * CLASSES.len() as u64, CLASSES.len())?;
    let bytes = make(&folder)?;
    writeln!(out, "   {} in {}", text::bytes(bytes), destination.join("photos").display())?;

    writeln!(out, "2. shardtool pack photos dataset --shards {SHARDS}")?;
    let mut options = Options::new(&photos, &dataset);
    options.shards = Shards::Count(SHARDS);
    let start = Instant::now();
    let summary = pack::pack(&options, &())?;
    let rate = summary.split.records() as f64 / start.elapsed().as_secs_f64();
    let (images, shards) = (summary.split.records(), summary.split.shards.len());
    writeln!(out, "   {images} images into {shards} TFRecord shards, {} images/s", text::count(rate as u64))?;

    writeln!(out, "3. shardtool verify dataset --decode")?;
    let (report, seconds) = verified(&dataset)?;
    ensure!(report.findings.is_empty(), "the demo's own dataset is damaged: {:?}", report.findings);
    let rate = report.bytes as f64 / seconds / 1e6;
    writeln!(out, "   {} records good, every image decodes, {rate:.0} MB/s", report.good_records)?;

    writeln!(out, "4. One bit of a copy flipped, then shardtool verify")?;
    let copy = damaged_copy(&dataset, &folder.path().join("damaged"))?;
    let (report, _) = verified(&copy)?;
    ensure!(!report.findings.is_empty(), "the flipped bit was not found");
    for damage in &report.findings {
        let key = damage.key.as_deref().unwrap_or("unknown");
        let offset = damage.offset.unwrap_or(0);
        let file = damage.file.file_name().unwrap_or_default().to_string_lossy();
        writeln!(out, "   found: {} in {file}, byte {offset}, key {key}", damage.name())?;
        let (expected, found) = (damage.expected.as_deref(), damage.found.as_deref());
        writeln!(out, "          expected {}, found {}", expected.unwrap_or("-"), found.unwrap_or("-"))?;
    }
    writeln!(out, "   {} other records of the copy are good", report.good_records)?;

    writeln!(out, "5. Every image read back in another order and compared with its file")?;
    let split = Dataset::open(&dataset)?.split("train")?.clone();
    let start = Instant::now();
    let read = compare(&split, &photos)?;
    let rate = read as f64 / start.elapsed().as_secs_f64() / 1e6;
    writeln!(out, "   {} of {} identical, {rate:.0} MB/s", split.len(), split.len())?;

    if arguments.keep.is_some() {
        folder.publish(&())?;
    }
    writeln!(out, "\nNow with your images: shardtool pack FOLDER DATASET, then shardtool info DATASET")?;
    writeln!(out, "FOLDER holds one folder of images for each class. shardtool help lists all commands.")?;
    Ok(Exit::Success)
}

/// Writes the photographs into class folders below `photos` and returns their size in bytes.
fn make(folder: &pack::Output) -> anyhow::Result<u64> {
    let progress = Progress::new("made", "images", EACH * CLASSES.len() as u64);
    let sizes = (0..EACH * CLASSES.len() as u64).into_par_iter().map(|n| {
        let (class, number) = (n as usize % CLASSES.len(), n / CLASSES.len() as u64);
        let jpeg = photo::jpeg(class as u64, number);
        let path = Path::new("photos").join(CLASSES[class]).join(format!("{number:03}.jpg"));
        let written = folder.create(&path).and_then(|mut file| file.write_all(&jpeg));
        written.with_context(|| format!("cannot write {}", folder.path().join(&path).display()))?;
        progress.advance(1, jpeg.len() as u64);
        Ok(jpeg.len() as u64)
    });
    let bytes = sizes.sum::<anyhow::Result<u64>>();
    progress.finish();
    bytes
}

/// Verifies a dataset; returns the report and the time in seconds.
fn verified(path: &Path) -> anyhow::Result<(Report, f64)> {
    let dataset = Dataset::open(path)?;
    let start = Instant::now();
    let report = {
        let mut options = verify::Options::default();
        options.decode = true;
        verify::verify(&dataset, &options)
    };
    Ok((report, start.elapsed().as_secs_f64()))
}

/// Copies a dataset and flips one bit in the middle of its second shard.
fn damaged_copy(dataset: &Path, copy: &Path) -> anyhow::Result<PathBuf> {
    for folder in ["", "_index"] {
        std::fs::create_dir_all(copy.join(folder))?;
        for entry in std::fs::read_dir(dataset.join(folder))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                std::fs::copy(entry.path(), copy.join(folder).join(entry.file_name()))?;
            }
        }
    }
    let shard = copy.join(shardtool_format::names::shard_file("train", 1));
    let mut bytes = std::fs::read(&shard)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&shard, bytes)?;
    Ok(copy.to_owned())
}

/// Compares every image with the file that its key names; returns the bytes read.
fn compare(split: &Split, photos: &Path) -> anyhow::Result<u64> {
    // 7919 is prime, so multiples of it visit every record once.
    let (records, step) = (split.len(), 7919);
    let sizes = (0..records).into_par_iter().map(|q| {
        let record = split.get(q * step % records)?;
        let key = String::from_utf8(record.key()?.into_owned())?;
        let image = record.image()?.context("a record without an image")?;
        ensure!(image == std::fs::read(photos.join(&key))?, "{key} differs from the packed file");
        Ok(image.len() as u64)
    });
    sizes.sum()
}
