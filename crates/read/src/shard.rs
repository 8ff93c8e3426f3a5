//! One shard and its index, open.

use crate::bytes::FileBytes;
use crate::frames::compression;
use crate::mapping::Mapping;
use crate::options::Options;
use crate::overlay::Overlay;
use crate::prefetch::prefetch;
use crate::shard_index::{Checked, ShardIndex, content_name, missing};
use crate::virtual_shard::{SourceFiles, VirtualShard, Wrong};
use crate::{Error, Record, Result};
use shardtool_format::example::{Example, Message, range_within};
use shardtool_format::frame::{self, Check};
use shardtool_format::index::Required;
use shardtool_format::{manifest, names};
use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open shard: its bytes and those of its index. Opening checks the index's header and directory; each column is
/// checked on its first use.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    records: u64,
    /// Length in the manifest, in bytes. The file may have another one: records inside both are good.
    length: u64,
    bytes: FileBytes,
    /// Whose bytes these are, if the shard is virtual.
    virtual_shard: Option<Arc<VirtualShard>>,
    directory: Directory,
    message: Message,
    check: Check,
    /// What the dataset's version has in the place of stored features.
    pub(super) overlay: Option<Box<Overlay>>,
}

/// The offsets of a shard's records, from its index or from a scan of its frames.
#[derive(Debug)]
enum Directory {
    Index(Arc<ShardIndex>),
    /// A bare TFRecord file: the offset of each frame, and the feature that holds the image.
    Scan {
        offsets: Arc<[u64]>,
        image: Option<String>,
    },
}

/// Bytes of a record that [`Shard::prefetch`] loads. The processor loads the following ones by itself once these are read.
const PREFETCHED: u64 = 1088;

/// What a shard is opened from.
pub(crate) enum Opening<'a> {
    /// A shard of a manifest, with its index.
    Indexed {
        entry: &'a manifest::Shard,
        checked: Checked,
        overlay: Option<Box<Overlay>>,
        sources: &'a Arc<SourceFiles>,
    },
    /// A bare TFRecord file whose frames are known.
    Bare { offsets: Arc<[u64]>, image: Option<String> },
}

impl Shard {
    pub(crate) fn open(
        path: PathBuf,
        how: Opening<'_>,
        message: Message,
        &Options { access, check, ref cache, .. }: &Options,
    ) -> Result<Self> {
        let file = |known, content| {
            let bytes = FileBytes::open_ranges(&path, access, known, cache.as_ref().zip(content));
            bytes.map_err(|e| missing(e, |path| Error::MissingShard { path }))
        };
        let mut virtual_shard = None;
        let (records, length, bytes, directory, overlay) = match how {
            Opening::Bare { offsets, image } => {
                let bytes = file(0, None)?;
                (offsets.len() as u64, bytes.len(), bytes, Directory::Scan { offsets, image }, None)
            }
            Opening::Indexed { entry, checked, overlay, sources } => {
                let content = content_name(entry, false);
                let stored =
                    if entry.foreign.is_virtual { None } else { Some(file(entry.bytes, Some(content.clone()))?) };
                let index = Arc::new(ShardIndex::open(&path, entry, access, cache.as_ref(), checked)?);
                let bytes = match stored {
                    Some(bytes) => bytes,
                    None => {
                        let shard = VirtualShard::new(&path, entry, index.clone(), sources.clone(), check)?;
                        let shard = &*virtual_shard.insert(Arc::new(shard));
                        shard.bytes(path.parent().unwrap_or(&path), cache.as_ref().zip(Some(content)))
                    }
                };
                (entry.records, entry.bytes, bytes, Directory::Index(index), overlay)
            }
        };
        Ok(Shard { path, records, length, bytes, virtual_shard, directory, message, check, overlay })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of records, with those that the version has deleted ([`crate::Split::rows`] are the others).
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the shard's bytes.
    pub fn bytes(&self) -> &FileBytes {
        &self.bytes
    }

    /// Returns what is wrong with the source files of a record of a virtual shard.
    pub(crate) fn wrong_source(&self, row: u64) -> Option<Wrong> {
        self.virtual_shard.as_ref().and_then(|shard| shard.wrong_source(row))
    }

    /// Checks the source files of a virtual shard, as far as that is possible without reading them. Returns what is wrong.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub(crate) fn check_source_files(&self) -> Result<Vec<Error>> {
        self.virtual_shard.as_ref().map_or(Ok(vec![]), |shard| shard.check_files())
    }

    /// Checks that the source files of a virtual shard may be opened.
    ///
    /// # Errors
    /// [`Error::ForeignSource`], [`Error::Index`].
    pub(crate) fn check_allowed(&self) -> Result<()> {
        self.virtual_shard.as_ref().map_or(Ok(()), |shard| shard.check_allowed())
    }

    /// Returns which CRCs of records are checked.
    pub(crate) fn check(&self) -> Check {
        self.check
    }

    /// Returns the byte range of a record's frame in the shard.
    ///
    /// # Errors
    /// [`Error::Index`] if the index is damaged; [`Error::IndexMismatch`] if the range is empty or runs past the length in
    /// the manifest, or the shard has no such row; [`Error::ShardLength`] if the file ends before the frame does.
    pub fn frame(&self, row: u64) -> Result<Range<u64>> {
        let frame = self.indexed_frame(row);
        match self.check_index_readable() {
            Ok(()) => frame,
            Err(error) => Err(error),
        }
    }

    /// As [`Shard::frame`], but without asking whether the index could be read.
    fn indexed_frame(&self, row: u64) -> Result<Range<u64>> {
        let (start, next) = self.starts(row)?;
        let end = match (start, next) {
            // The next row's offset is wrong, but this record must stay readable.
            (Some(start), Some(next)) if start < self.length && next > self.length => {
                let left = self.bytes.len().saturating_sub(start);
                if left < frame::HEADER_BYTES as u64 && self.bytes.len() < self.length {
                    return Err(self.cut_off());
                }
                self.frame_end(row, start)?
            }
            (Some(start), Some(next)) if next <= start && self.follows(row, start) => {
                self.frame_end(row, start).unwrap_or(next)
            }
            _ => next.unwrap_or(self.length),
        };
        let range =
            start.map(|start| start..end).filter(|r| r.start < r.end && r.end <= self.length).ok_or_else(|| {
                let (expected, found) =
                    ("a range outside the shard, or out of order", format!("{} bytes", self.length));
                self.mismatch(row, "byte range", expected.to_owned(), found)
            })?;
        if range.end > self.bytes.len() {
            return Err(self.cut_off());
        }
        Ok(range)
    }

    /// Returns the offsets of the frames of a row and the next one, unchecked; `None` for a row past the last one.
    fn starts(&self, row: u64) -> Result<(Option<u64>, Option<u64>)> {
        Ok(match &self.directory {
            Directory::Scan { offsets, .. } => {
                let at = |row: u64| usize::try_from(row).ok().and_then(|row| offsets.get(row)).copied();
                (at(row), at(row + 1))
            }
            Directory::Index(index) => {
                let offsets = index.fixed::<u64>(index.required().record_offset)?;
                offsets.map_or((None, None), |offsets| (offsets.get(row), offsets.get(row + 1)))
            }
        })
    }

    /// Returns the error of a frame behind the end of the file.
    fn cut_off(&self) -> Error {
        let (expected, found) = (self.length, self.bytes.len());
        Error::ShardLength { path: self.path.clone(), expected, found }
    }

    /// Returns whether a row's frame begins where the frame of the preceding row ends, so that its own offset is right.
    fn follows(&self, row: u64, start: u64) -> bool {
        let Some(before) = row.checked_sub(1) else { return start == 0 };
        let at = self.starts(before).ok().and_then(|(at, _)| at);
        at.is_some_and(|at| self.frame_end(before, at).is_ok_and(|end| end == start))
    }

    /// Returns the end of the frame at `start`, from its header.
    fn frame_end(&self, row: u64, start: u64) -> Result<u64> {
        let left = self.bytes.len().saturating_sub(start);
        let header = start..start + left.min(frame::HEADER_BYTES as u64);
        let length = self.bytes.with(header, |header| frame::whole_length(header, left, start));
        let length = length.map_err(|error| self.unreadable(row, error))?;
        Ok(start + length.map_err(|source| self.damage(row, source))?)
    }

    /// Turns read-around off, for orders that jump: the system then reads only touched pages and those that
    /// [`crate::Split::will_need`] names. Calls after the first one do nothing.
    pub fn read_exactly(&self) {
        self.bytes.read_exactly();
    }

    /// Hints that a record of a mapped shard is read soon: the processor loads the start of its frame, and where its image lies.
    /// Waits at most for the record's offset in the index. Checks nothing: reading the record returns errors.
    pub fn prefetch(&self, row: u64) {
        let (Some(mapped), Some(next)) = (self.bytes.mapped(), row.checked_add(1)) else { return };
        let (start, end) = match &self.directory {
            Directory::Scan { offsets, .. } => {
                let at = |row: u64| offsets.get(usize::try_from(row).ok()?).copied();
                (at(row), at(next))
            }
            Directory::Index(index) => {
                let Required { record_offset, image_offset, image_length, .. } = *index.required();
                for column in [image_offset, image_length] {
                    let stored = index.unchecked_fixed::<u32>(column).and_then(|column| column.stored_bytes(row));
                    prefetch(stored.unwrap_or_default());
                }
                let offsets = index.unchecked_fixed::<u64>(record_offset);
                (offsets.and_then(|offsets| offsets.get(row)), offsets.and_then(|offsets| offsets.get(next)))
            }
        };
        let frame = start.and_then(|start| mapped.get(usize::try_from(start).ok()?..)).unwrap_or_default();
        let length = end.zip(start).map_or(u64::MAX, |(end, start)| end.saturating_sub(start)).min(PREFETCHED);
        prefetch(&frame[..frame.len().min(length as usize)]);
    }

    /// Hints that a record will not be read again soon: drops its pages from the page cache. Call
    /// [`Shard::read_exactly`] first, otherwise read-around of neighbouring records reads them again.
    pub fn release(&self, row: u64) {
        if let Ok(range) = self.frame(row) {
            self.bytes.release(range);
        }
    }

    /// Reads and checks a record as it is stored, into `buffer` if the file is not mapped, or its mapped bytes cannot be read.
    /// [`Record::into_buffer`] returns the buffer.
    ///
    /// # Errors
    /// [`Error::Record`] for damage, [`Error::Unreadable`], and those of [`Shard::frame`].
    pub fn record(self: &Arc<Self>, row: u64, buffer: Vec<u8>) -> Result<Record> {
        self.clone().into_record(row, buffer)
    }

    /// As [`Shard::record`], of a reference that the record keeps.
    pub(crate) fn into_record(self: Arc<Self>, row: u64, buffer: Vec<u8>) -> Result<Record> {
        let range = self.frame(row)?;
        match self.data_at(row, &range, buffer) {
            Ok((data, buffer)) => Ok(Record::new(self, row, data, buffer)),
            Err(error) => self.record_without_next(row, range, error),
        }
    }

    /// Reads a record whose bytes up to the offset of the next row are damaged: that offset may be wrong, but this record
    /// must stay readable. Returns `error` if it is right.
    #[cold]
    fn record_without_next(
        self: &Arc<Self>,
        row: u64,
        Range { start, end }: Range<u64>,
        error: Error,
    ) -> Result<Record> {
        match self.frame_end(row, start) {
            Ok(own) if error.is_damage() && own != end && own <= self.length && self.follows(row, start) => {
                let (data, buffer) = self.data_at(row, &(start..own), vec![])?;
                Ok(Record::new(self.clone(), row, data, buffer))
            }
            _ => Err(error),
        }
    }

    /// Reads and checks the frame of a record, which lies at `range`. Returns where its data lie: in the mapping or, if that
    /// cannot be used, in the buffer.
    fn data_at(&self, row: u64, range: &Range<u64>, mut buffer: Vec<u8>) -> Result<(Range<usize>, Option<Vec<u8>>)> {
        let failed = |error| self.unreadable(row, error);
        if let Some(bytes) = self.bytes.mapped_range(range) {
            let data =
                self.check_frame(row, range, bytes.map_err(|e| failed(self.bytes.unreadable(range.clone(), e)))?);
            if self.bytes.stands(range, data.is_ok()).map_err(failed)? {
                let start = range.start as usize + frame::HEADER_BYTES;
                return Ok((start..start + data?, None));
            }
        }
        self.bytes.read_into(range.clone(), &mut buffer).map_err(failed)?;
        self.data_in(row, range, buffer)
    }

    /// Checks the frame of a record, which lies at `range` and was read into `buffer`. Requests bytes of a store again if
    /// they fail the check.
    fn data_in(&self, row: u64, range: &Range<u64>, mut buffer: Vec<u8>) -> Result<(Range<usize>, Option<Vec<u8>>)> {
        let check = |frame: &[u8]| self.check_frame(row, range, frame);
        let checked = self.bytes.check_again(range.clone(), &mut buffer, check);
        let length = checked.map_err(|error| self.unreadable(row, error))??;
        Ok((frame::HEADER_BYTES..frame::HEADER_BYTES + length, Some(buffer)))
    }

    /// As [`Shard::record`], of a record whose frame was read by the caller, at the range that [`Shard::frame`] returns.
    ///
    /// # Errors
    /// As [`Shard::record`].
    pub fn record_in(self: &Arc<Self>, row: u64, frame: Vec<u8>) -> Result<Record> {
        let range = self.frame(row)?;
        if frame.len() as u64 != range.end - range.start {
            return self.record(row, frame);
        }
        match self.data_in(row, &range, frame) {
            Ok((data, buffer)) => Ok(Record::new(self.clone(), row, data, buffer)),
            Err(error) => self.record_without_next(row, range, error),
        }
    }

    /// Checks the frame of a record, which lies at `range`. Returns the length of its data.
    fn check_frame(&self, row: u64, range: &Range<u64>, frame: &[u8]) -> Result<usize> {
        let data = frame::data(frame, range.start, self.check).map_err(|e| self.damage(row, e))?;
        if data.len() + frame::OVERHEAD_BYTES != frame.len() {
            let bytes = |n: usize| format!("{n} bytes");
            let (expected, found) = (bytes(frame.len()), bytes(data.len() + frame::OVERHEAD_BYTES));
            return Err(self.mismatch(row, "length of the frame", expected, found));
        }
        Ok(data.len())
    }

    /// Returns an error if the index is mapped and bytes of it could not be read since it was opened: what was computed
    /// from them may be wrong. Call it after the last use of a column.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn check_index_readable(&self) -> Result<()> {
        self.overlay.as_ref().map_or(Ok(()), |overlay| overlay.check_readable())?;
        self.index().map_or(Ok(()), ShardIndex::check_readable)
    }

    /// Lends the bytes of the index to code that does not call [`Shard::check_index_readable`], such as arrays in another
    /// language.
    pub fn lend_index(self: &Arc<Self>) -> LentIndex {
        // Columns that are opened later would not be lent.
        self.overlay.iter().for_each(|overlay| overlay.open_all());
        self.mappings().for_each(Mapping::lend);
        LentIndex(self.clone())
    }

    /// Returns the mappings of the index and of open columns.
    fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        let columns = self.overlay.iter().flat_map(|overlay| overlay.mapped());
        self.index().and_then(ShardIndex::mapping).into_iter().chain(columns.filter_map(|file| file.mapping()))
    }

    /// Returns the key of a record.
    ///
    /// # Errors
    /// [`Error::Index`]; for bare files, those of [`Shard::record`].
    pub fn key(self: &Arc<Self>, row: u64) -> Result<Cow<'_, [u8]>> {
        match &self.directory {
            Directory::Index(index) => {
                let keys = index.variable(index.required().key)?;
                let key = keys.and_then(|k| k.get(row)).unwrap_or_default();
                self.check_index_readable()?;
                Ok(Cow::Borrowed(key))
            }
            Directory::Scan { .. } => {
                let record = self.record(row, vec![])?;
                let key = names::key_of(record.example().ok().as_ref(), &self.file_name(), row).into_owned();
                Ok(Cow::Owned(key))
            }
        }
    }

    /// Returns whether records of the version differ from those that are stored.
    pub(crate) fn is_changed(&self) -> bool {
        self.overlay.is_some()
    }

    /// Parses the data of a record, and puts the version's features in the place of the stored ones.
    pub(crate) fn parse<'d>(&'d self, row: u64, data: &'d [u8]) -> Result<Example<'d>> {
        let mut example = self.parse_stored(row, data)?;
        if let Some(overlay) = &self.overlay {
            overlay.apply(row, &mut example)?;
        }
        Ok(example)
    }

    /// Parses the data of a record as it is stored.
    pub(crate) fn parse_stored<'d>(&self, row: u64, data: &'d [u8]) -> Result<Example<'d>> {
        self.message.parse(data).map_err(|e| self.damage(row, e))
    }

    /// Returns the range of the image in the record's data; it begins at 0 if the record has none.
    pub(crate) fn image(&self, row: u64, data: &[u8]) -> Result<Range<usize>> {
        match &self.directory {
            Directory::Index(index) => {
                let Required { image_offset, image_length, .. } = *index.required();
                let (offset, length) = (index.fixed::<u32>(image_offset)?, index.fixed::<u32>(image_length)?);
                let range = offset.and_then(|o| o.get(row)).zip(length.and_then(|l| l.get(row)));
                self.check_index_readable()?;
                let range = range.map(|(offset, length)| offset as usize..offset as usize + length as usize);
                range.clone().filter(|r| r.end <= data.len()).ok_or_else(|| {
                    let (expected, found) = (format!("{range:?}"), format!("{} bytes of data", data.len()));
                    self.mismatch(row, "byte range of the image", expected, found)
                })
            }
            Directory::Scan { image, .. } => {
                let example = self.parse_stored(row, data)?;
                let bytes = image.as_deref().and_then(|name| example.bytes(name));
                Ok(bytes.and_then(|b| range_within(data, b)).unwrap_or(0..0))
            }
        }
    }

    /// Returns the error of a damaged record of this shard, with its key if the index has it; or that the whole file is
    /// compressed.
    pub(crate) fn damage(&self, row: u64, source: shardtool_format::Error) -> Error {
        match self.wrong_source(row) {
            Some(Wrong::Bytes { path, bytes }) => {
                let (key, source) = (self.known_key(row), Box::new(source));
                return Error::SourceBytes { path, bytes, record: row, key, source };
            }
            Some(Wrong::File(error)) => return self.unreadable(row, error),
            None => {}
        }
        let header = 0..self.bytes.len().min(frame::HEADER_BYTES as u64);
        let compression = self.bytes.with(header, |header| Ok::<_, Infallible>(compression(&source, header)));
        if let Ok(Ok(Some(compression))) = compression {
            return Error::CompressedRecords { path: self.path.clone(), compression };
        }
        Error::Record { path: self.path.clone(), record: row, key: self.known_key(row), source }
    }

    /// Adds the record to the error of its bytes, with its key if the index has it.
    pub(crate) fn unreadable(&self, row: u64, error: Error) -> Error {
        error.of_record(row, || self.known_key(row))
    }

    /// Returns the key of a record if the index has it, unchecked: a damaged key column must not hide the record's error.
    fn known_key(&self, row: u64) -> Option<Vec<u8>> {
        self.index()?.unchecked_key(row).map(<[u8]>::to_vec)
    }

    pub(super) fn index(&self) -> Option<&ShardIndex> {
        match &self.directory {
            Directory::Index(index) => Some(index),
            Directory::Scan { .. } => None,
        }
    }

    fn file_name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    pub(crate) fn mismatch(&self, row: u64, problem: &'static str, expected: String, found: String) -> Error {
        let path = self.index().map_or(self.path(), ShardIndex::path).to_owned();
        Error::IndexMismatch { path, record: Some(row), problem, expected, found }
    }
}

/// A shard whose index is lent: if a page of a mapped index cannot be read meanwhile, the process prints a message and
/// ends, since the zeros would pass for data.
#[derive(Debug)]
pub struct LentIndex(Arc<Shard>);

impl Deref for LentIndex {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.0
    }
}

impl Drop for LentIndex {
    fn drop(&mut self) {
        self.0.mappings().for_each(Mapping::unlend);
    }
}
