//! Writes and removes whole objects, and lists them.

use crate::new_file::new_file_of;
use crate::repository::Repository;
use crate::request;
use crate::url::{Service, Url, is_url};
use crate::verb::{Commit, Describe, List, ListTimes, Payload, Put, Remove, Whole};
use crate::version::{Condition, Found, Version};
use shardtool_format::checksum::crc32c;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The time for removing what a failed operation left. A store that is down should not delay its error message for long.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// Returns the time for removing what a failed operation left.
pub(crate) fn clean_up_limit() -> Duration {
    CLEAN_UP.min(crate::time_limit())
}

/// Whether an object may exist before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced.
    Replace,
    /// It is kept, and writing fails with `AlreadyExists`.
    Keep,
}

/// Returns whether objects can be written below a URL: not to web servers, nor to the Hugging Face Hub.
///
/// # Errors
/// `InvalidInput` if the path is not a URL.
pub fn is_writable(path: &Path) -> io::Result<bool> {
    Ok(!matches!(Url::parse(path)?.service, Service::Http | Service::Hub))
}

/// Returns whether objects below a URL can be listed: not those of web servers.
///
/// # Errors
/// `InvalidInput` if the path is not a URL.
pub fn is_listed(path: &Path) -> io::Result<bool> {
    Ok(Url::parse(path)?.service != Service::Http)
}

/// Returns the same path with the commit that its revision is now, if it is of a dataset on the Hugging Face Hub and names none; any
/// other path unchanged.
///
/// # Errors
/// As [`crate::Object::open`].
pub fn pinned(path: &Path) -> io::Result<PathBuf> {
    if !is_url(path) {
        return Ok(path.to_owned());
    }
    let url = Url::parse(path)?;
    let repository = url.root.strip_prefix("hf://").and_then(|name| Repository::parse(name).ok());
    let Some((repository, _)) = repository.filter(|(repository, _)| repository.commit().is_none()) else {
        return Ok(path.to_owned());
    };
    let commit = request::send(&url, Commit)?;
    Ok(Path::new(&repository.at(&commit)).join(&url.key))
}

/// Writes an object with one request. It exists whole or not at all.
///
/// # Errors
/// `AlreadyExists`; `PermissionDenied`; `TimedOut`; `InvalidInput` if the path is not a URL; `Unsupported` without the feature
/// `remote`. After a timeout, the object may exist: read it.
pub fn put(path: &Path, bytes: Vec<u8>, existing: Existing) -> io::Result<()> {
    let condition = match existing {
        Existing::Replace => Condition::Always,
        Existing::Keep => Condition::Absent,
    };
    put_at(&Url::parse(path)?, Payload::from(bytes), condition).map(drop)
}

/// Writes an object with one request if the condition is met, and returns its version.
///
/// The answer to a request may be lost. If the request then fails, the object is read: if it has exactly these bytes, it
/// counts as written. Two writers must not write the same bytes if only one of them may succeed.
///
/// # Errors
/// `AlreadyExists` if the condition is not met; otherwise as [`put`].
pub fn put_if(path: &Path, bytes: Vec<u8>, condition: Condition<'_>) -> io::Result<Version> {
    let (url, bytes) = (Url::parse(path)?, Payload::from(bytes));
    let result = put_at(&url, bytes.clone(), condition);
    let uncertain = |error: &io::Error| {
        !matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
            && !matches!(condition, Condition::Always)
    };
    if result.as_ref().is_err_and(uncertain)
        && let Ok(Some(found)) = request::send(&url, Whole { limit: bytes.len() as u64 })
        && found.bytes == bytes
    {
        return Ok(found.version);
    }
    result
}

pub(crate) fn put_at(url: &Url, bytes: Payload, condition: Condition<'_>) -> io::Result<Version> {
    let crc = crc32c(&bytes);
    request::send(url, Put { bytes, crc, mode: condition.into() })
}

/// Reads an object whole, with its version, if it has at most `limit` bytes; `None` if it is longer.
///
/// # Errors
/// As [`crate::Object::open`].
pub fn find(path: &Path, limit: u64) -> io::Result<Option<Found>> {
    request::send(&Url::parse(path)?, Whole { limit })
}

/// Returns the names of the objects directly below a folder, in any order.
///
/// # Errors
/// As [`crate::Object::open`].
pub fn list(folder: &Path) -> io::Result<Vec<String>> {
    request::send(&Url::parse(folder)?, List::Folder)
}

/// As [`list`], of the objects below a folder, at any depth, by their paths in it.
///
/// # Errors
/// As [`list`].
pub fn list_below(folder: &Path) -> io::Result<Vec<String>> {
    request::send(&Url::parse(folder)?, List::Below)
}

/// Returns whether a store gives the versions of an object names of their own, from which it follows that it keeps those that are replaced or
/// removed. Only S3 and Azure say so: they name a version only if the bucket keeps versions.
///
/// # Errors
/// As [`crate::Object::open`].
pub fn keeps_versions(path: &Path) -> io::Result<bool> {
    let url = Url::parse(path)?;
    if !matches!(url.service, Service::S3 | Service::Azure) {
        return Ok(false);
    }
    let named = request::send(&url, Describe { checksum: false })?.version.generation;
    // The version of an object that was written while the bucket kept none.
    Ok(named.is_some_and(|name| name != "null"))
}

/// As [`list`], with the time at which each object was written, by the store's clock.
///
/// # Errors
/// As [`crate::Object::open`].
pub fn list_with_times(folder: &Path) -> io::Result<Vec<(String, SystemTime)>> {
    request::send(&Url::parse(folder)?, ListTimes)
}

/// Returns whether no object lies in a folder or below it, other than those with `ignored` in their names.
///
/// # Errors
/// As [`list`].
pub fn is_empty(folder: &Path, ignored: &'static str) -> io::Result<bool> {
    request::send(&Url::parse(folder)?, List::Any { ignored }).map(|names| names.is_empty())
}

/// As [`list`], of the objects whose names begin with `start`: the others, which may be many, are not listed.
///
/// # Errors
/// As [`list`].
pub fn list_beginning(folder: &Path, start: &'static str) -> io::Result<Vec<String>> {
    let url = Url::parse(folder)?;
    if matches!(url.service, Service::Hdfs | Service::Hub) {
        // They list folders, not names from one on.
        let names = request::send(&url, List::Folder)?;
        return Ok(names.into_iter().filter(|name| name.starts_with(start)).collect());
    }
    request::send(&url, List::Beginning(start))
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

/// Removes an object if it exists.
///
/// # Errors
/// As [`put`].
pub fn remove(path: &Path) -> io::Result<()> {
    request::send(&Url::parse(path)?, Remove { limit: crate::time_limit() })
}

/// As [`remove`], within ten seconds: what a failed operation left.
///
/// # Errors
/// As [`put`].
pub fn clean_up(path: &Path) -> io::Result<()> {
    request::send(&Url::parse(path)?, Remove { limit: clean_up_limit() })
}
