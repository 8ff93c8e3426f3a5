//! Writes objects: small ones at once, large ones in parts.

use crate::object::unsupported_unless_remote;
use crate::url::{Service, Url};
#[cfg(feature = "remote")]
use crate::versions;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Bytes of a part of an upload, except the last one.
pub const PART_BYTES: usize = 8 << 20;

/// The time for removing what a failed operation left. A store that is down should not delay its error message for long.
pub(crate) const CLEAN_UP: Duration = Duration::from_secs(10);

/// Whether an object may exist before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced.
    Replace,
    /// It is kept, and writing fails with `AlreadyExists`.
    Keep,
}

/// The version of an object, as the store names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub(crate) e_tag: Option<String>,
    pub(crate) generation: Option<String>,
}

/// The condition under which [`put_if`] writes.
#[derive(Debug, Clone, Copy)]
pub enum Condition<'a> {
    /// None.
    Always,
    /// The object does not exist.
    Absent,
    /// The object still has this version.
    Unchanged(&'a Version),
}

/// A whole object.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its version.
    pub version: Version,
    /// When it was written, by the clock of the store, in whole seconds.
    pub modified: SystemTime,
}

/// Called with the id of an upload before its first part is sent.
pub type Journal = Box<dyn FnOnce(&str) -> io::Result<()> + Send>;

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
    return match existing {
        Existing::Replace => versions::put(&url, bytes, Condition::Always).map(drop),
        Existing::Keep => versions::put(&url, bytes, Condition::Absent).map(drop),
    };
    #[cfg(not(feature = "remote"))]
    {
        let _ = (url, bytes, existing);
        Ok(())
    }
}

/// Writes an object with one request if the condition is met, and returns its version.
///
/// The answer to a request may be lost. If the request then fails, the object is read: if it has exactly these bytes, it
/// counts as written. Two writers must not write the same bytes if only one of them may succeed.
///
/// # Errors
/// `AlreadyExists` if the condition is not met; otherwise as [`put`].
pub fn put_if(path: &Path, bytes: Vec<u8>, condition: Condition<'_>) -> io::Result<Version> {
    let url = Url::parse(path)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    {
        let result = versions::put(&url, bytes.clone(), condition);
        let uncertain = |error: &io::Error| {
            !matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
                && !matches!(condition, Condition::Always)
        };
        if result.as_ref().is_err_and(uncertain)
            && let Ok(Some(found)) = versions::found(&url, bytes.len() as u64)
            && found.bytes == bytes
        {
            return Ok(found.version);
        }
        result
    }
    #[cfg(not(feature = "remote"))]
    {
        let _ = (url, bytes, condition);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Reads an object whole, with its version, if it has at most `limit` bytes; `None` if it is longer.
///
/// # Errors
/// As [`crate::Object::open`].
pub fn find(path: &Path, limit: u64) -> io::Result<Option<Found>> {
    let url = Url::parse(path)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    return versions::found(&url, limit);
    #[cfg(not(feature = "remote"))]
    {
        let _ = (url, limit);
        Ok(None)
    }
}

/// Returns the names of the objects directly below a folder, in any order.
///
/// # Errors
/// As [`crate::Object::open`].
pub fn list(folder: &Path) -> io::Result<Vec<String>> {
    let url = Url::parse(folder)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    return versions::list(&url);
    #[cfg(not(feature = "remote"))]
    {
        drop(url);
        Ok(vec![])
    }
}

/// Returns whether no object lies in a folder or below it, other than those with `ignored` in their names.
///
/// # Errors
/// As [`list`].
pub fn is_empty(folder: &Path, ignored: &'static str) -> io::Result<bool> {
    let url = Url::parse(folder)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    return versions::is_empty(&url, ignored);
    #[cfg(not(feature = "remote"))]
    {
        let _ = (url, ignored);
        Ok(true)
    }
}

/// As [`list`], of the objects whose names begin with `start`: the others, which may be many, are not listed.
///
/// # Errors
/// As [`list`].
pub fn list_beginning(folder: &Path, start: &'static str) -> io::Result<Vec<String>> {
    let url = Url::parse(folder)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    return versions::list_beginning(&url, start);
    #[cfg(not(feature = "remote"))]
    {
        drop((url, start));
        Ok(vec![])
    }
}

/// Returns the names of files in a folder that killed processes did not finish, each with the name that it would have had. Only
/// HDFS has such files; other stores are not asked.
///
/// # Errors
/// As [`list`].
pub fn unfinished(folder: &Path) -> io::Result<Vec<(String, String)>> {
    if Url::parse(folder)?.service != Service::Hdfs {
        return Ok(vec![]);
    }
    let with_name = |new: String| Some((new.clone(), new_file_of(&new)?.to_owned()));
    Ok(list(folder)?.into_iter().filter_map(with_name).collect())
}

/// What the names of files of HDFS end with that are being written: `.NAME.DIGITS.new`.
pub(crate) const NEW: &str = ".new";

/// Returns the name that a file of HDFS will have when it is complete; `None` if this is not the name of a new file.
pub(crate) fn new_file_of(new: &str) -> Option<&str> {
    let (name, digits) = new.strip_prefix('.')?.strip_suffix(NEW)?.rsplit_once('.')?;
    let valid = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (valid && !name.is_empty() && !name.contains('/')).then_some(name)
}

/// Removes an object if it exists.
///
/// # Errors
/// As [`put`].
pub fn remove(path: &Path) -> io::Result<()> {
    remove_within(path, crate::time_limit())
}

/// As [`remove`], within ten seconds: what a failed operation left.
///
/// # Errors
/// As [`put`].
pub fn clean_up(path: &Path) -> io::Result<()> {
    remove_within(path, CLEAN_UP.min(crate::time_limit()))
}

fn remove_within(path: &Path, limit: Duration) -> io::Result<()> {
    let url = Url::parse(path)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    return versions::remove(&url, limit);
    #[cfg(not(feature = "remote"))]
    {
        let _ = (url, limit);
        Ok(())
    }
}

/// Ends the upload of an object that a killed process began, and removes its parts. `id` is what its [`Journal`] received.
/// An upload that the store does not know is no error, and neither are
/// credentials that may not end uploads.
///
/// # Errors
/// As [`put`].
pub fn abort_upload(path: &Path, id: &str) -> io::Result<()> {
    let url = Url::parse(path)?;
    unsupported_unless_remote()?;
    #[cfg(feature = "remote")]
    return crate::upload::abort(&url, id.to_owned());
    #[cfg(not(feature = "remote"))]
    {
        let _ = (url, id);
        Ok(())
    }
}

/// An object that is written in parts of [`PART_BYTES`], of which a few are under way at once. It exists once
/// [`Upload::finish`] has returned. Dropping it before removes the parts.
pub struct Upload {
    #[cfg(feature = "remote")]
    parts: crate::upload::Parts,
    buffer: Vec<u8>,
}

impl Upload {
    /// Starts an upload, without a request. An existing object is replaced.
    ///
    /// # Errors
    /// Those of [`Url::parse`]; `Unsupported` without the feature `remote`.
    pub fn new(path: &Path) -> io::Result<Self> {
        Self::begin(path, None)
    }

    /// As [`Upload::new`]. If the object has several parts, `journal` is called before the first one is sent, so that
    /// [`abort_upload`] can remove the parts of a process that was killed.
    ///
    /// # Errors
    /// As [`Upload::new`].
    pub fn with_journal(path: &Path, journal: Journal) -> io::Result<Self> {
        Self::begin(path, Some(journal))
    }

    fn begin(path: &Path, journal: Option<Journal>) -> io::Result<Self> {
        let url = Url::parse(path)?;
        unsupported_unless_remote()?;
        #[cfg(not(feature = "remote"))]
        drop((url, journal));
        Ok(Upload {
            #[cfg(feature = "remote")]
            parts: crate::upload::Parts::new(url, journal),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_have_the_names_of_files_in_them() {
        assert_eq!(new_file_of(".train-00000.tfrecord.0123456789abcdef.new"), Some("train-00000.tfrecord"));
        assert_eq!(new_file_of("..pack-train.lock.0123456789abcdef.new"), Some(".pack-train.lock"));
        for other in ["train.0123456789abcdef.new", ".train.new", ".train.0123.new", ".a/b.0123456789abcdef.new"] {
            assert_eq!(new_file_of(other), None, "{other}");
        }
    }
}
