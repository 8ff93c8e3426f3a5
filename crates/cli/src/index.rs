//! `shardtool index`.

use crate::entries::EntriesArgument;
use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::output::Output;
use crate::pack::NamesArgument;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::printable;
use shardtool_pack::{AdoptOptions, Conventions, adopt};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Turn existing TFRecord files into a dataset: writes an index for each and a manifest, leaves the files as they are
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// TFRecord files, in one folder unless --out is given
    ///
    /// In a store, URLs or globs of URLs.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Folder for indexes, manifest and links
    ///
    /// For files on read-only storage: the folder gets links to the files.
    #[arg(long, value_name = "DIR", help_heading = headings::OUTPUT)]
    out: Option<PathBuf>,
    /// Name of the split [default: from names]
    ///
    /// The split of the files that are named for it, or of all files if none is named for a split [default: the split in
    /// each name, else the part before -NNNNN, else train].
    #[arg(long, value_name = "NAME", help_heading = headings::SPLITS)]
    split: Option<String>,
    /// Whether names of files are those of splits
    #[arg(long, value_enum, default_value_t = NamesArgument::Auto, value_name = "HOW", help_heading = headings::SPLITS, hide_short_help = true)]
    splits: NamesArgument,
    #[command(flatten)]
    conventions: ConventionsArguments,
    #[command(flatten)]
    entries: EntriesArgument,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<NonZeroUsize>,
    /// Write to a store without versions of objects
    ///
    /// For a store that does not compare versions of objects: nothing else may write to the folder.
    #[arg(long, help_heading = headings::MACHINE, hide_short_help = true)]
    single_writer: bool,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// Which features of existing records hold the image and the label.
#[derive(clap::Args)]
pub(crate) struct ConventionsArguments {
    /// Feature of the image
    #[arg(long, default_value = "image/encoded", value_name = "FEATURE", help_heading = headings::SOURCE_FIELDS)]
    image: String,
    /// Feature of the label
    #[arg(long, default_value = "image/class/label", value_name = "FEATURE", help_heading = headings::SOURCE_FIELDS)]
    label: String,
    /// What to subtract from labels
    ///
    /// The result is the class id.
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true, help_heading = headings::SOURCE_FIELDS)]
    label_offset: i64,
}

impl ConventionsArguments {
    pub(crate) fn conventions(&self) -> Conventions {
        let mut conventions = Conventions::default();
        conventions.image = self.image.clone();
        conventions.label = self.label.clone();
        conventions.label_offset = self.label_offset;
        conventions
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let mut options = AdoptOptions::default();
    options.out = arguments.out.clone();
    options.split = arguments.split.clone();
    options.split_names = arguments.splits.split_names();
    options.conventions = arguments.conventions.conventions();
    options.entry_points = arguments.entries.written();
    options.jobs = arguments.jobs.unwrap_or(options.jobs);
    options.single_writer = arguments.single_writer;
    interrupt::declare(Interrupted::Stops("interrupted: the files are unchanged; the same command starts again"));
    let progress = Images::new("indexed");
    let adopted = adopt(&arguments.files, &options, &progress);
    progress.finish();
    let splits = adopted?;
    if arguments.json {
        let split = |s: &shardtool_format::manifest::Split| {
            let fingerprint = format!("{:08x}", s.fingerprint());
            json!({"name": s.name, "records": s.records(), "shards": s.shards.len(), "fingerprint": fingerprint})
        };
        out.json(&json!({"splits": splits.iter().map(split).collect::<Vec<_>>()}))?;
        return Ok(Exit::Success);
    }
    for split in &splits {
        let (records, shards) =
            (text::plural(split.records(), "record"), text::plural(split.shards.len() as u64, "shard"));
        writeln!(
            out,
            "indexed {records} in {shards} as split {}; fingerprint {:08x}",
            printable(&split.name),
            split.fingerprint()
        )?;
    }
    Ok(Exit::Success)
}
