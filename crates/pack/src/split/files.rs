//! The files of one split in a folder: their names, and which shards are finished.

use crate::Error;
use crate::commit::Directory;
use crate::error::DestinationError;
use crate::place::Place;
use crate::source_times;
use crate::split::attempt;
use sha2::Digest;
use shardtool_format::checksum::{Sha256, crc32c};
use shardtool_format::index::Index;
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::path::{Path, PathBuf};

/// The files of one split in a folder. Their paths are relative to it.
#[derive(Debug, Clone)]
pub(crate) struct SplitFiles<P = Directory> {
    place: P,
    split: String,
}

impl SplitFiles {
    pub(crate) fn directory(&self) -> &Directory {
        &self.place
    }
}

impl<P: Place> SplitFiles<P> {
    pub(crate) fn new(place: P, split: &str) -> Self {
        SplitFiles { place, split: split.to_owned() }
    }

    /// Returns the files of a split in a folder, or `None` if the folder does not exist.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open(folder: &Path, split: &str) -> Result<Option<Self>, Error> {
        Ok(P::open(folder)?.map(|place| Self::new(place, split)))
    }

    pub(crate) fn place(&self) -> &P {
        &self.place
    }

    pub(crate) fn folder(&self) -> &Path {
        self.place.path()
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
        rejects_of(&names::shard_file(&self.split, shard))
    }

    /// The list of rejected inputs of a pack.
    pub(crate) fn rejected(&self) -> PathBuf {
        rejected_file(&self.split).into()
    }

    /// The plan file of an unfinished pack.
    pub(crate) fn plan(&self) -> PathBuf {
        plan_file(&self.split).into()
    }

    /// The folder of what the parts of a pack share, until they are committed.
    pub(crate) fn plan_folder(&self) -> PathBuf {
        Path::new(PLAN_FOLDER).join(&self.split)
    }

    /// The planned shards of a pack in parts.
    pub(crate) fn planned(&self) -> PathBuf {
        self.plan_folder().join("shards.json")
    }

    /// The pieces of the stored listing of the source.
    pub(crate) fn listing(&self) -> PathBuf {
        self.plan_folder().join("listing")
    }

    /// What names these pieces. Written after them.
    pub(crate) fn listing_table(&self) -> PathBuf {
        self.plan_folder().join("listing.json")
    }

    /// Removes what the parts of a pack share, if there is anything.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn remove_planned(&self) -> Result<(), Error> {
        let folder = self.plan_folder();
        let names = self.place.names(&folder)?;
        self.place.remove_all(&names.iter().map(|name| folder.join(name)).collect::<Vec<_>>())?;
        self.place.remove_folder(&folder)?;
        // Other splits may have a plan.
        self.place.remove_folder(Path::new(PLAN_FOLDER))
    }

    /// The plan file of a complete split.
    pub(crate) fn packed(&self) -> PathBuf {
        format!(".packed-{}.json", self.split).into()
    }

    /// The times of the source files of a split that stays where it is.
    pub(crate) fn times(&self) -> PathBuf {
        source_times::file_name(&self.split).into()
    }

    /// The lock file of the split.
    pub(crate) fn lock(&self) -> String {
        lock_file(&self.split)
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
        self.place.sync(Path::new(names::INDEX_FOLDER))?;
        self.place.sync(Path::new(""))
    }

    /// Returns the files whose names a pack of this split, or an attempt of a task, may have written. Indexes come first: an index marks its
    /// shard as finished, so it must be removed before the shard.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn written_files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = vec![];
        for folder in [names::INDEX_FOLDER, ""] {
            for name in self.place.names(Path::new(folder))? {
                let ours =
                    |name| self.is_written_name(name) || attempt::of(name).is_some_and(|of| of.split == self.split);
                if name.to_str().is_some_and(ours) {
                    found.push(Path::new(folder).join(&name));
                }
            }
        }
        Ok(found)
    }

    /// Returns whether a pack of this split writes a file of this name: a shard, its index, or its list of rejected
    /// inputs.
    pub(crate) fn is_written_name(&self, name: &str) -> bool {
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
        let plans = [self.plan(), self.packed(), self.times(), self.rejected()];
        let ours = |name: &str| {
            self.is_written_name(name)
                || attempt::of(name).is_some_and(|of| of.split == self.split)
                || plans.iter().any(|plan| plan == Path::new(name))
        };
        self.place.remove_abandoned(Path::new(names::INDEX_FOLDER), &ours)?;
        self.place.remove_abandoned(Path::new(""), &ours)
    }

    /// Checks that no file has a name that a pack of this split would write.
    ///
    /// # Errors
    /// [`DestinationError::InTheWay`], [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn check_unoccupied(&self) -> Result<(), Error> {
        let written = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            !name.starts_with('.') && self.is_written_name(name)
        };
        match self.written_files()?.into_iter().find(written) {
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
        let Some(file) = self.place.read(&self.index(shard))? else { return Ok(None) };
        let Ok(index) = Index::parse(&file) else { return Ok(None) };
        // A virtual shard has no file.
        if index.virtual_columns().is_err()
            && self.place.length(&self.shard(shard))?.is_none_or(|length| length != index.shard_bytes())
        {
            return Ok(None);
        }
        let whole = (0..index.columns().len()).all(|column| index.check(column).is_ok());
        if !whole {
            return Ok(None);
        }
        let sha256 = if sha256 { Some(self.digest(shard)?) } else { None };
        Ok(Some(Shard {
            file: names::shard_file(&self.split, shard),
            records: index.records(),
            bytes: index.shard_bytes(),
            crc32c: index.shard_crc(),
            index_bytes: file.len() as u64,
            index_crc32c: crc32c(&file),
            sha256,
            companions: Default::default(),
            foreign: Default::default(),
        }))
    }

    /// Computes the SHA-256 of a shard.
    fn digest(&self, shard: usize) -> Result<Sha256, Error> {
        let (mut digest, shard) = (sha2::Sha256::new(), self.shard(shard));
        if !self.place.read_parts(&shard, &mut |part| digest.update(part))? {
            return Err(Error::io("read", &self.path(&shard))(std::io::ErrorKind::NotFound.into()));
        }
        Ok(Sha256(digest.finalize().into()))
    }
}

/// The folder of the plans of packs in parts.
const PLAN_FOLDER: &str = "_plan";

/// Returns the path of the rejected inputs of a shard, until the manifest is in place.
pub(crate) fn rejects_of(shard: &str) -> PathBuf {
    let name = format!(".{}.rejected.jsonl", shard.trim_end_matches(".tfrecord"));
    Path::new(names::INDEX_FOLDER).join(name)
}

/// Returns the name of the lock of a split.
pub(crate) fn lock_file(split: &str) -> String {
    format!(".pack-{split}.lock")
}

/// Returns the file name of the list of rejected inputs of a pack.
pub(crate) fn rejected_file(split: &str) -> String {
    format!("rejected-{split}.jsonl")
}

/// Returns the name of the plan file of an unfinished pack.
pub(crate) fn plan_file(split: &str) -> String {
    format!(".pack-{split}.json")
}

/// Returns the splits that a manifest in `folder` may not name yet: those that are being packed, or whose pack was
/// interrupted, in byte order. Ignores a folder that cannot be listed.
pub fn unfinished_splits(folder: &Path) -> Vec<String> {
    let names: Vec<String> = if shardtool_store::is_url(folder) {
        shardtool_store::list_beginning(folder, ".pack-").unwrap_or_default()
    } else {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    };
    unfinished_among(names.iter().map(String::as_str))
}

/// Returns the splits whose plan file of an unfinished pack is among these names, in byte order.
/// Returns the split to which a change adds shards under this name, which is that of an unfinished split; `None` for a split that is
/// packed. The name is the split's, a hyphen and 16 decimal digits.
pub fn grown_split(name: &str) -> Option<&str> {
    let (split, digits) = name.rsplit_once('-')?;
    (digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit())).then_some(split)
}

pub(crate) fn unfinished_among<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let split = |name: &str| Some(name.strip_prefix(".pack-")?.strip_suffix(".json")?.to_owned());
    let mut splits: Vec<_> = names.filter_map(split).collect();
    splits.sort();
    splits
}
