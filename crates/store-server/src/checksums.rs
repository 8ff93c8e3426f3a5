//! Checksums of uploads, as S3 keeps them: `s3s-fs` keeps only those of objects that were written with one request.

use crate::Shared;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, Request};
use shardtool_format::checksum::crc32c;
use std::sync::PoisonError;

/// What the server does with the CRC32C of uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksums {
    /// Compares them, and returns those of whole objects: S3.
    #[default]
    Kept,
    /// Nothing: older servers.
    Ignored,
    /// Answers uploads that have one with status 501.
    Refused,
}

const CRC32C: &str = "x-amz-checksum-crc32c";
const ALGORITHM: &str = "x-amz-checksum-algorithm";
const TYPE: &str = "x-amz-checksum-type";

/// What is left to do with the checksums of a request once it was carried out.
pub(crate) enum Pending {
    Nothing,
    /// An upload in parts begins, for which the checksum of the whole object was asked.
    Began,
    /// The parts of an object were joined; its path, and the checksum that it must have.
    Joined(String, Option<HeaderValue>),
    /// The checksum of an object is to be returned.
    Asked(String),
}

/// Returns whether a request carries a checksum.
pub(crate) fn has_checksum(headers: &HeaderMap) -> bool {
    headers.contains_key(CRC32C) || headers.contains_key(ALGORITHM)
}

impl Pending {
    pub(crate) fn of(request: &Request<Incoming>) -> Self {
        let (headers, path) = (request.headers(), request.uri().path().to_owned());
        let query = request.uri().query().unwrap_or_default();
        let is_whole = headers.get(TYPE).is_some_and(|kind| kind == "FULL_OBJECT");
        match *request.method() {
            Method::POST if is_whole && query.starts_with("uploads") => Pending::Began,
            Method::POST if is_whole && query.contains("uploadId=") => {
                Pending::Joined(path, headers.get(CRC32C).cloned())
            }
            Method::HEAD if headers.contains_key("x-amz-checksum-mode") => Pending::Asked(path),
            _ => Pending::Nothing,
        }
    }

    /// Adds what S3 answers to the headers of a good answer; `false` if the checksum differs.
    pub(crate) fn answer(self, shared: &Shared, headers: &mut HeaderMap) -> bool {
        let mut checksums = shared.checksums.lock().unwrap_or_else(PoisonError::into_inner);
        match self {
            Pending::Nothing => {}
            Pending::Began => {
                headers.insert(ALGORITHM, HeaderValue::from_static("CRC32C"));
                headers.insert(TYPE, HeaderValue::from_static("FULL_OBJECT"));
            }
            Pending::Joined(path, expected) => {
                let Ok(bytes) = std::fs::read(shared.root.join(&path[1..])) else { return false };
                let found = BASE64_STANDARD.encode(crc32c(&bytes).to_be_bytes());
                if expected.is_some_and(|expected| expected != found.as_str()) {
                    return false;
                }
                checksums.insert(path, found);
            }
            Pending::Asked(path) => {
                if let Some(crc) = checksums.get(&path).and_then(|crc| HeaderValue::from_str(crc).ok()) {
                    headers.insert(CRC32C, crc);
                }
            }
        }
        true
    }
}

/// Removes all checksums from an answer.
pub(crate) fn remove(headers: &mut HeaderMap) {
    [CRC32C, ALGORITHM, TYPE].iter().for_each(|name| drop(headers.remove(*name)));
}
