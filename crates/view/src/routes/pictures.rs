//! Pictures of records.

use super::{Shared, decoded, draw_options, not_found, of_split};
use crate::app::{App, SplitView};
use crate::measured;
use crate::pages;
use crate::picture::{self, Stored};
use crate::query::last;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use shardtool_load::Image;
use shardtool_read::Record;
use std::sync::Arc;
use std::time::Duration;

/// How long a picture may take. Then a placeholder is shown.
const PICTURE_PATIENCE: Duration = Duration::from_secs(10);
/// Longest image that is sent as stored, in bytes.
const MAX_SENT: usize = 1 << 26;

pub(super) async fn thumbnail(state: Shared, Path(place): Path<(String, u64)>) -> Response {
    make_picture(state, place, "image/jpeg", reduced).await
}

/// As [`thumbnail`], of another version.
pub(super) async fn thumbnail_of_version(
    State(app): Shared,
    Path((version, split, id)): Path<(u64, String, u64)>,
) -> Response {
    let shared = app.clone();
    let opened = tokio::task::spawn_blocking(move || shared.versions.open(&shared.dataset, version)).await;
    let Ok(Ok(version)) = opened else { return not_found("this dataset has no such version") };
    let Some(view) = version.split(&split).cloned() else { return not_found("this version has no such split") };
    make_picture_of(app, view, id, "image/jpeg", reduced).await
}

fn reduced(record: &Record) -> Result<Vec<u8>, picture::Error> {
    picture::reduced(&Stored::of(record)?, picture::THUMBNAIL)
}

pub(super) async fn preview(state: Shared, Path(place): Path<(String, u64)>, RawQuery(text): RawQuery) -> Response {
    let name = last(&decoded(text), "name").map(str::to_owned);
    make_picture(state, place, "image/jpeg", move |record| {
        picture::reduced(&named(record, name.as_deref())?, picture::PREVIEW)
    })
    .await
}

pub(super) async fn mask(state: Shared, Path(place): Path<(String, u64)>, RawQuery(text): RawQuery) -> Response {
    let name = last(&decoded(text), "name").map(str::to_owned);
    make_picture(state, place, "image/png", move |record| {
        picture::label_map(&named(record, name.as_deref())?, picture::PREVIEW)
    })
    .await
}

pub(super) async fn values(state: Shared, Path(place): Path<(String, u64)>, RawQuery(text): RawQuery) -> Response {
    let name = last(&decoded(text), "name").unwrap_or_default().to_owned();
    make_picture(state, place, "image/png", move |record| {
        measured::drawn(&record.example()?, &name, &Stored::of(record)?, picture::PREVIEW)
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

pub(super) async fn drawn(
    State(app): Shared,
    Path((split, id)): Path<(String, u64)>,
    RawQuery(text): RawQuery,
) -> Response {
    let options = draw_options(&decoded(text));
    let images = match options.pipeline() {
        Ok(pipeline) => Image::new(pipeline),
        Err(problem) => return (StatusCode::BAD_REQUEST, problem).into_response(),
    };
    let draws = options.of(id, options.epoch);
    make_picture(State(app), (split, id), "image/png", move |record| {
        picture::drawn(record, &Stored::of(record)?, &images, draws)
    })
    .await
}

/// Makes a picture of a record of the version that is shown, as [`make_picture_of`].
async fn make_picture(
    State(app): Shared,
    (split, id): (String, u64),
    media_type: &'static str,
    make: impl FnOnce(&Record) -> Result<Vec<u8>, picture::Error> + Send + 'static,
) -> Response {
    let Some(view) = app.split(&split).cloned() else { return not_found("this dataset has no such split") };
    make_picture_of(app, view, id, media_type, make).await
}

/// Makes a picture of a record, or a placeholder that says what went wrong. As many are made at once as there are cores;
/// the others wait, and are dropped when their browser does not want them any more.
async fn make_picture_of(
    app: Arc<App>,
    view: Arc<SplitView>,
    id: u64,
    media_type: &'static str,
    make: impl FnOnce(&Record) -> Result<Vec<u8>, picture::Error> + Send + 'static,
) -> Response {
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
pub(super) async fn image(
    State(app): Shared,
    Path((split, id)): Path<(String, u64)>,
    RawQuery(text): RawQuery,
) -> Response {
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
