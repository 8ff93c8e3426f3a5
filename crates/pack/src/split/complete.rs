//! Checks whether a split is complete: the manifest names it, and its plan file matches the current plan.

use crate::Error;
use crate::error::DestinationError;
use crate::split::files::SplitFiles;
use crate::split::manifest_store;
use crate::split::plan_file::PlanFile;
use shardtool_format::manifest::Split;
use shardtool_format::names;
use std::path::Path;

/// Returns the split if the plan is complete already.
///
/// # Errors
/// [`DestinationError`](crate::DestinationError); [`Error::Io`], also if a shard is missing.
pub(crate) fn complete(files: &SplitFiles, now: &PlanFile) -> Result<Option<Split>, Error> {
    // An unfinished pack may be replacing the split.
    if files.directory().read(files.plan())?.is_some() {
        return Ok(None);
    }
    let Some(kept) = files.directory().read(files.packed())? else { return Ok(None) };
    let Some(there) =
        manifest_store::read(files.directory())?.and_then(|manifest| manifest.split(files.split()).cloned())
    else {
        return Ok(None);
    };
    let kept = PlanFile::parse(&kept);
    let (destination, split) = (files.folder().to_owned(), files.split().to_owned());
    if let Some(difference) = kept.difference(now) {
        return Err(Error::Destination(DestinationError::PackedOtherwise { destination, split, difference }));
    }
    if !kept.produced(&there) {
        return Err(Error::Destination(DestinationError::ChangedSince { destination, split }));
    }
    for shard in &there.shards {
        let shard = Path::new(&shard.file);
        for path in [files.path(shard), files.path(&names::index_path(shard))] {
            if let Err(error) = std::fs::metadata(&path) {
                return Err(Error::io("read", &path)(error));
            }
        }
    }
    Ok(Some(there))
}
