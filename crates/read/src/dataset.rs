//! Datasets and splits.

use crate::bytes::{Access, FileBytes};
use crate::cache::Cache;
use crate::frames::Frames;
use crate::shard::{Checked, Opening, Shard};
use crate::{Error, Record, Result};
use rayon::prelude::*;
use shardtool_format::frame::Check;
use shardtool_format::manifest::{self, Manifest};
use shardtool_format::names;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a dataset is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Mapped, or read.
    pub access: Access,
    /// Whether the CRC of each record's data is checked when it is read. It is, unless turned off here.
    pub check: Check,
}

/// A dataset: a manifest and the folder it lies in, or bare TFRecord files.
#[derive(Debug, Clone)]
pub struct Dataset {
    path: PathBuf,
    manifest: Arc<Manifest>,
    splits: Vec<Split>,
}

impl Dataset {
    /// Opens a dataset: a folder with a manifest, the manifest itself, or one or more bare TFRecord files, named by
    /// their path or a glob (`data/train-*`). Reads the manifest and nothing else; bare files have no index, so each is
    /// scanned once, header by header, and eight bytes a record are kept in memory.
    ///
    /// # Errors
    /// [`Error::NotADataset`], [`Error::Manifest`], [`Error::Io`]; of bare files, the first damage of framing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return Self::from_manifest(path, &path.join(names::MANIFEST), options);
        }
        if path.extension().is_some_and(|e| e == "json") {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return Self::from_manifest(folder, path, options);
        }
        let files = bare_files(path)?;
        Self::from_files(path, &files, options)
    }

    fn from_manifest(folder: &Path, path: &Path, options: Options) -> Result<Self> {
        let json = std::fs::read(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                Error::NotADataset { path: folder.to_owned(), problem: "it has no dataset.json" }
            }
            _ => Error::Io { action: "read", path: path.to_owned(), source },
        })?;
        let manifest = Manifest::parse(&json).map_err(|source| Error::Manifest { path: path.to_owned(), source })?;
        let manifest = Arc::new(manifest);
        let splits = (0..manifest.splits.len()).map(|n| Split::new(folder, &manifest, n, None, options)).collect();
        Ok(Dataset { path: folder.to_owned(), manifest, splits })
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
        let splits = splits.map(|(n, (_, o))| Split::new(Path::new(""), &manifest, n, Some(o), options)).collect();
        Ok(Dataset { path: path.to_owned(), manifest, splits })
    }

    /// Where it was opened: the manifest's folder, or the path or glob of bare files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest; for bare files, one made from their scan, without CRCs.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// All splits, in byte order of their names.
    pub fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// The split of that name.
    ///
    /// # Errors
    /// [`Error::NoSplit`], which lists those there are.
    pub fn split(&self, name: &str) -> Result<&Split> {
        self.splits.iter().find(|s| s.name() == name).ok_or_else(|| Error::NoSplit {
            path: self.path.clone(),
            name: name.to_owned(),
            known: self.splits.iter().map(|s| s.name().to_owned()).collect(),
        })
    }
}

/// A split: records numbered through all its shards, from 0. Cheap to clone; may be used from many threads at once.
#[derive(Debug, Clone)]
pub struct Split(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    manifest: Arc<Manifest>,
    number: usize,
    /// The id of each shard's first record, then the number of records.
    starts: Vec<u64>,
    /// Frame offsets of bare files.
    bare: Option<Vec<Arc<[u64]>>>,
    checked: Vec<Checked>,
    cache: Cache,
    options: Options,
}

impl Split {
    fn new(
        folder: &Path,
        manifest: &Arc<Manifest>,
        number: usize,
        bare: Option<Vec<Arc<[u64]>>>,
        options: Options,
    ) -> Self {
        let shards = &manifest.splits[number].shards;
        let mut starts = vec![0];
        for shard in shards {
            starts.push(starts[starts.len() - 1] + shard.records);
        }
        Split(Arc::new(Inner {
            folder: folder.to_owned(),
            manifest: manifest.clone(),
            number,
            starts,
            bare,
            checked: shards.iter().map(|_| Checked::default()).collect(),
            cache: Cache::new(),
            options,
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.entry().name
    }

    /// The manifest's entry: shards, counts, CRCs.
    pub fn entry(&self) -> &manifest::Split {
        &self.0.manifest.splits[self.0.number]
    }

    /// The manifest of the dataset it belongs to.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// Whether it is made of bare files, without manifest and indexes.
    pub fn is_bare(&self) -> bool {
        self.0.bare.is_some()
    }

    /// Records.
    #[expect(clippy::len_without_is_empty, reason = "`records() == 0` says it")]
    pub fn len(&self) -> u64 {
        self.0.starts[self.0.starts.len() - 1]
    }

    /// The id of each shard's first record, then the number of records: `[shards + 1]`.
    pub fn starts(&self) -> &[u64] {
        &self.0.starts
    }

    /// Which shard holds record `id`, and the row there; both from 0.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    #[inline]
    pub fn locate(&self, id: u64) -> Result<(usize, u64)> {
        if id >= self.len() {
            return Err(Error::OutOfRange { split: self.name().to_owned(), id, records: self.len() });
        }
        // The last shard that begins at `id` or before; empty shards begin where the next one does.
        let shard = self.0.starts.partition_point(|start| *start <= id) - 1;
        Ok((shard, id - self.0.starts[shard]))
    }

    /// A shard, opened when it is not.
    ///
    /// # Errors
    /// [`Error::MissingShard`], [`Error::MissingIndex`], [`Error::ShardLength`], [`Error::Index`],
    /// [`Error::IndexMismatch`], [`Error::Io`].
    ///
    /// # Panics
    /// If there are not so many shards.
    pub fn shard(&self, number: usize) -> Result<Arc<Shard>> {
        let inner = &*self.0;
        inner.cache.get(number, || {
            let entry = &self.entry().shards[number];
            let how = match &inner.bare {
                Some(offsets) => {
                    Opening::Bare { offsets: offsets[number].clone(), image: inner.manifest.image.clone() }
                }
                None => Opening::Indexed { entry, checked: inner.checked[number].clone() },
            };
            Shard::open(self.shard_path(number), how, inner.options.access, inner.options.check)
        })
    }

    /// Path of a shard.
    ///
    /// # Panics
    /// If there are not so many shards.
    pub fn shard_path(&self, number: usize) -> PathBuf {
        self.0.folder.join(&self.entry().shards[number].file)
    }

    /// Record `id`, checked.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Record`] for damage, and what [`Split::shard`] gives.
    pub fn get(&self, id: u64) -> Result<Record> {
        self.get_with(id, vec![])
    }

    /// Record `id`, checked; read into `buffer` where the shard is not mapped. [`Record::into_buffer`] gives it back.
    ///
    /// # Errors
    /// As [`Split::get`].
    pub fn get_with(&self, id: u64, buffer: Vec<u8>) -> Result<Record> {
        let (shard, row) = self.locate(id)?;
        self.shard(shard)?.record(row, buffer)
    }

    /// Asks the system to read record `id` ahead. A hint: what goes wrong shows when the record is read.
    pub fn will_need(&self, id: u64) {
        if let Ok((shard, row)) = self.locate(id)
            && let Ok(shard) = self.shard(shard)
            && let Ok(range) = shard.frame(row)
        {
            shard.bytes().will_need(range);
        }
    }
}

fn bare_files(path: &Path) -> Result<Vec<PathBuf>> {
    let not = |problem| Error::NotADataset { path: path.to_owned(), problem };
    if path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    let pattern = path.to_str().ok_or(not("there is no such file, and a glob must be UTF-8"))?;
    let found = glob::glob(pattern).map_err(|_| not("there is no such file, and it is not a glob"))?;
    let mut files: Vec<_> = found.filter_map(|f| f.ok()).filter(|f| f.is_file()).collect();
    files.sort();
    if files.is_empty() { Err(not("there is no such file")) } else { Ok(files) }
}

/// Length of a bare file, and where each of its frames begins.
fn scan(path: &Path, access: Access) -> Result<(u64, Arc<[u64]>)> {
    let bytes = FileBytes::open(path, access)?;
    let mut offsets = vec![];
    for frame in Frames::new(&bytes, path) {
        offsets.push(frame?.start);
    }
    Ok((bytes.len(), offsets.into()))
}
