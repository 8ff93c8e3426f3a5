//! `shardtool pack`.

use crate::entries::EntriesArgument;
use crate::progress::Images;
use crate::status::Status;
use crate::{size, text};
use serde_json::json;
use shardtool_decode::FloatRange;
use shardtool_format::manifest::Kind;
use shardtool_pack::{
    self as pack, BoxFormat, JpegLayout, OnError, Optimized, Options, PixelStore, Plan, Resize, Shards, SourceKind,
    Summary,
};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Pack images into a dataset: class folders, a flat folder, a list, TFRecord, WebDataset, Parquet, MDS, or COCO
///
/// Archives (TFRecord, WebDataset tar, Parquet, Mosaic MDS) are told by content: one file, a folder of them, or a glob in
/// quotes. All their fields become features; each file fills shards of its own.
///
/// A list is a CSV file with a header or a JSONL file; its column `path` names the images, `label` their class, `key`
/// their key, and all other columns become features. JPEG, PNG, WebP, GIF, BMP and TIFF files go in untouched, unless
/// an option says otherwise. A killed pack, run again, goes on where it was; a complete one, run again, writes nothing.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of images, list, or archives
    source: PathBuf,
    /// Folder of the dataset; an existing one gets a further split
    destination: PathBuf,
    /// Name of the split
    #[arg(long, default_value = "train")]
    split: String,
    /// What SOURCE is, instead of what its content tells
    #[arg(long, value_enum, value_name = "KIND")]
    from: Option<From>,
    /// A field of archives under our name: image, label, key, class, or any feature's. May be repeated
    #[arg(long, value_parser = map, value_name = "OURS=THEIRS")]
    map: Vec<(String, String)>,
    /// What to subtract from an archive's labels to get class ids
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true)]
    label_offset: i64,
    /// Size of shards, about
    #[arg(long, value_parser = size::parse, default_value = "256MiB", value_name = "SIZE")]
    shard_size: u64,
    /// Number of shards, instead of their size
    #[arg(long, value_name = "N", conflicts_with = "shard_size")]
    shards: Option<u64>,
    /// Seed of the order in which images are packed
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Keep the source's order
    #[arg(long, conflicts_with = "seed")]
    no_shuffle: bool,
    /// File of class names, one a line: fixes class ids
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,
    /// Type of a column, instead of the inferred one: NAME:int64, NAME:float or NAME:bytes; NAME:file for a list's column
    /// that names files, whose bytes become the feature (masks)
    #[arg(long = "column", value_parser = column, value_name = "NAME:TYPE")]
    columns: Vec<(String, ColumnType)>,
    /// How boxes of `objects` are written
    #[arg(long, value_enum, default_value_t = Boxes::Xywh)]
    boxes: Boxes,
    /// Folder of the images of a COCO file [default: the file's own]
    #[arg(long, value_name = "FOLDER")]
    images: Option<PathBuf>,
    /// Make larger images smaller: shorter side to N pixels, encoded again as JPEG
    #[arg(long, value_name = "N")]
    resize_shorter: Option<u32>,
    /// Make larger images smaller: longer side to N pixels, encoded again as JPEG
    #[arg(long, value_name = "N", conflicts_with = "resize_shorter")]
    max_side: Option<u32>,
    /// Quality of images that are encoded again, 1 to 100
    #[arg(long, default_value_t = 90, value_name = "Q")]
    quality: u8,
    /// Range of floating-point samples (TIFF) that is scaled to 0 to 255 where pixels are decoded [default: rejected]
    #[arg(long, value_parser = float_range, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    float_range: Option<FloatRange>,
    /// How JPEGs are laid out; coefficients and pixels never change
    #[arg(long, value_enum, default_value_t = Layout::Keep, conflicts_with = "pixels")]
    jpeg: Layout,
    /// Store decoded RGB: raw, or raw-zstd[:LEVEL]
    #[arg(long, value_parser = pixels, value_name = "KIND")]
    pixels: Option<PixelStore>,
    #[command(flatten)]
    entries: EntriesArgument,
    /// What to do with an input that cannot be packed
    #[arg(long, value_enum, default_value_t = OnBadInput::Skip)]
    on_error: OnBadInput,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Replace the split, or what an interrupted pack of other inputs left
    #[arg(long)]
    force: bool,
    /// Print what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum OnBadInput {
    /// List it in rejected-<split>.jsonl, go on, exit with status 1
    Skip,
    /// Stop at the first, exit with status 1
    Fail,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Boxes {
    /// Left, top, width, height in pixels, as in COCO
    Xywh,
    /// Left, top, right, bottom in pixels, as in Pascal VOC
    Xyxy,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Layout {
    /// Byte for byte as they are
    Keep,
    /// Smaller by better Huffman tables and without metadata; progressive ones as baseline, so that crops decode only
    /// their rows
    Optimize,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum From {
    /// Class folders, or a flat folder
    Folder,
    /// CSV with a header, or JSONL
    List,
    /// TFRecord files of tf.train.Example, also gzip or zlib
    Tfrecord,
    /// WebDataset tars, also .tar.gz and .tar.zst
    Webdataset,
    /// Parquet with images as Hugging Face lays them out, or as bytes
    Parquet,
    /// Mosaic MDS shards with their index.json
    Mds,
    /// A COCO annotation file
    Coco,
}

fn map(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(ours, theirs)| !ours.is_empty() && !theirs.is_empty());
    let (ours, theirs) = pair.ok_or("expected OURS=THEIRS, for example image=photo/bytes")?;
    Ok((ours.to_owned(), theirs.to_owned()))
}

fn float_range(text: &str) -> Result<FloatRange, String> {
    let ends = text.split_once(',').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    let range = ends.and_then(|(low, high)| FloatRange::new(low, high));
    range.ok_or_else(|| "expected LOW,HIGH, two finite numbers with LOW < HIGH, for example 0,1".to_owned())
}

#[derive(Clone, Copy)]
enum ColumnType {
    Values(Kind),
    /// Paths of files, whose bytes are the values.
    File,
}

fn column(text: &str) -> Result<(String, ColumnType), String> {
    let kinds = [Kind::Int64, Kind::Float, Kind::Bytes];
    let of = |text: &str| match text {
        "file" => Some(ColumnType::File),
        text => kinds.into_iter().find(|kind| kind.name() == text).map(ColumnType::Values),
    };
    let parts = text.rsplit_once(':').and_then(|(name, text)| Some((name, of(text)?)));
    let (name, of) = parts.ok_or("expected NAME:int64, NAME:float, NAME:bytes or NAME:file")?;
    Ok((name.to_owned(), of))
}

fn pixels(text: &str) -> Result<PixelStore, String> {
    match text.split_once(':') {
        None if text == "raw" => Ok(PixelStore::Raw),
        // zstd's own default level.
        None if text == "raw-zstd" => Ok(PixelStore::RawZstd { level: 3 }),
        Some(("raw-zstd", level)) => {
            let level = level.parse().ok().filter(|level| (1..=22).contains(level));
            level.map(|level| PixelStore::RawZstd { level }).ok_or("zstd levels are 1 to 22".to_owned())
        }
        _ => Err("expected raw, raw-zstd or raw-zstd:LEVEL".to_owned()),
    }
}

impl Arguments {
    fn options(&self) -> Options {
        let mut options = Options::new(&self.source, &self.destination);
        options.split = self.split.clone();
        options.from = self.from.map(|from| match from {
            From::Folder => SourceKind::Folder,
            From::List => SourceKind::List,
            From::Tfrecord => SourceKind::Tfrecord,
            From::Webdataset => SourceKind::Webdataset,
            From::Parquet => SourceKind::Parquet,
            From::Mds => SourceKind::Mds,
            From::Coco => SourceKind::Coco,
        });
        options.map = self.map.clone();
        options.label_offset = self.label_offset;
        options.shards = self.shards.map_or(Shards::Size(self.shard_size), Shards::Count);
        options.seed = (!self.no_shuffle).then_some(self.seed);
        options.classes = self.classes.clone();
        for (name, of) in self.columns.iter().cloned() {
            match of {
                ColumnType::Values(kind) => options.columns.push((name, kind)),
                ColumnType::File => options.files.push(name),
            }
        }
        options.boxes = match self.boxes {
            Boxes::Xywh => BoxFormat::Xywh,
            Boxes::Xyxy => BoxFormat::Xyxy,
        };
        options.images = self.images.clone();
        options.resize = self.resize_shorter.map(Resize::Shorter).or(self.max_side.map(Resize::MaxSide));
        options.quality = self.quality;
        options.float_range = self.float_range;
        options.pixels = self.pixels.unwrap_or(PixelStore::Encoded);
        options.jpeg = match self.jpeg {
            Layout::Keep => JpegLayout::Keep,
            Layout::Optimize => JpegLayout::Optimize,
        };
        options.jobs = self.jobs.unwrap_or(options.jobs);
        options.force = self.force;
        options.entry_points = self.entries.written();
        options.on_error = match self.on_error {
            OnBadInput::Skip => OnError::Skip,
            OnBadInput::Fail => OnError::Fail,
        };
        options
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Status> {
    let options = arguments.options();
    if arguments.dry_run {
        return match pack::plan(&options) {
            Ok(plan) => print_plan(arguments, &plan),
            Err(error) => failed(error),
        };
    }
    let progress = Images::new("packed");
    let packed = pack::pack(&options, &progress);
    progress.finish();
    match packed {
        Ok(summary) => {
            print_summary(arguments, &summary, progress.seconds())?;
            Ok(if summary.rejected > 0 { Status::Finding } else { Status::Good })
        }
        Err(error) => failed(error),
    }
}

/// A rejected input under `--on-error fail` is a finding; everything else could not run.
fn failed(error: pack::Error) -> anyhow::Result<Status> {
    match error {
        pack::Error::Rejected(_) | pack::Error::RejectedBefore { .. } => {
            eprintln!("error: {error}");
            Ok(Status::Finding)
        }
        error => Err(error.into()),
    }
}

fn print_plan(arguments: &Arguments, plan: &Plan) -> anyhow::Result<Status> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let features: Vec<_> = plan.features().iter().map(|f| (f.name.clone(), f.kind.name())).collect();
    let rejected: Vec<_> = plan.rejected().iter().map(|r| (r.input.clone(), r.reason.to_string())).collect();
    if arguments.json {
        let shard = |s: pack::PlannedShard| json!({"file": s.file, "images": s.images, "source_bytes": s.source_bytes});
        let shards: Vec<_> = plan.shards(&arguments.split).map(shard).collect();
        let feature = |(name, kind): &(String, &str)| json!({"name": name, "type": kind});
        let reject = |(input, reason): &(String, String)| json!({"input": input, "reason": reason});
        let document = json!({
            "split": arguments.split, "images": plan.images(), "source_bytes": plan.source_bytes(),
            "classes": plan.classes(), "features": features.iter().map(feature).collect::<Vec<_>>(), "shards": shards,
            "rejected": rejected.iter().map(reject).collect::<Vec<_>>(),
        });
        writeln!(out, "{document:#}")?;
    } else {
        let (images, bytes) = (text::plural(plan.images(), "image"), text::bytes(plan.source_bytes()));
        let classes = text::plural_irregular(plan.classes().len() as u64, "class", "classes");
        writeln!(out, "would pack {images} of {classes}, {bytes}, as split {}:", arguments.split)?;
        for shard in plan.shards(&arguments.split) {
            let bytes = text::bytes(shard.source_bytes);
            writeln!(out, "  {:<28} {:>12}  {bytes:>9}", shard.file, text::plural(shard.images, "image"))?;
        }
        for (input, reason) in &rejected {
            writeln!(out, "  rejected: {}: {reason}", text::printable(input.as_bytes()))?;
        }
        writeln!(out, "Nothing was written.")?;
    }
    out.flush()?;
    Ok(if rejected.is_empty() { Status::Good } else { Status::Finding })
}

fn print_summary(arguments: &Arguments, summary: &Summary, seconds: f64) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let split = &summary.split;
    let (images, rate) = (split.records() as f64 / seconds.max(1e-6), summary.source_bytes as f64 / seconds.max(1e-6));
    if arguments.json {
        let document = json!({
            "destination": arguments.destination.to_string_lossy(), "split": split.name, "images": split.records(),
            "shards": split.shards.len(), "bytes": split.bytes(), "classes": summary.classes,
            "fingerprint": format!("{:08x}", split.fingerprint()), "rejected": summary.rejected,
            "rejected_file": summary.rejected_file, "resumed_shards": summary.resumed_shards,
            "already_complete": summary.already_complete,
            "source_bytes": summary.source_bytes, "seconds": seconds,
            "jpeg": summary.optimized.as_ref().map(optimized_json),
        });
        writeln!(out, "{document:#}")?;
        return Ok(());
    }
    let done = if summary.already_complete { "already complete:" } else { "packed" };
    writeln!(
        out,
        "{done} {} of {} {} {} ({}) of {}, split {}",
        text::plural(split.records(), if summary.with_images { "image" } else { "record" }),
        text::plural_irregular(summary.classes, "class", "classes"),
        if summary.already_complete { "in" } else { "into" },
        text::plural(split.shards.len() as u64, "shard"),
        text::bytes(split.bytes()),
        arguments.destination.display(),
        split.name
    )?;
    if !summary.with_images {
        writeln!(out, "  the source names no images: records hold its other values")?;
    }
    if summary.resumed_shards > 0 {
        let shards = text::plural(summary.resumed_shards, "shard");
        writeln!(out, "  {shards} were finished by an interrupted run already")?;
    }
    let fingerprint = split.fingerprint();
    if summary.already_complete {
        writeln!(out, "  same source and options: nothing was written; fingerprint {fingerprint:08x}")?;
    } else {
        writeln!(
            out,
            "  {seconds:.2} s, {} images/s, {:.0} MB/s; fingerprint {fingerprint:08x}",
            text::count(images as u64),
            rate / 1e6
        )?;
    }
    if let Some(optimized) = &summary.optimized {
        print_optimized(&mut out, optimized)?;
    }
    if let Some(file) = &summary.rejected_file {
        let rejected = text::plural(summary.rejected, "input");
        writeln!(out, "  {rejected} rejected: {} lists each with its reason", file.display())?;
    }
    Ok(())
}

fn optimized_json(o: &Optimized) -> serde_json::Value {
    json!({
        "optimized": o.images, "opened": o.opened, "bytes_before": o.bytes_before, "bytes_after": o.bytes_after,
        "kept": o.kept, "refused": o.refused,
    })
}

fn print_optimized(out: &mut impl Write, o: &Optimized) -> std::io::Result<()> {
    let share = 100.0 * o.bytes_after.abs_diff(o.bytes_before) as f64 / o.bytes_before.max(1) as f64;
    let change = if o.bytes_after > o.bytes_before { "more" } else { "saved" };
    let bytes = text::bytes(o.bytes_after.abs_diff(o.bytes_before));
    writeln!(out, "  {} in a better layout, {bytes} ({share:.1} %) {change}", text::plural(o.images, "JPEG"))?;
    if o.opened > 0 {
        let now = "had several scans (progressive): a crop now decodes only its rows";
        writeln!(out, "  {} of these {now}", text::count(o.opened))?;
    }
    if o.kept > 0 {
        writeln!(out, "  {} kept as they were, being smallest already", text::plural(o.kept, "JPEG"))?;
    }
    for (name, images) in &o.refused {
        writeln!(out, "  {} kept as they were: {name}", text::plural(*images, "JPEG"))?;
    }
    Ok(())
}
