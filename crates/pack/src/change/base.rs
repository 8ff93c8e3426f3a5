//! The version that a change is based on: the newest one when the change began.

use crate::Error;
use crate::commit::Directory;
use crate::error::ShardError;
use crate::place::Place;
use shardtool_format::manifest::Manifest;
use shardtool_read::{Dataset, Options, Split, named_version};
use shardtool_store::local_path;
use std::path::{Path, PathBuf};

/// Opens the newest version of a dataset for a change. `sources` are as of [`super::ChangeOptions`].
///
/// # Errors
/// [`ShardError::OldVersion`] for a path that names a version; [`ShardError::BareFiles`]; those of opening.
pub(super) fn open(path: &Path, sources: &[String]) -> Result<Dataset, Error> {
    let path = local_path(path);
    if let (path, Some(version)) = named_version(&path)? {
        return Err(Error::Shard(ShardError::OldVersion { path, version }));
    }
    let dataset = Dataset::open_with(&path, Options::default().with_sources(sources.iter().cloned()))?;
    if dataset.splits().iter().any(Split::is_bare) {
        return Err(Error::Shard(ShardError::BareFiles { path }));
    }
    Ok(dataset)
}

/// Returns splits of a dataset: those of these names, or all.
///
/// # Errors
/// [`Error::Read`] for a name that the dataset does not have.
pub(super) fn splits<'d>(dataset: &'d Dataset, names: &[String]) -> Result<Vec<&'d Split>, Error> {
    if names.is_empty() {
        return Ok(dataset.splits().iter().collect());
    }
    let mut named: Vec<&Split> = vec![];
    for name in names {
        let split = dataset.split(name)?;
        if dataset.view(name).is_some() {
            return Err(Error::Shard(ShardError::OnlyView { path: folder(dataset), name: name.clone() }));
        }
        if !named.iter().any(|other| other.name() == split.name()) {
            named.push(split);
        }
    }
    Ok(named)
}

/// Returns where a dataset lies.
pub(super) fn folder(dataset: &Dataset) -> PathBuf {
    dataset.path().to_owned()
}

/// Opens the folder of a dataset on a disk.
///
/// # Errors
/// [`ShardError::NoDataset`], [`Error::Io`].
pub(super) fn directory(dataset: &Dataset) -> Result<Directory, Error> {
    Directory::open(dataset.path())?.ok_or_else(|| no_dataset(dataset.path()))
}

/// Returns the newest manifest.
///
/// # Errors
/// [`ShardError::NoDataset`], [`Error::Io`].
pub(super) fn manifest<P: Place>(place: &P) -> Result<Manifest, Error> {
    place.manifest()?.ok_or_else(|| no_dataset(place.path()))
}

pub(super) fn no_dataset(path: &Path) -> Error {
    Error::Shard(ShardError::NoDataset { path: path.to_owned() })
}
