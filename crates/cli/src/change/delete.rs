//! `shardtool delete`.

use super::{ChangeArguments, NewestArgument, print_version, version_json};
use crate::exit::Exit;
use crate::headings;
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use anyhow::Context;
use serde_json::json;
use shardtool_pack::{DeleteOptions, RecordsToDelete, delete};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Delete records: a new version without them
///
/// The shards stay as they are, and so do the versions before. `compact` writes shards without the deleted records, and `gc`
/// then removes those that no kept version needs.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("records").required(true).args(["conditions", "keys", "ids"])))]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// Delete records for which this holds
    ///
    /// CONDITION is FEATURE, one of = != < <= > >= ~, and a value, such as source=flickr. May be repeated: all must hold.
    #[arg(long = "where", value_name = "CONDITION", help_heading = headings::RECORDS)]
    conditions: Vec<String>,
    /// Delete records with the keys in a file, one a line (- is standard input)
    #[arg(long, value_name = "FILE", help_heading = headings::RECORDS)]
    keys: Option<PathBuf>,
    /// Delete records with the ids in a file, one a line (- is standard input)
    ///
    /// Ids are numbers in a split, as `ls` prints them: name the split.
    #[arg(long, value_name = "FILE", help_heading = headings::RECORDS)]
    ids: Option<PathBuf>,
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
    let records = match (&arguments.keys, &arguments.ids) {
        (Some(file), _) => RecordsToDelete::Keys(lines(file)?),
        (None, Some(file)) => {
            let id = |(line, text): (usize, Vec<u8>)| {
                let text = String::from_utf8_lossy(&text).into_owned();
                text.trim()
                    .parse()
                    .with_context(|| format!("{}, line {line}: expected an id, found `{text}`", file.display()))
            };
            RecordsToDelete::Ids((1..).zip(lines(file)?).map(id).collect::<anyhow::Result<_>>()?)
        }
        (None, None) => RecordsToDelete::Where(arguments.conditions.clone()),
    };
    let mut options = DeleteOptions::new(records);
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

/// Returns the lines of a file, without their ends and without empty ones.
fn lines(file: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut bytes = vec![];
    if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec());
    Ok(lines.filter(|line| !line.is_empty()).collect())
}
