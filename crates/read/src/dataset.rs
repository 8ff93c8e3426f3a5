//! Datasets and splits.

use crate::bytes::{Access, FileBytes};
use crate::foreign;
use crate::frames::Frames;
use crate::options::Options;
use crate::overlay::{CompanionFiles, Overlay};
use crate::shard::{Opening, Shard};
use crate::shard_cache::ShardCache;
use crate::shard_index::{Checked, content_name};
use crate::version::{self, LoggedVersion};
use crate::virtual_shard::SourceFiles;
use crate::whole_files::parse_manifest;
use crate::{Error, Record, Result, glob_files, metadata_if_exists};
use rayon::prelude::*;
use shardtool_format::DeletedRows;
use shardtool_format::frame::Check;
use shardtool_format::manifest::{self, Manifest};
use shardtool_format::names;
use shardtool_store::cache::Cache;
use shardtool_store::{is_url, lacks_slash, local_path};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A dataset: a folder with a manifest, or bare TFRecord files. Cheap to clone.
///
/// ```
/// use shardtool_read::{Access, Dataset, Options};
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance/golden/tiny");
/// let dataset = Dataset::open(folder)?;
/// let train = dataset.split("train")?;
/// assert_eq!(train.len(), 2);
/// let record = train.get(1)?;
/// assert_eq!(record.key()?, &b"dog/1.png"[..]);
/// assert_eq!(record.image()?, Some(&[1, 2, 3, 4, 5, 6][..]));
/// assert_eq!(record.example()?.int64("image/class/label"), Some(1));
///
/// // Files that another program may rewrite while they are open must not be mapped.
/// let dataset = Dataset::open_with(folder, Options::default().with_access(Access::Pread))?;
/// assert_eq!(dataset.split("train")?.get(1)?.image()?, Some(&[1, 2, 3, 4, 5, 6][..]));
/// # Ok::<(), shardtool_read::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dataset {
    path: PathBuf,
    manifest: Arc<Manifest>,
    /// CRC that the manifest states; 0 for bare files.
    checksum: u32,
    splits: Vec<Split>,
    /// Each made on its first use.
    views: Arc<[OnceLock<Split>]>,
    files: Arc<DatasetFiles>,
    options: Options,
}

/// The files that the shards of a dataset share.
#[derive(Debug)]
struct DatasetFiles {
    companions: Arc<CompanionFiles>,
    sources: Arc<SourceFiles>,
}

impl DatasetFiles {
    fn new(folder: &Path, Options { access, cache, sources, .. }: &Options) -> Arc<Self> {
        Arc::new(DatasetFiles {
            companions: Arc::new(CompanionFiles::new(folder, *access, cache.clone())),
            sources: Arc::new(SourceFiles::new(folder, sources)),
        })
    }
}

impl Dataset {
    /// Opens a dataset with default options: a folder with a manifest, the manifest itself, or bare TFRecord files, given
    /// by a path or a glob (`data/train-*`); or a folder in an object store (`s3://BUCKET/FOLDER`, feature `stores`). Reads only the manifest. Bare files have no index, so the headers of all
    /// their frames are read, and eight bytes per record are kept in memory.
    ///
    /// Files on local file systems are mapped ([`Access::Auto`]): they must not be truncated or rewritten in place while
    /// the dataset is open. Use [`Dataset::open_with`] and [`Access::Pread`] if they may be.
    ///
    /// # Errors
    /// [`Error::NotADataset`], [`Error::Manifest`], [`Error::Io`]; for bare files, [`Error::Record`] and
    /// [`Error::CompressedRecords`] for the first damaged frame.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens a dataset as [`Dataset::open`] does, with options.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = &*local_path(path.as_ref());
        if options.version.is_none()
            && let (dataset, Some(version)) = version::named_version(path)?
        {
            return Self::open_with(dataset, options.with_version(version));
        }
        if is_url(path) {
            return Self::open_url(path, options);
        }
        let found = metadata_if_exists(path);
        let found = found.map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?;
        if found.as_ref().is_some_and(Metadata::is_dir) {
            return Self::from_manifest(path, &path.join(names::MANIFEST), options);
        }
        if path.extension().is_some_and(|e| e == "json") {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return Self::from_manifest(folder, path, options);
        }
        if let Some(version) = options.version {
            let known = "1, since it has no manifest".to_owned();
            return Err(Error::NoVersion { path: path.to_owned(), version, known });
        }
        let files = if found.is_some() { vec![path.to_owned()] } else { bare_files(path)? };
        Self::from_files(path, &files, options)
    }

    /// Returns the dataset of a manifest that is in memory, such as one of some shards of a dataset, whose files lie in `folder`.
    pub fn of_manifest(folder: &Path, manifest: Manifest, options: Options) -> Self {
        Self::with_manifest(folder, manifest, 0, options)
    }

    fn open_url(path: &Path, options: Options) -> Result<Self> {
        if options.cache.is_some() && options.check == Check::LengthOnly {
            return Err(Error::UncheckedCache { path: path.to_owned() });
        }
        if path.extension().is_some_and(|e| e == "json") {
            return Self::from_manifest(path.parent().unwrap_or(path), path, options);
        }
        Self::from_manifest(path, &path.join(names::MANIFEST), options).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                let problem = "it has no dataset.json (bare TFRecord files in a store need a manifest and \
                    indexes: `shardtool index` makes them from local files)";
                Error::NotADataset { path: path.to_owned(), problem }
            }
            error => error,
        })
    }

    fn from_manifest(folder: &Path, path: &Path, options: Options) -> Result<Self> {
        let newest = parse_manifest(path).map_err(|error| match error {
            Error::Io { source, .. }
                if source.kind() == std::io::ErrorKind::NotFound
                    && !is_url(path)
                    && metadata_if_exists(path).is_ok() =>
            {
                Error::NotADataset { path: folder.to_owned(), problem: without_manifest(folder) }
            }
            error => error,
        })?;
        let (json, manifest) = match &options.version {
            Some(version) => version::manifest_of(folder, newest, version)?,
            None => newest,
        };
        let in_store = manifest.sources().into_iter().any(|source| is_url(Path::new(source)));
        if in_store && options.cache.is_some() && options.check == Check::LengthOnly {
            return Err(Error::UncheckedCache { path: path.to_owned() });
        }
        Ok(Self::with_manifest(folder, manifest, manifest::own_crc(&json).unwrap_or_default(), options))
    }

    fn with_manifest(folder: &Path, manifest: Manifest, checksum: u32, options: Options) -> Self {
        let manifest = Arc::new(manifest);
        let files = DatasetFiles::new(folder, &options);
        let split = |n| Split::new(folder, &manifest, n, None, &files, options.clone());
        let splits = (0..manifest.splits.len()).map(split).collect();
        let views = manifest.views().iter().map(|_| OnceLock::new()).collect();
        Dataset { path: folder.to_owned(), manifest, checksum, splits, views, files, options }
    }

    fn from_files(path: &Path, files: &[PathBuf], options: Options) -> Result<Self> {
        let scans: Vec<_> = files.par_iter().map(|file| scan(file, options.access)).collect::<Result<_>>()?;
        let mut manifest = Manifest::new("");
        let mut offsets: Vec<(String, Vec<Arc<[u64]>>)> = vec![];
        for (file, (bytes, frames)) in files.iter().zip(scans) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let split = names::split_of(&name).to_owned();
            let entry = manifest::Shard {
                file: file.to_string_lossy().into_owned(),
                records: frames.len() as u64,
                bytes,
                crc32c: 0,
                index_bytes: 0,
                index_crc32c: 0,
                sha256: None,
                companions: Default::default(),
                foreign: Default::default(),
            };
            match manifest.splits.iter().position(|s| s.name == split) {
                Some(at) => {
                    manifest.splits[at].shards.push(entry);
                    offsets[at].1.push(frames);
                }
                None => {
                    manifest.splits.push(manifest::Split { name: split.clone(), shards: vec![entry] });
                    offsets.push((split, vec![frames]));
                }
            }
        }
        manifest.splits.sort_by(|a, b| a.name.cmp(&b.name));
        offsets.sort_by(|a, b| a.0.cmp(&b.0));
        let manifest = Arc::new(manifest);
        let splits = offsets.into_iter().enumerate();
        let none = DatasetFiles::new(Path::new(""), &options);
        let split = |(n, (_, o))| Split::new(Path::new(""), &manifest, n, Some(o), &none, options.clone());
        let splits = splits.map(split).collect();
        Ok(Dataset { path: path.to_owned(), manifest, checksum: 0, splits, views: Arc::new([]), files: none, options })
    }

    /// Returns the manifest's folder, or the path or glob of bare files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the manifest; for bare files, one without features and CRCs that lists the files.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the number of the version that is open, from 1.
    pub fn version(&self) -> u64 {
        self.manifest.version_number()
    }

    /// Returns the checksum of the manifest, which names the version too; 0 for bare files.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Returns all versions that the dataset keeps, the newest first.
    ///
    /// # Errors
    /// [`Error::Manifest`], [`Error::Io`].
    pub fn log(&self) -> Result<Vec<LoggedVersion>> {
        version::log(&self.path)
    }

    /// Returns all splits, in byte order of their names.
    pub fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// Returns the split or the view of that name. The records of a view are some of its split's.
    ///
    /// # Errors
    /// [`Error::NoSplit`], which lists the names of all splits and views.
    pub fn split(&self, name: &str) -> Result<&Split> {
        let split = self.splits.iter().find(|split| split.name() == name);
        split.or_else(|| self.view(name)).ok_or_else(|| Error::NoSplit {
            path: self.path.clone(),
            name: name.to_owned(),
            known: self.manifest.splits.iter().map(|s| &s.name).chain(self.view_names()).cloned().collect(),
        })
    }

    /// Checks that the user allows the folders of all sources. Reads nothing.
    ///
    /// # Errors
    /// [`Error::ForeignSource`].
    pub fn check_source_folders(&self) -> Result<()> {
        let mut sources = self.manifest.sources().into_iter();
        match sources.find(|source| !self.files.sources.allows_source(source)) {
            Some(source) => Err(self.files.sources.refused_source(source)),
            None => Ok(()),
        }
    }

    /// Checks that the source files of all virtual shards may be opened. Reads the indexes.
    ///
    /// # Errors
    /// [`Error::ForeignSource`], for the first one that may not; no other error.
    pub fn check_sources(&self) -> Result<()> {
        let shards = self.splits.iter().flat_map(|split| (0..split.entry().shards.len()).map(move |n| (split, n)));
        for (split, number) in shards.filter(|(split, number)| split.entry().shards[*number].foreign.is_virtual) {
            // What is wrong with an index is found when it is used.
            if let Err(refused @ Error::ForeignSource { .. }) =
                split.shard(number).and_then(|shard| shard.check_allowed())
            {
                return Err(refused);
            }
        }
        Ok(())
    }

    /// Returns the names of the views, in byte order.
    pub fn view_names(&self) -> impl Iterator<Item = &String> {
        self.manifest.views().iter().map(|view| &view.name)
    }

    /// Returns the view of that name.
    pub fn view(&self, name: &str) -> Option<&Split> {
        let at = self.manifest.views().iter().position(|view| view.name == name)?;
        Some(self.views[at].get_or_init(|| {
            let manifest = Arc::new(self.manifest.of_view(&self.manifest.views()[at]));
            Split::new(&self.path, &manifest, 0, None, &self.files, self.options.clone())
        }))
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
    fn new(
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
        if is_url(&self.0.folder) { self.index_memory_in_store() } else { 0 }
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
            Shard::open(self.shard_path(number), how, inner.manifest.message(), &inner.options)
        })
    }

    /// Returns the path of a shard.
    ///
    /// # Panics
    /// If `number` is not below the number of shards.
    pub fn shard_path(&self, number: usize) -> PathBuf {
        self.0.folder.join(&self.entry().shards[number].file)
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

/// Returns whether the bytes of shards of a dataset in `folder`, or of source files of a virtual one, are in an object store.
fn is_in_store(folder: &Path, shards: &[manifest::Shard]) -> bool {
    let source =
        |shard: &manifest::Shard| shard.foreign.source.as_deref().is_some_and(|source| is_url(Path::new(source)));
    is_url(folder) || shards.iter().any(source)
}

/// Returns what a folder without a manifest is.
fn without_manifest(folder: &Path) -> &'static str {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let unfinished =
        |name: &str| name.starts_with(".write-") || (name.starts_with(".pack-") && name.ends_with(".json"));
    match entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(unfinished)) {
        true => "it has no dataset.json: a writer or a pack did not finish it; run the same program again to continue",
        false => "it has no dataset.json",
    }
}

/// Bytes of the indexes that a split in a store keeps in memory, unless they are so large that these are fewer than
/// [`MIN_OPEN`].
const INDEX_BYTES: u64 = 64 << 20;
/// Shards of a split in a store that are kept open at least.
const MIN_OPEN: u64 = 8;

/// Returns how many shards of a split are kept open, besides the limits of the process.
fn most_open(folder: &Path, shards: &[manifest::Shard]) -> usize {
    if !is_url(folder) {
        return usize::MAX;
    }
    let largest = shards.iter().map(|shard| shard.index_bytes).max().unwrap_or(0);
    (INDEX_BYTES / largest.max(1)).max(MIN_OPEN) as usize
}

fn bare_files(path: &Path) -> Result<Vec<PathBuf>> {
    let not = |problem| Error::NotADataset { path: path.to_owned(), problem };
    if lacks_slash(path) {
        return Err(not("a URL needs two slashes; pass it as a string, since `pathlib` removes one"));
    }
    let pattern = path.to_str().ok_or(not("no such file, and a glob must be UTF-8"))?;
    let files = glob_files(pattern).map_err(|error| match error {
        Some((path, source)) => Error::Io { action: "read", path, source },
        None => not("no such file, and it is not a glob"),
    })?;
    if files.is_empty() { Err(not("no such file")) } else { Ok(files) }
}

/// Returns the error of a bare file whose first frame is wrong: that it has another format, if that is known.
fn not_tfrecord(bytes: &FileBytes, path: &Path, error: Error) -> Error {
    let head = bytes.with(0..bytes.len().min(foreign::HEAD as u64), |head| Ok::<_, ()>(foreign::kind(head)));
    match head {
        Ok(Ok(Some(problem))) => Error::NotADataset { path: path.to_owned(), problem },
        _ => error,
    }
}

/// Returns the length of a bare file and the offset of each of its frames.
fn scan(path: &Path, access: Access) -> Result<(u64, Arc<[u64]>)> {
    let bytes = FileBytes::open(path, access)?;
    let mut offsets = vec![];
    for frame in Frames::new(&bytes, path) {
        let frame = frame.map_err(|error| if offsets.is_empty() { not_tfrecord(&bytes, path, error) } else { error });
        offsets.push(frame?.start);
    }
    Ok((bytes.len(), offsets.into()))
}
