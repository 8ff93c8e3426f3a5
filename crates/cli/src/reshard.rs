//! `shardtool reshard` and `shardtool merge`.

use crate::condition::WhereArgument;
use crate::entries::EntriesArgument;
use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::open::{CacheArguments, CachedDataset, SourcesArgument, all, is_url, one_or_all};
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::printable;
use shardtool_pack::{ReshardOptions, Shards, reshard};
use shardtool_read::{Dataset, Split};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Write a dataset's records into new shards: larger, smaller, or in another order
///
/// Records are verified and copied byte for byte. The new dataset appears when it is complete.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: CachedDataset,
    /// A folder that does not exist yet or is empty, or its URL in a store
    out: PathBuf,
    /// One split [default: all]
    #[arg(long, help_heading = headings::RECORDS)]
    split: Option<String>,
    #[command(flatten)]
    layout: Layout,
}

/// Join datasets with the same classes and features into one; splits of the same name become one
///
/// Records are verified and copied byte for byte, in shuffled order unless --no-shuffle is given. Two datasets with the same
/// key in a split are refused.
#[derive(clap::Args)]
pub(crate) struct MergeArguments {
    /// A folder that does not exist yet or is empty, or its URL in a store
    out: PathBuf,
    /// Two or more datasets
    #[arg(required = true, num_args = 2..)]
    datasets: Vec<PathBuf>,
    #[command(flatten)]
    cache: CacheArguments,
    #[command(flatten)]
    sources: SourcesArgument,
    #[command(flatten)]
    layout: Layout,
}

#[derive(clap::Args)]
struct Layout {
    #[command(flatten)]
    conditions: WhereArgument,
    /// Approximate size of a shard
    #[arg(long, value_parser = shardtool_load::parse_size, default_value = "256MiB", value_name = "SIZE", help_heading = headings::SPLITS)]
    shard_size: u64,
    /// Shards of each split, instead of their size
    #[arg(long, conflicts_with = "shard_size", value_name = "N", help_heading = headings::SPLITS)]
    shards: Option<u64>,
    /// Seed of the order of records
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = headings::SPLITS)]
    seed: u64,
    /// Keep the order of the records
    #[arg(long, conflicts_with = "seed", help_heading = headings::SPLITS)]
    no_shuffle: bool,
    #[command(flatten)]
    entries: EntriesArgument,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<NonZeroUsize>,
    /// Write to a store without versions of objects
    ///
    /// For a store that does not compare versions of objects: nothing else may write to OUT.
    #[arg(long, help_heading = headings::MACHINE, hide_short_help = true)]
    single_writer: bool,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let dataset = arguments.dataset.open()?;
    let splits = one_or_all(&dataset, arguments.split.as_deref())?;
    let (named, views) = (arguments.split.as_deref(), views(&dataset));
    // A view that is named becomes a split.
    let views = views.into_iter().filter(|view| named != Some(view)).collect();
    write(&splits, views, &arguments.out, &arguments.layout, out)
}

/// Returns the names of the views of a dataset, which the new one does not have.
fn views(dataset: &Dataset) -> Vec<String> {
    let versions = dataset.manifest().versions.as_ref();
    versions.into_iter().flat_map(|versions| &versions.views).map(|view| view.name.clone()).collect()
}

pub(crate) fn merge(arguments: &MergeArguments, out: &mut Output) -> anyhow::Result<Exit> {
    let (mut splits, mut left) = (vec![], vec![]);
    for path in &arguments.datasets {
        let dataset = arguments.cache.open(path, &arguments.sources)?;
        splits.extend_from_slice(all(&dataset)?);
        left.extend(views(&dataset));
    }
    write(&splits, left, &arguments.out, &arguments.layout, out)
}

fn write(
    splits: &[Split],
    views: Vec<String>,
    folder: &Path,
    layout: &Layout,
    out: &mut Output,
) -> anyhow::Result<Exit> {
    let mut options = ReshardOptions::default();
    options.shards = layout.shards.map_or(Shards::Size(layout.shard_size), Shards::Count);
    options.seed = (!layout.no_shuffle).then_some(layout.seed);
    options.jobs = layout.jobs.unwrap_or(options.jobs);
    options.entry_points = layout.entries.written();
    options.single_writer = layout.single_writer;
    interrupt::declare(Interrupted::Stops(match is_url(folder) {
        true => "interrupted: the sources are unchanged; the same command continues after the finished shards",
        false => "interrupted: the sources are unchanged; the same command starts again",
    }));
    options.selection = layout.conditions.selection(splits)?;
    let selects = options.selection.is_some();
    let samples: u64 = splits.iter().map(Split::len).sum();
    let progress = Images::new("written");
    let written = reshard(splits, folder, &options, &progress);
    progress.finish();
    let (manifest, seconds) = (written?, progress.seconds());
    let left_out = samples - manifest.splits.iter().map(shardtool_format::manifest::Split::records).sum::<u64>();
    if layout.json {
        let split = |s: &shardtool_format::manifest::Split| {
            json!({"split": s.name, "records": s.records(), "shards": s.shards.len(), "bytes": s.bytes(),
                "fingerprint": format!("{:08x}", s.fingerprint())})
        };
        let splits: Vec<_> = manifest.splits.iter().map(split).collect();
        out.json(&json!({
            "out": folder.to_string_lossy(), "samples": samples, "left_out": left_out, "views_left_out": views, "splits": splits,
            "seconds": seconds,
        }))?;
        return Ok(Exit::Success);
    }
    for split in &manifest.splits {
        let (records, shards) =
            (text::plural(split.records(), "record"), text::plural(split.shards.len() as u64, "shard"));
        let (bytes, print) = (text::bytes(split.bytes()), split.fingerprint());
        writeln!(out, "split {}: {records} in {shards} ({bytes}), fingerprint {print:08x}", printable(&split.name))?;
    }
    writeln!(out, "{} is complete, {seconds:.2} s", folder.display())?;
    if !views.is_empty() {
        let names: Vec<_> = views.iter().map(|view| printable(view)).collect();
        writeln!(
            out,
            "  views left out: {} (`copy` keeps views; `--split VIEW` writes the records of one)",
            names.join(", ")
        )?;
    }
    if selects {
        let (left_out, samples) = (text::count(left_out), text::count(samples));
        writeln!(out, "  {left_out} of {samples} left out: --where does not hold for them")?;
    }
    Ok(Exit::Success)
}
