//! Where an export goes: a folder, whose files appear when all are complete, or a folder of a store, whose objects appear one by
//! one and are removed if the export fails.

use super::ExportOptions;
use crate::Error;
use crate::commit::{Begun, Directory, Output, Request};
use crate::error::DestinationError;
use crate::ordered::ordered;
use crate::place::{Place, StoreFolder};
use crate::progress::Progress;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shardtool_store::{Upload, clean_up, is_empty, is_url};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BUFFER: usize = 64 << 10;
/// The claim of an export to a folder of a store.
const LOCK: &str = ".export.lock";
/// Objects that are removed at once after a failure.
const AT_ONCE: NonZeroUsize = const { NonZeroUsize::new(16).unwrap() };

/// The destination of an export. If it is dropped before [`Destination::publish`], its files are removed.
pub(super) struct Destination {
    files: Folder,
    to: Kept,
}

/// What is held until the end of an export.
enum Kept {
    Disk(Output),
    Store(InStore),
}

/// An export to a store, whose objects are removed on drop.
struct InStore {
    objects: Arc<Mutex<Objects>>,
    /// The export is complete, or its objects may have replaced others: none is removed.
    keep: bool,
    /// Released after that.
    _claim: StoreFolder,
}

/// A folder that is filled.
#[derive(Clone)]
pub(super) enum Folder {
    Disk(Directory),
    Store { url: PathBuf, objects: Arc<Mutex<Objects>> },
}

/// The objects of an export.
#[derive(Default)]
pub(super) struct Objects {
    /// URLs that a file has or will have.
    taken: HashSet<PathBuf>,
    /// URLs of those that may have been put in place.
    written: Vec<PathBuf>,
}

/// A file that is being written. In a store, it exists once it is finished.
pub(super) struct NewFile {
    bytes: u64,
    to: To,
}

enum To {
    Disk(BufWriter<File>),
    Store { upload: Box<Upload>, url: PathBuf, objects: Arc<Mutex<Objects>> },
}

/// The beginning of an export.
pub(super) enum Start<T> {
    Destination(Box<Destination>),
    /// The folder has the complete export, which reported this.
    Complete(T),
}

impl Destination {
    /// Begins to fill a folder. Without `force`, it must be empty, or have the complete export of the same request.
    ///
    /// # Errors
    /// As [`Output::begin`] and [`Place::begin`].
    pub(super) fn begin<T: DeserializeOwned>(
        path: &Path,
        request: Option<Request>,
        options: &ExportOptions,
    ) -> Result<Start<T>, Error> {
        let force = options.force;
        if !is_url(path) {
            let output = match Output::begin(path, force, request)? {
                Begun::Output(output) => output,
                Begun::Complete(result) => return Ok(Start::Complete(result)),
            };
            let files = Folder::Disk(output.files().clone());
            return Ok(Start::Destination(Box::new(Destination { files, to: Kept::Disk(*output) })));
        }
        let (claim, ()) = StoreFolder::begin(path, LOCK, options.single_writer)?;
        if !force && !is_empty(path, LOCK).map_err(Error::io("list", path))? {
            return Err(Error::Destination(DestinationError::NotEmpty { path: path.to_owned() }));
        }
        let objects = Arc::<Mutex<Objects>>::default();
        let files = Folder::Store { url: path.to_owned(), objects: objects.clone() };
        let to = Kept::Store(InStore { objects, keep: force, _claim: claim });
        Ok(Start::Destination(Box::new(Destination { files, to })))
    }

    pub(super) fn files(&self) -> &Folder {
        &self.files
    }

    /// Makes the files of a folder durable and moves them to their names. Those of a store have them. The next run of the
    /// same export to the folder returns `result`.
    ///
    /// # Errors
    /// As [`Output::publish_with`].
    pub(super) fn publish(self, result: impl Serialize, progress: &dyn Progress) -> Result<(), Error> {
        match self.to {
            Kept::Disk(output) => output.publish_with(result, progress),
            Kept::Store(mut export) => {
                export.keep = true;
                Ok(())
            }
        }
    }
}

impl Drop for InStore {
    fn drop(&mut self) {
        if !self.keep {
            let written = std::mem::take(&mut locked(&self.objects).written);
            // A store that does not answer would not answer the next request either.
            let remove = |i: usize| clean_up(&written[i]);
            let _ = ordered(AT_ONCE, written.len(), 2 * AT_ONCE.get(), remove, |_, removed| removed);
        }
    }
}

fn locked(objects: &Mutex<Objects>) -> MutexGuard<'_, Objects> {
    objects.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Folder {
    /// Returns the path or URL.
    pub(super) fn path(&self) -> &Path {
        match self {
            Folder::Disk(directory) => directory.path(),
            Folder::Store { url, .. } => url,
        }
    }

    /// Returns a folder inside, which is created.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn folder(&self, name: &str) -> Result<Self, Error> {
        Ok(match self {
            Folder::Disk(directory) => Folder::Disk(directory.create_folder(name)?),
            Folder::Store { url, objects } => Folder::Store { url: url.join(name), objects: objects.clone() },
        })
    }

    /// Creates a file, and the folders above it.
    ///
    /// # Errors
    /// Those of the system; `AlreadyExists` if the export has the file.
    pub(super) fn create(&self, relative: &Path) -> io::Result<NewFile> {
        let to = match self {
            Folder::Disk(directory) => To::Disk(BufWriter::with_capacity(BUFFER, directory.create_file(relative)?)),
            Folder::Store { url, objects } => {
                let object = url.join(relative);
                if !locked(objects).taken.insert(object.clone()) {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                To::Store { upload: Box::new(Upload::new(&object)?), url: object, objects: objects.clone() }
            }
        };
        Ok(NewFile { bytes: 0, to })
    }

    /// Makes a hard link to a file, or a copy where links are not possible. Returns `false` in a store.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn put(&self, from: &Path, name: &Path) -> io::Result<bool> {
        let Folder::Disk(directory) = self else { return Ok(false) };
        let to = directory.path().join(name);
        if std::fs::hard_link(from, &to).is_err() {
            std::fs::copy(from, &to)?;
        }
        Ok(true)
    }
}

impl NewFile {
    /// Writes what is buffered, and puts an object in place. Returns the length in bytes.
    ///
    /// # Errors
    /// Those of the system or the store.
    pub(super) fn finish(self) -> io::Result<u64> {
        match self.to {
            // Made durable with all other files before they are moved to their names.
            To::Disk(mut file) => file.flush()?,
            To::Store { upload, url, objects } => {
                locked(&objects).written.push(url);
                upload.finish()?;
            }
        }
        Ok(self.bytes)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Disk(file) => file.write_all(bytes)?,
            To::Store { upload, .. } => upload.write(bytes)?,
        }
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Disk(file) => file.flush(),
            To::Store { .. } => Ok(()),
        }
    }
}
