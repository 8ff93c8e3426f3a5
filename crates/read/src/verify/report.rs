//! What verification found.

use super::image::Fault;
use crate::Error;
use shardtool_format as format;
use std::path::PathBuf;

/// What was checked, and every damage found.
#[derive(Debug, Default)]
pub struct Report {
    /// Shards checked.
    pub shards: u64,
    /// Records whose data CRC was right.
    pub good_records: u64,
    /// Bytes of shards read.
    pub bytes: u64,
    /// Every damage, by file and offset.
    pub damages: Vec<Damage>,
}

impl Report {
    pub(super) fn join(mut self, other: Report) -> Report {
        self.shards += other.shards;
        self.good_records += other.good_records;
        self.bytes += other.bytes;
        self.damages.extend(other.damages);
        self
    }

    pub(super) fn damage(&mut self, file: PathBuf, error: Error) {
        self.damages.push(Damage::new(file, error));
    }
}

/// One damage.
#[derive(Debug)]
pub struct Damage {
    /// The error's name in `format-spec.md`.
    pub name: &'static str,
    /// The damaged file.
    pub file: PathBuf,
    /// The record, from 0 in its shard.
    pub record: Option<u64>,
    /// The record's key, where the index could tell.
    pub key: Option<String>,
    /// Where in the file, in bytes.
    pub offset: Option<u64>,
    /// What should be there.
    pub expected: Option<String>,
    /// What is there.
    pub found: Option<String>,
    /// All of it in a sentence.
    pub message: String,
}

impl Damage {
    /// The damage that an error tells of, of the file `file`.
    pub fn new(file: PathBuf, error: Error) -> Self {
        let (name, message) = (error.name(), error.to_string());
        let (mut record, mut key, mut offset, mut values) = (None, None, None, None);
        match error {
            Error::Record { record: row, key: k, source, .. } => {
                (record, key) = (Some(row), k.map(|k| String::from_utf8_lossy(&k).into_owned()));
                (offset, values) = of_format(&source);
            }
            Error::Index { source, .. } | Error::Manifest { source, .. } => (offset, values) = of_format(&source),
            Error::IndexMismatch { record: row, expected, found, .. } => {
                (record, values) = (row, Some((expected, found)));
            }
            Error::ShardLength { expected, found, .. } | Error::RecordCount { expected, found, .. } => {
                values = Some((expected.to_string(), found.to_string()));
            }
            Error::ShardCrc { expected, found, .. } => values = Some(crcs(expected, found)),
            Error::IndexCrc { expected, found, .. } => values = Some(crcs(expected.1, found.1)),
            _ => {}
        }
        let (expected, found) = values.unzip();
        Damage { name, file, record, key, offset, expected, found, message }
    }

    /// A damage of an image behind right CRCs.
    pub(super) fn image(file: PathBuf, record: u64, key: String, offset: u64, fault: Fault) -> Self {
        let message = format!("{}, record {record} (key `{key}`): {}", file.display(), fault.problem);
        let (record, key, offset, found) = (Some(record), Some(key), Some(offset), Some(fault.problem));
        Damage { name: fault.name, file, record, key, offset, expected: None, found, message }
    }
}

fn crcs(expected: u32, found: u32) -> (String, String) {
    (format!("{expected:08x}"), format!("{found:08x}"))
}

type Place = (Option<u64>, Option<(String, String)>);

fn of_format(error: &format::Error) -> Place {
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
