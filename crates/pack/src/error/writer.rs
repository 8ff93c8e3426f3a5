//! What a writer refuses.

use super::{PlanDifference, SampleProblem};
use std::path::PathBuf;

/// Why a writer cannot write a sample, continue, or commit its parts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriterError {
    /// A sample cannot be written. The writer can take the next one.
    #[error("sample `{key}`")]
    Sample {
        /// Its key.
        key: String,
        /// What is wrong with it.
        #[source]
        problem: Box<SampleProblem>,
    },
    /// The writer was closed, or an earlier write failed and the writer cannot continue.
    #[error("the writer is closed; open it again to continue: finished shards are kept")]
    Closed,
    /// An unfinished writer had other options.
    #[error("an unfinished writer left {} with {difference}; write with the same options to finish it, or start again \
        with --force", .plan.display())]
    OtherPlan {
        /// The writer's plan file.
        plan: PathBuf,
        /// What differs.
        difference: Box<PlanDifference>,
    },
    /// No part of the split was written.
    #[error("{}: nothing to commit: no part of split `{split}` was written", .destination.display())]
    NothingToCommit {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
    },
    /// Some parts of the split are not finished.
    #[error("{}: split `{split}` has {parts} parts, and these are not finished: {}", .destination.display(),
        .missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
    PartsMissing {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
        /// Number of parts.
        parts: u32,
        /// Parts that are absent or unfinished, from 0.
        missing: Vec<u32>,
    },
    /// Parts of one split were written with different options.
    #[error("{} and {} are parts of one split with {difference}; write one of them again", .first.display(),
        .second.display())]
    OtherPart {
        /// Plan file of a part.
        first: PathBuf,
        /// Plan file of the other.
        second: PathBuf,
        /// What differs.
        difference: Box<PlanDifference>,
    },
    /// Two parts have a key in common.
    #[error("the key `{key}` occurs twice in split `{split}`, in parts {} and {}; keys must be unique in a split: remove \
        the folder of one part and write it again", .parts.0, .parts.1)]
    PartsKey {
        /// The key.
        key: String,
        /// The split.
        split: String,
        /// The two parts.
        parts: (u32, u32),
    },
    /// Two tasks wrote a key.
    #[error("the key `{key}` occurs twice in split `{split}`, in {} and {}; keys must be unique in a split: write other keys",
        .shards.0, .shards.1)]
    TasksKey {
        /// The key.
        key: String,
        /// The split.
        split: String,
        /// The shards of the two tasks.
        shards: (String, String),
    },
    /// A shard that a task has finished is not at the destination.
    #[error("{} is missing or not as task {task} wrote it; write again, to a folder that all machines share or to a store",
        .path.display())]
    TaskShard {
        /// The number of the task.
        task: u64,
        /// The shard or its index.
        path: PathBuf,
    },
    /// Something else writes the split, or has begun to.
    #[error("{} is the plan of an unfinished pack of this split; finish that pack, or choose another split", .plan.display())]
    UnfinishedPack {
        /// The plan file.
        plan: PathBuf,
    },
}
