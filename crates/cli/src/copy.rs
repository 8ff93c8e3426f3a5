//! `shardtool copy`.

use crate::exit::Exit;
use crate::interrupt::{self, Interrupted};
use crate::open::SourcesArgument;
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::printable;
use shardtool_pack::{CopyOptions, copy};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Copy a dataset between folders and object stores (s3://, gs://, az://; from http:// too)
///
/// Every byte is compared with the manifest on its way, and the manifest is written last. An interrupted copy continues
/// with the same command. A copy of a clone has all shards.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder or URL of a dataset
    source: PathBuf,
    /// Folder or URL to copy it to
    destination: PathBuf,
    /// Number of shards copied at once; each takes up to 48 MiB of memory
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write to a store that cannot refuse to replace an object: nothing else may write to the destination
    #[arg(long)]
    single_writer: bool,
    /// Copy the earlier versions too
    #[arg(long)]
    all_versions: bool,
    #[command(flatten)]
    sources: SourcesArgument,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let Arguments { source, destination, .. } = arguments;
    let mut options = CopyOptions::default();
    options.jobs = arguments.jobs.unwrap_or(options.jobs);
    (options.single_writer, options.all_versions) = (arguments.single_writer, arguments.all_versions);
    options.sources = arguments.sources.prefixes().to_vec();
    interrupt::declare(Interrupted::Exits(
        "interrupted: copied shards are kept; the same command continues after them",
    ));
    let progress = Images::new("copied");
    let copied = copy(source, destination, &options, &progress);
    progress.finish();
    let copied = copied?;
    if arguments.json {
        out.json(&json!({ "shards": copied.shards, "skipped": copied.skipped, "bytes": copied.bytes }))?;
    } else {
        let name = printable(&destination.to_string_lossy()).into_owned();
        let (shards, bytes) = (text::plural(copied.shards, "shard"), text::bytes(copied.bytes));
        write!(out, "{name} is complete: {shards}, {bytes} copied")?;
        if copied.skipped > 0 {
            write!(out, ", {} copied before", text::plural(copied.skipped, "shard"))?;
        }
        writeln!(out)?;
    }
    Ok(Exit::Success)
}
