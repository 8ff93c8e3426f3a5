//! Returns to the contents of an earlier version. The versions in between stay, and so do the tags.

use super::base;
use super::commit::{Basis, commit};
use super::{ChangeOptions, NewVersion};
use crate::Error;
use crate::commit::Directory;
use crate::copy::check_allowed;
use crate::error::ShardError;
use crate::place::{self, CHANGE_LOCK, Place, StoreFolder};
use shardtool_format::manifest::Manifest;
use shardtool_format::names;
use shardtool_read::{Dataset, manifest_of, parse_manifest};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Makes a new version with the contents of an earlier one. Returns the number of that one, and the new version: `None` if the newest
/// version has these contents, or nothing was to be written.
///
/// # Errors
/// [`Error::Read`] for a version that is not kept; [`ShardError::LostFiles`] if files of it are gone;
/// [`DestinationError::CameFirst`](crate::DestinationError) and those of writing.
pub fn rollback(dataset: &Path, version: &str, options: &ChangeOptions) -> Result<(u64, Option<NewVersion>), Error> {
    let dataset = base::open(dataset, &options.sources)?;
    let newest = parse_manifest(&dataset.path().join(names::MANIFEST))?;
    let (_, earlier) = manifest_of(dataset.path(), newest, version)?;
    let number = earlier.version_number();
    if contents(&earlier) == contents(dataset.manifest()) || options.dry_run {
        return Ok((number, None));
    }
    check_allowed(dataset.path(), [&earlier].into_iter(), &options.sources)?;
    let made = if shardtool_store::is_url(dataset.path()) {
        write::<StoreFolder>(&dataset, &earlier, options)?
    } else {
        write::<Directory>(&dataset, &earlier, options)?
    };
    Ok((number, Some(made)))
}

/// Returns a manifest without its place in the history.
fn contents(manifest: &Manifest) -> Manifest {
    let (stored, columns, dropped) = match &manifest.versions {
        Some(versions) => (versions.stored.clone(), versions.columns.clone(), versions.dropped.clone()),
        None => (manifest.features.clone(), vec![], vec![]),
    };
    let mut plain = manifest.clone().next_version(b"", "");
    if let Some(versions) = &mut plain.versions {
        (versions.number, versions.parent, versions.tags, versions.purged) = (0, 0, vec![], None);
        (versions.stored, versions.columns, versions.dropped) = (stored, columns, dropped);
    }
    Manifest { created_by: String::new(), ..plain }
}

fn write<P: Place>(dataset: &Dataset, earlier: &Manifest, options: &ChangeOptions) -> Result<NewVersion, Error> {
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, options.single_writer)?;
    check_files(&place, earlier)?;
    let basis = Basis { everything: true, ..Basis::default() };
    let wanted = contents(earlier);
    let command = format!("rollback {}", earlier.version_number());
    let is_made = |manifest: &Manifest| {
        contents(manifest) == wanted && manifest.versions.as_ref().is_some_and(|versions| versions.command == command)
    };
    commit(&place, dataset.manifest(), &basis, &command, options, &is_made, &mut |manifest| {
        let earlier = earlier.next_version(b"", "");
        if let (Some(next), Some(before)) = (&mut manifest.versions, earlier.versions) {
            (next.stored, next.columns, next.dropped) = (before.stored, before.columns, before.dropped);
            next.views = before.views;
        }
        (manifest.image, manifest.label, manifest.label_offset) = (earlier.image, earlier.label, earlier.label_offset);
        (manifest.classes, manifest.splits) = (earlier.classes, earlier.splits);
        manifest.keypoints = earlier.keypoints;
        Ok(())
    })
}

/// Checks that all files of a version are there.
fn check_files<P: Place>(place: &P, manifest: &Manifest) -> Result<(), Error> {
    let files: BTreeSet<PathBuf> = place::files_of(place.path(), manifest).collect();
    for file in files {
        if place.length(&file)?.is_none() {
            let (path, file) = (place.path().to_owned(), file.to_string_lossy().into_owned());
            return Err(Error::Shard(ShardError::LostFiles { path, file, version: manifest.version_number() }));
        }
    }
    Ok(())
}
