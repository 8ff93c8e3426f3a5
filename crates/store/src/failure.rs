//! Why a request failed: by the client's kind of error, and by the status and code of the store's answer.

use crate::client::answer::Refusal;
use crate::client::credentials::{self, is_of_credentials};
use crate::url::{Service, Url};
use object_store::Error as E;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// How often a refusal is repeated: credentials may have expired under way, and are then renewed.
const REFUSALS: u32 = 2;

/// Codes of status 404 if the bucket (S3, GCS), the container (Azure) or the dataset (Hugging Face) does not exist.
const NO_BUCKET: [&str; 4] = ["NoSuchBucket", "ContainerNotFound", "RepoNotFound", "RevisionNotFound"];

/// Codes of status 409 if another request was writing the object, of which S3 says that the request is to be repeated.
const BUSY: [&str; 2] = ["ConditionalRequestConflict", "OperationAborted"];

/// Codes of status 400 if S3 does not accept credentials.
const CREDENTIALS: [&str; 4] = ["AuthorizationHeaderMalformed", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"];

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The object does not exist.
    Missing,
    /// The bucket or container does not exist.
    NoBucket,
    /// The object ends before the range does.
    Short,
    /// The object exists, or has not the version that it should have.
    Exists,
    /// The store refuses the request.
    Refused(String),
    /// There are no credentials, or the store does not accept them.
    Credentials(String),
    /// The store or its client cannot do it.
    Unsupported(String),
    /// Web servers are only read.
    ReadOnly,
    /// The name of an object is invalid.
    Invalid(String),
    /// The answer does not fit into memory.
    Memory { length: u64 },
    /// The body ended early.
    Cut { expected: u64, found: usize },
    /// Anything else: no connection, status 429 or 5xx.
    Other(String),
    /// The time is over; what failed last.
    TimedOut { limit: Duration, last: Option<Box<Failure>> },
}

/// A failure, or an error that the client reports without the status of the answer.
pub(crate) enum Problem {
    Failure(Failure),
    Client(E),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Problem::Failure(failure)
    }
}

impl From<E> for Problem {
    fn from(error: E) -> Self {
        Problem::Client(error)
    }
}

impl Failure {
    /// Classifies a problem. `refusal` is the last answer, if it was a refusal.
    pub(crate) fn new(problem: Problem, refusal: Option<Refusal>) -> Self {
        let error = match problem {
            Problem::Failure(failure) => return failure,
            Problem::Client(error) => error,
        };
        let text = chain(&error);
        // The last answer then was not the store's.
        if is_of_credentials(&error) {
            return Failure::Credentials(text);
        }
        #[cfg(feature = "hdfs")]
        if crate::client::hdfs::is_refusal(&error) {
            return Failure::Refused(text);
        }
        let (status, code) = refusal.map_or((0, String::new()), |refusal| (refusal.status, refusal.code));
        match (error, status) {
            (_, 409) if BUSY.contains(&&*code) => Failure::Other(text),
            (E::AlreadyExists { .. } | E::Precondition { .. }, _) => Failure::Exists,
            (E::NotSupported { .. } | E::NotImplemented { .. }, _) => Failure::Unsupported(text),
            (E::InvalidPath { .. }, _) => Failure::Invalid(text),
            (E::NotFound { .. } | E::Generic { .. }, 404) if NO_BUCKET.contains(&&*code) => Failure::NoBucket,
            (E::NotFound { .. }, _) | (E::Generic { .. }, 404) => Failure::Missing,
            (E::PermissionDenied { .. } | E::Unauthenticated { .. }, _) => Failure::Refused(text),
            (E::Generic { .. }, 401 | 403) => Failure::Refused(text),
            (E::Generic { .. }, 409 | 412) => Failure::Exists,
            (E::Generic { .. }, 416) => Failure::Short,
            (E::Generic { .. }, 400) if CREDENTIALS.contains(&&*code) => Failure::Credentials(text),
            _ => Failure::Other(text),
        }
    }

    /// Returns how often the request may be repeated; `None` as often as there is time.
    pub(crate) fn repeats(&self) -> Option<u32> {
        match self {
            Failure::Missing
            | Failure::NoBucket
            | Failure::Short
            | Failure::Exists
            | Failure::Unsupported(_)
            | Failure::ReadOnly
            | Failure::Invalid(_)
            | Failure::Memory { .. }
            | Failure::TimedOut { .. } => Some(0),
            Failure::Refused(_) => Some(REFUSALS),
            Failure::Credentials(_) | Failure::Cut { .. } | Failure::Other(_) => None,
        }
    }

    /// Returns the error of the interface. Its text names what failed, and not the URL.
    pub(crate) fn into_io(self, url: &Url) -> io::Error {
        let hint = || credentials::hint(url);
        match self {
            Failure::Missing => ErrorKind::NotFound.into(),
            Failure::NoBucket => io::Error::new(ErrorKind::NotFound, format!("{} does not exist", url.root)),
            Failure::Short => ErrorKind::UnexpectedEof.into(),
            Failure::Exists => ErrorKind::AlreadyExists.into(),
            Failure::Refused(text) => io::Error::new(ErrorKind::PermissionDenied, format!("{text}; {}", hint())),
            Failure::Credentials(text) => io::Error::other(format!("{text}; {}", hint())),
            Failure::Unsupported(text) => io::Error::new(ErrorKind::Unsupported, text),
            Failure::ReadOnly => io::Error::new(ErrorKind::Unsupported, "web servers are only read"),
            Failure::Memory { length } => {
                io::Error::new(ErrorKind::OutOfMemory, format!("no memory for an answer of {length} bytes"))
            }
            Failure::Cut { expected, found } => {
                io::Error::other(format!("the answer ended after {found} of {expected} bytes"))
            }
            Failure::Invalid(text) | Failure::Other(text) => io::Error::other(text),
            Failure::TimedOut { limit, last } => {
                let last = match last {
                    Some(failure) => format!("; the last attempt: {}", failure.into_io(url)),
                    // Its client repeats by itself.
                    None if url.service == Service::Hdfs => format!("; {}", hint()),
                    None => String::new(),
                };
                let limit = limit.as_secs();
                let text = format!("no answer within {limit} s (SHARDTOOL_STORE_TIMEOUT){last}");
                io::Error::new(ErrorKind::TimedOut, text)
            }
        }
    }
}

/// Writes an error and its sources, each once, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
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
