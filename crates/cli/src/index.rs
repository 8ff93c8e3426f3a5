//! `shardtool index`.

use crate::clone::print_source;
use crate::entries::EntriesArgument;
use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::output::Output;
use crate::pack::{NamesArgument, SourceArguments};
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::printable;
use shardtool_pack::{
    AdoptOptions, Conventions, IndexedAs, IndexedSource, Options, Summary, adopt, index_source, indexed_as,
};
use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Make a dataset of files that stay where they are: folders of images, lists, tars, Parquet, MDS, TFRecord
///
/// Writes a manifest and an index for each shard, and copies nothing: the index says where the bytes lie. Records, keys, labels and
/// order are those that `shardtool pack` would make of the same SOURCE with the same options. Archives must not be compressed; of
/// images in Parquet, a codec must leave four fifths of the bytes as they are, as Snappy, LZ4 and ZSTD do with JPEGs. If the source has
/// changed, the same command describes it again.
///
/// TFRecord files are shards as they are.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of images, a list, or archives; TFRecord files
    ///
    /// A folder, a file, or a glob in quotes; several TFRecord files, in one folder unless --out is given. Also URLs.
    #[arg(required = true, value_name = "SOURCE")]
    files: Vec<PathBuf>,
    /// Folder or URL of the dataset [default: the source's]
    ///
    /// For a source that is only read. Programs that open the dataset must allow the source (`--source`). For TFRecord files, the folder
    /// gets links to them.
    #[arg(long, value_name = "DIR", help_heading = headings::OUTPUT)]
    out: Option<PathBuf>,
    /// Further folder in which files may lie
    ///
    /// For links in the source that lead out of it: a folder, or the beginning of a URL. May be repeated. Programs that open it
    /// must allow it too.
    #[arg(long = "source", value_name = "PREFIX", help_heading = headings::SOURCE)]
    sources: Vec<String>,
    #[command(flatten)]
    from: SourceArguments,
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
    match &arguments.files[..] {
        [source] => match indexed_as(source, arguments.from.kind())? {
            IndexedAs::Shards(files) => adopt_files(arguments, &files, out),
            IndexedAs::VirtualShards => index(arguments, source, out),
        },
        files => {
            if let Some(other) = files.iter().find(|file| !matches!(indexed_as(file, None), Ok(IndexedAs::Shards(_)))) {
                anyhow::bail!(
                    "{}: several arguments are for TFRecord files; name the folder of a source, or put the glob in quotes",
                    other.display()
                );
            }
            adopt_files(arguments, files, out)
        }
    }
}

/// Describes a source in virtual shards.
fn index(arguments: &Arguments, source: &Path, out: &mut Output) -> anyhow::Result<Exit> {
    let mut options = Options::new(source, arguments.out.clone().unwrap_or_default());
    arguments.from.apply(&mut options);
    options.split = arguments.split.clone();
    options.split_names = arguments.splits.split_names();
    options.label_offset = arguments.conventions.label_offset;
    options.entry_points = arguments.entries.written();
    options.jobs = arguments.jobs.unwrap_or(options.jobs);
    options.single_writer = arguments.single_writer;
    interrupt::declare(Interrupted::Stops(
        "interrupted: finished indexes are kept; the same command continues after them",
    ));
    let progress = Images::new("indexed");
    let indexed = index_source(&options, &arguments.sources, &progress);
    progress.finish();
    let IndexedSource { dataset, splits, .. } = match indexed {
        Ok(indexed) => indexed,
        Err(error) => return crate::pack::failed(error),
    };
    let sources: BTreeSet<_> = splits
        .iter()
        .flat_map(|summary| &summary.split.shards)
        .filter_map(|shard| shard.foreign.source.clone())
        .collect();
    let index_bytes = |summary: &Summary| summary.split.shards.iter().map(|shard| shard.index_bytes).sum::<u64>();
    let rejected = splits.iter().map(|summary| summary.rejected).sum::<u64>();
    if arguments.json {
        let split = |summary: &Summary| {
            let split = &summary.split;
            json!({
                "name": split.name, "records": split.records(), "shards": split.shards.len(),
                "fingerprint": format!("{:08x}", split.fingerprint()), "samples": summary.samples,
                "rejected": summary.rejected, "rejected_file": summary.rejected_file, "inputs": summary.inputs,
                "left_out": summary.left_out, "classes": summary.classes, "source_bytes": summary.source_bytes,
                "index_bytes": index_bytes(summary), "already_complete": summary.already_complete,
            })
        };
        let splits: Vec<_> = splits.iter().map(split).collect();
        out.json(&json!({"dataset": dataset, "splits": splits, "sources": sources}))?;
        return Ok(if rejected > 0 { Exit::Finding } else { Exit::Success });
    }
    for summary in &splits {
        let split = &summary.split;
        let records = text::plural(split.records(), if summary.with_images { "image" } else { "record" });
        writeln!(
            out,
            "{} {records} of {} as split {}; fingerprint {:08x}",
            if summary.already_complete { "already indexed:" } else { "indexed" },
            text::plural_irregular(summary.classes, "class", "classes"),
            printable(&split.name),
            split.fingerprint()
        )?;
        let (samples, rejected) = (text::plural(summary.samples, "sample"), text::count(summary.rejected));
        writeln!(out, "  {samples} = {} + {rejected} rejected", text::plural(split.records(), "record"))?;
        writeln!(
            out,
            "  {} stay where they are; the indexes of {} take {}",
            text::bytes(summary.source_bytes),
            text::plural(split.shards.len() as u64, "virtual shard"),
            text::bytes(index_bytes(summary))
        )?;
        if let Some(file) = &summary.rejected_file {
            let rejected = text::plural(summary.rejected, "input");
            writeln!(out, "  {rejected} rejected; each is listed with its reason in {}", file.display())?;
        }
    }
    for text in splits.first().map_or(&[][..], |summary| &summary.left_out) {
        writeln!(out, "  left out: {}", text::printable(text.as_bytes()))?;
    }
    writeln!(out, "The dataset is {}", text::printable(dataset.to_string_lossy().as_bytes()))?;
    for source in sources {
        print_source(&source, out)?;
    }
    Ok(if rejected > 0 { Exit::Finding } else { Exit::Success })
}

/// Makes shards of TFRecord files.
fn adopt_files(arguments: &Arguments, files: &[PathBuf], out: &mut Output) -> anyhow::Result<Exit> {
    let mut given = Options::new(files.first().map_or(Path::new(""), PathBuf::as_path), "");
    arguments.from.apply(&mut given);
    let mut options = AdoptOptions::of(&given)?;
    options.out = arguments.out.clone();
    options.split = arguments.split.clone();
    options.split_names = arguments.splits.split_names();
    options.conventions = arguments.conventions.conventions();
    options.entry_points = arguments.entries.written();
    options.jobs = arguments.jobs.unwrap_or(options.jobs);
    options.single_writer = arguments.single_writer;
    interrupt::declare(Interrupted::Stops("interrupted: the files are unchanged; the same command starts again"));
    let progress = Images::new("indexed");
    let adopted = adopt(files, &options, &progress);
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
