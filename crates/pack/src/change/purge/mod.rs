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
//! | `reports` | removes purged keys from lists of rejected inputs |
//! | `search` | searches all files for what was purged |

mod chosen;
mod copies;
mod keys;
mod reports;
mod rewritten;
mod search;

use super::commit::{Basis, commit};
use super::gc::{self, GcOptions};
use super::{ChangeOptions, NewVersion, base};
use crate::Error;
use crate::commit::{Directory, Lock, remove_abandoned};
use crate::error::ShardError;
use crate::place::{self, Place};
use crate::progress::Progress;
use crate::purged_keys::{self, PurgedKeyList};
use crate::split::files::{grown_split, unfinished_splits};
use chosen::Chosen;
use rewritten::Rewritten;
use search::Needles;
use shardtool_format::manifest::{Manifest, Purged as PurgedMember};
use shardtool_format::names;
use shardtool_read::Dataset;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
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
    /// Files in which a part of what was purged was found; `None` if they were not searched.
    pub found: Option<Vec<PathBuf>>,
}

/// Purges the records of a dataset on a disk that `delete` and `append --replace` have deleted: every kept version that had one is
/// written again without it, and the old files are removed. Versions keep their numbers; ids and fingerprints of those that are written
/// again change.
///
/// # Errors
/// [`ShardError::StorePurge`] for a dataset in a store; [`ShardError::UnfinishedPack`], [`ShardError::OpaqueKeys`];
/// [`DestinationError::Locked`](crate::DestinationError) while another process writes; [`Error::Read`] for damage, [`Error::Io`].
pub fn purge(dataset: &Path, options: &PurgeOptions, progress: &dyn Progress) -> Result<Purged, Error> {
    let dataset = base::open(dataset, &options.change.sources)?;
    if shardtool_store::is_url(dataset.path()) {
        return Err(Error::Shard(ShardError::StorePurge { path: base::folder(&dataset) }));
    }
    let directory = base::directory(&dataset)?;
    let _lock = Lock::own_dataset(&directory)?;
    // Another change may have come first.
    let dataset = base::open(dataset.path(), &options.change.sources)?;
    check(&dataset)?;
    let kept = place::kept_manifests(&directory)?;
    if kept.iter().map(|(_, kept)| kept).chain([dataset.manifest()]).any(Manifest::has_foreign_shards) {
        let problem = "a version has virtual shards, or shards of another dataset, and files of others are never changed: \
            `shardtool compact` writes shards, `shardtool gc --keep 1` drops the versions before; then purge, and remove the files themselves";
        return Err(Error::Shard(ShardError::VirtualShards { path: base::folder(&dataset), problem }));
    }
    let chosen = Chosen::new(&directory, progress)?;
    let mut purged = chosen.purged();
    purged.copies = copies::find(&chosen, progress)?;
    let known = purged_keys::read(&directory, dataset.manifest())?;
    purged.remembered = known.as_ref().map_or(0, |known| known.len() as u64);
    let writes = !options.change.dry_run;
    let needles = if writes && options.search { Some(Needles::new(&chosen)?) } else { None };
    if writes && !chosen.is_empty() {
        write(&directory, &dataset, &chosen, known, options, progress, &mut purged)?;
    } else if writes && options.forget_keys && known.is_some() {
        purged.version = Some(forget(&directory, &dataset, &options.change)?);
        purged.remembered = 0;
    }
    // A killed purge may have come to this.
    if !chosen.is_empty() || dataset.manifest().versions.as_ref().is_some_and(|versions| versions.purged.is_some()) {
        purged.removed = old_files(&directory, false)?;
        purged.links = links(&directory, &purged.removed, &chosen);
        if writes {
            old_files(&directory, true)?;
        }
    }
    if let Some(needles) = needles {
        let kept = place::kept_manifests(&directory)?.into_iter().map(|(_, manifest)| manifest);
        let all: Vec<_> = kept.chain([base::manifest(&directory)?]).collect();
        purged.found = Some(needles.search(dataset.path(), &all, progress)?);
    }
    let removed = &purged.removed;
    purged.others = others(&directory)?.into_iter().filter(|path| !removed.contains(path)).collect();
    Ok(purged)
}

fn check(dataset: &Dataset) -> Result<(), Error> {
    let path = base::folder(dataset);
    let manifest = dataset.manifest();
    let named = [names::IMAGE_KEY, names::IMAGE_FILENAME].iter().any(|name| manifest.dtype(name).is_some());
    if manifest.is_opaque() && !named {
        return Err(Error::Shard(ShardError::OpaqueKeys { path }));
    }
    match unfinished_splits(&path).into_iter().find(|split| grown_split(split).is_none()) {
        Some(split) => Err(Error::Shard(ShardError::UnfinishedPack { path, split })),
        None => Ok(()),
    }
}

fn write(
    directory: &Directory,
    dataset: &Dataset,
    chosen: &Chosen,
    known: Option<PurgedKeyList>,
    options: &PurgeOptions,
    progress: &dyn Progress,
    purged: &mut Purged,
) -> Result<(), Error> {
    directory.create_folder(names::INDEX_FOLDER)?;
    purged.rejected = reports::without(directory, chosen)?;
    let rewritten = Rewritten::write(directory, chosen, options.jobs, progress)?;
    (purged.shards, purged.bytes) = (rewritten.shards(), rewritten.bytes());
    let keys = match options.forget_keys {
        true => None,
        false => keys::write(directory, known, &chosen.forbidden())?,
    };
    purged.remembered = keys.as_ref().map_or(0, |keys| keys.number);
    Place::sync(directory, Path::new(names::INDEX_FOLDER))?;
    Place::sync(directory, Path::new(""))?;
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
    let version =
        commit(directory, dataset.manifest(), &basis, "purge", &options.change, &|_| false, &mut |manifest| {
            *manifest = next(manifest);
            Ok(())
        })?;
    purged.version = Some(version);
    for (number, manifest) in place::kept_manifests(directory)? {
        if let Some(again) = rewritten.manifest(&manifest) {
            Place::publish(directory, &names::version_path(number), again.to_json().as_bytes())?;
        }
    }
    Place::sync(directory, Path::new(names::VERSIONS_FOLDER))?;
    Ok(())
}

/// Removes the list of purged keys: they may come back.
fn forget(directory: &Directory, dataset: &Dataset, options: &ChangeOptions) -> Result<NewVersion, Error> {
    let basis = Basis { everything: true, ..Basis::default() };
    commit(directory, dataset.manifest(), &basis, "purge --forget-keys", options, &|_| false, &mut |manifest| {
        if let Some(purged) = manifest.versions.as_mut().and_then(|versions| versions.purged.as_mut()) {
            purged.keys = None;
        }
        Ok(())
    })
}

/// Returns those of these files, and of the shards with purged rows, that are links, or have other names: their bytes stay there.
fn links(directory: &Directory, files: &[PathBuf], chosen: &Chosen) -> Vec<PathBuf> {
    let shards = chosen.affected().map(|(file, _)| PathBuf::from(file));
    let mut all: Vec<PathBuf> = files.iter().cloned().chain(shards).collect();
    all.sort();
    all.dedup();
    let is_linked = |path: &PathBuf| {
        let found = std::fs::symlink_metadata(Place::path(directory).join(path));
        found.is_ok_and(|found| found.is_symlink() || found.nlink() > 1)
    };
    all.into_iter().filter(is_linked).collect()
}

/// Lists or removes the files that no kept version names any more, and removes what killed processes left.
fn old_files(directory: &Directory, remove: bool) -> Result<Vec<PathBuf>, Error> {
    if remove {
        for folder in ["", names::INDEX_FOLDER, names::COLUMNS_FOLDER, names::VERSIONS_FOLDER] {
            if !Place::names(directory, Path::new(folder))?.is_empty() {
                remove_abandoned(directory, folder, |_| true)?;
            }
        }
    }
    Ok(gc::collect(directory, &GcOptions { keep: None, remove }, None)?.files)
}

/// Returns what lies in the dataset's folder and is not the dataset's.
fn others(directory: &Directory) -> Result<Vec<PathBuf>, Error> {
    let newest = base::manifest(directory)?;
    let mut named: Vec<PathBuf> = place::files_of(Place::path(directory), &newest).collect();
    for (_, manifest) in place::kept_manifests(directory)? {
        named.extend(place::files_of(Place::path(directory), &manifest));
    }
    let folders = [names::INDEX_FOLDER, names::COLUMNS_FOLDER, names::VERSIONS_FOLDER].map(PathBuf::from);
    let known = |path: &PathBuf| {
        let name = path.to_string_lossy();
        named.contains(path)
            || folders.contains(path)
            || name == names::MANIFEST
            || name.starts_with(".pack")
            || name.ends_with(".lock")
            || (name.starts_with("rejected-") && name.ends_with(".jsonl"))
    };
    let all = Place::names(directory, Path::new(""))?.into_iter().map(PathBuf::from);
    Ok(all.filter(|path| !known(path)).collect())
}
