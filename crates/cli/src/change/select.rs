//! `shardtool select`.

use super::records::RecordArguments;
use super::{ChangeArguments, NewestArgument, print_version, version_json};
use crate::exit::Exit;
use crate::headings;
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_pack::{SelectOptions, remove_view, select};
use std::io::Write;

/// Give some records of a split a name: a view, which every command reads as a split
///
/// The records are chosen once, and stay the same when the split grows; a deleted record leaves the view. No shard is written.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("records").required(true).args(["conditions", "keys", "ids", "remove"])))]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// Name of the view
    name: String,
    #[command(flatten)]
    records: RecordArguments,
    /// Split, or a view of it [default: the only split]
    #[arg(long, value_name = "NAME", help_heading = headings::RECORDS)]
    split: Option<String>,
    /// Choose the others if keys or ids are unknown
    #[arg(long, help_heading = headings::RECORDS)]
    ignore_unknown: bool,
    /// Replace a view of this name
    #[arg(long, help_heading = headings::RECORDS)]
    replace: bool,
    /// Remove the view; its records stay
    #[arg(long, conflicts_with_all = ["split", "ignore_unknown", "replace"], help_heading = headings::RECORDS)]
    remove: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let (dataset, name, change) = (&arguments.dataset.dataset, &arguments.name, arguments.change.options());
    let dry_run = change.dry_run;
    if arguments.remove {
        let version = remove_view(dataset, name, &change)?;
        if arguments.change.json {
            out.json(&json!({ "version": version_json(version), "view": name }))?;
        } else {
            writeln!(out, "view {} removed", text::printable(name.as_bytes()))?;
            print_version(version, dry_run, false, out)?;
        }
        return Ok(Exit::Success);
    }
    let mut options = SelectOptions::new(arguments.records.chosen()?);
    (options.split, options.ignore_unknown) = (arguments.split.clone(), arguments.ignore_unknown);
    (options.replace, options.change) = (arguments.replace, change);
    let progress = Images::new("searched");
    let selected = select(dataset, name, &options, &progress);
    progress.finish();
    let selected = selected?;
    if arguments.change.json {
        out.json(&json!({
            "version": version_json(selected.version), "view": name, "split": selected.split, "records": selected.records,
            "unknown": selected.unknown, "repeated": selected.repeated, "bytes": selected.bytes,
        }))?;
        return Ok(Exit::Success);
    }
    writeln!(
        out,
        "view {}: {} of split {}",
        text::printable(name.as_bytes()),
        text::plural(selected.records, "record"),
        text::printable(selected.split.as_bytes())
    )?;
    for (count, what) in [(selected.unknown, "that no record has"), (selected.repeated, "given twice")] {
        if count > 0 {
            writeln!(out, "  {} {what}", text::plural_irregular(count, "key or id", "keys or ids"))?;
        }
    }
    print_version(selected.version, dry_run, false, out)?;
    Ok(Exit::Success)
}
