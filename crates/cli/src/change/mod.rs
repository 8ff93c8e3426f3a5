//! Commands that change a dataset, each of which makes a new version, and those about its versions.
//!
//! | module | responsibility |
//! |---|---|
//! | `append` | `shardtool append` |
//! | `delete` | `shardtool delete` |
//! | `column` | `shardtool column` |
//! | `compact` | `shardtool compact` |
//! | `gc` | `shardtool gc` |
//! | `purge` | `shardtool purge` |
//! | `records` | options that say which records a change takes |
//! | `select` | `shardtool select` |
//! | `log` | `shardtool log` |
//! | `tag` | `shardtool tag` |
//! | `rollback` | `shardtool rollback` |

pub(crate) mod append;
pub(crate) mod column;
pub(crate) mod compact;
pub(crate) mod delete;
pub(crate) mod gc;
pub(crate) mod log;
pub(crate) mod purge;
mod records;
pub(crate) mod rollback;
pub(crate) mod select;
pub(crate) mod tag;

use crate::headings;
use crate::open::SourcesArgument;
use crate::output::Output;
use serde_json::{Value, json};
use shardtool_pack::{ChangeOptions, NewVersion};
use std::io::Write;
use std::path::PathBuf;

/// What the commands that make a version have in common.
#[derive(clap::Args)]
pub(crate) struct ChangeArguments {
    /// Words about the change, for `shardtool log`
    #[arg(long, value_name = "TEXT", help_heading = headings::OUTPUT)]
    message: Option<String>,
    /// Who makes the change, for `shardtool log`
    #[arg(long, value_name = "NAME", help_heading = headings::OUTPUT, hide_short_help = true)]
    author: Option<String>,
    /// Find out what would change, and write nothing
    #[arg(long, help_heading = headings::OUTPUT)]
    dry_run: bool,
    /// Write to a store without versions of objects
    ///
    /// For a store that does not compare versions of objects: nothing else may write to the dataset.
    #[arg(long, help_heading = headings::MACHINE, hide_short_help = true)]
    single_writer: bool,
    #[command(flatten)]
    sources: SourcesArgument,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

impl ChangeArguments {
    fn options(&self) -> ChangeOptions {
        let mut options = ChangeOptions::default();
        (options.message, options.author) = (self.message.clone(), self.author.clone());
        (options.dry_run, options.single_writer) = (self.dry_run, self.single_writer);
        options.sources = self.sources.prefixes().to_vec();
        options
    }
}

/// The newest version of a dataset.
#[derive(clap::Args)]
pub(crate) struct NewestArgument {
    /// Folder or URL of a dataset: its newest version is changed
    dataset: PathBuf,
}

/// Returns the version of a change for a JSON document.
fn version_json(version: Option<NewVersion>) -> Value {
    json!(version.map(|version| version.number))
}

/// Prints which version a change made. `others` says that other programs read the shards themselves, and so see what was there
/// before.
fn print_version(version: Option<NewVersion>, dry_run: bool, others: bool, out: &mut Output) -> anyhow::Result<()> {
    match version {
        None if dry_run => writeln!(out, "nothing was written (--dry-run)")?,
        None => writeln!(out, "nothing to change: no new version")?,
        Some(version) => {
            writeln!(
                out,
                "version {} (version {} stays readable: DATASET@{})",
                version.number, version.parent, version.parent
            )?;
            if others && version.has_stored_shards {
                writeln!(
                    out,
                    "  TensorFlow, DALI and others that read the shards themselves still see the records as they were;\n  \
                     `compact`, or `export --to tfrecord`, writes shards of this version"
                )?;
            }
        }
    }
    Ok(())
}
