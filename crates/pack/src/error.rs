//! What can go wrong with a whole run. What is wrong with one input is a [`crate::Reason`].

mod compression;
mod difference;
mod mds;
mod reason;
mod sample;
mod text;

pub use compression::Compression;
pub use difference::{Difference, PlanDifference};
pub use mds::MdsProblem;
pub use reason::{Reason, Rejection};
pub use sample::SampleProblem;

use shardtool_format::manifest::Kind;
use std::io;
use std::path::{Path, PathBuf};
use text::{first, remedy, types};

/// Why nothing was packed, adopted or repaired, or why it stopped half-way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // Bad arguments.
    /// A value out of its range.
    #[error("{option}: expected {expected}")]
    Option {
        /// Which option.
        option: &'static str,
        /// Its range.
        expected: &'static str,
    },
    /// A name of a split or file that cannot be.
    #[error(transparent)]
    Name(#[from] shardtool_format::Error),
    /// The source is not there.
    #[error("no such file or folder: {}; name a folder of images, or a list", .path.display())]
    NoSource {
        /// The source.
        path: PathBuf,
    },
    /// A file that is no list.
    #[error("{}: not what can be packed: a folder of images, a list (.csv, .jsonl), TFRecord, WebDataset tar, Parquet, MDS or COCO; \
        --from KIND forces one", .path.display())]
    SourceKind {
        /// The source.
        path: PathBuf,
    },
    /// A source without images.
    #[error("{}: nothing to pack{}", .path.display(), first(.rejected))]
    EmptySource {
        /// The source.
        path: PathBuf,
        /// The first of the inputs that cannot be packed.
        rejected: Option<Box<Rejection>>,
    },
    /// The dataset would be packed into itself.
    #[error("{} lies inside the source {}: shards would become inputs; choose another folder",
        .destination.display(), .source_folder.display())]
    DestinationInSource {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The source.
        source_folder: PathBuf,
    },
    /// Types of columns are given, but the source is no list.
    #[error("the type of column `{column}` is given, but the source is a folder and has no columns")]
    ColumnsWithoutList {
        /// The column.
        column: String,
    },
    /// A class that the file of class names lacks.
    #[error("class `{class}` is not among the {classes} names in {}; add it there, or remove it from the source",
        .file.display())]
    UnknownClass {
        /// Its name, or its id.
        class: String,
        /// How many names there are.
        classes: usize,
        /// The file of names.
        file: PathBuf,
    },

    // Bad lists.
    /// The file of class names is not one.
    #[error("{}, line {line}: {problem}", .path.display())]
    ClassesFile {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// Not CSV with a header.
    #[error("{}: not a CSV file with a header: {source}", .path.display())]
    ListCsv {
        /// The list.
        path: PathBuf,
        /// The parser's account, with the line.
        source: csv::Error,
    },
    /// Not a JSON object a line.
    #[error("{}, line {line}: not a JSON object: {source}", .path.display())]
    ListJson {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The parser's account.
        source: serde_json::Error,
    },
    /// A column that cannot be.
    #[error("{}, column `{column}`: {problem}", .path.display())]
    ListColumn {
        /// The list.
        path: PathBuf,
        /// The column.
        column: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Values of a column are of different types.
    #[error("{}, line {line}, column `{column}`: {}",
        .path.display(), types(.column, .value, *.found, *.expected, *.first_line, *.declared))]
    ListTypes {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The value in that line.
        value: String,
        /// The value's own type, if a feature can hold it and the column's type is inferred.
        found: Option<Kind>,
        /// The column's type.
        expected: Option<Kind>,
        /// The line that made it so.
        first_line: u64,
        /// Whether the type was given.
        declared: bool,
    },
    /// A value that cannot be.
    #[error("{}, line {line}, column `{column}`: {problem}", .path.display())]
    ListValue {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Not a COCO annotation file.
    #[error("{}: not a COCO annotation file: {problem}", .path.display())]
    Coco {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The objects of a row cannot become boxes.
    #[error("{}, line {line}: {reason}", .path.display())]
    ListObjects {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        reason: Box<Reason>,
    },
    /// Two rows have the same key.
    #[error("{}: lines {} and {} have the same key `{key}`; give each a value of its own in a column `key`",
        .path.display(), .lines.0, .lines.1)]
    DuplicateKey {
        /// The list.
        path: PathBuf,
        /// The key.
        key: String,
        /// Two of the lines that have it.
        lines: (u64, u64),
    },

    // Bad archives.
    /// A column has values of different types.
    #[error("`{column}` is {} in sample {} of {}, and {} in sample {} of {}; give one type: --column {column}:bytes",
        .first.2.name(), .first.1, .first.0, .second.2.name(), .second.1, .second.0)]
    ColumnTypes {
        /// The column, or `label`.
        column: String,
        /// File, sample from 0, and the type there.
        first: (String, u64, Kind),
        /// The same of a sample that disagrees.
        second: (String, u64, Kind),
    },
    /// A type is given for a column that no sample has.
    #[error("the type of column `{column}` is given, but no sample has that field")]
    UnknownColumn {
        /// The column.
        column: String,
    },
    /// Fields of so many names that they must be something else.
    #[error("more than {most} names of fields, in sample {number} of {file}")]
    TooManyColumns {
        /// The limit.
        most: usize,
        /// A file.
        file: String,
        /// The sample that has one more.
        number: u64,
    },
    /// Labels of so many names that they must be something else.
    #[error("more than {most} class names, such as `{name}`; say which field is the label: --map label=FIELD")]
    TooManyClasses {
        /// The limit.
        most: usize,
        /// One of them.
        name: String,
    },
    /// An MDS folder's index is not one.
    #[error("{}: not an MDS index: {problem}", .path.display())]
    MdsIndex {
        /// The `index.json`.
        path: PathBuf,
        /// What is wrong.
        problem: MdsProblem,
    },
    /// Built without Parquet.
    #[error("{}: this shardtool was built without the feature `parquet`", .path.display())]
    WithoutParquet {
        /// The file.
        path: PathBuf,
    },

    // A destination in the way.
    /// The dataset has that split already, and no plan file says how it was packed.
    #[error("{} has a split `{split}` already; choose another --split, or replace it with --force",
        .destination.display())]
    SplitExists {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
    },
    /// An interrupted pack was doing something else.
    #[error("{} was left by an interrupted pack with {difference}; run that one again to finish it, or start anew \
        with --force", .plan.display())]
    OtherPlan {
        /// The plan file.
        plan: PathBuf,
        /// What differs.
        difference: Box<PlanDifference>,
    },
    /// The dataset has that split already, packed from another source or with other options.
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
    /// The dataset has that split already, but its records are not those that its pack wrote.
    #[error("split `{split}` of {} is complete, but its records changed since it was packed (`shardtool repair`?); \
        choose another --split, or replace it with --force", .destination.display())]
    ChangedSince {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
    },
    /// A file that would be overwritten and belongs to no known dataset.
    #[error("{} is in the way, and no manifest or plan names it; move it elsewhere, or choose another destination or \
        --split", .path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
    /// A split with other classes or features.
    #[error("split `{split}` does not fit the dataset in {}: {difference}", .destination.display())]
    Incompatible {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The new split.
        split: String,
        /// What differs.
        difference: Difference,
    },
    /// Another process is at work.
    #[error("another process is writing {}; wait until it is done (a lock on {} tells)",
        .what.display(), .lock.display())]
    Locked {
        /// What it writes.
        what: PathBuf,
        /// The file that is locked.
        lock: PathBuf,
    },
    /// The manifest that is there is damaged.
    #[error("{}: {source}; `shardtool repair` rebuilds it from the records", .path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        source: shardtool_format::Error,
    },

    /// The index of a finished shard is damaged.
    #[error("{}: {source}; `shardtool repair` rebuilds it from the records", .path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        source: shardtool_format::Error,
    },

    // Bad records of existing shards.
    /// A frame or an Example of an existing shard is damaged.
    #[error("{}, record {record}: {source}", .shard)]
    Record {
        /// File name of the shard.
        shard: String,
        /// Record, from 0.
        record: u64,
        /// What is wrong with it.
        source: shardtool_format::Error,
    },
    /// A shard is compressed as a whole.
    #[error("{} is compressed with {kind} as a whole, so no record can be found without reading all before it; \
        convert it: {}", .path.display(), .kind.command(.path))]
    Compressed {
        /// The shard.
        path: PathBuf,
        /// With what.
        kind: Compression,
    },
    /// A record that an index cannot describe.
    #[error("{shard}, record {record}: {bytes} bytes; an image lies within the first 4 GiB of its record")]
    RecordTooLong {
        /// File name of the shard.
        shard: String,
        /// Record, from 0.
        record: u64,
        /// Bytes of its data.
        bytes: u64,
    },
    /// A feature has values of different types.
    #[error("feature `{feature}` is {} in record {} of {}, and {} in record {} of {}; a feature has one type in all \
        records", .first.2.name(), .first.1, .first.0, .second.2.name(), .second.1, .second.0)]
    FeatureType {
        /// The feature.
        feature: String,
        /// File name of a shard, record, and the type there.
        first: (String, u64, Kind),
        /// The same of a record that disagrees.
        second: (String, u64, Kind),
    },
    /// Files of one dataset in different folders.
    #[error("{} and {} lie in different folders; gather them with --out DIR", .first.display(), .second.display())]
    Scattered {
        /// A file.
        first: PathBuf,
        /// A file elsewhere.
        second: PathBuf,
    },
    /// A folder without anything to repair.
    #[error("{}: no manifest and no .tfrecord files; nothing to repair", .path.display())]
    NoDataset {
        /// The folder.
        path: PathBuf,
    },

    // Writers.
    /// A sample cannot be written; the writer can take the next one.
    #[error("sample `{key}`: {problem}")]
    Sample {
        /// Its key.
        key: String,
        /// What is wrong with it.
        problem: Box<SampleProblem>,
    },
    /// The writer was closed, or an earlier write failed in a way that it cannot continue from.
    #[error("the writer is closed; open it again to continue: finished shards are kept")]
    WriterClosed,
    /// An unfinished writer had other options.
    #[error("{} was left by an unfinished writer with {difference}; write with the same options to finish it, or start \
        anew with --force", .plan.display())]
    OtherWriter {
        /// The writer's plan file.
        plan: PathBuf,
        /// What differs.
        difference: Box<PlanDifference>,
    },
    /// A split is committed that nobody wrote.
    #[error("{}: nothing to commit: no part of split `{split}` was written", .destination.display())]
    NothingToCommit {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
    },
    /// A split is committed before all its parts are finished.
    #[error("{}: split `{split}` has {parts} parts, and these are not finished: {}", .destination.display(),
        .missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
    PartsMissing {
        /// Folder of the dataset.
        destination: PathBuf,
        /// The split.
        split: String,
        /// How many parts there are.
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
    #[error("the key `{key}` occurs twice in split `{split}`, in parts {} and {}; keys are unique in a split: remove the \
        folder of one part and write it again", .parts.0, .parts.1)]
    PartsKey {
        /// The key.
        key: String,
        /// The split.
        split: String,
        /// The two parts.
        parts: (u32, u32),
    },

    // Exports.
    /// The destination of an export is there.
    #[error("{} is there and not empty; name a folder that does not exist yet, or put the files into it with --force",
        .path.display())]
    ExportInTheWay {
        /// The destination.
        path: PathBuf,
    },
    /// Files without a manifest, where one is needed.
    #[error("{} has no manifest: make one with `shardtool index`", .path.display())]
    Bare {
        /// The files.
        path: PathBuf,
    },
    /// Two datasets that are merged have a key in common.
    #[error("both {} and {} have the key `{key}` in split `{split}`; keys are unique in a split: pack one of them under others",
        .first.display(), .second.display())]
    MergedKey {
        /// The key.
        key: String,
        /// The split.
        split: String,
        /// A shard of the one.
        first: PathBuf,
        /// A shard of the other.
        second: PathBuf,
    },
    /// The dataset that is exported cannot be read.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),

    /// A Parquet file that cannot be written.
    #[cfg(feature = "parquet")]
    #[error("cannot write {}: {source}", .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: parquet::errors::ParquetError,
    },

    // The rest.
    /// An input cannot be packed, and [`crate::OnError::Fail`] was asked for.
    #[error("{}: {}", .0.input, .0.reason)]
    Rejected(Box<Rejection>),
    /// An interrupted run rejected an input, and this one was asked to fail where one is.
    #[error("an earlier run rejected inputs: see {}; mend them and start anew with --force, or go on with \
        --on-error skip", .path.display())]
    RejectedBefore {
        /// The list of them.
        path: PathBuf,
    },
    /// [`crate::Progress::after`] asked to stop. The same call goes on from there.
    #[error("stopped; the same command goes on from here")]
    Stopped,
    /// The operating system refused.
    #[error("cannot {action} {}: {source}{}", .path.display(), remedy(.source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// An I/O error, for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { action, path: path.to_owned(), source }
    }
}
