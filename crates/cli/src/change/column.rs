//! `shardtool column`.

use super::{ChangeArguments, NewestArgument, print_version, version_json};
use crate::exit::Exit;
use crate::headings;
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::manifest::DType;
use shardtool_pack::{
    ChangedColumns, ColumnChange, ColumnOptions, ColumnSource, MissingRows, change_columns, column_rows, drop_columns,
};
use std::io::Write;
use std::path::PathBuf;

/// Add, replace or drop columns of a dataset: a new version; no shard is written
///
/// Labels, captions, scores, embeddings and boxes change; images stay. FILE is a list (CSV, JSONL), a NumPy array (.npy), Parquet or another
/// archive that `pack` reads, or a dataset. Its rows have the keys of the records.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add columns that the dataset does not have
    Add(FileArguments),
    /// Give the records other values of features that they have
    Replace(FileArguments),
    /// Leave features out of the new version
    Drop(DropArguments),
}

#[derive(clap::Args)]
struct FileArguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// File with the values
    file: PathBuf,
    /// Column of a list that holds the keys [default: key, else path]
    #[arg(long, value_name = "COLUMN", help_heading = headings::SOURCE_FIELDS)]
    key: Option<String>,
    /// Take this column only
    ///
    /// May be repeated. Of an array: the name of its column.
    #[arg(long, value_name = "COLUMN", help_heading = headings::SOURCE_FIELDS)]
    name: Vec<String>,
    /// Type of a column, instead of the inferred one
    ///
    /// TYPE is int64, float (32 bits), float64, uint64 or bytes. May be repeated.
    #[arg(long = "column", value_parser = column_type, value_name = "NAME:TYPE", help_heading = headings::SOURCE_FIELDS)]
    columns: Vec<(String, DType)>,
    /// Rows are in the order of the records of this version
    ///
    /// For rows without keys. It must be the newest one, so that no row meets another record.
    #[arg(long, value_name = "VERSION", help_heading = headings::RECORDS)]
    rows_of: Option<String>,
    /// What records without a row get
    #[arg(long, value_enum, default_value_t = Missing::Error, value_name = "WHAT", help_heading = headings::RECORDS)]
    missing: Missing,
    /// Split [default: all]
    #[arg(long, value_name = "NAME", help_heading = headings::RECORDS)]
    split: Vec<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

#[derive(clap::Args)]
struct DropArguments {
    #[command(flatten)]
    dataset: NewestArgument,
    /// Features to drop
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Missing {
    /// The change is refused
    Error,
    /// They have no value
    Null,
    /// They keep the value that they have
    Keep,
}

fn column_type(text: &str) -> Result<(String, DType), String> {
    let known = || text.rsplit_once(':').and_then(|(name, dtype)| Some((name.to_owned(), DType::from_name(dtype)?)));
    known()
        .ok_or_else(|| format!("expected NAME:TYPE, TYPE one of int64, float, float64, uint64, bytes; found `{text}`"))
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    match &arguments.command {
        Command::Add(file) => change(file, ColumnChange::Add, out),
        Command::Replace(file) => change(file, ColumnChange::Replace, out),
        Command::Drop(arguments) => drop_named(arguments, out),
    }
}

fn change(arguments: &FileArguments, kind: ColumnChange, out: &mut Output) -> anyhow::Result<Exit> {
    let mut source = ColumnSource::new(&arguments.file);
    (source.key, source.names, source.types) =
        (arguments.key.clone(), arguments.name.clone(), arguments.columns.clone());
    let mut options = ColumnOptions::new(kind);
    (options.splits, options.rows_of) = (arguments.split.clone(), arguments.rows_of.clone());
    options.missing = match arguments.missing {
        Missing::Error => MissingRows::Error,
        Missing::Null => MissingRows::Null,
        Missing::Keep => MissingRows::Keep,
    };
    options.change = arguments.change.options();
    let progress = Images::new("read");
    let dataset = &arguments.dataset.dataset;
    let changed = column_rows(&source, dataset, &progress)
        .and_then(|rows| Ok((change_columns(dataset, &rows, &options, &progress)?, rows.len() as u64)));
    progress.finish();
    let (ChangedColumns { version, columns, matched, missing, bytes, .. }, rows) = changed?;
    if arguments.change.json {
        let columns: Vec<_> = columns.iter().map(|(name, t)| json!({"name": name, "type": t.name()})).collect();
        out.json(&json!({
            "version": version_json(version), "columns": columns, "rows": rows, "matched": matched,
            "missing": missing, "bytes": bytes,
        }))?;
        return Ok(Exit::Success);
    }
    for (name, dtype) in &columns {
        writeln!(out, "column {} ({})", text::printable(name.as_bytes()), dtype.name())?;
    }
    writeln!(
        out,
        "  {} of {} matched, {} written",
        text::count(matched),
        text::plural(rows, "row"),
        text::bytes(bytes)
    )?;
    if missing > 0 {
        let what = match options.missing {
            MissingRows::Keep => "keep what they have",
            _ => "have no value",
        };
        writeln!(out, "  {} without a row {what}", text::plural(missing, "record"))?;
    }
    print_version(version, options.change.dry_run, kind == ColumnChange::Replace, out)?;
    Ok(Exit::Success)
}

fn drop_named(arguments: &DropArguments, out: &mut Output) -> anyhow::Result<Exit> {
    let options = arguments.change.options();
    let version = drop_columns(&arguments.dataset.dataset, &arguments.names, &options)?;
    if arguments.change.json {
        out.json(&json!({ "version": version_json(version), "dropped": arguments.names }))?;
        return Ok(Exit::Success);
    }
    for name in &arguments.names {
        writeln!(out, "column {} dropped", text::printable(name.as_bytes()))?;
    }
    print_version(version, options.dry_run, true, out)?;
    Ok(Exit::Success)
}
