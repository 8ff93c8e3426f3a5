//! A report of a dataset as one file: the parts of the pages without the server, or a card in Markdown.

use crate::app::{App, SplitView};
use crate::check::{Kind, State};
use crate::guard::Guarded;
use crate::markdown::{self, escaped};
use crate::metadata::{self, MetadataCounts};
use crate::objects;
use crate::pages::{self, columns, health};
use crate::picture;
use crate::summary;
use crate::text;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use rayon::prelude::*;
use serde_json::json;
use shardtool_read::Dataset;
use std::fmt::Write;
use std::sync::Arc;

/// Options of [`html_report`] and [`markdown`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReportOptions {
    /// Thumbnails of each split, spread evenly over its records. Default: 36.
    pub thumbnails: u64,
    /// Whether every record is verified, and the findings are part of the report. Default: no.
    pub verify: bool,
    /// Feature of the type int64 whose labels are counted, alone and in pairs, besides those of objects. Default: none.
    pub labels: Option<String>,
}

impl Default for ReportOptions {
    fn default() -> Self {
        ReportOptions { thumbnails: 36, verify: false, labels: None }
    }
}

/// A report, and what verification found.
#[derive(Debug)]
pub struct Report {
    /// The document.
    pub text: String,
    /// Findings of verification, if it ran.
    pub findings: u64,
}

fn app(dataset: Dataset, options: &ReportOptions) -> (App, State) {
    let app = App::new(dataset, None, Guarded::new("127.0.0.1", true), false);
    if options.verify {
        app.check.run(&app.dataset, Kind::Verify);
    }
    let state = app.check.state();
    (app, state)
}

/// Makes a report of a dataset as one HTML file, with thumbnails in it. It loads nothing and has no script.
pub fn html_report(dataset: Dataset, options: &ReportOptions) -> Report {
    let (app, state) = app(dataset, options);
    let name = app.name();
    let style = PreEscaped(include_str!("../assets/view.css"));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'";
                title { (name) " · shardtool" }
                style { (style) }
            }
            body {
                main.wide {
                    h1 { (name) }
                    p.lead { (text::plural(app.splits.iter().map(|view| view.split.len()).sum(), "record")) " in "
                        (text::plural(app.splits.len() as u64, "split")) }
                    (facts(&app))
                    @if options.verify {
                        (health::map(&app, &state))
                        @if state.findings.is_empty() { p.good { "No damage found in " (text::plural(state.good_records, "record")) "." } }
                        @else { (health::findings(&app, &state)) }
                    }
                    (health::labels(&app))
                    @for view in &app.splits { (split(view, options)) }
                }
            }
        }
    };
    Report { text: page.into_string() + "\n", findings: state.findings.len() as u64 + state.unlisted }
}

fn facts(app: &App) -> Markup {
    html! {
        section.card {
            h2 { "Splits" }
            div.scroll { table {
                thead { tr { th { "Split" } th { "Records" } th { "Shards" } th { "Bytes" } th { "Fingerprint" } } }
                tbody { @for view in &app.splits {
                    @let entry = view.split.entry();
                    tr {
                        td { (text::printable_text(&entry.name)) }
                        td.number { (text::count(view.split.len())) }
                        td.number { (text::count(entry.shards.len() as u64)) }
                        td.number { (text::bytes(entry.bytes())) }
                        td { code { (format!("{:08x}", entry.fingerprint())) } }
                    }
                } }
            } }
        }
    }
}

fn split(view: &Arc<SplitView>, options: &ReportOptions) -> Markup {
    let sizes = summary::sizes(&view.split, view.columns());
    let summaries: Vec<_> = view.columns().iter().map(|column| summary::summarize(&view.split, column)).collect();
    let objects = objects::examine(view, options.labels.as_deref());
    html! {
        section aria-label=(text::printable_text(view.split.name())) {
            h2.split-name { (text::printable_text(view.split.name())) }
            @if has_image_files(view) { p.note { (MetadataCounts::words(metadata::count(&view.split))) } }
            (pages::objects::notes(&objects))
            (thumbnails(view, options.thumbnails))
            div.cards {
                (pages::objects::cards(view, &objects))
                (columns::cards(view, &summaries))
                @if let Some(sizes) = &sizes { (columns::scatter(view, sizes)) }
                (columns::shards(view))
            }
        }
    }
}

/// Returns whether the records of a split have images.
fn has_image_files(view: &SplitView) -> bool {
    view.split.manifest().has_images()
}

/// Renders thumbnails of records that are spread evenly.
fn thumbnails(view: &SplitView, most: u64) -> Markup {
    let (records, shown) = (view.split.len(), view.split.len().min(most));
    let ids: Vec<_> = (0..shown).map(|i| (u128::from(i) * u128::from(records) / u128::from(shown)) as u64).collect();
    let cells: Vec<_> = ids.into_par_iter().map(|id| picture::thumbnail(&view.split, id)).collect();
    html! {
        @if cells.iter().any(Result::is_ok) {
            ol.grid.sample {
                @for cell in &cells {
                    li.cell {
                        @match cell {
                            Ok((key, jpeg)) => {
                                span.picture { img src={ "data:image/jpeg;base64," (text::base64(jpeg)) } alt=(key); }
                                span.name { (key.rsplit('/').next().unwrap_or_default()) }
                            }
                            Err(error) => {
                                span.picture title=(error) {}
                                span.name { "no picture" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Makes a card of a dataset in Markdown, as dataset hubs show it.
pub fn markdown(dataset: Dataset, options: &ReportOptions) -> Report {
    let (app, state) = app(dataset, options);
    let manifest = app.dataset.manifest();
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(out, "# {}\n\n", escaped(&app.name()));
    out += "| split | records | shards | bytes | fingerprint |\n|---|---:|---:|---:|---|\n";
    for view in &app.splits {
        let entry = view.split.entry();
        let (records, shards) = (text::count(view.split.len()), text::count(entry.shards.len() as u64));
        let (bytes, fingerprint) = (text::bytes(entry.bytes()), entry.fingerprint());
        let _ = writeln!(out, "| {} | {records} | {shards} | {bytes} | `{fingerprint:08x}` |", escaped(&entry.name));
    }
    if options.verify {
        let found = state.findings.len() as u64 + state.unlisted;
        let _ = match found {
            0 => write!(out, "\nVerified: no damage found in {}.\n", text::plural(state.good_records, "record")),
            n => write!(
                out,
                "\nVerified: {}, {}.\n",
                text::plural(n, "finding"),
                text::plural(state.good_records, "good record")
            ),
        };
    }
    for view in &app.splits {
        let _ = write!(
            out,
            "\n## {}\n\n| feature | type | missing | values |\n|---|---|---:|---|\n",
            escaped(view.split.name())
        );
        for column in view.columns() {
            let summary = summary::summarize(&view.split, column);
            let missing =
                if column.indexed { text::percent(summary.missing, summary.records) } else { "–".to_owned() };
            let values = summary.words();
            let _ = writeln!(
                out,
                "| `{}` | {} | {missing} | {} |",
                column.name.replace(['`', '|', '\n'], " "),
                column.dtype.name(),
                escaped(&values)
            );
        }
        if has_image_files(view) {
            let _ = writeln!(out, "\n{}", MetadataCounts::words(metadata::count(&view.split)));
        }
        if let Some(labels) = view.labels().filter(|labels| !labels.is_empty()) {
            let named: Vec<_> = labels
                .iter()
                .take(20)
                .map(|(label, count)| format!("{} {}", escaped(&view.class_name(*label)), text::count(*count)))
                .collect();
            let more = if labels.len() > 20 {
                format!(", and {} more", text::count(labels.len() as u64 - 20))
            } else {
                String::new()
            };
            let _ = write!(
                out,
                "\n{}: {}{more}\n",
                text::plural_irregular(labels.len() as u64, "class", "classes"),
                named.join(", ")
            );
        }
        let examined = objects::examine(view, options.labels.as_deref());
        out += &markdown::objects(&examined, |label| view.class_name(label));
    }
    let _ = write!(out, "\n{}", READING);
    if manifest.created_by.is_empty() {
        return Report { text: out, findings: state.findings.len() as u64 + state.unlisted };
    }
    let _ = write!(out, "\nPacked by {}.\n", escaped(&manifest.created_by));
    Report { text: out, findings: state.findings.len() as u64 + state.unlisted }
}

/// Makes a JSON document of the numbers of a report: per split records, shards, bytes, fingerprint, and of the images how many
/// have a GPS position or an embedded thumbnail (`null` if they were not counted); of datasets with objects `objects`, and with
/// [`ReportOptions::labels`] `label_lists` (both `null` in a store); and the number of findings, `null` without
/// [`ReportOptions::verify`].
pub fn json_report(dataset: Dataset, options: &ReportOptions) -> Report {
    let (app, state) = app(dataset, options);
    let findings = state.findings.len() as u64 + state.unlisted;
    let split = |view: &Arc<SplitView>| {
        let entry = view.split.entry();
        let counts = if has_image_files(view) { metadata::count(&view.split) } else { None };
        let mut document = json!({
            "split": entry.name, "records": view.split.len(), "shards": entry.shards.len(), "bytes": entry.bytes(),
            "fingerprint": format!("{:08x}", entry.fingerprint()), "images": counts.map(|counts| counts.images),
            "images_with_position": counts.map(|counts| counts.positions),
            "images_with_thumbnail": counts.map(|counts| counts.thumbnails),
        });
        let labels = options.labels.as_deref();
        objects::examine(view, labels).add_to(&mut document, labels, |label| view.class_name(label));
        document
    };
    let document = json!({
        "dataset": app.dataset.path().to_string_lossy(), "splits": app.splits.iter().map(split).collect::<Vec<_>>(),
        "findings": options.verify.then_some(findings),
    });
    Report { text: format!("{document:#}\n"), findings }
}

const READING: &str = "## Reading\n\nShards are plain TFRecord files of `tf.train.Example` records. With shardtool:\n\n\
    ```python\nimport shardtool as st\n\ndataset = st.Dataset(\"PATH\")\n```\n";
