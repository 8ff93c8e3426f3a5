//! Datasets and splits.

use crate::access::Access;
use crate::bytes::FileBytes;
use crate::foreign;
use crate::frames::Frames;
use crate::options::Options;
use crate::split::{DatasetFiles, Split};
use crate::version::{self, LoggedVersion};
use crate::whole_files::parse_manifest;
use crate::{Error, Result, glob_files, metadata_if_exists};
use rayon::prelude::*;
use shardtool_format::frame::Check;
use shardtool_format::manifest::{self, Manifest};
use shardtool_format::names;
use shardtool_store::{is_url, lacks_slash, local_path};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A dataset: a folder with a manifest, or bare TFRecord files. Cheap to clone.
///
/// ```
/// # use shardtool_read::{Access, Dataset, Options};
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

    /// Opens another version with the same options: by its number, a tag, or the checksum of its manifest.
    ///
    /// # Errors
    /// As [`Dataset::open`]; [`Error::NoVersion`].
    pub fn at(&self, version: &str) -> Result<Self> {
        Self::open_with(&self.path, self.options.clone().with_version(version))
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

    /// Checks that the files of shards in other datasets, and the source files of all virtual shards, may be opened. Reads the indexes.
    ///
    /// # Errors
    /// [`Error::ForeignSource`], for the first one that may not; no other error.
    pub fn check_sources(&self) -> Result<()> {
        let shards = self.splits.iter().flat_map(|split| (0..split.entry().shards.len()).map(move |n| (split, n)));
        for (split, number) in shards.filter(|(split, number)| !split.entry().shards[*number].foreign.is_none()) {
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
