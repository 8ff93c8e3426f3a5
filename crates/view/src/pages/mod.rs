//! HTML of the pages, and the frame around them.

pub(crate) mod columns;
pub(crate) mod gallery;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod loader;
pub(crate) mod objects;
pub(crate) mod record;

use crate::app::App;
use crate::query::segment;
use crate::text;
use maud::{DOCTYPE, Markup, html};

/// The page that is shown, for the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'s> {
    /// A page of a split: its name, and that of the page.
    Split(&'s str, &'static str),
    Health,
    History,
}

/// Why something was not started.
pub(crate) const BUSY: &str = "A check or a trial of the loader is running: wait for its end, or cancel it.";

/// Renders a page: header, navigation, `content`.
pub(crate) fn frame(app: &App, title: &str, place: Place<'_>, content: &Markup) -> Markup {
    let current = match place {
        Place::Split(split, _) => split,
        Place::Health | Place::History => app.splits[app.first].split.name(),
    };
    let page = match place {
        Place::Split(_, page) => page,
        Place::Health => "health",
        Place::History => "history",
    };
    let base = format!("/{}", segment(current));
    let tab = |name: &str, label: &str, url: String| {
        html! { a.tab href=(url) aria-current=[(page == name).then_some("page")] { (label) } }
    };
    let header = html! {
        header.top {
            a.brand href="/" {
                svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" {
                    rect.a x="1" y="1" width="8" height="8" rx="2" {}
                    rect.b x="11" y="1" width="8" height="8" rx="2" {}
                    rect.b x="1" y="11" width="8" height="8" rx="2" {}
                    rect.c x="11" y="11" width="8" height="8" rx="2" {}
                }
                span.dataset title=(app.dataset.path().display()) { (app.name()) }
            }
            @if app.splits.len() > 1 {
                nav.splits aria-label="Splits" {
                    @for view in &app.splits {
                        @let name = view.split.name();
                        a.split href={ "/" (segment(name)) @if matches!(page, "columns" | "loader") { "/" (page) } }
                            aria-current=[(matches!(place, Place::Split(..)) && name == current).then_some("true")] {
                            (text::printable_text(name)) " " span.count { (text::count(view.split.len())) }
                        }
                    }
                }
            } @else {
                span.only { (text::printable_text(current)) " " span.count { (text::plural(app.splits[0].split.len(), "record")) } }
            }
            nav.tabs aria-label="Pages" {
                (tab("gallery", "Gallery", base.clone()))
                (tab("columns", "Columns", format!("{base}/columns")))
                (tab("health", "Health", "/-/health".to_owned()))
                (tab("loader", "Loader", format!("{base}/loader")))
                @if app.dataset.manifest().versions.is_some() { (tab("history", "History", "/-/history".to_owned())) }
            }
        }
    };
    document(title, &html! { (header) main id="main" tabindex="-1" { (content) } })
}

/// Renders a page without a dataset around it.
pub(crate) fn problem(title: &str, what: &str) -> Markup {
    document(
        title,
        &html! { main.problem id="main" { h1 { (title) } p { (what) } p { a href="/" { "Back to the dataset" } } } },
    )
}

fn document(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · shardtool" }
                link rel="icon" href="/-/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/-/view.css";
                script src="/-/view.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (body)
            }
        }
    }
}

/// Renders a placeholder picture that says what went wrong.
pub(crate) fn placeholder(problem: &str) -> Markup {
    let words: Vec<_> = problem.split_whitespace().collect();
    let mut lines = vec![String::new()];
    for word in words {
        let last = lines.last_mut().expect("one line at least");
        if last.chars().count() + word.chars().count() > 30 && !last.is_empty() {
            lines.push(word.to_owned());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width="240" height="180" viewBox="0 0 240 180" role="img" {
            title { (problem) }
            rect width="240" height="180" fill="#8882" {}
            path d="M104 40 h32 v24 h-32 z M104 64 l10 -10 8 8 6 -6 8 8" fill="none" stroke="#999" stroke-width="2" {}
            @for (i, line) in lines.iter().take(6).enumerate() {
                text x="120" y=(92 + 15 * i) text-anchor="middle" font-family="sans-serif" font-size="11" fill="#999" {
                    (text::fit(line, 40))
                }
            }
        }
    }
}

/// Renders a horizontal bar whose length is the share of `value` in `most`.
pub(crate) fn bar(value: u64, most: u64) -> Markup {
    let width = if value == 0 { 0.0 } else { (100.0 * value as f64 / most.max(1) as f64).max(0.6) };
    html! {
        svg.bar width="100" height="8" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.track width="100" height="8" {}
            rect.fill width=(format!("{width:.1}")) height="8" {}
        }
    }
}
