//! Removes what killed processes left in a dataset.

use crate::Error;
use crate::commit::{Directory, final_name};
use crate::pack::Target;
use crate::place::{Place, StoreFolder};
use crate::split::attempt;
use crate::split::files::unfinished_among;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Cleaned {
    /// The files.
    pub removed: Vec<PathBuf>,
    /// Processes that are still writing parts, in an object store.
    pub running: usize,
    /// Splits whose pack is not finished. Their finished shards are kept.
    pub unfinished: Vec<String>,
}

/// Removes the files of killed attempts, and what late ones left of splits that are complete. Keeps finished shards and plans
/// of unfinished packs.
///
/// # Errors
/// [`DestinationError::Locked`](crate::DestinationError) while a process writes a split; [`Error::Io`].
pub fn clean(destination: &Path, single_writer: bool) -> Result<Cleaned, Error> {
    let destination = shardtool_store::local_path(destination);
    match shardtool_store::is_url(&destination) {
        true => clean_in::<StoreFolder>(&destination, single_writer),
        false => clean_in::<Directory>(&destination, single_writer),
    }
}

fn clean_in<P: Place>(destination: &Path, single_writer: bool) -> Result<Cleaned, Error> {
    let Some(place) = P::open(destination)? else {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::io("read", destination)(missing));
    };
    let before = files(&place)?;
    let unfinished = unfinished_among(before.iter().filter_map(|path| path.to_str()));
    let manifest = place.manifest()?;
    let named = manifest.iter().flat_map(|manifest| &manifest.splits).map(|split| split.name.clone());
    let file_names = before.iter().filter_map(|path| path.file_name()?.to_str());
    let attempts = file_names.filter_map(|name| attempt::of(final_name(name).unwrap_or(name)));
    let attempted = attempts.map(|attempt| attempt.split.to_owned());
    let splits: BTreeSet<_> = named.chain(unfinished.iter().cloned()).chain(attempted).collect();
    let mut running = 0;
    for split in &splits {
        // Which removes the files of killed processes.
        let target = Target::<P>::own(destination, split, single_writer)?;
        let (files, place) = (target.files(), target.files().place());
        let joined = place.remove_joined(&files.lock())?;
        if joined == 0 {
            attempt::remove_lost(place, &|of| of.split == *split)?;
        }
        running += joined;
        if !unfinished.contains(split) {
            let shards = manifest.as_ref().and_then(|manifest| manifest.split(split)).map_or(0, |s| s.shards.len());
            place.remove_all(&target.shard_rejects(shards)?)?;
            files.remove_planned()?;
        }
    }
    let after = files(&place)?;
    let removed = before.difference(&after).map(|name| destination.join(name)).collect();
    Ok(Cleaned { removed, running, unfinished })
}

/// Returns the files of a dataset.
fn files<P: Place>(place: &P) -> Result<BTreeSet<PathBuf>, Error> {
    let mut found = BTreeSet::new();
    for folder in ["", shardtool_format::names::INDEX_FOLDER] {
        let names: Vec<OsString> = place.names(Path::new(folder))?;
        found.extend(names.into_iter().map(|name| Path::new(folder).join(name)));
    }
    Ok(found)
}
