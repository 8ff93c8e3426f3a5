//! Bytes of a file, mapped or read, or of an object in a store; the results are the same.

use crate::access::Access;
use crate::mapping::Mapping;
use crate::prefetch::prefetch;
use crate::{Error, Result, open_regular, system};
use memmap2::{Advice, UncheckedAdvice};
use shardtool_format::frame;
use shardtool_store::cache::{Cache, CachedObject};
use shardtool_store::{self as store, Object, Window};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once, OnceLock};

/// An open file: a mapping, or a descriptor for positional reads; or an object in a store.
#[derive(Debug)]
pub struct FileBytes {
    path: PathBuf,
    bytes: Bytes,
    len: u64,
    /// Device and inode.
    id: (u64, u64),
    /// The mapped file, opened again when it is first read or its pages are first released.
    reopened: OnceLock<File>,
    exact: Once,
}

#[derive(Debug)]
enum Bytes {
    Map(Mapping),
    File(File),
    /// One request for each range.
    Object(Box<Object>),
    /// Ranges from a cache on a local disk, and requests for those that it does not hold.
    Cached(Box<CachedObject>),
    /// An object that is read nearly in order.
    Window(Box<Window>),
    /// Put together from others.
    Composed(Arc<dyn Composed>),
}

/// Bytes that are put together from those of files on a disk.
pub(crate) trait Composed: Debug + Send + Sync {
    /// Checks that the files of a range have its bytes, before memory is allocated for them.
    fn check(&self, range: &Range<u64>) -> Result<()>;

    /// Appends a range to `out`, which has room for it.
    fn append(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()>;

    /// Hints that the system should read a range ahead. Ignores errors, which reading returns.
    fn will_need(&self, range: Range<u64>);

    /// Hints that a range will not be read again soon.
    fn release(&self, range: Range<u64>);

    /// Returns whether the system has the byte at an offset in memory; `false` if that is unknown.
    fn is_in_memory(&self, at: u64) -> bool;
}

/// Bytes that are compared at a time to confirm damage.
const COMPARED_BYTES: usize = 1 << 16;

impl FileBytes {
    /// Opens a file for reading. If `access` maps the file, the contract in [`Access`] applies until the value is
    /// dropped. An object in a store is read nearly in order, with 4 MiB in a request.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(path: &Path, access: Access) -> Result<Self> {
        FileBytes::open_within(path, access, Window::BYTES)
    }

    /// As [`FileBytes::open`]. An object in a store is read with this number of bytes of memory, between
    /// [`Window::LEAST_BYTES`] and [`Window::BYTES`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open_within(path: &Path, access: Access, bytes: u64) -> Result<Self> {
        let io = |source| Error::Io { action: "open", path: path.to_owned(), source };
        if store::is_url(path) {
            let object = Object::open(path).map_err(io)?;
            return Ok(FileBytes::of(path, object.len(), Bytes::Window(Box::new(Window::within(object, bytes)))));
        }
        let file = open_regular(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        let bytes = if access.maps(&file) {
            // SAFETY: the file must not be rewritten in place while it is mapped. No code of this workspace does (files
            // are completed under another name and renamed, `pack/commit`); for other writers it is the contract of
            // `Access`, which the caller accepts by choosing a mapping.
            Bytes::Map(unsafe { Mapping::new(&file) }.map_err(io)?)
        } else {
            Bytes::File(file)
        };
        let (len, id) = (metadata.len(), (metadata.dev(), metadata.ino()));
        Ok(FileBytes { id, ..FileBytes::of(path, len, bytes) })
    }

    /// Opens a file as [`FileBytes::open`] does. For an object in a store, takes the length as given, makes no request
    /// yet, and then one for each range, unless `cache` holds it. The cache knows the content by `name`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open_ranges(path: &Path, access: Access, len: u64, cache: Option<(&Cache, String)>) -> Result<Self> {
        if !store::is_url(path) {
            return FileBytes::open(path, access);
        }
        let object = Object::with_len(path, len);
        let object = object.map_err(|source| Error::Io { action: "open", path: path.to_owned(), source })?;
        Ok(FileBytes::of_object(object, cache))
    }

    /// Makes `len` bytes of those of files on a disk. `path` is for errors.
    pub(crate) fn composed(path: &Path, len: u64, bytes: Arc<dyn Composed>) -> Self {
        FileBytes::of(path, len, Bytes::Composed(bytes))
    }

    /// Returns the bytes of an object that is put together from others, as [`FileBytes::open_ranges`] those of one in a store.
    pub(crate) fn of_object(object: Object, cache: Option<(&Cache, String)>) -> Self {
        let (path, len) = (object.path().to_owned(), object.len());
        let bytes = match cache {
            Some((cache, name)) => Bytes::Cached(Box::new(cache.object(object, &name))),
            None => Bytes::Object(Box::new(object)),
        };
        FileBytes::of(&path, len, bytes)
    }

    /// Returns the bytes of an object for reading nearly in order, with this number of bytes of memory; `None` for others.
    pub(crate) fn in_order(&self, memory: u64) -> Option<Self> {
        let window = Window::within(self.object()?.clone(), memory);
        Some(FileBytes::of(&self.path, self.len, Bytes::Window(Box::new(window))))
    }

    fn of(path: &Path, len: u64, bytes: Bytes) -> Self {
        FileBytes { path: path.to_owned(), bytes, len, id: (0, 0), reopened: OnceLock::new(), exact: Once::new() }
    }

    /// Returns the object, if the bytes are in a store.
    pub fn object(&self) -> Option<&Object> {
        match &self.bytes {
            Bytes::Object(object) => Some(object),
            Bytes::Cached(cached) => Some(cached.object()),
            Bytes::Window(window) => Some(window.object()),
            Bytes::Map(_) | Bytes::File(_) | Bytes::Composed(_) => None,
        }
    }

    /// Returns the object and what a cache holds of it, if the bytes are read through one.
    pub fn cached(&self) -> Option<&CachedObject> {
        match &self.bytes {
            Bytes::Cached(cached) => Some(cached),
            _ => None,
        }
    }

    /// Returns the length of the file when it was opened, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a file's length, not a collection's")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns all bytes if the file is mapped. Unreadable bytes are zeros: call [`FileBytes::check_readable`] after the
    /// last use.
    pub fn mapped(&self) -> Option<&[u8]> {
        Some(self.mapping()?.map())
    }

    /// Returns whether the range is mapped, and none of its pages is known to be unreadable.
    pub fn maps(&self, range: &Range<u64>) -> bool {
        self.mapping().is_some_and(|mapping| !mapping.is_lost(range))
    }

    /// Returns the bytes of a range if they are mapped, and none of their pages is known to be unreadable.
    ///
    /// # Errors
    /// `UnexpectedEof` for a range past the end.
    pub(crate) fn mapped_range(&self, range: &Range<u64>) -> Option<io::Result<&[u8]>> {
        let mapped = self.mapped().filter(|_| self.maps(range))?;
        let part = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let part = part.and_then(|(start, end)| mapped.get(start..end));
        Some(part.ok_or_else(|| io::ErrorKind::UnexpectedEof.into()))
    }

    /// Returns an error if the range is mapped and holds bytes that could not be read since the file was opened, which
    /// then are zeros. Call it after the last use of the bytes.
    ///
    /// # Errors
    /// [`Error::Unreadable`], with the system's error of reading the range again.
    pub fn check_readable(&self, range: Range<u64>) -> Result<()> {
        match &self.bytes {
            Bytes::Map(mapping) if mapping.is_lost(&range) => {
                // Bytes that can be read again were zeros nevertheless.
                let error = self.compare(range.clone()).err();
                Err(self.unreadable(range, error.unwrap_or(rustix::io::Errno::IO.into())))
            }
            _ => Ok(()),
        }
    }

    /// Calls `check` with the bytes of a range: those of the mapping, or read. If mapped bytes fail the check or could not
    /// be read, calls it again with bytes read by `pread`, unless these are the same.
    ///
    /// # Errors
    /// [`Error::Unreadable`], also for a range past the end.
    pub(crate) fn with<T, E>(
        &self,
        range: Range<u64>,
        mut check: impl FnMut(&[u8]) -> std::result::Result<T, E>,
    ) -> Result<std::result::Result<T, E>> {
        if let Some(bytes) = self.mapped_range(&range) {
            let checked = check(bytes.map_err(|e| self.unreadable(range.clone(), e))?);
            if self.stands(&range, checked.is_ok())? {
                return Ok(checked);
            }
        }
        let mut buffer = vec![];
        self.read_into(range.clone(), &mut buffer)?;
        self.check_again(range, &mut buffer, check)
    }

    /// Checks bytes that were read into `buffer`. Requests those of a store again if they fail the check, until two answers
    /// are equal: then they are stored so. Differing answers mean that the connection, a proxy or a cache changes them.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(crate) fn check_again<T, E>(
        &self,
        range: Range<u64>,
        buffer: &mut Vec<u8>,
        mut check: impl FnMut(&[u8]) -> std::result::Result<T, E>,
    ) -> Result<std::result::Result<T, E>> {
        let mut checked = check(buffer);
        for _ in 0..store::REFETCHES {
            if checked.is_ok() || !self.read_again(range.clone(), buffer)? {
                break;
            }
            checked = check(buffer);
        }
        Ok(checked)
    }

    /// Returns whether the result of a check of mapped bytes stands: they could be read and, if the check failed, `pread`
    /// reads the same ones. (Bytes past the end of a truncated file read as zeros up to the end of their page.)
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(crate) fn stands(&self, range: &Range<u64>, good: bool) -> Result<bool> {
        Ok(self.maps(range) && (good || self.compare(range.clone()).map_err(|e| self.unreadable(range.clone(), e))?))
    }

    /// Returns whether `pread` reads the bytes that are mapped. Needs constant memory.
    fn compare(&self, range: Range<u64>) -> io::Result<bool> {
        let mut buffer = [0; COMPARED_BYTES];
        let (mut at, mut same) = (range.start, true);
        while at < range.end {
            let length = (range.end - at).min(COMPARED_BYTES as u64);
            let part = &mut buffer[..length as usize];
            self.pread(part, at)?;
            let mapped = self.mapped_range(&(at..at + length)).transpose()?;
            same &= mapped.is_some_and(|mapped| mapped == part);
            at += length;
        }
        Ok(same && self.maps(&range))
    }

    /// Requests bytes of an object again. Returns whether the bytes are other ones now; `false` for files.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn read_again(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<bool> {
        let Some(object) = self.object() else { return Ok(false) };
        store::count_refetched();
        let bytes = object.read(range.clone()).map_err(|source| self.unreadable(range.clone(), source))?;
        let other = bytes != *buffer;
        match &self.bytes {
            Bytes::Window(window) if other => window.clear(),
            // What the store holds is damaged otherwise.
            Bytes::Cached(cached) if other => cached.forget(&range),
            _ => {}
        }
        *buffer = bytes;
        Ok(other)
    }

    /// Reads a range into a buffer, by `pread` or from the store, and resizes the buffer to it.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn read_into(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
        let failed = |source| self.unreadable(range.clone(), source);
        if range.end > self.len || range.start > range.end {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        match &self.bytes {
            Bytes::Object(object) => {
                *buffer = object.read(range.clone()).map_err(failed)?;
                return Ok(());
            }
            Bytes::Cached(cached) => return cached.read(range.clone(), buffer).map_err(failed),
            Bytes::Window(window) => {
                let read = window.read(range.clone(), buffer);
                return match read {
                    // Of an object that is made from others, only some may fail, and a window keeps no error of this crate.
                    Err(_) if window.object().is_composed() => {
                        window.object().read(range.clone()).map(|read| *buffer = read)
                    }
                    read => read,
                }
                .map_err(failed);
            }
            Bytes::Composed(parts) => parts.check(&range)?,
            Bytes::Map(_) | Bytes::File(_) => {}
        }
        let length = (range.end - range.start) as usize;
        if buffer.capacity() < length {
            // `reserve` may allocate more than the length, which the loader's memory budget does not count.
            *buffer = Vec::with_capacity(length);
        }
        if let Bytes::Composed(parts) = &self.bytes {
            buffer.clear();
            return parts.append(range, buffer);
        }
        buffer.resize(length, 0);
        self.pread(buffer, range.start).map_err(failed)
    }

    fn pread(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let file = self.file()?;
        file.read_exact_at(buffer, offset).map_err(|error| match (error.kind(), file.metadata()) {
            (io::ErrorKind::UnexpectedEof, Ok(now)) if now.len() < self.len => {
                let (was, now) = (self.len, now.len());
                io::Error::new(
                    error.kind(),
                    format!("the file was truncated from {was} to {now} bytes while it was open"),
                )
            }
            _ => error,
        })
    }

    /// Returns a descriptor of the file: a mapped one is opened again.
    ///
    /// # Errors
    /// Those of opening; `EIO` if the path names another file by now, or none.
    fn file(&self) -> io::Result<&File> {
        if let Bytes::File(file) = &self.bytes {
            return Ok(file);
        }
        if let Some(file) = self.reopened.get() {
            return Ok(file);
        }
        let replaced = || io::Error::from(rustix::io::Errno::IO);
        let file = open_regular(&self.path)
            .map_err(|error| if error.kind() == io::ErrorKind::NotFound { replaced() } else { error })?;
        let metadata = file.metadata()?;
        if (metadata.dev(), metadata.ino()) != self.id {
            return Err(replaced());
        }
        // A look at a page that is not there makes the system read it: only this one, then.
        system::reads_at_random(&file);
        Ok(self.reopened.get_or_init(|| file))
    }

    pub(crate) fn unreadable(&self, bytes: Range<u64>, source: io::Error) -> Error {
        if source.get_ref().is_some_and(|error| error.is::<Error>()) {
            let error = source.into_inner().expect("found above").downcast::<Error>();
            return *error.expect("of this type");
        }
        // The first request for a shard's bytes shows whether it exists.
        if self.object().is_some() && source.kind() == io::ErrorKind::NotFound {
            return Error::MissingShard { path: self.path.clone() };
        }
        Error::Unreadable { path: self.path.clone(), record: None, key: None, bytes, source }
    }

    /// Returns the mapping, if the file is mapped.
    pub(crate) fn mapping(&self) -> Option<&Mapping> {
        match &self.bytes {
            Bytes::Map(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// Hints that the system should read a range ahead. Does not wait; ignores errors.
    pub fn will_need(&self, range: Range<u64>) {
        let length = range.end.min(self.len).saturating_sub(range.start);
        match &self.bytes {
            Bytes::Map(mapping) => {
                let _ = mapping.map().advise_range(Advice::WillNeed, range.start as usize, length as usize);
            }
            Bytes::File(file) => system::will_need(file, range.start..range.start + length),
            Bytes::Composed(parts) => parts.will_need(range.start..range.start + length),
            Bytes::Object(_) | Bytes::Cached(_) | Bytes::Window(_) => {}
        }
    }

    /// Returns whether the system has the page at an offset in memory. `false` if that is unknown, as on network file systems,
    /// and for objects in stores.
    pub(crate) fn is_in_memory(&self, at: u64) -> bool {
        if let Bytes::Composed(parts) = &self.bytes {
            return parts.is_in_memory(at);
        }
        self.object().is_none() && self.file().is_ok_and(|file| system::is_in_memory(file, at))
    }

    /// Hints that the header at an offset is read soon: the processor loads it, if it is mapped and in memory.
    pub(crate) fn prefetch(&self, at: u64) {
        let header = usize::try_from(at).ok().and_then(|at| self.mapped()?.get(at..)?.get(..frame::HEADER_BYTES));
        prefetch(header.unwrap_or_default());
    }

    /// Turns read-around off (`MADV_RANDOM`): the system reads the touched pages and those of [`FileBytes::will_need`]
    /// only. Read-around may be megabytes per record, most of which is evicted unread if memory is short.
    pub(crate) fn read_exactly(&self) {
        self.exact.call_once(|| match &self.bytes {
            Bytes::Map(mapping) => drop(mapping.map().advise(Advice::Random)),
            Bytes::File(file) => system::reads_at_random(file),
            Bytes::Object(_) | Bytes::Cached(_) | Bytes::Window(_) | Bytes::Composed(_) => {}
        });
    }

    /// Hints that a range will not be read again soon: drops its pages from this process and, unless another process
    /// maps them, from the page cache. Pages at the ends are dropped whole; dropped pages are read again when needed.
    pub(crate) fn release(&self, range: Range<u64>) {
        if let Bytes::Composed(parts) = &self.bytes {
            return parts.release(range);
        }
        if self.object().is_some() {
            return;
        }
        let pages = whole_pages(&range, rustix::param::page_size() as u64);
        let mapped = pages.start..pages.end.min(self.len);
        if mapped.is_empty() {
            return;
        }
        if let Bytes::Map(mapping) = &self.bytes {
            // SAFETY: `MADV_DONTNEED` on a shared file mapping loses no data (`Mmap::map` makes such a mapping, and
            // this one is read-only): dropped pages are read from the file again, with the same bytes under the
            // contract of `Access`; pages that were replaced by zeros stay zeros. The range lies inside the mapping, since
            // `end` is at most its length. (Systems other than Linux may keep the pages.)
            let dropped = unsafe {
                let (start, length) = (mapped.start as usize, (mapped.end - mapped.start) as usize);
                mapping.map().unchecked_advise_range(UncheckedAdvice::DontNeed, start, length)
            };
            let _ = dropped;
        }
        if let Ok(file) = self.file() {
            // The page cache holds the last page of a file whole.
            system::will_not_need(file, pages);
        }
    }
}

/// Returns the pages of `page` bytes that hold a range.
fn whole_pages(range: &Range<u64>, page: u64) -> Range<u64> {
    range.start / page * page..range.end.checked_next_multiple_of(page).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_pages_are_whole_for_every_size_of_a_page() {
        for page in [4, 16, 64].map(|kib| kib << 10) {
            assert_eq!(whole_pages(&(0..1), page), 0..page);
            assert_eq!(whole_pages(&(page..2 * page), page), page..2 * page);
            assert_eq!(whole_pages(&(page - 1..page + 1), page), 0..2 * page);
            assert_eq!(whole_pages(&(3 * page + 5..3 * page + 5), page), 3 * page..4 * page);
        }
        // A record of 5,000 bytes behind 70,000 others.
        assert_eq!(whole_pages(&(70_000..75_000), 4 << 10), 69_632..77_824);
        assert_eq!(whole_pages(&(70_000..75_000), 16 << 10), 65_536..81_920);
        assert_eq!(whole_pages(&(70_000..75_000), 64 << 10), 65_536..131_072);
    }
}
