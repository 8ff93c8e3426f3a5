//! Packing, with progress. Ctrl-C ends it once the images in work are done; the same call resumes after the last finished
//! shard.

use crate::config::{Size, float_range, one_of, truncated};
use crate::error;
use crate::keypoints::KeypointsOption;
use crate::process::interruptible;
use crate::progress::Counts;
use crate::writer::ArrayOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shardtool_format::manifest::DType;
use shardtool_format::{BoxFormat, BoxUnit};
use shardtool_pack::{
    AdoptOptions, Annotated, ArrayColumn, DestinationError, IndexedAs, JpegLayout, MemberKey, OnError, Options, Part,
    PixelStore, Progress, Resize, Shards, SourceKind, SplitNames, Step, Summary, indexed_as,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Arguments of `shardtool.pack`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PackOptions {
    source: PathBuf,
    destination: PathBuf,
    split: Option<String>,
    splits: String,
    shard_size: Option<Size>,
    shards: Option<u64>,
    seed: Option<u64>,
    jobs: Option<std::num::NonZeroUsize>,
    classes: Option<PathBuf>,
    kind: Option<String>,
    map: Vec<(String, String)>,
    member_key: Option<String>,
    label_offset: i64,
    jpeg: String,
    columns: Vec<(String, String)>,
    fps: Option<f32>,
    arrays: Vec<ArrayOptions>,
    boxes: String,
    first_pixel: u8,
    box_unit: Option<String>,
    annotated: Option<String>,
    keypoints: Option<KeypointsOption>,
    images: Option<PathBuf>,
    pixels: String,
    zstd_level: i32,
    resize_shorter: Option<u32>,
    max_side: Option<u32>,
    float_range: Option<(f64, f64)>,
    strip_metadata: bool,
    truncated: String,
    quality: u8,
    on_error: String,
    allow_empty: bool,
    force: bool,
    jpeg_entries: bool,
    sha256: bool,
    ignore_times: bool,
    single_writer: bool,
    wait: f64,
    /// Whether to show a bar on stderr.
    progress: bool,
    /// Function that shows the progress instead of a bar.
    report: Option<Py<PyAny>>,
}

const KINDS: [(&str, SourceKind); 11] = [
    ("folder", SourceKind::Folder),
    ("clips", SourceKind::Clips),
    ("list", SourceKind::List),
    ("tfrecord", SourceKind::Tfrecord),
    ("webdataset", SourceKind::Webdataset),
    ("parquet", SourceKind::Parquet),
    ("mds", SourceKind::Mds),
    ("coco", SourceKind::Coco),
    ("voc", SourceKind::Voc),
    ("yolo", SourceKind::Yolo),
    ("pairs", SourceKind::Pairs),
];

/// Converts the options `box_unit` and `annotated`.
pub(crate) fn coordinates(
    py: Python<'_>,
    unit: Option<String>,
    annotated: Option<String>,
) -> PyResult<(Option<BoxUnit>, Option<Annotated>)> {
    let units = BoxUnit::ALL.map(|unit| (unit.name(), unit));
    let images = [Annotated::Coded, Annotated::Upright].map(|image| (image.name(), image));
    let unit = unit.map(|name| one_of(py, "box_unit", &name, &units)).transpose()?;
    Ok((unit, annotated.map(|name| one_of(py, "annotated", &name, &images)).transpose()?))
}

impl PackOptions {
    pub(crate) fn options(self, py: Python<'_>) -> PyResult<Options> {
        let mut options = Options::new(self.source, self.destination);
        options.split = self.split;
        let names = [
            ("auto", SplitNames::Auto),
            ("names", SplitNames::Names),
            ("lists", SplitNames::Lists),
            ("none", SplitNames::Ignored),
        ];
        options.split_names = one_of(py, "splits", &self.splits, &names)?;
        options.shards = match (self.shards, self.shard_size) {
            (Some(count), None) => Shards::Count(count),
            (None, Some(size)) => Shards::Size(size.bytes(py, "shard_size")?),
            (None, None) => options.shards,
            (Some(_), Some(_)) => return Err(error::option(py, "give `shards` or `shard_size`, not both")),
        };
        options.from = self.kind.map(|kind| one_of(py, "kind", &kind, &KINDS)).transpose()?;
        options.map = self.map;
        let dots = [MemberKey::FirstDot, MemberKey::LastDot].map(|dot| (dot.name(), dot));
        options.member_key = self.member_key.map(|dot| one_of(py, "member_key", &dot, &dots)).transpose()?;
        options.label_offset = self.label_offset;
        let layouts = [("keep", JpegLayout::Keep), ("optimize", JpegLayout::Optimize)];
        options.jpeg = one_of(py, "jpeg", &self.jpeg, &layouts)?;
        options.seed = self.seed;
        options.jobs = self.jobs.unwrap_or(options.jobs);
        options.classes = self.classes;
        let kinds = DType::ALL.map(|kind| (kind.name(), kind));
        for (name, kind) in self.columns {
            match kind.as_str() {
                "file" => options.files.push(name),
                "frames" => options.frames.push(name),
                "flow" => options.arrays.push(ArrayColumn::of_flow(name)),
                kind => options.columns.push((name, one_of(py, "columns", kind, &kinds)?)),
            }
        }
        options.fps = self.fps;
        options.first_pixel = self.first_pixel;
        for array in self.arrays {
            options.arrays.push(array.column(py)?);
        }
        (options.box_unit, options.annotated) = coordinates(py, self.box_unit, self.annotated)?;
        options.boxes = one_of(py, "boxes", &self.boxes, &BoxFormat::ALL.map(|format| (format.name(), format)))?;
        options.keypoints = self.keypoints.map(KeypointsOption::into_keypoints);
        options.images = self.images;
        let zstd = PixelStore::RawZstd { level: self.zstd_level };
        let stores = [("encoded", PixelStore::Encoded), ("raw", PixelStore::Raw), ("raw-zstd", zstd)];
        options.pixels = one_of(py, "pixels", &self.pixels, &stores)?;
        options.resize = match (self.resize_shorter, self.max_side) {
            (Some(_), Some(_)) => return Err(error::option(py, "give `resize_shorter` or `max_side`, not both")),
            (shorter, longer) => shorter.map(Resize::Shorter).or(longer.map(Resize::MaxSide)),
        };
        options.float_range = float_range(py, self.float_range)?;
        options.strip_metadata = self.strip_metadata;
        options.truncated = truncated(py, &self.truncated)?;
        options.quality = self.quality;
        options.on_error = one_of(py, "on_error", &self.on_error, &[("skip", OnError::Skip), ("fail", OnError::Fail)])?;
        options.allow_empty = self.allow_empty;
        options.force = self.force;
        options.entry_points = self.jpeg_entries;
        options.sha256 = self.sha256;
        options.ignore_times = self.ignore_times;
        options.single_writer = self.single_writer;
        let wait = Duration::try_from_secs_f64(self.wait);
        options.wait =
            wait.map_err(|_| error::option(py, &format!("`wait` is {}: expected seconds, at least 0", self.wait)))?;
        Ok(options)
    }
}

/// Counts finished images, shows a bar on the terminal, and ends the run after Ctrl-C.
struct Watch {
    bar: Option<shardtool_cli::Images>,
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
}

impl Progress for Watch {
    fn total(&self, images: u64, bytes: u64) {
        self.counts.set_total(images);
        self.bar.iter().for_each(|bar| bar.total(images, bytes));
    }

    fn done(&self, images: u64, bytes: u64) {
        self.counts.advance(images, bytes);
        self.bar.iter().for_each(|bar| bar.done(images, bytes));
    }

    fn waiting(&self, waited: Duration, holder: &DestinationError) {
        self.bar.iter().for_each(|bar| bar.waiting(waited, holder));
    }

    fn after(&self, _step: Step) -> ControlFlow<()> {
        if self.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Calls a function of the library with options and progress.
fn watched<T: Send + 'static>(
    py: Python<'_>,
    options: PackOptions,
    call: impl FnOnce(&Options, &Watch) -> Result<T, shardtool_pack::Error> + Send + 'static,
) -> PyResult<T> {
    let (progress, report) = (options.progress, options.report.as_ref().map(|report| report.clone_ref(py)));
    let options = options.options(py)?;
    let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
    let bar = progress.then(|| shardtool_cli::Images::new("packed"));
    let watch = Watch { bar, counts: counts.clone(), stop: stop.clone() };
    let work = move || {
        let packed = call(&options, &watch);
        watch.bar.iter().for_each(shardtool_cli::Images::finish);
        packed
    };
    let stop = || stop.store(true, Ordering::Relaxed);
    let packed = interruptible(py, work, stop, |py| counts.report(py, report.as_ref()))?;
    packed.map_err(|e| error::pack(py, e))
}

/// Packs one part of a split, and returns a summary as a dict.
#[pyfunction]
pub(crate) fn pack_part<'py>(
    py: Python<'py>,
    options: PackOptions,
    number: u32,
    count: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let wrong = || error::option(py, &format!("`part` is ({number}, {count}): expected (i, n) with 0 <= i < n"));
    let part = Part::new(number, count).ok_or_else(wrong)?;
    let packed = watched(py, options, move |options, watch| shardtool_pack::pack_part(options, part, watch))?;
    let dict = PyDict::new(py);
    dict.set_item("planned_shards", packed.planned_shards)?;
    dict.set_item("shards", packed.shards)?;
    dict.set_item("resumed_shards", packed.resumed_shards)?;
    dict.set_item("images", packed.records)?;
    dict.set_item("bytes", packed.bytes)?;
    dict.set_item("rejected", packed.rejected)?;
    dict.set_item("already_complete", packed.already_complete)?;
    dict.set_item("truncated", packed.truncated)?;
    dict.set_item("converted_to_png", packed.converted)?;
    dict.set_item("metadata_removed", packed.stripped)?;
    dict.set_item("reduced_to_rgb8", packed.reduced)?;
    Ok(dict)
}

/// Writes the plans of a pack in parts. Returns of each split its name, the numbers of its images and shards, and whether it is
/// complete.
#[pyfunction]
pub(crate) fn write_plans(py: Python<'_>, options: PackOptions) -> PyResult<Vec<(String, u64, usize, bool)>> {
    let plans = watched(py, options, |options, watch| shardtool_pack::write_plans(options, watch))?;
    let one = |(plan, complete): (shardtool_pack::Plan, bool)| {
        (plan.split().to_owned(), plan.images(), plan.shards().count(), complete)
    };
    Ok(plans.into_iter().map(one).collect())
}

/// Packs images into the splits of a dataset, and returns a summary of each as a dict.
#[pyfunction]
pub(crate) fn pack<'py>(py: Python<'py>, options: PackOptions) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let summaries = watched(py, options, |options, watch| shardtool_pack::pack_splits(options, watch))?;
    summaries.into_iter().map(|summary| summary_to_dict(py, summary)).collect()
}

/// Returns the name of the kind of a source, if it is one.
#[pyfunction]
pub(crate) fn source_kind(py: Python<'_>, path: PathBuf) -> PyResult<Option<&'static str>> {
    let kind = py.detach(|| shardtool_pack::source_kind(&path)).map_err(|e| error::pack(py, e))?;
    Ok(kind.and_then(|kind| KINDS.iter().find(|(_, known)| *known == kind)).map(|(name, _)| *name))
}

/// Describes a source in virtual shards. Returns the dataset, and a summary of each split as a dict.
#[pyfunction]
pub(crate) fn index<'py>(
    py: Python<'py>,
    options: PackOptions,
    sources: Vec<String>,
) -> PyResult<(std::ffi::OsString, Vec<Bound<'py, PyDict>>)> {
    let indexed = watched(py, options, move |options, watch| match indexed_as(&options.source, options.from)? {
        IndexedAs::VirtualShards => shardtool_pack::index_source(options, &sources, watch).map(Ok),
        IndexedAs::Shards(files) => {
            let adopting = AdoptOptions::of(options)?;
            let folder = || files.first().and_then(|file| file.parent()).map(Path::to_owned).unwrap_or_default();
            let dataset = adopting.out.clone().unwrap_or_else(folder);
            let splits = shardtool_pack::adopt(&files, &adopting, watch)?;
            let classes = shardtool_read::Dataset::open(&dataset)?.manifest().classes.len() as u64;
            Ok(Err((dataset, splits, classes)))
        }
    })?;
    let (dataset, summaries) = match indexed {
        Ok(indexed) => (indexed.dataset, indexed.splits),
        Err((dataset, splits, classes)) => {
            let summaries = splits.into_iter().map(|split| Summary::of_shards(split, classes)).collect();
            (dataset, summaries)
        }
    };
    let dicts = summaries.into_iter().map(|summary| summary_to_dict(py, summary)).collect::<PyResult<_>>()?;
    Ok((dataset.into_os_string(), dicts))
}

fn summary_to_dict(py: Python<'_>, summary: Summary) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("split", &summary.split.name)?;
    dict.set_item("samples", summary.samples)?;
    dict.set_item("images", summary.split.records())?;
    dict.set_item("shards", summary.split.shards.len())?;
    dict.set_item("bytes", summary.split.bytes())?;
    dict.set_item("classes", summary.classes)?;
    dict.set_item("fingerprint", format!("{:08x}", summary.split.fingerprint()))?;
    dict.set_item("rejected", summary.rejected)?;
    // As text: `pathlib` removes a slash of a URL.
    dict.set_item("rejected_file", summary.rejected_file.map(PathBuf::into_os_string))?;
    dict.set_item("left_out", summary.left_out)?;
    dict.set_item("resumed_shards", summary.resumed_shards)?;
    dict.set_item("already_complete", summary.already_complete)?;
    dict.set_item("truncated", summary.truncated)?;
    dict.set_item("converted_to_png", summary.converted)?;
    dict.set_item("metadata_removed", summary.stripped)?;
    dict.set_item("reduced_to_rgb8", summary.reduced)?;
    Ok(dict)
}
