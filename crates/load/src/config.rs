//! The configuration of a loader.

use crate::arrays::ArrayGroup;
use crate::bad_samples::OnBad;
use crate::buckets::Bucketing;
use crate::buffer::{BatchAlloc, HostAlloc};
use crate::classes::Classes;
use crate::clip::Clip;
use crate::decoded_cache::DecodedCache;
use crate::further_images::FurtherImage;
use crate::mixing::Mixing;
use crate::objects::Objects;
use crate::packing::SequencePacking;
use shardtool_decode::{FloatRange, LabelDtype, Limits, Output, Pipeline, PixelFn, PixelFormat, Truncated};
use shardtool_order::{Order, Policy, Remainder, Replica, Source};
use shardtool_read::Split;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The configuration of a [`Loader`](crate::Loader). Create one with [`Config::new`] and set what should differ.
///
/// ```no_run
/// use shardtool_decode::Pipeline;
/// use shardtool_load::{Config, Content, Images};
/// use shardtool_order::Order;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dataset = shardtool_read::Dataset::open("dataset")?;
/// let content = Content::Images(Images::new(Pipeline::eval(256, 224)?));
/// let mut config = Config::new(dataset.split("validation")?.clone(), content, 64);
/// config.order = Order::Sequential;
/// config.epochs = Some(1);
/// config.memory_budget = Some(512 << 20);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// The splits to read; ids count through them in this order. At least one.
    pub splits: Vec<Split>,
    /// Which samples an epoch shows; `None` shows each sample of the splits once.
    pub source: Option<Source>,
    /// The order of an epoch. Default: shuffled.
    pub order: Order,
    /// The seed of order and augmentation.
    pub seed: u64,
    /// Rows of a batch, at least 1. With `buckets`, at most; with `packing`, of several samples each. Default: 1.
    pub batch: u32,
    /// The replica of this process. Default: a world of one.
    pub replica: Replica,
    /// Processes on this machine that load at the same time and share its memory and CPUs, at least 1
    /// (`LOCAL_WORLD_SIZE`). Default: 1.
    pub local_world: u32,
    /// How replicas share an epoch.
    pub policy: Policy,
    /// What happens to the last step of an epoch; `None` chooses by the order ([`Remainder::default_for`]).
    pub remainder: Option<Remainder>,
    /// What is delivered of each record. Default: the record.
    pub content: Content,
    /// The columns of a batch in addition to images or records; `None` is the label, if the dataset has one.
    pub columns: Option<Vec<ColumnSpec>>,
    /// The class ids of labels, where splits meet. Default: all splits must have the same classes.
    pub classes: Classes,
    /// Groups samples into batches of one shape. `None`: every batch has `batch` rows.
    pub buckets: Option<Bucketing>,
    /// Puts several samples of tokens into each row, of which a batch has [`batch`](Config::batch). `None`: a row has one
    /// sample. Needs [`Content::Columns`]; not with buckets, nor with [`Policy::Shard`].
    pub packing: Option<SequencePacking>,
    /// Arrays of each record, such as volumes, in addition to `content`. Default: none.
    pub arrays: Vec<ArrayGroup>,
    /// What happens to bad samples; `None` is `Mask` if the remainder is `Mask`, else `Substitute`.
    pub on_bad: Option<OnBad>,
    /// The run ends when there are more bad samples than this, each counted once; `None` is 1 % of the samples, at
    /// least 16.
    pub max_bad: Option<u64>,
    /// Bytes for batches, including those that the consumer holds, and for decode scratch. A given budget is never
    /// exceeded; the default one (see [`MemoryPlan`](crate::MemoryPlan)) grows for a consumer that keeps batches.
    pub memory_budget: Option<u64>,
    /// Worker threads, at least 1; `None` is the CPUs of this process ÷ `local_world`, of which fewer are active while
    /// the consumer is slower.
    pub workers: Option<usize>,
    /// Batches built ahead of the consumer, at least 1; `None` begins with 2 and grows within the budget if the
    /// consumer waits after it has found the queue full.
    pub prefetch: Option<usize>,
    /// Bytes of records that the system reads ahead of the workers, limited to a quarter of the available memory beyond
    /// the budget; 0 turns read-ahead off. Default: 64 MiB. For a dataset in an object store, bytes that are requested
    /// ahead, which are part of the budget: at most a quarter of a given one.
    pub read_ahead: u64,
    /// Records of a dataset in an object store are requested together if at most this many bytes lie between them.
    /// Default: 64 KiB.
    pub fetch_gap: u64,
    /// Bytes of a request of several records, at most. Default: 8 MiB.
    pub fetch_size: u64,
    /// What happens to a record's pages in the page cache after its sample was made.
    pub page_cache: PageCache,
    /// Epochs after which [`Loader::next_batch`](crate::Loader::next_batch) returns no more batches; `None` never ends.
    pub epochs: Option<u64>,
    /// How long `next_batch` waits, when the consumer holds every batch that memory allows, before it returns an error.
    /// Default: 10 s.
    pub starve_after: Duration,
    /// Allocates the memory of images. Batches beyond the plan (see `memory_budget`) come from [`HostAlloc`].
    pub alloc: Arc<dyn BatchAlloc>,
    /// The folder below which `/proc` and `/sys` are read for memory limits; set by tests.
    #[doc(hidden)]
    pub system_root: PathBuf,
}

/// What happens to the pages of records in the page cache. They are not memory of the process, and the system reclaims
/// them when memory is short, but the statistics of a container may include them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PageCache {
    /// Keeps them, for other ranks and the next epoch.
    #[default]
    Keep,
    /// Releases them at once: for a dataset much larger than memory, on a machine whose other files should stay cached.
    Release,
}

/// What is delivered of each record.
#[derive(Clone)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "there is one per loader")]
pub enum Content {
    /// Its image, decoded and transformed, and columns.
    Images(Images),
    /// The record itself, with its CRC checked, and columns.
    Records,
    /// Columns only.
    Columns,
}

/// How images are decoded and transformed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Images {
    /// What is made of each image, at least one view: an array of the batch each. The image is decoded once.
    pub views: Vec<View>,
    /// A user function, called on each finished image.
    pub custom: Option<PixelFn>,
    /// Delivers frames of a video in place of the record's image: every array has them as a dimension after the first. The
    /// frames of a clip go through the same steps with the same random numbers.
    pub clip: Option<Clip>,
    /// Further images of each record, of the same size as its image. They go through the same steps with the same random numbers,
    /// and are arrays of the batch of their own.
    pub more: Vec<FurtherImage>,
    /// Features with a label map for each image (a segmentation mask: a grey or palette PNG or a grey TIFF of the image's
    /// size, one number per pixel). They get the same geometry, sampled by nearest neighbour; batches have them as
    /// [`Batch::mask`](crate::Batch::mask). With one view only.
    pub masks: Vec<String>,
    /// The type of the labels in a batch. A label that does not fit makes a bad sample. Default: u8.
    pub mask_dtype: LabelDtype,
    /// The label outside the map, where an image is padded or rotated; `None` is the largest one, which loss functions ignore
    /// by convention.
    pub mask_fill: Option<u16>,
    /// Boxes and points in the image, which get the same geometry. With one view only.
    pub objects: Option<Objects>,
    /// How the rows of a batch are mixed. Its labels then are soft: `[N, classes]` f32. With one view only.
    pub mixing: Option<Mixing>,
    /// Leaves the pixels unmixed, for a device that mixes them: [`Batch::mix`](crate::Batch::mix) says how. Labels, boxes and
    /// points are mixed. Not with `output`. `shardtool_cuda::ImageLoader` sets it. Default: no.
    pub defer_mixing: bool,
    /// Keeps decoded images, frames and label maps from one epoch to the next.
    pub decoded_cache: Option<DecodedCache>,
    /// Channels and bits of the pixels that steps and batches have: grey images `[N, H, W, 1]`, 16-bit samples. Steps that are not
    /// defined for them are refused. Default: RGB of 8 bits.
    pub pixel_format: PixelFormat,
    /// The type, layout and normalisation of a batch's pixels, computed by the workers; `None` is `[N, H, W, 3]` u8, or as
    /// `pixel_format` says. Its pixel format is this one.
    pub output: Option<Output>,
    /// Whether to apply the EXIF orientation. Default: no.
    pub apply_orientation: bool,
    /// Limits on the size of stored images.
    pub limits: Limits,
    /// The range of floating-point samples (TIFF) that is scaled to 0 to 255, or to 65535 at 16 bits. Default: such images are bad samples.
    pub float_range: Option<FloatRange>,
    /// What happens to a JPEG that is cut or damaged. Default: it is a bad sample. With [`Truncated::Fill`], [`Stats::filled`](crate::Stats::filled)
    /// counts it.
    pub truncated: Truncated,
    /// Decodes a JPEG at 1/2, 1/4 or 1/8 if the crop is then still at least this many times as large as the result, in both
    /// directions: faster for large photographs, with other pixels ([`SCALED_DECODE_GAP`]). Default: `None`, which decodes at
    /// full size. The name is PIL's.
    pub reducing_gap: Option<f64>,
}

impl Images {
    /// Returns options for images transformed by these steps.
    pub fn new(pipeline: Pipeline) -> Self {
        Self::with_views(vec![View { name: String::new(), pipeline }])
    }

    /// Returns options for several views of each image.
    pub fn with_views(views: Vec<View>) -> Self {
        Images {
            views,
            custom: None,
            clip: None,
            more: vec![],
            masks: vec![],
            mask_dtype: LabelDtype::U8,
            mask_fill: None,
            objects: None,
            mixing: None,
            defer_mixing: false,
            decoded_cache: None,
            pixel_format: PixelFormat::RGB8,
            output: None,
            apply_orientation: false,
            limits: Limits::default(),
            float_range: None,
            truncated: Truncated::Error,
            reducing_gap: None,
        }
    }
}

/// The [`Images::reducing_gap`] at which pixels differ little from the exact ones: `scaled_decode` in Python, `--scaled-decode`.
pub const SCALED_DECODE_GAP: f64 = 2.0;

/// One of several results of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its name in the batch; the only view of an image needs none.
    pub name: String,
    /// The steps that give every image its size.
    pub pipeline: Pipeline,
}

/// A column of a batch: the values of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name of the feature.
    pub feature: String,
    /// How its values are laid out.
    pub layout: Layout,
}

/// How the values of a feature are laid out in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// `[N]` if every record has one number; bytes for byte strings; else ragged. Decided by the index of the first
    /// shard, for bare files by their first record.
    Auto,
    /// `width` numbers per record: `[N, width]`, or `[N]` if `width` is 1.
    Numbers {
        /// Numbers per record, at least 1.
        width: usize,
    },
    /// Any number of values per record: all values, and the offset at which each record's values end.
    Ragged,
    /// One byte string per record: all bytes, and the offset at which each string ends.
    Bytes,
}

impl Default for Config {
    /// Returns a configuration without splits, which must be set.
    fn default() -> Self {
        Config {
            splits: vec![],
            source: None,
            order: Order::Shuffled,
            seed: 0,
            batch: 1,
            replica: Replica::SINGLE,
            local_world: 1,
            policy: Policy::default(),
            remainder: None,
            content: Content::Records,
            columns: None,
            classes: Classes::default(),
            buckets: None,
            packing: None,
            arrays: vec![],
            on_bad: None,
            max_bad: None,
            memory_budget: None,
            workers: None,
            prefetch: None,
            read_ahead: 64 << 20,
            fetch_gap: 64 << 10,
            fetch_size: 8 << 20,
            page_cache: PageCache::Keep,
            epochs: None,
            starve_after: Duration::from_secs(10),
            alloc: Arc::new(HostAlloc),
            system_root: PathBuf::from("/"),
        }
    }
}

impl Config {
    /// Returns a configuration that shuffles the samples of one split for one replica.
    pub fn new(split: Split, content: Content, batch: u32) -> Self {
        Config { splits: vec![split], content, batch, ..Config::default() }
    }

    /// Returns the remainder, given or by default.
    pub fn remainder(&self) -> Remainder {
        self.remainder.unwrap_or(Remainder::default_for(self.order))
    }

    /// Returns what happens to bad samples, given or by default.
    pub fn on_bad(&self) -> OnBad {
        self.on_bad.unwrap_or(match self.remainder() {
            Remainder::Mask => OnBad::Mask,
            Remainder::Drop | Remainder::Pad => OnBad::Substitute,
        })
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Images(images) => f.debug_tuple("Images").field(&images.views).finish(),
            Content::Records => f.write_str("Records"),
            Content::Columns => f.write_str("Columns"),
        }
    }
}
