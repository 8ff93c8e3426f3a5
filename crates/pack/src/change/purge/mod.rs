//! Purges deleted records: removes their bytes, keys and values from every kept version. The only change that rewrites history.
//!
//! ```text
//! manifests ─chosen─▶ rows ─▶ lists of rejected inputs, new shards, columns, bitmaps ─▶ newest manifest ─▶ kept manifests ─▶ old files removed
//! ```
//!
//! Killed at any point, every kept version still opens, and the same command continues.
//!
//! | module | responsibility |
//! |---|---|
//! | `chosen` | which rows of which shards are purged |
//! | `copies` | finds the purged images under other keys |
//! | `rewritten` | shards, columns, bitmaps and manifests without these rows |
//! | `keys` | the keys of purged records, which do not come back |
//! | `reach` | what lies where the dataset lies, and what stays there |
//! | `reports` | removes purged keys from lists of rejected inputs |
//! | `search` | searches all files for what was purged |

mod chosen;
mod copies;
mod keys;
mod reach;
mod reports;
mod rewritten;
mod search;

use super::commit::{Basis, commit};
use super::gc::{self, GcOptions};
use super::{ChangeOptions, NewVersion, base};
use crate::Error;
use crate::commit::Lock;
use crate::error::ShardError;
use crate::place::{self, CHANGE_LOCK, Place, StoreFolder};
use crate::progress::Progress;
use crate::purged_keys::{self, PurgedKeyList};
use crate::split::files::{grown_split, unfinished_among};
use chosen::Chosen;
use reach::{Reach, links, others};
use rewritten::Rewritten;
use search::Needles;
use shardtool_format::manifest::{Manifest, Purged as PurgedMember};
use shardtool_format::names;
use shardtool_read::Dataset;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of [`purge`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PurgeOptions {
    /// Whether purged keys may come back. Default: an [`append`](super::append) of one is refused.
    pub forget_keys: bool,
    /// Whether all files in the dataset's folder are read and searched for what was purged. Default: no.
    pub search: bool,
    /// Number of threads; each writes one shard.
    pub jobs: NonZeroUsize,
    /// What all changes have.
    pub change: ChangeOptions,
}

impl Default for PurgeOptions {
    fn default() -> Self {
        let (jobs, change) = (crate::options::default_jobs(), ChangeOptions::default());
        PurgeOptions { forget_keys: false, search: false, jobs, change }
    }
}

/// What was purged, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Purged {
    /// The new version; `None` if there was nothing to do, or nothing was to be written.
    pub version: Option<NewVersion>,
    /// Purged records of each split, by key.
    pub splits: Vec<(String, u64)>,
    /// The versions that had some of them, and were written again.
    pub versions: Vec<u64>,
    /// Shards that were written again.
    pub shards: u64,
    /// Bytes of the new shards.
    pub bytes: u64,
    /// Files that no kept version needs and that were removed, by their paths in the dataset; those that could be removed now, if nothing
    /// was written.
    pub removed: Vec<PathBuf>,
    /// Those of them that are links, or have other names: their bytes stay there.
    pub links: Vec<PathBuf>,
    /// Purged keys that the dataset remembers, those of earlier purges included.
    pub remembered: u64,
    /// Inputs with a purged key that were removed from lists of rejected inputs.
    pub rejected: u64,
    /// Records with other keys, or of other splits, whose image is a purged one: splits and keys.
    pub copies: Vec<(String, String)>,
    /// Files and folders in the dataset's folder that are not the dataset's; they were left as they are.
    pub others: Vec<PathBuf>,
    /// Whether the dataset lies in a store that says that it keeps objects which are replaced or removed: purged bytes are still there.
    pub keeps_versions: bool,
    /// Files in which a part of what was purged was found; `None` if they were not searched.
    pub found: Option<Vec<PathBuf>>,
}

/// Purges the records of a dataset that `delete` and `append --replace` have deleted: every kept version that had one is written again
/// without it, and the old files are removed. Versions keep their numbers; ids and fingerprints of those that are written again change.
///
/// On a disk, no other process writes to the dataset meanwhile. In a store, no change is made meanwhile; one that keeps versions of objects
/// ([`Purged::keeps_versions`]) still has what was purged.
///
/// # Errors
/// [`ShardError::UnfinishedPack`], [`ShardError::OpaqueKeys`], [`ShardError::VirtualShards`];
/// [`DestinationError::Locked`](crate::DestinationError), in a store [`DestinationError::Claimed`](crate::DestinationError), while another
/// process writes; [`DestinationError::NoConditions`](crate::DestinationError) for a store without conditions, unless nothing else writes
/// to it ([`ChangeOptions::single_writer`]); [`Error::Read`] for damage, [`Error::Io`].
pub fn purge(dataset: &Path, options: &PurgeOptions, progress: &dyn Progress) -> Result<Purged, Error> {
    let dataset = base::open(dataset, &options.change.sources)?;
    if !shardtool_store::is_url(dataset.path()) {
        let directory = base::directory(&dataset)?;
        let _lock = Lock::own_dataset(&directory)?;
        return purge_in(&directory, None, options, progress);
    }
    let folder = match options.change.dry_run {
        false => StoreFolder::alone(dataset.path(), CHANGE_LOCK, options.change.single_writer)?,
        // A list needs no right to write.
        true => StoreFolder::open(dataset.path())?.ok_or_else(|| base::no_dataset(dataset.path()))?,
    };
    // In this order: a process that begins later writes other files.
    let there = gc::files(&folder)?;
    if !options.change.dry_run {
        folder.refuse_packs()?;
    }
    purge_in(&folder, Some(&there), options, progress)
}

/// Purges the records of a dataset to which no other process writes but, in a store, a pack that begins from now on; `there` are then the
/// files that are there now.
fn purge_in<P: Reach>(
    place: &P,
    there: Option<&HashSet<PathBuf>>,
    options: &PurgeOptions,
    progress: &dyn Progress,
) -> Result<Purged, Error> {
    // Another change may have come first.
    let dataset = base::open(place.path(), &options.change.sources)?;
    check(place, dataset.manifest())?;
    let kept = place::kept_manifests(place)?;
    if kept.iter().map(|(_, kept)| kept).chain([dataset.manifest()]).any(Manifest::has_foreign_shards) {
        let problem = "a version has virtual shards, or shards of another dataset, and files of others are never changed: \
            `shardtool compact` writes shards, `shardtool gc --keep 1` drops the versions before; then purge, and remove the files themselves";
        return Err(Error::Shard(ShardError::VirtualShards { path: base::folder(&dataset), problem }));
    }
    let chosen = Chosen::new(place, progress)?;
    let mut purged = chosen.purged();
    purged.keeps_versions = place.keeps_versions()?;
    purged.copies = copies::find(&chosen, progress)?;
    let known = purged_keys::read(place, dataset.manifest())?;
    purged.remembered = known.as_ref().map_or(0, |known| known.len() as u64);
    let writes = !options.change.dry_run;
    let needles = if writes && options.search { Some(Needles::new(&chosen)?) } else { None };
    if writes && !chosen.is_empty() {
        write(place, &dataset, &chosen, known, options, progress, &mut purged)?;
    } else if writes && options.forget_keys && known.is_some() {
        purged.version = Some(forget(place, &dataset, &options.change)?);
        purged.remembered = 0;
    }
    // A killed purge may have come to this.
    if !chosen.is_empty() || dataset.manifest().versions.as_ref().is_some_and(|versions| versions.purged.is_some()) {
        purged.removed = old_files(place, there, false)?;
        purged.links = links(place, &purged.removed, &chosen);
        if writes {
            old_files(place, there, true)?;
        }
    }
    if let Some(needles) = needles {
        let kept = place::kept_manifests(place)?.into_iter().map(|(_, manifest)| manifest);
        let all: Vec<_> = kept.chain([base::manifest(place)?]).collect();
        purged.found = Some(needles.search(place, &all, progress)?);
    }
    let removed = &purged.removed;
    purged.others = others(place)?.into_iter().filter(|path| !removed.contains(path)).collect();
    Ok(purged)
}

fn check<P: Place>(place: &P, manifest: &Manifest) -> Result<(), Error> {
    let path = place.path().to_owned();
    let named = [names::IMAGE_KEY, names::IMAGE_FILENAME].iter().any(|name| manifest.dtype(name).is_some());
    if manifest.is_opaque() && !named {
        return Err(Error::Shard(ShardError::OpaqueKeys { path }));
    }
    let names = place.names(Path::new(""))?;
    let unfinished = unfinished_among(names.iter().filter_map(|name| name.to_str()));
    match unfinished.into_iter().find(|split| grown_split(split).is_none()) {
        Some(split) => Err(Error::Shard(ShardError::UnfinishedPack { path, split })),
        None => Ok(()),
    }
}

fn write<P: Place>(
    place: &P,
    dataset: &Dataset,
    chosen: &Chosen,
    known: Option<PurgedKeyList>,
    options: &PurgeOptions,
    progress: &dyn Progress,
    purged: &mut Purged,
) -> Result<(), Error> {
    place.create_folder(Path::new(names::INDEX_FOLDER))?;
    purged.rejected = reports::without(place, chosen)?;
    let rewritten = Rewritten::write(place, chosen, options.jobs, progress)?;
    (purged.shards, purged.bytes) = (rewritten.shards(), rewritten.bytes());
    let keys = match options.forget_keys {
        true => None,
        false => keys::write(place, known, &chosen.forbidden())?,
    };
    purged.remembered = keys.as_ref().map_or(0, |keys| keys.number);
    place.sync(Path::new(names::INDEX_FOLDER))?;
    place.sync(Path::new(""))?;
    let next = |manifest: &Manifest| {
        let mut next = rewritten.manifest(manifest).unwrap_or_else(|| manifest.clone());
        let before = next.versions.as_ref().and_then(|versions| versions.purged.clone()).unwrap_or_default();
        let mut versions = [before.versions, purged.versions.clone()].concat();
        versions.sort_unstable();
        versions.dedup();
        if let Some(of) = &mut next.versions {
            of.purged = Some(PurgedMember { versions, keys: keys.clone() });
        }
        next
    };
    let basis = Basis { everything: true, ..Basis::default() };
    let version = commit(place, dataset.manifest(), &basis, "purge", &options.change, &|_| false, &mut |manifest| {
        *manifest = next(manifest);
        Ok(())
    })?;
    purged.version = Some(version);
    for (number, manifest) in place::kept_manifests(place)? {
        if let Some(again) = rewritten.manifest(&manifest) {
            place.publish(&names::version_path(number), again.to_json().as_bytes())?;
        }
    }
    place.sync(Path::new(names::VERSIONS_FOLDER))?;
    Ok(())
}

/// Removes the list of purged keys: they may come back.
fn forget<P: Place>(place: &P, dataset: &Dataset, options: &ChangeOptions) -> Result<NewVersion, Error> {
    let basis = Basis { everything: true, ..Basis::default() };
    commit(place, dataset.manifest(), &basis, "purge --forget-keys", options, &|_| false, &mut |manifest| {
        if let Some(purged) = manifest.versions.as_mut().and_then(|versions| versions.purged.as_mut()) {
            purged.keys = None;
        }
        Ok(())
    })
}

/// Lists or removes the files that no kept version names any more, of those that are `there`, and removes what killed processes left.
fn old_files<P: Place>(place: &P, there: Option<&HashSet<PathBuf>>, remove: bool) -> Result<Vec<PathBuf>, Error> {
    if remove {
        for folder in gc::FOLDERS {
            // On a disk, no other process writes.
            let is_abandoned = |name: &str| there.is_none() || gc::is_ours(folder, name);
            if !place.names(Path::new(folder))?.is_empty() {
                place.remove_abandoned(Path::new(folder), &is_abandoned)?;
            }
        }
    }
    Ok(gc::collect(place, &GcOptions { keep: None, remove }, there)?.files)
}
