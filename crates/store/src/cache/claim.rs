//! Which process requests a block: the one that holds the lock of its claim.

use super::folder::open;
use rustix::fs::{FlockOperation, flock};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The right to request a block. Ends when it is dropped, and when the process ends.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    file: OwnedFd,
}

impl Claim {
    /// Claims a block; `None` if it is claimed already, by this process or another one.
    pub(super) fn new(folder: &Path, id: u64) -> io::Result<Option<Self>> {
        let path = path(folder, id);
        let file = open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Claim { path, file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether somebody has claimed a block.
    pub(super) fn exists(folder: &Path, id: u64) -> bool {
        path(folder, id).exists() && matches!(Claim::new(folder, id), Ok(None))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Before the lock: whoever opened the file meanwhile has a claim that nobody else sees, and at worst requests the block
        // again.
        let _ = std::fs::remove_file(&self.path);
        // Not left to closing: a forked child may share the file.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn path(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:016x}"))
}
