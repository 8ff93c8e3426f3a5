//! `shardtool log`.

use crate::exit::Exit;
use crate::open::DatasetArgument;
use crate::output::Output;
use crate::text;
use serde_json::json;
use shardtool_read::LoggedVersion;
use std::io::Write;

/// List the versions of a dataset, the newest first
///
/// Each can be opened as DATASET@NUMBER, DATASET@TAG or DATASET@CHECKSUM, wherever a dataset is named.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: DatasetArgument,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let dataset = arguments.dataset.open()?;
    let versions = dataset.log()?;
    if arguments.json {
        let versions: Vec<_> = versions.iter().map(document).collect();
        out.json(&json!({ "dataset": dataset.path().to_string_lossy(), "versions": versions }))?;
        return Ok(Exit::Success);
    }
    for version in &versions {
        let tags: String = version.tags.iter().map(|tag| format!(" [{tag}]")).collect();
        let purged = if version.purged { " (purged since)" } else { "" };
        let command = version.command.as_deref().unwrap_or("first version");
        let checksum = format!("{:08x}", version.checksum);
        writeln!(out, "{:>6}  {checksum}  {}{tags}{purged}", version.number, text::printable(command.as_bytes()))?;
        let splits: Vec<_> = version
            .splits
            .iter()
            .map(|split| {
                let (records, shards) =
                    (text::plural(split.records, "record"), text::plural(split.shards as u64, "shard"));
                format!("{} {records} in {shards}", text::printable(split.name.as_bytes()))
            })
            .collect();
        writeln!(out, "        {}", splits.join("; "))?;
        for line in version.author.iter().map(|author| format!("by {author}")).chain(version.message.clone()) {
            writeln!(out, "        {}", text::printable(line.as_bytes()))?;
        }
    }
    Ok(Exit::Success)
}

fn document(version: &LoggedVersion) -> serde_json::Value {
    let splits: Vec<_> = version
        .splits
        .iter()
        .map(|split| {
            json!({
                "split": split.name, "records": split.records, "shards": split.shards,
                "fingerprint": format!("{:08x}", split.fingerprint),
            })
        })
        .collect();
    json!({
        "version": version.number, "checksum": format!("{:08x}", version.checksum), "command": version.command,
        "message": version.message, "author": version.author, "tags": version.tags, "purged": version.purged,
        "splits": splits,
    })
}
