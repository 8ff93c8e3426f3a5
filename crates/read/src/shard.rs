//! One shard and its index, open.

use crate::bytes::{Access, FileBytes};
use crate::{Error, Record, Result};
use shardtool_format::frame::{self, Check};
use shardtool_format::index::{self, Fixed, Index, Scalar, Variable};
use shardtool_format::{manifest, names};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open shard: its bytes, and its index's. Cheap to open: the index's header and directory are checked, and each
/// column when it is first used.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    records: u64,
    bytes: FileBytes,
    index: Source,
    check: Check,
}

#[derive(Debug)]
enum Source {
    Index {
        path: PathBuf,
        bytes: IndexBytes,
        index: Index,
        /// Positions of the columns that every record needs.
        offset: usize,
        image: [usize; 2],
        key: usize,
        checked: Checked,
    },
    /// A bare TFRecord file: where each frame begins, and which feature holds the image.
    Scan { offsets: Arc<[u64]>, image: Option<String> },
}

#[derive(Debug)]
enum IndexBytes {
    Mapped(FileBytes),
    Read(Vec<u8>),
}

impl IndexBytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            IndexBytes::Mapped(file) => file.mapped().unwrap_or_default(),
            IndexBytes::Read(bytes) => bytes,
        }
    }
}

/// Which columns of a shard's index were found good, one bit each; outlives the shard in the cache, so that a column is
/// checked once however often its shard is mapped again. Columns past the 64th are checked at each use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checked(Arc<AtomicU64>);

impl Checked {
    fn contains(&self, column: usize) -> bool {
        column < 64 && self.0.load(Ordering::Relaxed) & (1 << column) != 0
    }

    fn insert(&self, column: usize) {
        if column < 64 {
            self.0.fetch_or(1 << column, Ordering::Relaxed);
        }
    }
}

/// What a shard is opened from.
pub(crate) enum Opening<'a> {
    /// A shard of a manifest, with its index.
    Indexed { entry: &'a manifest::Shard, checked: Checked },
    /// A bare TFRecord file, already scanned.
    Bare { offsets: Arc<[u64]>, image: Option<String> },
}

impl Shard {
    pub(crate) fn open(path: PathBuf, how: Opening<'_>, access: Access, check: Check) -> Result<Self> {
        let bytes = FileBytes::open(&path, access).map_err(|e| missing(e, |path| Error::MissingShard { path }))?;
        let (records, index) = match how {
            Opening::Bare { offsets, image } => (offsets.len() as u64, Source::Scan { offsets, image }),
            Opening::Indexed { entry, checked } => {
                if bytes.len() != entry.bytes {
                    return Err(Error::ShardLength { path, expected: entry.bytes, found: bytes.len() });
                }
                (entry.records, open_index(&path, entry, access, checked)?)
            }
        };
        Ok(Shard { path, records, bytes, index, check })
    }

    /// The shard's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records in the shard.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The shard's bytes.
    pub fn bytes(&self) -> &FileBytes {
        &self.bytes
    }

    /// Where a record's frame lies in the shard, in bytes.
    ///
    /// # Errors
    /// [`Error::Index`] where the index is damaged, [`Error::IndexMismatch`] for a row that the shard has not.
    pub fn frame(&self, row: u64) -> Result<std::ops::Range<u64>> {
        let range = match &self.index {
            Source::Scan { offsets, .. } => {
                let at = |row: u64| usize::try_from(row).ok().and_then(|row| offsets.get(row)).copied();
                at(row).map(|start| start..at(row + 1).unwrap_or(self.bytes.len()))
            }
            Source::Index { offset, .. } => {
                let offsets = self.fixed_at::<u64>(*offset)?;
                offsets.and_then(|o| Some(o.get(row)?..o.get(row + 1).unwrap_or(self.bytes.len())))
            }
        };
        range.filter(|r| r.start < r.end && r.end <= self.bytes.len()).ok_or_else(|| {
            let (expected, found) =
                ("a place outside the shard, or out of order", format!("{} bytes", self.bytes.len()));
            self.mismatch(row, "place", expected.to_owned(), found)
        })
    }

    /// From now on the system reads just what is touched or asked for ahead, not what lies around it: for orders that jump.
    /// Cheap when it was called before.
    pub fn read_exactly(&self) {
        self.bytes.read_exactly();
    }

    /// Gives up the pages of a record in the page cache: a hint that it will not be read again soon. Takes
    /// [`Shard::read_exactly`], or what lies around other records is read again.
    pub fn release(&self, row: u64) {
        if let Ok(range) = self.frame(row) {
            self.bytes.release(range, &self.path);
        }
    }

    /// A record, checked. `buffer` is memory to use where the file is not mapped; [`Record::into_buffer`] gives it back.
    ///
    /// # Errors
    /// [`Error::Record`] for damage, [`Error::Index`], [`Error::IndexMismatch`], [`Error::Io`].
    pub fn record(self: &Arc<Self>, row: u64, mut buffer: Vec<u8>) -> Result<Record> {
        let range = self.frame(row)?;
        let io = |source| Error::Io { action: "read", path: self.path.clone(), source };
        let (mapped, frame) = match self.bytes.mapped_range(&range) {
            Some(bytes) => (true, bytes.map_err(io)?),
            None => {
                self.bytes.read_into(range.clone(), &mut buffer).map_err(io)?;
                (false, &buffer[..])
            }
        };
        let data = frame::data(frame, range.start, self.check).map_err(|e| self.damage(row, e))?;
        if data.len() + frame::OVERHEAD_BYTES != frame.len() {
            let bytes = |n: usize| format!("{n} bytes");
            let (expected, found) = (bytes(frame.len()), bytes(data.len() + frame::OVERHEAD_BYTES));
            return Err(self.mismatch(row, "length of the frame", expected, found));
        }
        let start = if mapped { range.start as usize } else { 0 } + frame::HEADER_BYTES;
        let data = start..start + data.len();
        Ok(Record::new(self.clone(), row, data, (!mapped).then_some(buffer)))
    }

    /// A column of numbers, checked on first use; `None` where the shard has none of that name and type.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn column<T: Scalar>(&self, name: &str) -> Result<Option<Fixed<'_, T>>> {
        match self.index().and_then(|index| index.position(name)) {
            Some(column) => self.fixed_at(column),
            None => Ok(None),
        }
    }

    /// A feature's column: exactly one number in every record of this shard. `None` where it is not.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn feature<T: Scalar>(&self, name: &str) -> Result<Option<Fixed<'_, T>>> {
        match self.index().and_then(|i| i.columns().iter().position(|c| is_feature(c.name(), name))) {
            Some(column) => self.fixed_at(column),
            None => Ok(None),
        }
    }

    /// A variable column, checked on first use: [`index::KEY`], [`index::JPEG_ENTRIES`].
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn variable(&self, name: &str) -> Result<Option<Variable<'_>>> {
        let Some(column) = self.index().and_then(|index| index.position(name)) else { return Ok(None) };
        self.checked(column)?;
        Ok(self.index().and_then(|index| index.variable(self.index_bytes(), column)))
    }

    /// Key of a record.
    ///
    /// # Errors
    /// [`Error::Index`]; for bare files, what reading the record gives.
    pub fn key(self: &Arc<Self>, row: u64) -> Result<Cow<'_, [u8]>> {
        match &self.index {
            Source::Index { key, .. } => {
                self.checked(*key)?;
                let keys = self.index().and_then(|index| index.variable(self.index_bytes(), *key));
                Ok(Cow::Borrowed(keys.and_then(|k| k.get(row)).unwrap_or_default()))
            }
            Source::Scan { .. } => {
                let record = self.record(row, vec![])?;
                let key = names::key_of(record.example().ok().as_ref(), &self.file_name(), row).into_owned();
                Ok(Cow::Owned(key))
            }
        }
    }

    /// Where the image lies in the record's data; empty where the record has none.
    pub(crate) fn image(&self, row: u64, data: &[u8]) -> Result<std::ops::Range<usize>> {
        match &self.index {
            Source::Index { image: [offset, length], .. } => {
                let (offset, length) = (self.fixed_at::<u32>(*offset)?, self.fixed_at::<u32>(*length)?);
                let range = offset.and_then(|o| o.get(row)).zip(length.and_then(|l| l.get(row)));
                let range = range.map(|(offset, length)| offset as usize..offset as usize + length as usize);
                range.clone().filter(|r| r.end <= data.len()).ok_or_else(|| {
                    let (expected, found) = (format!("{range:?}"), format!("{} bytes of data", data.len()));
                    self.mismatch(row, "place of the image", expected, found)
                })
            }
            Source::Scan { image, .. } => {
                let example = shardtool_format::example::Example::parse(data).map_err(|e| self.damage(row, e))?;
                let bytes = image.as_deref().and_then(|name| example.bytes(name));
                Ok(bytes.and_then(|b| shardtool_format::example::range_within(data, b)).unwrap_or(0..0))
            }
        }
    }

    /// The index, where there is one.
    pub fn index(&self) -> Option<&Index> {
        match &self.index {
            Source::Index { index, .. } => Some(index),
            Source::Scan { .. } => None,
        }
    }

    /// Bytes of the index's file; empty where there is none.
    pub fn index_bytes(&self) -> &[u8] {
        match &self.index {
            Source::Index { bytes, .. } => bytes.as_slice(),
            Source::Scan { .. } => &[],
        }
    }

    /// Damage of a record of this shard, with its key where the index can tell.
    pub(crate) fn damage(&self, row: u64, source: shardtool_format::Error) -> Error {
        let key = match &self.index {
            Source::Index { index, key, bytes, .. } => {
                index.variable(bytes.as_slice(), *key).and_then(|k| k.get(row)).map(<[u8]>::to_vec)
            }
            Source::Scan { .. } => None,
        };
        Error::Record { path: self.path.clone(), record: row, key, source }
    }

    fn file_name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    fn fixed_at<T: Scalar>(&self, column: usize) -> Result<Option<Fixed<'_, T>>> {
        self.checked(column)?;
        Ok(self.index().and_then(|index| index.fixed(self.index_bytes(), column)))
    }

    fn checked(&self, column: usize) -> Result<()> {
        if let Source::Index { index, bytes, checked, path, .. } = &self.index
            && !checked.contains(column)
        {
            let wrong = |source| Error::Index { path: path.clone(), source };
            index.check(bytes.as_slice(), column).map_err(wrong)?;
            checked.insert(column);
        }
        Ok(())
    }

    fn mismatch(&self, row: u64, problem: &'static str, expected: String, found: String) -> Error {
        Error::IndexMismatch { path: self.path.clone(), record: Some(row), problem, expected, found }
    }
}

fn is_feature(column: &str, name: &str) -> bool {
    column.strip_prefix(index::FEATURE_PREFIX) == Some(name)
}

/// Turns "no such file" into the error that names what is missing.
fn missing(error: Error, name: impl FnOnce(PathBuf) -> Error) -> Error {
    match error {
        Error::Io { path, source, .. } if source.kind() == std::io::ErrorKind::NotFound => name(path),
        other => other,
    }
}

/// Path of the index of the shard at `shard`.
pub(crate) fn index_path(shard: &Path) -> PathBuf {
    let file = shard.file_name().unwrap_or_default().to_string_lossy();
    shard.with_file_name(names::INDEX_FOLDER).join(names::index_file(&file))
}

fn open_index(shard: &Path, entry: &manifest::Shard, access: Access, checked: Checked) -> Result<Source> {
    let path = index_path(shard);
    let file = FileBytes::open(&path, access).map_err(|e| missing(e, |path| Error::MissingIndex { path }))?;
    let bytes = if file.mapped().is_some() {
        IndexBytes::Mapped(file)
    } else {
        let io = |source| Error::Io { action: "read", path: path.clone(), source };
        IndexBytes::Read(file.range(0..file.len()).map_err(io)?.into_owned())
    };
    let wrong = |source| Error::Index { path: path.clone(), source };
    let index = Index::parse(bytes.as_slice()).map_err(wrong)?;
    // Three numbers tie an index to its shard; the whole CRCs are for `verify`.
    let (expected, found) = ((entry.records, entry.bytes, entry.crc32c), of_index(&index));
    if expected != found {
        let show = |(records, bytes, crc): (u64, u64, u32)| format!("{records} records, {bytes} bytes, CRC {crc:08x}");
        let (expected, found) = (show(found), show(expected));
        let problem = "it was made for another shard than the manifest lists";
        return Err(Error::IndexMismatch { path: shard.to_owned(), record: None, problem, expected, found });
    }
    let Required { offset, image, key } = Required::of(&index).map_err(wrong)?;
    Ok(Source::Index { path, bytes, index, offset, image, key, checked })
}

/// Positions of the columns that every index must have.
pub(crate) struct Required {
    offset: usize,
    image: [usize; 2],
    key: usize,
}

impl Required {
    /// # Errors
    /// [`shardtool_format::Error::IndexColumn`].
    pub(crate) fn of(index: &Index) -> shardtool_format::Result<Self> {
        let column = |name: &str, element| {
            let position = index.position(name).filter(|at| index.columns()[*at].element() == element);
            position.ok_or_else(|| shardtool_format::Error::IndexColumn { column: name.to_owned() })
        };
        let number = |name| column(name, index::Element::U32);
        Ok(Required {
            offset: column(index::RECORD_OFFSET, index::Element::U64)?,
            image: [number(index::IMAGE_OFFSET)?, number(index::IMAGE_LENGTH)?],
            key: column(index::KEY, index::Element::Bytes)?,
        })
    }
}

fn of_index(index: &Index) -> (u64, u64, u32) {
    (index.records(), index.shard_bytes(), index.shard_crc())
}
