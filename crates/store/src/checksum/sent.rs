//! The CRC32C that uploads to S3 carry, so that the store compares it with what has arrived, and keeps it for `verify --quick`.
//!
//! Semantics of S3: an upload in parts states at its beginning that the checksum will be that of the whole object
//! (`FULL_OBJECT`), and the answer repeats it; a store whose answer does not repeat it does not know such checksums, and gets
//! none. Each part carries its own CRC, and the request that joins the parts has all of them and that of the whole object.

use crate::checksum::{CRC32C, TYPE, WHOLE, to_base64};
use crate::client::answer::code_of;
use object_store::HeaderMap;
use object_store::HeaderValue;
use object_store::client::HttpRequest;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a request carries.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    /// A whole object, and its CRC.
    Object(u32),
    /// The beginning of an upload in parts. The store sets whether it takes CRCs.
    Upload(Arc<AtomicBool>),
    /// A part, and its CRC.
    Part(u32),
    /// The end of an upload: the CRC of each part, and that of the object.
    Join {
        /// In their order.
        parts: Vec<u32>,
        /// Of the whole object.
        object: u32,
    },
    /// Nothing; the answer is to have the checksum of the object.
    Requested,
}

tokio::task_local! {
    /// What the requests of this future carry: the client has no parameter for it.
    pub(super) static SENT: Sent;
}

/// Runs requests that carry checksums if there are some.
pub(crate) async fn with_checksums<F: Future>(sent: Option<Sent>, requests: F) -> F::Output {
    match sent {
        Some(sent) => SENT.scope(sent, requests).await,
        None => requests.await,
    }
}

const ALGORITHM: &str = "x-amz-checksum-algorithm";

/// Codes of answers by which stores say that they do not know a header.
const UNKNOWN: [&str; 4] = ["NotImplemented", "InvalidRequest", "InvalidArgument", "UnsupportedArgument"];

impl Sent {
    /// Returns whether this is the request itself, not one for credentials on its behalf.
    pub(crate) fn is_of(&self, request: &HttpRequest) -> bool {
        let query = request.uri().query().unwrap_or_default();
        let has = |name: &str| query.split('&').any(|member| member.split('=').next() == Some(name));
        match self {
            // Not `is_empty`, which object_store 0.14 answers the other way round for payloads.
            Sent::Object(_) => request.method() == "PUT" && query.is_empty() && request.body().content_length() > 0,
            Sent::Upload(_) => request.method() == "POST" && has("uploads"),
            Sent::Part(_) => request.method() == "PUT" && has("uploadId"),
            Sent::Join { .. } => request.method() == "POST" && has("uploadId"),
            Sent::Requested => request.method() == "HEAD",
        }
    }

    /// Adds the checksums to a request, which is then to be signed again.
    pub(crate) fn add_to(&self, request: &mut HttpRequest) {
        let mut set = |name: &'static str, value: &str| {
            // Base64 is a valid value.
            if let Ok(value) = HeaderValue::from_str(value) {
                request.headers_mut().insert(name, value);
            }
        };
        match self {
            Sent::Object(crc) | Sent::Part(crc) => set(CRC32C, &to_base64(*crc)),
            Sent::Requested => set("x-amz-checksum-mode", "ENABLED"),
            Sent::Upload(_) => {
                set(ALGORITHM, "CRC32C");
                set(TYPE, WHOLE);
            }
            Sent::Join { parts, object } => {
                set(CRC32C, &to_base64(*object));
                set(TYPE, WHOLE);
                let body = request.body().as_bytes().and_then(|body| std::str::from_utf8(body).ok());
                if let Some(body) = body.map(|body| list_with(body, parts)) {
                    *request.body_mut() = body.into();
                    // Those of the body as it was.
                    request.headers_mut().remove("x-amz-content-sha256");
                    request.headers_mut().remove("content-length");
                }
            }
        }
    }

    /// Takes note of a good answer.
    pub(crate) fn answered(&self, headers: &HeaderMap) {
        if let Sent::Upload(takes_crc) = self {
            let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
            takes_crc.store(is(ALGORITHM, "CRC32C") && is(TYPE, WHOLE), Ordering::Relaxed);
        }
    }

    /// Returns whether an answer with this status may refuse the checksum. Parts and ends of uploads have one only if the
    /// store has agreed to it.
    pub(crate) fn may_be_refused(&self, status: u16) -> bool {
        matches!(self, Sent::Object(_) | Sent::Upload(_)) && matches!(status, 400 | 501)
    }

    /// Returns whether an answer refuses the checksum as such, not as one that differs.
    pub(crate) fn is_refused(&self, status: u16, body: &[u8]) -> bool {
        status == 501 || code_of(body).is_some_and(|code| UNKNOWN.contains(&&*code))
    }
}

/// Adds the CRC of each part to the list of parts.
fn list_with(list: &str, parts: &[u32]) -> String {
    const END: &str = "</Part>";
    let mut pieces = list.split(END);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for (piece, crc) in pieces.zip(parts) {
        text += &format!("<ChecksumCRC32C>{}</ChecksumCRC32C>{END}{piece}", to_base64(*crc));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_gets_its_checksum() {
        let list = "<X><Part><ETag>a</ETag></Part><Part><ETag>b</ETag></Part></X>";
        let expected = "<X><Part><ETag>a</ETag><ChecksumCRC32C>4waSgw==</ChecksumCRC32C></Part>\
                        <Part><ETag>b</ETag><ChecksumCRC32C>AAAAAQ==</ChecksumCRC32C></Part></X>";
        assert_eq!(list_with(list, &[0xe306_9283, 1]), expected);
    }

    #[test]
    fn a_checksum_that_differs_is_not_refused_as_unknown() {
        let sent = Sent::Object(1);
        assert!(!sent.is_refused(400, b"<Error><Code>BadDigest</Code></Error>"));
        assert!(sent.is_refused(400, b"<Error><Code>InvalidArgument</Code></Error>"));
        assert!(sent.is_refused(501, b""));
        assert!(!sent.may_be_refused(403) && !Sent::Part(1).may_be_refused(400));
    }
}
