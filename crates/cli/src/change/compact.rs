//! `shardtool compact`.

use super::{ChangeArguments, NewestArgument, print_version, version_json};
use crate::entries::EntriesArgument;
use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_pack::{CompactOptions, Shards, compact};
use std::io::Write;
use std::num::NonZeroUsize;

/// Write new shards of the newest version: without deleted records, with its columns, of one size
///
/// Classes and the order of records stay. Nothing is written if there is nothing to do. The versions before stay readable until
/// `gc --keep` drops them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// Split [default: all that have something to compact]
    #[arg(long, value_name = "NAME", help_heading = headings::RECORDS)]
    split: Vec<String>,
    /// Approximate size of a shard
    #[arg(long, value_parser = shardtool_load::parse_size, default_value = "256MiB", value_name = "SIZE", help_heading = headings::SPLITS)]
    shard_size: u64,
    /// Shards of each split, instead of their size
    #[arg(long, conflicts_with = "shard_size", value_name = "N", help_heading = headings::SPLITS)]
    shards: Option<u64>,
    /// Remove positions, thumbnails, serial numbers, texts
    ///
    /// As of `pack`. A split is then rewritten if an image has metadata, which takes reading its records; one whose images have none is
    /// left as it is. An image whose metadata cannot be removed ends the command.
    #[arg(long, help_heading = headings::STORED)]
    strip_metadata: bool,
    #[command(flatten)]
    entries: EntriesArgument,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    change: ChangeArguments,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let mut options = CompactOptions::default();
    options.splits.clone_from(&arguments.split);
    options.shards = arguments.shards.map_or(Shards::Size(arguments.shard_size), Shards::Count);
    options.jobs = arguments.jobs.unwrap_or(options.jobs);
    options.entry_points = arguments.entries.written();
    options.strip_metadata = arguments.strip_metadata;
    options.change = arguments.change.options();
    interrupt::declare(Interrupted::Exits(
        "interrupted: the dataset is unchanged; `shardtool gc` lists what was written",
    ));
    let progress = Images::new("written");
    let compacted = compact(&arguments.dataset.dataset, &options, &progress);
    progress.finish();
    let compacted = compacted?;
    if arguments.change.json {
        let split = |(name, before, now): &(String, u64, u64)| json!({"split": name, "before": before, "shards": now});
        let splits: Vec<_> = compacted.splits.iter().map(split).collect();
        out.json(&json!({
            "version": version_json(compacted.version), "splits": splits, "bytes": compacted.bytes,
        }))?;
        return Ok(Exit::Success);
    }
    for (name, before, now) in &compacted.splits {
        let name = text::printable(name.as_bytes());
        match compacted.version {
            Some(_) => writeln!(out, "split {name}: {} instead of {before}", text::plural(*now, "shard"))?,
            None => writeln!(out, "split {name}: {} to compact", text::plural(*before, "shard"))?,
        }
    }
    let is_written = compacted.version.is_some();
    print_version(compacted.version, options.change.dry_run, false, out)?;
    if is_written && options.strip_metadata {
        let dataset = arguments.dataset.dataset.display();
        writeln!(
            out,
            "the versions before still have the metadata: `shardtool gc {dataset} --keep 1 --yes` removes their files"
        )?;
    }
    Ok(Exit::Success)
}
