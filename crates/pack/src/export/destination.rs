//! Where an export goes: a folder, whose files appear when all are complete, or a folder of a store, whose objects appear one by
//! one and are removed if the export fails.

use crate::Error;
use crate::commit::{Directory, Output};
use crate::error::DestinationError;
use crate::progress::Progress;
use shardtool_store::{Upload, clean_up, is_empty, is_url, is_writable};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const BUFFER: usize = 64 << 10;

/// The destination of an export. If it is dropped before [`Destination::publish`], nothing is left of the files.
pub(super) struct Destination {
    files: Folder,
    /// `None` in a store.
    output: Option<Output>,
    published: bool,
}

/// A folder that is filled.
#[derive(Clone)]
pub(super) enum Folder {
    Disk(Directory),
    Store {
        url: PathBuf,
        /// The URLs of all objects of the export.
        objects: Arc<Mutex<HashSet<PathBuf>>>,
    },
}

/// A file that is being written. In a store, it exists once it is finished.
pub(super) struct NewFile {
    bytes: u64,
    to: To,
}

enum To {
    Disk(BufWriter<File>),
    Store(Box<Upload>),
}

impl Destination {
    /// Begins to fill a folder. Without `force`, it must be empty.
    ///
    /// # Errors
    /// As [`Output::new`]; [`Error::Io`] for a web server.
    pub(super) fn new(path: &Path, force: bool) -> Result<Self, Error> {
        if !is_url(path) {
            let output = Output::new(path, force)?;
            return Ok(Destination {
                files: Folder::Disk(output.files().clone()),
                output: Some(output),
                published: false,
            });
        }
        if !is_writable(path).map_err(Error::io("write", path))? {
            let problem = io::Error::new(ErrorKind::Unsupported, "web servers are only read");
            return Err(Error::io("write", path)(problem));
        }
        if !force && !is_empty(path).map_err(Error::io("list", path))? {
            return Err(Error::Destination(DestinationError::NotEmpty { path: path.to_owned() }));
        }
        let files = Folder::Store { url: path.to_owned(), objects: Arc::default() };
        Ok(Destination { files, output: None, published: false })
    }

    pub(super) fn files(&self) -> &Folder {
        &self.files
    }

    /// Makes the files of a folder durable and moves them to their names. Those of a store have them.
    ///
    /// # Errors
    /// As [`Output::publish`].
    pub(super) fn publish(mut self, progress: &dyn Progress) -> Result<(), Error> {
        self.published = true;
        self.output.take().map_or(Ok(()), |output| output.publish(progress))
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let (false, Folder::Store { objects, .. }) = (self.published, &self.files) {
            // A store that does not answer would not answer the next request either.
            let objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = objects.iter().try_for_each(|object| clean_up(object));
        }
    }
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
                if !objects.lock().unwrap_or_else(PoisonError::into_inner).insert(object.clone()) {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                To::Store(Box::new(Upload::new(&object)?))
            }
        };
        Ok(NewFile { bytes: 0, to })
    }

    /// Makes a hard link to a file, or returns `false` where that is not possible.
    pub(super) fn link(&self, from: &Path, name: &Path) -> bool {
        match self {
            Folder::Disk(directory) => std::fs::hard_link(from, directory.path().join(name)).is_ok(),
            Folder::Store { .. } => false,
        }
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
            To::Store(upload) => upload.finish()?,
        }
        Ok(self.bytes)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Disk(file) => file.write_all(bytes)?,
            To::Store(upload) => upload.write(bytes)?,
        }
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Disk(file) => file.flush(),
            To::Store(_) => Ok(()),
        }
    }
}
