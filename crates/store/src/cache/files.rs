//! Opens and locks files of a cache.

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Repeats a call that a signal has interrupted.
pub(super) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

/// Takes the exclusive lock of a file. Returns false if another process holds it.
pub(super) fn try_lock(file: &OwnedFd) -> io::Result<bool> {
    retry(|| match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        result => result.map(|()| true),
    })
}

/// Returns whether an open file still has a name: it was not removed between its opening and its lock.
pub(super) fn has_name(file: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstat(file)?.st_nlink > 0)
}

/// Opens a file for reading and writing, or creates it. Follows no link.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?)
}
