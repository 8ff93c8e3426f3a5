//! Reads, compares and replaces the manifest; adds a split to it or removes one.

use crate::commit::{self, Lock};
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
const LOCK: &str = ".dataset.lock";

/// Returns the manifest of a folder; `None` if it has none.
///
/// # Errors
/// [`DestinationError::Manifest`], [`Error::Io`].
pub(crate) fn read(folder: &Path) -> Result<Option<Manifest>, Error> {
    let parse = |json: Vec<u8>| {
        let path = folder.join(names::MANIFEST);
        Manifest::parse(&json).map_err(|source| Error::Destination(DestinationError::Manifest { path, source }))
    };
    read_bytes(folder)?.map(parse).transpose()
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

/// Adds a split to the manifest. `schema` is the split's manifest without splits.
///
/// # Errors
/// [`DestinationError::SplitExists`], [`DestinationError::Incompatible`], and those of [`read`] and of writing.
pub(crate) fn add_split(folder: &Path, schema: &Manifest, split: Split) -> Result<(), Error> {
    let _lock = Lock::wait(folder.join(LOCK))?;
    let mut manifest = joined(folder, schema, &split.name, false)?;
    manifest.splits.push(split);
    manifest.splits.sort_by(|a, b| a.name.cmp(&b.name));
    write(folder, &manifest)
}

/// Removes a split, if it exists. Its files stay.
///
/// # Errors
/// Those of [`read`] and of writing.
pub(crate) fn remove_split(folder: &Path, split: &str) -> Result<(), Error> {
    let _lock = Lock::wait(folder.join(LOCK))?;
    if let Some(mut manifest) = read(folder)?
        && manifest.split(split).is_some()
    {
        manifest.splits.retain(|s| s.name != split);
        write(folder, &manifest)?;
    }
    Ok(())
}

/// Replaces the manifest.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn replace(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let _lock = Lock::wait(folder.join(LOCK))?;
    write(folder, manifest)
}

/// Replaces the manifest by what `edit` makes of its bytes. Returns whether the bytes changed.
///
/// # Errors
/// [`ShardError::NoDataset`] if there is none; those of `edit` and of writing.
pub(crate) fn rewrite(folder: &Path, edit: impl FnOnce(&[u8]) -> Result<Manifest, Error>) -> Result<bool, Error> {
    let none = || Error::Shard(ShardError::NoDataset { path: folder.to_owned() });
    if !folder.join(names::MANIFEST).exists() {
        return Err(none());
    }
    let _lock = Lock::wait(folder.join(LOCK))?;
    let before = read_bytes(folder)?.ok_or_else(none)?;
    let manifest = edit(&before)?;
    let changed = manifest.to_json().as_bytes() != before;
    if changed {
        write(folder, &manifest)?;
    }
    Ok(changed)
}

/// Checks that a split can join the dataset in a folder. With `replacing`, a split of the same name is ignored. Returns
/// the manifest without this split.
///
/// # Errors
/// As [`add_split`], without those of writing.
pub(crate) fn joined(folder: &Path, schema: &Manifest, split: &str, replacing: bool) -> Result<Manifest, Error> {
    let destination = || folder.to_owned();
    let mut there = read(folder)?.unwrap_or_else(|| schema.clone());
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

fn write(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    commit::publish(folder.join(names::MANIFEST), manifest.to_json().as_bytes())?;
    commit::sync_folder(folder)
}
