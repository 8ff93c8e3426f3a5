//! `shardtool gc`.

use super::NewestArgument;
use crate::exit::Exit;
use crate::headings;
use crate::output::Output;
use crate::text;
use serde_json::json;
use shardtool_pack::{GcOptions, gc};
use std::io::Write;

/// List or remove files that no kept version of a dataset needs
///
/// All versions are kept, unless --keep says otherwise; tagged ones always are. Only files with names that this program gives are
/// removed, and none without --yes. In a store, files stay that were written less than 24 hours ago.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// Keep this many versions, the newest included [default: all]
    #[arg(long, value_name = "N", help_heading = headings::RECORDS)]
    keep: Option<u64>,
    /// Remove the files
    #[arg(long, help_heading = headings::OUTPUT)]
    yes: bool,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// Files that are listed as text.
const LISTED: usize = 20;

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let mut options = GcOptions::default();
    (options.keep, options.remove) = (arguments.keep, arguments.yes);
    let collected = gc(&arguments.dataset.dataset, &options)?;
    if arguments.json {
        out.json(&json!({
            "files": collected.files, "bytes": collected.bytes, "versions": collected.versions, "removed": arguments.yes,
            "recent": collected.recent,
        }))?;
        return Ok(Exit::Success);
    }
    for file in collected.files.iter().take(LISTED) {
        writeln!(out, "{}", text::printable(file.as_os_str().as_encoded_bytes()))?;
    }
    if collected.files.len() > LISTED {
        writeln!(out, "…")?;
    }
    let files = text::plural(collected.files.len() as u64, "file");
    let verb = if arguments.yes { "removed" } else { "to remove (--yes removes them)" };
    writeln!(out, "{files}, {} {verb}", text::bytes(collected.bytes))?;
    if collected.recent > 0 {
        let files = text::plural(collected.recent, "further file");
        writeln!(
            out,
            "{files} that no version names, but written less than 24 hours ago, so that a process may be about to name them"
        )?;
    }
    if !collected.versions.is_empty() {
        let versions: Vec<_> = collected.versions.iter().map(u64::to_string).collect();
        writeln!(out, "versions that are not kept: {}", versions.join(", "))?;
    }
    Ok(Exit::Success)
}
