//! One request: time limit, retries, a second request for a straggler.

use crate::checksum::StoredCrc32c;
use crate::client::{self, Client, Purpose};
use crate::process::Process;
use crate::stats::BYTES;
use crate::stats::{self, add};
use crate::time_limit;
use crate::url::{Service, Url};
use futures_util::StreamExt;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetResult};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Waits before a repeated request: the first time, doubled each time up to the last.
const PAUSES: Range<Duration> = Duration::from_millis(100)..Duration::from_secs(5);
/// How often a refusal is repeated: credentials may have expired under way, and are then renewed.
const REFUSALS: u32 = 2;
/// A straggler lasts this many times as long as usual, and at least [`MIN_STRAGGLER`].
const STRAGGLER: u32 = 4;
const MIN_STRAGGLER: Duration = Duration::from_secs(1);
/// At most one request of this many is sent twice, so that a slow server is not overloaded.
const HEDGED_OF: u64 = 10;

/// The code in an answer if the bucket (S3, GCS) or container (Azure) does not exist. If the request was to list it, the
/// client returns such an answer as a generic error.
const NO_BUCKET: [&str; 2] = ["<Code>NoSuchBucket</Code>", "<Code>ContainerNotFound</Code>"];

/// The status of an answer if a range begins after the end of the object.
pub(crate) const NOT_SATISFIABLE: &str = "416 Range Not Satisfiable";

/// What a name node of HDFS answers if the user may not do something.
const NO_ACCESS: &str = "org.apache.hadoop.security.AccessControlException";

/// Smoothed duration of requests, in microseconds.
static USUAL_MICROS: AtomicU64 = AtomicU64::new(0);

/// Returns the length of an object.
pub(crate) fn len(url: &Url) -> io::Result<u64> {
    let options = GetOptions::new().with_head(true);
    blocking(url.clone(), Purpose::Read, move |client, key| {
        let options = options.clone();
        async move { Ok(client.objects.get_opts(&key, options).await?.meta.size) }
    })
}

/// Returns the length of an object, the CRC32C that the store keeps of it, the time of its last change, and its ETag.
pub(crate) fn head(url: &Url) -> io::Result<(u64, Option<u32>, i64, Option<String>)> {
    blocking(url.clone(), Purpose::Head, move |store, key| async move {
        let result = store.objects.get_opts(&key, GetOptions::new().with_head(true)).await?;
        let modified = result.meta.last_modified.timestamp_nanos_opt().unwrap_or(0);
        let crc = result.extensions.get::<StoredCrc32c>().map(|crc| crc.0);
        Ok((result.meta.size, crc, modified, result.meta.e_tag))
    })
}

/// Returns the bytes of a range that is not empty.
pub(crate) fn range(url: &Url, range: Range<u64>) -> io::Result<Vec<u8>> {
    blocking(url.clone(), Purpose::Read, move |client, key| one_range(client, key, range.clone()))
}

/// As [`range`], but returns at once and calls `done` later.
pub(crate) fn range_then(url: Url, range: Range<u64>, done: impl FnOnce(io::Result<Vec<u8>>) + Send + 'static) {
    start(url, Purpose::Read, move |client, key| one_range(client, key, range.clone()), done);
}

/// Returns a whole object; `None` if it is longer than `limit`.
pub(crate) fn whole(url: &Url, limit: u64) -> io::Result<Option<Vec<u8>>> {
    blocking(url.clone(), Purpose::Read, move |client, key| async move {
        let result = client.objects.get_opts(&key, GetOptions::new()).await?;
        if result.meta.size > limit { Ok(None) } else { collect(result).await.map(Some) }
    })
}

async fn one_range(client: Client, key: Key, range: Range<u64>) -> Result<Vec<u8>, Failure> {
    let expected = range.end - range.start;
    let result = client.objects.get_opts(&key, GetOptions::new().with_range(Some(range))).await?;
    if result.range.end - result.range.start < expected {
        return Err(Failure::Short);
    }
    let bytes = collect(result).await?;
    if bytes.len() as u64 == expected { Ok(bytes) } else { Err(Failure::Short) }
}

/// Reads a body into memory of exactly its length.
pub(crate) async fn collect(result: GetResult) -> Result<Vec<u8>, Failure> {
    let length = result.range.end - result.range.start;
    let mut bytes = Vec::new();
    // A server may claim any length.
    if usize::try_from(length).map_or(true, |length| bytes.try_reserve_exact(length).is_err()) {
        return Err(Failure::Memory { length });
    }
    let mut body = result.into_stream();
    while let Some(part) = body.next().await {
        bytes.extend_from_slice(&part?);
    }
    add(&BYTES, bytes.len() as u64);
    // A body that ends early is an error of the transport, which is repeated.
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(Failure::Cut { expected: length, found: bytes.len() }) }
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Store(object_store::Error),
    /// The object ends before the range does.
    Short,
    /// Web servers are only read.
    ReadOnly,
    /// The bucket or container does not exist.
    NoBucket,
    /// The answer does not fit into memory.
    Memory {
        length: u64,
    },
    /// The body ended early.
    Cut {
        expected: u64,
        found: usize,
    },
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        // The status of an answer, and the code in its body, are part of the text only.
        let text = error.to_string();
        if text.contains(NOT_SATISFIABLE) {
            Failure::Short
        } else if matches!(error, object_store::Error::Generic { .. } | object_store::Error::NotFound { .. })
            && NO_BUCKET.iter().any(|code| text.contains(code))
        {
            Failure::NoBucket
        } else if text.contains(NO_ACCESS) {
            Failure::Store(object_store::Error::PermissionDenied { path: String::new(), source: text.into() })
        } else {
            Failure::Store(error)
        }
    }
}

impl Failure {
    /// Returns how often the request may be repeated; `None` as often as there is time.
    fn repeats(&self) -> Option<u32> {
        use object_store::Error as E;
        match self {
            Failure::Short
            | Failure::ReadOnly
            | Failure::NoBucket
            | Failure::Memory { .. }
            | Failure::Store(
                E::AlreadyExists { .. }
                | E::Precondition { .. }
                | E::NotFound { .. }
                | E::InvalidPath { .. }
                | E::NotSupported { .. }
                | E::NotImplemented { .. },
            ) => Some(0),
            Failure::Store(E::PermissionDenied { .. } | E::Unauthenticated { .. }) => Some(REFUSALS),
            Failure::Store(_) | Failure::Cut { .. } => None,
        }
    }

    pub(crate) fn into_io(self, url: &Url) -> io::Error {
        use object_store::Error as E;
        match self {
            Failure::Short => ErrorKind::UnexpectedEof.into(),
            Failure::ReadOnly => io::Error::new(ErrorKind::Unsupported, "web servers are only read"),
            Failure::NoBucket => io::Error::new(ErrorKind::NotFound, format!("{} does not exist", url.root)),
            Failure::Memory { length } => {
                io::Error::new(ErrorKind::OutOfMemory, format!("no memory for an answer of {length} bytes"))
            }
            Failure::Store(error @ (E::NotSupported { .. } | E::NotImplemented { .. })) => {
                io::Error::new(ErrorKind::Unsupported, chain(&error))
            }
            Failure::Cut { expected, found } => {
                io::Error::other(format!("the answer ended after {found} of {expected} bytes"))
            }
            Failure::Store(E::NotFound { .. }) => ErrorKind::NotFound.into(),
            Failure::Store(E::AlreadyExists { .. } | E::Precondition { .. }) => ErrorKind::AlreadyExists.into(),
            Failure::Store(error @ (E::PermissionDenied { .. } | E::Unauthenticated { .. })) => {
                let text = format!("{}; {}", chain(&error), client::credentials_hint(url));
                io::Error::new(ErrorKind::PermissionDenied, text)
            }
            Failure::Store(error) => {
                let text = chain(&error);
                let hint = if text.contains("169.254.169.254") || text.to_lowercase().contains("credential") {
                    format!("; {}", client::credentials_hint(url))
                } else {
                    String::new()
                };
                io::Error::other(format!("{text}{hint}"))
            }
        }
    }
}

/// Writes an error and its sources, each once, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    // A name node of HDFS sends the stack of its error as well.
    let end = text.find("\n\tat ").unwrap_or(text.len());
    text[..end].replace(['\n', '\r'], " ")
}

/// Runs an operation on the runtime, and waits for its end.
pub(crate) fn blocking<T, F, R>(url: Url, purpose: Purpose, request: F) -> io::Result<T>
where
    T: Send + 'static,
    F: Fn(Client, Key) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, Failure>> + Send,
{
    blocking_within(url, purpose, time_limit(), request)
}

/// As [`blocking`], with another time limit.
pub(crate) fn blocking_within<T, F, R>(url: Url, purpose: Purpose, limit: Duration, request: F) -> io::Result<T>
where
    T: Send + 'static,
    F: Fn(Client, Key) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, Failure>> + Send,
{
    let (sender, receiver) = mpsc::sync_channel(1);
    let since = Instant::now();
    start_within(url, purpose, limit, request, move |result| drop(sender.send(result)));
    // The operation has a time limit, and its callback is called whatever happens to it.
    let result = receiver.recv().unwrap_or_else(|_| Err(io::Error::other("the request was cancelled")));
    add(&stats::WAITED_NANOS, since.elapsed().as_nanos() as u64);
    result
}

/// Starts an operation on the runtime: `request`, repeated until it succeeds, fails for good, or the time limit is over.
pub(crate) fn start<T, F, R>(url: Url, purpose: Purpose, request: F, done: impl FnOnce(io::Result<T>) + Send + 'static)
where
    T: Send + 'static,
    F: Fn(Client, Key) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, Failure>> + Send,
{
    start_within(url, purpose, time_limit(), request, done);
}

fn start_within<T, F, R>(
    url: Url,
    purpose: Purpose,
    limit: Duration,
    request: F,
    done: impl FnOnce(io::Result<T>) + Send + 'static,
) where
    T: Send + 'static,
    F: Fn(Client, Key) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, Failure>> + Send,
{
    let mut done = Callback { done: Some(done), result: PhantomData };
    let process = match Process::current() {
        Ok(process) => process,
        Err(error) => return done.call(Err(error)),
    };
    process.spawn(async move {
        let result = match prepare(process, &url, purpose) {
            Ok((client, key)) => {
                // The time limit begins when the request may be sent.
                let _permit = process.permits.acquire().await;
                repeated(&url, purpose, limit, || request(client.clone(), key.clone())).await
            }
            Err(error) => Err(error),
        };
        done.call(result);
    });
}

/// A callback that is called exactly once: with an error if the operation ends without a result, as after a panic.
struct Callback<T, D: FnOnce(io::Result<T>)> {
    done: Option<D>,
    result: PhantomData<fn(T)>,
}

impl<T, D: FnOnce(io::Result<T>)> Callback<T, D> {
    fn call(&mut self, result: io::Result<T>) {
        if let Some(done) = self.done.take() {
            done(result);
        }
    }
}

impl<T, D: FnOnce(io::Result<T>)> Drop for Callback<T, D> {
    fn drop(&mut self) {
        self.call(Err(io::Error::other("the request was cancelled")));
    }
}

pub(crate) fn prepare(process: &'static Process, url: &Url, purpose: Purpose) -> io::Result<(Client, Key)> {
    let key = match url.service {
        // The characters of a key are taken as they are, those of a web page's URL are encoded already.
        Service::Http => Key::from_url_path(&url.key),
        _ => Key::parse(&url.key),
    };
    let key = key.map_err(|error| io::Error::new(ErrorKind::InvalidInput, chain(&error)))?;
    Ok((process.client(url, purpose)?, key))
}

async fn repeated<T, R>(url: &Url, purpose: Purpose, limit: Duration, request: impl Fn() -> R) -> io::Result<T>
where
    R: Future<Output = Result<T, Failure>>,
{
    let deadline = tokio::time::Instant::now() + limit;
    let (mut failures, mut pause, mut last) = (0, PAUSES.start, None::<Failure>);
    loop {
        match tokio::time::timeout_at(deadline, attempt(purpose, &request)).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(failure)) => {
                failures += 1;
                if failure.repeats().is_some_and(|most| failures > most) {
                    return Err(failure.into_io(url));
                }
                log::debug!("{}/{}: attempt {failures} failed: {failure:?}", url.root, url.key);
                last = Some(failure);
            }
            Err(_) => return Err(timed_out(url, limit, last)),
        }
        if tokio::time::Instant::now() + pause >= deadline {
            return Err(timed_out(url, limit, last));
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(PAUSES.end);
        add(&stats::RETRIES, 1);
    }
}

fn timed_out(url: &Url, limit: Duration, last: Option<Failure>) -> io::Error {
    let last = match last {
        Some(failure) => format!("; the last attempt: {}", failure.into_io(url)),
        // Its client repeats by itself.
        None if url.service == Service::Hdfs => format!("; {}", client::credentials_hint(url)),
        None => String::new(),
    };
    let limit = limit.as_secs();
    io::Error::new(ErrorKind::TimedOut, format!("no answer within {limit} s (SHARDTOOL_STORE_TIMEOUT){last}"))
}

/// Makes a request, and a second one if it reads and lasts unusually long. The first good answer counts.
async fn attempt<T, R>(purpose: Purpose, request: impl Fn() -> R) -> Result<T, Failure>
where
    R: Future<Output = Result<T, Failure>>,
{
    if purpose == Purpose::Write {
        // Large parts take long on a slow network, which a second copy of them would not make faster.
        add(&stats::REQUESTS, 1);
        return request().await;
    }
    let mut first = pin!(counted(request()));
    let usual = Duration::from_micros(USUAL_MICROS.load(Ordering::Relaxed));
    if let Ok(result) = tokio::time::timeout((STRAGGLER * usual).max(MIN_STRAGGLER), &mut first).await {
        return result;
    }
    let (requests, hedged) = (stats::REQUESTS.load(Ordering::Relaxed), stats::HEDGED.load(Ordering::Relaxed));
    if hedged * HEDGED_OF > requests {
        return first.await;
    }
    add(&stats::HEDGED, 1);
    let mut second = pin!(counted(request()));
    tokio::select! {
        result = &mut first => if result.is_ok() { result } else { second.await },
        result = &mut second => if result.is_ok() { result } else { first.await },
    }
}

/// Makes a request and measures it.
async fn counted<T>(request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    add(&stats::REQUESTS, 1);
    let since = Instant::now();
    let result = request.await;
    if result.is_ok() {
        let took = since.elapsed().as_micros() as u64;
        let _ = USUAL_MICROS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |usual| {
            Some(if usual == 0 { took } else { (7 * usual + took) / 8 })
        });
    }
    result
}
