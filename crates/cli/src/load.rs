//! The arguments by which `bench` and `plan` describe a loader.

use crate::open::SplitArguments;
use shardtool_decode::Pipeline;
use shardtool_load::{Config, Content, Images};
use shardtool_order::{Launch, Order, Remainder, Replica};
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
    side: u32,
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
    /// This replica, from 0 [default: from torchrun's, Open MPI's or SLURM's variables]
    #[arg(long, requires = "world")]
    rank: Option<u32>,
    /// Number of replicas
    #[arg(long, requires = "rank")]
    world: Option<u32>,
    /// Memory for batches and decoding [default: what two batches ahead need, within half of the container's limit]
    #[arg(long, value_parser = crate::size::parse, value_name = "SIZE")]
    memory_budget: Option<u64>,
    /// Worker threads [default: the processors this process may use]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Batches ahead of the consumer [default: adjusted]
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
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
enum RemainderName {
    Drop,
    Pad,
    Mask,
}

impl LoadArguments {
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let (_, split) = self.split.open()?;
        let content = match self.work {
            Work::Train => Content::Images(Images::new(Pipeline::train(self.side)?)),
            // The usual ratio: 256 to 224.
            Work::Eval => Content::Images(Images::new(Pipeline::eval(self.side.saturating_mul(8) / 7, self.side)?)),
            Work::Read => Content::Records,
        };
        let given = self.rank.zip(self.world).map(|(rank, world)| Replica::new(rank, world)).transpose()?;
        let launch = Launch::from_env(given, |name| std::env::var(name).ok())?;
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
        config.workers = self.workers;
        config.depth = self.depth;
        Ok(config)
    }
}
