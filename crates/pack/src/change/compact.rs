//! Writes the records of the newest version into new shards: without deleted rows, with their columns, and in shards of one size.

use super::append::shards_name;
use super::base;
use super::commit::{Basis, beside_others, commit, discard};
use super::parts_file::{Holds, PartsFile};
use super::{ChangeOptions, NewVersion, views};
use crate::commit::Directory;
use crate::error::ShardError;
use crate::metadata::RecordStripper;
use crate::place::{self, CHANGE_LOCK, Place, StoreFolder};
use crate::progress::Progress;
use crate::reshard::{ReshardOptions, Resharding};
use crate::{Error, Shards};
use shardtool_format::manifest::{self, DType, FeatureType, Manifest};
use shardtool_format::names;
use shardtool_read::{Dataset, Split};
use std::path::Path;

/// Options of [`compact`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompactOptions {
    /// The splits; default: all that have something to compact.
    pub splits: Vec<String>,
    /// Size or number of the new shards.
    pub shards: Shards,
    /// Number of threads.
    pub jobs: std::num::NonZeroUsize,
    /// Whether indexes have JPEG entry points.
    pub entry_points: bool,
    /// Removes metadata from the images of all records, as [`Options::strip_metadata`](crate::Options::strip_metadata); a split is then
    /// due if an image has some. The versions before keep theirs until [`gc`](crate::gc()) drops them. Default: no.
    pub strip_metadata: bool,
    /// What all changes have.
    pub change: ChangeOptions,
}

impl Default for CompactOptions {
    fn default() -> Self {
        let ReshardOptions { shards, jobs, entry_points, .. } = ReshardOptions::default();
        let change = ChangeOptions::default();
        CompactOptions { splits: vec![], shards, jobs, entry_points, strip_metadata: false, change }
    }
}

/// What was compacted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Compacted {
    /// The new version; `None` if there was nothing to do, or nothing was to be written.
    pub version: Option<NewVersion>,
    /// The splits that have new shards: name, shards before, shards now (0 if nothing was to be written).
    pub splits: Vec<(String, u64, u64)>,
    /// Bytes of the new shards.
    pub bytes: u64,
}

/// Compacts the newest version of a dataset. Classes, and the order of the records, stay.
///
/// # Errors
/// [`ShardError::OpaqueKeys`], [`ShardError::Metadata`]; [`DestinationError::CameFirst`](crate::DestinationError), [`Error::Read`], [`Error::Io`].
pub fn compact(dataset: &Path, options: &CompactOptions, progress: &dyn Progress) -> Result<Compacted, Error> {
    let dataset = base::open(dataset, &options.change.sources)?;
    let listed = base::splits(&dataset, &options.splits)?;
    let manifest = dataset.manifest();
    let has_columns = manifest.versions.as_ref().is_some_and(|v| !v.columns.is_empty() || !v.dropped.is_empty());
    // What a column is to one split it is to all.
    let splits: Vec<&Split> = match has_columns {
        true => dataset.splits().iter().collect(),
        false => due(&dataset, listed, options)?,
    };
    let before = |split: &Split| split.entry().shards.len() as u64;
    let listed = splits.iter().map(|split| (split.name().to_owned(), before(split), 0)).collect();
    let nothing = Compacted { version: None, splits: listed, bytes: 0 };
    if splits.is_empty() || options.change.dry_run {
        return Ok(nothing);
    }
    let named = [names::IMAGE_KEY, names::IMAGE_FILENAME].iter().any(|name| manifest.dtype(name).is_some());
    if manifest.is_opaque() && !named {
        return Err(Error::Shard(ShardError::OpaqueKeys { path: base::folder(&dataset) }));
    }
    beside_others(&dataset, || match shardtool_store::is_url(dataset.path()) {
        true => write::<StoreFolder>(&dataset, &splits, options, progress),
        false => write::<Directory>(&dataset, &splits, options, progress),
    })
}

/// Returns the splits that have something to compact.
fn due<'a>(dataset: &Dataset, listed: Vec<&'a Split>, options: &CompactOptions) -> Result<Vec<&'a Split>, Error> {
    let stripper = options.strip_metadata.then(|| RecordStripper::new(dataset.manifest())).transpose()?;
    let mut due = vec![];
    for split in listed {
        let has_metadata = || stripper.as_ref().map_or(Ok(false), |stripper| stripper.finds(split, options.jobs));
        if is_due(split, options.shards) || has_metadata()? {
            due.push(split);
        }
    }
    Ok(due)
}

/// Returns whether a split has deleted rows, shards that are not its own files, or many small ones.
fn is_due(split: &Split, shards: Shards) -> bool {
    let entry = split.entry();
    let wanted = match shards {
        Shards::Size(size) => entry.bytes().div_ceil(size.max(1)).max(1),
        Shards::Count(count) => count,
    };
    let many = entry.shards.len() as u64 > wanted + wanted / 2;
    many || entry.shards.iter().any(|shard| !shard.companions.is_empty() || !shard.foreign.is_none())
}

fn write<P: Place>(
    dataset: &Dataset,
    splits: &[&Split],
    options: &CompactOptions,
    progress: &dyn Progress,
) -> Result<Compacted, Error> {
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, options.change.single_writer)?;
    place.create_folder(Path::new(names::INDEX_FOLDER))?;
    let mut reshard = ReshardOptions::default();
    (reshard.shards, reshard.seed) = (options.shards, None);
    (reshard.jobs, reshard.entry_points) = (options.jobs, options.entry_points);
    reshard.strip_metadata = options.strip_metadata;
    let manifest = with_keys(&dataset.manifest().without_versions());
    progress.total(splits.iter().map(|s| s.len()).sum(), splits.iter().map(|s| s.entry().bytes()).sum());
    let mut new: Vec<manifest::Split> = vec![];
    let mut compacted = Compacted { version: None, splits: vec![], bytes: 0 };
    for split in splits {
        let of = (dataset.checksum(), reshard.shards.describe(), options.strip_metadata);
        let name = shards_name(split.name(), of);
        let plan = Resharding::keeping_keys(&name, split, &reshard)?;
        let shards = plan.write(&manifest, &place, &reshard, progress)?;
        let (before, now) = (split.entry().shards.len() as u64, shards.len() as u64);
        compacted.splits.push((split.name().to_owned(), before, now));
        compacted.bytes += shards.iter().map(|shard| shard.bytes).sum::<u64>();
        new.push(manifest::Split { name: split.name().to_owned(), shards });
    }
    place.sync(Path::new(names::INDEX_FOLDER))?;
    place.sync(Path::new(""))?;
    let mut file = PartsFile::new(&place, Holds::Deleted);
    let mut all = dataset.manifest().views().to_vec();
    for view in &mut all {
        if let Some((split, new)) = splits.iter().zip(&new).find(|(split, _)| split.name() == view.split) {
            *view = views::moved(dataset, view, split, &new.shards, &mut file)?;
        }
    }
    file.finish()?;
    let basis = Basis { everything: true, ..Basis::default() };
    let first = new.iter().find_map(|split| split.shards.first()).map(|shard| shard.file.clone());
    let has = |manifest: &Manifest| {
        let files = manifest.splits.iter().flat_map(|split| &split.shards).map(|shard| &shard.file);
        first.as_ref().is_some_and(|first| files.into_iter().any(|file| file == first))
    };
    let made = commit(&place, dataset.manifest(), &basis, "compact", &options.change, &has, &mut |next| {
        for split in &mut next.splits {
            if let Some(new) = new.iter().find(|new| new.name == split.name) {
                split.shards.clone_from(&new.shards);
            }
        }
        views::set(next, &all);
        if let Some(versions) = &mut next.versions {
            versions.stored.clone_from(&manifest.features);
            if splits.len() == dataset.splits().len() {
                (versions.columns, versions.dropped) = (vec![], vec![]);
            }
        }
        Ok(())
    });
    if let Err(error) = &made {
        let shards = new.iter().flat_map(|split| &split.shards).flat_map(place::files_of_shard);
        discard(&place, error, &shards.chain([file.path()]).collect::<Vec<_>>());
    }
    compacted.version = Some(made?);
    Ok(compacted)
}

/// Returns the manifest of records that store their keys.
pub(super) fn with_keys(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    let named = [names::IMAGE_KEY, names::IMAGE_FILENAME].iter().any(|name| manifest.dtype(name).is_some());
    if !named && !manifest.is_opaque() {
        manifest.features.push(FeatureType { name: names::IMAGE_KEY.to_owned(), dtype: DType::Bytes });
        manifest.features.sort_by(|a, b| a.name.cmp(&b.name));
    }
    manifest
}
