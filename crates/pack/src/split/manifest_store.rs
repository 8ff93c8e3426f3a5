//! Reads, compares and replaces the manifest; adds a split to it or removes one.

use crate::commit::{self, Directory, Lock};
use crate::error::{DestinationError, Difference, ShardError};
use crate::sample::SampleSchema;
use crate::{Error, sample};
use shardtool_format::manifest::{Manifest, Split};
use shardtool_format::names;
use std::io::ErrorKind;
use std::path::Path;

/// The program that writes the manifest.
pub(crate) const CREATED_BY: &str = concat!("shardtool ", env!("CARGO_PKG_VERSION"));
/// The lock file while the manifest is read and replaced.
const LOCK: &str = ".manifest.lock";

/// Returns the manifest of a folder; `None` if it has none.
///
/// # Errors
/// [`DestinationError::Manifest`], [`Error::Io`].
pub(crate) fn read(directory: &Directory) -> Result<Option<Manifest>, Error> {
    let parse = |json: Vec<u8>| {
        let path = directory.path().join(names::MANIFEST);
        Manifest::parse(&json).map_err(|source| Error::Destination(DestinationError::Manifest { path, source }))
    };
    read_bytes(directory.path())?.map(parse).transpose()
}

/// Returns the bytes of a folder's manifest; `None` if it has none.
///
/// # Errors
/// As [`read`], of the file's length alone.
fn read_bytes(folder: &Path) -> Result<Option<Vec<u8>>, Error> {
    match shardtool_read::read_manifest(&folder.join(names::MANIFEST)) {
        Ok(json) => Ok(Some(json)),
        Err(shardtool_read::Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(shardtool_read::Error::Io { path, source, .. }) => Err(Error::io("read", &path)(source)),
        Err(shardtool_read::Error::Manifest { path, source }) => {
            Err(Error::Destination(DestinationError::Manifest { path, source }))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns a manifest without splits, for samples with this schema.
pub(crate) fn of_schema(schema: &SampleSchema) -> Manifest {
    Manifest {
        image: schema.images.then(|| names::IMAGE_ENCODED.to_owned()),
        label: schema.labelled.then(|| names::CLASS_LABEL.to_owned()),
        features: sample::features(schema),
        classes: schema.classes.clone(),
        ..Manifest::new(CREATED_BY)
    }
}

/// Adds splits to the manifest, all at once. `schema` is their manifest without splits.
///
/// # Errors
/// [`DestinationError::SplitExists`], [`DestinationError::Incompatible`], and those of [`read`] and of writing.
pub(crate) fn add_splits(directory: &Directory, schema: &Manifest, splits: &[Split]) -> Result<(), Error> {
    let _lock = Lock::wait(directory, LOCK)?;
    let mut manifest = None;
    for split in splits {
        manifest = Some(joined(directory, schema, &split.name, false)?);
    }
    let Some(mut manifest) = manifest else { return Ok(()) };
    manifest.splits.extend_from_slice(splits);
    manifest.splits.sort_by(|a, b| a.name.cmp(&b.name));
    write(directory, &manifest)
}

/// Removes a split, if it exists. Its files stay.
///
/// # Errors
/// Those of [`read`] and of writing.
pub(crate) fn remove_split(directory: &Directory, split: &str) -> Result<(), Error> {
    let _lock = Lock::wait(directory, LOCK)?;
    if let Some(mut manifest) = read(directory)?
        && manifest.split(split).is_some()
    {
        manifest.splits.retain(|s| s.name != split);
        write(directory, &manifest)?;
    }
    Ok(())
}

/// Replaces the manifest.
///
/// # Errors
/// [`DestinationError::Link`], [`Error::Io`].
pub(crate) fn replace(directory: &Directory, manifest: &Manifest) -> Result<(), Error> {
    let _lock = Lock::wait(directory, LOCK)?;
    write(directory, manifest)
}

/// Calls `edit` with the bytes of the manifest and replaces them by its result. Returns whether the bytes changed.
///
/// # Errors
/// [`ShardError::NoDataset`] without a manifest; [`DestinationError::Locked`]; those of `edit` and of writing.
pub(crate) fn rewrite(folder: &Path, edit: impl FnOnce(&[u8]) -> Result<Manifest, Error>) -> Result<bool, Error> {
    let none = || Error::Shard(ShardError::NoDataset { path: folder.to_owned() });
    let directory = Directory::open(folder)?.ok_or_else(none)?;
    if !directory.exists(names::MANIFEST)? {
        return Err(none());
    }
    let _dataset = Lock::own_dataset(&directory)?;
    let before = read_bytes(folder)?.ok_or_else(none)?;
    let manifest = edit(&before)?;
    let changed = manifest.to_json().as_bytes() != before;
    if changed {
        replace(&directory, &manifest)?;
    }
    Ok(changed)
}

/// Checks that a split can join the dataset in a folder. With `replacing`, a split of the same name is ignored. Returns
/// the manifest without this split.
///
/// # Errors
/// As [`add_splits`], without those of writing.
pub(crate) fn joined(
    directory: &Directory,
    schema: &Manifest,
    split: &str,
    replacing: bool,
) -> Result<Manifest, Error> {
    let destination = || directory.path().to_owned();
    let mut there = read(directory)?.unwrap_or_else(|| schema.clone());
    if there.split(split).is_some() && !replacing {
        return Err(Error::Destination(DestinationError::SplitExists {
            destination: destination(),
            split: split.to_owned(),
        }));
    }
    there.splits.retain(|s| s.name != split);
    if there.splits.is_empty() {
        // A dataset whose only split is replaced may change its classes.
        return Ok(Manifest { private: there.private, ..schema.clone() });
    }
    match Difference::between(&there, schema) {
        Some(difference) => Err(Error::Destination(DestinationError::Incompatible {
            destination: destination(),
            split: split.to_owned(),
            difference,
        })),
        None => Ok(there),
    }
}

/// Writes the manifest under its lock.
fn write(directory: &Directory, manifest: &Manifest) -> Result<(), Error> {
    commit::remove_abandoned(directory, "", |name| name == names::MANIFEST)?;
    commit::publish(directory, Path::new(names::MANIFEST), manifest.to_json().as_bytes())?;
    directory.sync()
}
