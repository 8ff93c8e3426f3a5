//! What is wrong with archives.

use super::MdsProblem;
use shardtool_format::manifest::DType;
use std::path::PathBuf;

/// Why archives cannot be packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Values of a column have different types.
    #[error("`{column}` is {} in sample {} of {}, and {} in sample {} of {}; declare one type: --column {column}:bytes",
        .first.2.name(), .first.1, .first.0, .second.2.name(), .second.1, .second.0)]
    ColumnTypes {
        /// The column, or `label`.
        column: String,
        /// File, sample from 0, and the type there.
        first: (String, u64, DType),
        /// The same, for a sample with a different type.
        second: (String, u64, DType),
    },
    /// A type is given for a column that no sample has.
    #[error("the type of column `{column}` is given, but no sample has that field")]
    UnknownColumn {
        /// The column.
        column: String,
    },
    /// Samples have more different field names than columns are allowed.
    #[error("more than {most} different field names (up to sample {number} of {file})")]
    TooManyColumns {
        /// The limit.
        most: usize,
        /// A file.
        file: String,
        /// The sample that exceeds the limit.
        number: u64,
    },
    /// Labels have more different names than classes are allowed.
    #[error("more than {most} class names, such as `{name}`; name the label's field: --map label=FIELD")]
    TooManyClasses {
        /// The limit.
        most: usize,
        /// One of them.
        name: String,
    },
    /// A TFRecord file of SequenceExamples, whose feature lists a pack would lose.
    #[error("{} holds tf.train.SequenceExamples; run `shardtool index` on it, which keeps their feature lists", .path.display())]
    SequenceExamples {
        /// The file.
        path: PathBuf,
    },
    /// An invalid MDS index.
    #[error("{}: invalid MDS index", .path.display())]
    MdsIndex {
        /// The `index.json`.
        path: PathBuf,
        /// What is wrong.
        #[source]
        problem: MdsProblem,
    },
}
