//! The index of an open shard: its columns, checked on first use.

use crate::access::Access;
use crate::bytes::FileBytes;
use crate::mapping::{self, Mapping};
use crate::whole_files::read_open_index;
use crate::{Error, Result};
use shardtool_format::checksum::crc32c;
use shardtool_format::index::{Column, Fixed, Index, Required, Scalar, Variable, VirtualColumns};
use shardtool_format::{manifest, names};
use shardtool_store::cache::Cache;
use shardtool_store::{Object, read_whole};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open index. Opening checks its header and directory; each column is checked on its first use.
#[derive(Debug)]
pub(crate) struct ShardIndex {
    path: PathBuf,
    index: Index<IndexBytes>,
    required: Required,
    checked: Checked,
}

#[derive(Debug)]
enum IndexBytes {
    Mapped(FileBytes),
    Read(Vec<u8>),
}

impl AsRef<[u8]> for IndexBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            IndexBytes::Mapped(file) => file.mapped().unwrap_or_default(),
            IndexBytes::Read(bytes) => bytes,
        }
    }
}

impl IndexBytes {
    /// Returns whether all bytes could be read so far.
    fn is_readable(&self) -> bool {
        match self {
            IndexBytes::Mapped(file) => file.maps(&(0..file.len())),
            IndexBytes::Read(_) => true,
        }
    }
}

/// The columns of a shard's index that passed their check, one bit each. It outlives the shard in the cache, so that a
/// column is checked once even if its shard is reopened. Columns past the 64th are checked on each use.
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

impl ShardIndex {
    /// Opens the index of a shard, and compares its header with the manifest.
    ///
    /// # Errors
    /// [`Error::MissingIndex`], [`Error::Io`], [`Error::Index`], and those of [`contradictions`].
    pub(crate) fn open(
        shard: &Path,
        entry: &manifest::Shard,
        access: Access,
        cache: Option<&Cache>,
        checked: Checked,
    ) -> Result<Self> {
        let path = names::index_path(shard);
        if shardtool_store::is_url(&path) {
            return ShardIndex::open_object(path, entry, cache, checked);
        }
        let file = FileBytes::open(&path, access).map_err(|e| missing(e, |path| Error::MissingIndex { path }))?;
        let damaged = |source| Error::Index { path: path.clone(), source };
        let read = |file: &FileBytes| Index::parse(IndexBytes::Read(read_open_index(file, &path)?)).map_err(damaged);
        let index = if file.mapped().is_some() {
            match Index::parse(IndexBytes::Mapped(file)) {
                Ok(index) if index.get_ref().is_readable() => index,
                // Damaged, or not readable: `pread` returns the system's error.
                _ => read(&FileBytes::open(&path, Access::Pread)?)?,
            }
        } else {
            read(&file)?
        };
        // The CRCs of whole files are for `verify`.
        ShardIndex::of(path, index, entry, checked)
    }

    /// Opens an index in a store: reads it whole, from the cache or with one request, or more if the CRC in the manifest does
    /// not match.
    fn open_object(path: PathBuf, entry: &manifest::Shard, cache: Option<&Cache>, checked: Checked) -> Result<Self> {
        let io = |source| Error::Io { action: "read", path: path.clone(), source };
        let whole = || match read_whole(&path, entry.index_bytes).map_err(io) {
            Ok(Some(bytes)) => Ok(bytes),
            // It may be as long as the store likes.
            Ok(None) => Err(Error::IndexMismatch {
                path: path.clone(),
                record: None,
                problem: "length of the index in bytes",
                expected: format!("more than {}", entry.index_bytes),
                found: entry.index_bytes.to_string(),
            }),
            Err(error) => Err(missing(error, |path| Error::MissingIndex { path })),
        };
        let bytes = match cache.and_then(|cache| from_cache(cache, &path, entry)) {
            Some(bytes) => bytes,
            None => until_equal(entry.index_crc32c, whole)?,
        };
        let index = Index::parse(IndexBytes::Read(bytes));
        let index = index.map_err(|source| Error::Index { path: path.clone(), source })?;
        ShardIndex::of(path, index, entry, checked)
    }

    fn of(path: PathBuf, index: Index<IndexBytes>, entry: &manifest::Shard, checked: Checked) -> Result<Self> {
        if let Some(error) = contradictions(&path, &index, entry).next() {
            return Err(error);
        }
        let required = index.required().map_err(|source| Error::Index { path: path.clone(), source })?;
        Ok(ShardIndex { path, index, required, checked })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn required(&self) -> &Required {
        &self.required
    }

    /// Returns the positions of the columns of a virtual shard.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub(crate) fn virtual_columns(&self) -> Result<VirtualColumns> {
        self.index.virtual_columns().map_err(|source| Error::Index { path: self.path.clone(), source })
    }

    /// Returns the minor version and the optional flags of the header.
    pub(crate) fn version(&self) -> (u16, u32) {
        (self.index.minor_version(), self.index.optional_flags())
    }

    pub(crate) fn columns(&self) -> &[Column] {
        self.index.columns()
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.index.position(name)
    }

    /// Returns the position of the column that holds a feature's values.
    pub(crate) fn position_of_feature(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| column.feature() == Some(name))
    }

    /// Returns a fixed column, checked on its first use; `None` if it has another type.
    ///
    /// # Errors
    /// [`Error::Index`], [`Error::Unreadable`].
    pub(crate) fn fixed<T: Scalar>(&self, column: usize) -> Result<Option<Fixed<'_, T>>> {
        self.check_once(column)?;
        Ok(self.index.fixed(column))
    }

    /// As [`ShardIndex::fixed`], of a variable column.
    ///
    /// # Errors
    /// As for [`ShardIndex::fixed`].
    pub(crate) fn variable(&self, column: usize) -> Result<Option<Variable<'_>>> {
        self.check_once(column)?;
        Ok(self.index.variable(column))
    }

    /// Returns a fixed column, unchecked; `None` if it has another type.
    pub(crate) fn unchecked_fixed<T: Scalar>(&self, column: usize) -> Option<Fixed<'_, T>> {
        self.index.fixed(column)
    }

    /// Returns the key of a record, unchecked.
    pub(crate) fn unchecked_key(&self, row: u64) -> Option<&[u8]> {
        self.index.variable(self.required.key)?.get(row)
    }

    /// Returns an error if the index is mapped and bytes of it could not be read since it was opened.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    #[inline]
    pub(crate) fn check_readable(&self) -> Result<()> {
        // Asked several times a record: most processes never lose a page.
        if !mapping::any_lost() {
            return Ok(());
        }
        match self.index.get_ref() {
            IndexBytes::Mapped(file) => file.check_readable(0..file.len()),
            IndexBytes::Read(_) => Ok(()),
        }
    }

    /// Returns the mapping of the index, if it is mapped.
    pub(crate) fn mapping(&self) -> Option<&Mapping> {
        match self.index.get_ref() {
            IndexBytes::Mapped(file) => file.mapping(),
            IndexBytes::Read(_) => None,
        }
    }

    fn check_once(&self, column: usize) -> Result<()> {
        if self.checked.contains(column) { Ok(()) } else { self.check(column) }
    }

    #[cold]
    fn check(&self, column: usize) -> Result<()> {
        let result = self.index.check(column).map_err(|source| Error::Index { path: self.path.clone(), source });
        if let (Err(_), IndexBytes::Mapped(file)) = (&result, self.index.get_ref()) {
            // A truncated file reads as zeros up to the end of its last page, without a fault.
            file.stands(&(0..file.len()), false)?;
        }
        self.check_readable()?;
        result?;
        self.checked.insert(column);
        Ok(())
    }
}

/// Bytes of an index that is read through a cache, at most.
const LARGEST_CACHED: u64 = 256 << 20;

/// Returns the name by which a cache knows a shard or its index.
pub(crate) fn content_name(entry: &manifest::Shard, index: bool) -> String {
    let manifest::Shard { crc32c, bytes, index_crc32c, index_bytes, .. } = entry;
    let end = if index { "index" } else { "shard" };
    // A CRC can be forged, a SHA-256 cannot.
    let sha256 = entry.sha256.map_or(String::new(), |digest| format!("-{digest}"));
    format!("{crc32c:08x}-{bytes}-{index_crc32c:08x}-{index_bytes}{sha256}.{end}")
}

/// Reads an index through a cache, which may request it. `None` if that fails, or its CRC does not match.
fn from_cache(cache: &Cache, path: &Path, entry: &manifest::Shard) -> Option<Vec<u8>> {
    // Memory is not reserved for what a manifest claims.
    if entry.index_bytes > LARGEST_CACHED {
        return None;
    }
    let object = Object::with_len(path, entry.index_bytes).ok()?;
    let cached = cache.object(object, &content_name(entry, true));
    let (range, mut bytes) = (0..entry.index_bytes, vec![]);
    cached.read(range.clone(), &mut bytes).ok()?;
    if crc32c(&bytes) == entry.index_crc32c {
        return Some(bytes);
    }
    cached.forget(&range);
    None
}

/// Reads an index from a store, again if its CRC is another one, until two answers are equal.
pub(crate) fn until_equal(crc: u32, mut read: impl FnMut() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let mut bytes = read()?;
    for _ in 0..shardtool_store::REFETCHES {
        if crc32c(&bytes) == crc {
            break;
        }
        shardtool_store::count_refetched();
        let before = std::mem::replace(&mut bytes, read()?);
        if before == bytes {
            break;
        }
    }
    Ok(bytes)
}

/// Turns "no such file" into the error that names what is missing.
pub(crate) fn missing(error: Error, name: impl FnOnce(PathBuf) -> Error) -> Error {
    match error {
        Error::Io { path, source, .. } if source.kind() == std::io::ErrorKind::NotFound => name(path),
        other => other,
    }
}

/// Yields what the header of the index at `path` says otherwise than the manifest: the number of records, and the length
/// and the CRC of the shard.
pub(crate) fn contradictions<B: AsRef<[u8]>>(
    path: &Path,
    index: &Index<B>,
    entry: &manifest::Shard,
) -> impl Iterator<Item = Error> {
    let records = (index.records() != entry.records).then(|| Error::RecordCount {
        path: path.to_owned(),
        expected: entry.records,
        found: index.records(),
    });
    let crc = |crc: u32| format!("{crc:08x}");
    let tied = [
        ("length of the shard in bytes", index.shard_bytes().to_string(), entry.bytes.to_string()),
        ("CRC of the shard", crc(index.shard_crc()), crc(entry.crc32c)),
    ];
    let path = path.to_owned();
    let tied = tied.into_iter().filter(|(_, expected, found)| expected != found);
    records.into_iter().chain(tied.map(move |(problem, expected, found)| Error::IndexMismatch {
        path: path.clone(),
        record: None,
        problem,
        expected,
        found,
    }))
}
