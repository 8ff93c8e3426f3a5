//! Rebuilds index and manifest from the records, and copies the good records of a damaged shard to a new file.
//! Overwrites only indexes and the manifest, which can be derived from the records. Never computes a new CRC for a
//! record whose stored CRCs do not match.
//!
//! The whole run has the dataset alone. A salvaged copy comes first, then its index, then the manifest. Whatever a killed
//! run left, the next one finds the same damage and makes the same files.
//!
//! | module | responsibility |
//! |---|---|
//! | `listing` | finds the shards, with or without a manifest |
//! | `salvaged` | names of copies, and whether a file is a copy of another |
//! | `shard` | repairs one shard |

mod listing;
mod salvaged;
mod shard;

use crate::commit::{self, Directory, Lock};
use crate::conventions::{Conventions, RecordSummary, payload};
use crate::error::{DestinationError, ShardError};
use crate::index_writer::Payload;
use crate::ordered::ordered;
use crate::progress::{Progress, Step, after};
use crate::split::manifest_store;
use crate::{Error, Lost};
use listing::ListedShard;
use shard::{Context, RepairedShard};
use shardtool_format::manifest::{Manifest, Shard, Split};
use shardtool_format::names;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

/// Options of [`repair`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairOptions {
    /// Which features hold the image and the label, if no valid manifest exists.
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
    /// The shard is the salvaged copy of a file that is whole again, and that replaces it in the manifest.
    Restored {
        /// Name of the whole file.
        file: String,
    },
    /// The file does not exist. The manifest still names it, so that it can be restored.
    Missing,
}

/// Repairs the dataset in a folder.
///
/// # Errors
/// [`ShardError::NoDataset`]; [`DestinationError::Locked`] if another process writes the dataset;
/// [`DestinationError::Unfinished`]; [`ShardError::FeatureType`] for records with features of different types;
/// [`Error::Name`] for shards whose names a manifest cannot hold; [`Error::Stopped`], [`Error::Io`].
pub fn repair(folder: &Path, options: &RepairOptions, progress: &dyn Progress) -> Result<Repair, Error> {
    let no_dataset = || Error::Shard(ShardError::NoDataset { path: folder.to_owned() });
    let directory = Directory::open(folder)?.ok_or_else(no_dataset)?;
    let _lock = Lock::own_dataset(&directory)?;
    if let Some(path) = commit::unfinished(&directory)? {
        return Err(Error::Destination(DestinationError::Unfinished { path }));
    }
    let manifest = match manifest_store::read(&directory) {
        Ok(manifest) => manifest,
        Err(Error::Destination(DestinationError::Manifest { .. })) => None,
        Err(e) => return Err(e),
    };
    manifest.as_ref().map_or(Ok(()), |manifest| manifest_store::refuse_versions(folder, manifest, "a repair"))?;
    if manifest.as_ref().is_some_and(Manifest::has_cloned_shards) {
        let problem = "its shards lie in another dataset, which is never changed from here; repair that one";
        return Err(Error::Shard(ShardError::VirtualShards { path: folder.to_owned(), problem }));
    }
    if manifest.as_ref().is_some_and(Manifest::has_virtual_shards) {
        let problem = "the files that it describes are never changed; restore them, or describe them again with `shardtool index`";
        return Err(Error::Shard(ShardError::VirtualShards { path: folder.to_owned(), problem }));
    }
    // Without the newest manifest, those of earlier versions say which files belong to the dataset.
    if manifest.is_none() && directory.has_folder(names::VERSIONS_FOLDER)? {
        return Err(Error::Shard(ShardError::LostVersion { path: folder.to_owned() }));
    }
    let (known, unfinished) = match &manifest {
        Some(manifest) => (listing::of_manifest(&directory, manifest)?, vec![]),
        None => listing::of_folder(&directory)?,
    };
    if known.is_empty() && unfinished.is_empty() && manifest.is_none() {
        return Err(no_dataset());
    }
    let payload = match &manifest {
        Some(manifest) => Payload::of(manifest),
        None => {
            let files: Vec<_> = known.iter().map(|shard| folder.join(&shard.file)).collect();
            payload(&files.iter().collect::<Vec<_>>(), &options.conventions.image)?
        }
    };
    commit::remove_abandoned(&directory, "", |_| true)?;
    commit::remove_abandoned(&directory, names::INDEX_FOLDER, |_| true)?;
    let index_folder = directory.create_folder(names::INDEX_FOLDER)?;
    let bytes = |shard: &ListedShard| std::fs::metadata(folder.join(&shard.file)).map_or(0, |meta| meta.len());
    progress.total(known.len() as u64, known.iter().map(bytes).sum());
    let mut summary = RecordSummary::new(&options.conventions);
    let (mut shards, mut splits) = (vec![], BTreeMap::<String, Vec<Shard>>::new());
    let mut late = vec![];
    let context = Context { directory: &directory, known: &known, payload: payload.clone(), options, progress };
    ordered(
        options.jobs,
        known.len(),
        options.jobs.get(),
        |i| context.repair(&known[i]),
        |i, result: Result<RepairedShard, Error>| {
            let RepairedShard { action, lost, found, late_index } = result?;
            let ListedShard { split, file, line, .. } = &known[i];
            late.extend(late_index);
            let shard = found.map(|(indexed, classes)| summary.join(&indexed, classes).map(|()| indexed.shard));
            let shard = shard.transpose()?.or_else(|| line.clone());
            splits.entry(split.clone()).or_default().extend(shard);
            shards.push(ShardRepair { split: split.clone(), file: file.clone(), action, lost });
            progress.done(1, bytes(&known[i]));
            Ok::<(), Error>(())
        },
    )?;
    index_folder.sync()?;
    directory.sync()?;
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
        manifest_store::replace(&directory, &repaired)?;
        after(progress, Step::Manifest)?;
    }
    for (path, index) in late {
        commit::publish(&directory, &path, &index)?;
        after(progress, Step::Index)?;
    }
    index_folder.sync()?;
    Ok(Repair { manifest: outcome, shards, unfinished })
}
