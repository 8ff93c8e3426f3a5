//! `shardtool verify`.

use crate::choice::{self, choice};
use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::open::{DatasetArgument, print_unfinished};
use crate::output::Output;
use crate::progress::Progress;
use crate::store_memory::StoreReads;
use crate::text;
use serde::{Serialize, Serializer};
use serde_json::json;
use shardtool_decode::Truncated;
use shardtool_format::printable;
use shardtool_read::verify::{self, Finding, Options, QuickReport, Report};
use shardtool_read::{Dataset, Split};
use std::io::Write;
use std::time::Instant;

/// Check framing and CRCs of every record, indexes against records, and files against the manifest
///
/// Also verifies bare TFRecord files, named by path or glob. Each damage is listed with shard, record, key, offset, expected
/// and found value (exit status 1).
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: DatasetArgument,
    /// Also decode every image
    #[arg(long, help_heading = headings::CHECKS)]
    decode: bool,
    /// What a cut or damaged JPEG is, with --decode
    ///
    /// With `error` it is an error. With `fill`, what is missing becomes grey, as libjpeg-turbo makes it; it is counted apart, not
    /// reported: for datasets that are loaded with `truncated="fill"`.
    #[arg(long, value_parser = choice::<Truncated>(), default_value = choice::default::<Truncated>(), requires = "decode", value_name = "WHAT", help_heading = headings::CHECKS, hide_short_help = true)]
    truncated: Truncated,
    /// Compare lengths only, read no shard
    ///
    /// Compares lengths with the manifest, and in a store the CRC32C that the store keeps.
    #[arg(long, conflicts_with = "decode", help_heading = headings::CHECKS)]
    quick: bool,
    /// Number of threads [default: all cores]
    ///
    /// With --quick, 16 are the default. A store is read by no more threads than memory allows.
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<usize>,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
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
    dataset.check_sources()?;
    interrupt::declare(Interrupted::Exits("interrupted: nothing was written; the same command starts again"));
    if arguments.quick {
        return quick(arguments, &dataset, out);
    }
    let records = dataset.splits().iter().map(|s| s.len()).sum();
    let mut options = Options::default();
    let progress = Progress::new("verified", "records", records);
    let advance = |records, bytes| progress.advance(records, bytes);
    options.decode = arguments.decode;
    options.truncated = arguments.truncated;
    options.progress = Some(&advance);
    let report = if dataset.splits().iter().any(Split::is_in_store) {
        let reads = StoreReads::of_process(arguments.jobs);
        options.shard_bytes = Some(reads.shard_bytes);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(reads.threads).build()?;
        pool.install(|| verify::verify(&dataset, &options))
    } else {
        verify::verify(&dataset, &options)
    };
    progress.finish();
    print(arguments, &report, progress.seconds(), (None, dataset.manifest().has_virtual_shards()), out)?;
    Ok(if report.findings.is_empty() { Exit::Success } else { Exit::Finding })
}

fn quick(arguments: &Arguments, dataset: &Dataset, out: &mut Output) -> anyhow::Result<Exit> {
    let since = Instant::now();
    let compared = verify::quick(dataset, arguments.jobs)?;
    let report = &compared.report;
    print(arguments, report, since.elapsed().as_secs_f64(), (Some(&compared), false), out)?;
    Ok(if report.findings.is_empty() { Exit::Success } else { Exit::Finding })
}

fn unopened(arguments: &Arguments, error: &shardtool_read::Error, out: &mut Output) -> anyhow::Result<Exit> {
    let report = Report::of_error(error);
    print(arguments, &report, 0.0, (None, false), out)?;
    Ok(Exit::Finding)
}

fn print(
    arguments: &Arguments,
    report: &Report,
    seconds: f64,
    (quick, is_indexed): (Option<&QuickReport>, bool),
    out: &mut Output,
) -> anyhow::Result<()> {
    if arguments.json {
        return out.json(&Document {
            bytes: report.bytes,
            damages: Damages(&report.findings),
            filled: report.filled,
            good: report.findings.is_empty(),
            good_records: report.good_records,
            ignored_feature_lists: report.ignored_feature_lists,
            quick: quick.map(Compared::new),
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
    if let Some(quick) = quick {
        print_compared(quick, seconds, out)?;
        return match found {
            0 => Ok(writeln!(out, "No difference found. No record was read: verify without --quick reads them.")?),
            n => {
                Ok(writeln!(out, "{}. verify without --quick lists the damaged records.", text::plural(n, "finding"))?)
            }
        };
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
    if report.filled > 0 {
        let images = text::plural(report.filled, "image");
        writeln!(out, "{images} cut or damaged, which loaders fill")?;
    }
    match found {
        n if n > 0 && is_indexed => writeln!(
            out,
            "{}. Restore the source files; or `shardtool index` describes the source as it is now.",
            text::plural(n, "finding")
        )?,
        0 => writeln!(out, "No damage found.")?,
        n => writeln!(out, "{}. `shardtool repair` rebuilds what can be rebuilt.", text::plural(n, "finding"))?,
    }
    Ok(())
}

fn print_compared(quick: &QuickReport, seconds: f64, out: &mut Output) -> anyhow::Result<()> {
    let (shards, bytes) = (text::plural(quick.report.shards, "shard"), text::bytes(quick.report.bytes));
    let (crcs, lengths) = (text::count(quick.crc_shards), text::count(quick.length_shards));
    writeln!(
        out,
        "{shards} of {bytes} compared with the manifest in {seconds:.2} s: {crcs} by length and the store's CRC32C, {lengths} \
         by length only"
    )?;
    Ok(())
}

/// The JSON document, with its members in the order of their names.
#[derive(Serialize)]
struct Document<'a> {
    bytes: u64,
    damages: Damages<'a>,
    filled: u64,
    good: bool,
    good_records: u64,
    ignored_feature_lists: u64,
    /// With --quick.
    quick: Option<Compared>,
    seconds: f64,
    shards: u64,
    unlisted: u64,
}

/// Shards that were compared by a CRC, and by their length alone.
#[derive(Serialize)]
struct Compared {
    crc_shards: u64,
    length_shards: u64,
}

impl Compared {
    fn new(quick: &QuickReport) -> Self {
        Compared { crc_shards: quick.crc_shards, length_shards: quick.length_shards }
    }
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
