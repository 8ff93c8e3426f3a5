//! Files and objects in stores that are packed: their lengths and bytes, by path or URL.

use crate::Options;
use rustix::io::Errno;
use shardtool_format::checksum::crc32c;
use shardtool_read::{not_regular, open_regular};
use shardtool_store::{Head, Object, Window, is_url, read_whole};
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// Requests for the lengths of objects that are under way at once.
const AT_ONCE: usize = 32;
/// Bytes of a list or an annotation file in a store, at most: it is read whole.
const LIST_BYTES: u64 = 4 << 30;

/// What a path or URL names.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    Local(Metadata),
    Object {
        len: u64,
        /// Differs if the object was written again.
        version: i64,
    },
}

/// Whether a file that was written again, with the same length, is another input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Compared,
    Ignored,
}

impl Times {
    pub(crate) fn of(options: &Options) -> Self {
        if options.ignore_times { Times::Ignored } else { Times::Compared }
    }
}

impl Found {
    /// Examines a path (one `stat`) or URL (one request).
    ///
    /// # Errors
    /// Those of the system; those of a store are the system's too, except for `NotFound`.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        if !is_url(path) {
            return std::fs::metadata(path).map(Found::Local);
        }
        let head = Head::of(path).map_err(of_store)?;
        Ok(Found::Object { len: head.len, version: version_of(&head) })
    }

    pub(crate) fn is_dir(&self) -> bool {
        matches!(self, Found::Local(meta) if meta.is_dir())
    }

    pub(crate) fn is_file(&self) -> bool {
        match self {
            Found::Local(meta) => meta.is_file(),
            Found::Object { .. } => true,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Found::Local(meta) => meta.len(),
            Found::Object { len, .. } => *len,
        }
    }

    /// Returns a number that differs if the file was written again: the time of the last change, in nanoseconds since 1970;
    /// of objects a checksum of their ETag. 0 if times are ignored.
    pub(crate) fn version(&self, times: Times) -> i64 {
        match self {
            _ if times == Times::Ignored => 0,
            Found::Local(meta) => {
                let modified = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
                modified.map_or(0, |t| t.as_nanos() as i64)
            }
            Found::Object { version, .. } => *version,
        }
    }

    /// Returns the error of something that is neither a file nor a folder.
    pub(crate) fn not_regular(&self) -> io::Error {
        match self {
            Found::Local(meta) => not_regular(meta.file_type()),
            Found::Object { .. } => io::ErrorKind::InvalidInput.into(),
        }
    }
}

/// Returns a checksum of an object's ETag; without one, the time of its last change.
fn version_of(head: &Head) -> i64 {
    head.e_tag.as_ref().map_or(head.modified, |tag| crc32c(tag.as_bytes()).into())
}

/// What is known about the objects that a list names.
#[derive(Debug, Default)]
pub(crate) struct Objects(HashMap<PathBuf, Option<Found>>);

impl Objects {
    /// Examines the URLs among paths, several at once.
    ///
    /// # Errors
    /// [`crate::Error::Io`], unless an object does not exist.
    pub(crate) fn examine(&mut self, paths: impl Iterator<Item = PathBuf>) -> Result<(), crate::Error> {
        let mut urls: Vec<_> = paths.filter(|path| is_url(path)).collect();
        urls.sort_unstable();
        urls.dedup();
        let (next, all) = (AtomicUsize::new(0), Mutex::new(Ok(HashMap::new())));
        let examine_some = || {
            while let Some(url) = urls.get(next.fetch_add(1, Ordering::Relaxed)) {
                let found = Found::at(url);
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                let Ok(known) = &mut *all else { return };
                match found {
                    Ok(found) => drop(known.insert(url.clone(), Some(found))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => drop(known.insert(url.clone(), None)),
                    // The others would fail too, each after the time limit of a request.
                    Err(error) => *all = Err(crate::Error::io("read", url)(error)),
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..urls.len().min(AT_ONCE) {
                // Without more threads, this one examines them all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, examine_some);
            }
            examine_some();
        });
        self.0 = all.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        Ok(())
    }

    /// Returns what a path names, or a URL that was examined.
    ///
    /// # Errors
    /// As [`Found::at`].
    pub(crate) fn at(&self, path: &Path) -> io::Result<Found> {
        match self.0.get(path) {
            Some(Some(found)) => Ok(found.clone()),
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            None => Found::at(path),
        }
    }
}

/// Returns the place of a file that a list names: relative to the list's folder, unless it is a URL.
pub(crate) fn place(root: &Path, path: &str) -> PathBuf {
    if is_url(Path::new(path)) { PathBuf::from(path) } else { root.join(path) }
}

/// An open file, or an object that is read nearly in order (up to 16 MiB of memory).
pub(crate) struct Input {
    bytes: Bytes,
    len: u64,
    at: u64,
}

enum Bytes {
    File(File),
    Object(Window),
}

impl Input {
    /// Opens a file or an object at its beginning.
    ///
    /// # Errors
    /// As [`Found::at`].
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if is_url(path) {
            let object = Object::open(path).map_err(of_store)?;
            return Ok(Input { len: object.len(), bytes: Bytes::Object(Window::new(object)), at: 0 });
        }
        let file = open_regular(path)?;
        Ok(Input { len: file.metadata()?.len(), bytes: Bytes::File(file), at: 0 })
    }

    /// Returns the length in bytes: that of a file now.
    pub(crate) fn length(&self) -> io::Result<u64> {
        match &self.bytes {
            Bytes::File(file) => Ok(file.metadata()?.len()),
            Bytes::Object(_) => Ok(self.len),
        }
    }

    /// Reads up to `buffer.len()` bytes at a position; 0 at the end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let window = match &self.bytes {
            Bytes::File(file) => return file.read_at(buffer, at),
            Bytes::Object(window) => window,
        };
        let count = self.len.saturating_sub(at).min(buffer.len() as u64);
        let mut bytes = vec![];
        window.read(at..at + count, &mut bytes).map_err(of_store)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Fills `buffer` with the bytes at a position.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        if let Bytes::File(file) = &self.bytes {
            return file.read_exact_at(buffer, at);
        }
        match self.read_at(buffer, at)? {
            count if count == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Bytes::File(file) = &mut self.bytes {
            return file.read(buffer);
        }
        let count = self.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if let Bytes::File(file) = &mut self.bytes {
            return file.seek(to);
        }
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Returns the first bytes of a file or an object, at most `length`.
///
/// # Errors
/// As [`Found::at`].
pub(crate) fn start_of(path: &Path, length: u64) -> io::Result<Vec<u8>> {
    if is_url(path) {
        let object = Object::open(path).map_err(of_store)?;
        return object.read(0..length.min(object.len())).map_err(of_store);
    }
    let mut start = vec![];
    open_regular(path)?.take(length).read_to_end(&mut start)?;
    Ok(start)
}

/// Opens a list for reading from its beginning. One in a store is read whole.
///
/// # Errors
/// As [`Found::at`].
pub(crate) fn open_list(path: &Path) -> io::Result<Box<dyn Read>> {
    if !is_url(path) {
        return Ok(Box::new(open_regular(path)?));
    }
    match read_whole(path, LIST_BYTES).map_err(of_store)? {
        Some(bytes) => Ok(Box::new(io::Cursor::new(bytes))),
        None => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

/// Reads at most `limit` bytes of a file or an object into a buffer.
///
/// # Errors
/// As [`Found::at`]; `FileTooLarge` for a longer object.
pub(crate) fn read_into(path: &Path, limit: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    if is_url(path) {
        *buffer = read_whole(path, limit).map_err(of_store)?.ok_or(io::ErrorKind::FileTooLarge)?;
        return Ok(());
    }
    open_regular(path)?.take(limit).read_to_end(buffer).map(drop)
}

/// An error of a store that no other input would escape.
#[derive(Debug)]
struct StoreFault {
    text: String,
    /// The code by which `error::fault` recognises it.
    code: io::Error,
}

impl fmt::Display for StoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for StoreFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.code)
    }
}

/// Marks an error of a store as the system's, except for an object that is missing or shorter than it was.
fn of_store(error: io::Error) -> io::Error {
    let code = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => return error,
        io::ErrorKind::TimedOut => Errno::TIMEDOUT,
        io::ErrorKind::OutOfMemory => Errno::NOMEM,
        // Also a refusal: it is about credentials, of which all objects have the same.
        _ => Errno::IO,
    };
    let (kind, text) = (error.kind(), error.to_string());
    io::Error::new(kind, StoreFault { text, code: code.into() })
}
