//! Arguments of `bench` and `plan` that configure a loader.

use crate::headings;
use crate::open::SplitArguments;
use crate::output;
use crate::several_values;
use crate::truncated::TruncatedName;
use shardtool_decode::{Channels, Depth, FloatRange, LabelDtype, Pipeline, PixelFormat};
use shardtool_load::{ArrayGroup, Clip, Config, Content, Images, PageCache, SCALED_DECODE_GAP};
use shardtool_order::{Launch, Order, Policy, Remainder, Replica};
use std::num::NonZeroU32;

/// Configures a loader.
#[derive(clap::Args)]
pub(crate) struct LoadArguments {
    #[command(flatten)]
    split: SplitArguments,
    /// Work of the loader: train, eval or read
    #[arg(long, value_enum, default_value_t = Work::Train, help_heading = headings::BATCHES)]
    work: Work,
    /// Side of the images in a batch, in pixels
    #[arg(long, default_value_t = 224, value_name = "N", help_heading = headings::DECODED)]
    size: u32,
    /// Rows per batch
    #[arg(long, default_value_t = 256, value_name = "N", help_heading = headings::BATCHES)]
    batch: u32,
    /// Order of the samples
    #[arg(long, value_enum, default_value_t = OrderName::Shuffled, help_heading = headings::BATCHES)]
    order: OrderName,
    /// Consecutive records that interleaving keeps together
    #[arg(long, default_value_t = RUN, value_name = "N", help_heading = headings::BATCHES, hide_short_help = true)]
    run: NonZeroU32,
    /// Runs that the interleaved order mixes
    #[arg(long, default_value_t = WINDOW, value_name = "N", help_heading = headings::BATCHES, hide_short_help = true)]
    window: NonZeroU32,
    /// Seed of the order and of augmentation
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = headings::BATCHES)]
    seed: u64,
    /// What to do with the last, incomplete step
    ///
    /// [default: drop; in sequential order: mask]
    #[arg(long, value_enum, help_heading = headings::BATCHES, hide_short_help = true)]
    remainder: Option<RemainderName>,
    /// How replicas share the samples
    #[arg(long, value_enum, default_value_t = PolicyName::Sample, help_heading = headings::REPLICAS)]
    policy: PolicyName,
    /// Rank of this replica, from 0
    ///
    /// [default: from the environment of torchrun, Open MPI or SLURM]
    #[arg(long, requires = "world", value_name = "N", help_heading = headings::REPLICAS)]
    rank: Option<u32>,
    /// Number of replicas
    ///
    /// Without --rank this process is rank 0.
    #[arg(long, value_name = "N", help_heading = headings::REPLICAS)]
    world: Option<u32>,
    /// Memory for batches and decoding
    ///
    /// [default: enough to prefetch 2 batches, at most half of the container's limit]
    #[arg(long, value_parser = crate::size::parse, value_name = "SIZE", help_heading = headings::MACHINE)]
    memory_budget: Option<u64>,
    /// Worker threads [default: available CPUs]
    #[arg(long, alias = "threads", value_name = "N", help_heading = headings::MACHINE)]
    workers: Option<usize>,
    /// Batches ahead [default: adjusted while running]
    ///
    /// Batches built ahead of the consumer.
    #[arg(long, alias = "depth", value_name = "N", help_heading = headings::MACHINE, hide_short_help = true)]
    prefetch: Option<usize>,
    /// Bytes read ahead of the workers; 0: none
    ///
    /// The system reads these bytes of records before the workers need them.
    #[arg(long, value_parser = crate::size::parse, default_value = "64MiB", value_name = "SIZE", help_heading = headings::MACHINE, hide_short_help = true)]
    read_ahead: u64,
    /// Largest gap within a request to a store
    ///
    /// In an object store, records are requested together if at most this many bytes lie between them.
    #[arg(long, value_parser = crate::size::parse, default_value = "64KiB", value_name = "SIZE", help_heading = headings::MACHINE, hide_short_help = true)]
    fetch_gap: u64,
    /// Largest request to a store
    ///
    /// Largest request of several records to an object store.
    #[arg(long, value_parser = crate::size::parse, default_value = "8MiB", value_name = "SIZE", help_heading = headings::MACHINE, hide_short_help = true)]
    fetch_size: u64,
    /// Feature with the label map of each image
    ///
    /// The label map (segmentation mask) is cropped and flipped with the image.
    #[arg(long, value_name = "FEATURE", help_heading = headings::DECODED, hide_short_help = true)]
    mask: Option<String>,
    /// Channels of the images: RGB, or L for grey
    #[arg(long, value_enum, ignore_case = true, default_value_t = ModeName::Rgb, help_heading = headings::DECODED)]
    mode: ModeName,
    /// Bits of a sample
    ///
    /// 16 keep all bits of PNG and TIFF.
    #[arg(long, default_value_t = 8, value_parser = bits, value_name = "8|16", help_heading = headings::DECODED, hide_short_help = true)]
    bits: u8,
    /// Decode large JPEGs at 1/2, 1/4 or 1/8
    ///
    /// Used where a crop is reduced by twice as much: faster, pixels differ slightly.
    #[arg(long, help_heading = headings::DECODED, hide_short_help = true)]
    scaled_decode: bool,
    /// Type of the labels of a mask
    ///
    /// A label that does not fit makes a bad sample.
    #[arg(long, value_enum, default_value_t = LabelType::Uint8, help_heading = headings::DECODED, hide_short_help = true)]
    mask_dtype: LabelType,
    /// Load clips instead of images
    ///
    /// frames=N, and perhaps stride=N, clips=N, feature=NAME [default: frames] and sampling=NAME (random, center, even or
    /// uniform).
    #[arg(long, value_parser = several_values::clip, value_name = "frames=N,…", help_heading = headings::DECODED, hide_short_help = true)]
    clip: Option<Clip>,
    /// Load an array, or a random crop of it
    ///
    /// A crop is such as 64x64x64 (`*` for a whole dimension). HxW, HxWx* or *xHxW instead says which dimensions are those of
    /// the image: the array is then cropped and flipped with it. Several arrays with one geometry are NAME,NAME. May be
    /// repeated. If the dataset has no images, only arrays are loaded.
    #[arg(long = "array", value_parser = several_values::array, value_name = "NAME[:CROP]", help_heading = headings::DECODED, hide_short_help = true)]
    arrays: Vec<ArrayGroup>,
    /// Range of floating-point samples
    ///
    /// Range of floating-point samples (TIFF) that is scaled to 0 to 255 [default: such images are bad samples].
    #[arg(long, value_parser = crate::float_range::parse, value_name = "LOW,HIGH", allow_hyphen_values = true, help_heading = headings::DECODED, hide_short_help = true)]
    float_range: Option<FloatRange>,
    /// What happens to a cut or damaged JPEG
    ///
    /// By default it is a bad sample. With `fill` it is what libjpeg-turbo makes of it: what is missing is grey.
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", help_heading = headings::DECODED, hide_short_help = true)]
    truncated: TruncatedName,
    /// Whether pages of read records stay cached
    ///
    /// Whether the pages of a record stay in the page cache after its sample is made.
    #[arg(long, value_enum, default_value_t = PageCacheName::Keep, help_heading = headings::MACHINE, hide_short_help = true)]
    page_cache: PageCacheName,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Work {
    /// Decode, RandomResizedCrop, flip
    Train,
    /// Decode, Resize the shorter side, CenterCrop
    Eval,
    /// Read records and check their CRCs, decode nothing
    Read,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum OrderName {
    Sequential,
    Shuffled,
    /// Runs of consecutive records (--run), mixed within a window of runs (--window)
    Interleaved,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PolicyName {
    /// Replicas take turns in one order
    Sample,
    /// Each replica reads its own shards only
    Shard,
    /// Each replica reads everything
    Off,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LabelType {
    Uint8,
    Uint16,
}

/// The names are Pillow's.
#[derive(Clone, Copy, clap::ValueEnum)]
enum ModeName {
    #[value(name = "RGB")]
    Rgb,
    #[value(name = "L")]
    Gray,
}

/// Parses the bits of a sample.
fn bits(text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|bits| matches!(bits, 8 | 16)).ok_or_else(|| "expected 8 or 16".to_owned())
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PageCacheName {
    /// Pages stay, for other ranks and the next epoch
    Keep,
    /// Pages are released
    Release,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum RemainderName {
    Drop,
    Pad,
    Mask,
}

/// Default of --run.
const RUN: NonZeroU32 = NonZeroU32::new(64).expect("not zero");
/// Default of --window.
const WINDOW: NonZeroU32 = NonZeroU32::new(256).expect("not zero");

impl LoadArguments {
    /// Returns the interleaved order with the given runs and windows.
    pub(crate) fn interleaved(&self) -> Order {
        Order::Interleaved { run: self.run, window: self.window }
    }

    fn pixel_format(&self) -> PixelFormat {
        PixelFormat {
            channels: match self.mode {
                ModeName::Rgb => Channels::Rgb,
                ModeName::Gray => Channels::Gray,
            },
            depth: if self.bits == 16 { Depth::Sixteen } else { Depth::Eight },
        }
    }

    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let (_, split) = self.split.open()?;
        let images = |pipeline| {
            let mut images = Images::new(pipeline);
            images.masks = self.mask.iter().cloned().collect();
            images.mask_dtype = match self.mask_dtype {
                LabelType::Uint8 => LabelDtype::U8,
                LabelType::Uint16 => LabelDtype::U16,
            };
            images.clip = self.clip.clone();
            images.float_range = self.float_range;
            images.truncated = self.truncated.into();
            images.reducing_gap = self.scaled_decode.then_some(SCALED_DECODE_GAP);
            images.pixel_format = self.pixel_format();
            Content::Images(images)
        };
        if self.clip.is_some() && matches!(self.work, Work::Read) {
            anyhow::bail!("`--work read` decodes nothing: leave out --clip, or use --work train or eval");
        }
        let only_arrays = !self.arrays.is_empty() && self.clip.is_none() && split.manifest().image.is_none();
        let content = match self.work {
            Work::Train | Work::Eval if only_arrays => Content::Columns,
            Work::Train => images(Pipeline::train(self.size)?),
            // The common ratio: resize to 256, crop to 224.
            Work::Eval => images(Pipeline::eval(self.size.saturating_mul(8) / 7, self.size)?),
            Work::Read => Content::Records,
        };
        let replica = self.world.map(|world| Replica::new(self.rank.unwrap_or(0), world)).transpose()?;
        let launch = Launch::from_env(replica, |name| std::env::var(name).ok())?;
        launch.ignored.iter().for_each(|ignored| output::message(format_args!("warning: {ignored}")));
        let mut config = Config::new(split, content, self.batch);
        config.order = match self.order {
            OrderName::Sequential => Order::Sequential,
            OrderName::Shuffled => Order::Shuffled,
            OrderName::Interleaved => self.interleaved(),
        };
        config.arrays = self.arrays.clone();
        config.seed = self.seed;
        config.replica = launch.replica;
        config.local_world = launch.local_world.unwrap_or(1);
        config.remainder = self.remainder.map(|remainder| match remainder {
            RemainderName::Drop => Remainder::Drop,
            RemainderName::Pad => Remainder::Pad,
            RemainderName::Mask => Remainder::Mask,
        });
        config.memory_budget = self.memory_budget;
        config.workers = self.workers;
        config.read_ahead = self.read_ahead;
        (config.fetch_gap, config.fetch_size) = (self.fetch_gap, self.fetch_size);
        config.page_cache = match self.page_cache {
            PageCacheName::Keep => PageCache::Keep,
            PageCacheName::Release => PageCache::Release,
        };
        config.policy = match self.policy {
            PolicyName::Sample => Policy::Sample,
            PolicyName::Shard => Policy::Shard,
            PolicyName::Off => Policy::Off,
        };
        config.prefetch = self.prefetch;
        Ok(config)
    }
}
