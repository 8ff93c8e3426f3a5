//! The files of one split in a folder: their names, and which shards are finished.

use crate::Error;
use crate::commit;
use crate::error::DestinationError;
use sha2::Digest;
use shardtool_format::checksum::{Sha256, crc32c};
use shardtool_format::index::Index;
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The files of one split in a folder.
#[derive(Debug, Clone)]
pub(crate) struct SplitFiles {
    folder: PathBuf,
    split: String,
}

impl SplitFiles {
    pub(crate) fn new(folder: &Path, split: &str) -> Self {
        SplitFiles { folder: folder.to_owned(), split: split.to_owned() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn split(&self) -> &str {
        &self.split
    }

    pub(crate) fn shard(&self, shard: usize) -> PathBuf {
        self.folder.join(names::shard_file(&self.split, shard))
    }

    pub(crate) fn index(&self, shard: usize) -> PathBuf {
        let index = names::index_file(&names::shard_file(&self.split, shard));
        self.folder.join(names::INDEX_FOLDER).join(index)
    }

    /// The rejected inputs of one shard, until the manifest is in place.
    pub(crate) fn shard_rejects(&self, shard: usize) -> PathBuf {
        let shard = names::shard_file(&self.split, shard);
        let name = format!(".{}.rejected.jsonl", shard.trim_end_matches(".tfrecord"));
        self.folder.join(names::INDEX_FOLDER).join(name)
    }

    /// The list of rejected inputs of a pack.
    pub(crate) fn rejected(&self) -> PathBuf {
        self.folder.join(format!("rejected-{}.jsonl", self.split))
    }

    /// The plan file of an unfinished pack.
    pub(crate) fn plan(&self) -> PathBuf {
        self.folder.join(format!(".pack-{}.json", self.split))
    }

    /// The plan file of a complete split.
    pub(crate) fn packed(&self) -> PathBuf {
        self.folder.join(format!(".packed-{}.json", self.split))
    }

    /// The lock file of the split.
    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join(format!(".pack-{}.lock", self.split))
    }

    /// Makes the names of shards and indexes durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn sync(&self) -> Result<(), Error> {
        commit::sync_folder(&self.folder.join(names::INDEX_FOLDER))?;
        commit::sync_folder(&self.folder)
    }

    /// Returns the files whose names a pack of this split may have written. Indexes come first: an index marks its
    /// shard as finished, so it must be removed before the shard.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn written_files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = vec![];
        for folder in [self.folder.join(names::INDEX_FOLDER), self.folder.clone()] {
            let entries = match std::fs::read_dir(&folder) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(Error::io("list", &folder))?,
            };
            for entry in entries {
                let entry = entry.map_err(Error::io("list", &folder))?;
                if entry.file_name().to_str().is_some_and(|name| self.is_written_name(name)) {
                    found.push(entry.path());
                }
            }
        }
        Ok(found)
    }

    /// Returns whether a pack of this split writes a file of this name: a shard, its index, its list of rejected
    /// inputs, or the temporary file of one of these.
    fn is_written_name(&self, name: &str) -> bool {
        let name = name.strip_prefix('.').map_or(name, |name| name.strip_suffix(".tmp").unwrap_or(name));
        let name = name.strip_prefix('.').unwrap_or(name);
        let Some(rest) = name.strip_prefix(&self.split).and_then(|name| name.strip_prefix('-')) else { return false };
        let suffix = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = rest.len() - suffix.len();
        digits >= 5 && matches!(suffix, ".tfrecord" | ".tfrecord.index" | ".rejected.jsonl")
    }

    /// Checks that no file has a name that a pack of this split would write.
    ///
    /// # Errors
    /// [`DestinationError::InTheWay`], [`Error::Io`].
    pub(crate) fn check_unoccupied(&self) -> Result<(), Error> {
        let hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        match self.written_files()?.into_iter().find(|path| !hidden(path)) {
            Some(path) => Err(Error::Destination(DestinationError::InTheWay { path })),
            None => Ok(()),
        }
    }

    /// Returns a shard's line in the manifest if it is finished: its index is complete and valid, and the shard is as
    /// long as the index says. With `sha256`, the line has the shard's.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finished(&self, shard: usize, sha256: bool) -> Result<Option<Shard>, Error> {
        let Some(file) = commit::read(&self.index(shard))? else { return Ok(None) };
        let Ok(index) = Index::parse(&file) else { return Ok(None) };
        let whole = (0..index.columns().len()).all(|column| index.check(column).is_ok());
        let long = std::fs::metadata(self.shard(shard)).is_ok_and(|meta| meta.len() == index.shard_bytes());
        if !(whole && long) {
            return Ok(None);
        }
        let sha256 = if sha256 { Some(digest(&self.shard(shard))?) } else { None };
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
