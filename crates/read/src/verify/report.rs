//! The result of verification.

use crate::Error;
use shardtool_format as format;
#[cfg(feature = "decode")]
use shardtool_format::names;
use shardtool_format::{Chain, Damage};
use std::path::{Path, PathBuf};

/// What was checked, and what was found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Shards checked.
    pub shards: u64,
    /// Records whose data CRC is right.
    pub good_records: u64,
    /// Bytes of shards read.
    pub bytes: u64,
    /// Records whose feature lists are ignored: the manifest does not require `sequence-example`. They are no damage.
    pub ignored_feature_lists: u64,
    /// Images that are cut or damaged, and no damage as [`Options::truncated`](super::Options) says.
    pub filled: u64,
    /// The findings, in order of file and offset; at most [`Report::MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// Further findings, which are not listed.
    pub unlisted: u64,
}

impl Report {
    /// Findings that a report lists at most. A file of 16-byte frames with wrong CRCs has a finding for every 16 bytes,
    /// and a finding takes several hundred bytes.
    pub const MAX_FINDINGS: usize = 100_000;

    /// Returns the report of a dataset that could not be opened: one finding.
    pub fn of_error(error: &Error) -> Self {
        Report { findings: vec![Finding::new(error)], ..Report::default() }
    }

    pub(super) fn join(mut self, other: Report) -> Report {
        self.append(other);
        self
    }

    /// Adds what another part of the verification checked and found.
    pub(super) fn append(&mut self, other: Report) {
        self.shards += other.shards;
        self.good_records += other.good_records;
        self.bytes += other.bytes;
        self.ignored_feature_lists += other.ignored_feature_lists;
        self.filled += other.filled;
        self.unlisted += other.unlisted;
        other.findings.into_iter().for_each(|finding| self.push(finding));
    }

    /// Returns whether this damage of the file was found.
    pub(super) fn has(&self, file: &Path, damage: Damage) -> bool {
        self.findings.iter().any(|finding| finding.file == file && finding.damage == Some(damage))
    }

    pub(super) fn sort(&mut self) {
        self.findings.sort_by(|a, b| (&a.file, a.offset, a.name()).cmp(&(&b.file, b.offset, b.name())));
    }

    pub(super) fn add(&mut self, error: Error) {
        if self.lists_another() {
            self.findings.push(Finding::new(&error));
        }
    }

    pub(super) fn push(&mut self, finding: Finding) {
        if self.lists_another() {
            self.findings.push(finding);
        }
    }

    /// Returns whether the next finding is listed. Otherwise counts it.
    fn lists_another(&mut self) -> bool {
        let listed = self.findings.len() < Self::MAX_FINDINGS;
        self.unlisted += u64::from(!listed);
        listed
    }
}

/// One finding: damage, or a file that the operating system could not read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of damage; `None` if the operating system could not read the file.
    pub damage: Option<Damage>,
    /// The file.
    pub file: PathBuf,
    /// The record, from 0 in its shard.
    pub record: Option<u64>,
    /// The record's key, if the index has it.
    pub key: Option<String>,
    /// Offset in the file, in bytes.
    pub offset: Option<u64>,
    /// The expected value, as text.
    pub expected: Option<String>,
    /// The value found, as text.
    pub found: Option<String>,
    /// The whole finding as a sentence.
    pub message: String,
    /// The operating system's error, if it could not read the file.
    pub os_error: Option<i32>,
}

impl Finding {
    /// Makes a finding from an error.
    pub fn new(error: &Error) -> Self {
        let file = error.path().unwrap_or(Path::new("")).to_owned();
        let mut finding = Finding::without_details(file, error.damage(), Chain(error).to_string());
        let mut values = None;
        match error {
            Error::Record { record, key, source, .. } => {
                finding.record = Some(*record);
                finding.key = key.as_ref().map(|k| String::from_utf8_lossy(k).into_owned());
                (finding.offset, values) = details(source);
            }
            Error::Unreadable { record, key, bytes, .. } => {
                finding.record = *record;
                finding.key = key.as_ref().map(|k| String::from_utf8_lossy(k).into_owned());
                finding.offset = Some(bytes.start);
            }
            Error::SourceBytes { record, key, bytes, source, .. } => {
                finding.record = Some(*record);
                finding.key = key.as_ref().map(|k| String::from_utf8_lossy(k).into_owned());
                (finding.offset, values) = (Some(bytes.start), details(source).1);
            }
            Error::SourceLength { expected, found, .. } => {
                values = Some((expected.to_string(), found.to_string()));
            }
            Error::Index { source, .. } | Error::Manifest { source, .. } => {
                (finding.offset, values) = details(source);
            }
            Error::IndexMismatch { record, expected, found, .. } => {
                finding.record = *record;
                values = Some((expected.clone(), found.clone()));
            }
            Error::ShardLength { expected, found, .. } | Error::RecordCount { expected, found, .. } => {
                values = Some((expected.to_string(), found.to_string()));
            }
            Error::Companion { source, .. } | Error::Bitmap { source, .. } => {
                (finding.offset, values) = details(source)
            }
            Error::CompanionCrc { expected, found, .. } => values = Some(crcs(*expected, *found)),
            Error::ShardCrc { expected, found, .. } => values = Some(crcs(*expected, *found)),
            Error::IndexCrc { expected, found, .. } => values = Some(crcs(expected.1, found.1)),
            _ => {}
        }
        if let Error::Io { source, .. } | Error::Unreadable { source, .. } = error {
            finding.os_error = source.raw_os_error();
        }
        (finding.expected, finding.found) = values.unzip();
        finding
    }

    /// Makes a finding about `file` without record, offset and values, which the caller sets.
    pub fn without_details(file: PathBuf, damage: Option<Damage>, message: String) -> Self {
        Finding {
            damage,
            file,
            record: None,
            key: None,
            offset: None,
            expected: None,
            found: None,
            message,
            os_error: None,
        }
    }

    /// Returns the name of the damage, or `Io` for a file that the operating system could not read.
    pub fn name(&self) -> &'static str {
        self.damage.map_or("Io", Damage::name)
    }

    /// Makes a finding about the image of a record of `shard` whose CRCs are right.
    #[cfg(feature = "decode")]
    pub(super) fn image(
        shard: &Path,
        record: u64,
        key: String,
        offset: u64,
        (damage, problem): (Damage, String),
    ) -> Self {
        let (file, offset) = match damage {
            Damage::IndexMismatch => (names::index_path(shard), None),
            _ => (shard.to_owned(), Some(offset)),
        };
        let message = format!("{}, record {record} (key `{key}`): {problem}", file.display());
        let finding = Finding::without_details(file, Some(damage), message);
        Finding { record: Some(record), key: Some(key), offset, found: Some(problem), ..finding }
    }
}

fn crcs(expected: u32, found: u32) -> (String, String) {
    (format!("{expected:08x}"), format!("{found:08x}"))
}

/// Returns the offset and the two values that an error holds.
fn details(error: &format::Error) -> (Option<u64>, Option<(String, String)>) {
    use format::Error as E;
    match *error {
        E::TruncatedFrame { offset, needed, found } => (Some(offset), Some((needed.to_string(), found.to_string()))),
        E::LengthCrc { offset, expected, found } | E::DataCrc { offset, expected, found } => {
            (Some(offset), Some(crcs(expected, found)))
        }
        E::IndexHeaderCrc { expected, found }
        | E::IndexDirectoryCrc { expected, found }
        | E::ColumnCrc { expected, found, .. } => (None, Some(crcs(expected, found))),
        E::IndexTruncated { needed, found } => (None, Some((needed.to_string(), found.to_string()))),
        E::IndexLayout { offset, .. } | E::IndexPadding { offset } => (Some(offset), None),
        _ => (None, None),
    }
}
