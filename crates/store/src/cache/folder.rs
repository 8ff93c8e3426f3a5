//! The folder of a cache: who uses it, how many bytes it holds.

use super::files::{open, retry, try_lock};
use super::system;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder inside the one that the user names. Another layout gets another number.
const NAME: &str = "shardtool-cache-1";

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Held while the cache is in use.
    _lock: OwnedFd,
}

impl Folder {
    /// Creates or opens the folder. The first process that opens it counts its bytes and removes what killed processes left.
    pub(super) fn open(path: &Path, block: u64) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        // The process may change its folder.
        let path = &std::path::absolute(path)?;
        let path = if block == super::BLOCK { path.join(NAME) } else { path.join(format!("{NAME}-{block}")) };
        for folder in [path.clone(), path.join("blocks"), path.join("claims"), path.join("users")] {
            match DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => check_own(&folder)?,
            }
        }
        let lock = open(&path.join("lock"))?;
        let alone = try_lock(&lock)?;
        if !alone {
            // Waits for a process that is counting.
            retry(|| flock(&lock, FlockOperation::LockShared))?;
        }
        let folder = Folder { path, _lock: lock };
        if alone {
            for name in ["claims", "users"] {
                for entry in std::fs::read_dir(folder.path.join(name))? {
                    let _ = std::fs::remove_file(entry?.path());
                }
            }
            system::check_file_system(&folder.path, super::BLOCK)?;
            folder.count()?;
            retry(|| flock(&folder._lock, FlockOperation::LockShared))?;
        }
        Ok(folder)
    }

    pub(super) fn blocks(&self) -> PathBuf {
        self.path.join("blocks")
    }

    pub(super) fn claims(&self) -> PathBuf {
        self.path.join("claims")
    }

    pub(super) fn users(&self) -> PathBuf {
        self.path.join("users")
    }

    /// Returns the bytes of all blocks.
    pub(super) fn used(&self) -> io::Result<u64> {
        self.change(|used| used)
    }

    /// Adds bytes, if the sum does not exceed `most`.
    pub(super) fn reserve(&self, bytes: u64, most: u64) -> io::Result<bool> {
        let mut fits = false;
        self.change(|used| {
            fits = used.saturating_add(bytes) <= most;
            if fits { used + bytes } else { used }
        })?;
        Ok(fits)
    }

    pub(super) fn release(&self, bytes: u64) -> io::Result<()> {
        self.change(|used| used.saturating_sub(bytes)).map(drop)
    }

    /// Returns the bytes that the file system has for this user.
    pub(super) fn free_space(&self) -> io::Result<u64> {
        let found = rustix::fs::statvfs(&self.path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Replaces the count of bytes by what `change` returns, alone among all processes. A process that is killed in between
    /// leaves a wrong count, at most a block for each of its requests, until a process opens the cache alone.
    fn change(&self, change: impl FnOnce(u64) -> u64) -> io::Result<u64> {
        // Opened each time: a lock belongs to an open file, which a forked child shares.
        let file = open(&self.path.join("used"))?;
        retry(|| flock(&file, FlockOperation::LockExclusive))?;
        let file = File::from(file);
        let mut bytes = [0; 8];
        let before = if file.read_exact_at(&mut bytes, 0).is_ok() { u64::from_le_bytes(bytes) } else { 0 };
        let after = change(before);
        if after != before {
            file.write_all_at(&after.to_le_bytes(), 0)?;
        }
        Ok(after)
    }

    /// Counts the bytes of all blocks.
    fn count(&self) -> io::Result<()> {
        let bytes = system::bytes_of_blocks(&self.blocks())?;
        self.change(|_| bytes).map(drop)
    }
}

/// Returns an error unless a path is a folder of this user, and not a link: its files may be removed.
fn check_own(path: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    if found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let problem = format!("{} is not a folder of this user", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}
