//! Which shards of unfinished packs are finished.

use super::planned::Planned;
use crate::Error;
use crate::commit::{Directory, final_name};
use crate::place::{Place, StoreFolder};
use crate::split::files::{SplitFiles, unfinished_among};
use shardtool_format::names;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

/// The state of a split whose pack is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitStatus {
    /// The split.
    pub split: String,
    /// The shards, if the pack is one in parts.
    pub shards: Option<Unfinished>,
}

/// The planned shards of a pack in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// How many are planned.
    pub planned: usize,
    /// Numbers of those that have a shard and an index. A commit checks them.
    pub done: Vec<usize>,
    /// Of the others, those of which an attempt has begun to write the file: it is running, or was killed. Known on file
    /// systems only.
    pub begun: Vec<usize>,
    /// The others.
    pub missing: Vec<usize>,
    /// Files of attempts that are running or were killed.
    pub attempts: usize,
}

/// Returns the splits of a dataset whose pack is not finished, in byte order. Takes no lock, writes nothing, and opens no
/// shard.
///
/// # Errors
/// [`DestinationError::PlannedShards`](crate::DestinationError), [`Error::Io`].
pub fn status(destination: &Path) -> Result<Vec<SplitStatus>, Error> {
    let destination = shardtool_store::local_path(destination);
    match shardtool_store::is_url(&destination) {
        true => status_of::<StoreFolder>(&destination),
        false => status_of::<Directory>(&destination),
    }
}

fn status_of<P: Place>(destination: &Path) -> Result<Vec<SplitStatus>, Error> {
    let Some(place) = P::open(destination)? else {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::io("read", destination)(missing));
    };
    let (shards, indexes) = (place.names(Path::new(""))?, place.names(Path::new(names::INDEX_FOLDER))?);
    let splits = unfinished_among(shards.iter().filter_map(|name| name.to_str()));
    splits.into_iter().map(|split| split_status(place.clone(), split, &shards, &indexes)).collect()
}

fn split_status<P: Place>(
    place: P,
    split: String,
    shards: &[OsString],
    indexes: &[OsString],
) -> Result<SplitStatus, Error> {
    let files = SplitFiles::new(place, &split);
    let Some(planned) = Planned::read(&files)? else { return Ok(SplitStatus { split, shards: None }) };
    let names = |names: &[OsString]| names.iter().filter_map(|name| name.to_str().map(str::to_owned)).collect();
    let (shards, indexes): (HashSet<String>, HashSet<String>) = (names(shards), names(indexes));
    let attempts: Vec<_> = shards.iter().chain(&indexes).filter_map(|name| final_name(name)).collect();
    let attempts: Vec<_> = attempts.into_iter().filter(|name| files.is_written_name(name)).collect();
    let begun: HashSet<&str> = attempts.iter().copied().collect();
    let mut found = Unfinished {
        planned: planned.images.len(),
        done: vec![],
        begun: vec![],
        missing: vec![],
        attempts: attempts.len(),
    };
    for number in 0..found.planned {
        let name = names::shard_file(&split, number);
        let index = files.index(number);
        let indexed = index.file_name().and_then(|name| name.to_str()).is_some_and(|name| indexes.contains(name));
        match (shards.contains(&name) && indexed, begun.contains(name.as_str())) {
            (true, _) => found.done.push(number),
            (false, true) => found.begun.push(number),
            (false, false) => found.missing.push(number),
        }
    }
    Ok(SplitStatus { split, shards: Some(found) })
}
