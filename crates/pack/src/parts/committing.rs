//! Commits a pack in parts: checks every shard against the plan, joins the lists of rejected inputs, names the shards in the
//! manifest, and removes the plan.

use super::planned::Planned;
use crate::commit::Directory;
use crate::error::DestinationError;
use crate::pack::{Target, nothing_accepted};
use crate::place::{Place, StoreFolder};
use crate::progress::{Progress, Step, after};
use crate::split::files::{self, SplitFiles};
use crate::split::manifest_store;
use crate::split::plan_file::{PlanFile, Stage};
use crate::{Committed, Error, WriterError, commit_parts};
use shardtool_format::manifest::Split;
use shardtool_format::names;
use std::path::{Path, PathBuf};

/// Options of a commit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommitOptions {
    /// Folder or URL of the dataset.
    pub destination: PathBuf,
    /// The split.
    pub split: String,
    /// Whether nothing else writes to the destination, a store that does not compare versions of objects.
    pub single_writer: bool,
}

impl CommitOptions {
    /// Returns options for a split.
    pub fn new(destination: impl Into<PathBuf>, split: impl Into<String>) -> Self {
        CommitOptions { destination: destination.into(), split: split.into(), single_writer: false }
    }
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CommittedSplit {
    /// The split, as the manifest names it.
    pub split: Split,
    /// Number of rejected inputs.
    pub rejected: u64,
    /// The list of rejected inputs, if there are any.
    pub rejected_file: Option<PathBuf>,
    /// Number of named classes.
    pub classes: u64,
    /// Whether the split was complete before; then this commit wrote nothing.
    pub already_complete: bool,
}

/// Completes a split whose parts are packed, or written by writers. The dataset is then the one that a single pack would have written, byte for byte.
/// After a commit was killed, the next one continues it.
///
/// # Errors
/// [`DestinationError::ShardsMissing`] names the shards that no part has finished; [`DestinationError::NoParts`],
/// [`DestinationError::Locked`] while parts are being written, [`SourceError::NothingAccepted`](crate::SourceError), [`Error::Stopped`], [`Error::Io`].
pub fn commit_split(options: &CommitOptions, progress: &dyn Progress) -> Result<CommittedSplit, Error> {
    names::check_split_name(&options.split)?;
    match shardtool_store::local_path(&options.destination) {
        url if shardtool_store::is_url(&url) => commit_in::<StoreFolder>(options, progress),
        destination => {
            let options = CommitOptions { destination, ..options.clone() };
            match commit_in::<Directory>(&options, progress) {
                Err(Error::Destination(DestinationError::NoParts { .. })) => commit_written(&options, progress),
                committed => committed,
            }
        }
    }
}

/// Commits the parts of writers, if there are any.
fn commit_written(options: &CommitOptions, progress: &dyn Progress) -> Result<CommittedSplit, Error> {
    let CommitOptions { destination, split, .. } = options;
    match commit_parts(destination, split, false, progress) {
        // Writers reject no inputs.
        Ok(Committed { split, classes, already_complete, .. }) => {
            Ok(CommittedSplit { split, rejected: 0, rejected_file: None, classes, already_complete })
        }
        Err(Error::Writer(WriterError::NothingToCommit { .. })) => Err(Error::Destination(DestinationError::NoParts {
            destination: destination.clone(),
            split: split.clone(),
        })),
        Err(error) => Err(error),
    }
}

fn commit_in<P: Place>(options: &CommitOptions, progress: &dyn Progress) -> Result<CommittedSplit, Error> {
    let CommitOptions { destination, split, single_writer } = options;
    let none =
        || Error::Destination(DestinationError::NoParts { destination: destination.clone(), split: split.clone() });
    let there = SplitFiles::<P>::open(destination, split)?.ok_or_else(none)?;
    if let Some(done) = complete(&there)? {
        return Ok(done);
    }
    if there.place().read(&there.plan())?.is_none() {
        return Err(none());
    }
    let target = Target::<P>::own(destination, split, *single_writer)?;
    let files = target.files();
    let place = files.place();
    // Another commit may have completed the split before this one took the lock.
    let Some(plan) = place.read(&files.plan())?.map(|bytes| PlanFile::parse(&bytes)) else {
        return complete(files)?.ok_or_else(none);
    };
    if plan.stage() == Stage::Clearing {
        return Err(none());
    }
    let planned = Planned::read(files)?;
    if let Some(manifest) = place.manifest()?
        && let Some(entry) = manifest.split(split).cloned()
    {
        // A killed commit had named it, and may have kept its plan.
        let kept = place.read(&files.packed())?.is_some_and(|bytes| PlanFile::parse(&bytes).produced(&entry));
        if !kept && planned.is_none_or(|planned| planned.images.len() != entry.shards.len()) {
            let (destination, split) = (destination.clone(), split.clone());
            return Err(Error::Destination(DestinationError::SplitExists { destination, split }));
        }
        let rejected = rejected_of(files)?;
        finish(&target, plan, &entry, progress)?;
        return Ok(committed(files, entry, rejected, manifest.classes.len(), false));
    }
    let planned = planned.ok_or_else(none)?;
    let schema = planned.schema(files)?;
    let numbered: Vec<_> = planned.images.iter().copied().enumerate().collect();
    let finished = target.finished(&numbered, plan.sha256())?;
    let missing: Vec<_> = (0..finished.len()).filter(|shard| finished[*shard].is_none()).collect();
    if !missing.is_empty() {
        let (destination, split, shards) = (destination.clone(), split.clone(), numbered.len());
        return Err(Error::Destination(DestinationError::ShardsMissing { destination, split, shards, missing }));
    }
    let entry = Split { name: split.clone(), shards: finished.into_iter().flatten().collect() };
    let rejected = target.publish_rejected(planned.rejected.as_bytes(), numbered.len())?;
    if entry.records() == 0 && !plan.allows_empty() {
        place.remove_joined(&files.lock())?;
        return Err(nothing_accepted(destination, &target, rejected)?);
    }
    files.sync()?;
    after(progress, Step::Rejected)?;
    manifest_store::add_splits(place, &schema, std::slice::from_ref(&entry))?;
    after(progress, Step::Manifest)?;
    finish(&target, plan, &entry, progress)?;
    Ok(committed(files, entry, rejected, schema.classes.len(), false))
}

/// Removes what the parts left, and keeps the plan of the complete split.
fn finish<P: Place>(target: &Target<P>, plan: PlanFile, entry: &Split, progress: &dyn Progress) -> Result<(), Error> {
    target.files().place().remove_joined(&target.files().lock())?;
    target.keep_plan(plan, entry, progress)
}

/// Returns the split if an earlier commit, or a pack, completed it.
fn complete<P: Place>(files: &SplitFiles<P>) -> Result<Option<CommittedSplit>, Error> {
    if files.place().read(&files.plan())?.is_some() {
        return Ok(None);
    }
    let Some(kept) = files.place().read(&files.packed())?.map(|bytes| PlanFile::parse(&bytes)) else {
        return Ok(None);
    };
    let Some(manifest) = files.place().manifest()? else { return Ok(None) };
    let split = manifest.split(files.split()).filter(|split| kept.produced(split)).cloned();
    let rejected = rejected_of(files)?;
    Ok(split.map(|split| committed(files, split, rejected, manifest.classes.len(), true)))
}

fn rejected_of<P: Place>(files: &SplitFiles<P>) -> Result<u64, Error> {
    crate::rejects::count(files.place(), &files.rejected())
}

fn committed<P: Place>(
    files: &SplitFiles<P>,
    split: Split,
    rejected: u64,
    classes: usize,
    already_complete: bool,
) -> CommittedSplit {
    let rejected_file = (rejected > 0).then(|| files.path(Path::new(&files::rejected_file(&split.name))));
    CommittedSplit { split, rejected, rejected_file, classes: classes as u64, already_complete }
}
