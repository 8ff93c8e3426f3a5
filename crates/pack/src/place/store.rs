//! A folder of a store as the place of a dataset.

use super::claim::Claim;
use super::probe::{is_probe, probe};
use super::{CHANGE_LOCK, Edit, NewFile, Place, succeed};
use crate::Error;
use crate::error::DestinationError;
use crate::ordered::ordered;
use shardtool_format::manifest::{self, Manifest};
use shardtool_format::names;
use shardtool_read::{Access, FileBytes};
use shardtool_store::{Condition, Existing, Found, Object, PART_BYTES, REFETCHES, Upload, Version, time_limit};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Files that are read whole have at most this number of bytes.
const MAX_BYTES: u64 = 1 << 32;
/// What the names of the claims of processes that write a split begin and end with.
const PACK: &str = ".pack-";
const LOCK_END: &str = ".lock";
/// What the names of the claims of joined processes end with.
const JOINED: &str = ".joined";
/// How long a process waits before it asks again whether it may join.
const WAIT: Duration = Duration::from_millis(500);
/// How often the manifest is read again because another process has changed it.
const EDITS: u32 = 20;

/// A folder of a store.
#[derive(Clone)]
pub(crate) struct StoreFolder {
    path: PathBuf,
    /// Whether the store compares versions.
    conditional: bool,
    /// Whether this process has [`CHANGE_LOCK`], or has joined with it.
    changes: bool,
    /// `None` if the folder is only read.
    claim: Option<Arc<Claim>>,
}

/// An object that is being uploaded.
pub(crate) struct NewObject {
    folder: StoreFolder,
    name: String,
    path: PathBuf,
    /// `None` once it is in place.
    upload: Option<Upload>,
}

/// The manifest as the store has it.
struct StoredManifest {
    json: Vec<u8>,
    manifest: Manifest,
    version: Version,
}

impl StoreFolder {
    /// Opens a folder for writing, and finds out what its store does. Returns the time by the store's clock as well.
    fn probed(path: &Path, lock: &str, single_writer: bool) -> Result<(Self, SystemTime), Error> {
        let Some(mut folder) = Self::open(path)? else {
            return Err(Error::io("write", path)(ErrorKind::NotFound.into()));
        };
        folder.conditional = !single_writer;
        let now = probe(path, lock, folder.conditional)?;
        let copying = path.join(crate::copy::CLAIM);
        if Object::open(&copying).map(Some).or_else(absent_as_none).map_err(Error::io("read", &copying))?.is_some() {
            return Err(Error::Destination(DestinationError::Copying { destination: path.to_owned(), claim: copying }));
        }
        Ok((folder, now))
    }

    /// Opens a folder for a process that removes files: none that joined with the lock of this name is running, and none joins while this
    /// one has it.
    ///
    /// # Errors
    /// [`DestinationError::Claimed`], [`DestinationError::NoConditions`], [`Error::Io`].
    pub(crate) fn alone(path: &Path, lock: &str, single_writer: bool) -> Result<Self, Error> {
        let (folder, ()) = Self::begin(path, lock, single_writer)?;
        for name in folder.names(Path::new(""))?.iter().filter_map(|name| name.to_str()) {
            if is_joined(name, lock) {
                drop(folder.take_joined(lock, name)?);
            }
        }
        Ok(folder)
    }

    /// Refuses a process that packs, or begins or writes the tasks of a split, and ends the uploads of those that have ended.
    ///
    /// # Errors
    /// [`DestinationError::Claimed`], [`Error::Io`].
    pub(crate) fn refuse_packs(&self) -> Result<(), Error> {
        for name in self.names(Path::new(""))?.iter().filter_map(|name| name.to_str()) {
            if name.starts_with(PACK) && (name.ends_with(LOCK_END) || name.ends_with(JOINED)) {
                drop(self.take_joined(CHANGE_LOCK, name)?);
            }
        }
        Ok(())
    }

    /// Returns the files in these folders that were written at least `age` before the lock of this name, which this process has just
    /// taken: no process is about to name them. Both times are by the store's clock. Without the lock, the time is this machine's.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn old(&self, lock: &str, folders: &[&str], age: Duration) -> Result<HashSet<PathBuf>, Error> {
        let mut files = vec![];
        for folder in folders {
            let path = self.path.join(folder);
            let listed = shardtool_store::list_with_times(&path).map_err(Error::io("list", &path))?;
            files.extend(listed.into_iter().map(|(name, time)| (Path::new(folder).join(name), time)));
        }
        let taken = files.iter().find(|(path, _)| path == Path::new(lock)).map(|(_, time)| *time);
        let since = taken.unwrap_or_else(SystemTime::now).checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        Ok(files.into_iter().filter(|(_, time)| *time <= since).map(|(path, _)| path).collect())
    }

    /// Takes over the claim of a process that had joined and has ended, which ends its uploads.
    fn take_joined(&self, lock: &str, name: &str) -> Result<Claim, Error> {
        let now = probe(&self.path, lock, self.conditional)?;
        Claim::take(self.path.join(name), &self.path, self.conditional, now)
    }

    /// Removes the probes that killed processes left. One that is running makes another.
    fn remove_probes(&self, lock: &str) -> Result<(), Error> {
        for name in self.names(Path::new(""))? {
            if name.to_str().is_some_and(|name| is_probe(name, lock)) {
                self.remove(Path::new(&name))?;
            }
        }
        Ok(())
    }

    /// Joins the processes that change a dataset: a purge writes manifests of earlier versions again, and a process that has read one of
    /// them before must not put it back. Waits as long as a request may take for a process that is alone.
    fn join_changes(&self) -> Result<Self, Error> {
        let since = Instant::now();
        loop {
            match Self::join(&self.path, CHANGE_LOCK, !self.conditional) {
                Err(Error::Destination(DestinationError::Claimed { .. })) if since.elapsed() < time_limit() => {
                    std::thread::sleep(WAIT);
                }
                joined => return joined.map(|(folder, ())| folder),
            }
        }
    }

    fn checked(&self) -> Result<(), Error> {
        self.claim.as_ref().map_or(Ok(()), |claim| claim.check())
    }

    /// Returns the manifest; `None` if it does not exist. One that is damaged is requested again, until two answers are
    /// equal.
    fn stored_manifest(&self) -> Result<Option<StoredManifest>, Error> {
        let path = self.path.join(names::MANIFEST);
        let damaged = |source| Error::Destination(DestinationError::Manifest { path: path.clone(), source });
        let mut before = None;
        loop {
            let found = match shardtool_store::find(&path, manifest::MAX_BYTES) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                found => found.map_err(Error::io("read", &path))?,
            };
            let Some(Found { bytes, version, .. }) = found else {
                manifest::check_length(manifest::MAX_BYTES + 1).map_err(damaged)?;
                return Err(Error::io("read", &path)(ErrorKind::FileTooLarge.into()));
            };
            match Manifest::parse(&bytes) {
                Ok(manifest) => return Ok(Some(StoredManifest { json: bytes, manifest, version })),
                Err(error) if before.as_ref() == Some(&bytes) => return Err(damaged(error)),
                Err(_) => before = Some(bytes),
            }
        }
    }
}

impl Place for StoreFolder {
    type File = NewObject;
    type Lock = ();
    const AT_ONCE: NonZeroUsize = const { NonZeroUsize::new(16).unwrap() };

    fn open(path: &Path) -> Result<Option<Self>, Error> {
        super::check_writable(path)?;
        Ok(Some(StoreFolder { path: path.to_owned(), conditional: false, changes: false, claim: None }))
    }

    fn begin(path: &Path, lock: &str, single_writer: bool) -> Result<(Self, ()), Error> {
        let (mut folder, now) = Self::probed(path, lock, single_writer)?;
        folder.claim = Some(Arc::new(Claim::take(path.join(lock), path, folder.conditional, now)?));
        folder.changes = lock == CHANGE_LOCK;
        folder.remove_probes(lock)?;
        let ours = |name: &str| name == lock || is_probe(name, lock);
        folder.remove_abandoned(Path::new(""), &ours)?;
        Ok((folder, ()))
    }

    fn join(path: &Path, lock: &str, single_writer: bool) -> Result<(Self, ()), Error> {
        let joined = joined_name(lock);
        let (mut folder, now) = Self::probed(path, &joined, single_writer)?;
        // In this order: a process that takes the lock sees this claim, or this process sees the lock.
        folder.claim = Some(Arc::new(Claim::take(path.join(joined), path, folder.conditional, now)?));
        Claim::refuse_taken(&path.join(lock), path, folder.conditional, now)?;
        folder.changes = lock == CHANGE_LOCK;
        Ok((folder, ()))
    }

    /// Takes over the claims of processes that have ended, which ends their uploads, and drops them.
    fn remove_joined(&self, lock: &str) -> Result<usize, Error> {
        self.remove_probes(lock)?;
        let mut running = 0;
        for name in self.names(Path::new(""))?.iter().filter_map(|name| name.to_str()) {
            if !is_joined(name, lock) {
                continue;
            }
            match self.take_joined(lock, name) {
                Err(Error::Destination(DestinationError::Claimed { .. })) => running += 1,
                taken => drop(taken?),
            }
        }
        Ok(running)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the object until two answers are equal: the network may have changed one, and not all objects have a CRC.
    fn read(&self, relative: &Path) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path.join(relative);
        let read = || match shardtool_store::read_whole(&path, MAX_BYTES) {
            Err(error) => absent_as_none(error),
            Ok(None) => Err(ErrorKind::FileTooLarge.into()),
            Ok(bytes) => Ok(bytes),
        };
        let error = || Error::io("read", &path);
        let Some(mut bytes) = read().map_err(error())? else { return Ok(None) };
        for _ in 0..=REFETCHES {
            let again = read().map_err(error())?;
            if again.as_ref() == Some(&bytes) {
                return Ok(again);
            }
            let Some(again) = again else { return Ok(None) };
            shardtool_store::count_refetched();
            bytes = again;
        }
        Err(error()(io::Error::new(ErrorKind::InvalidData, "each request returns other bytes")))
    }

    fn read_parts(&self, relative: &Path, take: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let path = self.path.join(relative);
        let bytes = match FileBytes::open(&path, Access::Pread).map_err(Error::of_file) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(false),
            bytes => bytes?,
        };
        let (mut at, mut buffer) = (0, vec![]);
        while at < bytes.len() {
            let end = bytes.len().min(at + PART_BYTES as u64);
            bytes.read_into(at..end, &mut buffer).map_err(Error::of_file)?;
            take(&buffer);
            at = end;
        }
        Ok(true)
    }

    fn length(&self, relative: &Path) -> Result<Option<u64>, Error> {
        let path = self.path.join(relative);
        let object = Object::open(&path).map(Some).or_else(absent_as_none).map_err(Error::io("read", &path))?;
        Ok(object.map(|object| object.len()))
    }

    fn names(&self, folder: &Path) -> Result<Vec<OsString>, Error> {
        let path = self.path.join(folder);
        let mut names = shardtool_store::list(&path).map_err(Error::io("list", &path))?;
        names.sort_unstable();
        Ok(names.into_iter().map(OsString::from).collect())
    }

    fn names_at_once(&self, folder: &Path) -> Result<Option<HashSet<OsString>>, Error> {
        Ok(Some(self.names(folder)?.into_iter().collect()))
    }

    fn create(&self, relative: &Path) -> Result<NewObject, Error> {
        let path = self.path.join(relative);
        let name = relative.to_string_lossy().into_owned();
        let upload = match &self.claim {
            Some(claim) => Upload::with_journal(&path, claim.journal(name.clone())),
            None => Upload::new(&path),
        };
        let upload = Some(upload.map_err(Error::io("create", &path))?);
        Ok(NewObject { folder: self.clone(), name, path, upload })
    }

    fn publish(&self, relative: &Path, bytes: &[u8]) -> Result<(), Error> {
        self.checked()?;
        let path = self.path.join(relative);
        shardtool_store::put(&path, bytes.to_vec(), Existing::Replace).map_err(Error::io("write", &path))
    }

    fn publish_new(&self, relative: &Path, bytes: &[u8]) -> Result<bool, Error> {
        self.checked()?;
        let path = self.path.join(relative);
        let condition = if self.conditional { Condition::Absent } else { Condition::Always };
        match shardtool_store::put_if(&path, bytes.to_vec(), condition) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            written => written.map(|_| true).map_err(Error::io("write", &path)),
        }
    }

    fn remove(&self, relative: &Path) -> Result<(), Error> {
        self.checked()?;
        let path = self.path.join(relative);
        shardtool_store::remove(&path).map_err(Error::io("remove", &path))
    }

    fn remove_all(&self, relative: &[PathBuf]) -> Result<(), Error> {
        let one = |i: usize| self.remove(&relative[i]);
        ordered(Self::AT_ONCE, relative.len(), 2 * Self::AT_ONCE.get(), one, |_, removed| removed)
    }

    fn create_folder(&self, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    fn remove_folder(&self, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    fn sync(&self, _: &Path) -> Result<(), Error> {
        Ok(())
    }

    /// Uploads of killed processes were ended when their claim was taken over. What is left are small files of HDFS.
    fn remove_abandoned(&self, folder: &Path, ours: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        let path = self.path.join(folder);
        for (new, _) in shardtool_store::unfinished(&path)
            .map_err(Error::io("list", &path))?
            .into_iter()
            .filter(|(_, name)| ours(name))
        {
            self.remove(&folder.join(new))?;
        }
        Ok(())
    }

    fn manifest(&self) -> Result<Option<Manifest>, Error> {
        Ok(self.stored_manifest()?.map(|there| there.manifest))
    }

    fn edit_manifest(&self, command: &str, edit: Edit<'_>) -> Result<(), Error> {
        let path = self.path.join(names::MANIFEST);
        let mut joined = None;
        for attempt in 1..=EDITS {
            let mut there = self.stored_manifest()?;
            if joined.is_none()
                && !self.changes
                && there.as_ref().is_some_and(|there| there.manifest.versions.is_some())
            {
                joined = Some(self.join_changes()?);
                there = self.stored_manifest()?;
            }
            let Some(after) = edit(there.as_ref().map(|there| there.manifest.clone()))? else { return Ok(()) };
            let manifest = match &there {
                Some(there) => succeed(self, (&there.json, &there.manifest), after, command)?,
                None => after,
            };
            let condition = match &there {
                _ if !self.conditional => Condition::Always,
                Some(there) => Condition::Unchanged(&there.version),
                None => Condition::Absent,
            };
            self.checked()?;
            match shardtool_store::put_if(&path, manifest.to_json().into_bytes(), condition) {
                // Others were faster: all but one of them wait longer.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    std::thread::sleep(Duration::from_millis(u64::from(attempt * (std::process::id() % 7 + 1) * 5)));
                }
                written => return written.map(drop).map_err(Error::io("write", &path)),
            }
        }
        let problem =
            format!("other processes changed it {EDITS} times while it was edited; run the same command again");
        Err(Error::io("write", &path)(io::Error::new(ErrorKind::ResourceBusy, problem)))
    }
}

impl NewObject {
    fn complete(&mut self) -> Result<(), Error> {
        let Some(upload) = self.upload.take() else { return Ok(()) };
        self.folder.checked()?;
        upload.finish().map_err(Error::io("write", &self.path))?;
        if let Some(claim) = &self.folder.claim {
            claim.forget(&self.name);
        }
        Ok(())
    }
}

impl NewFile for NewObject {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let upload = self.upload.as_mut().expect("a file is not written after it was read");
        upload.write(bytes).map_err(Error::io("write", &self.path))
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Objects can be read when they are whole. Without its index, a shard is not finished.
    fn readable(&mut self) -> Result<PathBuf, Error> {
        self.complete()?;
        Ok(self.path.clone())
    }

    fn publish(mut self) -> Result<(), Error> {
        self.complete()
    }
}

/// Returns a new name for the claim of a process that has joined with a lock.
fn joined_name(lock: &str) -> String {
    format!("{lock}.{}{JOINED}", crate::commit::unique())
}

/// Returns whether [`joined_name`] may have returned a name.
fn is_joined(name: &str, lock: &str) -> bool {
    name.strip_prefix(lock).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(JOINED))
}

/// Converts `NotFound` to `None`.
fn absent_as_none<T>(error: io::Error) -> io::Result<Option<T>> {
    if error.kind() == ErrorKind::NotFound { Ok(None) } else { Err(error) }
}
