//! Finds the frames of a virtual shard: each row of its index says where one lies, whatever is wrong with the others.

use super::record_errors::{ends, with_key};
use super::rows::Rows;
use crate::{Error, FileBytes, Result, Shard};
use shardtool_format::frame;
use std::ops::Range;

/// Calls `found` with the range of each frame, and `damaged` with what is wrong with another one, its row, and whether it is the last
/// one that is asked for.
pub(super) fn find(
    shard: &Shard,
    bytes: &FileBytes,
    rows: Option<&Rows<'_>>,
    mut found: impl FnMut(Range<u64>),
    mut damaged: impl FnMut(Error, Option<u64>, bool),
) {
    for row in 0..shard.records() {
        match described_frame(shard, bytes, row) {
            Ok(frame) => found(frame),
            Err(error) => {
                let last = ends(bytes, &error);
                damaged(with_key(error, Some(row), rows), Some(row), last);
                if last {
                    break;
                }
            }
        }
    }
}

/// Returns the range of a frame in a virtual shard, whose header is good.
///
/// # Errors
/// Those of [`Shard::frame`] and of its source files; [`Error::Record`], [`Error::IndexMismatch`].
fn described_frame(shard: &Shard, bytes: &FileBytes, row: u64) -> Result<Range<u64>> {
    let frame = shard.frame(row)?;
    let length = frame.end - frame.start;
    let header = frame.start..frame.start + length.min(frame::HEADER_BYTES as u64);
    let found = bytes.with(header, |header| frame::whole_length(header, length, frame.start))?;
    match found {
        Ok(found) if found == length => Ok(frame),
        Ok(found) => Err(shard.mismatch(row, "length of the frame", length.to_string(), found.to_string())),
        Err(source) => Err(Error::Record { path: shard.path().to_owned(), record: row, key: None, source }),
    }
}
