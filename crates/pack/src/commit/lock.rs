//! Locks: empty, locked files, which exist while a lock is held. A killed process leaves the file, but not the lock.

use super::Directory;
use crate::Error;
use crate::error::DestinationError;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The lock of a dataset.
const DATASET: &str = ".dataset.lock";
/// How often a lock that another process holds is tried. One that holds it only to remove the file is done by then.
const TRIES: u32 = 5;
const BETWEEN: Duration = Duration::from_millis(2);

/// A lock that is held.
pub(crate) struct Lock {
    directory: Directory,
    name: String,
    file: File,
}

impl Lock {
    /// Takes a dataset's lock for a process that writes files of one split. Several processes may hold it.
    ///
    /// # Errors
    /// [`DestinationError::Locked`] if a process has the dataset alone; [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn share_dataset(directory: &Directory) -> Result<Self, Error> {
        Self::try_take(directory, DATASET, directory.path(), File::try_lock_shared)
    }

    /// Takes a dataset's lock for a process that may write any of its files.
    ///
    /// # Errors
    /// [`DestinationError::Locked`] if another process writes the dataset; [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn own_dataset(directory: &Directory) -> Result<Self, Error> {
        Self::try_take(directory, DATASET, directory.path(), File::try_lock)
    }

    /// Takes a lock that one process can hold.
    ///
    /// # Errors
    /// [`DestinationError::Locked`], which names `what` the holder writes; [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn own(directory: &Directory, name: &str, what: &Path) -> Result<Self, Error> {
        Self::try_take(directory, name, what, File::try_lock)
    }

    /// Takes a lock that several processes can hold, if none has taken it with [`Lock::own`].
    ///
    /// # Errors
    /// As [`Lock::own`].
    pub(crate) fn share(directory: &Directory, name: &str, what: &Path) -> Result<Self, Error> {
        Self::try_take(directory, name, what, File::try_lock_shared)
    }

    /// Takes a lock that one process can hold, waiting for it.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn wait(directory: &Directory, name: &str) -> Result<Self, Error> {
        Self::take(directory, name, |file| file.lock().map_err(Error::io("lock", &directory.path().join(name))))
    }

    /// Returns whether a file name is that of a dataset's lock.
    pub(crate) fn is_of_dataset(name: &std::ffi::OsStr) -> bool {
        name == DATASET
    }

    fn try_take(
        directory: &Directory,
        name: &str,
        what: &Path,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, Error> {
        let path = directory.path().join(name);
        let mut tries = 0;
        Self::take(directory, name, |file| {
            loop {
                match lock(file) {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) if tries < TRIES => {
                        tries += 1;
                        sleep(BETWEEN);
                    }
                    Err(TryLockError::WouldBlock) => {
                        let (what, lock) = (what.to_owned(), path.clone());
                        return Err(Error::Destination(DestinationError::Locked { what, lock }));
                    }
                    Err(TryLockError::Error(e)) => return Err(Error::io("lock", &path)(e)),
                }
            }
        })
    }

    fn take(
        directory: &Directory,
        name: &str,
        mut lock: impl FnMut(&File) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        loop {
            let file = directory.open_lock(name)?;
            lock(&file)?;
            // The previous holder may have removed the file between opening and locking.
            let ours = file.metadata().map_err(Error::io("lock", &directory.path().join(name)))?.ino();
            if directory.inode(name)? == Some(ours) {
                return Ok(Lock { directory: directory.clone(), name: name.to_owned(), file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while this process alone holds the lock, so that no process holds the lock of a file without a name. A
        // file with content was not made here. If removal fails, a later run reuses the file.
        let empty = self.file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0);
        if empty && self.file.try_lock().is_ok() {
            let _ = self.directory.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(lock: Result<Lock, Error>) -> bool {
        matches!(lock, Err(Error::Destination(DestinationError::Locked { .. })))
    }

    #[test]
    fn lock_has_one_holder_and_its_file_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Directory::create(temp.path()).unwrap();
        let held = Lock::own(&folder, ".lock", temp.path()).unwrap();
        assert!(refused(Lock::own(&folder, ".lock", temp.path())));
        drop(held);
        assert!(!folder.exists(".lock").unwrap());
        drop(Lock::wait(&folder, ".lock").unwrap());
        assert!(!folder.exists(".lock").unwrap());
    }

    #[test]
    fn shared_lock_keeps_its_file_until_the_last_holder_ends() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Directory::create(temp.path()).unwrap();
        let (first, second) = (Lock::share_dataset(&folder).unwrap(), Lock::share_dataset(&folder).unwrap());
        assert!(refused(Lock::own_dataset(&folder)));
        drop(first);
        assert!(refused(Lock::own_dataset(&folder)), "the second still holds it");
        drop(second);
        assert!(!folder.exists(DATASET).unwrap());
        let alone = Lock::own_dataset(&folder).unwrap();
        assert!(refused(Lock::share_dataset(&folder)));
        drop(alone);
    }

    #[test]
    fn lock_changes_no_file_that_it_finds() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Directory::create(temp.path()).unwrap();
        std::fs::write(temp.path().join(DATASET), "mine").unwrap();
        drop(Lock::own_dataset(&folder).unwrap());
        assert_eq!(std::fs::read(temp.path().join(DATASET)).unwrap(), b"mine");
    }
}
