//! `shardtool report`.

use crate::exit::Exit;
use crate::headings;
use crate::open::{CachedDataset, all};
use crate::output::Output;
use anyhow::Context;
use shardtool_format::manifest::{DType, FeatureType};
use shardtool_format::printable;
use shardtool_read::Dataset;
use shardtool_view::{ReportOptions, html_report, json_report, markdown};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Write a report of a dataset: one HTML file with thumbnails and histograms, a card in Markdown, or its numbers in JSON
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    dataset: CachedDataset,
    /// File to write, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE", help_heading = headings::OUTPUT)]
    out: Option<PathBuf>,
    /// Write a card in Markdown instead of HTML
    #[arg(long, help_heading = headings::OUTPUT)]
    markdown: bool,
    /// Print one JSON document of its numbers
    ///
    /// Records, bytes and fingerprints of the splits, how many images have a GPS position or an embedded thumbnail, and counts of
    /// the objects in the images.
    #[arg(long, conflicts_with = "markdown", help_heading = headings::OUTPUT)]
    json: bool,
    /// Verify every record too, and list findings
    ///
    /// Exits with status 1 if there are findings.
    #[arg(long, help_heading = headings::CHECKS)]
    verify: bool,
    /// Count the labels of a column with several for each record too, and which of them occur together
    #[arg(long, value_name = "COLUMN", help_heading = headings::CHECKS)]
    labels: Option<String>,
    /// Thumbnails of each split, spread evenly over its records
    #[arg(long, default_value_t = 36, value_name = "N", help_heading = headings::OUTPUT)]
    thumbnails: u64,
    /// Replace the file if it exists
    #[arg(long, help_heading = headings::OUTPUT)]
    force: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let dataset = arguments.dataset.open()?;
    // It shows what it can: files that are not allowed would only be missing.
    dataset.check_sources()?;
    all(&dataset)?;
    arguments.labels.as_ref().map_or(Ok(()), |column| check_labels(&dataset, column))?;
    // Opened first: a report that cannot be written need not be made.
    let file = arguments.out.as_ref().map(|path| {
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(!arguments.force).create(true).truncate(true);
        options.open(path).with_context(|| format!("cannot write {} (--force replaces a file)", path.display()))
    });
    let file = file.transpose()?;
    let mut options = ReportOptions::default();
    (options.thumbnails, options.verify) = (arguments.thumbnails, arguments.verify);
    options.labels.clone_from(&arguments.labels);
    let report = match (arguments.markdown, arguments.json) {
        (true, _) => markdown(dataset, &options),
        (_, true) => json_report(dataset, &options),
        _ => html_report(dataset, &options),
    };
    match (file, &arguments.out) {
        (Some(mut file), Some(path)) => {
            let written = file.write_all(report.text.as_bytes()).and_then(|()| file.sync_all());
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        _ => out.write_all(report.text.as_bytes())?,
    }
    Ok(if report.findings == 0 { Exit::Success } else { Exit::Finding })
}

/// Checks that a column can hold labels.
fn check_labels(dataset: &Dataset, column: &str) -> anyhow::Result<()> {
    let features = &dataset.manifest().features;
    let name = |feature: &FeatureType| format!("`{}`", printable(&feature.name));
    let labels: Vec<_> = features.iter().filter(|feature| feature.dtype == DType::Int64).map(name).collect();
    let found = match features.iter().find(|feature| feature.name == column) {
        Some(feature) if feature.dtype == DType::Int64 => return Ok(()),
        Some(feature) => format!("holds {}", feature.dtype.name()),
        None => "does not exist".to_owned(),
    };
    let named =
        if labels.is_empty() { "it has none".to_owned() } else { format!("choose one of {}", labels.join(", ")) };
    anyhow::bail!(
        "--labels: the column `{}` {found}; labels are integers (int64), and {named} (dataset {})",
        printable(column),
        dataset.path().display()
    )
}
