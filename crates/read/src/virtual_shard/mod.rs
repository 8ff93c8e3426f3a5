//! Virtual shards: shards that are not stored, whose index says in which source files their bytes lie.
//!
//! | module | responsibility |
//! |---|---|
//! | `sources` | which source files are opened, and those that are open |
//! | `requests` | a virtual shard whose source files are in a store |

mod requests;
mod sources;

pub use sources::SourceFiles;

use crate::bytes::{Composed, FileBytes};
use crate::shard_index::ShardIndex;
use crate::{Error, Result, system};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use shardtool_format::frame::{self, Check};
use shardtool_format::index::{FramePart, SourceFile, SourceRange, VirtualColumns, frame_parts};
use shardtool_format::manifest;
use shardtool_store::Object;
use shardtool_store::cache::Cache;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a frame at most: writers refuse records of 4 GiB and more.
const LONGEST_FRAME: u64 = u32::MAX as u64 + frame::OVERHEAD_BYTES as u64;

/// The bytes of a virtual shard.
#[derive(Debug)]
pub(crate) struct VirtualShard {
    path: PathBuf,
    len: u64,
    index: Arc<ShardIndex>,
    columns: VirtualColumns,
    /// The folder of the source files, if it is not the dataset's.
    source: Option<String>,
    files: Arc<SourceFiles>,
    /// Whether the CRCs of all records are checked when they are read.
    checked: bool,
}

/// A part of a range of the shard.
struct Located<'a> {
    /// Where it lies, from the start of the range.
    place: Range<usize>,
    bytes: Bytes<'a>,
}

enum Bytes<'a> {
    Inline(&'a [u8]),
    Source(SourceFile<'a>, Range<u64>),
}

/// What is wrong with a source file.
pub(crate) enum Wrong {
    /// Bytes that are not those that were indexed.
    Bytes { path: PathBuf, bytes: Range<u64> },
    /// It does not exist, has another length, or cannot be read.
    File(Error),
}

impl VirtualShard {
    /// # Errors
    /// [`Error::Index`] without the columns of a virtual shard.
    pub(crate) fn new(
        path: &Path,
        entry: &manifest::Shard,
        index: Arc<ShardIndex>,
        files: Arc<SourceFiles>,
        check: Check,
    ) -> Result<Self> {
        let columns = index.virtual_columns()?;
        let source = entry.foreign.source.clone();
        let checked = check == Check::Data;
        Ok(VirtualShard { path: path.to_owned(), len: entry.bytes, index, columns, source, files, checked })
    }

    /// Returns the bytes of the shard, through a cache if its source files are in a store.
    pub(crate) fn bytes(self: &Arc<Self>, folder: &Path, cache: Option<(&Cache, String)>) -> FileBytes {
        match shardtool_store::is_url(self.source.as_deref().map_or(folder, Path::new)) {
            true => FileBytes::of_object(Object::composed(&self.path, self.len, self.clone()), cache),
            false => FileBytes::composed(&self.path, self.len, self.clone()),
        }
    }

    /// Hands the source files of a range, and their ranges, to a function that advises the system.
    fn advise(&self, range: Range<u64>, advise: fn(&File, Range<u64>)) {
        self.each_source(range, |file, range| {
            advise(file, range);
            true
        });
    }

    /// Calls `each` with the source files of a range, until it returns false or one cannot be opened.
    fn each_source(&self, range: Range<u64>, mut each: impl FnMut(&File, Range<u64>) -> bool) {
        for Located { bytes, .. } in self.locate(&range).unwrap_or_default() {
            if let Bytes::Source(file, range) = bytes {
                let Ok(file) = self.files.open(self.source.as_deref(), &file) else { return };
                if !each(&file, range) {
                    return;
                }
            }
        }
    }

    /// Returns what is wrong with the first source range of a record that is not as it was indexed.
    #[cold]
    pub(crate) fn wrong_source(&self, row: u64) -> Option<Wrong> {
        let frame = self.frame(row).ok()??;
        for part in self.parts(row, &frame).ok()? {
            let (FramePart::Source(range), Some(file)) = part else { continue };
            let path = self.files.path(self.source.as_deref(), &file).ok()?;
            let bytes = range.offset..range.offset + u64::from(range.length);
            match self.source_bytes(&path, &file, bytes.clone()) {
                Ok(found) if range.has_bytes(&found) => {}
                Ok(_) => return Some(Wrong::Bytes { path, bytes }),
                Err(error) => return Some(Wrong::File(error)),
            }
        }
        None
    }

    /// Reads a range of a source file.
    fn source_bytes(&self, path: &Path, file: &SourceFile<'_>, bytes: Range<u64>) -> Result<Vec<u8>> {
        if shardtool_store::is_url(path) {
            return requests::read(path, bytes, file.length);
        }
        let opened = self.files.open(self.source.as_deref(), file)?;
        let mut found = vec![0; (bytes.end - bytes.start) as usize];
        let read = opened.read_exact_at(&mut found, bytes.start);
        read.map_err(|source| Error::Unreadable { path: path.to_owned(), record: None, key: None, bytes, source })?;
        Ok(found)
    }

    /// Iterates over the source files, and ends after an entry that cannot be.
    fn source_files(&self) -> Result<impl Iterator<Item = Result<SourceFile<'_>>>> {
        let values = self.index.variable(self.columns.files)?.map_or(&[][..], |column| column.values());
        let mut at = 0;
        Ok(std::iter::from_fn(move || {
            if at >= values.len() as u64 {
                return None;
            }
            let file = SourceFile::decode(values, at);
            at = file.as_ref().map_or(u64::MAX, |file| at + file.bytes());
            Some(file.ok_or_else(|| self.mismatch(0, "source file", "an entry outside the column")))
        }))
    }

    /// Checks that the source files may be opened. Sends no request.
    ///
    /// # Errors
    /// [`Error::ForeignSource`], for the first one that may not; [`Error::Index`].
    pub(crate) fn check_allowed(&self) -> Result<()> {
        for file in self.source_files()?.filter_map(Result::ok) {
            if let Err(refused @ Error::ForeignSource { .. }) = self.files.check_file(self.source.as_deref(), &file) {
                return Err(refused);
            }
        }
        Ok(())
    }

    /// Checks each source file, as far as that is possible without reading it.
    ///
    /// # Errors
    /// [`Error::Index`]. What is wrong with source files is in the result.
    pub(crate) fn check_files(&self) -> Result<Vec<Error>> {
        let checked = self.source_files()?.map(|file| self.check_file(&file?));
        Ok(checked.filter_map(Result::err).collect())
    }

    fn check_file(&self, file: &SourceFile<'_>) -> Result<()> {
        let path = self.files.path(self.source.as_deref(), file)?;
        if !shardtool_store::is_url(&path) {
            return self.files.open(self.source.as_deref(), file).map(drop);
        }
        match Object::open(&path) {
            Ok(object) if object.len() == file.length => Ok(()),
            Ok(object) => Err(Error::SourceLength { path, expected: file.length, found: object.len() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::MissingSource { path, problem: "does not exist" })
            }
            Err(source) => Err(Error::Io { action: "read", path, source }),
        }
    }

    /// Returns where the frame of a row lies; `None` past the last row.
    fn frame(&self, row: u64) -> Result<Option<Range<u64>>> {
        let offsets = self.index.fixed::<u64>(self.index.required().record_offset)?;
        let Some(offsets) = offsets else { return Ok(None) };
        let Some(start) = offsets.get(row) else { return Ok(None) };
        let end = offsets.get(row + 1).unwrap_or(self.len);
        if end <= start || end > self.len || end - start > LONGEST_FRAME {
            return Err(self.mismatch(row, "byte range", "a range outside the shard, or out of order"));
        }
        Ok(Some(start..end))
    }

    /// Returns the row whose frame holds the byte at an offset.
    fn row_at(&self, at: u64) -> Result<u64> {
        let offsets = self.index.fixed::<u64>(self.index.required().record_offset)?;
        let (mut first, mut end) = (0, offsets.map_or(0, |offsets| offsets.len() as u64));
        while first < end {
            let middle = first.midpoint(end);
            match offsets.and_then(|offsets| offsets.get(middle)) {
                Some(offset) if offset <= at => first = middle + 1,
                _ => end = middle,
            }
        }
        first
            .checked_sub(1)
            .ok_or_else(|| self.mismatch(0, "byte range", "a first record after the start of the shard"))
    }

    /// Returns the parts of the frame of a row, each with its source file.
    fn parts(&self, row: u64, frame: &Range<u64>) -> Result<Vec<(FramePart<'_>, Option<SourceFile<'_>>)>> {
        let ranges = self.index.variable(self.columns.ranges)?.and_then(|column| column.get(row));
        let bytes = self.index.variable(self.columns.bytes)?.and_then(|column| column.get(row));
        self.index.check_readable()?;
        let parts = frame_parts(ranges.unwrap_or_default(), bytes.unwrap_or_default(), frame.end - frame.start)
            .map_err(|problem| self.mismatch(row, "place in source files", problem))?;
        // All names, before the first file is opened, and each once: there may be as many ranges as bytes.
        let mut last: Option<(u64, SourceFile<'_>)> = None;
        let with_file = |part| {
            let FramePart::Source(range) = part else { return Ok((part, None)) };
            let file = match last.filter(|(entry, _)| *entry == range.file) {
                Some((_, file)) => file,
                None => {
                    let file = self.file(row, &range)?;
                    self.files.check_name(self.source.as_deref(), &file)?;
                    last.insert((range.file, file)).1
                }
            };
            match range.offset + u64::from(range.length) > file.length {
                true => Err(self.mismatch(row, "place in source files", "a range outside its file")),
                false => Ok((part, Some(file))),
            }
        };
        parts.into_iter().map(with_file).collect()
    }

    /// Returns the file of a source range.
    fn file(&self, row: u64, range: &SourceRange) -> Result<SourceFile<'_>> {
        let files = self.index.variable(self.columns.files)?.map_or(&[][..], |column| column.values());
        SourceFile::decode(files, range.file)
            .ok_or_else(|| self.mismatch(row, "source file", "an entry outside the column"))
    }

    /// Returns the parts of a range of the shard, in order.
    ///
    /// # Errors
    /// [`Error::Index`], [`Error::IndexMismatch`], [`Error::Unreadable`].
    fn locate(&self, range: &Range<u64>) -> Result<Vec<Located<'_>>> {
        let mut located = vec![];
        if range.is_empty() {
            return Ok(located);
        }
        let (mut row, mut at) = (self.row_at(range.start)?, range.start);
        while at < range.end {
            let frame = self.frame(row)?.filter(|frame| frame.contains(&at));
            let frame =
                frame.ok_or_else(|| self.mismatch(row, "byte range", "frames that do not follow each other"))?;
            let mut begin = frame.start;
            for (part, file) in self.parts(row, &frame)? {
                let end = begin + part.len();
                let (from, to) = (begin.max(range.start), end.min(range.end));
                if from < to {
                    let place = (from - range.start) as usize..(to - range.start) as usize;
                    let bytes = match (part, file) {
                        (FramePart::Bytes(bytes), _) => {
                            Bytes::Inline(&bytes[(from - begin) as usize..(to - begin) as usize])
                        }
                        (FramePart::Source(source), Some(file)) => {
                            let start = source.offset + (from - begin);
                            Bytes::Source(file, start..start + (to - from))
                        }
                        (FramePart::Source(_), None) => unreachable!("each range has its file"),
                    };
                    located.push(Located { place, bytes });
                }
                begin = end;
            }
            (row, at) = (row + 1, frame.end);
        }
        Ok(located)
    }

    fn mismatch(&self, row: u64, problem: &'static str, found: &str) -> Error {
        let (path, expected) = (self.index.path().to_owned(), found.to_owned());
        Error::IndexMismatch { path, record: Some(row), problem, expected, found: format!("{} bytes", self.len) }
    }
}

impl Composed for VirtualShard {
    fn check(&self, range: &Range<u64>) -> Result<()> {
        for Located { bytes, .. } in self.locate(range)? {
            if let Bytes::Source(file, _) = bytes {
                // Opening compares its length, in which the range lies.
                self.files.open(self.source.as_deref(), &file)?;
            }
        }
        Ok(())
    }

    fn append(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        for Located { place, bytes } in self.locate(&range)? {
            match bytes {
                Bytes::Inline(bytes) => out.extend_from_slice(bytes),
                Bytes::Source(file, range) => {
                    let opened = self.files.open(self.source.as_deref(), &file)?;
                    append_file(&opened, range.start, place.len(), out).map_err(|source| {
                        let path = self.files.path(self.source.as_deref(), &file).unwrap_or_default();
                        Error::Unreadable { path, record: None, key: None, bytes: range, source }
                    })?;
                }
            }
        }
        Ok(())
    }

    fn will_need(&self, range: Range<u64>) {
        self.advise(range, system::will_need);
    }

    fn release(&self, range: Range<u64>) {
        self.advise(range, system::will_not_need);
    }

    fn is_in_memory(&self, at: u64) -> bool {
        let mut found = false;
        self.each_source(at..at.saturating_add(1), |file, range| {
            found = system::is_in_memory(file, range.start);
            found
        });
        found
    }
}

/// Bytes behind a range that are read with it, and dropped, at most.
const READ_OVER: usize = 4096;

/// Appends `length` bytes of a file.
///
/// # Errors
/// `UnexpectedEof`, and those of the system.
fn append_file(file: &File, offset: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let (start, end) = (out.len(), out.len() + length);
    if out.capacity() < end || out.capacity() - end > READ_OVER {
        out.resize(end, 0);
        return file.read_exact_at(&mut out[start..], offset);
    }
    // Without zeros first: an image is most of its record, and few bytes follow it.
    while out.len() < end {
        let at = (out.len() - start) as u64;
        match pread(file, spare_capacity(out), offset + at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    out.truncate(end);
    Ok(())
}

/// Returns the error of a read of the shard as one of the system, and back.
pub(crate) fn as_io(error: Error) -> io::Error {
    match error {
        Error::Io { source, .. } => source,
        error => io::Error::other(error),
    }
}
