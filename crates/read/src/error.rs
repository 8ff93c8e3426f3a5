use shardtool_format as format;
use std::path::PathBuf;
use thiserror::Error;

/// Result of reading a dataset.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a dataset, a shard or a record could not be read. Adds to the bytes' own errors which file and which record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Neither a dataset, nor TFRecord files.
    #[error("{} is not a dataset: {problem}; `shardtool pack` makes one from images, `shardtool index` from TFRecord files", path.display())]
    NotADataset {
        /// What was to be opened.
        path: PathBuf,
        /// What is missing there.
        problem: &'static str,
    },
    /// The manifest is damaged or cannot be used.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        source: format::Error,
    },
    /// The dataset has no such split.
    #[error("{} has no split `{name}`; it has: {}", path.display(), known.join(", "))]
    NoSplit {
        /// The dataset.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A record past the end.
    #[error("record {id} of split `{split}`, which has {records} (counted from 0)")]
    OutOfRange {
        /// The split.
        split: String,
        /// What was asked for.
        id: u64,
        /// Records there are.
        records: u64,
    },
    /// A shard that the manifest lists is not there.
    #[error("shard {} is missing", path.display())]
    MissingShard {
        /// The shard.
        path: PathBuf,
    },
    /// The index of a shard is not there.
    #[error("index {} is missing; `shardtool repair` makes it anew from the records", path.display())]
    MissingIndex {
        /// The index.
        path: PathBuf,
    },
    /// A shard is not as long as its manifest or its index says.
    #[error("shard {}: {expected} bytes expected, {found} found", path.display())]
    ShardLength {
        /// The shard.
        path: PathBuf,
        /// Bytes it must have.
        expected: u64,
        /// Bytes it has.
        found: u64,
    },
    /// A whole shard does not have the CRC that its manifest or index says.
    #[error("CRC of shard {}: {expected:08x} expected, {found:08x} found", path.display())]
    ShardCrc {
        /// The shard.
        path: PathBuf,
        /// CRC it must have.
        expected: u32,
        /// CRC it has.
        found: u32,
    },
    /// A whole index does not have the length or the CRC that the manifest says.
    #[error("index {}: {} bytes with CRC {:08x} expected, {} with {:08x} found", path.display(), expected.0, expected.1, found.0, found.1)]
    IndexCrc {
        /// The index.
        path: PathBuf,
        /// Length in bytes and CRC that it must have.
        expected: (u64, u32),
        /// Length in bytes and CRC that it has.
        found: (u64, u32),
    },
    /// An index is damaged.
    #[error("index {}: {source}; `shardtool repair` makes it anew from the records", path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        source: format::Error,
    },
    /// An index contradicts its shard.
    #[error("index of {} contradicts the shard: {problem}{}: {expected} in the index, {found} in the shard", path.display(), at(.record))]
    IndexMismatch {
        /// The shard.
        path: PathBuf,
        /// The record, counted from 0 in its shard, where it is about one.
        record: Option<u64>,
        /// What differs.
        problem: &'static str,
        /// What the index says.
        expected: String,
        /// What the shard says.
        found: String,
    },
    /// A manifest, an index and a shard do not agree on the number of records.
    #[error("shard {}: {expected} records expected, {found} found", path.display())]
    RecordCount {
        /// The shard.
        path: PathBuf,
        /// Records it must have.
        expected: u64,
        /// Records it has.
        found: u64,
    },
    /// A TFRecord file compressed as a whole.
    #[error("{} is a {kind}-compressed TFRecord file, which allows no random access; `shardtool index` names the command that converts it", path.display())]
    CompressedRecords {
        /// The file.
        path: PathBuf,
        /// `gzip` or `zlib`.
        kind: &'static str,
    },
    /// A damaged record.
    #[error("{}, record {record}{}: {source}", path.display(), key_text(.key))]
    Record {
        /// The shard.
        path: PathBuf,
        /// The record, counted from 0 in its shard.
        record: u64,
        /// Its key, where the index could tell.
        key: Option<Vec<u8>>,
        /// What is wrong with it.
        source: format::Error,
    },
}

fn at(record: &Option<u64>) -> String {
    record.map_or(String::new(), |r| format!(" of record {r}"))
}

fn key_text(key: &Option<Vec<u8>>) -> String {
    key.as_ref().map_or(String::new(), |k| format!(" (key `{}`)", String::from_utf8_lossy(k)))
}

impl Error {
    /// The error's name in `format-spec.md`.
    pub fn name(&self) -> &'static str {
        match self {
            Error::Io { .. } => "Io",
            Error::NotADataset { .. } => "NotADataset",
            Error::NoSplit { .. } => "NoSplit",
            Error::OutOfRange { .. } => "OutOfRange",
            Error::MissingShard { .. } => "MissingShard",
            Error::MissingIndex { .. } => "MissingIndex",
            Error::ShardLength { .. } => "ShardLength",
            Error::ShardCrc { .. } => "ShardCrc",
            Error::IndexCrc { .. } => "IndexCrc",
            Error::IndexMismatch { .. } => "IndexMismatch",
            Error::RecordCount { .. } => "RecordCount",
            Error::CompressedRecords { .. } => "CompressedRecords",
            Error::Manifest { source, .. } | Error::Index { source, .. } | Error::Record { source, .. } => {
                source.name()
            }
        }
    }

    /// Whether the data is at fault, and not the question, the machine or the program.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Error::Io { .. } | Error::NotADataset { .. } | Error::NoSplit { .. } | Error::OutOfRange { .. })
    }
}
