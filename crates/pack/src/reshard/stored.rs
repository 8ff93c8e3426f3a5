//! Resharding into a store. Objects cannot be moved, so shards get their names at once, and the dataset appears with its
//! manifest. Meanwhile the object [`PLAN`] says what is being written, so that an interrupted run is continued by one with
//! the same sources and options, and removed by any other one.

use super::{ReshardOptions, Resharding, resharded};
use crate::error::DestinationError;
use crate::place::{Place, StoreFolder};
use crate::progress::{Progress, Step, after};
use crate::split::files::SplitFiles;
use crate::{Error, Shards};
use serde_json::{Value, json};
use shardtool_format::checksum::crc32c;
use shardtool_format::manifest::Manifest;
use shardtool_format::names;
use shardtool_read::Split;
use std::path::Path;

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
    options: &ReshardOptions,
    progress: &dyn Progress,
) -> Result<Manifest, Error> {
    let (place, _lock) = StoreFolder::begin(destination, LOCK, options.single_writer)?;
    let plan = plan(sources, &manifest, options);
    let left = place.read(Path::new(PLAN))?;
    let there = place.manifest()?;
    match (&left, &there) {
        (None, _) => check_empty(&place)?,
        // Killed after the manifest was in place.
        (Some(left), Some(there)) => {
            place.remove(Path::new(PLAN))?;
            return if *left == plan { Ok(there.clone()) } else { Err(not_empty(&place)) };
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
    place.edit_manifest(&mut |there| match there {
        None => Ok(Some(manifest.clone())),
        // An edit whose answer was lost.
        Some(there) if there == manifest => Ok(None),
        Some(_) => Err(not_empty(&place)),
    })?;
    after(progress, Step::Manifest)?;
    place.remove(Path::new(PLAN))?;
    Ok(manifest)
}

/// Returns exactly what determines the written bytes, and the names of the splits.
fn plan(sources: &[Split], manifest: &Manifest, options: &ReshardOptions) -> Vec<u8> {
    let ReshardOptions { shards, seed, entry_points, sha256, jobs: _, single_writer: _ } = options;
    let shards = match shards {
        Shards::Size(bytes) => format!("of {bytes} bytes"),
        Shards::Count(count) => count.to_string(),
    };
    let source = |split: &Split| {
        json!({
            "split": split.name(), "records": split.len(), "bytes": split.entry().bytes(),
            "fingerprint": format!("{:08x}", split.entry().fingerprint()),
        })
    };
    let plan = json!({
        "format": "shardtool-reshard", "version": 1, "created_by": manifest.created_by, "shards": shards, "seed": seed,
        "entry_points": entry_points, "sha256": sha256,
        "manifest_crc32c": format!("{:08x}", crc32c(manifest.to_json().as_bytes())),
        "sources": sources.iter().map(source).collect::<Vec<_>>(),
    });
    let mut json = serde_json::to_vec_pretty(&plan).expect("strings and numbers");
    json.push(b'\n');
    json
}

/// Returns the names of the splits of an interrupted run.
fn splits_of(plan: &[u8]) -> Vec<String> {
    let plan: Value = serde_json::from_slice(plan).unwrap_or_default();
    let sources = plan["sources"].as_array().cloned().unwrap_or_default();
    let names = sources.iter().filter_map(|source| source["split"].as_str());
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
