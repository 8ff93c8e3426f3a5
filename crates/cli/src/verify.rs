//! `shardtool verify`.

use crate::exit::Exit;
use crate::open::DatasetArgument;
use crate::progress::Progress;
use crate::text;
use serde_json::json;
use shardtool_read::verify::{self, Finding, Options, Report};
use std::io::Write;

/// Check framing and CRCs of every record, indexes against records, and files against the manifest
///
/// Also verifies bare TFRecord files, named by path or glob. Each damage is listed with shard, record, key, offset, expected
/// and found value (exit status 1).
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: DatasetArgument,
    /// Also decode every image
    #[arg(long)]
    decode: bool,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Number of findings listed as text; `--json` lists all.
const LISTED: usize = 50;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(jobs) = arguments.jobs {
        rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global()?;
    }
    let dataset = match arguments.dataset.open() {
        Ok(dataset) => dataset,
        // Damage that prevents opening (of the manifest, or of a bare file's framing) is a finding too.
        Err(error) => match error.downcast::<shardtool_read::Error>() {
            Ok(error) if error.is_damage() => return unopened(arguments, &error),
            Ok(error) => return Err(error.into()),
            Err(error) => return Err(error),
        },
    };
    if arguments.decode && !dataset.manifest().has_images() && !dataset.manifest().has_arrays() {
        anyhow::bail!(
            "cannot decode {}: its records have no images or arrays (run verify without --decode)",
            dataset.path().display()
        );
    }
    let records = dataset.splits().iter().map(|s| s.len()).sum();
    let progress = Progress::new("verified", "records", records);
    let advance = |records, bytes| progress.advance(records, bytes);
    let mut options = Options::default();
    options.decode = arguments.decode;
    options.progress = Some(&advance);
    let report = verify::verify(&dataset, &options);
    progress.finish();
    print(arguments, &report, progress.seconds())?;
    Ok(if report.findings.is_empty() { Exit::Success } else { Exit::Finding })
}

fn unopened(arguments: &Arguments, error: &shardtool_read::Error) -> anyhow::Result<Exit> {
    let report = Report::of_error(error);
    print(arguments, &report, 0.0)?;
    Ok(Exit::Finding)
}

fn print(arguments: &Arguments, report: &Report, seconds: f64) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let damages: Vec<_> = report.findings.iter().map(finding_json).collect();
        let document = json!({
            "good": damages.is_empty(), "shards": report.shards, "good_records": report.good_records,
            "bytes": report.bytes, "ignored_feature_lists": report.ignored_feature_lists, "seconds": seconds, "damages": damages,
        });
        writeln!(out, "{document:#}")?;
        return Ok(());
    }
    for finding in report.findings.iter().take(LISTED) {
        writeln!(out, "{:<16} {}", finding.name(), text::printable(finding.message.as_bytes()))?;
    }
    let more = report.findings.len().saturating_sub(LISTED);
    if more > 0 {
        writeln!(out, "… and {more} more (--json lists all)")?;
    }
    let (records, shards) = (text::plural(report.good_records, "good record"), text::plural(report.shards, "shard"));
    let rate = report.bytes as f64 / seconds.max(1e-6) / 1e6;
    writeln!(out, "{records} in {shards}, {}, {seconds:.2} s, {rate:.0} MB/s", text::bytes(report.bytes))?;
    if report.ignored_feature_lists > 0 {
        let records = text::plural(report.ignored_feature_lists, "record");
        writeln!(
            out,
            "note: feature lists of {records} are ignored, since the manifest does not require `sequence-example`"
        )?;
    }
    match report.findings.len() as u64 {
        0 => writeln!(out, "No damage found.")?,
        n => writeln!(out, "{}. `shardtool repair` rebuilds what can be rebuilt.", text::plural(n, "finding"))?,
    }
    Ok(())
}

fn finding_json(finding: &Finding) -> serde_json::Value {
    json!({
        "name": finding.name(), "file": finding.file.to_string_lossy(), "record": finding.record, "key": finding.key,
        "offset": finding.offset, "expected": finding.expected, "found": finding.found, "message": finding.message,
    })
}
