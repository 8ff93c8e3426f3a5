//! The files of one split in a folder: their names, and which shards are finished.

use crate::Error;
use crate::commit::{self, Directory};
use crate::error::DestinationError;
use sha2::Digest;
use shardtool_format::checksum::{Sha256, crc32c};
use shardtool_format::index::Index;
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The files of one split in a folder. Their paths are relative to it.
#[derive(Debug, Clone)]
pub(crate) struct SplitFiles {
    directory: Directory,
    split: String,
}

impl SplitFiles {
    pub(crate) fn new(directory: Directory, split: &str) -> Self {
        SplitFiles { directory, split: split.to_owned() }
    }

    /// Returns the files of a split in a folder, or `None` if the folder does not exist.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open(folder: &Path, split: &str) -> Result<Option<Self>, Error> {
        Ok(Directory::open(folder)?.map(|directory| Self::new(directory, split)))
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(crate) fn folder(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn split(&self) -> &str {
        &self.split
    }

    pub(crate) fn shard(&self, shard: usize) -> PathBuf {
        names::shard_file(&self.split, shard).into()
    }

    pub(crate) fn index(&self, shard: usize) -> PathBuf {
        names::index_path(&self.shard(shard))
    }

    /// The rejected inputs of one shard, until the manifest is in place.
    pub(crate) fn shard_rejects(&self, shard: usize) -> PathBuf {
        let shard = names::shard_file(&self.split, shard);
        let name = format!(".{}.rejected.jsonl", shard.trim_end_matches(".tfrecord"));
        Path::new(names::INDEX_FOLDER).join(name)
    }

    /// The list of rejected inputs of a pack.
    pub(crate) fn rejected(&self) -> PathBuf {
        rejected_file(&self.split).into()
    }

    /// The plan file of an unfinished pack.
    pub(crate) fn plan(&self) -> PathBuf {
        plan_file(&self.split).into()
    }

    /// The plan file of a complete split.
    pub(crate) fn packed(&self) -> PathBuf {
        format!(".packed-{}.json", self.split).into()
    }

    /// The lock file of the split.
    pub(crate) fn lock(&self) -> String {
        format!(".pack-{}.lock", self.split)
    }

    /// Returns the path of a file, for messages and for reading it.
    pub(crate) fn path(&self, relative: &Path) -> PathBuf {
        self.folder().join(relative)
    }

    /// Makes the names of shards and indexes durable.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.directory.folder(names::INDEX_FOLDER)?.sync()?;
        self.directory.sync()
    }

    /// Returns the files whose names a pack of this split may have written. Indexes come first: an index marks its
    /// shard as finished, so it must be removed before the shard.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn written_files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = vec![];
        for folder in [names::INDEX_FOLDER, ""] {
            for entry in self.directory.entries_of(folder)? {
                if entry.name.to_str().is_some_and(|name| self.is_written_name(name)) {
                    found.push(Path::new(folder).join(&entry.name));
                }
            }
        }
        Ok(found)
    }

    /// Returns whether a pack of this split writes a file of this name: a shard, its index, or its list of rejected
    /// inputs.
    fn is_written_name(&self, name: &str) -> bool {
        let name = name.strip_prefix('.').unwrap_or(name);
        let Some(rest) = name.strip_prefix(&self.split).and_then(|name| name.strip_prefix('-')) else { return false };
        let suffix = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = rest.len() - suffix.len();
        digits >= 5 && matches!(suffix, ".tfrecord" | ".tfrecord.index" | ".rejected.jsonl")
    }

    /// Removes the temporary files that killed packs of this split left. The caller holds the split's lock.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn remove_abandoned(&self) -> Result<(), Error> {
        let plans = [self.plan(), self.packed(), self.rejected()];
        let ours = |name: &str| self.is_written_name(name) || plans.iter().any(|plan| plan == Path::new(name));
        commit::remove_abandoned(&self.directory, names::INDEX_FOLDER, ours)?;
        commit::remove_abandoned(&self.directory, "", ours)
    }

    /// Checks that no file has a name that a pack of this split would write.
    ///
    /// # Errors
    /// [`DestinationError::InTheWay`], [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn check_unoccupied(&self) -> Result<(), Error> {
        let hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        match self.written_files()?.into_iter().find(|path| !hidden(path)) {
            Some(path) => Err(Error::Destination(DestinationError::InTheWay { path: self.path(&path) })),
            None => Ok(()),
        }
    }

    /// Returns a shard's line in the manifest if it is finished: its index is complete and valid, and the shard is as
    /// long as the index says. With `sha256`, the line has the shard's.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn finished(&self, shard: usize, sha256: bool) -> Result<Option<Shard>, Error> {
        let Some(file) = self.directory.read(self.index(shard))? else { return Ok(None) };
        let Ok(index) = Index::parse(&file) else { return Ok(None) };
        let path = self.path(&self.shard(shard));
        let length = match std::fs::metadata(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            meta => meta.map_err(Error::io("read", &path))?.len(),
        };
        let whole = (0..index.columns().len()).all(|column| index.check(column).is_ok());
        if !whole || length != index.shard_bytes() {
            return Ok(None);
        }
        let sha256 = if sha256 { Some(digest(&path)?) } else { None };
        Ok(Some(Shard {
            file: names::shard_file(&self.split, shard),
            records: index.records(),
            bytes: index.shard_bytes(),
            crc32c: index.shard_crc(),
            index_bytes: file.len() as u64,
            index_crc32c: crc32c(&file),
            sha256,
        }))
    }
}

/// Returns the file name of the list of rejected inputs of a pack.
pub(crate) fn rejected_file(split: &str) -> String {
    format!("rejected-{split}.jsonl")
}

/// Computes the SHA-256 of a file.
fn digest(path: &Path) -> Result<Sha256, Error> {
    let mut digest = sha2::Sha256::new();
    let mut file = File::open(path).map_err(Error::io("read", path))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(Error::io("read", path))? {
            0 => return Ok(Sha256(digest.finalize().into())),
            length => digest.update(&buffer[..length]),
        }
    }
}

/// Returns the name of the plan file of an unfinished pack.
pub(crate) fn plan_file(split: &str) -> String {
    format!(".pack-{split}.json")
}

/// Returns the splits that a manifest in `folder` may not name yet: those that are being packed, or whose pack was
/// interrupted, in byte order. Ignores a folder that cannot be listed.
pub fn unfinished_splits(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut splits: Vec<_> =
        names.filter_map(|name| Some(name.strip_prefix(".pack-")?.strip_suffix(".json")?.to_owned())).collect();
    splits.sort();
    splits
}
