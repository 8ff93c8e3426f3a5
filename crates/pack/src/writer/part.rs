//! The folder of one part of a split, and its plan file.

use crate::commit::{self, Directory, Lock};
use crate::error::WriterError;
use crate::split::files::SplitFiles;
use crate::split::plan_file::PlanFile;
use crate::{Error, PlanDifference};
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::path::Path;

/// The plan file of a part.
pub(super) const PLAN: &str = "plan.json";

/// Returns the name of the folder of all parts of a split.
pub(super) fn staging(split: &SplitFiles) -> String {
    format!(".write-{}", split.split())
}

/// One part of a split.
pub(super) struct Part {
    /// The part's shards, in its folder.
    files: SplitFiles,
}

/// A part, and its state that an earlier writer left.
pub(super) struct Opened {
    pub(super) part: Part,
    /// Lines of its finished shards.
    pub(super) shards: Vec<Shard>,
    /// Whether it finished the part.
    pub(super) finished: bool,
    /// Held while the part is being written.
    pub(super) lock: Lock,
}

impl Part {
    pub(super) fn files(&self) -> &SplitFiles {
        &self.files
    }

    /// Locks a part, and finds what an earlier writer left or begins it. With `force`, removes what a writer with
    /// other options left: in this part, or in all parts if this one is `alone`.
    ///
    /// # Errors
    /// [`DestinationError::Locked`](crate::DestinationError), [`WriterError::OtherPlan`], [`Error::Io`].
    pub(super) fn open(
        split: &SplitFiles,
        (part, parts): (u32, u32),
        plan: &PlanFile,
        force: bool,
        alone: bool,
    ) -> Result<Opened, Error> {
        let staging = split.directory().create_folder(staging(split))?;
        let name = format!("part-{part:05}-of-{parts:05}");
        let lock = Lock::own(&staging, &format!(".{name}.lock"), &staging.path().join(&name))?;
        let left = staging.read(Path::new(&name).join(PLAN))?.map(|bytes| PlanFile::parse(&bytes));
        match left.as_ref().map(|left| (left, left.difference(plan))) {
            Some((left, None)) => {
                let part = Part { files: SplitFiles::new(staging.folder(&name)?, split.split()) };
                part.files.remove_abandoned()?;
                commit::remove_abandoned(part.files.directory(), "", |name| name == PLAN)?;
                return part.resume(left, lock);
            }
            Some((_, Some(difference))) if !force => {
                let plan = staging.path().join(&name).join(PLAN);
                return Err(Error::Writer(WriterError::OtherPlan { plan, difference }));
            }
            _ => {}
        }
        for folder in if alone { folders(&staging)? } else { vec![name.clone()] } {
            if alone && !force && folder != name {
                let path = Path::new(&folder).join(PLAN);
                let theirs = staging.read(&path)?.map(|bytes| PlanFile::parse(&bytes));
                let parts =
                    |plan: &PlanFile| plan.member::<u32>("parts").map_or("nothing".to_owned(), |n| n.to_string());
                let before = theirs.as_ref().map_or("nothing".to_owned(), parts);
                let difference = Box::new(PlanDifference { member: "parts".to_owned(), before, now: parts(plan) });
                return Err(Error::Writer(WriterError::OtherPlan { plan: staging.path().join(path), difference }));
            }
            staging.remove_tree(folder)?;
        }
        staging.create_folder(Path::new(&name).join(names::INDEX_FOLDER))?;
        let directory = staging.folder(&name)?;
        commit::publish(&directory, Path::new(PLAN), &plan.to_json())?;
        directory.sync()?;
        let part = Part { files: SplitFiles::new(directory, split.split()) };
        Ok(Opened { part, shards: vec![], finished: false, lock })
    }

    fn resume(self, left: &PlanFile, lock: Lock) -> Result<Opened, Error> {
        let finished = left.shard_lines();
        if let Some(lines) = finished {
            return Ok(Opened { part: self, shards: lines, finished: true, lock });
        }
        let mut shards = vec![];
        while let Some(line) = self.files.finished(shards.len(), left.sha256())? {
            shards.push(line);
        }
        Ok(Opened { part: self, shards, finished: false, lock })
    }

    /// Makes the part's shards durable, and marks the part as finished in its plan file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn finish(&self, plan: PlanFile, shards: &[Shard]) -> Result<(), Error> {
        self.files.sync()?;
        let directory = self.files.directory();
        commit::publish(directory, Path::new(PLAN), &plan.finished(shards).to_json())?;
        directory.sync()
    }
}

/// Returns the names of the folders of parts, in byte order.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn folders(staging: &Directory) -> Result<Vec<String>, Error> {
    let parts = staging.entries()?.into_iter().filter(|entry| entry.is_folder);
    Ok(parts.filter_map(|entry| entry.name.into_string().ok()).filter(|name| name.starts_with("part-")).collect())
}

/// Returns the number of shards of the finished parts before one, which is the number of its first shard in the split.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn shards_before(split: &SplitFiles, part: u32) -> Result<usize, Error> {
    let staging = split.directory().folder(staging(split))?;
    let mut shards = 0;
    for folder in folders(&staging)? {
        let plan = staging.read(Path::new(&folder).join(PLAN))?.map(|bytes| PlanFile::parse(&bytes));
        if let Some(plan) = plan.filter(|plan| plan.member::<u32>("part").is_some_and(|other| other < part)) {
            shards += plan.shard_lines().map_or(0, |lines| lines.len());
        }
    }
    Ok(shards)
}
