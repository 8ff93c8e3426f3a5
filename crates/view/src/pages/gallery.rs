//! The gallery: thumbnails, filters, classes.

use super::{Place, frame};
use crate::app::{App, SplitView};
use crate::columns::{Column, Values};
use crate::query::{Query, segment};
use crate::selection::Part;
use crate::text;
use axum::http::StatusCode;
use maud::{Markup, html};
use shardtool_format::manifest::DType;
use shardtool_format::{index, names};
use std::sync::Arc;

/// Records on a page without the script, and cells of one request of the script at most.
pub(crate) const PAGE: usize = 60;
pub(crate) const MAX_CELLS: usize = 240;
/// Number of classes that are listed next to the gallery.
const CLASSES: usize = 300;

/// Renders the gallery of a split from a position on.
pub(crate) fn page(app: &App, view: &Arc<SplitView>, query: &Query, start: u64) -> (StatusCode, Markup) {
    let name = view.split.name();
    let selected = cells(view, query, start, PAGE);
    let (status, results) = match &selected {
        Ok((part, cells)) => (StatusCode::OK, results(view, query, start, part, cells)),
        Err(problem) => (StatusCode::BAD_REQUEST, html! { p.note.bad role="alert" { (problem) } }),
    };
    let content = html! {
        h1.hidden { "Gallery of " (text::printable_text(name)) }
        div.gallery-page {
            (sidebar(view, query))
            div.results { (toolbar(view, query)) (results) }
        }
    };
    (status, frame(app, name, Place::Split(name, "gallery"), &content))
}

/// Renders `count` cells of a selection.
///
/// # Errors
/// A message for the user, if the query does not fit the split.
pub(crate) fn cells(view: &Arc<SplitView>, query: &Query, start: u64, count: usize) -> Result<(Part, Markup), String> {
    let part = view.selections.select(&view.split, view.columns(), query)?.part(start, count);
    let cells = html! {
        @for (position, id) in (start..).zip(&part.ids) { (cell(view, query, position, *id)) }
    };
    Ok((part, cells))
}

/// What a cell says of a record, from the index alone.
struct Caption {
    key: String,
    class: Option<String>,
    sorted_by: Option<String>,
}

fn caption(view: &SplitView, query: &Query, id: u64) -> shardtool_read::Result<Caption> {
    let (number, row) = view.split.locate(id)?;
    let shard = view.split.shard(number)?;
    let key = text::printable(&shard.key(row)?);
    let value = |column: &Column| Ok::<_, shardtool_read::Error>(Values::of(&shard, column)?.get(row));
    let class = match view.label_column() {
        Some(column) => match value(column)? {
            Some(crate::columns::Cell::Int(label)) => Some(view.class_name(label)),
            _ => None,
        },
        None => None,
    };
    let sorted = view.columns().iter().find(|column| column.name == query.sort && column.name != index::KEY);
    let sorted_by = match sorted {
        Some(column) => Some(value(column)?.map_or("–".to_owned(), |cell| text::fit(&cell.text(), 40))),
        None => None,
    };
    shard.check_index_readable()?;
    Ok(Caption { key, class, sorted_by })
}

fn cell(view: &SplitView, query: &Query, position: u64, id: u64) -> Markup {
    let base = format!("/{}", segment(view.split.name()));
    let url = query.url(&format!("{base}/record/{id}"), &[("at", position.to_string())]);
    let (caption, problem) = match caption(view, query, id) {
        Ok(caption) => (caption, None),
        Err(error) => (Caption { key: format!("record {id}"), class: None, sorted_by: None }, Some(error.to_string())),
    };
    let file = caption.key.rsplit('/').next().unwrap_or_default().to_owned();
    let label = match &caption.class {
        Some(class) => format!("{}, class {class}", caption.key),
        None => caption.key.clone(),
    };
    let version = view.split.entry().fingerprint();
    html! {
        li.cell {
            a href=(url) title=(problem.as_deref().unwrap_or(&caption.key)) {
                span.picture {
                    img src=(format!("{base}/thumb/{id}?v={version:08x}")) alt=(label) loading="lazy" decoding="async";
                }
                span.name { (file) }
                @if let Some(class) = &caption.class { span.class { (class) } }
                @if let Some(value) = &caption.sorted_by { span.value { (value) } }
            }
        }
    }
}

fn results(view: &SplitView, query: &Query, start: u64, part: &Part, cells: &Markup) -> Markup {
    let base = format!("/{}", segment(view.split.name()));
    let page = PAGE as u64;
    let at =
        |start: u64| query.url(&base, if start == 0 { vec![] } else { vec![("start", start.to_string())] }.as_slice());
    let last = part.len.saturating_sub(1) / page * page;
    let noun = if query.is_all() { "record" } else { "match" };
    let counted = text::plural_irregular(part.len, noun, if query.is_all() { "records" } else { "matches" });
    html! {
        div.summary {
            p.total id="total" role="status" {
                (counted)
                @if let Some(searched) = part.searching {
                    " so far; " (text::percent(searched, view.split.len())) " searched"
                } @else if !query.is_all() {
                    span.count { " of " (text::count(view.split.len())) }
                }
            }
            p.position id="position" {
                @if !part.ids.is_empty() {
                    (text::count(start + 1)) " – " (text::count(start + part.ids.len() as u64))
                }
            }
        }
        @if let Some(problem) = &part.problem { p.note.bad role="alert" { (problem) } }
        @if part.ids.is_empty() && part.searching.is_none() {
            p.empty {
                @if part.len > 0 { "No records from this position on. " a href=(at(0)) { "Go to the first" } }
                @else if query.is_all() { "This split has no records." }
                @else { "No record matches. " a href=(base) { "Show all records" } }
            }
        }
        div.viewport id="viewport" data-cells=(query.url(&format!("{base}/cells"), &[])) data-total=(part.len)
            data-start=(start) data-searching=[part.searching] {
            ol.grid id="grid" { (cells) }
        }
        nav.pager id="pager" aria-label="Pages of records" {
            @if start > 0 {
                a href=(at(0)) { "First" }
                a href=(at(start.saturating_sub(page))) rel="prev" { "Previous" }
            }
            @if start + page < part.len || part.searching.is_some() {
                a href=(at(start + page)) rel="next" { "Next" }
            }
            @if start + page < part.len { a href=(at(last)) { "Last" } }
        }
    }
}

/// The state of a query as hidden fields of a form, without those that the form sets itself.
fn hidden(query: &Query, without: &[&str]) -> Markup {
    html! {
        @for (name, value) in query.pairs().into_iter().filter(|(name, _)| !without.contains(name)) {
            input type="hidden" name=(name) value=(value);
        }
    }
}

fn toolbar(view: &SplitView, query: &Query) -> Markup {
    let base = format!("/{}", segment(view.split.name()));
    let sortable: Vec<_> = view.columns().iter().filter(|column| column.indexed).collect();
    html! {
        div.toolbar {
            form.search role="search" action=(base) method="get" {
                (hidden(query, &["q"]))
                label.hidden for="q" { "Search in keys, classes and text" }
                input id="q" type="search" name="q" value=(query.search) placeholder="Search keys and text" autocomplete="off";
                button type="submit" { "Search" }
            }
            @if !sortable.is_empty() {
                form.sort action=(base) method="get" {
                    (hidden(query, &["sort"]))
                    label for="sort" { "Sort" }
                    select id="sort" name="sort" data-submit {
                        option value="" selected[query.sort.is_empty()] { "As packed" }
                        @for column in &sortable {
                            @for (descending, arrow, sign) in [(false, "↑", ""), (true, "↓", "-")] {
                                option value={ (sign) (column.name) }
                                    selected[column.name == query.sort && descending == query.descending] {
                                    (short(&column.name)) " " (arrow)
                                }
                            }
                        }
                    }
                    button.nojs type="submit" { "Sort" }
                }
                details.filter {
                    summary { "Filter" }
                    form action={ (base) "/go" } method="get" {
                        (hidden(query, &[]))
                        label { "Column" select name="column" {
                            @for column in &sortable { option value=(column.name) { (short(&column.name)) } }
                        } }
                        label { "Condition" select name="operator" {
                            @for (sign, words) in [("=", "is"), ("!=", "is not"), (">=", "at least"), ("<=", "at most"),
                                (">", "more than"), ("<", "less than"), ("~", "contains")] {
                                option value=(sign) { (words) }
                            }
                        } }
                        label { "Value" input type="text" name="value" autocomplete="off"; }
                        button type="submit" { "Add filter" }
                    }
                }
            }
            form.jump action={ (base) "/go" } method="get" {
                (hidden(query, &[]))
                label for="position-input" { "Go to" }
                input id="position-input" type="number" name="position" min="0" max=(view.split.len().saturating_sub(1))
                    placeholder="position" inputmode="numeric";
                button type="submit" { "Go" }
            }
        }
        @if !query.filters.is_empty() || !query.search.is_empty() {
            ul.chips aria-label="Filters" {
                @for filter in &query.filters {
                    @let url = query.without_filter(filter).url(&base, &[]);
                    li { a.chip href=(url) title="Remove this filter" { (shown_filter(view, filter)) span aria-hidden="true" { " ×" } } }
                }
                @if !query.search.is_empty() {
                    @let url = Query { search: String::new(), ..query.clone() }.url(&base, &[]);
                    li { a.chip href=(url) title="Remove the search" { "“" (query.search) "”" span aria-hidden="true" { " ×" } } }
                }
                li { a.clear href=(base) { "Clear all" } }
            }
        }
    }
}

/// Returns a feature's name without the folder that most have.
pub(crate) fn short(name: &str) -> String {
    let name = match name {
        index::IMAGE_LENGTH => "bytes",
        names::CLASS_LABEL => "class",
        name => name.strip_prefix("image/").unwrap_or(name),
    };
    text::printable_text(name).into_owned()
}

/// Returns a filter as people read it: with the name of a class in place of its number.
fn shown_filter(view: &SplitView, filter: &str) -> String {
    if let Some(label) = view.label_column()
        && let Some(value) = filter.strip_prefix(label.name.as_str()).and_then(|rest| rest.strip_prefix('='))
        && let Ok(number) = value.parse()
    {
        return format!("class {}", view.class_name(number));
    }
    text::printable_text(filter.strip_prefix("image/").unwrap_or(filter)).into_owned()
}

fn sidebar(view: &SplitView, query: &Query) -> Markup {
    let base = format!("/{}", segment(view.split.name()));
    let Some((column, labels)) = view.label_column().zip(view.labels()) else { return html! {} };
    let is_text = column.dtype == DType::Bytes;
    if labels.is_empty() || is_text {
        return html! {};
    }
    let most = labels.values().copied().max().unwrap_or(1);
    html! {
        aside.classes aria-label="Classes" {
            details open {
                summary { "Classes " span.count { (text::count(labels.len() as u64)) } }
                ul {
                    @for (label, count) in labels.iter().take(CLASSES) {
                        @let filter = format!("{}={label}", column.name);
                        @let chosen = query.filters.contains(&filter);
                        @let next = query.without_prefix(&format!("{}=", column.name));
                        @let next = if chosen { next } else { next.with_filter(filter) };
                        li {
                            a href=(next.url(&base, &[])) aria-current=[chosen.then_some("true")] {
                                span.label { (view.class_name(*label)) }
                                span.count { (text::count(*count)) }
                                (super::bar(*count, most))
                            }
                        }
                    }
                }
                @if labels.len() > CLASSES {
                    p.more { "The first " (CLASSES) "; " a href={ (base) "/columns" } { "all counts" } }
                }
            }
        }
    }
}
