//! Arguments of `bench` and `plan` that configure a loader.

use crate::choice::{self, choice};
use crate::headings;
use crate::open::SplitArguments;
use crate::output;
use crate::schedule::ScheduleArguments;
use crate::several_values;
use shardtool_decode::{FloatRange, LabelDtype, Pipeline, Truncated};
use shardtool_load::{Arrays, Clip, Config, Field, Image, Mask, Mode, PageCache, PixelMask, Pixels, RaggedArrays};
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
    #[arg(long, value_parser = choice::<Remainder>(), help_heading = headings::BATCHES, hide_short_help = true)]
    remainder: Option<Remainder>,
    /// How replicas share the samples
    ///
    /// With `sample`, replicas take turns in one order; with `shard`, each replica reads its own shards only; with `off`, each
    /// replica reads everything.
    #[arg(long, value_parser = choice::<Policy>(), default_value = choice::default::<Policy>(), help_heading = headings::REPLICAS)]
    policy: Policy,
    /// Rank of this replica, from 0
    ///
    /// [default: from the environment of torchrun, Open MPI, MPICH or SLURM]
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
    #[arg(long, value_parser = shardtool_load::parse_size, value_name = "SIZE", help_heading = headings::MACHINE)]
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
    #[arg(long, value_parser = shardtool_load::parse_size, default_value = "64MiB", value_name = "SIZE", help_heading = headings::MACHINE, hide_short_help = true)]
    read_ahead: u64,
    /// Largest gap within a request to a store
    ///
    /// In an object store, records are requested together if at most this many bytes lie between them.
    #[arg(long, value_parser = shardtool_load::parse_size, default_value = "64KiB", value_name = "SIZE", help_heading = headings::MACHINE, hide_short_help = true)]
    fetch_gap: u64,
    /// Largest request to a store
    ///
    /// Largest request of several records to an object store.
    #[arg(long, value_parser = shardtool_load::parse_size, default_value = "8MiB", value_name = "SIZE", help_heading = headings::MACHINE, hide_short_help = true)]
    fetch_size: u64,
    /// Feature with the label map of each image
    ///
    /// The label map (segmentation mask) is cropped and flipped with the image.
    #[arg(long, value_name = "FEATURE", help_heading = headings::DECODED, hide_short_help = true)]
    mask: Option<String>,
    /// Deliver which pixels show the image
    ///
    /// The others are padding: steps added them, or turned the image away.
    #[arg(long, help_heading = headings::DECODED, hide_short_help = true)]
    pixel_mask: bool,
    /// Channels of the images: RGB, or L for grey
    #[arg(long, value_parser = choice::<Mode>(), ignore_case = true, default_value = choice::default::<Mode>(), help_heading = headings::DECODED)]
    mode: Mode,
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
    #[arg(long, value_parser = choice::<LabelDtype>(), default_value = choice::default::<LabelDtype>(), help_heading = headings::DECODED, hide_short_help = true)]
    mask_dtype: LabelDtype,
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
    #[arg(long = "array", value_parser = several_values::array, value_name = "NAME[:CROP[:KIND]]", help_heading = headings::DECODED, hide_short_help = true)]
    arrays: Vec<Arrays>,
    /// Load an array whose length differs between records, such as a point cloud
    ///
    /// LENGTH is how many elements a row holds: a random subset of a longer array, a shorter one and padding. Several arrays of one
    /// length are NAME,NAME. May be repeated.
    #[arg(long = "ragged-array", value_parser = several_values::ragged_array, value_name = "NAME:LENGTH", help_heading = headings::DECODED, hide_short_help = true)]
    ragged_arrays: Vec<RaggedArrays>,
    /// Range of floating-point samples
    ///
    /// Range of floating-point samples (TIFF) that is scaled to 0 to 255 [default: such images are bad samples].
    #[arg(long, value_parser = crate::float_range::parse, value_name = "LOW,HIGH", allow_hyphen_values = true, help_heading = headings::DECODED, hide_short_help = true)]
    float_range: Option<FloatRange>,
    /// What happens to a cut or damaged JPEG
    ///
    /// By default it is a bad sample. With `fill` it is what libjpeg-turbo makes of it: what is missing is grey.
    #[arg(long, value_parser = choice::<Truncated>(), default_value = choice::default::<Truncated>(), value_name = "WHAT", help_heading = headings::DECODED, hide_short_help = true)]
    truncated: Truncated,
    /// Whether pages of read records stay cached
    ///
    /// Whether the pages of a record stay in the page cache after its sample is made: with `keep` they stay, for other ranks and
    /// the next epoch; with `release` they are released.
    #[arg(long, value_parser = choice::<PageCache>(), default_value = choice::default::<PageCache>(), help_heading = headings::MACHINE, hide_short_help = true)]
    page_cache: PageCache,
    #[command(flatten)]
    schedule: ScheduleArguments,
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

/// Parses the bits of a sample.
fn bits(text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|bits| matches!(bits, 8 | 16)).ok_or_else(|| "expected 8 or 16".to_owned())
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

    /// Returns the image or the clip with these steps, and its masks.
    fn images(&self, pipeline: Pipeline) -> Vec<Field> {
        let mut pixels = Pixels::default();
        (pixels.mode, pixels.bits) = (self.mode, Some(self.bits));
        (pixels.float_range, pixels.truncated) = (self.float_range, self.truncated);
        pixels.scaled_decode = self.scaled_decode;
        let mut image = Image::new(pipeline);
        let first = match self.clip.clone() {
            Some(mut clip) => {
                (clip.views, clip.pixels) = (image.views, pixels);
                clip.into()
            }
            None => {
                image.pixels = pixels;
                image.into()
            }
        };
        let mask = self.mask.clone().map(|feature| {
            let mut mask = Mask::new(feature);
            mask.dtype = self.mask_dtype;
            mask.into()
        });
        let shown = self.pixel_mask.then(|| PixelMask::default().into());
        std::iter::once(first).chain(mask).chain(shown).collect()
    }

    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let (dataset, splits) = self.schedule.open(&self.split)?;
        dataset.check_source_folders()?;
        let split = splits[0].clone();
        let pipeline = match self.work {
            Work::Train => Some(Pipeline::train(self.size)?),
            // The common ratio: resize to 256, crop to 224.
            Work::Eval => Some(Pipeline::eval(self.size.saturating_mul(8) / 7, self.size)?),
            Work::Read => None,
        };
        if self.clip.is_some() && pipeline.is_none() {
            anyhow::bail!("`--work read` decodes nothing: leave out --clip, or use --work train or eval");
        }
        let arrays = !self.arrays.is_empty() || !self.ragged_arrays.is_empty();
        let only_arrays = arrays && self.clip.is_none() && split.manifest().image.is_none();
        let mut fields: Vec<Field> = match pipeline {
            None => vec![Field::Record],
            Some(_) if only_arrays => vec![],
            Some(pipeline) => self.images(pipeline),
        };
        fields.extend(self.arrays.iter().cloned().map(Field::from));
        fields.extend(self.ragged_arrays.iter().cloned().map(Field::from));
        let replica = self.world.map(|world| Replica::new(self.rank.unwrap_or(0), world)).transpose()?;
        let launch = Launch::from_env(replica, |name| std::env::var(name).ok())?;
        launch.ignored.iter().for_each(|ignored| output::message(format_args!("warning: {ignored}")));
        let mut config = Config::new(split, fields, self.batch);
        self.schedule.apply(splits, &mut config);
        config.order = match self.order {
            OrderName::Sequential => Order::Sequential,
            OrderName::Shuffled => Order::Shuffled,
            OrderName::Interleaved => self.interleaved(),
        };
        config.seed = self.seed;
        config.replica = launch.replica;
        config.local_world = launch.local_world.unwrap_or(1);
        config.remainder = self.remainder;
        config.policy = self.policy;
        config.memory = self.memory_budget;
        config.workers = self.workers;
        config.prefetch.batches = self.prefetch;
        config.prefetch.read_ahead = self.read_ahead;
        config.prefetch.fetch_gap = self.fetch_gap;
        config.prefetch.fetch_size = self.fetch_size;
        config.prefetch.page_cache = self.page_cache;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;
    use shardtool_load::Prefetch;

    #[test]
    fn defaults_are_those_of_the_library() {
        let command = LoadArguments::augment_args(clap::Command::new("bench"));
        let matches = command.try_get_matches_from(["bench", "dataset"]).unwrap();
        let arguments = <LoadArguments as clap::FromArgMatches>::from_arg_matches(&matches).unwrap();
        let defaults = Prefetch::default();
        assert_eq!(
            (arguments.read_ahead, arguments.fetch_gap, arguments.fetch_size, arguments.page_cache),
            (defaults.read_ahead, defaults.fetch_gap, defaults.fetch_size, defaults.page_cache)
        );
        let pixels = Pixels::default();
        assert_eq!((arguments.mode, arguments.truncated), (pixels.mode, pixels.truncated));
        assert_eq!((arguments.policy, arguments.remainder), (Policy::default(), None));
    }
}
