//! Checks whether a split is complete: the manifest names it, and its plan file matches the current plan.

use crate::Error;
use crate::error::DestinationError;
use crate::place::Place;
use crate::split::files::SplitFiles;
use crate::split::plan_file::PlanFile;
use rustix::io::Errno;
use shardtool_format::manifest::Split;
use shardtool_format::names;
use std::path::Path;

/// Returns the split if the plan is complete already. `same_content` says whether a source of other names or times makes the
/// shards of a split.
///
/// # Errors
/// [`DestinationError`](crate::DestinationError); [`Error::Io`], also if a shard is missing.
pub(crate) fn complete<P: Place>(
    files: &SplitFiles<P>,
    now: &PlanFile,
    same_content: &dyn Fn(&Split) -> Result<bool, Error>,
) -> Result<Option<Split>, Error> {
    // An unfinished pack may be replacing the split.
    if files.place().read(&files.plan())?.is_some() {
        return Ok(None);
    }
    let Some(kept) = files.place().read(&files.packed())? else { return Ok(None) };
    let manifest = files.place().manifest()?;
    let Some(there) = manifest.and_then(|manifest| manifest.split(files.split()).cloned()) else { return Ok(None) };
    let kept = PlanFile::parse(&kept);
    let (destination, split) = (files.folder().to_owned(), files.split().to_owned());
    let moved = kept.differs_in_listing(now) && kept.produced(&there) && same_content(&there)?;
    if let Some(difference) = kept.difference(now).filter(|_| !moved) {
        return Err(Error::Destination(DestinationError::PackedOtherwise { destination, split, difference }));
    }
    if !kept.produced(&there) || there.shards.iter().any(|line| line.foreign.dataset().is_some()) {
        return Err(Error::Destination(DestinationError::ChangedSince { destination, split }));
    }
    let names_in = |folder: &str| files.place().names_at_once(Path::new(folder));
    let (shards, indexes) = (names_in("")?, names_in(names::INDEX_FOLDER)?);
    for line in &there.shards {
        let shard = Path::new(&line.file);
        let file = (!line.foreign.is_virtual).then(|| (shard.to_owned(), &shards));
        for (path, names) in file.into_iter().chain([(names::index_path(shard), &indexes)]) {
            let exists = match names {
                Some(names) => path.file_name().is_some_and(|name| names.contains(name)),
                None => files.place().length(&path)?.is_some(),
            };
            if !exists {
                return Err(Error::io("read", &files.path(&path))(Errno::NOENT.into()));
            }
        }
    }
    if moved {
        // So that the next run need not compare again. The dataset may be read-only.
        let _ = files.place().publish(&files.packed(), &kept.with_listing_of(now).to_json());
    }
    Ok(Some(there))
}
