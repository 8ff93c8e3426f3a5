//! From URLs to pages. Names of splits begin with a letter or a digit, so `/-/…` is free for everything else.

mod pictures;

use crate::app::{App, SplitView};
use crate::check::Kind;
use crate::guard;
use crate::pages::{self, columns, gallery, health, history, loader, record};
use crate::picture;
use crate::query::{self, Query, last, segment};
use crate::trial::Settings;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::Markup;
use shardtool_decode::silence_decoder_panics;
use std::sync::Arc;

/// Largest body of a form, in bytes.
const MAX_FORM: usize = 1 << 12;
/// Largest text of steps in a URL, in bytes.
const MAX_STEPS: usize = 1 << 13;

type Shared = State<Arc<App>>;
type Pairs = Vec<(String, String)>;

/// Returns the routes of all pages.
pub(crate) fn router(app: Arc<App>) -> Router {
    silence_decoder_panics();
    Router::new()
        .route("/", get(first))
        .route("/-/view.css", get(|| asset("text/css; charset=utf-8", include_str!("../../assets/view.css"))))
        .route("/-/view.js", get(|| asset("text/javascript; charset=utf-8", include_str!("../../assets/view.js"))))
        .route("/-/icon.svg", get(|| asset("image/svg+xml", include_str!("../../assets/icon.svg"))))
        .route("/-/health", get(health_page))
        .route("/-/health/part", get(health_part))
        .route("/-/history", get(history_page))
        .route("/-/version/{version}/{split}/thumb/{id}", get(pictures::thumbnail_of_version))
        .route("/-/check", post(start_check))
        .route("/-/cancel", post(cancel))
        .route("/{split}", get(gallery_page))
        .route("/{split}/cells", get(gallery_cells))
        .route("/{split}/go", get(go))
        .route("/{split}/columns", get(columns_page))
        .route("/{split}/loader", get(loader_page).post(start_trial))
        .route("/{split}/loader/part", get(loader_part))
        .route("/{split}/record/{id}", get(record_page))
        .route("/{split}/thumb/{id}", get(pictures::thumbnail))
        .route("/{split}/preview/{id}", get(pictures::preview))
        .route("/{split}/image/{id}", get(pictures::image))
        .route("/{split}/mask/{id}", get(pictures::mask))
        .route("/{split}/values/{id}", get(pictures::values))
        .route("/{split}/drawn/{id}", get(pictures::drawn))
        .fallback(|| async { not_found("no such page") })
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .layer(axum::middleware::from_fn_with_state(app.guarded.clone(), guard::guard))
        .with_state(app)
}

async fn asset(media_type: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}

fn html(status: StatusCode, page: Markup) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

fn not_found(what: &str) -> Response {
    html(StatusCode::NOT_FOUND, pages::problem("Not found", what))
}

fn see_other(url: String) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, url)]).into_response()
}

/// Renders a page of a split on a thread that may wait for disks.
async fn of_split(
    app: Arc<App>,
    split: String,
    page: impl FnOnce(&App, &Arc<SplitView>) -> Response + Send + 'static,
) -> Response {
    let Some(view) = app.split(&split).cloned() else { return not_found("this dataset has no such split") };
    blocking(move || page(&app, &view)).await
}

async fn blocking(page: impl FnOnce() -> Response + Send + 'static) -> Response {
    let rendered = tokio::task::spawn_blocking(page).await;
    let problem = "the page could not be rendered: this is a bug of shardtool";
    rendered.unwrap_or_else(|_| html(StatusCode::INTERNAL_SERVER_ERROR, pages::problem("Internal error", problem)))
}

fn decoded(query: Option<String>) -> Pairs {
    query::pairs(query.as_deref().unwrap_or_default())
}

fn number<T: std::str::FromStr>(pairs: &Pairs, name: &str) -> Option<T> {
    last(pairs, name).and_then(|text| text.trim().parse().ok())
}

async fn first(State(app): Shared) -> Response {
    see_other(format!("/{}", segment(app.splits[app.first].split.name())))
}

async fn gallery_page(State(app): Shared, Path(split): Path<String>, RawQuery(text): RawQuery) -> Response {
    let pairs = decoded(text);
    of_split(app, split, move |app, view| {
        let start = number(&pairs, "start").unwrap_or(0).min(view.split.len());
        let (status, page) = gallery::page(app, view, &Query::of(&pairs), start);
        html(status, page)
    })
    .await
}

/// A part of the gallery for the script: cells without a page around them.
async fn gallery_cells(State(app): Shared, Path(split): Path<String>, RawQuery(text): RawQuery) -> Response {
    let pairs = decoded(text);
    of_split(app, split, move |_, view| {
        let start = number(&pairs, "start").unwrap_or(0).min(view.split.len());
        let count = number(&pairs, "count").unwrap_or(gallery::PAGE);
        match gallery::cells(view, &Query::of(&pairs), start, count.min(gallery::MAX_CELLS)) {
            Ok((part, cells)) => {
                let headers = [
                    ("x-total", part.len.to_string()),
                    ("x-searching", part.searching.map_or(String::new(), |n| n.to_string())),
                ];
                (headers, html(StatusCode::OK, cells)).into_response()
            }
            Err(problem) => (StatusCode::BAD_REQUEST, problem).into_response(),
        }
    })
    .await
}

/// Turns the gallery's forms into the URL of a state: adds a filter, or goes to a record.
async fn go(State(app): Shared, Path(split): Path<String>, RawQuery(text): RawQuery) -> Response {
    let Some(view) = app.split(&split) else { return not_found("this dataset has no such split") };
    let pairs = decoded(text);
    let mut query = Query::of(&pairs);
    if let Some(id) = number::<u64>(&pairs, "record").filter(|id| *id < view.split.len()) {
        return see_other(format!("/{}/record/{id}", segment(&split)));
    }
    if let Some((column, operator)) = last(&pairs, "column").zip(last(&pairs, "operator")) {
        let value = last(&pairs, "value").unwrap_or_default().trim();
        query = query.with_filter(format!("{column}{operator}{value}"));
    }
    let start = last(&pairs, "position").map(|p| ("start", p.to_owned()));
    see_other(query.url(&format!("/{}", segment(&split)), start.as_slice()))
}

async fn columns_page(State(app): Shared, Path(split): Path<String>) -> Response {
    of_split(app, split, |app, view| html(StatusCode::OK, columns::page(app, view))).await
}

async fn record_page(State(app): Shared, Path((split, id)): Path<(String, u64)>, RawQuery(text): RawQuery) -> Response {
    let pairs = decoded(text);
    of_split(app, split, move |app, view| {
        if id >= view.split.len() {
            return not_found("the split has fewer records");
        }
        let draws = draw_options(&pairs);
        html(StatusCode::OK, record::page(app, view, id, &Query::of(&pairs), number(&pairs, "at"), &draws))
    })
    .await
}

fn draw_options(pairs: &Pairs) -> record::DrawOptions {
    let mut options = record::DrawOptions::default();
    options.seed = number(pairs, "seed").unwrap_or(options.seed);
    options.epoch = number(pairs, "epoch").unwrap_or(options.epoch);
    options.size = number(pairs, "size").unwrap_or(options.size).clamp(1, picture::MAX_DRAWN);
    options.eval = last(pairs, "work") == Some("eval");
    options.steps = last(pairs, "steps").filter(|text| text.len() <= MAX_STEPS).map(str::to_owned);
    options
}

async fn health_page(State(app): Shared, RawQuery(text): RawQuery) -> Response {
    let busy = last(&decoded(text), "busy").is_some();
    blocking(move || html(StatusCode::OK, health::page(&app, busy))).await
}

async fn health_part(State(app): Shared) -> Response {
    blocking(move || html(StatusCode::OK, health::part(&app))).await
}

async fn history_page(State(app): Shared, RawQuery(text): RawQuery) -> Response {
    let pairs = decoded(text);
    let compared = number(&pairs, "from").zip(number(&pairs, "to"));
    blocking(move || html(StatusCode::OK, history::page(&app, compared))).await
}

/// Reads a form that changes the state of this server; `None` if it lacks the token of this process.
fn form(app: &App, body: &Bytes) -> Option<Pairs> {
    let pairs = query::pairs(&String::from_utf8_lossy(body));
    last(&pairs, "token").is_some_and(|token| app.guarded.is_token(token)).then_some(pairs)
}

fn forbidden() -> Response {
    (StatusCode::FORBIDDEN, "403: the form lacks the token of this process\n").into_response()
}

async fn start_check(State(app): Shared, body: Bytes) -> Response {
    let Some(pairs) = form(&app, &body) else { return forbidden() };
    let kind = match last(&pairs, "kind") {
        Some("verify") => Kind::Verify,
        Some("decode") => Kind::Decode,
        Some("duplicates") => Kind::Duplicates,
        _ => return (StatusCode::BAD_REQUEST, "400: kind is verify, decode or duplicates\n").into_response(),
    };
    let Some(turn) = app.turns.take() else { return see_other("/-/health?busy=1".to_owned()) };
    app.check.start(turn, app.dataset.clone(), kind);
    see_other("/-/health".to_owned())
}

/// Ends the trial of a split that the form names, else the check.
async fn cancel(State(app): Shared, body: Bytes) -> Response {
    let Some(pairs) = form(&app, &body) else { return forbidden() };
    match last(&pairs, "split") {
        Some(split) => {
            app.trial.cancel();
            see_other(format!("/{}/loader", segment(split)))
        }
        None => {
            app.check.cancel();
            see_other("/-/health".to_owned())
        }
    }
}

async fn loader_page(State(app): Shared, Path(split): Path<String>, RawQuery(text): RawQuery) -> Response {
    let pairs = decoded(text);
    of_split(app, split, move |app, view| {
        let settings = Settings::for_split(&view.split).with(&pairs);
        html(StatusCode::OK, loader::page(app, view, &settings, last(&pairs, "busy").is_some()))
    })
    .await
}

async fn loader_part(State(app): Shared, Path(split): Path<String>) -> Response {
    of_split(app, split, |app, view| html(StatusCode::OK, loader::part(app, view))).await
}

async fn start_trial(State(app): Shared, Path(split): Path<String>, body: Bytes) -> Response {
    let Some(pairs) = form(&app, &body) else { return forbidden() };
    of_split(app, split, move |app, view| {
        let settings = Settings::for_split(&view.split).with(&pairs);
        let mut state = settings.pairs();
        match app.turns.take() {
            Some(turn) => app.trial.start(turn, view.split.clone(), settings),
            None => state.push(("busy", "1".to_owned())),
        }
        see_other(Query::default().url(&format!("/{}/loader", segment(view.split.name())), &state))
    })
    .await
}
