//! Resharding into a store. Objects cannot be moved, so shards get their names at once, and the dataset appears with its
//! manifest. Meanwhile the object [`PLAN`] says what is being written, so that an interrupted run is continued by one with
//! the same sources and options, and removed by any other one. Afterwards the [record](RECORD) says what was written.

use super::{ReshardOptions, Resharding, resharded};
use crate::Error;
use crate::commit::{Listing, RECORD, Record, Request};
use crate::error::DestinationError;
use crate::place::{Place, StoreFolder};
use crate::progress::{Progress, Step, after};
use crate::split::files::SplitFiles;
use serde_json::Value;
use shardtool_format::manifest::Manifest;
use shardtool_format::names;
use shardtool_read::Split;
use std::path::{Path, PathBuf};

const PLAN: &str = ".reshard.json";
const LOCK: &str = ".reshard.lock";

/// Writes splits into a folder of a store. `manifest` has no splits yet.
///
/// # Errors
/// As [`super::reshard`].
pub(super) fn reshard(
    sources: &[Split],
    destination: &Path,
    manifest: Manifest,
    request: &Request,
    options: &ReshardOptions,
    progress: &dyn Progress,
) -> Result<Manifest, Error> {
    let (place, _lock) = StoreFolder::begin(destination, LOCK, options.single_writer)?;
    let plan = request.to_json();
    let left = place.read(Path::new(PLAN))?;
    let there = place.manifest()?;
    match (&left, there) {
        (None, Some(there)) if is_complete(&place, request, &there)? => return Ok(there),
        (None, _) => check_empty(&place)?,
        // Killed after the manifest was in place.
        (Some(left), Some(there)) => {
            if *left != plan {
                place.remove(Path::new(PLAN))?;
                return Err(not_empty(&place));
            }
            finish(&place, request, &there, progress)?;
            return Ok(there);
        }
        (Some(left), None) if *left != plan => {
            for split in splits_of(left) {
                place.remove_all(&SplitFiles::new(place.clone(), &split).written_files()?)?;
            }
            check_empty(&place)?;
        }
        (Some(_), None) => {}
    }
    if left.is_none_or(|left| left != plan) {
        place.publish(Path::new(PLAN), &plan)?;
        after(progress, Step::Plan)?;
    }
    let manifest = resharded(sources, manifest, &place, options, progress)?;
    place.edit_manifest("reshard", &mut |there| match there {
        None => Ok(Some(manifest.clone())),
        // An edit whose answer was lost.
        Some(there) if there == manifest => Ok(None),
        Some(_) => Err(not_empty(&place)),
    })?;
    after(progress, Step::Manifest)?;
    finish(&place, request, &manifest, progress)?;
    Ok(manifest)
}

/// Replaces the plan by the record of the complete dataset.
fn finish(place: &StoreFolder, request: &Request, manifest: &Manifest, progress: &dyn Progress) -> Result<(), Error> {
    place.publish(Path::new(RECORD), &Record::new(request, &listing(manifest), ()).to_json())?;
    after(progress, Step::Kept)?;
    place.remove(Path::new(PLAN))?;
    after(progress, Step::Finished)
}

/// Returns whether the dataset is still what this request wrote.
///
/// # Errors
/// [`DestinationError::FilledOtherwise`] if another request wrote it; [`Error::Io`].
fn is_complete(place: &StoreFolder, request: &Request, there: &Manifest) -> Result<bool, Error> {
    let Some(found) = place.read(Path::new(RECORD))?.map(|json| Record::parse(&json)) else { return Ok(false) };
    if !found.describes(request, &listing(there)) {
        return Ok(false);
    }
    if let Some(difference) = found.difference(request) {
        let destination = place.path().to_owned();
        return Err(Error::Destination(DestinationError::FilledOtherwise { destination, difference }));
    }
    let mut expected: Vec<_> = files(there).into_iter().map(|(path, _)| path).collect();
    let ours = |path: &Path| [RECORD, PLAN, LOCK].iter().any(|name| path == Path::new(name));
    let mut found = vec![];
    for folder in ["", names::INDEX_FOLDER] {
        let paths = place.names(Path::new(folder))?.into_iter().map(|name| Path::new(folder).join(name));
        // Some stores list folders too.
        found.extend(paths.filter(|path| !ours(path) && path != Path::new(names::INDEX_FOLDER)));
    }
    found.sort();
    expected.sort();
    Ok(found == expected)
}

/// Returns the files of a dataset with their lengths.
fn files(manifest: &Manifest) -> Vec<(PathBuf, u64)> {
    let mut files = vec![(PathBuf::from(names::MANIFEST), manifest.to_json().len() as u64)];
    for shard in manifest.splits.iter().flat_map(|split| &split.shards) {
        files.push((names::index_path(Path::new(&shard.file)), shard.index_bytes));
        files.push((PathBuf::from(&shard.file), shard.bytes));
    }
    files
}

/// Returns the listing of a dataset by its manifest: the same as of a folder.
fn listing(manifest: &Manifest) -> Listing {
    let (mut files, mut listing) = (files(manifest), Listing::new());
    files.sort();
    files.iter().for_each(|(path, length)| listing.add(path, *length));
    listing.add_manifest(manifest.to_json().as_bytes());
    listing
}

/// Returns the names of the splits of an interrupted run.
fn splits_of(plan: &[u8]) -> Vec<String> {
    let plan: Value = serde_json::from_slice(plan).unwrap_or_default();
    let splits = plan["splits"].as_array().cloned().unwrap_or_default();
    let names = splits.iter().filter_map(Value::as_str);
    names.filter(|name| names::check_split_name(name).is_ok()).map(str::to_owned).collect()
}

fn check_empty(place: &StoreFolder) -> Result<(), Error> {
    let ours = |name: &std::ffi::OsStr| name == PLAN || name == LOCK;
    let other = place.names(Path::new(""))?.iter().any(|name| !ours(name));
    match other || !place.names(Path::new(names::INDEX_FOLDER))?.is_empty() {
        true => Err(not_empty(place)),
        false => Ok(()),
    }
}

fn not_empty(place: &StoreFolder) -> Error {
    Error::Destination(DestinationError::NotEmpty { path: place.path().to_owned() })
}

impl Resharding<'_> {
    /// Returns the shards that an interrupted run has finished, by their numbers.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn finished<P: Place>(
        &self,
        place: &P,
        options: &ReshardOptions,
    ) -> Result<Vec<Option<shardtool_format::manifest::Shard>>, Error> {
        let files = SplitFiles::new(place.clone(), self.name);
        let Some(names) = place.names_at_once(Path::new(names::INDEX_FOLDER))? else {
            return Ok(vec![None; self.ends.len()]);
        };
        let one = |number: usize| match files.index(number).file_name().is_some_and(|name| names.contains(name)) {
            true => files.finished(number, options.sha256),
            false => Ok(None),
        };
        let mut shards = vec![];
        crate::ordered::ordered(P::AT_ONCE, self.ends.len(), 2 * P::AT_ONCE.get(), one, |_, line| {
            shards.push(line?);
            Ok::<(), Error>(())
        })?;
        Ok(shards)
    }
}
