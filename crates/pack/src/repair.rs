//! Rebuilds index and manifest from the records, and copies the good records of a damaged shard to a new file.
//! Overwrites only indexes and the manifest, which can be derived from the records. Never computes a new CRC for a
//! record whose stored CRCs do not match.

use crate::class_ids::ClassNames;
use crate::commit::{self, Temporary};
use crate::conventions::{Conventions, RecordSummary, payload};
use crate::error::{DestinationError, ShardError};
use crate::frames::Frames;
use crate::index_writer::{IndexOptions, IndexWriter, Indexed, Payload};
use crate::ordered::{Window, ordered};
use crate::progress::Progress;
use crate::salvage::{OldIndex, salvage};
use crate::split::manifest_store;
use crate::{Error, Lost};
use shardtool_format::frame;
use shardtool_format::manifest::{Manifest, Shard, Split};
use shardtool_format::names;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::Path;

/// Options of [`repair`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairOptions {
    /// Which features hold the image and the label, if there is no valid manifest.
    pub conventions: Conventions,
    /// Number of threads; each repairs one shard.
    pub jobs: NonZeroUsize,
    /// Writes JPEG entry points into the index (column `jpeg_entries`), so that a crop is decoded without the rows
    /// above it. Default: yes.
    pub entry_points: bool,
}

impl Default for RepairOptions {
    fn default() -> Self {
        RepairOptions { conventions: Conventions::default(), jobs: crate::options::default_jobs(), entry_points: true }
    }
}

/// The result of a repair.
#[derive(Debug)]
#[non_exhaustive]
pub struct Repair {
    /// What was done about the manifest.
    pub manifest: ManifestRepair,
    /// What was done about each shard, in the manifest's order.
    pub shards: Vec<ShardRepair>,
    /// Splits that an interrupted pack left unfinished and that no manifest names. Repair does not change them; run the
    /// same pack again to finish them.
    pub unfinished: Vec<String>,
}

/// What was done about the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestRepair {
    /// It was valid and still describes the shards.
    Kept,
    /// It was valid and was updated.
    Updated,
    /// It was missing or damaged, and was rebuilt. The new one lacks the old `created_by`, names of classes without
    /// records, and conventions other than those given.
    Rebuilt,
}

/// The repair of one shard.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShardRepair {
    /// The split.
    pub split: String,
    /// The shard's file name before the repair.
    pub file: String,
    /// What was done.
    pub action: Action,
    /// The lost bytes and records, in the order of the file.
    pub lost: Vec<Lost>,
}

/// What was done about a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing: shard and index are valid.
    Intact,
    /// The index was missing, damaged or wrong, and was rebuilt.
    IndexRebuilt,
    /// Every record is good, but the file differed from the manifest, which was updated.
    Accepted,
    /// The good records were copied to a new file, which replaces the shard in the manifest. The damaged file and its
    /// index are unchanged; nothing refers to them.
    Salvaged {
        /// Name of the new file.
        file: String,
        /// Records in it.
        records: u64,
    },
    /// The file does not exist. The manifest still names it, so that it can be restored.
    Missing,
}

/// A shard to check.
struct ListedShard {
    split: String,
    file: String,
    /// Its line in a valid manifest.
    line: Option<Shard>,
}

/// Repairs the dataset in a folder.
///
/// # Errors
/// [`ShardError::NoDataset`]; [`ShardError::Record`] and [`ShardError::FeatureType`] for records with good CRCs that
/// are not Examples, or have features of different types; [`Error::Io`].
pub fn repair(folder: &Path, options: &RepairOptions, progress: &dyn Progress) -> Result<Repair, Error> {
    let manifest = match manifest_store::read(folder) {
        Ok(manifest) => manifest,
        Err(Error::Destination(DestinationError::Manifest { .. })) => None,
        Err(e) => return Err(e),
    };
    let (known, unfinished) = match &manifest {
        Some(manifest) => (of_manifest(manifest), vec![]),
        None => of_folder(folder)?,
    };
    if known.is_empty() && unfinished.is_empty() && manifest.is_none() {
        return Err(Error::Shard(ShardError::NoDataset { path: folder.to_owned() }));
    }
    let payload = match &manifest {
        Some(manifest) => Payload::of(manifest),
        None => {
            let files: Vec<_> = known.iter().map(|shard| folder.join(&shard.file)).collect();
            payload(&files.iter().collect::<Vec<_>>(), &options.conventions.image)?
        }
    };
    commit::create_folder(&folder.join(names::INDEX_FOLDER))?;
    let bytes = |shard: &ListedShard| std::fs::metadata(folder.join(&shard.file)).map_or(0, |meta| meta.len());
    progress.total(known.len() as u64, known.iter().map(bytes).sum());
    let mut summary = RecordSummary::new(&options.conventions);
    let (mut shards, mut splits) = (vec![], BTreeMap::<String, Vec<Shard>>::new());
    let window = Window { pieces: options.jobs.get(), weight: u64::MAX };
    let repair_shard = |_: &mut (), i: usize| repair_shard(folder, &known[i], payload.clone(), options);
    ordered(
        options.jobs,
        known.len(),
        window,
        |_| 0,
        || (),
        repair_shard,
        |i, result: Result<RepairedShard, Error>| {
            let RepairedShard { action, lost, found } = result?;
            let ListedShard { split, file, line } = &known[i];
            let shard = found.map(|(indexed, classes)| summary.join(&indexed, classes).map(|()| indexed.shard));
            let shard = shard.transpose()?.or_else(|| line.clone());
            splits.entry(split.clone()).or_default().extend(shard);
            shards.push(ShardRepair { split: split.clone(), file: file.clone(), action, lost });
            progress.done(1, bytes(&known[i]));
            Ok::<(), Error>(())
        },
    )?;
    commit::sync_folder(&folder.join(names::INDEX_FOLDER))?;
    commit::sync_folder(folder)?;
    let splits = splits.into_iter().map(|(name, shards)| Split { name, shards }).collect();
    let (outcome, repaired) = match &manifest {
        Some(manifest) => {
            // Splits without shards were not checked.
            let empty = manifest.splits.iter().filter(|s| s.shards.is_empty()).cloned();
            let mut splits: Vec<Split> = empty.chain(splits).collect();
            splits.sort_by(|a, b| a.name.cmp(&b.name));
            let repaired = Manifest { splits, ..manifest.clone() };
            let same = repaired == *manifest;
            (if same { ManifestRepair::Kept } else { ManifestRepair::Updated }, repaired)
        }
        None => (ManifestRepair::Rebuilt, Manifest { splits, ..summary.manifest(&payload, &options.conventions) }),
    };
    if outcome != ManifestRepair::Kept && !repaired.splits.is_empty() {
        manifest_store::replace(folder, &repaired)?;
    }
    Ok(Repair { manifest: outcome, shards, unfinished })
}

fn of_manifest(manifest: &Manifest) -> Vec<ListedShard> {
    let of_split = |split: &Split| {
        let name = split.name.clone();
        let known = move |shard: &Shard| ListedShard {
            split: name.clone(),
            file: shard.file.clone(),
            line: Some(shard.clone()),
        };
        split.shards.iter().map(known).collect::<Vec<_>>()
    };
    manifest.splits.iter().flat_map(of_split).collect()
}

/// Returns the shards in a folder: files named `.tfrecord`, and others that have an index. A salvaged file replaces the
/// damaged one.
fn of_folder(folder: &Path) -> Result<(Vec<ListedShard>, Vec<String>), Error> {
    let mut files = vec![];
    for entry in std::fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let name = entry.map_err(Error::io("list", folder))?.file_name();
        let Ok(name) = name.into_string() else { continue };
        let shard = name.ends_with(".tfrecord") || names::index_path(&folder.join(&name)).exists();
        if shard && !name.starts_with('.') && folder.join(&name).is_file() {
            files.push(name);
        }
    }
    files.sort_unstable();
    let unfinished = |split: &str| folder.join(format!(".pack-{split}.json")).exists();
    let (mut known, mut left) = (vec![], vec![]);
    for file in &files {
        let split = names::split_of(file);
        if unfinished(split) {
            left.push(split.to_owned());
        } else if !files.contains(&salvaged_name(file)) {
            known.push(ListedShard { split: split.to_owned(), file: file.clone(), line: None });
        }
    }
    left.dedup();
    // The manifest's order: splits by name, shards by name in each.
    known.sort_by(|a, b| (&a.split, &a.file).cmp(&(&b.split, &b.file)));
    Ok((known, left))
}

/// Returns the name of the file that replaces a damaged shard.
fn salvaged_name(shard: &str) -> String {
    format!("{}.salvaged.tfrecord", shard.strip_suffix(".tfrecord").unwrap_or(shard))
}

/// What was done about one shard, and its index and class names; `None` if it is missing.
struct RepairedShard {
    action: Action,
    lost: Vec<Lost>,
    found: Option<(Indexed, ClassNames)>,
}

fn repair_shard(
    folder: &Path,
    known: &ListedShard,
    payload: Payload,
    options: &RepairOptions,
) -> Result<RepairedShard, Error> {
    let path = folder.join(&known.file);
    if !path.exists() {
        return Ok(RepairedShard { action: Action::Missing, lost: vec![], found: None });
    }
    let index_file = names::index_path(&path);
    let old_file = read_old_index(&index_file)?;
    let old = old_file.as_deref().and_then(OldIndex::parse);
    let mut frames = Frames::open(&path)?;
    // The manifest's SHA-256 is kept, also where the shard differs.
    let sha256 = known.line.as_ref().is_some_and(|line| line.sha256.is_some());
    let mut read = IndexBuilder::new(&known.file, payload.clone(), options, sha256);
    let mut lost = salvage(&mut frames, old.as_ref(), |data, crc| read.push(data, crc))?;
    if !lost.is_empty() {
        let file = salvaged_name(&known.file);
        let (indexed, classes) = copy_good(folder, &path, &file, old.as_ref(), (payload, sha256), options)?;
        let action = Action::Salvaged { file, records: indexed.shard.records };
        return Ok(RepairedShard { action, lost, found: Some((indexed, classes)) });
    }
    let (indexed, classes) = read.finish(&path)?;
    let same_shard =
        known.line.as_ref().is_none_or(|l| (l.bytes, l.crc32c) == (indexed.shard.bytes, indexed.shard.crc32c));
    let same_index = old_file.as_ref() == Some(&indexed.index);
    let action = match (same_shard, same_index) {
        (true, true) => Action::Intact,
        (true, false) => Action::IndexRebuilt,
        (false, _) => Action::Accepted,
    };
    if !same_index {
        commit::publish(index_file, &indexed.index)?;
    }
    let end = frames.bytes();
    if let Some(last) = old.as_ref().and_then(OldIndex::last_offset).filter(|last| *last >= end) {
        lost.push(OldIndex::lost(old.as_ref(), end..last + 1, None));
    }
    Ok(RepairedShard { action, lost, found: Some((indexed, classes)) })
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

/// Copies the good records of a damaged shard to a file of this name, and writes its index.
fn copy_good(
    folder: &Path,
    damaged: &Path,
    file: &str,
    old: Option<&OldIndex>,
    (payload, sha256): (Payload, bool),
    options: &RepairOptions,
) -> Result<(Indexed, ClassNames), Error> {
    let mut out = Temporary::new(folder.join(file))?;
    let mut read = IndexBuilder::new(file, payload, options, sha256);
    salvage(&mut Frames::open(damaged)?, old, |data, crc| {
        out.write(&frame::header(data.len() as u64))?;
        out.write(data)?;
        out.write(&frame::footer(crc))?;
        read.push(data, crc)
    })?;
    let (indexed, classes) = read.finish(out.flush()?)?;
    out.publish()?;
    commit::publish(names::index_path(&folder.join(file)), &indexed.index)?;
    Ok((indexed, classes))
}

/// Collects the index and the class names of records.
struct IndexBuilder {
    index: IndexWriter,
    classes: ClassNames,
}

impl IndexBuilder {
    /// With `sha256`, computes the SHA-256 of the shard.
    fn new(file: &str, payload: Payload, options: &RepairOptions, sha256: bool) -> Self {
        let classes = ClassNames::new(&options.conventions.label, options.conventions.label_offset);
        let columns = IndexOptions { entry_points: options.entry_points, sha256 };
        IndexBuilder { index: IndexWriter::new(file, payload, columns), classes }
    }

    fn push(&mut self, data: &[u8], crc: u32) -> Result<(), Error> {
        if let Some(example) = self.index.push(data, crc)? {
            self.classes.observe(&example);
        }
        Ok(())
    }

    /// Makes the index of the records, which `shard` holds.
    fn finish(self, shard: &Path) -> Result<(Indexed, ClassNames), Error> {
        Ok((self.index.finish(shard)?, self.classes))
    }
}
