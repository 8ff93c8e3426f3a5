//! What prevents writing to a destination.

#[cfg(feature = "parquet")]
use super::BoxError;
use super::{Difference, PlanDifference};
use std::io;
use std::path::PathBuf;

/// Why a destination cannot take a split or an export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// The list of purged keys is absent or damaged.
    #[error("{}: the list of purged keys is absent or damaged, so it is not known which keys must not come back", .path.display())]
    PurgedKeys {
        /// The list.
        path: PathBuf,
    },
    /// The dataset already has the split, and no plan file says how it was packed.
    #[error("{} already has a split `{split}`; choose another --split, or replace it with --force",
        .destination.display())]
    SplitExists {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
    },
    /// The dataset has the split that files would be indexed as, and its files are others or changed.
    #[error("{} already has a split `{split}`, of other files or other records; choose another --split, or bring its \
        indexes and manifest up to date with `shardtool repair`", .destination.display())]
    AlreadyIndexed {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
    },
    /// A command would change files that earlier versions of the dataset name.
    #[error("{} has {versions} versions, and {what} would change files that they name; copy the version \
        (`shardtool copy DATASET@{versions} OUT`) and work on the copy", .destination.display())]
    HasVersions {
        /// Folder of the dataset.
        destination: PathBuf,
        /// What the command does.
        what: &'static str,
        /// The number of the newest version.
        versions: u64,
    },
    /// Another change of the dataset came first.
    #[error("version {version} of {} came first (`{command}`), and changed what this change is based on; nothing was \
        changed, run the same command again", .destination.display())]
    CameFirst {
        /// Folder of the dataset.
        destination: PathBuf,
        /// Number of the version that came first.
        version: u64,
        /// What made it.
        command: String,
    },
    /// The destination of a copy has another manifest.
    #[error("{} has another dataset already; choose another destination", .path.display())]
    OtherDataset {
        /// The destination.
        path: PathBuf,
    },
    /// An interrupted pack had other inputs or options.
    #[error("an interrupted pack left {} with {difference}; run that pack again to finish it, or start again with \
        --force", .plan.display())]
    OtherPlan {
        /// The plan file.
        plan: PathBuf,
        /// What differs.
        difference: Box<PlanDifference>,
    },
    /// The plan of a pack in parts was removed or replaced while a part was being written.
    #[error("{} was removed or replaced while this part was being written: another command replaced the split; run this \
        part again for the new plan", .plan.display())]
    PlanGone {
        /// The plan file.
        plan: PathBuf,
    },
    /// No part of the split was packed.
    #[error("{} has no pack in parts of split `{split}`: run `shardtool pack` with --part first", .destination.display())]
    NoParts {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
    },
    /// The planned shards of a pack in parts are damaged.
    #[error("{} does not list the planned shards: run any part again with the same source and options, which writes it", .path.display())]
    PlannedShards {
        /// The file.
        path: PathBuf,
    },
    /// Shards of a pack in parts are missing.
    #[error("{} of {shards} shards of split `{split}` of {} are missing: {}; run their parts again (--part I/N writes the \
        shards whose number modulo N is I)", .missing.len(), .destination.display(), some(.missing))]
    ShardsMissing {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
        /// The number of all shards.
        shards: usize,
        /// The numbers of the missing ones.
        missing: Vec<usize>,
    },
    /// The dataset already has the split, packed from another source or with other options.
    #[error("split `{split}` of {} is complete, but was packed with {difference}; choose another --split, or replace \
        it with --force", .destination.display())]
    PackedOtherwise {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
        /// What differs.
        difference: Box<PlanDifference>,
    },
    /// The same command filled the folder, from another source or with other options.
    #[error("{} is complete, but was written with {difference}; name a folder that does not exist yet",
        .destination.display())]
    FilledOtherwise {
        /// The folder.
        destination: PathBuf,
        /// What differs.
        difference: Box<PlanDifference>,
    },
    /// The dataset already has the split, but its records changed after it was packed.
    #[error("split `{split}` of {} is complete, but its records changed since it was packed (`shardtool repair`?); \
        choose another --split, or replace it with --force", .destination.display())]
    ChangedSince {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
    },
    /// A file exists that would be overwritten, and that neither the manifest nor a plan names.
    #[error("{} exists, and no manifest or plan names it; move it elsewhere, or choose another destination or --split",
        .path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
    /// The split has other classes or features than the dataset.
    #[error("split `{split}` does not fit the dataset in {}: {difference}", .destination.display())]
    Incompatible {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The new split.
        split: String,
        /// What differs.
        difference: Difference,
    },
    /// Another process holds the lock.
    #[error("another process is writing {} and holds the lock {}; wait until it ends",
        .what.display(), .lock.display())]
    Locked {
        /// What the other process writes.
        what: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// Another process writes the split of a dataset in a store.
    #[error("{owner} is writing this split of {} (it wrote {} {age} s ago); wait until it ends. If it was killed, this \
        command continues its work {wait} s from now", .what.display(), .claim.display())]
    Claimed {
        /// The dataset.
        what: PathBuf,
        /// The object that says so.
        claim: PathBuf,
        /// The other process.
        owner: String,
        /// Seconds since the other process last wrote the object.
        age: u64,
        /// Seconds after which it counts as ended, unless it writes the object again.
        wait: u64,
    },
    /// Another process took over the split that this one was writing.
    #[error("another process has taken over this split of {} (see {}), since this one had not written that object for too \
        long; what both wrote so far is kept", .what.display(), .claim.display())]
    ClaimLost {
        /// The dataset.
        what: PathBuf,
        /// The object that says so.
        claim: PathBuf,
    },
    /// A dataset is being copied to the destination.
    #[error("a dataset is being copied to {}; wait until `shardtool copy` ends. If that copy was given up, remove {} and \
        what it left", .destination.display(), .claim.display())]
    Copying {
        /// The destination.
        destination: PathBuf,
        /// The object that says so.
        claim: PathBuf,
    },
    /// The store does not compare versions of objects.
    #[error("{} cannot be written by several processes, since the store does not compare versions of objects; add \
        --single-writer if nothing else writes there", .destination.display())]
    NoConditions {
        /// The destination.
        destination: PathBuf,
        /// What the store does.
        source: io::Error,
    },
    /// A symbolic link where a file would be written or removed.
    #[error("{} is a symbolic link, and commands that write do not follow links inside their destination; remove it, or \
        choose another destination", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A command that was killed while it moved its files to their names left them.
    #[error("an interrupted command left {}; run it again to finish it, or remove what it wrote", .path.display())]
    Unfinished {
        /// The folder of unfinished files.
        path: PathBuf,
    },
    /// The dataset's manifest is damaged.
    #[error("invalid manifest {} (`shardtool repair` rebuilds it from the records)", .path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        source: shardtool_format::Error,
    },
    /// The index of a finished shard is damaged.
    #[error("invalid index {} (`shardtool repair` rebuilds it from the records)", .path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        source: shardtool_format::Error,
    },
    /// The folder that a command would fill has other files.
    #[error("{} exists and is not empty; name a folder that does not exist yet, or add the files to it with --force",
        .path.display())]
    NotEmpty {
        /// The destination.
        path: PathBuf,
    },
    /// A Parquet file cannot be written.
    #[cfg(feature = "parquet")]
    #[error("cannot write {}", .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The library's error.
        source: BoxError,
    },
}

/// Returns the first numbers, and how many there are in addition.
fn some(numbers: &[usize]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<_> = numbers.iter().take(SHOWN).map(usize::to_string).collect();
    let more = numbers.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
