//! `shardtool commit`, `shardtool status` and `shardtool clean`: a pack in parts.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::text;
use serde_json::json;
use shardtool_pack::{CommitOptions, CommittedSplit, DestinationError, Error, SplitStatus, commit_split};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Complete splits that were packed with --part: check every shard, and write the manifest
///
/// Exits with status 1 if shards are missing or inputs were rejected. A repeated commit changes nothing.
#[derive(clap::Args)]
pub(crate) struct CommitArguments {
    /// Folder or URL of the dataset
    destination: PathBuf,
    /// The split, also one of several writers [default: every unfinished one]
    #[arg(long)]
    split: Vec<String>,
    /// Write to a store that does not compare versions of objects: nothing else may write to DESTINATION
    #[arg(long)]
    single_writer: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Show which shards of unfinished packs are done, begun and missing
///
/// Exits with status 1 if a shard is missing. Reads no shard, and writes nothing.
#[derive(clap::Args)]
pub(crate) struct StatusArguments {
    /// Folder or URL of the dataset
    destination: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Remove what killed processes left in a dataset; finished shards and plans are kept
#[derive(clap::Args)]
pub(crate) struct CleanArguments {
    /// Folder or URL of the dataset
    destination: PathBuf,
    /// Write to a store that does not compare versions of objects: nothing else may write to DESTINATION
    #[arg(long)]
    single_writer: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn commit(arguments: &CommitArguments, out: &mut Output) -> anyhow::Result<Exit> {
    let CommitArguments { destination, split, single_writer, json } = arguments;
    let splits = match split.is_empty() {
        true => shardtool_pack::status(destination)?.into_iter().map(|status| status.split).collect::<Vec<_>>(),
        false => split.clone(),
    };
    let nothing = splits.is_empty();
    let mut documents = vec![];
    let mut exit = Exit::Success;
    for split in splits {
        let mut options = CommitOptions::new(destination, &split);
        options.single_writer = *single_writer;
        let done = match commit_split(&options, &()) {
            Err(error @ Error::Destination(DestinationError::ShardsMissing { .. })) => {
                exit::print_error(&error);
                exit = Exit::Finding;
                continue;
            }
            done => done?,
        };
        if done.rejected > 0 {
            exit = Exit::Finding;
        }
        match json {
            true => documents.push(document(&done)),
            false => print(&done, destination, out)?,
        }
    }
    if *json {
        out.json(&json!({ "destination": destination.to_string_lossy(), "splits": documents }))?;
    } else if nothing {
        writeln!(out, "nothing to commit: {} has no unfinished split", destination.display())?;
    }
    Ok(exit)
}

fn document(done: &CommittedSplit) -> serde_json::Value {
    let split = &done.split;
    json!({
        "split": split.name, "images": split.records(), "shards": split.shards.len(), "bytes": split.bytes(),
        "classes": done.classes, "fingerprint": format!("{:08x}", split.fingerprint()), "rejected": done.rejected,
        "rejected_file": done.rejected_file, "already_complete": done.already_complete,
    })
}

fn print(done: &CommittedSplit, destination: &Path, out: &mut Output) -> anyhow::Result<()> {
    let split = &done.split;
    let verb = if done.already_complete { "already complete:" } else { "committed" };
    let (records, shards) = (text::plural(split.records(), "record"), text::plural(split.shards.len() as u64, "shard"));
    let (bytes, fingerprint) = (text::bytes(split.bytes()), split.fingerprint());
    writeln!(out, "{verb} {records} in {shards} ({bytes}) of {}, split {}", destination.display(), split.name)?;
    writeln!(out, "  fingerprint {fingerprint:08x}")?;
    if let Some(file) = &done.rejected_file {
        let rejected = text::plural(done.rejected, "input");
        writeln!(out, "  {rejected} rejected; each is listed with its reason in {}", file.display())?;
    }
    Ok(())
}

pub(crate) fn status(arguments: &StatusArguments, out: &mut Output) -> anyhow::Result<Exit> {
    let splits = shardtool_pack::status(&arguments.destination)?;
    let missing =
        |split: &SplitStatus| split.shards.as_ref().is_some_and(|s| !(s.missing.is_empty() && s.begun.is_empty()));
    let exit = if splits.iter().any(missing) { Exit::Finding } else { Exit::Success };
    if arguments.json {
        let split = |status: &SplitStatus| match &status.shards {
            None => json!({ "split": status.split, "parts": false }),
            Some(s) => json!({
                "split": status.split, "parts": true, "planned": s.planned, "done": s.done, "begun": s.begun,
                "missing": s.missing, "attempts": s.attempts,
            }),
        };
        let splits: Vec<_> = splits.iter().map(split).collect();
        out.json(&json!({ "destination": arguments.destination.to_string_lossy(), "splits": splits }))?;
        return Ok(exit);
    }
    if splits.is_empty() {
        writeln!(out, "{} has no unfinished split", arguments.destination.display())?;
    }
    for SplitStatus { split, shards, .. } in &splits {
        if let Some(split) = shardtool_pack::grown_split(split) {
            let what = "an unfinished append; the same `shardtool append` continues it, `shardtool gc` removes it";
            writeln!(out, "split {split}: {what}")?;
            continue;
        }
        let Some(s) = shards else {
            writeln!(
                out,
                "split {split}: an unfinished pack, not in parts; run the same `shardtool pack` again to finish it"
            )?;
            continue;
        };
        writeln!(
            out,
            "split {split}: {} planned: {} done, {} begun, {} missing",
            text::plural(s.planned as u64, "shard"),
            text::count(s.done.len() as u64),
            text::count(s.begun.len() as u64),
            text::count(s.missing.len() as u64)
        )?;
        for (what, numbers) in [("begun", &s.begun), ("missing", &s.missing)] {
            if !numbers.is_empty() {
                writeln!(out, "  {what}: {}", ranges(numbers))?;
            }
        }
        match (s.missing.is_empty(), s.begun.is_empty()) {
            (true, true) => writeln!(out, "  next: shardtool commit {}", arguments.destination.display())?,
            (true, false) => {
                writeln!(out, "  begun: being written now, or left by a killed part; run that part again")?
            }
            (false, _) => {
                writeln!(out, "  next: run the parts of these shards; part I of N writes those modulo N = I")?
            }
        }
    }
    Ok(exit)
}

/// Returns ascending numbers as ranges, at most some of them.
fn ranges(numbers: &[usize]) -> String {
    const SHOWN: usize = 12;
    let mut found: Vec<(usize, usize)> = vec![];
    for &number in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => found.push((number, number)),
        }
    }
    let more = found.len().saturating_sub(SHOWN);
    let range =
        |(first, last): &(usize, usize)| if first == last { format!("{first}") } else { format!("{first} to {last}") };
    let mut text = found.iter().take(SHOWN).map(range).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text += &format!(" and {more} more ranges");
    }
    text
}

pub(crate) fn clean(arguments: &CleanArguments, out: &mut Output) -> anyhow::Result<Exit> {
    let cleaned = shardtool_pack::clean(&arguments.destination, arguments.single_writer)?;
    if arguments.json {
        out.json(&json!({
            "destination": arguments.destination.to_string_lossy(),
            "removed": cleaned.removed.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
            "running": cleaned.running, "unfinished": cleaned.unfinished,
        }))?;
        return Ok(Exit::Success);
    }
    for path in &cleaned.removed {
        writeln!(out, "removed {}", path.display())?;
    }
    writeln!(out, "{} removed", text::plural(cleaned.removed.len() as u64, "file"))?;
    if cleaned.running > 0 {
        writeln!(
            out,
            "  {} still running; run `shardtool clean` again later",
            text::plural(cleaned.running as u64, "part")
        )?;
    }
    for split in &cleaned.unfinished {
        writeln!(out, "  split {split} is unfinished: its shards and its plan are kept")?;
    }
    Ok(Exit::Success)
}
