//! Atomic creation of files: a file is written under a temporary name, fsynced and renamed, so under its final name it
//! is either complete or absent.

use crate::Error;
use crate::error::DestinationError;
use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file under the temporary name `.NAME.tmp`; removed when dropped before it is published.
pub(crate) struct Temporary {
    temporary: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
    published: bool,
}

impl Temporary {
    /// Creates the temporary file, replacing one that a killed process left.
    pub(crate) fn new(path: PathBuf) -> Result<Self, Error> {
        let name = path.file_name().expect("the path of a file").to_string_lossy();
        let temporary = path.with_file_name(temporary_name(&name));
        let file = File::create(&temporary).map_err(Error::io("create", &temporary))?;
        // Large enough to collect small records; larger records bypass the buffer.
        let file = BufWriter::with_capacity(64 << 10, file);
        Ok(Temporary { temporary, path, file, published: false })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(Error::io("write", &self.temporary))
    }

    /// Passes the bytes written so far to the system. Returns the path under which they can be read.
    pub(crate) fn flush(&mut self) -> Result<&Path, Error> {
        self.file.flush().map_err(Error::io("write", &self.temporary))?;
        Ok(&self.temporary)
    }

    /// Makes the bytes durable and renames the file. The new name is durable after [`sync_folder`].
    pub(crate) fn publish(mut self) -> Result<(), Error> {
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).map_err(Error::io("write", &self.temporary))?;
        std::fs::rename(&self.temporary, &self.path).map_err(Error::io("create", &self.path))?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.published {
            // If this fails, the next run replaces the file.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Returns the temporary name of a file.
pub(crate) fn temporary_name(name: &str) -> String {
    format!(".{name}.tmp")
}

/// Writes a file atomically.
pub(crate) fn publish(path: PathBuf, bytes: &[u8]) -> Result<(), Error> {
    let mut file = Temporary::new(path)?;
    file.write(bytes)?;
    file.publish()
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(Error::io("write", path))
}

/// Creates a folder and its parents, and makes their names durable.
pub(crate) fn create_folder(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(path).map_err(Error::io("create the folder", path))?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => sync_folder(Path::new(".")),
    }
}

/// Removes a file, if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

/// Returns the bytes of a file, or `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

/// A lock: an empty, locked file that exists while the lock is held. A killed process leaves the file, but not the
/// lock.
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock, or fails if another process holds it.
    ///
    /// # Errors
    /// [`DestinationError::Locked`], which names `what` the holder writes.
    pub(crate) fn try_new(path: PathBuf, what: &Path) -> Result<Self, Error> {
        let locked =
            |path: &PathBuf| Error::Destination(DestinationError::Locked { what: what.to_owned(), lock: path.clone() });
        Self::take(path, |file, path| match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(locked(path)),
            Err(TryLockError::Error(e)) => Err(Error::io("lock", path)(e)),
        })
    }

    /// Takes the lock, waiting for it.
    pub(crate) fn wait(path: PathBuf) -> Result<Self, Error> {
        Self::take(path, |file, path| file.lock().map_err(Error::io("lock", path)))
    }

    fn take(path: PathBuf, lock: impl Fn(&File, &PathBuf) -> Result<(), Error>) -> Result<Self, Error> {
        loop {
            let file = File::create(&path).map_err(Error::io("create", &path))?;
            lock(&file, &path)?;
            // The previous holder may have removed the file between `create` and `lock`.
            let ours = file.metadata().map_err(Error::io("lock", &path))?.ino();
            if std::fs::metadata(&path).is_ok_and(|named| named.ino() == ours) {
                return Ok(Lock { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while still locked, so that it is not another process's lock. If removal fails, a later run reuses
        // the file.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpublished_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Temporary::new(folder.path().join("a")).unwrap();
        file.write(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        publish(folder.path().join("a"), b"whole").unwrap();
        assert_eq!(read(&folder.path().join("a")).unwrap().unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn lock_has_one_holder_and_its_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let held = Lock::try_new(path.clone(), folder.path()).unwrap();
        assert!(matches!(
            Lock::try_new(path.clone(), folder.path()),
            Err(Error::Destination(DestinationError::Locked { .. }))
        ));
        drop(held);
        assert!(!path.exists());
        drop(Lock::wait(path.clone()).unwrap());
        assert!(!path.exists());
    }
}
