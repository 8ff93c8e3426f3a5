//! `shardtool export`.

use crate::condition::WhereArgument;
use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::open::{CachedDataset, is_url, one_or_all};
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::{Chain, printable};
use shardtool_pack::{ExportKind, ExportOptions, Rejection, export};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Write a dataset in another format: TFRecord, WebDataset, Parquet, or folders of classes
///
/// Image files are copied byte for byte; raw pixels are written as PPM. Files appear in OUT when all are complete, in a store
/// one by one. Records that cannot be exported are listed (exit status 1).
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: CachedDataset,
    /// A folder that does not exist yet, or is empty; or one of a store
    out: PathBuf,
    /// Format of the files
    #[arg(long, value_enum, value_name = "KIND", help_heading = headings::OUTPUT)]
    to: To,
    /// One split [default: all]
    #[arg(long, help_heading = headings::RECORDS)]
    split: Option<String>,
    #[command(flatten)]
    conditions: WhereArgument,
    /// Also write DALI's index of each TFRecord file
    ///
    /// Writes NAME.idx for each file. Works with `--to tfrecord` only.
    #[arg(long, help_heading = headings::OUTPUT, hide_short_help = true)]
    dali_index: bool,
    /// Export damaged TFRecord shards as they are
    ///
    /// Without it, only their good records are exported. Works with `--to tfrecord` only.
    #[arg(long, help_heading = headings::RECORDS, hide_short_help = true)]
    allow_damage: bool,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<NonZeroUsize>,
    /// Write into OUT even if it is not empty
    ///
    /// Replaces files of the same names. Links in OUT are not followed.
    #[arg(long, help_heading = headings::OUTPUT)]
    force: bool,
    /// Write to a store without versions of objects
    ///
    /// For a store that does not compare versions of objects: nothing else may write to OUT.
    #[arg(long, help_heading = headings::MACHINE, hide_short_help = true)]
    single_writer: bool,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum To {
    /// The shards themselves, as hard links where possible; of a damaged one, its good records
    Tfrecord,
    /// A tar for each shard: image, .cls, .json
    Webdataset,
    /// A file for each shard, as Hugging Face lays out images
    Parquet,
    /// Image files in folders of classes
    Folder,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let kind = match arguments.to {
        To::Tfrecord => ExportKind::Tfrecord { dali_index: arguments.dali_index, allow_damage: arguments.allow_damage },
        _ if arguments.allow_damage => {
            anyhow::bail!("--allow-damage works with --to tfrecord only: other formats hold no damaged records")
        }
        _ if arguments.dali_index => {
            anyhow::bail!("--dali-index works with --to tfrecord only: DALI's index describes TFRecord files")
        }
        To::Webdataset => ExportKind::Webdataset,
        To::Parquet => ExportKind::Parquet,
        To::Folder => ExportKind::Folder,
    };
    let dataset = arguments.dataset.open()?;
    dataset.check_source_folders()?;
    let splits = one_or_all(&dataset, arguments.split.as_deref())?;
    let selection = arguments.conditions.selection(&splits)?;
    let selects = selection.is_some();
    if selects && arguments.allow_damage {
        anyhow::bail!("--allow-damage exports whole shards: leave it out, or leave out --where");
    }
    let samples: u64 = splits.iter().map(|split| split.len()).sum();
    let progress = Images::new("exported");
    let mut options = ExportOptions::new(kind);
    options.jobs = arguments.jobs.unwrap_or(options.jobs);
    options.force = arguments.force;
    options.selection = selection;
    options.single_writer = arguments.single_writer;
    interrupt::declare(Interrupted::Stops(match is_url(&arguments.out) {
        true => "interrupted: the same command starts again, with --force if it says that OUT is not empty",
        false => "interrupted: no file is in OUT; the same command starts again",
    }));
    let exported = export(&splits, &arguments.out, &options, &progress);
    progress.finish();
    let (exported, seconds) = (exported?, progress.seconds());
    if arguments.json {
        let refused = |r: &Rejection| json!({"record": r.input, "reason": Chain(&r.reason).to_string()});
        let document = json!({
            "out": arguments.out.to_string_lossy(), "samples": samples, "left_out": exported.left_out, "records": exported.records, "files": exported.files,
            "bytes": exported.bytes, "refused": exported.refused.iter().map(refused).collect::<Vec<_>>(),
            "damaged": exported.damaged.iter().map(refused).collect::<Vec<_>>(),
            "already_complete": exported.already_complete, "seconds": seconds,
        });
        out.json(&document)?;
    } else {
        for (what, list) in [("not exported", &exported.refused), ("exported with damage", &exported.damaged)] {
            for Rejection { input, reason, .. } in list {
                writeln!(out, "{what}: {}: {}", printable(input), Chain(reason))?;
            }
        }
        let (records, files) = (text::plural(exported.records, "record"), text::plural(exported.files, "file"));
        let (out_dir, bytes) = (arguments.out.display(), text::bytes(exported.bytes));
        let verb = if exported.already_complete { "already complete:" } else { "exported" };
        writeln!(out, "{verb} {records} to {files} ({bytes}) in {out_dir}, {seconds:.2} s")?;
        if selects {
            let (left_out, samples) = (text::count(exported.left_out), text::count(samples));
            writeln!(out, "  {left_out} of {samples} left out: --where does not hold for them")?;
        }
    }
    Ok(if exported.refused.is_empty() && exported.damaged.is_empty() { Exit::Success } else { Exit::Finding })
}
