//! Converts keyword arguments to a loader's configuration.

use crate::array::numbers;
use crate::buckets::{BucketOptions, PackingOptions};
use crate::classes::{self, ClassesOption};
use crate::device::{DeviceOptions, OutputOptions};
use crate::error;
use crate::function::{self, Raised};
use pyo3::prelude::*;
use shardtool_cuda::Device;
use shardtool_decode::{Channels, Depth, FloatRange, LabelDtype, Pipeline, PixelFormat, Truncated};
use shardtool_load::{
    ArrayCrop, ArrayGroup, BatchTransform, BoxFormat, BoxUnit, Clip, ClipSampling, ColumnSpec, Config, Content,
    DecodedCache, FurtherImage, FurtherKind, Images, Layout, Loader, Mixing, Objects, OnBad, PageCache,
    SCALED_DECODE_GAP, View,
};
use shardtool_order::{Balanced, Launch, List, Mixture, Order, Policy, Remainder, Replica, Source, Weighted};
use shardtool_read::Split;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `shardtool.Loader`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    batch_size: u32,
    /// Name and JSON of the list of steps of each view; `None` delivers images as stored.
    views: Option<Vec<(String, String)>>,
    /// Called on each finished image.
    function: Option<Py<PyAny>>,
    columns: Option<Vec<String>>,
    /// How classes of several splits are mapped.
    classes: Option<ClassesOption>,
    order: (String, u32, u32),
    source: Option<SourceOption>,
    seed: u64,
    remainder: Option<String>,
    policy: String,
    on_bad: Option<String>,
    max_bad: Option<u64>,
    memory_budget: Option<Size>,
    workers: Option<usize>,
    prefetch: Option<usize>,
    rank: Option<u32>,
    world_size: Option<u32>,
    local_replicas: u32,
    device: Option<DeviceOptions>,
    /// Normalisation of images on the host; `None` leaves them u8.
    output: Option<OutputOptions>,
    /// Pillow's name of the channels, and the bits of a sample.
    mode: String,
    bits: u8,
    apply_orientation: bool,
    scaled_decode: bool,
    /// Features with further images, and what each holds.
    more_images: Vec<(String, Option<String>)>,
    masks: Vec<String>,
    /// Type of the labels of `masks`.
    mask_dtype: String,
    mask_fill: Option<u16>,
    clip: Option<ClipOptions>,
    objects: Option<ObjectOptions>,
    /// Names and parameters of the transforms of batches, and the number of classes.
    mixing: Option<(Vec<MixingOption>, u32)>,
    buckets: Option<BucketOptions>,
    packing: Option<PackingOptions>,
    /// Bytes, pixels of the shorter side, and a folder.
    decoded_cache: Option<(Size, u32, Option<PathBuf>)>,
    /// Values of floating-point samples that become 0 and 255.
    float_range: Option<(f64, f64)>,
    /// What happens to a cut or damaged JPEG.
    truncated: String,
    /// Groups of arrays.
    arrays: Vec<ArrayOptions>,
    page_cache: String,
    read_ahead: Size,
    fetch_gap: Size,
    fetch_size: Size,
    starve_after: f64,
}

/// Name and parameters of a transform of batches.
type MixingOption = (String, Vec<f64>);

/// Arguments of `shardtool.Clip`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ClipOptions {
    feature: String,
    frames: u32,
    stride: u32,
    sampling: String,
    clips: u32,
}

impl ClipOptions {
    fn resolve(self, py: Python<'_>) -> PyResult<Clip> {
        let mut clip = Clip::new(self.feature, self.frames);
        (clip.stride, clip.clips) = (self.stride, self.clips);
        clip.sampling = one_of(py, "sampling", &self.sampling, &SAMPLINGS)?;
        Ok(clip)
    }
}

/// Arguments of `shardtool.Objects`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ObjectOptions {
    boxes: String,
    format: String,
    unit: String,
    properties: Vec<String>,
    keypoints: Option<String>,
    flip_index: Option<Vec<usize>>,
    min_size: f64,
    min_area: f64,
}

impl ObjectOptions {
    fn resolve(self, py: Python<'_>) -> PyResult<Objects> {
        let mut objects = Objects::default();
        objects.format = one_of(py, "format", &self.format, &BOX_FORMATS)?;
        objects.unit = one_of(py, "unit", &self.unit, &BOX_UNITS)?;
        (objects.boxes, objects.properties, objects.keypoints) = (self.boxes, self.properties, self.keypoints);
        (objects.min_size, objects.min_area) = (self.min_size, self.min_area);
        objects.flip_index = self.flip_index;
        Ok(objects)
    }
}

/// Arguments of `shardtool.Arrays`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ArrayOptions {
    features: Vec<String>,
    crop: Option<Vec<Option<u64>>>,
    random: bool,
    flip: Vec<f64>,
    rotate: Vec<(usize, usize)>,
    pad: Option<Vec<f64>>,
    image_axes: Option<(usize, usize)>,
}

impl From<ArrayOptions> for ArrayGroup {
    fn from(options: ArrayOptions) -> Self {
        let mut group = ArrayGroup::new(options.features);
        group.crop = options.crop.map(|size| ArrayCrop { size, random: options.random });
        (group.flip, group.rotate, group.pad) = (options.flip, options.rotate, options.pad);
        group.image_axes = options.image_axes;
        group
    }
}

/// Bytes, or text such as `4GiB`.
#[derive(FromPyObject)]
pub(crate) enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    pub(crate) fn bytes(&self, py: Python<'_>, option: &str) -> PyResult<u64> {
        match self {
            Size::Bytes(bytes) => Ok(*bytes),
            Size::Text(text) => {
                shardtool_cli::parse_size(text).map_err(|e| error::option(py, &format!("`{option}`: {e}")))
            }
        }
    }
}

/// Kind, little-endian numbers of 64 bits, draws.
#[derive(FromPyObject)]
struct SourceOption(String, Vec<u8>, Option<u64>);

impl SourceOption {
    fn source(self, py: Python<'_>, splits: &[Split]) -> PyResult<Source> {
        let SourceOption(kind, bytes, draws) = self;
        let records: u64 = splits.iter().map(Split::len).sum();
        let unsigned = || numbers(&bytes, u64::from_le_bytes);
        let source = match kind.as_str() {
            "list" => List::new(unsigned()?, records).map(Source::List),
            "balanced" => {
                let labels = numbers(&bytes, i64::from_le_bytes)?;
                if labels.len() as u64 != records {
                    let message = format!("`source`: {} labels for {records} records", labels.len());
                    return Err(error::option(py, &message));
                }
                Ok(Source::Balanced(Balanced::new((0..).zip(labels.iter().copied()))))
            }
            "weighted" => {
                let weights = unsigned()?;
                if weights.len() as u64 != records {
                    let message = format!("`source`: {} weights for {records} records", weights.len());
                    return Err(error::option(py, &message));
                }
                Weighted::new(weights, draws).map(Source::Weighted)
            }
            "mixture" => {
                let shares = unsigned()?;
                if shares.len() != splits.len() {
                    let message = format!("`source`: {} shares for {} splits", shares.len(), splits.len());
                    return Err(error::option(py, &message));
                }
                let sizes = splits.iter().map(Split::len);
                Mixture::new(&sizes.zip(shares).collect::<Vec<_>>(), draws).map(Source::Mixture)
            }
            _ => return Err(error::option(py, &format!("source: `{kind}` is not known"))),
        };
        source.map_err(|e| error::order(py, e))
    }
}

/// A loader's configuration before it is bound to a replica.
pub(crate) struct Resolved {
    /// With this process as the only replica.
    config: Config,
    local_replicas: u32,
    /// One device for each replica of this process, and the configuration of uploads.
    pub(crate) devices: Option<(Vec<Device>, shardtool_cuda::Config)>,
    /// Exceptions of the user's function.
    pub(crate) raised: Raised,
    /// Ragged columns that become arrays of the length of the bucket or the packed row, and what is after the values of a row.
    pub(crate) padded: Vec<(String, f64)>,
    /// Names of the classes that batches deliver.
    pub(crate) classes: Vec<String>,
}

impl Resolved {
    /// Checks the configuration before the replica is known: with the given one, else as the only one. Returns the names of the
    /// classes that batches deliver.
    fn check(&self, py: Python<'_>, given: Option<(u32, u32)>) -> PyResult<Vec<String>> {
        let (rank, world) = given.unwrap_or((0, 1));
        let (config, ranks) = self.bind(py, (rank, world, None))?;
        let check = || match config.memory_budget {
            Some(_) => Loader::plan_group(&config, &ranks).map(|plan| plan.classes),
            None => Loader::check(&config, &ranks).map(|checked| checked.class_names().to_vec()),
        };
        py.detach(check).map_err(|e| error::load(py, e))
    }
}

/// Rank, world size and local world size of this process.
pub(crate) type Place = (u32, u32, Option<u32>);

impl Resolved {
    /// Returns the configuration of the process's first replica, and the ranks of all its replicas.
    pub(crate) fn bind(&self, py: Python<'_>, (rank, world, local_world): Place) -> PyResult<(Config, Vec<u32>)> {
        let local = self.local_replicas;
        let first = rank.checked_mul(local).zip(world.checked_mul(local));
        let (first, all) = first.ok_or_else(|| error::option(py, "`local_replicas`: too many replicas"))?;
        let replica = Replica::new(first, all).map_err(|e| error::order(py, e))?;
        let mut config = self.config.clone();
        (config.replica, config.local_world) = (replica, local_world.unwrap_or(1));
        Ok((config, (first..first + local).collect()))
    }
}

/// Refuses a column that has the name of another member of the batch, since one of them would be lost.
fn check_names(py: Python<'_>, config: &Config, on_device: bool) -> PyResult<()> {
    let label = config.splits.iter().find_map(|split| split.manifest().label.as_deref());
    let mut taken = vec![("id", "the number of each record"), ("valid", "which rows have a sample")];
    if !matches!(config.content, Content::Columns) {
        taken.push(("image", "the images"));
    }
    if on_device {
        taken.push(("host", "what stays on the host"));
    }
    if label.is_some_and(|label| label != "label") {
        taken.push(("label", "the class of each record"));
    }
    if let Content::Images(images) = &config.content {
        let roles = ["boxes", "labels", "keypoints"].map(|role| (role, "what the objects in an image have"));
        taken.extend(images.objects.iter().flat_map(|_| roles));
        taken.extend((images.masks.len() == 1).then_some(("mask", "the masks")));
    }
    let columns = config.columns.iter().flatten();
    match columns.flat_map(|column| taken.iter().find(|(name, _)| *name == column.feature)).next() {
        None => Ok(()),
        Some((name, what)) => Err(error::option(
            py,
            &format!(
                "`columns`: a batch has {what} by the name {name:?}, and would lose the feature: pack it by another name"
            ),
        )),
    }
}

impl Options {
    pub(crate) fn resolve(self, py: Python<'_>, splits: Vec<Split>) -> PyResult<Resolved> {
        let first = splits.first().cloned();
        let first = first.ok_or_else(|| error::load(py, shardtool_load::Error::NoSplits))?;
        let raised = Raised::default();
        let content = match &self.views {
            Some(views) => {
                let view = |(name, json): &(String, String)| -> PyResult<View> {
                    let pipeline: Pipeline = serde_json::from_str(json).map_err(|e| error::transform(py, &e))?;
                    Ok(View { name: name.clone(), pipeline })
                };
                let mut images = Images::with_views(views.iter().map(view).collect::<PyResult<_>>()?);
                images.custom = self.function.map(|function| function::custom(function, raised.clone()));
                images.apply_orientation = self.apply_orientation;
                let further = |(feature, kind): (String, Option<String>)| {
                    let kind = kind.map(|kind| one_of(py, "more_images", &kind, &FURTHER_KINDS)).transpose()?;
                    let unstated = FurtherImage::new(&feature);
                    PyResult::Ok(kind.map_or(unstated, |kind| FurtherImage::of_kind(feature, kind)))
                };
                images.more = self.more_images.into_iter().map(further).collect::<PyResult<_>>()?;
                (images.masks, images.mask_fill) = (self.masks, self.mask_fill);
                images.mixing =
                    self.mixing.map(|(transforms, classes)| mixing(py, &transforms, classes)).transpose()?;
                if let Some((size, side, folder)) = self.decoded_cache {
                    let mut cache = DecodedCache::new(side, size.bytes(py, "decoded_cache")?);
                    cache.folder = folder;
                    images.decoded_cache = Some(cache);
                }
                images.clip = self.clip.map(|options| options.resolve(py)).transpose()?;
                images.objects = self.objects.map(|options| options.resolve(py)).transpose()?;
                images.mask_dtype = one_of(py, "mask_dtype", &self.mask_dtype, &LABEL_DTYPES)?;
                images.float_range = float_range(py, self.float_range)?;
                images.truncated = truncated(py, &self.truncated)?;
                images.reducing_gap = self.scaled_decode.then_some(SCALED_DECODE_GAP);
                let channels = one_of(py, "mode", &self.mode, &MODES)?;
                let depth = if self.bits == 16 { Depth::Sixteen } else { Depth::Eight };
                images.pixel_format = PixelFormat { channels, depth };
                let output = self.output.as_ref().map(|output| output.output(py, images.pixel_format));
                images.output = output.transpose()?;
                Content::Images(images)
            }
            None if !self.arrays.is_empty() || self.packing.is_some() => Content::Columns,
            None => Content::Records,
        };
        let mut config = Config::new(first, content, self.batch_size);
        let padded = match (&self.packing, &self.buckets) {
            (Some(packing), _) => packing.padded.clone(),
            (None, Some(buckets)) => buckets.padded.clone(),
            (None, None) => vec![],
        };
        let is_padded = |feature: &str| padded.iter().any(|(padded, _)| padded == feature);
        let layout = |feature: &str| if is_padded(feature) { Layout::Ragged } else { Layout::Auto };
        config.columns = self.columns.map(|names| {
            let label = splits.iter().find_map(|split| split.manifest().label.clone());
            let given = names.into_iter().filter(|name| label.as_ref() != Some(name)).collect::<Vec<_>>();
            label.iter().cloned().chain(given).map(|feature| ColumnSpec { layout: layout(&feature), feature }).collect()
        });
        config.classes = classes::resolve(py, self.classes)?;
        config.arrays = self.arrays.into_iter().map(ArrayGroup::from).collect();
        config.source = self.source.map(|source| source.source(py, &splits)).transpose()?;
        config.splits = splits;
        config.order = order(py, &self.order)?;
        config.packing = self.packing.map(|packing| packing.resolve(py)).transpose()?;
        config.buckets = self.buckets.map(|buckets| buckets.resolve(py)).transpose()?;
        config.seed = self.seed;
        config.policy = one_of(py, "policy", &self.policy, &POLICIES)?;
        config.remainder = self.remainder.map(|name| one_of(py, "remainder", &name, &REMAINDERS)).transpose()?;
        config.on_bad = self.on_bad.map(|name| one_of(py, "on_bad", &name, &ON_BAD)).transpose()?;
        config.page_cache = one_of(py, "page_cache", &self.page_cache, &PAGE_CACHE)?;
        config.read_ahead = self.read_ahead.bytes(py, "read_ahead")?;
        config.fetch_gap = self.fetch_gap.bytes(py, "fetch_gap")?;
        config.fetch_size = self.fetch_size.bytes(py, "fetch_size")?;
        config.max_bad = self.max_bad;
        config.memory_budget = self.memory_budget.map(|size| size.bytes(py, "memory_budget")).transpose()?;
        config.workers = self.workers;
        config.prefetch = self.prefetch;
        config.starve_after = Duration::try_from_secs_f64(self.starve_after)
            .map_err(|e| error::option(py, &format!("`starve_after`: {e}")))?;
        let devices = self.device.map(|options| options.open(py, config.starve_after)).transpose()?;
        let (local_replicas, classes) = (self.local_replicas, vec![]);
        check_names(py, &config, devices.is_some())?;
        let mut resolved = Resolved { config, local_replicas, devices, raised, padded, classes };
        resolved.classes = resolved.check(py, self.rank.zip(self.world_size))?;
        Ok(resolved)
    }
}

const POLICIES: [(&str, Policy); 3] = [("sample", Policy::Sample), ("shard", Policy::Shard), ("off", Policy::Off)];
const PAGE_CACHE: [(&str, PageCache); 2] = [("keep", PageCache::Keep), ("release", PageCache::Release)];
const REMAINDERS: [(&str, Remainder); 3] =
    [("drop", Remainder::Drop), ("pad", Remainder::Pad), ("mask", Remainder::Mask)];
const BOX_FORMATS: [(&str, BoxFormat); 3] =
    [("xyxy", BoxFormat::Xyxy), ("xywh", BoxFormat::Xywh), ("cxcywh", BoxFormat::Cxcywh)];
const BOX_UNITS: [(&str, BoxUnit); 2] = [("fraction", BoxUnit::Fraction), ("pixel", BoxUnit::Pixel)];
const FURTHER_KINDS: [(&str, FurtherKind); 2] = [("color", FurtherKind::Color), ("values", FurtherKind::Values)];
const MODES: [(&str, Channels); 2] = [("RGB", Channels::Rgb), ("L", Channels::Gray)];
const LABEL_DTYPES: [(&str, LabelDtype); 2] = [("uint8", LabelDtype::U8), ("uint16", LabelDtype::U16)];
const SAMPLINGS: [(&str, ClipSampling); 4] = [
    ("random", ClipSampling::Random),
    ("center", ClipSampling::Center),
    ("even", ClipSampling::Even),
    ("uniform", ClipSampling::Uniform),
];
const ON_BAD: [(&str, OnBad); 3] = [("error", OnBad::Error), ("mask", OnBad::Mask), ("substitute", OnBad::Substitute)];

/// Returns how batches are mixed.
fn mixing(py: Python<'_>, transforms: &[MixingOption], classes: u32) -> PyResult<Mixing> {
    let transform = |(name, parameters): &MixingOption| match (name.as_str(), &parameters[..]) {
        ("mix_up", [alpha]) => Ok(BatchTransform::MixUp { alpha: *alpha }),
        ("cut_mix", [alpha]) => Ok(BatchTransform::CutMix { alpha: *alpha }),
        ("mosaic", [p, low, high]) => Ok(BatchTransform::Mosaic { p: *p, centre: [*low, *high] }),
        _ => Err(error::option(py, &format!("`batch_transform` is {name:?} with {parameters:?}"))),
    };
    Ok(Mixing { transforms: transforms.iter().map(transform).collect::<PyResult<_>>()?, classes })
}

/// Returns the value of that name.
pub(crate) fn one_of<T: Clone>(py: Python<'_>, option: &str, name: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let known: Vec<_> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        error::option(py, &format!("`{option}` is {name:?}: expected {}", known.join(", ")))
    })
}

/// Returns what happens to a cut or damaged JPEG.
pub(crate) fn truncated(py: Python<'_>, name: &str) -> PyResult<Truncated> {
    one_of(py, "truncated", name, &[Truncated::Error, Truncated::Fill].map(|choice| (choice.name(), choice)))
}

/// Returns a range of floating-point samples.
pub(crate) fn float_range(py: Python<'_>, range: Option<(f64, f64)>) -> PyResult<Option<FloatRange>> {
    let convert = |(low, high)| {
        let message =
            || format!("`float_range` is ({low}, {high}): expected two finite numbers, the smaller one first");
        FloatRange::new(low, high).ok_or_else(|| error::option(py, &message()))
    };
    range.map(convert).transpose()
}

fn order(py: Python<'_>, (name, run, window): &(String, u32, u32)) -> PyResult<Order> {
    let at_least_one = |option, value: u32| {
        NonZeroU32::new(value).ok_or_else(|| error::load(py, shardtool_load::Error::Zero { option }))
    };
    match name.as_str() {
        "interleaved" => {
            Ok(Order::Interleaved { run: at_least_one("run", *run)?, window: at_least_one("window", *window)? })
        }
        name => one_of(py, "order", name, &[("sequential", Order::Sequential), ("shuffled", Order::Shuffled)]),
    }
}

/// Rank, world size, local world size, where they came from, and what was ignored.
type Found = (u32, u32, Option<u32>, String, Vec<String>);

/// Finds the replica of this process: as given, or from the environment.
#[pyfunction]
pub(crate) fn launch(py: Python<'_>, rank: Option<u32>, world_size: Option<u32>) -> PyResult<Found> {
    let given = rank.zip(world_size).map(|(rank, world)| Replica::new(rank, world)).transpose();
    let given = given.map_err(|e| error::order(py, e))?;
    let launch = Launch::from_env(given, |name| std::env::var(name).ok()).map_err(|e| error::order(py, e))?;
    let ignored = launch.ignored.iter().map(ToString::to_string).collect();
    let (rank, world) = (launch.replica.rank(), launch.replica.world());
    Ok((rank, world, launch.local_world, launch.launcher.to_string(), ignored))
}
