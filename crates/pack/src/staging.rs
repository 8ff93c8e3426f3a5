//! A folder that is written under a temporary name and renamed when it is complete.

use crate::Error;
use crate::commit::{self, Lock};
use crate::error::DestinationError;
use std::path::{Path, PathBuf};

/// The folder `.NAME.export` next to the destination; removed when dropped before it is published.
pub(crate) struct Staging {
    path: PathBuf,
    destination: PathBuf,
    _lock: Lock,
}

impl Staging {
    /// Creates a folder that will become `destination`, which must not exist or be empty. With `force`, its files will
    /// be added to an existing folder.
    ///
    /// # Errors
    /// [`DestinationError::NotEmpty`], [`DestinationError::Locked`], [`Error::Io`].
    pub(crate) fn new(destination: &Path, force: bool) -> Result<Self, Error> {
        let in_the_way = || Error::Destination(DestinationError::NotEmpty { path: destination.to_owned() });
        let name = destination.file_name().ok_or_else(in_the_way)?.to_string_lossy().into_owned();
        let free = match std::fs::read_dir(destination) {
            Ok(mut entries) => force || entries.next().is_none(),
            Err(_) => destination.symlink_metadata().is_err(),
        };
        if !free {
            return Err(in_the_way());
        }
        let parent = match destination.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        commit::create_folder(parent)?;
        let lock = Lock::try_new(parent.join(format!(".{name}.export.lock")), destination)?;
        let path = parent.join(format!(".{name}.export"));
        // A killed export left it. This process holds the lock, so no other process uses it.
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        }
        commit::create_folder(&path)?;
        Ok(Staging { path, destination: destination.to_owned(), _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a folder inside.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        commit::create_folder(&path)?;
        Ok(path)
    }

    /// Renames the folder to the destination. If the destination exists, moves the files into it one by one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn publish(self) -> Result<(), Error> {
        commit::sync_folder(&self.path)?;
        if self.destination.is_dir() {
            merge(&self.path, &self.destination)?;
        } else {
            std::fs::rename(&self.path, &self.destination).map_err(Error::io("create", &self.destination))?;
        }
        match self.destination.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => commit::sync_folder(parent),
            _ => commit::sync_folder(Path::new(".")),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After a rename the folder no longer exists. If removal fails, the next export removes it.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Moves the files of a folder into another.
fn merge(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in std::fs::read_dir(from).map_err(Error::io("list", from))? {
        let entry = entry.map_err(Error::io("list", from))?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(Error::io("read", &from))?.is_dir() {
            commit::create_folder(&to)?;
            merge(&from, &to)?;
        } else {
            std::fs::rename(&from, &to).map_err(Error::io("create", &to))?;
        }
    }
    commit::sync_folder(to)
}
