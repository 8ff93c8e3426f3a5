//! `shardtool delete`.

use super::records::RecordArguments;
use super::{ChangeArguments, NewestArgument, print_version, version_json};
use crate::exit::Exit;
use crate::headings;
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_pack::{DeleteOptions, delete};
use std::io::Write;

/// Delete records: a new version without them
///
/// The shards stay as they are, and so do the versions before. `compact` writes shards without the deleted records, and `gc`
/// then removes those that no kept version needs.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("records").required(true).args(["conditions", "keys", "ids"])))]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: NewestArgument,
    #[command(flatten)]
    records: RecordArguments,
    /// Split [default: all; of ids: the only one]
    #[arg(long, value_name = "NAME", help_heading = headings::RECORDS)]
    split: Vec<String>,
    /// Delete the others if keys or ids are unknown
    #[arg(long, help_heading = headings::RECORDS)]
    ignore_unknown: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let mut options = DeleteOptions::new(arguments.records.chosen()?);
    (options.splits, options.ignore_unknown) = (arguments.split.clone(), arguments.ignore_unknown);
    options.change = arguments.change.options();
    let progress = Images::new("searched");
    let deleted = delete(&arguments.dataset.dataset, &options, &progress);
    progress.finish();
    let deleted = deleted?;
    if arguments.change.json {
        let splits: Vec<_> = deleted.splits.iter().map(|(name, n)| json!({"split": name, "records": n})).collect();
        out.json(&json!({
            "version": version_json(deleted.version), "records": deleted.records(), "splits": splits,
            "unknown": deleted.unknown, "repeated": deleted.repeated, "bytes": deleted.bytes,
        }))?;
        return Ok(Exit::Success);
    }
    for (name, records) in &deleted.splits {
        writeln!(out, "split {}: {} deleted", text::printable(name.as_bytes()), text::plural(*records, "record"))?;
    }
    for (count, what) in [(deleted.unknown, "that no record has"), (deleted.repeated, "given twice")] {
        if count > 0 {
            writeln!(out, "  {} {what}", text::plural_irregular(count, "key or id", "keys or ids"))?;
        }
    }
    print_version(deleted.version, options.change.dry_run, deleted.version.is_some(), out)?;
    Ok(Exit::Success)
}
