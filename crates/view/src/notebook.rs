//! Fragments of HTML for notebooks: they need no style sheet and no script, and follow the notebook's colours.

use crate::columns;
use crate::picture::{self, Stored};
use crate::summary::{self, Content, Summary};
use crate::text;
use maud::{Markup, html};
use rayon::prelude::*;
use shardtool_read::{Dataset, Split};

/// Number of records whose thumbnails a split and a dataset show.
const SHOWN: u64 = 6;
/// Longest side of one image that is shown alone, in pixels.
const ALONE: u32 = 480;

const GRID: &str = "display:flex;flex-wrap:wrap;gap:10px;margin:8px 0";
const FIGURE: &str =
    "margin:0;width:140px;font-size:11px;line-height:1.3;overflow:hidden;text-overflow:ellipsis;white-space:nowrap";
const PICTURE: &str = "display:block;width:140px;height:105px;object-fit:cover;border-radius:6px;margin-bottom:3px";
const CELL: &str = "text-align:left;padding:3px 14px 3px 0";

/// Renders a dataset: its splits, and some records of the first.
pub fn dataset_html(dataset: &Dataset) -> String {
    let classes = dataset.manifest().classes.len() as u64;
    let content = html! {
        p {
            b { (text::printable_text(&dataset.path().display().to_string())) }
            @if classes > 0 { ", " (text::plural_irregular(classes, "class", "classes")) }
        }
        table {
            thead { tr { @for name in ["split", "records", "shards", "bytes", "fingerprint"] { th style=(CELL) { (name) } } } }
            tbody {
                @for split in dataset.splits() {
                    @let entry = split.entry();
                    tr {
                        td style=(CELL) { (text::printable_text(split.name())) }
                        td style=(CELL) { (text::count(split.len())) }
                        td style=(CELL) { (text::count(entry.shards.len() as u64)) }
                        td style=(CELL) { (text::bytes(entry.bytes())) }
                        td style=(CELL) { code { (format!("{:08x}", entry.fingerprint())) } }
                    }
                }
            }
        }
        @if let Some(split) = dataset.splits().first() { (records(split, &first(split))) }
    };
    content.into_string()
}

/// Renders a split: its columns with their values, and some records.
pub fn split_html(split: &Split) -> String {
    let columns = columns::columns(split);
    let summaries: Vec<_> = columns.iter().map(|column| summary::summarize(split, column)).collect();
    let content = html! {
        p {
            b { (text::printable_text(split.name())) } ": " (text::plural(split.len(), "record")) " in "
            (text::plural(split.entry().shards.len() as u64, "shard")) ", " (text::bytes(split.entry().bytes()))
        }
        table {
            thead { tr { @for name in ["column", "type", "missing", "values", ""] { th style=(CELL) { (name) } } } }
            tbody { @for summary in &summaries { (row(summary)) } }
        }
        (records(split, &first(split)))
    };
    content.into_string()
}

/// Renders records of a split: thumbnails with keys.
pub fn records_html(split: &Split, ids: &[u64]) -> String {
    records(split, ids).into_string()
}

/// Renders an image as it is stored, upright and reduced to what a page has room for. Says why, if it cannot be decoded.
pub fn image_html(bytes: &[u8]) -> String {
    let reduced = || picture::reduced(&Stored::parse(bytes)?, ALONE);
    let content = match reduced() {
        Ok(jpeg) => html! { img src=(data(&jpeg)) alt="" style="max-width:100%;border-radius:6px"; },
        Err(error) => html! { p { i { (error) } } },
    };
    content.into_string()
}

fn first(split: &Split) -> Vec<u64> {
    (0..split.len().min(SHOWN)).collect()
}

fn records(split: &Split, ids: &[u64]) -> Markup {
    let made: Vec<_> = ids.par_iter().map(|id| (id, picture::thumbnail(split, *id))).collect();
    html! {
        @if made.iter().any(|(_, made)| !matches!(made, Err(picture::Error::NoImage))) {
            div style=(GRID) {
                @for (id, made) in &made {
                    figure style=(FIGURE) {
                        @match made {
                            Ok((key, jpeg)) => {
                                img src=(data(jpeg)) alt=(key) title=(key) style=(PICTURE);
                                (id) " " (key.rsplit('/').next().unwrap_or_default())
                            }
                            Err(error) => { span title=(error) style=(PICTURE) { (error) } (id) }
                        }
                    }
                }
            }
        }
    }
}

fn row(summary: &Summary) -> Markup {
    let column = &summary.column;
    html! {
        tr {
            td style=(CELL) { code { (text::printable_text(&column.name)) } }
            td style=(CELL) { (column.dtype.name()) }
            td style=(CELL) { @if column.indexed { (text::percent(summary.missing, summary.records)) } }
            td style=(CELL) { (text::printable_text(&summary.words())) }
            td style=(CELL) {
                @if let Content::Histogram { counts, .. } = &summary.content { (histogram(counts)) }
            }
        }
    }
}

fn histogram(counts: &[u64]) -> Markup {
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    html! {
        svg width=(5 * counts.len()) height="26" role="img" aria-label="histogram" style="vertical-align:middle" {
            @for (i, count) in counts.iter().enumerate() {
                @if *count > 0 {
                    @let height = (26.0 * *count as f64 / most as f64).max(1.0);
                    rect x=(5 * i) y=(format!("{:.1}", 26.0 - height)) width="4" height=(format!("{height:.1}")) fill="#6f86e8" {}
                }
            }
        }
    }
}

fn data(jpeg: &[u8]) -> String {
    format!("data:image/jpeg;base64,{}", text::base64(jpeg))
}
