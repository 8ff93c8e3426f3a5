//! `shardtool append`.

use super::{print_version, version_json};
use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::open::SourcesArgument;
use crate::output::Output;
use crate::pack;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_pack::{AppendOptions, AppendedSplit, append};
use std::io::Write;

/// Pack images into further shards of a split that a dataset has: a new version
///
/// SOURCE and the options are those of `pack`. The dataset's classes, features and types hold; keys must be new. An interrupted
/// append continues with the same command.
#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pack: pack::Arguments,
    /// Delete records whose keys SOURCE has too
    ///
    /// The new records take their place, in one version.
    #[arg(long, help_heading = headings::SPLITS)]
    replace: bool,
    /// Give classes that the dataset lacks the next ids
    #[arg(long, help_heading = headings::SOURCE_FIELDS)]
    add_classes: bool,
    /// Words about the change, for `shardtool log`
    #[arg(long, value_name = "TEXT", help_heading = headings::OUTPUT)]
    message: Option<String>,
    /// Who makes the change, for `shardtool log`
    #[arg(long, value_name = "NAME", help_heading = headings::OUTPUT, hide_short_help = true)]
    author: Option<String>,
    #[command(flatten)]
    sources: SourcesArgument,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let Arguments { pack, .. } = arguments;
    if let Some(option) = pack.option_of_a_new_split() {
        anyhow::bail!("{option} is for a split that is packed: `append` adds to one that is there");
    }
    let mut options = AppendOptions::new("", "");
    (options.pack, options.replace, options.add_classes) = (pack.options(), arguments.replace, arguments.add_classes);
    (options.change.message, options.change.author) = (arguments.message.clone(), arguments.author.clone());
    (options.change.dry_run, options.change.single_writer) = (pack.dry_run, options.pack.single_writer);
    options.change.sources = arguments.sources.prefixes().to_vec();
    interrupt::declare(Interrupted::Stops(
        "interrupted: the dataset is unchanged; the same command continues after the finished shards",
    ));
    let progress = Images::new("packed");
    let appended = append(&options, &progress);
    progress.finish();
    let appended = appended?;
    let rejected: u64 = appended.splits.iter().map(|split| split.rejected).sum();
    if pack.json {
        let split = |split: &AppendedSplit| {
            json!({
                "split": split.name, "samples": split.samples, "records": split.records, "rejected": split.rejected,
                "rejected_file": split.rejected_file, "replaced": split.replaced, "keys_compared": split.keys_compared,
                "shards": split.shards, "bytes": split.bytes,
            })
        };
        let splits: Vec<_> = appended.splits.iter().map(split).collect();
        out.json(&json!({
            "version": version_json(appended.version), "splits": splits, "new_classes": appended.new_classes,
            "absent": appended.absent, "left_out": appended.left_out,
        }))?;
    } else {
        for split in &appended.splits {
            let (records, shards) = (text::plural(split.records, "record"), text::plural(split.shards, "shard"));
            writeln!(
                out,
                "split {}: {records} in {shards} ({})",
                text::printable(split.name.as_bytes()),
                text::bytes(split.bytes)
            )?;
            if split.replaced > 0 {
                writeln!(out, "  {} of equal keys deleted", text::plural(split.replaced, "older record"))?;
            }
            match &split.rejected_file {
                Some(file) => {
                    writeln!(out, "  {} rejected, see {}", text::plural(split.rejected, "input"), file.display())?;
                }
                None if split.rejected > 0 => writeln!(out, "  {} rejected", text::plural(split.rejected, "input"))?,
                None => {}
            }
            if !split.keys_compared {
                writeln!(out, "  keys are compared when SOURCE is read: a dry run does not know them")?;
            }
        }
        if !appended.new_classes.is_empty() {
            let names = text::printable(appended.new_classes.join(", ").as_bytes());
            writeln!(out, "new classes, after those that were there: {names}")?;
        }
        pack::print_left_out(&appended.left_out, out)?;
        if !appended.absent.is_empty() {
            let names = text::printable(appended.absent.join(", ").as_bytes());
            writeln!(out, "the new records have no values of {names}: SOURCE lacks them")?;
        }
        print_version(appended.version, pack.dry_run, options.replace, out)?;
    }
    Ok(if rejected > 0 { Exit::Finding } else { Exit::Success })
}
