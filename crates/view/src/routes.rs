//! From URLs to pages. Names of splits begin with a letter or a digit, so `/-/…` is free for everything else.

use crate::app::{App, SplitView};
use crate::check::Kind;
use crate::guard;
use crate::pages::{self, columns, gallery, health, record};
use crate::picture::{self, Stored};
use crate::query::{self, Query, last, segment};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::Markup;
use shardtool_decode::silence_decoder_panics;
use shardtool_load::{Images, SampleDraws};
use shardtool_read::Record;
use std::sync::Arc;
use std::time::Duration;

/// How long a picture may take. Then a placeholder is shown.
const PICTURE_PATIENCE: Duration = Duration::from_secs(10);
/// Largest body of a form, in bytes.
const MAX_FORM: usize = 1 << 12;
/// Largest text of steps in a URL, in bytes.
const MAX_STEPS: usize = 1 << 13;

/// Longest image that is sent as stored, in bytes.
const MAX_SENT: usize = 1 << 26;

type Shared = State<Arc<App>>;
type Pairs = Vec<(String, String)>;

/// Returns the routes of all pages.
pub(crate) fn router(app: Arc<App>) -> Router {
    silence_decoder_panics();
    Router::new()
        .route("/", get(first))
        .route("/-/view.css", get(|| asset("text/css; charset=utf-8", include_str!("../assets/view.css"))))
        .route("/-/view.js", get(|| asset("text/javascript; charset=utf-8", include_str!("../assets/view.js"))))
        .route("/-/icon.svg", get(|| asset("image/svg+xml", include_str!("../assets/icon.svg"))))
        .route("/-/health", get(health_page))
        .route("/-/health/part", get(health_part))
        .route("/-/check", post(start_check))
        .route("/-/cancel", post(cancel_check))
        .route("/{split}", get(gallery_page))
        .route("/{split}/cells", get(gallery_cells))
        .route("/{split}/go", get(go))
        .route("/{split}/columns", get(columns_page))
        .route("/{split}/record/{id}", get(record_page))
        .route("/{split}/thumb/{id}", get(thumbnail))
        .route("/{split}/preview/{id}", get(preview))
        .route("/{split}/image/{id}", get(image))
        .route("/{split}/mask/{id}", get(mask))
        .route("/{split}/drawn/{id}", get(drawn))
        .fallback(|| async { not_found("no such page") })
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
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

async fn start_check(State(app): Shared, form: Bytes) -> Response {
    let pairs = query::pairs(&String::from_utf8_lossy(&form));
    if !last(&pairs, "token").is_some_and(|token| app.guarded.is_token(token)) {
        return (StatusCode::FORBIDDEN, "403: the form lacks the token of this process\n").into_response();
    }
    let kind = match last(&pairs, "kind") {
        Some("verify") => Kind::Verify,
        Some("decode") => Kind::Decode,
        Some("duplicates") => Kind::Duplicates,
        _ => return (StatusCode::BAD_REQUEST, "400: kind is verify, decode or duplicates\n").into_response(),
    };
    let started = app.check.start(app.dataset.clone(), kind);
    see_other(if started { "/-/health".to_owned() } else { "/-/health?busy=1".to_owned() })
}

async fn cancel_check(State(app): Shared, form: Bytes) -> Response {
    let pairs = query::pairs(&String::from_utf8_lossy(&form));
    if !last(&pairs, "token").is_some_and(|token| app.guarded.is_token(token)) {
        return (StatusCode::FORBIDDEN, "403: the form lacks the token of this process\n").into_response();
    }
    app.check.cancel();
    see_other("/-/health".to_owned())
}

async fn thumbnail(state: Shared, Path(place): Path<(String, u64)>) -> Response {
    make_picture(state, place, "image/jpeg", |record| picture::reduced(&Stored::of(record)?, picture::THUMBNAIL)).await
}

async fn preview(state: Shared, Path(place): Path<(String, u64)>, RawQuery(text): RawQuery) -> Response {
    let name = last(&decoded(text), "name").map(str::to_owned);
    make_picture(state, place, "image/jpeg", move |record| {
        picture::reduced(&named(record, name.as_deref())?, picture::PREVIEW)
    })
    .await
}

async fn mask(state: Shared, Path(place): Path<(String, u64)>, RawQuery(text): RawQuery) -> Response {
    let name = last(&decoded(text), "name").map(str::to_owned);
    make_picture(state, place, "image/png", move |record| {
        picture::label_map(&named(record, name.as_deref())?, picture::PREVIEW)
    })
    .await
}

/// Returns the image in a feature of a record, or the record's image.
fn named<'r>(record: &'r Record, name: Option<&str>) -> Result<Stored<'r>, picture::Error> {
    match name {
        None => Stored::of(record),
        Some(name) => Stored::parse(record.example()?.bytes(name).ok_or(picture::Error::NoImage)?),
    }
}

async fn drawn(State(app): Shared, Path((split, id)): Path<(String, u64)>, RawQuery(text): RawQuery) -> Response {
    let options = draw_options(&decoded(text));
    let images = match options.pipeline() {
        Ok(pipeline) => Images::new(pipeline),
        Err(problem) => return (StatusCode::BAD_REQUEST, problem).into_response(),
    };
    let draws = SampleDraws { seed: options.seed, epoch: options.epoch, source_position: id };
    make_picture(State(app), (split, id), "image/png", move |record| {
        picture::drawn(record, &Stored::of(record)?, &images, draws)
    })
    .await
}

/// Makes a picture of a record, or a placeholder that says why there is none. As many are made at once as there are cores;
/// the others wait, and are dropped when their browser does not want them any more.
async fn make_picture(
    State(app): Shared,
    (split, id): (String, u64),
    media_type: &'static str,
    make: impl FnOnce(&Record) -> Result<Vec<u8>, picture::Error> + Send + 'static,
) -> Response {
    let Some(view) = app.split(&split).cloned() else { return not_found("this dataset has no such split") };
    let waited = tokio::time::timeout(PICTURE_PATIENCE, async {
        let permit = app.decoders.clone().acquire_owned().await;
        let made = tokio::task::spawn_blocking(move || {
            // The thread cannot be stopped: it keeps its place among the decoders until it ends.
            let _permit = permit;
            let record = view.split.get(id)?;
            let picture = make(&record)?;
            record.check_readable()?;
            Ok::<_, picture::Error>(picture)
        });
        made.await.unwrap_or_else(|_| Err(picture::Error::Panic("the decoder".to_owned())))
    });
    let cached = (header::CACHE_CONTROL, "private, max-age=600");
    match waited.await {
        Ok(Ok(picture)) => ([(header::CONTENT_TYPE, media_type), cached], picture).into_response(),
        Ok(Err(error)) => placeholder(&error.to_string()),
        Err(_) => placeholder(&format!("no picture after {} s", PICTURE_PATIENCE.as_secs())),
    }
}

/// Returns a picture in place of one that cannot be made. Its text says why.
fn placeholder(problem: &str) -> Response {
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "no-store")];
    (headers, pages::placeholder(problem).into_string()).into_response()
}

/// The stored bytes of an image, in a format that browsers show.
async fn image(State(app): Shared, Path((split, id)): Path<(String, u64)>, RawQuery(text): RawQuery) -> Response {
    let name = last(&decoded(text), "name").map(str::to_owned);
    of_split(app, split, move |_, view| {
        let read = || -> Result<Response, picture::Error> {
            let record = view.split.get(id)?;
            let stored = named(&record, name.as_deref())?;
            // Only types of pictures: a page, or a picture with a script, in a dataset is shown as text or saved.
            let media_type = stored.media_type().unwrap_or("application/octet-stream");
            if stored.bytes.len() > MAX_SENT {
                return Ok(placeholder("the image is too long to be sent"));
            }
            let bytes = stored.bytes.to_vec();
            record.check_readable()?;
            Ok(([(header::CONTENT_TYPE, media_type)], bytes).into_response())
        };
        read().unwrap_or_else(|error| placeholder(&error.to_string()))
    })
    .await
}
