//! Reads, compares and replaces the manifest; adds a split to it or removes one.

use crate::commit::{Directory, Lock};
use crate::error::{DestinationError, Difference, ShardError, joined_keypoints};
use crate::place::{self, Place};
use crate::sample::SampleSchema;
use crate::{Error, purged_keys, sample};
use shardtool_format::manifest::{FeatureType, Keypoints, Manifest, Split};
use shardtool_format::names;
use std::path::Path;

/// The program that writes the manifest.
pub(crate) const CREATED_BY: &str = concat!("shardtool ", env!("CARGO_PKG_VERSION"));

/// Returns the manifest of a folder; `None` if it has none.
///
/// # Errors
/// [`DestinationError::Manifest`], [`Error::Io`].
pub(crate) fn read<P: Place>(place: &P) -> Result<Option<Manifest>, Error> {
    place.manifest()
}

/// Returns a manifest without splits, for samples with this schema.
pub(crate) fn of_schema(schema: &SampleSchema) -> Manifest {
    Manifest {
        image: schema.images.then(|| names::IMAGE_ENCODED.to_owned()),
        label: schema.labelled.then(|| names::CLASS_LABEL.to_owned()),
        features: sample::features(schema),
        classes: schema.classes.clone(),
        keypoints: schema.keypoints.known.clone(),
        ..Manifest::new(CREATED_BY)
    }
}

/// Returns the manifest without splits of records that are appended to a dataset: its features, of which the records may lack some, and
/// its classes, if these are the first ones of the schema.
///
/// # Errors
/// [`DestinationError::Incompatible`]: a feature that the newest version does not have with this type, other images, labels or classes.
pub(crate) fn grown(folder: &Path, schema: Manifest, dataset: &Manifest, split: &str) -> Result<Manifest, Error> {
    let refused = |difference| {
        let (destination, split) = (folder.to_owned(), split.to_owned());
        Error::Destination(DestinationError::Incompatible { destination, split, difference })
    };
    let unknown = schema.features.iter().filter(|feature| !dataset.features.contains(feature));
    let (other_type, new): (Vec<_>, Vec<_>) =
        unknown.cloned().partition(|feature| dataset.dtype(&feature.name).is_some());
    if let Some(FeatureType { name, dtype: here }) = other_type.into_iter().next() {
        let there = dataset.dtype(&name).unwrap_or(here);
        return Err(refused(Difference::OtherType { name, there, here }));
    }
    if !new.is_empty() {
        return Err(refused(Difference::NewFeatures(new)));
    }
    let without_points = schema.dtype(Keypoints::FEATURE).is_none();
    let mut schema = Manifest { features: dataset.stored_features().to_vec(), ..schema };
    if without_points {
        schema.keypoints.clone_from(&dataset.keypoints);
    }
    if schema.classes.starts_with(&dataset.classes) {
        schema.classes.truncate(dataset.classes.len());
    }
    Difference::between(dataset, &schema).map_or(Ok(schema), |difference| Err(refused(difference)))
}

/// Adds splits to the manifest, all at once. `schema` is their manifest without splits.
///
/// # Errors
/// [`DestinationError::SplitExists`], [`DestinationError::Incompatible`], [`ShardError::PurgedKeys`], and those of [`read`] and of writing.
pub(crate) fn add_splits<P: Place>(place: &P, schema: &Manifest, splits: &[Split]) -> Result<(), Error> {
    place.edit_manifest("pack", &mut |there| {
        // An edit whose answer was lost has added them already.
        if there.as_ref().is_some_and(|there| splits.iter().all(|split| there.split(&split.name) == Some(split))) {
            return Ok(None);
        }
        if let Some(there) = &there {
            purged_keys::refuse(place, there, splits)?;
        }
        let mut manifest = None;
        for split in splits {
            manifest = Some(join(place.path(), there.clone(), schema, &split.name, false)?);
        }
        Ok(manifest.map(|mut manifest| {
            manifest.splits.extend_from_slice(splits);
            manifest.splits.sort_by(|a, b| a.name.cmp(&b.name));
            manifest
        }))
    })
}

/// Removes a split, if it exists. Its files stay.
///
/// # Errors
/// Those of [`read`] and of writing.
pub(crate) fn remove_split<P: Place>(place: &P, split: &str) -> Result<(), Error> {
    place.edit_manifest("pack --force", &mut |there| {
        there
            .as_ref()
            .filter(|there| there.split(split).is_some())
            .map_or(Ok(()), |there| refuse_versions(place.path(), there, "replacing a split"))?;
        Ok(there.filter(|manifest| manifest.split(split).is_some()).map(|mut manifest| {
            manifest.splits.retain(|s| s.name != split);
            manifest
        }))
    })
}

/// Refuses a command that would change or remove files which earlier versions of a dataset name.
///
/// # Errors
/// [`DestinationError::HasVersions`].
pub(crate) fn refuse_versions(folder: &Path, manifest: &Manifest, what: &'static str) -> Result<(), Error> {
    match &manifest.versions {
        None => Ok(()),
        Some(versions) => {
            let (destination, versions) = (folder.to_owned(), versions.number);
            Err(Error::Destination(DestinationError::HasVersions { destination, what, versions }))
        }
    }
}

/// Replaces the manifest.
///
/// # Errors
/// [`DestinationError::Link`], [`Error::Io`].
pub(crate) fn replace(directory: &Directory, manifest: &Manifest) -> Result<(), Error> {
    place::replace_manifest(directory, manifest)
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
    let before = place::read_manifest(folder)?.ok_or_else(none)?;
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
pub(crate) fn joined<P: Place>(place: &P, schema: &Manifest, split: &str, replacing: bool) -> Result<Manifest, Error> {
    join(place.path(), read(place)?, schema, split, replacing)
}

/// As [`joined`], of a manifest that was read.
fn join(
    folder: &Path,
    there: Option<Manifest>,
    schema: &Manifest,
    split: &str,
    replacing: bool,
) -> Result<Manifest, Error> {
    let (destination, split) = (folder.to_owned(), split.to_owned());
    let mut there = there.unwrap_or_else(|| schema.clone());
    let is_view = there.views().iter().any(|view| view.name == split);
    if (there.split(&split).is_some() && !replacing) || is_view {
        return Err(Error::Destination(DestinationError::SplitExists { destination, split }));
    }
    there.splits.retain(|s| s.name != split);
    if there.splits.is_empty() {
        // A dataset whose only split is replaced may change its classes.
        return Ok(Manifest { private: there.private, ..schema.clone() });
    }
    match Difference::between(&there, schema) {
        Some(difference) => Err(Error::Destination(DestinationError::Incompatible { destination, split, difference })),
        None => {
            // What one side does not say, the other one may.
            there.keypoints = joined_keypoints(&there, schema).flatten();
            Ok(there)
        }
    }
}
