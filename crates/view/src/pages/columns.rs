//! The columns page: what the indexes hold, summarised. Each bar is a filter.

use super::gallery::short;
use super::{Place, bar, frame};
use crate::app::{App, SplitView};
use crate::summary::{CELLS, Content, Sizes, Summary};
use crate::text;
use maud::{Markup, html};
use shardtool_format::names;
use std::sync::Arc;

/// Shards drawn as a bar each; more are drawn together.
const SHARDS: usize = 120;

/// Renders the columns of a split.
pub(crate) fn page(app: &App, view: &Arc<SplitView>) -> Markup {
    let name = view.split.name();
    let summaries = view.summaries();
    let content = html! {
        div.wide {
            h1 { "Columns" }
            p.lead { (text::plural(view.split.len(), "record")) ", summarised from the indexes. A bar leads to its records." }
            @if !summaries.done {
                p.note role="status" data-reload {
                    (summaries.columns.len()) " of " (view.columns().len()) " columns are summarised. "
                    a href="" { "Reload" }
                }
            }
            div.cards {
                (cards(view, &summaries.columns))
                @if let Some(sizes) = &summaries.sizes { (scatter(view, sizes)) }
                (shards(view))
            }
        }
    };
    frame(app, "Columns", Place::Split(name, "columns"), &content)
}

/// Renders each column that the indexes hold, and the names of the others.
pub(crate) fn cards(view: &SplitView, summaries: &[Summary]) -> Markup {
    let others: Vec<_> = summaries.iter().filter(|summary| !summary.column.indexed).collect();
    html! {
        @for summary in summaries.iter().filter(|summary| summary.column.indexed) { (card(view, summary)) }
        @if !others.is_empty() {
            section.card {
                h2 { "In the records only" }
                p.quiet { "Features with several or long values: a record's page shows them." }
                dl.features {
                    @for summary in others {
                        dt { (text::printable_text(&summary.column.name)) }
                        dd { (summary.column.dtype.name()) }
                    }
                }
            }
        }
    }
}

/// Renders one column.
fn card(view: &SplitView, summary: &Summary) -> Markup {
    let column = &summary.column;
    html! {
        section.card {
            h2 title=(column.name) { (text::printable_text(&column.name)) }
            p.type {
                span.dtype { (column.dtype.name()) }
                span { (text::percent(summary.missing, summary.records)) " missing" }
            }
            @if let Some(problem) = &summary.problem { p.note.bad { (problem) } }
            @match &summary.content {
                Content::Histogram { low, high, counts, integer } => (histogram(view, summary, (*low, *high), counts, *integer)),
                Content::Values { values, distinct } => (values_list(view, summary, values, *distinct)),
                Content::Distinct => p.quiet { "More than 4,096 distinct values" },
                Content::NotIndexed | Content::Empty => p.quiet { "No values" },
            }
        }
    }
}

fn histogram(view: &SplitView, summary: &Summary, (low, high): (f64, f64), counts: &[u64], integer: bool) -> Markup {
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let width = (high - low) / counts.len() as f64;
    let name = &summary.column.name;
    // Bars as wide as 320 units allow.
    let step = 320.0 / counts.len() as f64;
    html! {
        svg.histogram viewBox="0 0 320 96" role="group" aria-label={ "Histogram of " (short(name)) } {
            @for (i, count) in counts.iter().enumerate() {
                @if *count > 0 {
                    @let from = low + width * i as f64;
                    @let to = from + width;
                    @let last = i + 1 == counts.len();
                    @let height = (88.0 * *count as f64 / most as f64).max(1.5);
                    @let bounds = [format!("{name}>={}", bound(from, integer)),
                        format!("{name}{}{}", if last { "<=" } else { "<" }, bound(to, integer))];
                    @let words = format!("{} to {}: {}", text::number(from), text::number(if integer { to - 1.0 } else { to }),
                        text::plural(*count, "record"));
                    a href=[view.link(bounds.to_vec())] aria-label=(words) {
                        title { (words) }
                        rect.hit x=(format!("{:.2}", step * i as f64)) y="0" width=(format!("{step:.2}")) height="96" {}
                        rect.fill x=(format!("{:.2}", step * i as f64 + 0.5)) y=(format!("{:.1}", 96.0 - height))
                            width=(format!("{:.2}", (step - 1.0).max(0.5))) height=(format!("{height:.1}")) rx="1" {}
                    }
                }
            }
        }
        p.axis { span { (text::number(low)) } span { (text::number(if integer { high - 1.0 } else { high })) } }
    }
}

/// Formats the bound of a range so that it is read back as the same number.
fn bound(value: f64, integer: bool) -> String {
    if integer { format!("{}", value as i64) } else { format!("{}", value as f32) }
}

fn values_list(view: &SplitView, summary: &Summary, values: &[(String, u64)], distinct: u64) -> Markup {
    let most = values.iter().map(|(_, count)| *count).max().unwrap_or(1);
    if most == 1 && distinct > values.len() as u64 {
        return html! { p.quiet { (text::count(distinct)) " values, each in one record" } };
    }
    let is_label = view.label_column().is_some_and(|label| label.name == summary.column.name);
    let shown = |value: &str| match value.parse() {
        Ok(label) if is_label => view.class_name(label),
        _ if value.is_empty() => "(empty)".to_owned(),
        _ => text::fit(value, 60),
    };
    html! {
        ul.values {
            @for (value, count) in values {
                li {
                    a href=[view.link(vec![format!("{}={value}", summary.column.name)])] {
                        span.label { (shown(value)) }
                        span.count { (text::count(*count)) }
                        (bar(*count, most))
                    }
                }
            }
        }
        @if distinct > values.len() as u64 {
            p.quiet { "and " (text::count(distinct - values.len() as u64)) " more" }
        }
    }
}

/// Renders the sizes of images: width to the right, height upwards.
pub(crate) fn scatter(view: &SplitView, sizes: &Sizes) -> Markup {
    let most = sizes.counts.iter().copied().max().unwrap_or(1).max(1);
    let (cell, side) = (10, 10 * CELLS);
    let label = |count: u64, w: i64, h: i64| format!("about {w} × {h} pixels: {}", text::plural(count, "record"));
    html! {
        section.card {
            h2 { "Sizes of images" }
            p.type { span { "width →" } span { "height ↑" } }
            svg.scatter viewBox=(format!("0 0 {side} {side}")) role="group" aria-label="Sizes of images" {
                rect.ground width=(side) height=(side) {}
                @for (i, count) in sizes.counts.iter().enumerate() {
                    @if *count > 0 {
                        @let (x, y) = ((i % CELLS) as i64, (i / CELLS) as i64);
                        @let (w, h) = (x * sizes.cell.0, y * sizes.cell.1);
                        @let opacity = 0.25 + 0.75 * ((*count as f64).ln_1p() / (most as f64).ln_1p());
                        @let filters = vec![format!("{}>={w}", names::IMAGE_WIDTH), format!("{}<{}", names::IMAGE_WIDTH, w + sizes.cell.0),
                            format!("{}>={h}", names::IMAGE_HEIGHT), format!("{}<{}", names::IMAGE_HEIGHT, h + sizes.cell.1)];
                        @let words = label(*count, w + sizes.cell.0 / 2, h + sizes.cell.1 / 2);
                        a href=[view.link(filters)] aria-label=(words) {
                            title { (words) }
                            rect.fill x=(cell * x) y=(side as i64 - cell * (y + 1)) width=(cell - 1) height=(cell - 1) rx="2"
                                opacity=(format!("{opacity:.2}")) {}
                        }
                    }
                }
            }
            p.axis { span { "0" } span { (CELLS as i64 * sizes.cell.0) " × " (CELLS as i64 * sizes.cell.1) " pixels" } }
        }
    }
}

/// Renders the bytes of each shard.
pub(crate) fn shards(view: &SplitView) -> Markup {
    let shards = &view.split.entry().shards;
    if shards.is_empty() {
        return html! {};
    }
    let together = shards.len().div_ceil(SHARDS);
    let bars: Vec<_> = shards
        .chunks(together)
        .map(|some| {
            (
                some[0].file.clone(),
                some.iter().map(|s| s.bytes).sum::<u64>(),
                some.iter().map(|s| s.live_records()).sum::<u64>(),
            )
        })
        .collect();
    let most = bars.iter().map(|(_, bytes, _)| *bytes).max().unwrap_or(1).max(1);
    let step = 320.0 / bars.len() as f64;
    html! {
        section.card {
            h2 { "Bytes per shard" }
            p.type {
                span { (text::plural(shards.len() as u64, "shard")) }
                span { (text::bytes(shards.iter().map(|s| s.bytes).sum())) }
            }
            svg.histogram viewBox="0 0 320 96" role="img" aria-label={ "Bytes of each shard, at most " (text::bytes(most)) } {
                @for (i, (file, bytes, records)) in bars.iter().enumerate() {
                    @let height = (88.0 * *bytes as f64 / most as f64).max(1.5);
                    rect.fill x=(format!("{:.2}", step * i as f64)) y=(format!("{:.1}", 96.0 - height))
                        width=(format!("{:.2}", (step * 0.85).min(24.0))) height=(format!("{height:.1}")) rx="1" {
                        title { (text::printable_text(file)) @if together > 1 { " and " (together - 1) " more" }
                            ": " (text::bytes(*bytes)) ", " (text::plural(*records, "record")) }
                    }
                }
            }
            p.axis { span { (text::printable_text(&bars[0].0)) } span { "at most " (text::bytes(most)) } }
        }
    }
}
