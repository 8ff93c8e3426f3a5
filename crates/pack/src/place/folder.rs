//! A folder as the place of a dataset.

use super::{Edit, NewFile, Place, succeed};
use crate::Error;
use crate::commit::{self, Directory, Lock, Temporary};
use crate::error::DestinationError;
use shardtool_format::manifest::Manifest;
use shardtool_format::names;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The lock file while the manifest is read and replaced.
const MANIFEST_LOCK: &str = ".manifest.lock";

impl Place for Directory {
    type File = Temporary;
    /// The lock of the split is released before that of the dataset.
    type Lock = (Lock, Lock);
    const AT_ONCE: NonZeroUsize = NonZeroUsize::MIN;

    fn open(path: &Path) -> Result<Option<Self>, Error> {
        Directory::open(path)
    }

    fn begin(path: &Path, lock: &str, _: bool) -> Result<(Self, Self::Lock), Error> {
        let directory = Directory::create(path)?;
        let dataset = Lock::share_dataset(&directory)?;
        let split = Lock::own(&directory, lock, directory.path())?;
        Ok((directory, (split, dataset)))
    }

    fn join(path: &Path, lock: &str, _: bool) -> Result<(Self, Self::Lock), Error> {
        let directory = Directory::create(path)?;
        let dataset = Lock::share_dataset(&directory)?;
        let split = Lock::share(&directory, lock, directory.path())?;
        Ok((directory, (split, dataset)))
    }

    /// The lock of a killed process is gone; the holder of the lock has removed its unfinished files.
    fn remove_joined(&self, _: &str) -> Result<usize, Error> {
        Ok(0)
    }

    fn path(&self) -> &Path {
        Directory::path(self)
    }

    fn read(&self, relative: &Path) -> Result<Option<Vec<u8>>, Error> {
        Directory::read(self, relative)
    }

    fn read_parts(&self, relative: &Path, take: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let path = Directory::path(self).join(relative);
        let mut file = match File::open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            file => file.map_err(Error::io("read", &path))?,
        };
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) => return Ok(true),
                read => take(&buffer[..read.map_err(Error::io("read", &path))?]),
            }
        }
    }

    fn length(&self, relative: &Path) -> Result<Option<u64>, Error> {
        let path = Directory::path(self).join(relative);
        match std::fs::metadata(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            meta => Ok(Some(meta.map_err(Error::io("read", &path))?.len())),
        }
    }

    fn names(&self, folder: &Path) -> Result<Vec<OsString>, Error> {
        Ok(self.entries_of(folder)?.into_iter().map(|entry| entry.name).collect())
    }

    fn names_at_once(&self, _: &Path) -> Result<Option<HashSet<OsString>>, Error> {
        Ok(None)
    }

    fn create(&self, relative: &Path) -> Result<Temporary, Error> {
        Temporary::new(self, relative)
    }

    fn publish(&self, relative: &Path, bytes: &[u8]) -> Result<(), Error> {
        commit::publish(self, relative, bytes)
    }

    fn publish_new(&self, relative: &Path, bytes: &[u8]) -> Result<bool, Error> {
        commit::publish_new(self, relative, bytes)
    }

    fn remove(&self, relative: &Path) -> Result<(), Error> {
        Directory::remove(self, relative)
    }

    fn create_folder(&self, relative: &Path) -> Result<(), Error> {
        Directory::create_folder(self, relative).map(drop)
    }

    fn remove_folder(&self, relative: &Path) -> Result<(), Error> {
        match Directory::remove_folder(self, relative) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => removed,
        }
    }

    fn sync(&self, folder: &Path) -> Result<(), Error> {
        match folder.as_os_str().is_empty() {
            true => Directory::sync(self),
            false => self.folder(folder)?.sync(),
        }
    }

    fn remove_abandoned(&self, folder: &Path, ours: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        commit::remove_abandoned(self, folder, ours)
    }

    fn manifest(&self) -> Result<Option<Manifest>, Error> {
        read_manifest(Directory::path(self))?.map(|json| parse(Directory::path(self), &json)).transpose()
    }

    fn edit_manifest(&self, command: &str, edit: Edit<'_>) -> Result<(), Error> {
        let _lock = Lock::wait(self, MANIFEST_LOCK)?;
        let json = read_manifest(Directory::path(self))?;
        let there = json.as_deref().map(|json| parse(Directory::path(self), json)).transpose()?;
        let Some(after) = edit(there.clone())? else { return Ok(()) };
        let manifest = match json.as_deref().zip(there.as_ref()) {
            Some(before) => succeed(self, before, after, command)?,
            None => after,
        };
        write_manifest(self, &manifest)
    }
}

impl NewFile for Temporary {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Temporary::write(self, bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        Temporary::flush(self).map(drop)
    }

    fn readable(&mut self) -> Result<PathBuf, Error> {
        Temporary::flush(self)
    }

    fn publish(self) -> Result<(), Error> {
        Temporary::publish(self)
    }
}

/// Returns the bytes of a folder's manifest; `None` if it has none.
///
/// # Errors
/// [`DestinationError::Manifest`] if it is too long; [`Error::Io`].
pub(crate) fn read_manifest(folder: &Path) -> Result<Option<Vec<u8>>, Error> {
    if_found(shardtool_read::read_manifest(&folder.join(names::MANIFEST)))
}

/// Returns the manifest of a folder, or of one in a store; `None` if it has none.
///
/// # Errors
/// [`DestinationError::Manifest`]; [`Error::Io`].
pub(crate) fn parse_manifest(folder: &Path) -> Result<Option<Manifest>, Error> {
    let parsed = shardtool_read::parse_manifest(&folder.join(names::MANIFEST));
    if_found(parsed.map(|(_, manifest)| manifest))
}

fn if_found<T>(found: shardtool_read::Result<T>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(shardtool_read::Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(shardtool_read::Error::Io { path, source, .. }) => Err(Error::io("read", &path)(source)),
        Err(shardtool_read::Error::Manifest { path, source }) => {
            Err(Error::Destination(DestinationError::Manifest { path, source }))
        }
        Err(error) => Err(error.into()),
    }
}

fn parse(folder: &Path, json: &[u8]) -> Result<Manifest, Error> {
    let path = folder.join(names::MANIFEST);
    Manifest::parse(json).map_err(|source| Error::Destination(DestinationError::Manifest { path, source }))
}

/// Replaces the manifest.
///
/// # Errors
/// [`DestinationError::Link`], [`Error::Io`].
pub(crate) fn replace_manifest(directory: &Directory, manifest: &Manifest) -> Result<(), Error> {
    let _lock = Lock::wait(directory, MANIFEST_LOCK)?;
    write_manifest(directory, manifest)
}

/// Writes the manifest under its lock.
fn write_manifest(directory: &Directory, manifest: &Manifest) -> Result<(), Error> {
    commit::remove_abandoned(directory, "", |name| name == names::MANIFEST)?;
    commit::publish(directory, Path::new(names::MANIFEST), manifest.to_json().as_bytes())?;
    Directory::sync(directory)
}
