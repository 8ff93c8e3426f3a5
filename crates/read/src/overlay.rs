//! The columns of a version, which take the place of features of a shard's records. A column lies in a companion, a part of a file
//! that the shards of a change share; it is opened and checked on its first use, so that damage costs that column only.

use crate::access::Access;
use crate::bytes::FileBytes;
use crate::{Error, Result};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{Example, Feature};
use shardtool_format::index::{Element, Fixed, Index, Scalar, Variable};
use shardtool_format::manifest::{self, DType, FilePart, Manifest};
use shardtool_format::names;
use shardtool_store::cache::Cache;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The files of columns and bitmaps of a dataset.
#[derive(Debug)]
pub(crate) struct CompanionFiles {
    folder: PathBuf,
    access: Access,
    cache: Option<Cache>,
    /// Open files: all shards of a change are in one. (In a store, each part is an object of its own.)
    open: Mutex<HashMap<String, Arc<FileBytes>>>,
}

/// The bytes of a companion.
#[derive(Debug)]
pub(crate) enum PartBytes {
    Mapped(Arc<FileBytes>, Range<u64>),
    Read(Vec<u8>),
}

impl AsRef<[u8]> for PartBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            PartBytes::Mapped(file, range) => {
                file.mapped().and_then(|all| all.get(range.start as usize..range.end as usize)).unwrap_or_default()
            }
            PartBytes::Read(bytes) => bytes,
        }
    }
}

impl CompanionFiles {
    pub(crate) fn new(folder: &Path, access: Access, cache: Option<Cache>) -> Self {
        let folder = folder.join(names::COLUMNS_FOLDER);
        CompanionFiles { folder, access, cache, open: Mutex::default() }
    }

    pub(crate) fn path(&self, part: &FilePart) -> PathBuf {
        self.folder.join(&part.file)
    }

    /// Returns the bytes of a part: mapped if `map`, otherwise read, from a store again until its CRC matches or two answers are
    /// equal. The CRC is not compared otherwise.
    ///
    /// # Errors
    /// [`Error::MissingCompanion`], [`Error::Io`], [`Error::Unreadable`].
    pub(crate) fn bytes(&self, part: &FilePart, map: bool) -> Result<PartBytes> {
        let path = self.path(part);
        let missing = || Error::MissingCompanion { path: path.clone() };
        let range = part.offset..part.end().ok_or_else(missing)?;
        let file = self.open(part, range.end).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => missing(),
            error => error,
        })?;
        if file.object().is_none() && range.end > file.len() {
            return Err(missing());
        }
        if map && file.maps(&range) {
            return Ok(PartBytes::Mapped(file, range));
        }
        let mut bytes = vec![];
        let read = file.read_into(range.clone(), &mut bytes);
        read.map_err(|error| match error {
            Error::Unreadable { source, .. } if source.kind() == ErrorKind::NotFound => missing(),
            error => error,
        })?;
        let same = |bytes: &[u8]| if crc32c(bytes) == part.crc32c { Ok(()) } else { Err(()) };
        // What fails is found by the checks of its parts.
        let _ = file.check_again(range, &mut bytes, same)?;
        Ok(PartBytes::Read(bytes))
    }

    fn open(&self, part: &FilePart, end: u64) -> Result<Arc<FileBytes>> {
        let path = self.path(part);
        if shardtool_store::is_url(&path) {
            let name = format!("{}-{}-{end}-{:08x}", part.file, part.offset, part.crc32c);
            let file = FileBytes::open_ranges(&path, self.access, end, self.cache.as_ref().map(|cache| (cache, name)))?;
            return Ok(Arc::new(file));
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(&part.file) {
            return Ok(file.clone());
        }
        let file = Arc::new(FileBytes::open(&path, self.access)?);
        open.insert(part.file.clone(), file.clone());
        Ok(file)
    }
}

/// What the version of a shard has in the place of stored features.
#[derive(Debug)]
pub(crate) struct Overlay {
    files: Arc<CompanionFiles>,
    dropped: Arc<[String]>,
    /// In byte order of the features.
    columns: Vec<Column>,
    shard: ShardOf,
}

/// The shard that a companion must name.
#[derive(Debug, Clone, Copy)]
struct ShardOf {
    records: u64,
    bytes: u64,
    crc: u32,
}

#[derive(Debug)]
struct Column {
    companion: manifest::Companion,
    /// The elements of its rows; `None` if these are messages.
    element: Option<Element>,
    open: OnceLock<Open>,
}

/// A companion whose only column is checked.
#[derive(Debug)]
struct Open {
    index: Index<PartBytes>,
}

/// What a version has for a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlaid {
    /// What is stored.
    Stored,
    /// Nothing: the feature was dropped.
    Dropped,
    /// A column of numbers or byte strings, at most one a row.
    Column(Element),
    /// A column of messages.
    Encoded,
}

impl Overlay {
    /// Returns the overlay of a shard; `None` if all that the records have is stored.
    pub(crate) fn new(
        files: &Arc<CompanionFiles>,
        manifest: &Manifest,
        dropped: &Arc<[String]>,
        entry: &manifest::Shard,
    ) -> Option<Box<Self>> {
        if dropped.is_empty() && entry.companions.columns.is_empty() {
            return None;
        }
        let column = |companion: &manifest::Companion| Column {
            companion: companion.clone(),
            element: element(manifest, companion),
            open: OnceLock::new(),
        };
        let shard = ShardOf { records: entry.records, bytes: entry.bytes, crc: entry.crc32c };
        let columns = entry.companions.columns.iter().map(column).collect();
        Some(Box::new(Overlay { files: files.clone(), dropped: dropped.clone(), columns, shard }))
    }

    fn column(&self, feature: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.companion.feature() == feature)
    }

    /// Returns the features that have columns.
    pub(crate) fn features(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.companion.feature())
    }

    /// Returns what the version has for a feature. Opens nothing.
    pub(crate) fn of(&self, feature: &str) -> Overlaid {
        match self.column(feature) {
            Some(Column { element: Some(element), .. }) => Overlaid::Column(*element),
            Some(_) => Overlaid::Encoded,
            None if self.dropped.iter().any(|dropped| dropped == feature) => Overlaid::Dropped,
            None => Overlaid::Stored,
        }
    }

    /// Returns a column of numbers, checked on its first use; `None` if it is of another type.
    ///
    /// # Errors
    /// [`Error::MissingCompanion`], [`Error::Companion`], [`Error::IndexMismatch`], [`Error::RecordCount`], [`Error::Io`].
    pub(crate) fn fixed<T: Scalar>(&self, feature: &str) -> Result<Option<Fixed<'_, T>>> {
        let Some(column) = self.column(feature).filter(|column| column.element == Some(T::ELEMENT)) else {
            return Ok(None);
        };
        Ok(self.open(column)?.index.fixed(0))
    }

    /// As [`Overlay::fixed`], of byte strings.
    ///
    /// # Errors
    /// As [`Overlay::fixed`].
    pub(crate) fn variable(&self, feature: &str) -> Result<Option<Variable<'_>>> {
        let Some(column) = self.column(feature).filter(|column| column.element == Some(Element::Bytes)) else {
            return Ok(None);
        };
        Ok(self.open(column)?.index.variable(0))
    }

    /// Returns the feature of a record in this version; `None` if the version has what is stored, `Some(None)` if the record has
    /// no such feature.
    ///
    /// # Errors
    /// As [`Overlay::fixed`]; [`Error::Companion`] for a row that is not a message.
    pub(crate) fn feature(&self, row: u64, feature: &str) -> Result<Option<Option<Feature<'_>>>> {
        match self.column(feature) {
            Some(column) => self.row(column, row).map(Some),
            None if self.dropped.iter().any(|dropped| dropped == feature) => Ok(Some(None)),
            None => Ok(None),
        }
    }

    fn row<'o>(&'o self, column: &'o Column, row: u64) -> Result<Option<Feature<'o>>> {
        let index = &self.open(column)?.index;
        Ok(match column.element {
            Some(Element::I64) => index.fixed::<i64>(0).and_then(|c| c.get(row)).map(Feature::of_int64),
            Some(Element::F32) => index.fixed::<f32>(0).and_then(|c| c.get(row)).map(Feature::of_float),
            Some(_) => index.variable(0).and_then(|c| c.get(row)).map(Feature::of_bytes),
            None => match index.variable(0).and_then(|c| c.get(row)) {
                Some(message) => Some(Feature::parse(message).map_err(|_| {
                    let name = column.companion.name.clone();
                    let problem = "a row that is not a message `Feature`";
                    self.damaged(column, shardtool_format::Error::ColumnValue { column: name, row, problem })
                })?),
                None => None,
            },
        })
    }

    /// Puts the version's features of a record in the place of the stored ones.
    ///
    /// # Errors
    /// As [`Overlay::feature`].
    pub(crate) fn apply<'o>(&'o self, row: u64, example: &mut Example<'o>) -> Result<()> {
        self.dropped.iter().for_each(|name| example.set(name, None));
        for column in &self.columns {
            let feature = self.row(column, row)?;
            example.set(column.companion.feature(), feature);
        }
        Ok(())
    }

    fn open<'o>(&'o self, column: &'o Column) -> Result<&'o Open> {
        if let Some(open) = column.open.get() {
            return Ok(open);
        }
        let mut opened = self.opened(column, true);
        if opened.as_ref().is_err_and(Error::is_damage) {
            // A mapping may show zeros where bytes could not be read.
            opened = self.opened(column, false);
        }
        let opened = opened?;
        Ok(column.open.get_or_init(|| opened))
    }

    fn opened(&self, column: &Column, map: bool) -> Result<Open> {
        let part = &column.companion.index;
        let index = Index::parse_companion(self.files.bytes(part, map)?);
        let index = index.map_err(|source| self.damaged(column, source))?;
        check_companion(&self.files.path(part), &index, column.element, &column.companion.name, self.shard)?;
        index.check(0).map_err(|source| self.damaged(column, source))?;
        if let PartBytes::Mapped(file, range) = index.get_ref() {
            file.check_readable(range.clone())?;
        }
        Ok(Open { index })
    }

    fn damaged(&self, column: &Column, source: shardtool_format::Error) -> Error {
        let (path, column) = (self.files.path(&column.companion.index), column.companion.name.clone());
        Error::Companion { path, column, source }
    }

    /// Opens all columns, so that all their mappings can be lent; what fails is found again by its first use.
    pub(crate) fn open_all(&self) {
        self.columns.iter().for_each(|column| drop(self.open(column)));
    }

    /// Returns the open, mapped files of columns.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = &Arc<FileBytes>> {
        self.columns.iter().filter_map(|column| match column.open.get()?.index.get_ref() {
            PartBytes::Mapped(file, _) => Some(file),
            PartBytes::Read(_) => None,
        })
    }

    /// Returns an error if bytes of a mapped column could not be read since it was opened.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub(crate) fn check_readable(&self) -> Result<()> {
        for column in &self.columns {
            if let Some(Open { index }) = column.open.get()
                && let PartBytes::Mapped(file, range) = index.get_ref()
            {
                file.check_readable(range.clone())?;
            }
        }
        Ok(())
    }
}

/// Returns the elements of a companion's column; `None` if its rows are messages.
fn element(manifest: &Manifest, companion: &manifest::Companion) -> Option<Element> {
    match manifest.dtype(companion.feature()).map(DType::stored) {
        _ if companion.is_encoded() => None,
        Some(DType::Int64) => Some(Element::I64),
        Some(DType::Float) => Some(Element::F32),
        _ => Some(Element::Bytes),
    }
}

/// Compares the header and the directory of a companion with its shard.
fn check_companion<B: AsRef<[u8]>>(
    path: &Path,
    index: &Index<B>,
    element: Option<Element>,
    name: &str,
    shard: ShardOf,
) -> Result<()> {
    let path = path.to_owned();
    if index.records() != shard.records {
        return Err(Error::RecordCount { path, expected: shard.records, found: index.records() });
    }
    let tied = [
        ("length of the shard in bytes", index.shard_bytes(), shard.bytes),
        ("CRC of the shard", u64::from(index.shard_crc()), u64::from(shard.crc)),
    ];
    if let Some((problem, found, expected)) = tied.into_iter().find(|(_, found, expected)| found != expected) {
        let (expected, found) = (found.to_string(), expected.to_string());
        return Err(Error::IndexMismatch { path, record: None, problem, expected, found });
    }
    let only = match index.columns() {
        [column] => column.name() == name && column.element() == element.unwrap_or(Element::Bytes),
        _ => false,
    };
    match only {
        true => Ok(()),
        false => {
            let source = shardtool_format::Error::IndexColumn { column: name.to_owned() };
            Err(Error::Companion { path, column: name.to_owned(), source })
        }
    }
}

/// Checks all companions of a shard, as a verification does, and passes each finding to `add`.
pub(crate) fn verify(files: &CompanionFiles, manifest: &Manifest, entry: &manifest::Shard, mut add: impl FnMut(Error)) {
    let shard = ShardOf { records: entry.records, bytes: entry.bytes, crc: entry.crc32c };
    if let Some(deleted) = &entry.companions.deleted
        && let Err(error) = deleted_rows(files, deleted, entry.records)
    {
        add(error);
    }
    for companion in &entry.companions.columns {
        let path = files.path(&companion.index);
        let bytes = match files.bytes(&companion.index, false) {
            Ok(bytes) => bytes,
            Err(error) => {
                add(error);
                continue;
            }
        };
        let found = crc32c(bytes.as_ref());
        let element = element(manifest, companion);
        let damaged = |source| Error::Companion { path: path.clone(), column: companion.name.clone(), source };
        let checked = Index::parse_companion(bytes).map_err(damaged).and_then(|index| {
            check_companion(&path, &index, element, &companion.name, shard)?;
            index.check(0).map_err(damaged)?;
            let rows = if element.is_none() { index.variable(0) } else { None };
            for (row, message) in (0..).zip(rows.iter().flat_map(|rows| rows.iter())) {
                if message.is_some_and(|message| Feature::parse(message).is_err()) {
                    let (column, problem) = (companion.name.clone(), "a row that is not a message `Feature`");
                    return Err(damaged(shardtool_format::Error::ColumnValue { column, row, problem }));
                }
            }
            Ok(())
        });
        match checked {
            Err(error) => add(error),
            Ok(()) if found != companion.index.crc32c => {
                let FilePart { offset, bytes, crc32c: expected, .. } = companion.index;
                add(Error::CompanionCrc { path, bytes: offset..offset + bytes, expected, found });
            }
            Ok(()) => {}
        }
    }
}

/// Reads and checks the bitmap of a shard's deleted rows.
///
/// # Errors
/// [`Error::MissingCompanion`], [`Error::CompanionCrc`], [`Error::Bitmap`], [`Error::Io`], [`Error::Unreadable`].
pub(crate) fn deleted_rows(
    files: &CompanionFiles,
    deleted: &manifest::Deleted,
    records: u64,
) -> Result<shardtool_format::DeletedRows> {
    let FilePart { offset, bytes: length, crc32c: expected, .. } = deleted.bitmap;
    let path = files.path(&deleted.bitmap);
    let bytes = files.bytes(&deleted.bitmap, false)?;
    let found = crc32c(bytes.as_ref());
    if found != expected {
        return Err(Error::CompanionCrc { path, bytes: offset..offset + length, expected, found });
    }
    let rows = shardtool_format::DeletedRows::parse(bytes.as_ref(), records, deleted.rows);
    rows.map_err(|source| Error::Bitmap { path, source })
}
