//! What errors of records mean for a verification.

use super::Finding;
use super::rows::Rows;
use crate::{Error, FileBytes};

/// Returns whether an error ends the verification of a shard: the store fails, and each further request would take as long. A source
/// file that the user must allow does not: it is not asked for.
pub(super) fn ends(bytes: &FileBytes, error: &Error) -> bool {
    bytes.object().is_some() && !error.is_bad_sample() && !matches!(error, Error::ForeignSource { .. })
}

/// Makes a finding. What is wrong with a source file says which record lost it.
pub(super) fn finding(error: &Error, row: Option<u64>, rows: Option<&Rows<'_>>, shard: &str) -> Finding {
    let mut finding = Finding::new(error);
    if let Error::MissingSource { .. } | Error::SourceLength { .. } | Error::ForeignSource { .. } = error
        && let Some(row) = row
    {
        let key = rows.and_then(|rows| rows.key(row));
        (finding.record, finding.key) = (Some(row), key.map(|key| String::from_utf8_lossy(key).into_owned()));
        finding.message.push_str(&format!(" (record {row} of {shard})"));
    }
    finding
}

/// Adds the row and the key from the index to an error about a record.
pub(super) fn with_key(error: Error, row: Option<u64>, rows: Option<&Rows<'_>>) -> Error {
    match error {
        Error::Record { path, record, source, .. } => {
            let record = row.unwrap_or(record);
            Error::Record { path, record, key: rows.and_then(|r| r.key(record)).map(<[u8]>::to_vec), source }
        }
        Error::Unreadable { record: found, .. } => match row.or(found) {
            Some(row) => error.of_record(row, || rows.and_then(|r| r.key(row)).map(<[u8]>::to_vec)),
            None => error,
        },
        _ => error,
    }
}
