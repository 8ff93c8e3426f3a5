//! Writes objects: small ones at once, large ones in parts.

use crate::object::unsupported_unless_remote;
#[cfg(feature = "remote")]
use crate::request;
use crate::url::{Service, Url};
use std::io;
use std::path::Path;

/// Bytes of a part of an upload, except the last one.
pub const PART_BYTES: usize = 8 << 20;

/// Whether an object may exist before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced.
    Replace,
    /// It is kept, and writing fails with `AlreadyExists`.
    Keep,
}

/// Returns whether objects can be written below a URL: not to web servers.
///
/// # Errors
/// Those of [`Url::parse`].
pub fn is_writable(path: &Path) -> io::Result<bool> {
    Ok(Url::parse(path)?.service != Service::Http)
}

/// Writes an object with one request. It exists whole or not at all.
///
/// # Errors
/// `AlreadyExists`; `PermissionDenied`; `TimedOut`; those of [`Url::parse`]; `Unsupported` without the feature `remote`.
/// After a timeout, the object may exist: read it.
pub fn put(path: &Path, bytes: Vec<u8>, existing: Existing) -> io::Result<()> {
    let url = Url::parse(path)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    return request::put(&url, bytes, existing);
    #[cfg(not(feature = "remote"))]
    {
        let _ = (url, bytes, existing);
        Ok(())
    }
}

/// Removes an object if it exists.
///
/// # Errors
/// As [`put`].
pub fn remove(path: &Path) -> io::Result<()> {
    let url = Url::parse(path)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    return request::remove(&url);
    #[cfg(not(feature = "remote"))]
    {
        let _ = url;
        Ok(())
    }
}

/// An object that is written in parts of [`PART_BYTES`], of which a few are under way at once. It exists once
/// [`Upload::finish`] has returned. Dropping it before removes the parts.
pub struct Upload {
    #[cfg(feature = "remote")]
    parts: request::Parts,
    buffer: Vec<u8>,
}

impl Upload {
    /// Starts an upload, without a request. An existing object is replaced.
    ///
    /// # Errors
    /// Those of [`Url::parse`]; `Unsupported` without the feature `remote`.
    pub fn new(path: &Path) -> io::Result<Self> {
        let url = Url::parse(path)?;
        unsupported_unless_remote()?;
        #[cfg(not(feature = "remote"))]
        drop(url);
        Ok(Upload {
            #[cfg(feature = "remote")]
            parts: request::Parts::new(url),
            buffer: vec![],
        })
    }

    /// Appends bytes. Waits while too many parts are under way.
    ///
    /// # Errors
    /// As [`put`], for this part or an earlier one.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.buffer.capacity() == 0 {
                self.buffer.reserve_exact(PART_BYTES);
            }
            let now = bytes.len().min(PART_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(&bytes[..now]);
            bytes = &bytes[now..];
            if self.buffer.len() == PART_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let part = std::mem::take(&mut self.buffer);
        #[cfg(feature = "remote")]
        return self.parts.send(part);
        #[cfg(not(feature = "remote"))]
        {
            drop(part);
            Ok(())
        }
    }

    /// Waits for all parts and puts the object in place.
    ///
    /// # Errors
    /// As [`put`].
    pub fn finish(mut self) -> io::Result<()> {
        let last = std::mem::take(&mut self.buffer);
        #[cfg(feature = "remote")]
        return self.parts.finish(last);
        #[cfg(not(feature = "remote"))]
        {
            drop(last);
            Ok(())
        }
    }
}
