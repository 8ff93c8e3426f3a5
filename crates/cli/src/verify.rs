//! `shardtool verify`.

use crate::open::DatasetArgument;
use crate::progress::Progress;
use crate::status::Status;
use crate::text;
use serde_json::json;
use shardtool_read::verify::{self, Damage, Options, Report};
use std::io::Write;

/// Check framing, both CRCs of every record, index against records, whole files against the manifest
///
/// Also verifies other people's bare TFRecord files: name them by path or glob. Each damage is listed with shard,
/// record, key, offset, what was expected and what was found. Exit status 1 when there is any.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: DatasetArgument,
    /// Decode every image as well
    #[arg(long)]
    decode: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Damages listed for a person; `--json` lists all.
const LISTED: usize = 50;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Status> {
    if let Some(jobs) = arguments.jobs {
        rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global()?;
    }
    let dataset = match arguments.dataset.open() {
        Ok(dataset) => dataset,
        // Damage of the manifest itself, or of a bare file's framing, is what verify is asked for: a finding.
        Err(error) => match error.downcast::<shardtool_read::Error>() {
            Ok(error) if error.is_damage() => return unopened(arguments, error),
            Ok(error) => return Err(error.into()),
            Err(error) => return Err(error),
        },
    };
    if arguments.decode && !dataset.manifest().has_images() {
        anyhow::bail!(
            "cannot decode {}: its records have no images; verify without --decode",
            dataset.path().display()
        );
    }
    let records = dataset.splits().iter().map(|s| s.len()).sum();
    let progress = Progress::new("verified", "records", records);
    let advance = |records, bytes| progress.advance(records, bytes);
    let options = Options { decode: arguments.decode, progress: Some(&advance), ..Options::default() };
    let report = verify::verify(&dataset, &options);
    progress.finish();
    print(arguments, &report, progress.seconds())?;
    Ok(if report.damages.is_empty() { Status::Good } else { Status::Finding })
}

fn unopened(arguments: &Arguments, error: shardtool_read::Error) -> anyhow::Result<Status> {
    let path = arguments.dataset.dataset.clone();
    let report = Report { damages: vec![Damage::new(path, error)], ..Report::default() };
    print(arguments, &report, 0.0)?;
    Ok(Status::Finding)
}

fn print(arguments: &Arguments, report: &Report, seconds: f64) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let damages: Vec<_> = report.damages.iter().map(damage_json).collect();
        let document = json!({
            "good": damages.is_empty(), "shards": report.shards, "good_records": report.good_records,
            "bytes": report.bytes, "seconds": seconds, "damages": damages,
        });
        writeln!(out, "{document:#}")?;
        return Ok(());
    }
    for damage in report.damages.iter().take(LISTED) {
        writeln!(out, "{:<16} {}", damage.name, text::printable(damage.message.as_bytes()))?;
    }
    let more = report.damages.len().saturating_sub(LISTED);
    if more > 0 {
        writeln!(out, "… and {more} more: --json lists all")?;
    }
    let (records, shards) = (text::plural(report.good_records, "good record"), text::plural(report.shards, "shard"));
    let rate = report.bytes as f64 / seconds.max(1e-6) / 1e6;
    writeln!(out, "{records} in {shards}, {}, {seconds:.2} s, {rate:.0} MB/s", text::bytes(report.bytes))?;
    match report.damages.len() as u64 {
        0 => writeln!(out, "No damage found.")?,
        n => writeln!(out, "{} found. `shardtool repair` rebuilds what can be rebuilt.", text::plural(n, "damage"))?,
    }
    Ok(())
}

fn damage_json(damage: &Damage) -> serde_json::Value {
    json!({
        "name": damage.name, "file": damage.file.to_string_lossy(), "record": damage.record, "key": damage.key,
        "offset": damage.offset, "expected": damage.expected, "found": damage.found, "message": damage.message,
    })
}
