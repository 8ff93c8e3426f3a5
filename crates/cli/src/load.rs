//! The arguments by which `bench` and `plan` describe a loader.

use crate::open::SplitArguments;
use shardtool_decode::Pipeline;
use shardtool_load::{Config, Content, Images, PageCache};
use shardtool_order::{Launch, Order, Policy, Remainder, Replica};
use std::num::NonZeroU32;

/// A loader's work and order, as `bench` and `plan` take them.
#[derive(clap::Args)]
pub(crate) struct LoadArguments {
    #[command(flatten)]
    split: SplitArguments,
    /// What is done with each record
    #[arg(long, value_enum, default_value_t = Work::Train)]
    work: Work,
    /// Side of the images in a batch, in pixels
    #[arg(long, default_value_t = 224, value_name = "N")]
    size: u32,
    /// Rows of a batch
    #[arg(long, default_value_t = 256, value_name = "N")]
    batch: u32,
    /// In which order
    #[arg(long, value_enum, default_value_t = OrderName::Shuffled)]
    order: OrderName,
    /// Seed of order and augmentation
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// What happens to an epoch's last, incomplete step [default: drop, but mask in sequential order]
    #[arg(long, value_enum)]
    remainder: Option<RemainderName>,
    /// How replicas share an epoch
    #[arg(long, value_enum, default_value_t = PolicyName::Sample)]
    policy: PolicyName,
    /// This replica, from 0 [default: from torchrun's, Open MPI's or SLURM's variables]
    #[arg(long, requires = "world", value_name = "N")]
    rank: Option<u32>,
    /// Number of replicas; without --rank this is the first of them
    #[arg(long, value_name = "N")]
    world: Option<u32>,
    /// Memory for batches and decoding [default: what two batches ahead need, within half of the container's limit]
    #[arg(long, value_parser = crate::size::parse, value_name = "SIZE")]
    memory_budget: Option<u64>,
    /// Worker threads [default: the processors this process may use]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Batches ahead of the consumer [default: adjusted]
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Bytes of records that the system is asked to read ahead of the workers; 0 turns it off
    #[arg(long, value_parser = crate::size::parse, default_value = "64MiB", value_name = "SIZE")]
    read_ahead: u64,
    /// Feature that holds a label map beside each image (a segmentation mask), to be cropped and flipped with it
    #[arg(long, value_name = "FEATURE")]
    mask: Option<String>,
    /// What happens to a record's pages in the page cache once its sample is made
    #[arg(long, value_enum, default_value_t = PageCacheName::Keep)]
    page_cache: PageCacheName,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Work {
    /// Decode, RandomResizedCrop, flip
    Train,
    /// Decode, Resize of the shorter side, CenterCrop
    Eval,
    /// Read and check records, decode nothing
    Read,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum OrderName {
    Sequential,
    Shuffled,
    /// Runs of 64 records, 256 of them in play at once
    Interleaved,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PolicyName {
    /// All take turns in one order
    Sample,
    /// Each visits its own shards only
    Shard,
    /// Each visits everything
    Off,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PageCacheName {
    /// They stay, for other ranks and the next epoch
    Keep,
    /// They are given up
    Release,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum RemainderName {
    Drop,
    Pad,
    Mask,
}

impl LoadArguments {
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let (_, split) = self.split.open()?;
        let images = |pipeline| Content::Images(Images { mask: self.mask.clone(), ..Images::new(pipeline) });
        let content = match self.work {
            Work::Train => images(Pipeline::train(self.size)?),
            // The usual ratio: 256 to 224.
            Work::Eval => images(Pipeline::eval(self.size.saturating_mul(8) / 7, self.size)?),
            Work::Read => Content::Records,
        };
        let given = self.world.map(|world| Replica::new(self.rank.unwrap_or(0), world)).transpose()?;
        let launch = Launch::from_env(given, |name| std::env::var(name).ok())?;
        launch.ignored.iter().for_each(|ignored| eprintln!("warning: {ignored}"));
        let mut config = Config::new(split, content, self.batch);
        let size = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        config.order = match self.order {
            OrderName::Sequential => Order::Sequential,
            OrderName::Shuffled => Order::Shuffled,
            OrderName::Interleaved => Order::Interleaved { run: size(64), window: size(256) },
        };
        config.seed = self.seed;
        config.replica = launch.replica;
        config.local_world = launch.local_world.unwrap_or(1);
        config.remainder = self.remainder.map(|remainder| match remainder {
            RemainderName::Drop => Remainder::Drop,
            RemainderName::Pad => Remainder::Pad,
            RemainderName::Mask => Remainder::Mask,
        });
        config.memory_budget = self.memory_budget;
        config.workers = self.threads;
        config.read_ahead = self.read_ahead;
        config.page_cache = match self.page_cache {
            PageCacheName::Keep => PageCache::Keep,
            PageCacheName::Release => PageCache::Release,
        };
        config.policy = match self.policy {
            PolicyName::Sample => Policy::Sample,
            PolicyName::Shard => Policy::Shard,
            PolicyName::Off => Policy::Off,
        };
        config.depth = self.depth;
        Ok(config)
    }
}
