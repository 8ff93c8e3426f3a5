//! An S3 server on a folder: each folder below it is a bucket. For tests and benchmarks.
//!
//! The server is `s3s-fs`, a program of others, which checks signatures. This crate starts it on 127.0.0.1 and, on request,
//! changes its answers: as servers, proxies and networks do when they fail. Without credentials it also serves plain
//! `http://` requests with ranges.
//!
//! `s3s-fs` compares the conditions `If-None-Match` and `If-Match` with an object before it writes it. Here, such requests
//! are answered one after the other, so that of two writers only one succeeds, as in S3.

mod faults;

pub use faults::{Fault, Faults};

use bytes::Bytes;
use faults::Applied;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

/// The access key and the secret key that the server accepts.
pub const CREDENTIALS: (&str, &str) = ("shardtool", "secret-of-shardtool");

type AnyError = Box<dyn Error + Send + Sync>;
type Answer = Response<BoxBody<Bytes, AnyError>>;

/// What a server is started with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether requests need not be signed.
    pub anonymous: bool,
    /// The port; 0 chooses a free one.
    pub port: u16,
    /// Changes of the answers.
    pub faults: Faults,
    /// Whether the conditions `If-None-Match` and `If-Match` are ignored, as by some stores. They are
    /// signed, so that requests must not be (`anonymous`).
    pub ignore_conditions: bool,
}

/// A running server. Dropping it ends it.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    root: PathBuf,
    service: S3Service,
    faults: Faults,
    requests: AtomicU64,
    bytes: AtomicU64,
    /// The paths of all requests.
    paths: Mutex<Vec<String>>,
    /// Checksums of objects, by their paths.
    checksums: Mutex<HashMap<String, String>>,
    injected: AtomicU64,
    /// How many answers to a request were changed since its last unchanged one.
    in_a_row: Mutex<HashMap<String, u64>>,
    ignore_conditions: bool,
    /// Held while a request with a condition is carried out.
    conditional: tokio::sync::Mutex<()>,
    /// Requests from this number on are not answered until it grows; then they are refused.
    held_from: watch::Sender<u64>,
    /// Writes of objects whose names end so wait until it is empty.
    held_name: watch::Sender<String>,
    waiting: AtomicU64,
}

impl Server {
    /// Serves a folder.
    ///
    /// # Errors
    /// If the folder does not exist, or the port is in use.
    pub fn start(root: &Path, options: Options) -> io::Result<Self> {
        let files = s3s_fs::FileSystem::new(root).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut builder = S3ServiceBuilder::new(files);
        if !options.anonymous {
            builder.set_auth(SimpleAuth::from_single(CREDENTIALS.0, CREDENTIALS.1));
        }
        let zero = AtomicU64::default;
        let (requests, bytes, injected) = (zero(), zero(), zero());
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            service: builder.build(),
            faults: options.faults,
            requests,
            bytes,
            paths: Mutex::new(vec![]),
            checksums: Mutex::default(),
            injected,
            in_a_row: Mutex::default(),
            ignore_conditions: options.ignore_conditions,
            conditional: tokio::sync::Mutex::new(()),
            held_from: watch::Sender::new(u64::MAX),
            held_name: watch::Sender::new(String::new()),
            waiting: AtomicU64::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let (started, address) = mpsc::channel();
        let server = shared.clone();
        let thread = std::thread::Builder::new().name("store-server".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await;
                let listener = match listener {
                    Ok(listener) => listener,
                    Err(error) => return drop(started.send(Err(error))),
                };
                drop(started.send(listener.local_addr()));
                tokio::select! {
                    () = accept(listener, server) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        })?;
        let address = address.recv().map_err(|_| io::Error::other("the server did not start"))??;
        Ok(Server { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the endpoint: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the environment variables with which clients reach the server.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", CREDENTIALS.0.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", CREDENTIALS.1.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the answers so far, before they were changed.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Answers this number of further requests, and holds those after them until [`Server::release`].
    pub fn hold_after(&self, requests: u64) {
        self.shared.held_from.send_replace(self.requests() + requests);
    }

    /// Returns whether a request is being held.
    pub fn is_holding(&self) -> bool {
        self.requests() > *self.shared.held_from.borrow()
    }

    /// Refuses the requests that are held, with status 503, and answers later ones.
    pub fn release(&self) {
        self.shared.held_from.send_replace(u64::MAX);
    }

    /// Holds `PUT` requests to objects whose names end so, until [`Server::let_pass`].
    pub fn hold_writes_of(&self, name: &str) {
        self.shared.held_name.send_replace(name.to_owned());
    }

    /// Returns the number of requests that [`Server::hold_writes_of`] holds.
    pub fn waiting(&self) -> u64 {
        self.shared.waiting.load(Ordering::SeqCst)
    }

    /// Carries out the requests that [`Server::hold_writes_of`] holds.
    pub fn let_pass(&self) {
        self.shared.held_name.send_replace(String::new());
    }

    /// Returns the number of requests so far for objects whose names end so.
    pub fn requests_of(&self, ending: &str) -> u64 {
        let paths = self.shared.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().filter(|path| path.ends_with(ending)).count() as u64
    }

    /// Keeps a CRC32C of an object `BUCKET/KEY`, in Base64, as if it had been uploaded with it. As S3 does, the server
    /// returns it if a signed header asks for it.
    pub fn set_crc32c(&self, object: &str, crc: &str) {
        let mut checksums = self.shared.checksums.lock().unwrap_or_else(PoisonError::into_inner);
        checksums.insert(format!("/{object}"), crc.to_owned());
    }

    /// Returns the number of answers that were changed so far.
    pub fn injected(&self) -> u64 {
        self.shared.injected.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let _ = socket.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, shared.clone()));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

impl Shared {
    /// Returns the fault of the answer to a request, if not as many in a row were changed as its client may bear. Counts it.
    fn fault_of(&self, request: &Request<Incoming>, number: u64) -> Option<Fault> {
        let reads = request.method() == hyper::Method::GET;
        let may = reads || (self.faults.writes && request.method() != hyper::Method::HEAD);
        let range = request.headers().get(hyper::header::RANGE);
        let key = format!("{} {} {range:?}", request.method(), request.uri());
        let mut in_a_row = self.in_a_row.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = in_a_row.entry(key).or_default();
        let fault = self.faults.of(number).filter(|_| may && *changed < self.faults.most_in_a_row());
        *changed = if fault.is_some() { *changed + 1 } else { 0 };
        self.injected.fetch_add(fault.is_some().into(), Ordering::Relaxed);
        fault
    }
}

async fn answer(mut request: Request<Incoming>, shared: Arc<Shared>) -> Result<Answer, AnyError> {
    let number = shared.requests.fetch_add(1, Ordering::Relaxed);
    shared.paths.lock().unwrap_or_else(PoisonError::into_inner).push(request.uri().path().to_owned());
    let mut held_from = shared.held_from.subscribe();
    if number >= *held_from.borrow_and_update() {
        let _ = held_from.changed().await;
        return Ok(refusal(StatusCode::SERVICE_UNAVAILABLE));
    }
    let mut held_name = shared.held_name.subscribe();
    let is_held = |name: &str| !name.is_empty() && request.uri().path().ends_with(name);
    if request.method() == hyper::Method::PUT && is_held(&held_name.borrow_and_update()) {
        shared.waiting.fetch_add(1, Ordering::SeqCst);
        let _ = held_name.changed().await;
        shared.waiting.fetch_sub(1, Ordering::SeqCst);
    }
    let reads = request.method() == hyper::Method::GET;
    let writes = !reads && request.method() != hyper::Method::HEAD;
    tokio::time::sleep(shared.faults.delay).await;
    let fault = shared.fault_of(&request, number);
    match fault.map(Fault::before) {
        Some(Applied::Status(status)) => return Ok(refusal(status)),
        // hyper then closes the connection without an answer.
        Some(Applied::Reset) => return Err("reset".into()),
        Some(Applied::Wait(time)) => tokio::time::sleep(time).await,
        Some(Applied::Nothing) | None => {}
    }
    if !has_signed_all(request.headers()) {
        return Ok(refusal(StatusCode::FORBIDDEN));
    }
    let head = request.method() == hyper::Method::HEAD;
    // Folders are no objects. The file system takes them for objects that it cannot read.
    if head
        && request.uri().path().trim_matches('/').contains('/')
        && shared.root.join(&request.uri().path()[1..]).is_dir()
    {
        return Ok(refusal(StatusCode::NOT_FOUND));
    }
    let asked = head && request.headers().contains_key("x-amz-checksum-mode");
    let checksum = {
        let checksums = shared.checksums.lock().unwrap_or_else(PoisonError::into_inner);
        checksums.get(request.uri().path()).filter(|_| asked).cloned()
    };
    let conditions = [hyper::header::IF_NONE_MATCH, hyper::header::IF_MATCH];
    let conditional = writes && conditions.iter().any(|name| request.headers().contains_key(name));
    if shared.ignore_conditions {
        conditions.iter().for_each(|name| drop(request.headers_mut().remove(name)));
    }
    let alone = if conditional { Some(shared.conditional.lock().await) } else { None };
    let (service, call) = (shared.clone(), request);
    let call = async move { hyper::service::Service::call(&service.service, call).await };
    // A request that writes is carried out even if the client ends: not half of it.
    let answer = if writes { tokio::spawn(call).await? } else { call.await };
    let answer = answer.map_err(|e| format!("{e:?}"))?;
    drop(alone);
    if writes && fault == Some(Fault::Cut) {
        return Err("the answer is lost".into());
    }
    let fault = fault.filter(|_| reads);
    let (mut parts, body) = answer.into_parts();
    let length = parts.headers.get(hyper::header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    shared.bytes.fetch_add(length.unwrap_or(0), Ordering::Relaxed);
    if let Some(crc) = checksum {
        parts.headers.insert("x-amz-checksum-crc32c", HeaderValue::from_str(&crc)?);
    }
    let Some(fault) = fault.filter(|fault| fault.changes_body()) else {
        return Ok(Response::from_parts(parts, body.map_err(AnyError::from).boxed()));
    };
    let mut bytes = body.collect().await?.to_bytes().to_vec();
    if let Fault::WrongByte = fault {
        let at = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8) as usize % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << (number % 8);
        }
        return Ok(Response::from_parts(parts, Full::new(Bytes::from(bytes)).map_err(|never| match never {}).boxed()));
    }
    bytes.truncate(bytes.len() / 2);
    let frames = [Ok(Frame::data(Bytes::from(bytes))), Err(AnyError::from("cut"))];
    Ok(Response::from_parts(parts, BodyExt::boxed(StreamBody::new(stream::iter(frames)))))
}

/// Returns whether a signature, if there is one, covers all headers of S3: it refuses other requests.
fn has_signed_all(headers: &HeaderMap) -> bool {
    let Some(signature) = headers.get("authorization").and_then(|value| value.to_str().ok()) else { return true };
    let signed = signature.split_once("SignedHeaders=").and_then(|(_, rest)| rest.split(',').next()).unwrap_or("");
    let signed: Vec<_> = signed.trim().split(';').collect();
    headers.keys().map(|name| name.as_str()).all(|name| !name.starts_with("x-amz-") || signed.contains(&name))
}

fn refusal(status: StatusCode) -> Answer {
    let body = Full::new(Bytes::from_static(b"<Error><Code>Injected</Code></Error>"));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed());
    *answer.status_mut() = status;
    answer
}
