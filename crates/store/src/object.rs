//! One object: its length, and ranges of its bytes.

use crate::request;
use crate::url::Url;
use crate::verb::{self, Describe, Whole};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An object in a store. Holds no connection; cheap to clone.
#[derive(Debug, Clone)]
pub struct Object {
    path: PathBuf,
    url: Url,
    len: u64,
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
        Ok(Object { path: path.to_owned(), url, len })
    }

    /// Names an object whose length is known, without a request.
    ///
    /// # Errors
    /// `InvalidInput` if the path is not a URL; `Unsupported` without the feature `remote`.
    pub fn with_len(path: &Path, len: u64) -> io::Result<Self> {
        let url = Url::parse(path)?;
        request::check_supported()?;
        Ok(Object { path: path.to_owned(), url, len })
    }

    /// Returns the URL.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "an object's length, not a collection's")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads a range with one request, unless it is empty. The answer has exactly the length of the range.
    ///
    /// # Errors
    /// `UnexpectedEof` if the range leaves the object; otherwise as [`Object::open`].
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.check(&range)?;
        if range.is_empty() {
            return Ok(vec![]);
        }
        request::send(&self.url, verb::Range(range))
    }

    /// As [`Object::read`], but returns at once, and calls `done` on another thread. Empty ranges are not allowed.
    pub fn read_then(&self, range: Range<u64>, done: impl FnOnce(io::Result<Vec<u8>>) + Send + 'static) {
        match self.check(&range) {
            Err(error) => done(Err(error)),
            Ok(()) => request::send_then(self.url.clone(), verb::Range(range), done),
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
