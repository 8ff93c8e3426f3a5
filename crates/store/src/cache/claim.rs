//! Which process requests a block: the one that holds the lock of its claim.

use super::files::{has_name, open, try_lock};
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
        loop {
            let file = open(&path)?;
            if !try_lock(&file)? {
                return Ok(None);
            }
            // Its last owner may have removed it meanwhile.
            if has_name(&file)? {
                return Ok(Some(Claim { path, file }));
            }
        }
    }

    /// Returns whether a process has claimed a block.
    pub(super) fn exists(folder: &Path, id: u64) -> bool {
        path(folder, id).exists() && matches!(Claim::new(folder, id), Ok(None))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Before the lock ends: a process that has opened the file meanwhile then finds it without a name.
        let _ = std::fs::remove_file(&self.path);
        // Not left to closing: a forked child may share the file.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn path(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("{id:016x}"))
}
