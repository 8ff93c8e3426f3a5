//! `shardtool clone`.

use crate::exit::Exit;
use crate::interrupt::{self, Interrupted};
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::printable;
use shardtool_pack::{CloneOptions, clone};
use std::io::Write;
use std::path::PathBuf;

/// Make a dataset of the shards of another one, which stay where they are
///
/// The clone has its own columns, deletions, views and versions: what is changed in one of the two is not changed in the other. Readers
/// of the clone need --source FOLDER, and it is broken if the first dataset is moved or its shards are removed; `shardtool copy` of
/// the clone has all shards.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder or URL of a dataset, or of a version of it (DATASET@VERSION)
    dataset: PathBuf,
    /// Folder or URL of the clone
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write to a store that cannot refuse to replace an object: nothing else may write to the clone
    #[arg(long)]
    single_writer: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let Arguments { dataset, out: clone_folder, .. } = arguments;
    let mut options = CloneOptions::default();
    options.single_writer = arguments.single_writer;
    interrupt::declare(Interrupted::Exits("interrupted: the same command continues"));
    let progress = Images::new("copied");
    let cloned = clone(dataset, clone_folder, &options, &progress);
    progress.finish();
    let cloned = cloned?;
    if arguments.json {
        out.json(&json!({ "shards": cloned.shards, "bytes": cloned.bytes, "sources": cloned.sources }))?;
        return Ok(Exit::Success);
    }
    let [name, of] = [clone_folder, dataset].map(|path| printable(&path.to_string_lossy()).into_owned());
    let (shards, bytes) = (text::plural(cloned.shards, "shard"), text::bytes(cloned.bytes));
    writeln!(out, "{name} is a clone of {of}: {shards} that stay where they are, {bytes} copied")?;
    for source in &cloned.sources {
        print_source(source, out)?;
    }
    Ok(Exit::Success)
}

/// Says how a dataset is opened whose files lie elsewhere.
pub(crate) fn print_source(source: &str, out: &mut Output) -> anyhow::Result<()> {
    let source = printable(source);
    writeln!(out, "Its files lie elsewhere: open it with --source {source} (Python: source=\"{source}\")")?;
    Ok(())
}
