//! Any Unix.

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Makes a file, or the names in a folder, durable.
pub(crate) fn sync(file: impl AsFd) -> io::Result<()> {
    // `fsync` of macOS leaves data in the device's cache. Not every file system has what empties it.
    #[cfg(target_os = "macos")]
    if rustix::fs::fcntl_fullfsync(file.as_fd()).is_ok() {
        return Ok(());
    }
    Ok(rustix::fs::fsync(file)?)
}

/// Makes a folder and everything below it durable, one file after the other. Links have no content.
pub(crate) fn sync_tree(folder: &OwnedFd) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let mut file_type = entry.file_type();
        if file_type == FileType::Unknown {
            let stat = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
            file_type = FileType::from_raw_mode(stat.st_mode);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match file_type {
            FileType::Directory => sync_tree(&openat(folder, name, flags | OFlags::DIRECTORY, Mode::empty())?)?,
            FileType::RegularFile => sync(openat(folder, name, flags, Mode::empty())?)?,
            _ => {}
        }
    }
    sync(folder)
}

/// What identifies a process, in addition to its id: a file in the folder for temporary files of its machine, which it holds locked
/// until it ends. Its random name is not on another machine.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct ProcessIdentity {
    /// 32 hexadecimal digits of the name; empty without a file.
    lock: String,
    /// Of this process.
    #[serde(skip)]
    held: Option<Arc<Held>>,
}

impl PartialEq for ProcessIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.lock == other.lock
    }
}

impl Eq for ProcessIdentity {}

/// A file that this process holds locked. It is removed when it is dropped.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    _file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl ProcessIdentity {
    /// Returns one of this process, which holds its lock until all clones are dropped or the process ends.
    pub(crate) fn this_process() -> Self {
        let mut random = [0; 16];
        if getrandom::fill(&mut random).is_err() {
            return Self::default();
        }
        let lock: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        match hold(path(&lock)) {
            Ok(held) => ProcessIdentity { lock, held: Some(Arc::new(held)) },
            Err(_) => Self::default(),
        }
    }

    /// Returns whether the process is known to have ended: it ran here, and its lock is free. The file is removed then.
    pub(crate) fn has_ended(&self, _pid: u32) -> bool {
        if self.lock.len() != 32 || !self.lock.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return false;
        }
        let path = path(&self.lock);
        let file = OpenOptions::new().write(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&path);
        let ended = file.is_ok_and(|file| file.try_lock().is_ok());
        if ended {
            let _ = std::fs::remove_file(path);
        }
        ended
    }
}

fn path(lock: &str) -> PathBuf {
    std::env::temp_dir().join(format!("shardtool-process-{lock}"))
}

/// Creates and locks a file. A process that looks between the two takes this one for an ended one, but no other process knows the name yet.
fn hold(path: PathBuf) -> io::Result<Held> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let held = Held { path, _file: file };
    match held._file.try_lock() {
        Ok(()) => Ok(held),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
    }
}

#[cfg(test)]
impl ProcessIdentity {
    /// Returns that of a process of this machine that has ended.
    pub(crate) fn of_ended_process() -> Self {
        let lock = Self::this_process().lock;
        File::create_new(path(&lock)).unwrap();
        ProcessIdentity { lock, held: None }
    }

    /// Returns that of a process of another machine.
    pub(crate) fn elsewhere() -> Self {
        ProcessIdentity { lock: "0123456789abcdef0123456789abcdef".to_owned(), held: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_ended_when_its_lock_is_free() {
        let mine = ProcessIdentity::this_process();
        // As another process reads it.
        let read = ProcessIdentity { lock: mine.lock.clone(), held: None };
        assert!(!read.has_ended(1) && path(&read.lock).exists());
        drop(mine);
        assert!(!path(&read.lock).exists() && !read.has_ended(1), "it has ended, or ran elsewhere");
        let killed = ProcessIdentity::of_ended_process();
        assert!(killed.has_ended(1));
        assert!(!path(&killed.lock).exists());
        assert!(!ProcessIdentity::elsewhere().has_ended(1));
        for lock in ["", "../../../etc/passwd", &"/".repeat(32)] {
            assert!(!ProcessIdentity { lock: lock.to_owned(), held: None }.has_ended(1), "{lock}");
        }
    }

    #[test]
    fn every_file_below_a_folder_is_made_durable_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/b/file"), "content").unwrap();
        std::os::unix::fs::symlink("/nonexistent", folder.path().join("a/link")).unwrap();
        let open = |path: &str| OwnedFd::from(File::open(folder.path().join(path)).unwrap());
        sync_tree(&open(".")).unwrap();
        // A file that cannot be opened is not made durable in silence.
        std::fs::write(folder.path().join("a/b/other"), "content").unwrap();
        let none = std::fs::Permissions::from(std::os::unix::fs::PermissionsExt::from_mode(0));
        std::fs::set_permissions(folder.path().join("a/b/other"), none).unwrap();
        let refused = File::open(folder.path().join("a/b/other")).is_err();
        assert_eq!(sync_tree(&open(".")).is_err(), refused);
    }
}
