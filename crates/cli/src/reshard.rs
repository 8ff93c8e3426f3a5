//! `shardtool reshard` and `shardtool merge`.

use crate::entries::EntriesArgument;
use crate::open::DatasetArgument;
use crate::progress::Images;
use crate::status::Status;
use crate::{size, text};
use serde_json::json;
use shardtool_pack::{ReshardOptions, Shards, reshard};
use shardtool_read::{Dataset, Split};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Write a dataset's records into other shards: larger, smaller, or mixed anew
///
/// Records are copied byte for byte and checked on the way; the new dataset appears when it is complete.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: DatasetArgument,
    /// A folder that does not exist yet, or is empty
    out: PathBuf,
    /// One split [default: all]
    #[arg(long)]
    split: Option<String>,
    #[command(flatten)]
    how: How,
}

/// Join datasets with the same classes and features into one; splits of the same name become one
///
/// Records are copied byte for byte and checked on the way, and mixed unless --no-shuffle. A key that two of them have is
/// refused.
#[derive(clap::Args)]
pub(crate) struct MergeArguments {
    /// A folder that does not exist yet, or is empty
    out: PathBuf,
    /// The datasets, two or more
    #[arg(required = true, num_args = 2..)]
    datasets: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct How {
    /// How large shards are, about
    #[arg(long, value_parser = size::parse, default_value = "256MiB", value_name = "SIZE")]
    shard_size: u64,
    /// How many shards for each split, instead
    #[arg(long, conflicts_with = "shard_size", value_name = "N")]
    shards: Option<u64>,
    /// Seed of the order in which records are written
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Keep the order that records have
    #[arg(long, conflicts_with = "seed")]
    no_shuffle: bool,
    #[command(flatten)]
    entries: EntriesArgument,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Status> {
    let dataset = arguments.dataset.open()?;
    let splits = match &arguments.split {
        Some(name) => vec![dataset.split(name)?.clone()],
        None => dataset.splits().to_vec(),
    };
    write(&splits, &arguments.out, &arguments.how)
}

pub(crate) fn merge(arguments: &MergeArguments) -> anyhow::Result<Status> {
    let mut splits = vec![];
    for path in &arguments.datasets {
        splits.extend_from_slice(Dataset::open(path)?.splits());
    }
    write(&splits, &arguments.out, &arguments.how)
}

fn write(splits: &[Split], out: &Path, how: &How) -> anyhow::Result<Status> {
    let mut options = ReshardOptions::default();
    options.shards = how.shards.map_or(Shards::Size(how.shard_size), Shards::Count);
    options.seed = (!how.no_shuffle).then_some(how.seed);
    options.jobs = how.jobs.unwrap_or(options.jobs);
    options.entry_points = how.entries.written();
    let progress = Images::new("written");
    let written = reshard(splits, out, &options, &progress);
    progress.finish();
    let (manifest, seconds) = (written?, progress.seconds());
    let mut stdout = std::io::stdout().lock();
    if how.json {
        let split = |s: &shardtool_format::manifest::Split| {
            json!({"split": s.name, "records": s.records(), "shards": s.shards.len(), "bytes": s.bytes(),
                "fingerprint": format!("{:08x}", s.fingerprint())})
        };
        let splits: Vec<_> = manifest.splits.iter().map(split).collect();
        writeln!(stdout, "{:#}", json!({"out": out.to_string_lossy(), "splits": splits, "seconds": seconds}))?;
        return Ok(Status::Good);
    }
    for split in &manifest.splits {
        let (records, shards) =
            (text::plural(split.records(), "record"), text::plural(split.shards.len() as u64, "shard"));
        let (bytes, print) = (text::bytes(split.bytes()), split.fingerprint());
        writeln!(stdout, "split {}: {records} in {shards} ({bytes}), fingerprint {print:08x}", split.name)?;
    }
    writeln!(stdout, "{} is complete, {seconds:.2} s", out.display())?;
    Ok(Status::Good)
}
