//! `shardtool purge`.

use super::{NewestArgument, print_version, version_json};
use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::open::is_url;
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_pack::{PurgeOptions, Purged, purge};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Remove deleted records from all versions of a dataset: their bytes, keys and values
///
/// Every version that had one is written again without it, and the old files are removed. Versions keep their numbers; ids and
/// fingerprints of those change. Without --yes, it is only listed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// Purge; without it, what would be purged is listed
    #[arg(long, conflicts_with = "dry_run", help_heading = headings::OUTPUT)]
    yes: bool,
    /// Find out what would be purged, and write nothing
    #[arg(long, help_heading = headings::OUTPUT)]
    dry_run: bool,
    /// Let purged keys come back
    ///
    /// By default the dataset keeps their HMACs under a random key, and `append` refuses them.
    #[arg(long, help_heading = headings::RECORDS)]
    forget_keys: bool,
    /// Read all files in the dataset's folder afterwards, and search them for purged keys and bytes
    #[arg(long, requires = "yes", help_heading = headings::OUTPUT)]
    search: bool,
    /// Write to a store without versions of objects
    ///
    /// For a store that does not compare versions of objects: nothing else may write to the dataset.
    #[arg(long, help_heading = headings::MACHINE, hide_short_help = true)]
    single_writer: bool,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<NonZeroUsize>,
    /// Words about the change, for `shardtool log`
    #[arg(long, value_name = "TEXT", help_heading = headings::OUTPUT)]
    message: Option<String>,
    /// Who makes the change, for `shardtool log`
    #[arg(long, value_name = "NAME", help_heading = headings::OUTPUT, hide_short_help = true)]
    author: Option<String>,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// Copies and files that are listed as text.
const LISTED: usize = 20;

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let mut options = PurgeOptions::default();
    (options.forget_keys, options.search) = (arguments.forget_keys, arguments.search);
    options.jobs = arguments.jobs.unwrap_or(options.jobs);
    (options.change.message, options.change.author) = (arguments.message.clone(), arguments.author.clone());
    (options.change.dry_run, options.change.single_writer) = (!arguments.yes, arguments.single_writer);
    interrupt::declare(Interrupted::Exits("interrupted: every version still opens; the same command continues"));
    let progress = Images::new("written");
    let dataset = &arguments.dataset.dataset;
    let purged = purge(dataset, &options, &progress);
    progress.finish();
    let purged = purged?;
    if arguments.json {
        let splits: Vec<_> =
            purged.splits.iter().map(|(split, records)| json!({"split": split, "records": records})).collect();
        let copies: Vec<_> = purged.copies.iter().map(|(split, key)| json!({"split": split, "key": key})).collect();
        out.json(&json!({
            "version": version_json(purged.version), "splits": splits, "versions": purged.versions,
            "shards": purged.shards, "bytes": purged.bytes, "removed": purged.removed, "links": purged.links, "remembered": purged.remembered,
            "rejected": purged.rejected, "copies": copies, "others": purged.others, "keeps_versions": purged.keeps_versions,
            "found": purged.found,
        }))?;
    } else {
        print(&purged, arguments.yes, is_url(dataset), out)?;
    }
    Ok(if purged.found.is_some_and(|found| !found.is_empty()) { Exit::Finding } else { Exit::Success })
}

fn print(purged: &Purged, yes: bool, in_store: bool, out: &mut Output) -> anyhow::Result<()> {
    if purged.splits.is_empty() {
        writeln!(out, "no kept version has a deleted record: nothing to purge")?;
        if purged.version.is_some() {
            writeln!(out, "purged keys are forgotten, and may come back")?;
        }
        let verb = if yes {
            "files that an interrupted purge left, removed"
        } else {
            "files of an interrupted purge to remove (--yes)"
        };
        files(verb, &purged.removed, out)?;
        return kept_by_store(purged, out);
    }
    for (split, records) in &purged.splits {
        let verb = if yes { "purged" } else { "to purge (--yes purges them)" };
        writeln!(out, "split {}: {} {verb}", text::printable(split.as_bytes()), text::plural(*records, "record"))?;
    }
    let versions: Vec<_> = purged.versions.iter().map(u64::to_string).collect();
    let shards = text::plural(purged.shards, "shard");
    match yes {
        true => writeln!(out, "  {shards} written again ({})", text::bytes(purged.bytes))?,
        false => writeln!(out, "  {shards} to write again")?,
    }
    writeln!(out, "  versions that had them: {}", versions.join(", "))?;
    if yes {
        writeln!(out, "  {} removed", text::plural(purged.removed.len() as u64, "old file"))?;
        if purged.remembered > 0 {
            let keys = text::plural(purged.remembered, "purged key");
            writeln!(out, "  {keys} kept out of this dataset from now on, by HMAC")?;
        }
        if purged.rejected > 0 {
            let lines = text::plural(purged.rejected, "line");
            writeln!(out, "  {lines} removed from lists of rejected inputs")?;
        }
    }
    if !purged.copies.is_empty() {
        let copies = text::plural(purged.copies.len() as u64, "other record");
        writeln!(out, "  {copies} with the same image, not purged (delete and purge them too):")?;
        for (split, key) in purged.copies.iter().take(LISTED) {
            writeln!(out, "    {} {}", text::printable(split.as_bytes()), text::printable(key.as_bytes()))?;
        }
    }
    if !yes {
        files("  old files to remove", &purged.removed, out)?;
    }
    files("  links, or files with other names, whose bytes stay there", &purged.links, out)?;
    files("  files in the folder that are not the dataset's", &purged.others, out)?;
    match &purged.found {
        Some(found) if found.is_empty() => {
            writeln!(out, "  searched: no key, and no 64 bytes of a record, is in any other file")?
        }
        Some(found) => files("  parts of them were found in", found, out)?,
        None => {}
    }
    kept_by_store(purged, out)?;
    if yes {
        writeln!(out, "  out of reach: the source, other copies, backups and snapshots, caches of readers,")?;
        let kept = match in_store {
            true => "what the store keeps of removed objects (their versions, soft deletion, replicas)",
            false => "blocks of removed files until the disk reuses them",
        };
        writeln!(out, "  {kept}, names of classes, messages in the log")?;
    }
    print_version(purged.version, !yes, false, out)
}

/// Says that a store keeps what was purged.
fn kept_by_store(purged: &Purged, out: &mut Output) -> anyhow::Result<()> {
    if purged.keeps_versions {
        writeln!(
            out,
            "  the store keeps versions of objects: what is purged stays there until you remove the versions of objects below this"
        )?;
        writeln!(
            out,
            "  URL that are not the current ones (in S3, a lifecycle rule with NoncurrentVersionExpiration)"
        )?;
    }
    Ok(())
}

fn files(what: &str, files: &[PathBuf], out: &mut Output) -> anyhow::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> =
        files.iter().take(LISTED).map(|file| text::printable(file.as_os_str().as_encoded_bytes())).collect();
    let more = if files.len() > LISTED { ", …" } else { "" };
    writeln!(out, "{what}: {}{more}", shown.join(", "))?;
    Ok(())
}
