//! Splits: records numbered from 0 through all shards.

use crate::options::Options;
use crate::overlay::{CompanionFiles, Overlay};
use crate::shard::{Opening, Shard};
use crate::shard_cache::ShardCache;
use crate::shard_index::{Checked, content_name};
use crate::virtual_shard::SourceFiles;
use crate::{Error, Record, Result};
use shardtool_format::manifest::{self, Manifest};
use shardtool_format::{DeletedRows, names};
use shardtool_store::cache::Cache;
use shardtool_store::is_url;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The files that the shards of a dataset share.
#[derive(Debug)]
pub(crate) struct DatasetFiles {
    pub(crate) companions: Arc<CompanionFiles>,
    pub(crate) sources: Arc<SourceFiles>,
}

impl DatasetFiles {
    pub(crate) fn new(folder: &Path, Options { access, cache, sources, .. }: &Options) -> Arc<Self> {
        Arc::new(DatasetFiles {
            companions: Arc::new(CompanionFiles::new(folder, *access, cache.clone())),
            sources: Arc::new(SourceFiles::new(folder, sources)),
        })
    }
}

/// A split: records numbered from 0 through all its shards. Cheap to clone; usable from many threads at once.
#[derive(Debug, Clone)]
pub struct Split(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    manifest: Arc<Manifest>,
    number: usize,
    /// Id of each shard's first record, then the number of records.
    starts: Vec<u64>,
    /// Frame offsets of bare files.
    bare: Option<Vec<Arc<[u64]>>>,
    checked: Vec<Checked>,
    /// The deleted rows of each shard, when they are known; empty if no shard has any.
    deleted: Vec<OnceLock<Arc<DeletedRows>>>,
    dropped: Arc<[String]>,
    files: Arc<DatasetFiles>,
    shards: ShardCache,
    options: Options,
}

impl Split {
    pub(crate) fn new(
        folder: &Path,
        manifest: &Arc<Manifest>,
        number: usize,
        bare: Option<Vec<Arc<[u64]>>>,
        files: &Arc<DatasetFiles>,
        options: Options,
    ) -> Self {
        let shards = &manifest.splits[number].shards;
        let mut starts = vec![0];
        for shard in shards {
            starts.push(starts[starts.len() - 1] + shard.live_records());
        }
        if let Some(cache) = options.cache.as_ref().filter(|_| is_in_store(folder, shards)) {
            let names: Vec<_> =
                shards.iter().flat_map(|shard| [false, true].map(|index| content_name(shard, index))).collect();
            cache.use_contents(names.iter().map(String::as_str));
        }
        Split(Arc::new(Inner {
            folder: folder.to_owned(),
            manifest: manifest.clone(),
            number,
            starts,
            bare,
            checked: shards.iter().map(|_| Checked::default()).collect(),
            deleted: match shards.iter().any(|shard| shard.companions.deleted.is_some()) {
                true => shards.iter().map(|_| OnceLock::new()).collect(),
                false => vec![],
            },
            dropped: manifest.dropped_features().into(),
            files: files.clone(),
            shards: ShardCache::new(shards.len(), most_open(folder, shards)),
            options,
        }))
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.entry().name
    }

    /// Returns the folder of the dataset; in an object store, its URL.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Returns the manifest's entry: shards, counts, CRCs.
    pub fn entry(&self) -> &manifest::Split {
        &self.0.manifest.splits[self.0.number]
    }

    /// Returns the manifest of the dataset.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// Returns whether the split consists of bare files, without manifest and indexes.
    pub fn is_bare(&self) -> bool {
        self.0.bare.is_some()
    }

    /// Returns whether records are read from an object store.
    pub fn is_in_store(&self) -> bool {
        is_in_store(&self.0.folder, &self.entry().shards)
    }

    /// Returns the cache through which the split is read, if it is in an object store.
    pub fn cache(&self) -> Option<&Cache> {
        self.0.options.cache.as_ref().filter(|_| self.is_in_store())
    }

    /// Returns the bytes of memory that the indexes of open shards may take: 0 for files, which are mapped.
    pub fn index_memory(&self) -> u64 {
        if has_indexes_in_store(&self.0.folder, &self.entry().shards) { self.index_memory_in_store() } else { 0 }
    }

    /// As [`Split::index_memory`], if the split was in an object store.
    pub fn index_memory_in_store(&self) -> u64 {
        let of =
            |shard: &manifest::Shard| shard.index_bytes + shard.companions.parts().map(|part| part.bytes).sum::<u64>();
        let largest = || self.entry().shards.iter().map(of).max().unwrap_or(0);
        let bytes = || self.entry().shards.iter().map(of).sum::<u64>();
        bytes().min(INDEX_BYTES.max(MIN_OPEN * largest()))
    }

    /// Returns the number of records.
    #[expect(clippy::len_without_is_empty, reason = "a split is not a collection in memory")]
    pub fn len(&self) -> u64 {
        self.0.starts[self.0.starts.len() - 1]
    }

    /// Returns the id of each shard's first record, then the number of records: `[shards + 1]`.
    pub fn starts(&self) -> &[u64] {
        &self.0.starts
    }

    /// Returns the shard of a record, and the record's place among those of the shard that are not deleted, both from 0. Reads nothing.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    #[inline]
    pub fn shard_of(&self, id: u64) -> Result<(usize, u64)> {
        if id >= self.len() {
            return Err(Error::OutOfRange { split: self.name().to_owned(), id, records: self.len() });
        }
        // The last shard that begins at or before `id`. An empty shard begins at the same id as the next one.
        let shard = self.0.starts.partition_point(|start| *start <= id) - 1;
        Ok((shard, id - self.0.starts[shard]))
    }

    /// Returns the number of the shard of a record, and its row there, both from 0.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; those of [`Split::rows`].
    #[inline]
    pub fn locate(&self, id: u64) -> Result<(usize, u64)> {
        let (shard, n) = self.shard_of(id)?;
        if self.0.deleted.is_empty() {
            return Ok((shard, n));
        }
        let row = self.deleted_rows(shard)?.map_or(Some(n), |deleted| deleted.live_row(n));
        row.map(|row| (shard, row)).ok_or_else(|| self.no_shard(shard))
    }

    pub(crate) fn no_shard(&self, number: usize) -> Error {
        Error::NoShard { split: self.name().to_owned(), number, shards: self.entry().shards.len() }
    }

    pub(crate) fn known_deleted(&self, number: usize) -> Option<&OnceLock<Arc<DeletedRows>>> {
        self.0.deleted.get(number)
    }

    pub(crate) fn companion_files(&self) -> &CompanionFiles {
        &self.0.files.companions
    }

    /// Returns a shard, and opens it if necessary.
    ///
    /// # Errors
    /// [`Error::NoShard`], [`Error::MissingShard`], [`Error::MissingIndex`], [`Error::RecordCount`], [`Error::Index`],
    /// [`Error::IndexMismatch`], [`Error::Io`].
    pub fn shard(&self, number: usize) -> Result<Arc<Shard>> {
        let inner = &*self.0;
        let shards = self.entry().shards.len();
        if number >= shards {
            return Err(self.no_shard(number));
        }
        inner.shards.get(number, || {
            let entry = &self.entry().shards[number];
            let how = match &inner.bare {
                Some(offsets) => {
                    Opening::Bare { offsets: offsets[number].clone(), image: inner.manifest.image.clone() }
                }
                None => {
                    let overlay = Overlay::new(&inner.files.companions, &inner.manifest, &inner.dropped, entry);
                    let (checked, sources) = (inner.checked[number].clone(), &inner.files.sources);
                    Opening::Indexed { entry, checked, overlay, sources }
                }
            };
            self.check_allowed(number)?;
            Shard::open(self.shard_path(number), how, inner.manifest.message(), &inner.options)
        })
    }

    /// Returns the path of a shard: in the folder of the dataset, or of the one from which it is cloned.
    ///
    /// # Panics
    /// If `number` is not below the number of shards.
    pub fn shard_path(&self, number: usize) -> PathBuf {
        let shard = &self.entry().shards[number];
        shard.foreign.dataset().map_or(&*self.0.folder, Path::new).join(&shard.file)
    }

    /// Checks that the user allows the files of a shard that lies in another dataset. Opens none.
    ///
    /// # Errors
    /// [`Error::ForeignSource`]; [`Error::MissingShard`] and [`Error::MissingIndex`], also for what is not a regular file.
    ///
    /// # Panics
    /// If `number` is not below the number of shards.
    pub fn check_allowed(&self, number: usize) -> Result<()> {
        let Some(dataset) = self.entry().shards[number].foreign.dataset() else { return Ok(()) };
        let (shard, sources) = (self.shard_path(number), &self.0.files.sources);
        let index = names::index_path(&shard);
        let missing = |error, missing| if matches!(error, Error::MissingSource { .. }) { missing } else { error };
        // Both are checked before one is missing.
        match [&shard, &index].map(|path| sources.check_in(dataset, path)) {
            [Err(refused @ Error::ForeignSource { .. }), _] | [_, Err(refused @ Error::ForeignSource { .. })] => {
                Err(refused)
            }
            [of_shard, of_index] => {
                of_shard.map_err(|error| missing(error, Error::MissingShard { path: shard }))?;
                of_index.map_err(|error| missing(error, Error::MissingIndex { path: index }))
            }
        }
    }

    /// As [`Split::check_allowed`], for a reader of the frames alone: an index that does not exist is not needed. A pipe or a device in
    /// its place is an error.
    ///
    /// # Errors
    /// As [`Split::check_allowed`].
    pub(crate) fn check_frames_allowed(&self, number: usize) -> Result<()> {
        match self.check_allowed(number) {
            Err(Error::MissingIndex { path }) if std::fs::symlink_metadata(&path).is_err() => Ok(()),
            checked => checked,
        }
    }

    /// Returns the number of the first record with this key; `None` if no record has it. Searches the indexes; of bare files, the
    /// records.
    ///
    /// # Errors
    /// Those of [`Split::shard`] and [`Shard::key`].
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>> {
        for number in 0..self.entry().shards.len() {
            let shard = self.shard(number)?;
            for (id, row) in self.rows(number)? {
                if *shard.key(row)? == *key {
                    return Ok(Some(id));
                }
            }
        }
        Ok(None)
    }

    /// Reads and checks record `id`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], and those of [`Split::shard`] and [`Shard::record`].
    pub fn get(&self, id: u64) -> Result<Record> {
        self.get_with(id, vec![])
    }

    /// Reads and checks record `id`, into `buffer` if the shard is not mapped. [`Record::into_buffer`] returns the buffer.
    ///
    /// # Errors
    /// As [`Split::get`].
    pub fn get_with(&self, id: u64, buffer: Vec<u8>) -> Result<Record> {
        let (shard, row) = self.locate(id)?;
        self.shard(shard)?.into_record(row, buffer)?.of_version()
    }

    /// Returns whether the system has the page in the middle of record `id` in memory: the first and the last one are also those
    /// of its neighbours. `false` if that is unknown, as on network file systems, and for errors, which reading the record returns.
    pub fn is_in_memory(&self, id: u64) -> bool {
        let Ok((shard, row)) = self.locate(id) else { return false };
        let Ok(shard) = self.shard(shard) else { return false };
        shard.frame(row).is_ok_and(|range| shard.bytes().is_in_memory(range.start.midpoint(range.end)))
    }

    /// Hints that record `id` is read soon, as [`Shard::prefetch`], if its shard is open. Small records in random order are read
    /// faster if each is hinted at some records before. An id past the end is ignored.
    ///
    /// ```
    /// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance/golden/tiny");
    /// # let dataset = shardtool_read::Dataset::open(folder)?;
    /// let train = dataset.split("train")?;
    /// let ids = [1, 0, 1];
    /// let mut keys = vec![];
    /// for (i, id) in ids.into_iter().enumerate() {
    ///     ids.get(i + 1).into_iter().for_each(|ahead| train.prefetch(*ahead));
    ///     keys.push(train.get(id)?.key()?.into_owned());
    /// }
    /// assert_eq!(keys, [&b"dog/1.png"[..], b"cat/0.png", b"dog/1.png"]);
    /// # Ok::<(), shardtool_read::Error>(())
    /// ```
    pub fn prefetch(&self, id: u64) {
        if let Ok((shard, row)) = self.locate(id)
            && let Some(shard) = self.0.shards.cached(shard)
        {
            shard.prefetch(row);
        }
    }

    /// Hints that the system should read record `id` ahead. Ignores errors, which reading the record returns.
    pub fn will_need(&self, id: u64) {
        if let Ok((shard, row)) = self.locate(id)
            && let Ok(shard) = self.shard(shard)
            && let Ok(range) = shard.frame(row)
        {
            shard.bytes().will_need(range);
        }
    }
}

/// Returns whether the bytes of shards of a dataset in `folder`, or elsewhere, or of source files of virtual ones, are in an object store.
fn is_in_store(folder: &Path, shards: &[manifest::Shard]) -> bool {
    let source =
        |shard: &manifest::Shard| shard.foreign.source.as_deref().is_some_and(|source| is_url(Path::new(source)));
    is_url(folder) || shards.iter().any(source)
}

/// Returns whether indexes are in an object store: those of the dataset, or of one from which it is cloned.
fn has_indexes_in_store(folder: &Path, shards: &[manifest::Shard]) -> bool {
    let cloned = |shard: &manifest::Shard| shard.foreign.dataset().is_some_and(|dataset| is_url(Path::new(dataset)));
    is_url(folder) || shards.iter().any(cloned)
}

/// Bytes of the indexes that a split in a store keeps in memory, unless they are so large that these are fewer than
/// [`MIN_OPEN`].
const INDEX_BYTES: u64 = 64 << 20;
/// Shards of a split in a store that are kept open at least.
const MIN_OPEN: u64 = 8;

/// Returns how many shards of a split are kept open, besides the limits of the process.
fn most_open(folder: &Path, shards: &[manifest::Shard]) -> usize {
    if !has_indexes_in_store(folder, shards) {
        return usize::MAX;
    }
    let largest = shards.iter().map(|shard| shard.index_bytes).max().unwrap_or(0);
    (INDEX_BYTES / largest.max(1)).max(MIN_OPEN) as usize
}
