use crate::system::DEVICE_ERRORS;
use shardtool_format as format;
use shardtool_format::checksum::Sha256;
use shardtool_format::{Compression, Damage};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Result of reading a dataset.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of reading a dataset, a shard or a record: which file and which record, and in its source what is wrong.
/// [`shardtool_format::Chain`] displays both.
///
/// [`Error::is_damage`] and [`Error::is_bad_sample`] are the only places that decide what counts as damage, and what
/// costs a loader one sample instead of the run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of the operating system failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation: `open` or `read`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Bytes of a file cannot be read: the device failed, or the file was truncated while it was open.
    #[error("cannot read bytes {} to {} of {}{}", bytes.start, bytes.end, path.display(), of_record(.record, .key))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The record, counted from 0 in its shard, if the bytes are a record's.
        record: Option<u64>,
        /// Its key, if the index has it.
        key: Option<Vec<u8>>,
        /// The bytes that were to be read.
        bytes: Range<u64>,
        /// The system's error.
        source: std::io::Error,
    },
    /// A cache and unchecked records were requested together.
    #[error("{}: records from a cache are always checked; open the dataset with `Check::Data`, or without a cache", path.display())]
    UncheckedCache {
        /// The dataset.
        path: PathBuf,
    },
    /// The path is neither a dataset nor TFRecord files.
    #[error("{} is not a dataset: {problem}; `shardtool index` makes one of images, tars or TFRecord files where they are, `shardtool pack` copies them", path.display())]
    NotADataset {
        /// The path.
        path: PathBuf,
        /// What is missing.
        problem: &'static str,
    },
    /// The manifest is damaged, or of an unsupported version.
    #[error("cannot use manifest {}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        source: format::Error,
    },
    /// The dataset has no split of that name.
    #[error("{} has no split `{name}`; it has: {}", path.display(), known.join(", "))]
    NoSplit {
        /// The dataset.
        path: PathBuf,
        /// The requested name.
        name: String,
        /// The names of its splits.
        known: Vec<String>,
    },
    /// A record number past the end of the split.
    #[error("record {id} is outside split `{split}`, which has {records} (counted from 0)")]
    OutOfRange {
        /// The split.
        split: String,
        /// The requested record.
        id: u64,
        /// Records in the split.
        records: u64,
    },
    /// A condition on records that cannot be parsed.
    #[error("condition `{condition}`")]
    Condition {
        /// Its text.
        condition: String,
        /// What is wrong with it.
        source: crate::ConditionError,
    },
    /// A shard number past the end of the split.
    #[error("shard {number} is outside split `{split}`, which has {shards} (counted from 0)")]
    NoShard {
        /// The split.
        split: String,
        /// The requested shard.
        number: usize,
        /// Shards of the split.
        shards: usize,
    },
    /// A shard that the manifest lists does not exist.
    #[error("shard {} is missing", path.display())]
    MissingShard {
        /// The shard.
        path: PathBuf,
    },
    /// The index of a shard does not exist.
    #[error("index {} is missing; `shardtool repair` rebuilds it from the records", path.display())]
    MissingIndex {
        /// The index.
        path: PathBuf,
    },
    /// A shard has another length than the manifest says.
    #[error("shard {}: {expected} bytes expected, {found} found", path.display())]
    ShardLength {
        /// The shard.
        path: PathBuf,
        /// Length in the manifest, in bytes.
        expected: u64,
        /// Length of the file, in bytes.
        found: u64,
    },
    /// A whole shard has another CRC than the manifest says.
    #[error("CRC of shard {}: {expected:08x} expected, {found:08x} found", path.display())]
    ShardCrc {
        /// The shard.
        path: PathBuf,
        /// CRC in the manifest.
        expected: u32,
        /// CRC of the file.
        found: u32,
    },
    /// A whole shard has another SHA-256 than the manifest says.
    #[error("SHA-256 of shard {}: {expected} expected, {found} found", path.display())]
    ShardSha256 {
        /// The shard.
        path: PathBuf,
        /// SHA-256 in the manifest.
        expected: Sha256,
        /// SHA-256 of the file.
        found: Sha256,
    },
    /// A whole index has another length or CRC than the manifest says.
    #[error("index {}: {} bytes with CRC {:08x} expected, {} with {:08x} found", path.display(), expected.0, expected.1, found.0, found.1)]
    IndexCrc {
        /// The index.
        path: PathBuf,
        /// Length in bytes and CRC in the manifest.
        expected: (u64, u32),
        /// Length in bytes and CRC of the file.
        found: (u64, u32),
    },
    /// A file of columns or bitmaps of deleted rows does not exist, or ends too early.
    #[error("{} is missing, or shorter than the manifest says; another version of the dataset may not need it (`shardtool log`)", path.display())]
    MissingCompanion {
        /// The file.
        path: PathBuf,
    },
    /// A column or a bitmap of deleted rows has another CRC than the manifest says.
    #[error("CRC of bytes {} to {} of {}: {expected:08x} expected, {found:08x} found", bytes.start, bytes.end, path.display())]
    CompanionCrc {
        /// The file.
        path: PathBuf,
        /// Where the column or bitmap lies.
        bytes: Range<u64>,
        /// CRC in the manifest.
        expected: u32,
        /// CRC of the bytes.
        found: u32,
    },
    /// A damaged column of a version.
    #[error("cannot use column `{column}` in {}", path.display())]
    Companion {
        /// The file, in which the column is that of one shard.
        path: PathBuf,
        /// Name of the column.
        column: String,
        /// What is wrong with it.
        source: format::Error,
    },
    /// A bitmap of deleted rows that cannot be.
    #[error("cannot use {}", path.display())]
    Bitmap {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: format::Error,
    },
    /// The dataset has no such version, or does not keep it.
    #[error("{} has no version `{version}`; it has {known} (`shardtool log` lists them)", path.display())]
    NoVersion {
        /// The dataset.
        path: PathBuf,
        /// The requested version.
        version: String,
        /// What it has.
        known: String,
    },
    /// A path with `@` that may mean two datasets.
    #[error("{} exists, and {} may also mean version `{version}` of {}: rename the folder (in Python, `version=` names a version of the folder in `path`)", path.display(), path.display(), dataset.display())]
    AmbiguousVersion {
        /// The path.
        path: PathBuf,
        /// The path without the version.
        dataset: PathBuf,
        /// The version.
        version: String,
    },
    /// An index is damaged.
    #[error("cannot use index {} (run `shardtool repair` to rebuild it from the records)", path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        source: format::Error,
    },
    /// An index contradicts the manifest or its shard.
    #[error("index {} contradicts its shard: {problem}{}: {expected} in the index, {found} in the shard", path.display(), at(.record))]
    IndexMismatch {
        /// The index.
        path: PathBuf,
        /// The record, counted from 0 in its shard, if one differs.
        record: Option<u64>,
        /// What differs.
        problem: &'static str,
        /// The value in the index.
        expected: String,
        /// The value in the shard or the manifest.
        found: String,
    },
    /// The manifest, the index and the shard do not agree on the number of records.
    #[error("{}: {expected} records expected, {found} found", path.display())]
    RecordCount {
        /// The index if it differs from the manifest; the shard if its frames do.
        path: PathBuf,
        /// Records in the manifest.
        expected: u64,
        /// Records in the index or the shard.
        found: u64,
    },
    /// A TFRecord file that is compressed as a whole.
    #[error("{} is a {compression}-compressed TFRecord file, which allows no random access; `shardtool index` prints the command that decompresses it", path.display())]
    CompressedRecords {
        /// The file.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
    },
    /// A source file of a virtual shard that the user did not allow.
    #[error("{} is not in the dataset's folder{}", path.display(), allow_text(.allow))]
    ForeignSource {
        /// The source file; its path without links, if it is on a disk.
        path: PathBuf,
        /// What allows it; `None` if its name may leave the folder of the source, which nothing allows.
        allow: Option<String>,
    },
    /// A source file of a virtual shard that does not exist.
    #[error("source file {} {problem}", path.display())]
    MissingSource {
        /// The source file.
        path: PathBuf,
        /// What is there.
        problem: &'static str,
    },
    /// A source file of a virtual shard that has another length than when it was indexed.
    #[error("source file {}: {expected} bytes expected, {found} found: it was written again since `shardtool index`, which describes it again", path.display())]
    SourceLength {
        /// The source file.
        path: PathBuf,
        /// Its length when it was indexed, in bytes.
        expected: u64,
        /// Its length, in bytes.
        found: u64,
    },
    /// Bytes of a source file that are not those that were indexed.
    #[error("bytes {} to {} of source file {}{} are not those that were indexed: the file was written again or is damaged", bytes.start, bytes.end, path.display(), of_record(&Some(*record), .key))]
    SourceBytes {
        /// The source file.
        path: PathBuf,
        /// Where the bytes lie in it.
        bytes: Range<u64>,
        /// The record, counted from 0 in its shard.
        record: u64,
        /// Its key, if the index has it.
        key: Option<Vec<u8>>,
        /// What is wrong with the record.
        source: Box<format::Error>,
    },
    /// A damaged record.
    #[error("{}, record {record}{}", path.display(), key_text(.key))]
    Record {
        /// The shard.
        path: PathBuf,
        /// The record, counted from 0 in its shard.
        record: u64,
        /// Its key, if the index has it.
        key: Option<Vec<u8>>,
        /// What is wrong with it.
        source: format::Error,
    },
}

fn of_record(record: &Option<u64>, key: &Option<Vec<u8>>) -> String {
    record.map_or(String::new(), |record| format!(", record {record}{}", key_text(key)))
}

fn allow_text(allow: &Option<String>) -> String {
    match allow {
        Some(allow) => {
            // A line break separates instead of commas.
            let variable = if allow.contains(',') { format!("$'{allow}\\n'") } else { allow.clone() };
            format!(
                ": allow it with --source {allow} (in Python `source=\"{allow}\"`, or SHARDTOOL_SOURCES={variable})"
            )
        }
        None => ", and its name is no plain path: such files are not read".to_owned(),
    }
}

fn at(record: &Option<u64>) -> String {
    record.map_or(String::new(), |r| format!(" of record {r}"))
}

fn key_text(key: &Option<Vec<u8>>) -> String {
    key.as_ref().map_or(String::new(), |k| format!(" (key `{}`)", String::from_utf8_lossy(k)))
}

impl Error {
    /// Returns the kind of damage, as named in `format-spec.md`. Returns `None` if no stored byte is at fault: the
    /// request, the machine or the program is.
    pub fn damage(&self) -> Option<Damage> {
        match self {
            Error::Io { .. }
            | Error::Unreadable { .. }
            | Error::UncheckedCache { .. }
            | Error::NotADataset { .. }
            | Error::NoSplit { .. }
            | Error::NoVersion { .. }
            | Error::AmbiguousVersion { .. }
            | Error::Condition { .. }
            | Error::NoShard { .. }
            | Error::OutOfRange { .. } => None,
            Error::ForeignSource { .. } => Some(Damage::ForeignSource),
            Error::MissingSource { .. } => Some(Damage::MissingSource),
            Error::SourceLength { .. } => Some(Damage::SourceLength),
            Error::MissingShard { .. } => Some(Damage::MissingShard),
            Error::MissingIndex { .. } => Some(Damage::MissingIndex),
            Error::ShardLength { .. } => Some(Damage::ShardLength),
            Error::ShardCrc { .. } => Some(Damage::ShardCrc),
            Error::ShardSha256 { .. } => Some(Damage::ShardSha256),
            Error::IndexCrc { .. } => Some(Damage::IndexCrc),
            Error::MissingCompanion { .. } => Some(Damage::MissingCompanion),
            Error::CompanionCrc { .. } => Some(Damage::CompanionCrc),
            Error::IndexMismatch { .. } => Some(Damage::IndexMismatch),
            Error::RecordCount { .. } => Some(Damage::RecordCount),
            Error::CompressedRecords { .. } => Some(Damage::CompressedRecords),
            Error::Manifest { source, .. }
            | Error::Index { source, .. }
            | Error::Companion { source, .. }
            | Error::Bitmap { source, .. }
            | Error::Record { source, .. } => Some(source.damage()),
            Error::SourceBytes { source, .. } => Some(source.damage()),
        }
    }

    /// Returns the file or folder that the error is about; `None` for [`Error::OutOfRange`], [`Error::NoShard`] and [`Error::Condition`].
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::Io { path, .. }
            | Error::Unreadable { path, .. }
            | Error::UncheckedCache { path }
            | Error::NotADataset { path, .. }
            | Error::Manifest { path, .. }
            | Error::NoSplit { path, .. }
            | Error::MissingShard { path }
            | Error::MissingIndex { path }
            | Error::ShardLength { path, .. }
            | Error::ShardCrc { path, .. }
            | Error::ShardSha256 { path, .. }
            | Error::IndexCrc { path, .. }
            | Error::MissingCompanion { path }
            | Error::CompanionCrc { path, .. }
            | Error::Companion { path, .. }
            | Error::Bitmap { path, .. }
            | Error::NoVersion { path, .. }
            | Error::AmbiguousVersion { path, .. }
            | Error::Index { path, .. }
            | Error::IndexMismatch { path, .. }
            | Error::RecordCount { path, .. }
            | Error::CompressedRecords { path, .. }
            | Error::ForeignSource { path, .. }
            | Error::MissingSource { path, .. }
            | Error::SourceLength { path, .. }
            | Error::SourceBytes { path, .. }
            | Error::Record { path, .. } => Some(path),
            Error::OutOfRange { .. } | Error::NoShard { .. } | Error::Condition { .. } => None,
        }
    }

    /// Returns whether stored bytes are at fault: [`Error::damage`] has a name for it.
    pub fn is_damage(&self) -> bool {
        self.damage().is_some()
    }

    /// Returns whether a loader may continue after this error without the sample: the record is damaged, or its bytes
    /// cannot be read ([`Error::is_unreadable`]). A source file that the user did not allow ends a run.
    pub fn is_bad_sample(&self) -> bool {
        let is_refused = matches!(self, Error::ForeignSource { .. });
        self.is_unreadable() || (self.is_damage() && !is_refused)
    }

    /// Returns whether bytes of a file cannot be read, while others may: the device failed, or the file is shorter than
    /// when it was opened. Other errors of the system, such as a lost permission or no memory, concern every sample.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Error::Io { source, .. } | Error::Unreadable { source, .. } => {
                source.kind() == ErrorKind::UnexpectedEof
                    || source.raw_os_error().is_some_and(|code| DEVICE_ERRORS.iter().any(|e| e.raw_os_error() == code))
            }
            _ => false,
        }
    }

    /// Adds the record and its key to an error about unreadable bytes.
    pub(crate) fn of_record(self, row: u64, its_key: impl FnOnce() -> Option<Vec<u8>>) -> Self {
        match self {
            Error::Unreadable { path, bytes, source, .. } => {
                Error::Unreadable { path, record: Some(row), key: its_key(), bytes, source }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreadable_bytes_cost_one_sample() {
        let io = |source| Error::Io { action: "read", path: PathBuf::from("a"), source };
        assert!(io(std::io::Error::from_raw_os_error(5)).is_bad_sample());
        assert!(io(ErrorKind::UnexpectedEof.into()).is_bad_sample());
        assert!(!io(ErrorKind::PermissionDenied.into()).is_bad_sample());
        assert!(!io(ErrorKind::UnexpectedEof.into()).is_damage());
        assert!(Error::MissingShard { path: PathBuf::from("a") }.is_bad_sample());
        assert!(!Error::OutOfRange { split: "train".to_owned(), id: 3, records: 3 }.is_bad_sample());
    }

    #[test]
    fn display_is_one_link_of_the_chain() {
        let source = format::Error::IndexVersion { found: 2 };
        let error = Error::Index { path: PathBuf::from("x.index"), source };
        assert_eq!(
            format::Chain(&error).to_string(),
            "cannot use index x.index (run `shardtool repair` to rebuild it from the records): unsupported index version 2: \
             this reader supports version 1"
        );
    }
}
