//! `shardtool info`.

use crate::device;
use crate::exit::Exit;
use crate::open::SourcesArgument;
use crate::output::Output;
use crate::text;
use serde_json::json;
use shardtool_format::{index, names, printable};
use shardtool_read::{Dataset, Split};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// Show splits, shards, sizes, fingerprints, features and classes
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of a dataset, its manifest, or bare TFRecord files
    ///
    /// A path, a URL, or a glob in quotes.
    #[arg(required_unless_present = "device", conflicts_with = "device")]
    dataset: Option<PathBuf>,
    #[command(flatten)]
    sources: SourcesArgument,
    /// Show the CUDA driver, its devices and their memory, or why no device can be used
    #[arg(long)]
    device: bool,
    /// Show versions, columns, what a reader needs, and what a reader of version 1.0 ignores
    #[arg(long, conflicts_with = "device")]
    spec: bool,
    /// Print one JSON document, with all classes
    #[arg(long)]
    json: bool,
}

/// Number of classes with a separate line; all others share one line, so that the output fits 80×24.
const LARGEST: usize = 10;
/// Maximum number of records surveyed in each split. In a larger split, evenly spaced shards are surveyed.
const SURVEYED: u64 = 20_000_000;
/// Maximum number of shards surveyed in each split, since the index of each is opened.
const SURVEYED_SHARDS: usize = 4096;

/// Labels and image sizes from the indexes of a split.
#[derive(Default)]
struct Survey {
    /// Shards surveyed.
    shards: usize,
    records: u64,
    classes: BTreeMap<i64, u64>,
    bytes: Vec<i64>,
    widths: Vec<i64>,
    heights: Vec<i64>,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let Some(path) = &arguments.dataset else {
        device::show(arguments.json, out)?;
        return Ok(Exit::Success);
    };
    let dataset = Dataset::open_with(path, arguments.sources.options())?;
    if arguments.spec {
        crate::spec::show(&dataset, arguments.json, out)?;
        return Ok(Exit::Success);
    }
    let surveys: Vec<_> = dataset.splits().iter().map(survey).collect::<anyhow::Result<_>>()?;
    if arguments.json {
        out.json(&document(&dataset, &surveys))?;
    } else {
        print(&dataset, &surveys, out)?;
    }
    Ok(Exit::Success)
}

fn survey(split: &Split) -> anyhow::Result<Survey> {
    let shards = split.entry().shards.len();
    let stride = (split.len().div_ceil(SURVEYED) as usize).max(shards.div_ceil(SURVEYED_SHARDS)).max(1);
    let mut survey = Survey::default();
    let manifest = split.manifest();
    for number in (0..shards).step_by(stride) {
        let shard = split.shard(number)?;
        survey.shards += 1;
        let rows = split.rows(number)?;
        survey.records += split.entry().shards[number].live_records();
        if let Some(labels) = manifest.label.as_deref().map(|l| shard.feature::<i64>(l)).transpose()?.flatten() {
            for label in rows.clone().filter_map(|(_, row)| labels.get(row)) {
                *survey.classes.entry(label.saturating_sub(manifest.label_offset)).or_default() += 1;
            }
        }
        let lengths = shard.column::<u32>(index::IMAGE_LENGTH)?;
        let lengths = lengths.iter().flat_map(|column| rows.clone().filter_map(|(_, row)| column.get(row)));
        survey.bytes.extend(lengths.map(i64::from).filter(|n| *n > 0));
        for (name, sizes) in [(names::IMAGE_WIDTH, &mut survey.widths), (names::IMAGE_HEIGHT, &mut survey.heights)] {
            let column = shard.feature::<i64>(name)?;
            sizes.extend(column.iter().flat_map(|column| rows.clone().filter_map(|(_, row)| column.get(row))));
        }
    }
    for sizes in [&mut survey.bytes, &mut survey.widths, &mut survey.heights] {
        sizes.sort_unstable();
    }
    Ok(survey)
}

/// Percentiles shown of image sizes.
const PERCENTILES: [usize; 5] = [0, 5, 50, 95, 100];

fn percentiles(sorted: &[i64]) -> Option<[i64; 5]> {
    let last = sorted.len().checked_sub(1)?;
    Some(PERCENTILES.map(|p| sorted[(last * p + 50) / 100]))
}

fn class_name(dataset: &Dataset, label: i64) -> String {
    let named = usize::try_from(label).ok().and_then(|l| dataset.manifest().classes.get(l));
    named.map_or_else(|| label.to_string(), |name| text::printable(name.as_bytes()))
}

fn print(dataset: &Dataset, surveys: &[Survey], out: &mut Output) -> anyhow::Result<()> {
    let manifest = dataset.manifest();
    writeln!(out, "{}", dataset.path().display())?;
    writeln!(out, "  {:<14} {:>13} {:>7} {:>10}  fingerprint", "split", "records", "shards", "bytes")?;
    for split in dataset.splits() {
        let (records, shards) = (text::count(split.len()), text::count(split.entry().shards.len() as u64));
        let (name, bytes) = (text::column(&printable(split.name()), 14), text::bytes(split.entry().bytes()));
        writeln!(out, "  {name} {records:>13} {shards:>7} {bytes:>10}  {:08x}", split.entry().fingerprint())?;
    }
    for view in manifest.views() {
        let Some(split) = dataset.view(&view.name) else { continue };
        let (name, of) = (text::column(&printable(&view.name), 14), printable(&view.split));
        let of = [format!("view of {of}")]
            .into_iter()
            .chain(view.conditions.iter().map(|text| printable(text).into_owned()));
        writeln!(out, "  {name} {:>13}  {}", text::count(split.len()), of.collect::<Vec<_>>().join(", "))?;
    }
    if let Some(versions) = &manifest.versions {
        let deleted: u64 =
            dataset.splits().iter().flat_map(|split| &split.entry().shards).map(|s| s.records - s.live_records()).sum();
        let deleted = text::plural(deleted, "deleted record");
        writeln!(out, "version {} ({}); {deleted} in its shards", versions.number, printable(&versions.command))?;
    }
    if manifest.has_cloned_shards() {
        let sources = manifest.sources().join(", ");
        writeln!(out, "a clone: shards lie in {}", printable(&sources))?;
    } else if manifest.has_virtual_shards() {
        let sources = manifest.sources();
        let place = if sources.is_empty() { "this folder".to_owned() } else { sources.join(", ") };
        writeln!(out, "virtual shards: the bytes lie in files of {}", printable(&place))?;
    }
    let largest = dataset.splits().iter().zip(surveys).max_by_key(|(split, _)| split.len());
    if let Some((split, survey)) = largest.filter(|(_, s)| s.records > 0) {
        classes(dataset, split, survey, out)?;
        sizes(split, survey, out)?;
    }
    if !manifest.features.is_empty() {
        let features: Vec<_> = manifest
            .features
            .iter()
            .map(|f| format!("{} {}", text::printable(f.name.as_bytes()), f.dtype.name()))
            .collect();
        writeln!(out, "features")?;
        wrapped(&features, 78, out)?;
    }
    if let Some(keypoints) = &manifest.keypoints {
        let names: Vec<_> = keypoints.names.iter().map(|name| text::printable(name.as_bytes())).collect();
        writeln!(out, "keypoints of each object: {}", keypoints.count())?;
        wrapped(&names, 78, out)?;
    }
    Ok(())
}

fn classes(dataset: &Dataset, split: &Split, survey: &Survey, out: &mut Output) -> anyhow::Result<()> {
    let mut classes: Vec<_> = survey.classes.iter().map(|(label, count)| (*count, *label)).collect();
    if classes.is_empty() {
        return Ok(());
    }
    classes.sort_by_key(|(count, label)| (std::cmp::Reverse(*count), *label));
    let (name, count) = (printable(split.name()), text::plural_irregular(classes.len() as u64, "class", "classes"));
    let (max, min) = (classes[0].0, classes[classes.len() - 1].0);
    // Bars of one length say nothing.
    let equal = max == min && classes.len() > LARGEST;
    let each = if equal { format!(", {} each", text::plural(max, "record")) } else { String::new() };
    writeln!(out, "classes of {name}{}: {count}{each}", surveyed(split, survey))?;
    if equal {
        return Ok(());
    }
    for (count, label) in classes.iter().take(LARGEST) {
        let name = text::column(&class_name(dataset, *label), 24);
        writeln!(out, "  {name} {:>9}  {}", text::count(*count), text::bar(*count, max, 38))?;
    }
    let rest = &classes[classes.len().min(LARGEST)..];
    if let (Some(fewest), Some(largest)) = (rest.last(), rest.first()) {
        let records = rest.iter().map(|(count, _)| count).sum();
        let others = format!("{} others", text::count(rest.len() as u64));
        let each = match (text::count(fewest.0), text::count(largest.0)) {
            (fewest, largest) if fewest == largest => fewest,
            (fewest, largest) => format!("{fewest} to {largest}"),
        };
        writeln!(out, "  {others:<24} {:>9}  {each} each", text::count(records))?;
    }
    Ok(())
}

fn sizes(split: &Split, survey: &Survey, out: &mut Output) -> anyhow::Result<()> {
    let rows = [("bytes", &survey.bytes), ("width", &survey.widths), ("height", &survey.heights)];
    if survey.bytes.is_empty() {
        return Ok(());
    }
    let of = surveyed(split, survey);
    let heads = ["min", "5 %", "median", "95 %", "max"].map(|h| format!("{h:>11}")).concat();
    writeln!(out, "images{of:<8}{heads}")?;
    for (name, sorted) in rows {
        if let Some(values) = percentiles(sorted) {
            let values = values.map(|v| format!("{:>11}", text::count(v.max(0) as u64))).concat();
            writeln!(out, "  {name:<12}{values}")?;
        }
    }
    Ok(())
}

/// Returns a note if only some shards were surveyed.
fn surveyed(split: &Split, survey: &Survey) -> String {
    let all = split.entry().shards.len();
    if survey.shards < all { format!(" (from {} of {all} shards)", survey.shards) } else { String::new() }
}

/// Prints items separated by commas, in lines of at most `width` terminal cells.
fn wrapped(items: &[String], width: usize, out: &mut Output) -> anyhow::Result<()> {
    let mut line = String::new();
    for (i, item) in items.iter().enumerate() {
        let item = if i + 1 < items.len() { format!("{item},") } else { item.clone() };
        if !line.is_empty() && text::width(&line) + 1 + text::width(&item) > width - 2 {
            writeln!(out, "  {line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&item);
    }
    Ok(writeln!(out, "  {line}")?)
}

fn document(dataset: &Dataset, surveys: &[Survey]) -> serde_json::Value {
    let manifest = dataset.manifest();
    let sizes = |sorted: &[i64]| {
        percentiles(sorted).map(|p| json!({"least": p[0], "p5": p[1], "median": p[2], "p95": p[3], "most": p[4]}))
    };
    let splits: Vec<_> = dataset
        .splits()
        .iter()
        .zip(surveys)
        .map(|(split, survey)| {
            let classes: Vec<_> = survey
                .classes
                .iter()
                .map(|(label, count)| json!({"label": label, "name": class_name(dataset, *label), "records": count}))
                .collect();
            json!({
                "name": split.name(), "records": split.len(), "shards": split.entry().shards.len(),
                "bytes": split.entry().bytes(), "fingerprint": format!("{:08x}", split.entry().fingerprint()),
                "surveyed_shards": survey.shards, "classes": classes, "image_bytes": sizes(&survey.bytes),
                "width": sizes(&survey.widths), "height": sizes(&survey.heights),
            })
        })
        .collect();
    let view = |view: &shardtool_format::manifest::View| {
        let records = dataset.view(&view.name).map_or(0, Split::len);
        json!({"name": view.name, "split": view.split, "records": records, "where": view.conditions})
    };
    let views: Vec<_> = manifest.views().iter().map(view).collect();
    let features: Vec<_> = manifest.features.iter().map(|f| json!({"name": f.name, "type": f.dtype.name()})).collect();
    json!({
        "path": dataset.path().to_string_lossy(), "created_by": manifest.created_by, "splits": splits,
        "version": dataset.version(), "views": views,
        "features": features, "classes": manifest.classes.len(), "keypoints": manifest.keypoints,
        "virtual_shards": manifest.has_virtual_shards(), "sources": manifest.sources(),
    })
}
