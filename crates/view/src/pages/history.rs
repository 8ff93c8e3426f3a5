//! The history: the versions of a dataset, and two of them side by side.

use super::{Place, frame};
use crate::app::{App, SplitView};
use crate::comparison::{Changed, Comparison, Keyed, compare, text_of};
use crate::query::segment;
use crate::text;
use crate::versions::Version;
use maud::{Markup, html};
use shardtool_format::Chain;
use shardtool_format::manifest::{FeatureType, Manifest};
use shardtool_read::{LoggedSplit, LoggedVersion};
use std::collections::BTreeSet;

/// Versions that are listed, the newest ones.
const LISTED: usize = 200;

/// Renders the versions, and what differs between two of them, by their numbers.
pub(crate) fn page(app: &App, compared: Option<(u64, u64)>) -> Markup {
    let content = html! {
        div.wide {
            h1 { "History" }
            p.lead { "This page shows version " (app.dataset.version()) ". Another one: "
                code { "shardtool view DATASET@NUMBER" } }
            @match app.dataset.log() {
                Ok(versions) => {
                    (list(app, &versions))
                    @if let Some(numbers) = compared { (comparison(app, numbers)) }
                }
                Err(error) => p.note.bad { (text::printable_text(&Chain(&error).to_string())) },
            }
        }
    };
    frame(app, "History", Place::History, &content)
}

fn list(app: &App, versions: &[LoggedVersion]) -> Markup {
    html! {
        section.card {
            h2 { (text::plural(versions.len() as u64, "version")) }
            div.scroll tabindex="0" role="region" aria-label="Versions" {
                table {
                    thead { tr { th { "Version" } th { "Change" } th { "Splits" } th { "Checksum" } th { "Compare" } } }
                    tbody { @for (version, before) in versions.iter().zip(before(versions)).take(LISTED) {
                        (row(app, version, before))
                    } }
                }
            }
            @if versions.len() > LISTED {
                p.quiet { "and " (text::count((versions.len() - LISTED) as u64)) " more: " code { "shardtool log" } " lists them" }
            }
        }
    }
}

/// Returns for each version the kept one before it.
fn before(versions: &[LoggedVersion]) -> impl Iterator<Item = Option<&LoggedVersion>> {
    (1..=versions.len()).map(|next| versions.get(next))
}

fn row(app: &App, version: &LoggedVersion, before: Option<&LoggedVersion>) -> Markup {
    let words = |text: &Option<String>| text.as_deref().map(|text| text::printable_text(text).into_owned());
    html! {
        tr aria-current=[(version.number == app.dataset.version()).then_some("true")] {
            td { (version.number) @for tag in &version.tags { " " span.tag { (text::printable_text(tag)) } } }
            td {
                (words(&version.command).unwrap_or_else(|| "first version".to_owned()))
                @if version.purged { span.quiet { " (purged since)" } }
                @if let Some(author) = words(&version.author) { span.quiet { " by " (author) } }
                @if let Some(message) = words(&version.message) { br; span.quiet { (message) } }
            }
            td { @for (n, split) in version.splits.iter().enumerate() { @if n > 0 { br; } (size(split, before)) } }
            td { code { (format!("{:08x}", version.checksum)) } }
            td { @if let Some(before) = before {
                a href=(format!("/-/history?from={}&to={}", before.number, version.number)) { "with " (before.number) }
            } }
        }
    }
}

/// Renders the records of a split, and how many more or fewer they are than before.
fn size(split: &LoggedSplit, before: Option<&LoggedVersion>) -> Markup {
    let records = before.and_then(|before| before.splits.iter().find(|other| other.name == split.name));
    let change = records.map(|before| i128::from(split.records) - i128::from(before.records)).filter(|n| *n != 0);
    html! {
        (text::printable_text(&split.name)) " " (text::plural(split.records, "record"))
        @if let Some(change) = change {
            " (" (if change > 0 { "+" } else { "−" }) (text::count(change.unsigned_abs() as u64)) ")"
        }
    }
}

fn comparison(app: &App, (from, to): (u64, u64)) -> Markup {
    let opened = (app.versions.open(&app.dataset, from), app.versions.open(&app.dataset, to));
    let (a, b) = match opened {
        (Ok(a), Ok(b)) => (a, b),
        (Err(error), _) | (_, Err(error)) => {
            return html! { p.note.bad role="alert" { (text::printable_text(&Chain(&error).to_string())) } };
        }
    };
    let names = |version: &Version| version.splits.iter().map(|view| view.split.name().to_owned()).collect::<Vec<_>>();
    let all: BTreeSet<String> = names(&a).into_iter().chain(names(&b)).collect();
    html! {
        section.card id="comparison" {
            h2 { "Version " (from) " and version " (to) }
            (conventions(a.dataset.manifest(), b.dataset.manifest()))
            @for name in &all {
                h3 { "Split " (text::printable_text(name)) }
                @match (a.split(name), b.split(name)) {
                    (Some(one), Some(other)) => (splits(app, [(from, one), (to, other)])),
                    (Some(_), None) => p { "Only version " (from) " has it." },
                    _ => p { "Only version " (to) " has it." },
                }
            }
        }
    }
}

/// Renders the features, classes and views that differ.
fn conventions(a: &Manifest, b: &Manifest) -> Markup {
    let only = |of: &Manifest, other: &Manifest| {
        let there = |feature: &&FeatureType| !other.features.contains(feature);
        of.features.iter().filter(there).map(|feature| format!("{} ({})", feature.name, feature.dtype.name())).collect()
    };
    let views = |of: &Manifest, other: &Manifest| {
        let there = |name: &&String| other.views().iter().all(|view| view.name != **name);
        of.views().iter().map(|view| &view.name).filter(there).cloned().collect()
    };
    let classes = |of: &Manifest, other: &Manifest| {
        of.classes.iter().filter(|class| !other.classes.contains(class)).cloned().collect()
    };
    let rows: [(&str, Vec<String>); 6] = [
        ("Features added", only(b, a)),
        ("Features dropped", only(a, b)),
        ("Classes added", classes(b, a)),
        ("Classes gone", classes(a, b)),
        ("Views added", views(b, a)),
        ("Views gone", views(a, b)),
    ];
    html! {
        @if rows.iter().any(|(_, names)| !names.is_empty()) {
            dl.features {
                @for (what, names) in rows.iter().filter(|(_, names)| !names.is_empty()) {
                    dt { (what) }
                    dd { (text::fit(&text::printable_text(&names.join(", ")), 400)) }
                }
            }
        }
    }
}

/// A split of a version, after the version's number.
type Of<'v> = (u64, &'v SplitView);

fn splits(app: &App, [a, b]: [Of<'_>; 2]) -> Markup {
    let found = match compare(&a.1.split, &b.1.split) {
        Ok(found) => found,
        Err(problem) => return html! { p.note { (text::printable_text(&Chain(&problem).to_string())) } },
    };
    let Comparison { removed, added, changed, matched, compared } = &found;
    html! {
        p {
            (text::count(removed.1)) " removed, " (text::count(added.1)) " added, " (text::count(changed.1)) " changed of "
            (text::plural(*matched, "record")) " of both"
            @if compared < matched { " (the first " (text::count(*compared)) " were compared: " code { "shardtool diff" } " compares all)" }
            "."
        }
        (records("Removed", a, removed))
        (records("Added", b, added))
        @if changed.1 > 0 {
            h4 { "Changed" }
            div.scroll tabindex="0" role="region" aria-label="Changed records" {
                table {
                    thead { tr { th { "Record" } th { "Feature" } th { "Version " (a.0) } th { "Version " (b.0) } } }
                    tbody { @for record in &changed.0 { (change(app, record, a, b)) } }
                }
            }
            @if changed.1 > changed.0.len() as u64 { p.quiet { "and " (text::count(changed.1 - changed.0.len() as u64)) " more" } }
        }
    }
}

fn records(title: &str, of: Of<'_>, (first, count): &(Vec<Keyed>, u64)) -> Markup {
    html! {
        @if *count > 0 {
            h4 { (title) }
            ul.groups { li {
                @for record in first { (listed(of, record.id, &record.key)) }
                @if *count > first.len() as u64 { span.quiet { "and " (text::count(count - first.len() as u64)) " more" } }
            } }
        }
    }
}

/// Renders a record of a list: its picture, or its key if its split has no images.
fn listed(of: Of<'_>, id: u64, key: &[u8]) -> Markup {
    let key = text::printable(key);
    match of.1.split.manifest().has_images() {
        true => html! { img src=(thumbnail(of, id)) alt=(key) title=(key) loading="lazy"; },
        false => html! { span { (text::fit(&key, 40)) } },
    }
}

fn thumbnail((version, view): Of<'_>, id: u64) -> String {
    format!("/-/version/{version}/{}/thumb/{id}", segment(view.split.name()))
}

fn change(app: &App, record: &Changed, a: Of<'_>, b: Of<'_>) -> Markup {
    let [old, new] = [(a, record.ids[0]), (b, record.ids[1])].map(|((_, view), id)| values(view, id, record));
    let newest = b.0 == app.dataset.version();
    let key = text::fit(&text::printable(&record.key), 60);
    html! {
        @for (n, name) in record.features.iter().enumerate() {
            tr {
                @if n == 0 {
                    td rowspan=(record.features.len()) {
                        // The key that follows says what it shows.
                        @if b.1.split.manifest().has_images() { img src=(thumbnail(b, record.ids[1])) alt="" loading="lazy"; }
                        @if newest { a href=(format!("/{}/record/{}", segment(b.1.split.name()), record.ids[1])) { (key) } }
                        @else { (key) }
                    }
                }
                td { (text::printable_text(name)) }
                @for side in [&old, &new] { td { (side.get(n).map_or("", String::as_str)) } }
            }
        }
    }
}

/// Returns the values of the features that changed, as text.
fn values(view: &SplitView, id: u64, record: &Changed) -> Vec<String> {
    let manifest = view.split.manifest();
    let Ok(read) = view.split.get(id) else { return vec![] };
    let Ok(example) = read.example() else { return vec![] };
    let text = |name: &String| {
        let class = |n| (manifest.label.as_ref() == Some(name)).then(|| format!("{} ({n})", view.class_name(n)));
        text_of(&example, (name, manifest.dtype(name)), class)
    };
    record.features.iter().map(text).collect()
}
