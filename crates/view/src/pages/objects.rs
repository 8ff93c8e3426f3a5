//! Counts of objects as cards of a report.

use super::bar;
use crate::app::SplitView;
use crate::objects::{Examined, Table};
use crate::text;
use maud::{Markup, html};

/// Renders what was counted, and boxes that cannot be right.
pub(crate) fn notes(objects: &Examined) -> Markup {
    let problems = objects.problems();
    html! {
        @for sentence in objects.sentences() { p.note { (sentence) } }
        @if !problems.is_empty() {
            section.card {
                h2 { "Boxes to look at" }
                @for (found, keys) in &problems {
                    p { span.bad-text { (found) } ", first in" @for key in keys { " " code { (key) } } }
                }
            }
        }
    }
}

/// Renders each table.
pub(crate) fn cards(view: &SplitView, objects: &Examined) -> Markup {
    html! { @for table in objects.tables(|label| view.class_name(label)) { (card(&table)) } }
}

fn card(table: &Table) -> Markup {
    let most = table.rows.iter().map(|row| row.count).max().unwrap_or(1);
    html! {
        section.card {
            h2 { (table.title) }
            p.type { span { (table.unit) } }
            ul.values {
                @for row in &table.rows {
                    li { div.row {
                        span.label { (row.name) }
                        span.count { (text::count(row.count)) " · " (row.further) }
                        (bar(row.count, most))
                    } }
                }
            }
            @if let Some(more) = &table.more { p.quiet { (more) } }
        }
    }
}
