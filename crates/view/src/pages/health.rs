//! Health: a map of shards, coloured by the findings of verification; duplicates, suspicious labels.

use super::{Place, frame};
use crate::app::{App, SplitView};
use crate::check::{FoundDamage, Kind, ShardState, State};
use crate::query::segment;
use crate::text;
use maud::{Markup, html};
use shardtool_format::Damage;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Cells of the map; more shards are drawn together. Findings and groups that are listed.
const CELLS: usize = 1200;
const LISTED: usize = 200;
/// Shards whose damaged records are drawn.
const DRAWN: usize = 24;

/// Renders the health of the dataset. `busy`: a check could not be started, since another one runs.
pub(crate) fn page(app: &App, busy: bool) -> Markup {
    let start = |kind: &str, label: &str, what: &str| {
        html! {
            form.action action="/-/check" method="post" {
                input type="hidden" name="token" value=(app.guarded.token());
                input type="hidden" name="kind" value=(kind);
                button type="submit" { (label) }
                span.quiet { (what) }
            }
        }
    };
    let decodes = app.dataset.manifest().has_images() || app.dataset.manifest().has_arrays();
    let content = html! {
        div.wide {
            h1 { "Health" }
            p.lead { "Checks read the dataset and change nothing. One runs at a time." }
            @if busy && app.turns.is_taken() { p.note role="alert" { (super::BUSY) } }
            div.actions {
                (start("verify", "Verify", "every CRC, index and file"))
                @if decodes { (start("decode", "Verify and decode", "every image too")) }
                (start("duplicates", "Find duplicates", "images with equal bytes"))
            }
            div id="health" data-part="/-/health/part" { (part(app)) }
            (labels(app))
        }
    };
    frame(app, "Health", Place::Health, &content)
}

/// Renders what changes while a check runs.
pub(crate) fn part(app: &App) -> Markup {
    let state = app.check.state();
    html! {
        div data-running=[state.running.map(|_| "true")] {
            (progress(app, &state))
            (map(app, &state))
            (records_map(app, &state))
            @if !state.findings.is_empty() { (findings(app, &state)) }
            @if let Some(duplicates) = &state.duplicates {
                section.card {
                    h2 { "Duplicates" }
                    p { (text::plural(duplicates.extra, "record")) " with the image of another record, in "
                        (text::plural(duplicates.groups.len() as u64 + duplicates.unlisted, "group")) "." }
                    @if let Some(problem) = &duplicates.problem { p.note.bad { (problem) } }
                    ul.groups {
                        @for (split, ids) in duplicates.groups.iter().take(LISTED) {
                            li { @for id in ids.iter().take(12) {
                                a href=(format!("/{}/record/{id}", segment(split))) {
                                    img src=(format!("/{}/thumb/{id}", segment(split))) alt={ "record " (id) " of " (split) } loading="lazy";
                                }
                            } @if ids.len() > 12 { span.quiet { "and " (ids.len() - 12) " more" } } }
                        }
                    }
                }
            }
        }
    }
}

fn progress(app: &App, state: &State) -> Markup {
    let name = |kind| match kind {
        Kind::Verify => "Verification",
        Kind::Decode => "Verification with decoding",
        Kind::Duplicates => "Search for duplicates",
    };
    html! {
        div.progress role="status" {
            @if let Some(kind) = state.running {
                p { (name(kind)) ": " (text::count(state.done)) " of " (text::plural(state.total, "record")) }
                progress max=(state.total.max(1)) value=(state.done.min(state.total)) aria-label=(name(kind)) {}
                form action="/-/cancel" method="post" {
                    input type="hidden" name="token" value=(app.guarded.token());
                    button type="submit" { "Cancel" }
                }
                p.nojs { a href="/-/health" { "Reload" } }
            } @else if let Some(kind) = state.ran {
                @let found = state.findings.len() as u64 + state.unlisted;
                p {
                    (name(kind)) @if state.cancelled { " cancelled" } @else { " ended" } " after " (format!("{:.1} s", state.seconds)) ". "
                    @if kind != Kind::Duplicates {
                        @if found == 0 {
                            span.good { (if state.cancelled { "No damage found so far" } else { "No damage found" }) }
                        } @else { span.bad { (text::plural(found, "finding")) } }
                        ", " (text::plural(state.good_records, "good record")) "."
                    }
                }
            } @else {
                p.quiet { "Nothing has been checked yet." }
            }
        }
    }
}

/// A cell of the map: shards that are drawn together.
struct Cell {
    title: String,
    state: &'static str,
    href: Option<String>,
}

/// Renders the shards, coloured by the findings of a check.
pub(crate) fn map(app: &App, state: &State) -> Markup {
    let mut cells: Vec<(String, Vec<Cell>)> = vec![];
    let mut at = 0;
    let shards = state.shards.len().max(1);
    for view in &app.splits {
        let entry = view.split.entry();
        let together = shards.div_ceil(CELLS);
        let mut of_split = vec![];
        for (i, some) in entry.shards.chunks(together).enumerate() {
            let states = &state.shards[at..at + some.len()];
            at += some.len();
            let damaged: u64 =
                states.iter().map(|s| if let ShardState::Damaged(n) = s { u64::from(*n) } else { 0 }).sum();
            let unchecked = states.contains(&ShardState::Unchecked);
            let (kind, words) = match (damaged, unchecked) {
                (0, true) => ("unchecked", "not checked".to_owned()),
                (0, false) => ("good", "good".to_owned()),
                (n, _) => ("damaged", text::plural(n, "finding")),
            };
            let records: u64 = some.iter().map(|shard| shard.live_records()).sum();
            let name = match some {
                [one] => text::printable_text(&one.file).into_owned(),
                _ => format!(
                    "{} to {}",
                    text::printable_text(&some[0].file),
                    text::printable_text(&some[some.len() - 1].file)
                ),
            };
            let start = view.split.starts()[i * together];
            // An empty shard begins where the next one does.
            let first = (records > 0).then(|| view.record_link(start)).flatten();
            of_split.push(Cell {
                title: format!("{name}: {words}, {}", text::plural(records, "record")),
                state: kind,
                href: first,
            });
        }
        cells.push((view.split.name().to_owned(), of_split));
    }
    html! {
        section.card {
            h2 { "Shards" }
            @for (split, cells) in &cells {
                h3 { (text::printable_text(split)) " " span.count { (text::plural(app.split(split).map_or(0, |view| view.split.entry().shards.len() as u64), "shard")) } }
                ol.map {
                    @for cell in cells {
                        li { @match &cell.href {
                            Some(url) => a.cell-state data-state=(cell.state) href=(url) title=(cell.title) aria-label=(cell.title) {},
                            None => span.cell-state data-state=(cell.state) role="img" title=(cell.title) aria-label=(cell.title) {},
                        } }
                    }
                }
            }
            ul.legend {
                li { span.cell-state data-state="good" {} "good" }
                li { span.cell-state data-state="damaged" {} "damaged" }
                li { span.cell-state data-state="unchecked" {} "not checked" }
            }
        }
    }
}

/// Returns what a damage costs.
fn cost(damage: Option<Damage>) -> &'static str {
    match damage {
        None => "the records in the bytes that cannot be read",
        Some(Damage::DataCrc | Damage::MalformedExample | Damage::ImageDecode | Damage::PixelsLength) => "one sample",
        Some(Damage::LengthCrc | Damage::TruncatedFrame) => "the records up to the next good frame",
        Some(Damage::MissingShard | Damage::CompressedRecords) => "all records of the shard",
        Some(damage) if damage.name().starts_with("Index") || damage.name().starts_with("Column") => {
            "fast access to the shard; the records are whole"
        }
        Some(Damage::MissingIndex | Damage::RecordCount) => "access to the shard; the records may be whole",
        Some(Damage::ShardCrc | Damage::ShardSha256 | Damage::ShardLength) => "the records that other findings name",
        Some(_) => "see docs/damage.md",
    }
}

/// Renders where the damaged records of each damaged shard lie.
fn records_map(app: &App, state: &State) -> Markup {
    let mut damaged = BTreeMap::<(&str, usize), BTreeSet<u64>>::new();
    for found in &state.findings {
        if let Some(record) = found.finding.record {
            damaged.entry((&found.split, found.shard)).or_default().insert(record);
        }
    }
    let drawn = damaged.iter().take(DRAWN).filter_map(|((split, number), records)| {
        let entry = app.split(split)?.split.entry().shards.get(*number)?;
        Some((text::printable_text(&entry.file), entry.records.max(1), records))
    });
    html! {
        @if !damaged.is_empty() {
            section.card {
                h2 { "Damaged records of a shard" }
                @for (file, all, records) in drawn {
                    @let words = format!("{file}: {} of {}", text::count(records.len() as u64), text::plural(all, "record"));
                    @let width = (1000.0 / all as f64).max(4.0);
                    figure.curve {
                        figcaption { (words) }
                        svg.strip viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label=(words) {
                            rect.strip-good width="1000" height="12" {}
                            @for record in records {
                                rect.strip-bad x=(format!("{:.1}", (1000.0 - width) * *record as f64 / all.saturating_sub(1).max(1) as f64))
                                    width=(format!("{width:.1}")) height="12" {}
                            }
                        }
                    }
                }
                @if damaged.len() > DRAWN { p.quiet { "and " (text::plural((damaged.len() - DRAWN) as u64, "shard")) " more" } }
            }
        }
    }
}

/// Renders the findings, and the command that repairs them.
pub(crate) fn findings(app: &App, state: &State) -> Markup {
    let command = format!("shardtool repair {}", quoted(&app.dataset.path().display().to_string()));
    let decode_only =
        state.findings.iter().all(|f| matches!(f.finding.damage, Some(Damage::ImageDecode | Damage::PixelsLength)));
    html! {
        section.card.damage {
            h2 { "Findings" }
            @if decode_only {
                p { "Records and CRCs are good: these images were packed as they are. Loaders treat them as bad samples." }
            } @else {
                p { "This command rebuilds what can be rebuilt, and copies the good records of damaged shards:" }
                p.command { code { (command) } button type="button" data-copy=(command) hidden { "Copy" } }
            }
            div.scroll tabindex="0" role="region" aria-label="Findings" { table {
                thead { tr { th { "Damage" } th { "Shard" } th { "Record" } th { "Offset" } th { "Expected, found" } th { "Costs" } } }
                tbody {
                    @for found in state.findings.iter().take(LISTED) { (row(app, found)) }
                }
            } }
            @let more = (state.findings.len().saturating_sub(LISTED)) as u64 + state.unlisted;
            @if more > 0 { p.quiet { "and " (text::count(more)) " more: " code { "shardtool verify --json" } " lists them" } }
        }
    }
}

fn row(app: &App, found: &FoundDamage) -> Markup {
    let finding = &found.finding;
    let file = finding.file.file_name().map_or(String::new(), |name| text::printable(name.as_encoded_bytes()));
    html! {
        tr title=(text::printable_text(&finding.message)) {
            td { code { (finding.name()) } }
            td { (file) }
            td {
                @if let Some(record) = finding.record {
                    a href=[found.id.and_then(|id| app.split(&found.split)?.record_link(id))] {
                        (finding.key.as_deref().map_or_else(|| found.id.map_or_else(|| format!("row {record} of the shard, deleted"), |id| format!("record {id}")), |key| text::fit(&text::printable_text(key), 60)))
                    }
                }
            }
            td.number { @if let Some(offset) = finding.offset { (text::count(offset)) } }
            td { @if let Some((expected, found)) = finding.expected.as_ref().zip(finding.found.as_ref()) {
                code { (text::fit(expected, 40)) } ", " code { (text::fit(found, 40)) } } }
            td { (cost(finding.damage)) }
        }
    }
}

/// Quotes an argument for a shell, if it needs it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+,".contains(c);
    match !argument.is_empty() && argument.chars().all(plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

/// Labels that hint at a mistake.
struct Suspicious {
    single: Vec<i64>,
    outside: Vec<(i64, u64)>,
    empty: u64,
}

fn suspicious(view: &SplitView, labels: &BTreeMap<i64, u64>) -> Suspicious {
    let manifest = view.split.manifest();
    let classes = manifest.classes.len() as i64;
    let class = |label: &i64| label.checked_sub(manifest.label_offset);
    let inside = |label: &i64| class(label).is_some_and(|class| class >= 0 && (classes == 0 || class < classes));
    Suspicious {
        single: labels.iter().filter(|(_, count)| **count == 1).map(|(label, _)| *label).collect(),
        outside: labels.iter().filter(|(label, _)| !inside(label)).map(|(label, count)| (*label, *count)).collect(),
        empty: (classes as u64).saturating_sub(labels.keys().filter(|label| inside(label)).count() as u64),
    }
}

/// Renders what hints at wrong labels.
pub(crate) fn labels(app: &App) -> Markup {
    let listed = |view: &Arc<SplitView>| {
        let (column, labels) = view.label_column().zip(view.labels())?;
        Some((view.clone(), column.name.clone(), suspicious(view, labels)))
    };
    let splits: Vec<_> = app.splits.iter().filter_map(listed).collect();
    html! {
        @if !splits.is_empty() {
            section.card {
                h2 { "Labels" }
                @for (view, column, found) in &splits {
                    @let link = |label: &i64| view.link(vec![format!("{column}={label}")]);
                    h3 { (text::printable_text(view.split.name())) }
                    @if found.single.is_empty() && found.outside.is_empty() && found.empty == 0 {
                        p { "Every class has at least two samples, and every label has a class." }
                    }
                    @if !found.outside.is_empty() {
                        p.bad-text { "Labels outside the classes: "
                            @for (i, (label, count)) in found.outside.iter().take(LISTED).enumerate() {
                                @if i > 0 { ", " } a href=[link(label)] { (label) } " (" (text::plural(*count, "record")) ")" } }
                    }
                    @if !found.single.is_empty() {
                        p { "Classes with one sample: "
                            @for (i, label) in found.single.iter().take(LISTED).enumerate() {
                                @if i > 0 { ", " } a href=[link(label)] { (view.class_name(*label)) } } }
                    }
                    @if found.empty > 0 { p { (text::plural_irregular(found.empty, "class", "classes")) " without samples" } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted() {
        assert_eq!(quoted("/data/imagenet"), "/data/imagenet");
        assert_eq!(quoted("/my data/it's $HOME"), r"'/my data/it'\''s $HOME'");
    }
}
