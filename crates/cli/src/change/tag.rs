//! `shardtool tag`.

use super::{ChangeArguments, NewestArgument, version_json};
use crate::exit::Exit;
use crate::headings;
use crate::output::Output;
use serde_json::json;
use shardtool_pack::{remove_tag, tag};
use std::io::Write;

/// Name a version of a dataset, so that it can be opened as DATASET@NAME and `gc` keeps it
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// A letter, then letters, digits, `.`, `_` and `-`
    name: String,
    /// Version to name [default: the newest]
    #[arg(long, value_name = "VERSION", conflicts_with = "remove", help_heading = headings::RECORDS)]
    at: Option<String>,
    /// Remove the tag
    #[arg(long, help_heading = headings::RECORDS)]
    remove: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let Arguments { dataset, name, change, .. } = arguments;
    let options = change.options();
    if arguments.remove {
        let version = remove_tag(&dataset.dataset, name, &options)?;
        match change.json {
            true => out.json(&json!({ "version": version_json(version), "removed": name }))?,
            false if version.is_none() => writeln!(out, "nothing was written (--dry-run)")?,
            false => writeln!(out, "tag {name} removed")?,
        }
        return Ok(Exit::Success);
    }
    let (tagged, version) = tag(&dataset.dataset, name, arguments.at.as_deref(), &options)?;
    match (change.json, version) {
        (true, _) => out.json(&json!({ "version": version_json(version), "tagged": tagged, "tag": name }))?,
        (false, Some(_)) => writeln!(out, "version {tagged} is now {name}")?,
        (false, None) if options.dry_run => {
            writeln!(out, "version {tagged} would be {name}; nothing was written (--dry-run)")?
        }
        (false, None) => writeln!(out, "version {tagged} is {name} already")?,
    }
    Ok(Exit::Success)
}
