//! What a user says of a loader: pure data, with defaults and ranges, from which Python's classes and the reference page are generated.
//! Imports nothing of this crate but the memory of batches.
//!
//! | module | contents |
//! |---|---|
//! | this one | [`Config`], the whole configuration |
//! | `field` | what a batch has of each record: one of the following |
//! | `image`, `decoded_cache` | images, how pixels are decoded and delivered; the cache of decoded images |
//! | `further_image`, `mask`, `pixel_mask`, `objects` | what goes through the steps of an image with it |
//! | `clip` | frames of videos |
//! | `arrays`, `ragged_arrays` | volumes and other arrays; those that differ in length, such as point clouds |
//! | `column` | values of a feature |
//! | `tokens` | rows of several samples |
//! | `batch_transform`, `buckets` | mixing of batches; batches of one shape each |
//! | `bad_samples`, `prefetch`, `replica` | samples that cannot be read; what is read ahead; which part of an epoch a process takes |
//! | `classes` | what labels mean where splits meet |
//! | `stages`, `decimal` | members whose shares change within a run; numbers as they are written |
//! | `exclusions`, `invalid` | what cannot be combined; the errors |
//! | `device` | the devices on which batches are delivered |
//! | `size`, `number` | sizes in bytes as text; numbers that JSON lacks |
//! | `schema` | the schemas of all options |

mod arrays;
mod bad_samples;
mod batch_transform;
mod buckets;
mod classes;
mod clip;
mod column;
mod decimal;
mod decoded_cache;
mod device;
mod exclusions;
mod field;
mod further_image;
mod image;
mod invalid;
mod mask;
mod number;
mod objects;
mod pixel_mask;
mod prefetch;
mod ragged_arrays;
mod replica;
mod schema;
mod size;
mod stages;
mod tokens;

pub use arrays::{ArrayKind, Arrays};
pub use bad_samples::{BadSamples, OnBad};
pub use batch_transform::{BatchTransform, CopyPaste, Mosaic, Pairs};
pub use buckets::{AspectRatioBuckets, Buckets, LengthBuckets, Longer};
pub use classes::Classes;
pub use clip::{Clip, ClipSampling};
pub use column::{Column, Layout};
pub use decimal::Decimal;
pub use decoded_cache::DecodedCache;
pub use device::Devices;
pub(crate) use exclusions::check as check_exclusions;
pub use exclusions::{EXCLUSIONS, Exclusion, Part};
pub use field::Field;
pub use further_image::{FurtherImage, FurtherKind};
pub use image::{Custom, Image, Mode, PixelDtype, Pixels, View};
pub use invalid::InvalidOptions;
pub use mask::Mask;
pub use objects::{BOXES, CLASS_NAMES, CLASSES, KEYPOINTS, Objects, SEGMENTATION};
pub use pixel_mask::PixelMask;
pub(crate) use prefetch::DEFAULT_BATCHES;
pub use prefetch::{PageCache, Prefetch};
pub use ragged_arrays::{Axis, RaggedArrays, Select};
pub use replica::Replicas;
pub use schema::option_schemas;
pub use size::parse_size;
pub use stages::{MemberStage, Members, Stages, Start};
pub use tokens::Tokens;

use crate::buffer::{BatchAlloc, HostAlloc};
use schemars::JsonSchema;
use serde::Deserialize;
use shardtool_order::{Order, Policy, Remainder, Replica, Source};
use shardtool_read::Split;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The configuration of a [`Loader`](crate::Loader). Create one with [`Config::new`] and set what should differ.
///
/// ```no_run
/// use shardtool_decode::Pipeline;
/// use shardtool_load::{Column, Config, Image, Mask};
/// use shardtool_order::{Order, Policy};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dataset = shardtool_read::Dataset::open("dataset")?;
/// let mut config = Config::new(dataset.split("validation")?.clone(), [Image::new(Pipeline::eval(256, 224)?)], 64)
///     .with(Mask::new("mask"))
///     .with(Column::new("caption"))
///     .with_order(Order::Sequential)
///     .with_epochs(1)
///     .with_memory(512 << 20);
/// config.policy = Policy::Shard;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// The splits to read; ids count through them in this order. At least one.
    #[serde(skip)]
    pub splits: Vec<Split>,
    /// What a batch has of each record, in addition to its label, if the dataset has one. Default: the record.
    pub fields: Vec<Field>,
    /// Rows of a batch on each replica, at least 1. With buckets, at most; with packed tokens, of several samples each. Default: 1.
    #[schemars(range(min = 1))]
    pub batch_size: u32,
    /// Ways of mixing the rows of a batch, one of which is drawn for each batch. Labels then are soft: `[N, classes]` f32.
    pub batch_transform: Vec<BatchTransform>,
    /// Groups samples into batches of one shape. `None`: every batch has `batch_size` rows.
    pub buckets: Option<Buckets>,
    /// The class ids of labels, where splits meet. Default: all splits must have the same classes.
    pub classes: Classes,
    /// Which samples an epoch shows; `None` shows each sample of the splits once.
    #[serde(skip)]
    pub source: Option<Source>,
    /// Members whose shares change within the run, in place of a source.
    pub stages: Option<Stages>,
    /// The order of an epoch. Default: shuffled.
    pub order: Order,
    /// The seed of order and augmentation.
    pub seed: u64,
    /// What happens to the last step of an epoch; `None` chooses by the order ([`Remainder::default_for`]).
    pub remainder: Option<Remainder>,
    /// What happens to bad samples.
    pub bad_samples: BadSamples,
    /// How replicas share an epoch.
    pub policy: Policy,
    /// The replica of this process. Default: a world of one.
    #[serde(skip)]
    pub replica: Replica,
    /// Processes on this machine that load at the same time and share its memory and CPUs, at least 1
    /// (`LOCAL_WORLD_SIZE`). Default: 1.
    #[serde(skip)]
    pub local_world: u32,
    /// Bytes for batches, including those that the consumer holds, and for decode scratch. A given budget is never
    /// exceeded; the default one (see [`MemoryPlan`](crate::MemoryPlan)) grows for a consumer that keeps batches.
    #[serde(deserialize_with = "size::optional")]
    #[schemars(schema_with = "size::optional_schema")]
    pub memory: Option<u64>,
    /// Worker threads, at least 1; `None` is the CPUs of this process ÷ `local_world`, of which fewer are active while
    /// the consumer is slower.
    #[schemars(range(min = 1))]
    pub workers: Option<usize>,
    /// What is read and built ahead of the consumer.
    pub prefetch: Prefetch,
    /// Epochs after which [`Loader::next_batch`](crate::Loader::next_batch) returns no more batches; `None` never ends.
    #[serde(skip)]
    pub epochs: Option<u64>,
    /// Allocates the memory of images. Batches beyond the plan (see `memory`) come from [`HostAlloc`].
    #[serde(skip)]
    pub alloc: Arc<dyn BatchAlloc>,
    /// Leaves the pixels of the image unmixed and as steps leave them, for a device that mixes and normalises them:
    /// [`Batch::mix`](crate::Batch::mix) says how to mix. Everything else is mixed. `shardtool_cuda::ImageLoader` sets it.
    /// Default: no.
    #[serde(skip)]
    pub defer_pixels: bool,
    /// The folder below which `/proc` and `/sys` are read for memory limits; set by tests.
    #[doc(hidden)]
    #[serde(skip)]
    pub system_root: PathBuf,
}

impl Default for Config {
    /// Returns a configuration without splits, which must be set.
    fn default() -> Self {
        Config {
            splits: vec![],
            fields: vec![Field::Record],
            batch_size: 1,
            batch_transform: vec![],
            buckets: None,
            classes: Classes::default(),
            source: None,
            stages: None,
            order: Order::Shuffled,
            seed: 0,
            remainder: None,
            bad_samples: BadSamples::default(),
            policy: Policy::default(),
            replica: Replica::SINGLE,
            local_world: 1,
            memory: None,
            workers: None,
            prefetch: Prefetch::default(),
            epochs: None,
            alloc: Arc::new(HostAlloc),
            defer_pixels: false,
            system_root: PathBuf::from("/"),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let splits: Vec<_> = self.splits.iter().map(|split| (split.folder(), split.name())).collect();
        f.debug_struct("Config")
            .field("splits", &splits)
            .field("fields", &self.fields)
            .field("batch_size", &self.batch_size)
            .field("batch_transform", &self.batch_transform)
            .field("buckets", &self.buckets)
            .field("stages", &self.stages)
            .field("order", &self.order)
            .field("seed", &self.seed)
            .field("remainder", &self.remainder)
            .field("bad_samples", &self.bad_samples)
            .field("policy", &self.policy)
            .field("replica", &self.replica)
            .field("memory", &self.memory)
            .field("workers", &self.workers)
            .field("prefetch", &self.prefetch)
            .field("epochs", &self.epochs)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Returns a configuration that shuffles the samples of one split for one replica.
    pub fn new<F: Into<Field>>(split: Split, fields: impl IntoIterator<Item = F>, batch_size: u32) -> Self {
        let fields = fields.into_iter().map(Into::into).collect();
        Config { splits: vec![split], fields, batch_size, ..Config::default() }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, field: impl Into<Field>) -> Self {
        self.fields.push(field.into());
        self
    }

    /// Sets the order.
    #[must_use]
    pub fn with_order(self, order: Order) -> Self {
        Config { order, ..self }
    }

    /// Sets the seed of order and augmentation.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Config { seed, ..self }
    }

    /// Sets which samples an epoch shows.
    #[must_use]
    pub fn with_source(self, source: Source) -> Self {
        Config { source: Some(source), ..self }
    }

    /// Sets stages of shares, in place of a source.
    #[must_use]
    pub fn with_stages(self, stages: Stages) -> Self {
        Config { stages: Some(stages), ..self }
    }

    /// Sets what happens to the last step of an epoch.
    #[must_use]
    pub fn with_remainder(self, remainder: Remainder) -> Self {
        Config { remainder: Some(remainder), ..self }
    }

    /// Sets what happens to bad samples.
    #[must_use]
    pub fn with_bad_samples(self, bad_samples: BadSamples) -> Self {
        Config { bad_samples, ..self }
    }

    /// Sets the replica of this process.
    #[must_use]
    pub fn with_replica(self, replica: Replica) -> Self {
        Config { replica, ..self }
    }

    /// Sets the epochs after which there are no more batches.
    #[must_use]
    pub fn with_epochs(self, epochs: u64) -> Self {
        Config { epochs: Some(epochs), ..self }
    }

    /// Sets the memory budget in bytes.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        Config { memory: Some(bytes), ..self }
    }

    /// Sets the number of worker threads.
    #[must_use]
    pub fn with_workers(self, workers: usize) -> Self {
        Config { workers: Some(workers), ..self }
    }

    /// Sets what is read and built ahead of the consumer.
    #[must_use]
    pub fn with_prefetch(self, prefetch: Prefetch) -> Self {
        Config { prefetch, ..self }
    }

    /// Adds a way of mixing the rows of a batch, one of which is drawn for each batch.
    #[must_use]
    pub fn with_batch_transform(mut self, transform: BatchTransform) -> Self {
        self.batch_transform.push(transform);
        self
    }

    /// Sets how samples are grouped into batches of one shape.
    #[must_use]
    pub fn with_buckets(self, buckets: impl Into<Buckets>) -> Self {
        Config { buckets: Some(buckets.into()), ..self }
    }

    /// Returns how the image or the frames of the clip are decoded and delivered; `None` if there are neither.
    pub fn pixels(&self) -> Option<&Pixels> {
        self.fields.iter().find_map(|field| match field {
            Field::Image(image) => Some(&image.pixels),
            Field::Clip(clip) => Some(&clip.pixels),
            _ => None,
        })
    }

    /// As [`Config::pixels`], for changes.
    pub fn pixels_mut(&mut self) -> Option<&mut Pixels> {
        self.fields.iter_mut().find_map(|field| match field {
            Field::Image(image) => Some(&mut image.pixels),
            Field::Clip(clip) => Some(&mut clip.pixels),
            _ => None,
        })
    }

    /// Returns the remainder, given or by default.
    pub fn remainder(&self) -> Remainder {
        self.remainder.unwrap_or(Remainder::default_for(self.order))
    }

    /// Returns what happens to bad samples, given or by default.
    pub fn on_bad(&self) -> OnBad {
        let masked = self.remainder() == Remainder::Mask;
        self.bad_samples.on_bad.unwrap_or(if masked { OnBad::Mask } else { OnBad::Substitute })
    }
}
