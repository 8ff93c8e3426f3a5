//! The folder of one part of a split, and its plan file.

use crate::commit::{self, Lock};
use crate::error::WriterError;
use crate::split::files::SplitFiles;
use crate::split::plan_file::PlanFile;
use crate::{Error, PlanDifference};
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::path::{Path, PathBuf};

/// The plan file of a part.
pub(super) const PLAN: &str = "plan.json";

/// Returns the folder of all parts of a split.
pub(super) fn staging(split: &SplitFiles) -> PathBuf {
    split.folder().join(format!(".write-{}", split.split()))
}

/// One part of a split.
pub(super) struct Part {
    staging: PathBuf,
    folder: PathBuf,
    /// The part's shards.
    files: SplitFiles,
}

/// The part's state that an earlier writer left.
pub(super) struct Opened {
    /// Lines of its finished shards.
    pub(super) shards: Vec<Shard>,
    /// Whether it finished the part.
    pub(super) finished: bool,
    /// Held while the part is being written.
    pub(super) lock: Lock,
}

impl Part {
    pub(super) fn new(split: SplitFiles, (part, parts): (u32, u32)) -> Self {
        let staging = staging(&split);
        let folder = staging.join(format!("part-{part:05}-of-{parts:05}"));
        let files = SplitFiles::new(&folder, split.split());
        Part { staging, folder, files }
    }

    pub(super) fn files(&self) -> &SplitFiles {
        &self.files
    }

    /// Locks the part, and finds what an earlier writer left or begins it. With `force`, removes what a writer with
    /// other options left: in this part, or in all parts if this one is `alone`.
    ///
    /// # Errors
    /// [`DestinationError::Locked`](crate::DestinationError), [`WriterError::OtherPlan`], [`Error::Io`].
    pub(super) fn open(&self, plan: &PlanFile, force: bool, alone: bool) -> Result<Opened, Error> {
        commit::create_folder(&self.staging)?;
        let name = self.folder.file_name().expect("the folder of a part").to_string_lossy();
        let lock = Lock::try_new(self.staging.join(format!(".{name}.lock")), &self.folder)?;
        let path = self.folder.join(PLAN);
        let left = commit::read(&path)?.map(|bytes| PlanFile::parse(&bytes));
        match left.as_ref().map(|left| (left, left.difference(plan))) {
            Some((left, None)) => return self.resume(left, lock),
            Some((_, Some(difference))) if !force => {
                return Err(Error::Writer(WriterError::OtherPlan { plan: path, difference }));
            }
            _ => {}
        }
        for folder in if alone { folders(&self.staging)? } else { vec![self.folder.clone()] } {
            if alone && !force && folder != self.folder {
                let theirs = commit::read(&folder.join(PLAN))?.map(|bytes| PlanFile::parse(&bytes));
                let parts =
                    |plan: &PlanFile| plan.member::<u32>("parts").map_or("nothing".to_owned(), |n| n.to_string());
                let before = theirs.as_ref().map_or("nothing".to_owned(), parts);
                let difference = Box::new(PlanDifference { member: "parts".to_owned(), before, now: parts(plan) });
                return Err(Error::Writer(WriterError::OtherPlan { plan: folder.join(PLAN), difference }));
            }
            if folder.exists() {
                std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
            }
        }
        commit::create_folder(&self.folder.join(names::INDEX_FOLDER))?;
        commit::publish(path, &plan.to_json())?;
        commit::sync_folder(&self.folder)?;
        Ok(Opened { shards: vec![], finished: false, lock })
    }

    fn resume(&self, left: &PlanFile, lock: Lock) -> Result<Opened, Error> {
        let finished = left.shard_lines();
        if let Some(lines) = finished {
            return Ok(Opened { shards: lines, finished: true, lock });
        }
        let mut shards = vec![];
        while let Some(line) = self.files.finished(shards.len(), left.sha256())? {
            shards.push(line);
        }
        Ok(Opened { shards, finished: false, lock })
    }

    /// Makes the part's shards durable, and marks the part as finished in its plan file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn finish(&self, plan: PlanFile, shards: &[Shard]) -> Result<(), Error> {
        self.files.sync()?;
        commit::publish(self.folder.join(PLAN), &plan.finished(shards).to_json())?;
        commit::sync_folder(&self.folder)
    }
}

/// Returns the folders of parts, in byte order of their names.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn folders(staging: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = vec![];
    for entry in std::fs::read_dir(staging).map_err(Error::io("list", staging))? {
        let path = entry.map_err(Error::io("list", staging))?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"part-")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
