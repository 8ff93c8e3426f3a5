//! One object: its length, and ranges of its bytes.

use crate::request;
use crate::url::Url;
use crate::verb::{self, Describe, Whole};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

/// An object in a store, or what is read as one. Holds no connection; cheap to clone.
#[derive(Debug, Clone)]
pub struct Object {
    path: PathBuf,
    bytes: Bytes,
    len: u64,
}

/// Where the bytes of an object come from.
#[derive(Debug, Clone)]
enum Bytes {
    Url(Url),
    Composed(Arc<dyn Compose>),
}

/// Receives the bytes of a range, on another thread or at once.
pub type Done = Box<dyn FnOnce(io::Result<Vec<u8>>) + Send>;

/// Makes the bytes of an object from those of other objects.
pub trait Compose: Debug + Send + Sync {
    /// Reads a range, which lies in the object and is not empty. Returns at once, and calls `done` when the bytes are there, or when
    /// reading failed.
    fn read_then(&self, range: Range<u64>, done: Done);
}

impl Object {
    /// Asks the store for the length of an object (one request).
    ///
    /// # Errors
    /// `NotFound`; `PermissionDenied`; `TimedOut`; `InvalidInput` if the path is not a URL; `Unsupported` without the feature
    /// `remote`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let url = Url::parse(path)?;
        let len = request::send(&url, Describe { checksum: false })?.len;
        Ok(Object { path: path.to_owned(), bytes: Bytes::Url(url), len })
    }

    /// Names an object whose length is known, without a request.
    ///
    /// # Errors
    /// `InvalidInput` if the path is not a URL; `Unsupported` without the feature `remote`.
    pub fn with_len(path: &Path, len: u64) -> io::Result<Self> {
        let url = Url::parse(path)?;
        request::check_supported()?;
        Ok(Object { path: path.to_owned(), bytes: Bytes::Url(url), len })
    }

    /// Makes an object of `len` bytes from other objects. `path` is for messages.
    pub fn composed(path: &Path, len: u64, parts: Arc<dyn Compose>) -> Self {
        Object { path: path.to_owned(), bytes: Bytes::Composed(parts), len }
    }

    /// Returns the URL; the path of a composed object.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it is made from other objects.
    pub fn is_composed(&self) -> bool {
        matches!(self.bytes, Bytes::Composed(_))
    }

    /// Returns the length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "an object's length, not a collection's")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads a range, unless it is empty: with one request, or with those of the objects that it is composed of. The answer has exactly the length of the range.
    ///
    /// # Errors
    /// `UnexpectedEof` if the range leaves the object; otherwise as [`Object::open`].
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.check(&range)?;
        if range.is_empty() {
            return Ok(vec![]);
        }
        match &self.bytes {
            Bytes::Url(url) => request::send(url, verb::Range(range)),
            Bytes::Composed(parts) => {
                let (sender, receiver) = mpsc::sync_channel(1);
                parts.read_then(range, Box::new(move |result| drop(sender.send(result))));
                receiver.recv().unwrap_or_else(|_| Err(io::Error::other("the request was cancelled")))
            }
        }
    }

    /// As [`Object::read`], but returns at once, and calls `done` on another thread. Empty ranges are not allowed.
    pub fn read_then(&self, range: Range<u64>, done: impl FnOnce(io::Result<Vec<u8>>) + Send + 'static) {
        match self.check(&range) {
            Err(error) => done(Err(error)),
            Ok(()) => match &self.bytes {
                Bytes::Url(url) => request::send_then(url.clone(), verb::Range(range), done),
                Bytes::Composed(parts) => parts.read_then(range, Box::new(done)),
            },
        }
    }

    fn check(&self, range: &Range<u64>) -> io::Result<()> {
        if range.start <= range.end && range.end <= self.len {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// What a store says about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Its length in bytes.
    pub len: u64,
    /// The CRC32C of all its bytes, if the store keeps one: GCS always, S3 if it was uploaded with one. Computed when the
    /// object was written: bytes that have changed since do not change it.
    pub crc32c: Option<u32>,
    /// The time of its last change, in nanoseconds since 1970; 0 if the server does not say.
    pub modified: i64,
    /// Its ETag, if the server says it: another one if the object was written again.
    pub e_tag: Option<String>,
}

impl Head {
    /// Asks the store, with one request.
    ///
    /// # Errors
    /// As [`Object::open`].
    pub fn of(path: &Path) -> io::Result<Self> {
        let url = Url::parse(path)?;
        let found = request::send(&url, Describe { checksum: true })?;
        Ok(Head { len: found.len, crc32c: found.crc32c, modified: found.modified, e_tag: found.version.e_tag })
    }
}

/// Reads an object whole, with one request, if it has at most `limit` bytes; `None` if it is longer.
///
/// # Errors
/// As [`Object::open`].
pub fn read_whole(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let found = request::send(&Url::parse(path)?, Whole { limit })?;
    Ok(found.map(|found| found.bytes))
}
