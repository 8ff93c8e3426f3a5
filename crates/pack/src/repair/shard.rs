//! Repairs one shard.

use super::listing::ListedShard;
use super::salvaged::{self, Records};
use super::{Action, RepairOptions};
use crate::class_ids::ClassNames;
use crate::commit::{self, Directory, Temporary};
use crate::error::ShardError;
use crate::frames::Frames;
use crate::index_writer::{IndexOptions, IndexWriter, Indexed, Payload};
use crate::progress::{Progress, Step, after};
use crate::salvage::{OldIndex, salvage};
use crate::{Error, Lost};
use shardtool_format::index::Index;
use shardtool_format::names;
use shardtool_format::{self as format, frame};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What the repair of every shard needs.
pub(super) struct Context<'a> {
    pub(super) directory: &'a Directory,
    /// All shards of the dataset.
    pub(super) known: &'a [ListedShard],
    pub(super) payload: Payload,
    pub(super) options: &'a RepairOptions,
    pub(super) progress: &'a dyn Progress,
}

/// What was done about one shard.
pub(super) struct RepairedShard {
    pub(super) action: Action,
    pub(super) lost: Vec<Lost>,
    /// The index and class names of the file that now is the shard; `None` if it is missing.
    pub(super) found: Option<(Indexed, ClassNames)>,
    /// An index that must be written after the manifest: the old one is the only witness of lost records.
    pub(super) late_index: Option<(PathBuf, Vec<u8>)>,
}

impl RepairedShard {
    fn new(action: Action, found: Option<(Indexed, ClassNames)>) -> Self {
        RepairedShard { action, lost: vec![], found, late_index: None }
    }
}

impl Context<'_> {
    /// Checks a shard, and repairs it.
    ///
    /// # Errors
    /// Those of [`super::repair`].
    pub(super) fn repair(&self, known: &ListedShard) -> Result<RepairedShard, Error> {
        if let Some(restored) = self.restored(known)? {
            return Ok(restored);
        }
        let path = self.path(&known.file);
        match std::fs::metadata(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(RepairedShard::new(Action::Missing, None)),
            Err(e) => return Err(Error::io("read", &path)(e)),
            Ok(_) => {}
        }
        let index_file = names::index_path(Path::new(&known.file));
        let old_file = read_old_index(&self.directory.path().join(&index_file))?;
        let old = old_file.as_deref().and_then(|bytes| Index::parse(bytes).ok());
        let old = old.as_ref().and_then(OldIndex::of);
        let mut frames = Frames::open(&path)?;
        let mut read = self.builder(&known.file, known);
        let mut lost = salvage(&mut frames, old.as_ref(), |data, crc| read.push(data, crc))?;
        if !lost.is_empty() {
            let found = self.copy_good(known, old.as_ref())?;
            let action = Action::Salvaged { file: found.0.shard.file.clone(), records: found.0.shard.records };
            return Ok(RepairedShard { lost, ..RepairedShard::new(action, Some(found)) });
        }
        let (indexed, classes) = read.finish(&path)?;
        let found = &indexed.shard;
        let same_shard = known.line.as_ref().is_none_or(|l| (l.bytes, l.crc32c) == (found.bytes, found.crc32c));
        let same_index = old_file.as_ref() == Some(&indexed.index);
        let action = match (same_shard, same_index) {
            (true, true) => Action::Intact,
            (true, false) => Action::IndexRebuilt,
            (false, _) => Action::Accepted,
        };
        lost.extend(cut(old.as_ref(), known, &indexed));
        let mut late_index = None;
        match (same_index, lost.is_empty()) {
            (true, _) => {}
            (false, true) => self.put_index(&index_file, &indexed)?,
            (false, false) => late_index = Some((index_file, indexed.index.clone())),
        }
        Ok(RepairedShard { action, lost, found: Some((indexed, classes)), late_index })
    }

    /// If the shard is a salvaged copy and its original is whole again, with all records of the copy, replaces the copy.
    fn restored(&self, known: &ListedShard) -> Result<Option<RepairedShard>, Error> {
        let Some(original) = &known.original else { return Ok(None) };
        let path = self.path(original);
        let whole = Records::read(&path)?;
        if !whole.whole {
            return Ok(None);
        }
        let copy = self.path(&known.file);
        if self.directory.exists(&known.file)? && !Records::read(&copy)?.are_among(&whole) {
            return Ok(None);
        }
        let mut read = self.builder(original, known);
        let lost = salvage(&mut Frames::open(&path)?, None, |data, crc| read.push(data, crc))?;
        if !lost.is_empty() {
            return Ok(None);
        }
        let found = read.finish(&path)?;
        self.put_index(&names::index_path(Path::new(original)), &found.0)?;
        Ok(Some(RepairedShard::new(Action::Restored { file: original.clone() }, Some(found))))
    }

    /// Copies the good records of a damaged shard to a new file, and writes its index. If an earlier run made the copy,
    /// keeps it.
    fn copy_good(&self, known: &ListedShard, old: Option<&OldIndex<'_>>) -> Result<(Indexed, ClassNames), Error> {
        let mut good = None;
        for name in salvaged::names(&known.file) {
            if self.known.iter().any(|shard| shard.file == name) {
                continue;
            }
            let found = if self.directory.exists(&name)? {
                let good = match &mut good {
                    Some(good) => good,
                    None => good.insert(self.good(known, old)?),
                };
                let there = Records::read(&self.path(&name))?;
                if !(there.whole && good.are_among(&there)) {
                    continue;
                }
                let mut read = self.builder(&name, known);
                salvage(&mut Frames::open(&self.path(&name))?, None, |data, crc| read.push(data, crc))?;
                read.finish(&self.path(&name))?
            } else {
                self.write_good(known, old, &name)?
            };
            self.put_index(&names::index_path(Path::new(&name)), &found.0)?;
            return Ok(found);
        }
        unreachable!("names of copies do not end")
    }

    /// Returns the good records of a damaged shard.
    fn good(&self, known: &ListedShard, old: Option<&OldIndex<'_>>) -> Result<Records, Error> {
        let mut good = Records::default();
        salvage(&mut Frames::open(&self.path(&known.file))?, old, |data, crc| {
            let problem = self.payload.parse(data).err();
            if problem.is_none() {
                good.records.push((data.len() as u64, crc));
            }
            Ok(problem)
        })?;
        Ok(good)
    }

    /// Writes the good records of a damaged shard to a file.
    fn write_good(
        &self,
        known: &ListedShard,
        old: Option<&OldIndex<'_>>,
        name: &str,
    ) -> Result<(Indexed, ClassNames), Error> {
        let mut out = Temporary::new(self.directory, Path::new(name))?;
        let mut read = self.builder(name, known);
        salvage(&mut Frames::open(&self.path(&known.file))?, old, |data, crc| {
            let problem = read.push(data, crc)?;
            if problem.is_none() {
                out.write(&frame::header(data.len() as u64))?;
                out.write(data)?;
                out.write(&frame::footer(crc))?;
            }
            Ok(problem)
        })?;
        let found = read.finish(&out.flush()?)?;
        out.publish()?;
        self.directory.sync()?;
        after(self.progress, Step::Salvaged)?;
        Ok(found)
    }

    fn put_index(&self, path: &Path, indexed: &Indexed) -> Result<(), Error> {
        if read_old_index(&self.directory.path().join(path))?.as_ref() != Some(&indexed.index) {
            commit::publish(self.directory, path, &indexed.index)?;
            after(self.progress, Step::Index)?;
        }
        Ok(())
    }

    fn builder(&self, file: &str, known: &ListedShard) -> IndexBuilder {
        let conventions = &self.options.conventions;
        let classes = ClassNames::new(&conventions.label, conventions.label_offset);
        // The manifest's SHA-256 is kept, also where the shard differs.
        let sha256 = known.line.as_ref().is_some_and(|line| line.sha256.is_some());
        let columns = IndexOptions { entry_points: self.options.entry_points, sha256 };
        IndexBuilder { index: IndexWriter::new(file, self.payload.clone(), columns), classes }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }
}

/// Returns the records that a shard of good records lost at its end, according to the old index or, if a killed run
/// replaced that, the manifest.
fn cut(old: Option<&OldIndex<'_>>, known: &ListedShard, found: &Indexed) -> Option<Lost> {
    let (end, records) = (found.shard.bytes, found.shard.records);
    if let Some(last) = old.and_then(OldIndex::last_offset).filter(|last| *last >= end) {
        return Some(OldIndex::lost(old, end..last + 1, None));
    }
    let line = known.line.as_ref().filter(|line| line.bytes > end && line.records > records)?;
    Some(Lost { bytes: end..line.bytes, records: Some(records..line.records), keys: vec![], problem: None })
}

/// Returns the bytes of an index, or `None` if it does not exist. If its header does not fit the length of its file, returns
/// no bytes.
fn read_old_index(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match shardtool_read::read_index(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(shardtool_read::Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(shardtool_read::Error::Io { source, .. }) => Err(Error::io("read", path)(source)),
        Err(shardtool_read::Error::Index { .. }) => Ok(Some(vec![])),
        Err(error) => Err(error.into()),
    }
}

/// Collects the index and the class names of records.
struct IndexBuilder {
    index: IndexWriter,
    classes: ClassNames,
}

impl IndexBuilder {
    /// Adds a record. Returns what is wrong with it, if it is not an Example: it is then not added.
    fn push(&mut self, data: &[u8], crc: u32) -> Result<Option<format::Error>, Error> {
        match self.index.push(data, crc) {
            Ok(Some(example)) => self.classes.observe(&example),
            Ok(None) => {}
            Err(Error::Shard(ShardError::Record { source, .. })) => return Ok(Some(source)),
            Err(e) => return Err(e),
        }
        Ok(None)
    }

    /// Makes the index of the records, which `shard` holds.
    fn finish(self, shard: &Path) -> Result<(Indexed, ClassNames), Error> {
        Ok((self.index.finish(shard)?, self.classes))
    }
}
