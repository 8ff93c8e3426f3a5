//! What a loader is made from.

use crate::bad::OnBad;
use crate::memory::{BatchAlloc, HostAlloc};
use shardtool_decode::{FloatRange, Limits, Output, Pipeline, PixelFn};
use shardtool_order::{Order, Policy, Remainder, Replica, Source};
use shardtool_read::Split;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a loader is made from: plain data but for the splits, the allocator and the user's own function. Make one with
/// [`Config::new`] and set what should differ.
#[derive(Clone)]
pub struct Config {
    /// The splits to read; ids count through them in this order.
    pub splits: Vec<Split>,
    /// Which of their samples an epoch shows; `None` shows each once.
    pub source: Option<Source>,
    /// In which order.
    pub order: Order,
    /// Of order and augmentation.
    pub seed: u64,
    /// Rows of a batch, at least 1.
    pub batch: u32,
    /// This process's replica.
    pub replica: Replica,
    /// Processes on this machine that load at the same time and share its memory and processors, at least 1
    /// (`LOCAL_WORLD_SIZE`).
    pub local_world: u32,
    /// How replicas share an epoch.
    pub policy: Policy,
    /// What happens to an epoch's last step; `None` is what suits the order.
    pub remainder: Option<Remainder>,
    /// What of each record is delivered.
    pub content: Content,
    /// The columns beside the images; `None` is the label, where the dataset has one.
    pub columns: Option<Vec<ColumnSpec>>,
    /// What happens to bad samples; `None` is `Mask` where the remainder is `Mask`, else `Substitute`.
    pub on_bad: Option<OnBad>,
    /// Bad samples, each counted once, beyond which the run ends; `None` is one in a hundred, at least 16.
    pub max_bad: Option<u64>,
    /// Bytes for batches, those that the consumer holds included, and decode scratch. A given budget is kept exactly;
    /// `None` is the default rule (see [`Arithmetic`](crate::Arithmetic)), which grows for a consumer that keeps batches.
    pub memory_budget: Option<u64>,
    /// Worker threads, at least 1; `None` is the processors this process may use ÷ `local_world`, fewer while the caller
    /// is slower than they are.
    pub workers: Option<usize>,
    /// Batches ahead of the caller, at least 1; `None` begins with 2 and grows within the budget when the caller waits
    /// for batches although workers had none to fill.
    pub depth: Option<usize>,
    /// Bytes of records that the system is asked to read ahead of the workers, at most a quarter of what the container's
    /// limit leaves beside the budget; 0 turns it off.
    pub read_ahead: u64,
    /// What happens to a record's pages in the system's page cache once its sample is made.
    pub page_cache: PageCache,
    /// Epochs after which [`Loader::next_batch`](crate::Loader::next_batch) gives nothing more; `None` never ends.
    pub epochs: Option<u64>,
    /// How long `next_batch` waits when the consumer holds every batch that there may be, before it errs.
    pub starve_after: Duration,
    /// Where the memory of images comes from. Batches beyond the plan (see `memory_budget`) are [`HostAlloc`]'s.
    pub alloc: Arc<dyn BatchAlloc>,
    /// The folder below which `/proc` and `/sys` are read for memory limits; tests put their own there.
    #[doc(hidden)]
    pub system_root: PathBuf,
}

/// What happens to the pages of records in the system's page cache. They are not the process's memory, and the system gives
/// them up when memory is short; a container's statistics may show them all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageCache {
    /// They stay: other ranks and the next epoch want them.
    #[default]
    Keep,
    /// They are given up at once: for a dataset much larger than memory, beside programs whose own files should stay cached.
    Release,
}

/// What of each record is delivered.
#[derive(Clone)]
pub enum Content {
    /// Its image, decoded and transformed, and columns.
    Images(Images),
    /// The record itself, checked, and columns: bytes of any kind, at the speed of memory.
    Records,
    /// Columns only.
    Columns,
}

/// How images are made.
#[derive(Clone)]
pub struct Images {
    /// The steps that give every image its size.
    pub pipeline: Pipeline,
    /// The user's own function, called on each finished image.
    pub custom: Option<PixelFn>,
    /// Feature that holds a label map beside each image (a segmentation mask: a grey or palette PNG of the image's size,
    /// one number a pixel). It goes through the same crop, resize and flip, the nearest value taken, never a mixture;
    /// batches have it as [`Batch::masks`](crate::Batch::masks).
    pub mask: Option<String>,
    /// What pixels become in the batch, made by the workers; `None` leaves them u8 `[N, H, W, 3]`.
    pub output: Option<Output>,
    /// Whether the EXIF orientation is applied.
    pub apply_orientation: bool,
    /// How large a stored image may be.
    pub limits: Limits,
    /// The range of floating-point samples (TIFF) that is scaled to 0 to 255. Default: such images are bad samples.
    pub float_range: Option<FloatRange>,
    /// Large JPEGs are decoded at 1/2, 1/4 or 1/8 where what is shown stays at least this many times as large as the
    /// result; `None` is exact. Default 2.0, as in PIL's sense of the word.
    pub reducing_gap: Option<f64>,
}

impl Images {
    /// Images by these steps, as coded (orientation not applied).
    pub fn new(pipeline: Pipeline) -> Self {
        Images {
            pipeline,
            custom: None,
            mask: None,
            output: None,
            apply_orientation: false,
            limits: Limits::default(),
            float_range: None,
            reducing_gap: Some(2.0),
        }
    }
}

/// A column of a batch: a feature of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name of the feature.
    pub feature: String,
    /// How its values stand in the batch.
    pub layout: Layout,
}

/// How a feature's values stand in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One number in every record becomes `[N]`; byte strings become bytes; anything else is ragged. The index of the first
    /// shard decides; for bare files their first record.
    Auto,
    /// Exactly `width` numbers a record: `[N, width]`, for 1 `[N]`.
    Numbers {
        /// Numbers a record, at least 1.
        width: usize,
    },
    /// Any number of numbers a record: all of them, and where each record's end.
    Ragged,
    /// One byte string a record: all of them, and where each ends.
    Bytes,
}

impl Config {
    /// A shuffled epoch of every sample of one split, on one replica, everything else by default.
    pub fn new(split: Split, content: Content, batch: u32) -> Self {
        Config {
            splits: vec![split],
            source: None,
            order: Order::Shuffled,
            seed: 0,
            batch,
            replica: Replica::SINGLE,
            local_world: 1,
            policy: Policy::default(),
            remainder: None,
            content,
            columns: None,
            on_bad: None,
            max_bad: None,
            memory_budget: None,
            workers: None,
            depth: None,
            read_ahead: 64 << 20,
            page_cache: PageCache::Keep,
            epochs: None,
            starve_after: Duration::from_secs(10),
            alloc: Arc::new(HostAlloc),
            system_root: PathBuf::from("/"),
        }
    }

    /// The remainder, chosen or by default.
    pub fn remainder(&self) -> Remainder {
        self.remainder.unwrap_or(Remainder::default_for(self.order))
    }

    /// What happens to bad samples, chosen or by default.
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
            Content::Images(images) => f.debug_tuple("Images").field(&images.pipeline).finish(),
            Content::Records => f.write_str("Records"),
            Content::Columns => f.write_str("Columns"),
        }
    }
}
