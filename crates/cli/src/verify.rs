//! `shardtool verify`.

use crate::exit::Exit;
use crate::open::{DatasetArgument, print_unfinished};
use crate::output::Output;
use crate::progress::Progress;
use crate::text;
use serde::{Serialize, Serializer};
use serde_json::json;
use shardtool_format::printable;
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

/// Number of findings listed as text; `--json` lists all of the report.
const LISTED: usize = 50;

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    if let Some(jobs) = arguments.jobs {
        rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global()?;
    }
    let dataset = match arguments.dataset.open() {
        Ok(dataset) => dataset,
        // Damage that prevents opening (of the manifest, or of a bare file's framing) is a finding too.
        Err(error) => match error.downcast::<shardtool_read::Error>() {
            Ok(error) if error.is_damage() => return unopened(arguments, &error, out),
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
    print_unfinished(&dataset);
    let records = dataset.splits().iter().map(|s| s.len()).sum();
    let progress = Progress::new("verified", "records", records);
    let advance = |records, bytes| progress.advance(records, bytes);
    let mut options = Options::default();
    options.decode = arguments.decode;
    options.progress = Some(&advance);
    let report = verify::verify(&dataset, &options);
    progress.finish();
    print(arguments, &report, progress.seconds(), out)?;
    Ok(if report.findings.is_empty() { Exit::Success } else { Exit::Finding })
}

fn unopened(arguments: &Arguments, error: &shardtool_read::Error, out: &mut Output) -> anyhow::Result<Exit> {
    let report = Report::of_error(error);
    print(arguments, &report, 0.0, out)?;
    Ok(Exit::Finding)
}

fn print(arguments: &Arguments, report: &Report, seconds: f64, out: &mut Output) -> anyhow::Result<()> {
    if arguments.json {
        return out.json(&Document {
            bytes: report.bytes,
            damages: Damages(&report.findings),
            good: report.findings.is_empty(),
            good_records: report.good_records,
            ignored_feature_lists: report.ignored_feature_lists,
            seconds,
            shards: report.shards,
            unlisted: report.unlisted,
        });
    }
    for finding in report.findings.iter().take(LISTED) {
        writeln!(out, "{:<16} {}", finding.name(), printable(&finding.message))?;
    }
    let found = report.findings.len() as u64 + report.unlisted;
    let more = found.saturating_sub(LISTED as u64);
    if more > 0 {
        writeln!(
            out,
            "… and {} more (--json lists up to {})",
            text::count(more),
            text::count(Report::MAX_FINDINGS as u64)
        )?;
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
    match found {
        0 => writeln!(out, "No damage found.")?,
        n => writeln!(out, "{}. `shardtool repair` rebuilds what can be rebuilt.", text::plural(n, "finding"))?,
    }
    Ok(())
}

/// The JSON document, with its members in the order of their names.
#[derive(Serialize)]
struct Document<'a> {
    bytes: u64,
    damages: Damages<'a>,
    good: bool,
    good_records: u64,
    ignored_feature_lists: u64,
    seconds: f64,
    shards: u64,
    unlisted: u64,
}

/// The findings as JSON objects, which are made one by one while they are written.
struct Damages<'a>(&'a [Finding]);

impl Serialize for Damages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(finding_json))
    }
}

fn finding_json(finding: &Finding) -> serde_json::Value {
    json!({
        "name": finding.name(), "file": finding.file.to_string_lossy(), "record": finding.record, "key": finding.key,
        "offset": finding.offset, "expected": finding.expected, "found": finding.found, "message": finding.message,
    })
}
