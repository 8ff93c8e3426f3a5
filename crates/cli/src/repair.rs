//! `shardtool repair`.

use crate::entries::EntriesArgument;
use crate::exit::Exit;
use crate::headings;
use crate::index::ConventionsArguments;
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::{Chain, Damage, printable};
use shardtool_pack::{Action, Lost, ManifestRepair, Repair, RepairOptions, ShardRepair, repair};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Rebuild missing or damaged indexes and manifest from the records; salvage the good records of damaged shards
///
/// Every record is verified again before a new CRC is written. A damaged shard is never overwritten: its good records are
/// copied to a new file, and lost records are listed by number, key and byte range. Exit status 1 if records are lost or a
/// shard is missing.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of the dataset
    dataset: PathBuf,
    #[command(flatten)]
    conventions: ConventionsArguments,
    #[command(flatten)]
    entries: EntriesArgument,
    /// Only give an edited manifest its CRC
    ///
    /// The manifest is compared with shards and indexes first.
    #[arg(long, conflicts_with_all = ["jobs"], help_heading = headings::CHECKS)]
    reseal: bool,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<NonZeroUsize>,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    if arguments.reseal {
        return reseal(arguments, out);
    }
    let mut options = RepairOptions::default();
    options.conventions = arguments.conventions.conventions();
    options.entry_points = arguments.entries.written();
    options.jobs = arguments.jobs.unwrap_or(options.jobs);
    let progress = Images::new("read");
    let repaired = repair(&arguments.dataset, &options, &progress);
    progress.finish();
    let repaired = repaired?;
    if arguments.json {
        out.json(&document(&repaired))?;
    } else {
        print(&repaired, out)?;
    }
    let lost = repaired.shards.iter().any(|s| !s.lost.is_empty() || s.action == Action::Missing);
    Ok(if lost { Exit::Finding } else { Exit::Success })
}

fn reseal(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let changed = shardtool_pack::reseal(&arguments.dataset)?;
    match (arguments.json, changed) {
        (true, _) => out.json(&json!({ "manifest": if changed { "updated" } else { "kept" } }))?,
        (false, true) => writeln!(out, "manifest sealed: it agrees with the lengths and indexes of all shards")?,
        (false, false) => writeln!(out, "manifest kept: it is canonical and its CRC is right")?,
    }
    Ok(Exit::Success)
}

fn manifest(repair: &Repair) -> &'static str {
    match repair.manifest {
        ManifestRepair::Kept => "kept",
        ManifestRepair::Updated => "updated",
        ManifestRepair::Rebuilt => "rebuilt",
    }
}

fn action(shard: &ShardRepair) -> String {
    match &shard.action {
        Action::Intact => "intact".to_owned(),
        Action::IndexRebuilt => "index rebuilt".to_owned(),
        Action::Accepted => "every record is good: the manifest now describes this file".to_owned(),
        Action::Salvaged { file, records } => {
            format!("{} salvaged into {}, which replaces it", text::plural(*records, "good record"), printable(file))
        }
        Action::Restored { file } => {
            format!("a salvaged copy; {file} is whole again and replaces it")
        }
        Action::Missing => "missing: restore the file and run repair again".to_owned(),
    }
}

fn print(repair: &Repair, out: &mut Output) -> anyhow::Result<()> {
    let intact = repair.shards.iter().filter(|s| s.action == Action::Intact && s.lost.is_empty()).count();
    writeln!(
        out,
        "manifest {}; {} of {} intact",
        manifest(repair),
        intact,
        text::plural(repair.shards.len() as u64, "shard")
    )?;
    for shard in &repair.shards {
        if shard.action == Action::Intact && shard.lost.is_empty() {
            continue;
        }
        writeln!(out, "{}: {}", printable(&shard.file), action(shard))?;
        for lost in &shard.lost {
            writeln!(out, "  lost: {}", describe(lost))?;
        }
    }
    for split in &repair.unfinished {
        writeln!(out, "split {} is unfinished: run the same pack again to finish it", printable(split))?;
    }
    Ok(())
}

/// Number of keys of lost records that are listed as text.
const KEYS: usize = 5;

fn describe(lost: &Lost) -> String {
    let records = match &lost.records {
        Some(r) if r.end - r.start == 1 => format!("record {}", r.start),
        Some(r) => format!("records {} to {}", r.start, r.end.saturating_sub(1)),
        None => "an unknown number of records".to_owned(),
    };
    let mut keys: Vec<_> = lost.keys.iter().take(KEYS).map(|k| text::printable(k)).collect();
    if lost.keys.len() > KEYS {
        keys.push(format!("and {} more", lost.keys.len() - KEYS));
    }
    let keys = if keys.is_empty() { String::new() } else { format!(" ({})", keys.join(", ")) };
    let why = lost.problem.as_ref().map_or("the file ends".to_owned(), |problem| Chain(problem).to_string());
    format!("{records}{keys}, bytes {} to {}: {why}", lost.bytes.start, lost.bytes.end)
}

fn document(repair: &Repair) -> serde_json::Value {
    let lost = |l: &Lost| {
        json!({
            "bytes": [l.bytes.start, l.bytes.end], "records": l.records.as_ref().map(|r| [r.start, r.end]),
            "keys": l.keys.iter().map(|k| String::from_utf8_lossy(k).into_owned()).collect::<Vec<_>>(),
            "name": l.problem.as_ref().map(|p| p.damage().map_or("Io", Damage::name)), "problem": l.problem.as_ref().map(|p| Chain(p).to_string()),
        })
    };
    let shard = |s: &ShardRepair| json!({"split": s.split, "file": s.file, "action": action(s), "lost": s.lost.iter().map(lost).collect::<Vec<_>>()});
    json!({
        "manifest": manifest(repair), "shards": repair.shards.iter().map(shard).collect::<Vec<_>>(),
        "unfinished": repair.unfinished,
    })
}
