//! What the server does with one request, from its arrival to the answer or the fault in its place.

use crate::Shared;
use crate::checksums::{self, Checksums, Pending};
use crate::faults::{Applied, Fault};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tokio::net::TcpListener;

type AnyError = Box<dyn Error + Send + Sync>;
type Answer = Response<BoxBody<Bytes, AnyError>>;

/// Serves each connection in a separate task.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let _ = socket.set_nodelay(true);
        let shared = shared.clone();
        let released = shared.released.load(Ordering::SeqCst);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, released, shared.clone()));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

/// Counts a request as being carried out, until it is dropped.
struct Busy(Arc<Shared>);

impl Busy {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.busy.fetch_add(1, Ordering::SeqCst);
        Busy(shared.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
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

/// Answers a request of a connection that was accepted after `released` calls of [`Server::release`].
async fn answer(mut request: Request<Incoming>, released: u64, shared: Arc<Shared>) -> Result<Answer, AnyError> {
    let busy = Busy::new(&shared);
    let number = shared.requests.fetch_add(1, Ordering::Relaxed);
    shared.paths.lock().unwrap_or_else(PoisonError::into_inner).push(request.uri().path().to_owned());
    if released != shared.released.load(Ordering::SeqCst) {
        return Ok(refusal(StatusCode::SERVICE_UNAVAILABLE));
    }
    let mut held_from = shared.held_from.subscribe();
    if number >= *held_from.borrow_and_update() {
        drop(busy);
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
        Some(Applied::Status(status, code)) => return Ok(coded_refusal(status, code)),
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
    if shared.keeps == Checksums::Refused && writes && checksums::has_checksum(request.headers()) {
        return Ok(refusal(StatusCode::NOT_IMPLEMENTED));
    }
    let pending = Pending::of(&request);
    let conditions = [hyper::header::IF_NONE_MATCH, hyper::header::IF_MATCH];
    let conditional = writes && conditions.iter().any(|name| request.headers().contains_key(name));
    if shared.ignore_conditions {
        conditions.iter().for_each(|name| drop(request.headers_mut().remove(name)));
    }
    let alone = if conditional { Some(shared.conditional.write().await) } else { None };
    let together = if reads { Some(shared.conditional.read().await) } else { None };
    let (service, call) = (shared.clone(), request);
    let call = async move {
        let _busy = busy;
        hyper::service::Service::call(&service.service, call).await
    };
    // A request that writes is carried out even if the client ends: not half of it.
    let answer = if writes { tokio::spawn(call).await? } else { call.await };
    let answer = answer.map_err(|e| format!("{e:?}"))?;
    drop((alone, together));
    if writes && fault == Some(Fault::Cut) {
        return Err("the answer is lost".into());
    }
    let fault = fault.filter(|_| reads);
    let (mut parts, body) = answer.into_parts();
    if shared.names_versions && parts.status.is_success() {
        parts.headers.insert("x-amz-version-id", hyper::header::HeaderValue::from(number));
    }
    let length = parts.headers.get(hyper::header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    shared.bytes.fetch_add(length.unwrap_or(0), Ordering::Relaxed);
    if shared.keeps == Checksums::Ignored {
        checksums::remove(&mut parts.headers);
    } else if parts.status.is_success() && !pending.answer(&shared, &mut parts.headers) {
        return Ok(refusal(StatusCode::BAD_REQUEST));
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
    coded_refusal(status, "Injected")
}

fn coded_refusal(status: StatusCode, code: &str) -> Answer {
    let body = Full::new(Bytes::from(format!("<Error><Code>{code}</Code></Error>")));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed());
    *answer.status_mut() = status;
    answer
}
