//! `shardtool rollback`.

use super::{ChangeArguments, NewestArgument, version_json};
use crate::exit::Exit;
use crate::output::Output;
use serde_json::json;
use shardtool_pack::rollback;
use std::io::Write;

/// Make a new version with the contents of an earlier one
///
/// The versions in between stay readable.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// Number, tag or checksum of the version to return to
    version: String,
    #[command(flatten)]
    change: ChangeArguments,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let options = arguments.change.options();
    let (to, version) = rollback(&arguments.dataset.dataset, &arguments.version, &options)?;
    match (arguments.change.json, version) {
        (true, _) => out.json(&json!({ "version": version_json(version), "contents_of": to }))?,
        (false, Some(version)) => writeln!(out, "version {} has the contents of version {to}", version.number)?,
        (false, None) if options.dry_run => {
            writeln!(out, "it would have the contents of version {to}; nothing was written (--dry-run)")?
        }
        (false, None) => writeln!(out, "the newest version has the contents of version {to} already")?,
    }
    Ok(Exit::Success)
}
