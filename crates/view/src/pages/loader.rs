//! Loader: a trial of a configuration, with its rate, queue and memory over time, and the same loader in Python.

use super::{Place, frame};
use crate::app::{App, SplitView};
use crate::query::segment;
use crate::text;
use crate::trial::{MAX_SECONDS, MAX_STEP, Ordering, Point, Settings, State, Work};
use maud::{Markup, html};
use shardtool_load::Stats;
use std::sync::Arc;

/// Size of a curve in units of its drawing.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 80.0;

/// Renders the page of a split. `busy`: a trial could not be started, since something else runs.
pub(crate) fn page(app: &App, view: &Arc<SplitView>, settings: &Settings, busy: bool) -> Markup {
    let name = view.split.name();
    let base = format!("/{}/loader", segment(name));
    let python = settings.python(&view.split, &app.dataset.path().display().to_string());
    let content = html! {
        div.wide {
            h1 { "Loader" }
            p.lead { "Takes batches for some seconds, as a training loop does, and shows what bounds the rate on this machine." }
            @if busy && app.turns.is_taken() { p.note role="alert" { (super::BUSY) } }
            section.card.trainer { (form(app, view, settings, &base)) }
            div id="trial" data-part={ (base) "/part" } { (part(app, view)) }
            section.card {
                h2 { "The same in Python" }
                pre.hex tabindex="0" role="region" aria-label="Python" { code { (python) } }
                p { button type="button" data-copy=(python) hidden { "Copy" } }
            }
        }
    };
    frame(app, "Loader", Place::Split(name, "loader"), &content)
}

fn form(app: &App, view: &Arc<SplitView>, settings: &Settings, base: &str) -> Markup {
    let images = view.split.manifest().has_images();
    let number = |label: &str, name: &str, value: Option<u64>, least: u64, most: Option<u64>, empty: &str| {
        html! { label { (label) input type="number" name=(name) min=(least) max=[most] value=[value] placeholder=(empty); } }
    };
    html! {
        form action=(base) method="post" {
            input type="hidden" name="token" value=(app.guarded.token());
            label { "Work" select name="work" {
                @for (work, stable, words) in Work::ALL {
                    @if images || work == Work::Read {
                        option value=(stable) selected[work == settings.work] { (words) }
                    }
                }
            } }
            @if images { (number("Size", "size", Some(settings.size.into()), 1, Some(4096), "")) }
            (number("Batch", "batch", Some(settings.batch.into()), 1, None, ""))
            label { "Order" select name="order" {
                @for (order, stable, words) in Ordering::ALL {
                    option value=(stable) selected[order == settings.order] { (words) }
                }
            } }
            label { "Schedule" input type="text" name="schedule" value=(settings.schedule) placeholder="0: 9,1; 3: 1,1"; }
            label { "Shares of" select name="members" {
                option value="split" selected[!settings.by_class] { "the split" }
                option value="classes" selected[settings.by_class] { "its classes" }
            } }
            (number("Workers", "workers", settings.workers.map(|n| n as u64), 1, Some(1024), "default"))
            (number("Prefetch", "prefetch", settings.prefetch.map(|n| n as u64), 1, Some(1024), "default"))
            (number("Budget, MiB", "budget", settings.budget, 1, None, "default"))
            (number("Your step, ms", "step", Some(settings.step.into()), 0, Some(MAX_STEP.into()), ""))
            (number("Seconds", "seconds", Some(settings.seconds.into()), 1, Some(MAX_SECONDS.into()), ""))
            button.main type="submit" { "Run" }
        }
    }
}

/// Renders what changes while a trial runs: nothing, if the last one was of another split.
pub(crate) fn part(app: &App, view: &Arc<SplitView>) -> Markup {
    let Some(state) = app.trial.state().filter(|state| state.split == view.split.name()) else { return html! {} };
    html! {
        div data-running=[state.running.then_some("true")] {
            (progress(app, &state))
            @if let Some(problem) = &state.problem { p.note.bad role="alert" { (text::printable_text(problem)) } }
            @if let Some(stats) = &state.stats { (figures(&state, stats)) }
        }
    }
}

fn progress(app: &App, state: &State) -> Markup {
    let passed = state.points.last().map_or(0.0, |point| point.at);
    html! {
        div.progress role="status" {
            @if state.running {
                p { "Running: " (format!("{passed:.0} of {} s", state.settings.seconds)) }
                progress max=(state.settings.seconds) value=(format!("{passed:.1}")) aria-label="Time of the trial" {}
                form action="/-/cancel" method="post" {
                    input type="hidden" name="token" value=(app.guarded.token());
                    input type="hidden" name="split" value=(state.split);
                    button type="submit" { "Cancel" }
                }
                p.nojs { a href={ "/" (segment(&state.split)) "/loader" } { "Reload" } }
            } @else {
                p { @if state.cancelled { "Cancelled" } @else { "Ended" } " after " (format!("{passed:.1} s")) "." }
            }
        }
    }
}

fn figures(state: &State, stats: &Stats) -> Markup {
    let stages = stats.stages();
    let most = stages.iter().map(|(_, stage)| stage.time.as_micros() as u64).max().unwrap_or(0);
    let budget = stats.memory.budget;
    html! {
        section.card {
            p.verdict { (stats.bottleneck()) }
            div.curves {
                (curve(&state.points, |point| point.rate, None, &format!("{} a second", stats.unit), |rate| text::count(rate as u64)))
                (curve(&state.points, |point| point.ready as f64, Some(stats.prefetch as f64),
                    &format!("batches ready, of {} built ahead", stats.prefetch), text::number))
                (curve(&state.points, |point| point.memory as f64, Some(budget as f64),
                    &format!("memory, of a budget of {}", text::bytes(budget)), |memory| text::bytes(memory as u64)))
            }
            p.quiet {
                @if let Some(first) = state.first_batch { (format!("first batch after {:.2} s; ", first.as_secs_f64())) }
                (stats.workers) " of " (text::plural(stats.max_workers as u64, "worker")) " active; "
                (text::count(stats.samples)) " " (stats.unit)
                @if stats.bad > 0 { "; " span.bad { (text::plural(stats.bad, "bad sample")) } }
            }
        }
        @if !stats.members.is_empty() { (members(stats)) }
        section.card {
            h2 { "Stages" }
            div.scroll tabindex="0" role="region" aria-label="Stages" { table {
                thead { tr { th { "Stage" } th { "Time, summed over threads" } th { "Times" } th { "Share of the longest" } } }
                tbody {
                    @for (name, stage) in stages {
                        tr {
                            td { (name) }
                            td.number { (format!("{:.2} s", stage.time.as_secs_f64())) }
                            td.number { (text::count(stage.count)) }
                            td.wide-cell { (super::bar(stage.time.as_micros() as u64, most)) }
                        }
                    }
                }
            } }
        }
    }
}

/// Renders what each member of a schedule has had.
fn members(stats: &Stats) -> Markup {
    html! {
        section.card {
            h2 { "Members of the schedule" }
            div.scroll tabindex="0" role="region" aria-label="Members of the schedule" { table {
                thead { tr { th { "Member" } th { "Samples" } th { "Since the start" } th { "Share in this stage" } } }
                tbody {
                    @for member in &stats.members {
                        tr {
                            td { (text::printable_text(&member.name)) }
                            td.number { (text::count(member.len)) }
                            td.number { (text::count(member.samples)) }
                            td.wide-cell { (super::bar((member.share * 1e6) as u64, 1_000_000)) (format!(" {:.1} %", 100.0 * member.share)) }
                        }
                    }
                }
            } }
        }
    }
}

/// Renders values over time, with a line at `limit`; `shown` formats a value.
fn curve(
    points: &[Point],
    value: impl Fn(&Point) -> f64,
    limit: Option<f64>,
    caption: &str,
    shown: impl Fn(f64) -> String,
) -> Markup {
    let last = points.last().map_or(0.0, &value);
    let most = points.iter().map(&value).chain(limit).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let end = points.last().map_or(1.0, |point| point.at).max(f64::MIN_POSITIVE);
    let height = |value: f64| HEIGHT - 4.0 - (HEIGHT - 8.0) * value / most;
    let line: Vec<_> =
        points.iter().map(|point| format!("{:.1},{:.1}", WIDTH * point.at / end, height(value(point)))).collect();
    html! {
        figure.curve {
            figcaption { b { (shown(last)) } " " (caption) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img"
                aria-label=(format!("{caption}: now {}, at most {}", shown(last), shown(points.iter().map(&value).fold(0.0, f64::max)))) {
                rect.ground width=(WIDTH) height=(HEIGHT) {}
                @if let Some(limit) = limit {
                    line.limit x1="0" x2=(WIDTH) y1=(format!("{:.1}", height(limit))) y2=(format!("{:.1}", height(limit))) {}
                }
                polyline.line points=(line.join(" ")) {}
            }
        }
    }
}
