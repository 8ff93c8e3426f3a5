//! Finds the good records of a damaged shard (length and data match their CRCs), and the lost bytes between them.

use crate::Error;
use crate::frames::{FrameAt, Frames};
use shardtool_format as format;
use shardtool_format::Damage;
use shardtool_format::frame::OVERHEAD_BYTES;
use shardtool_format::index::{self, Index};
use std::ops::Range;

/// Bytes of a shard that hold no good record.
#[derive(Debug)]
#[non_exhaustive]
pub struct Lost {
    /// Their range in the damaged shard.
    pub bytes: Range<u64>,
    /// The records that began there, if the old index is valid.
    pub records: Option<Range<u64>>,
    /// Their keys, if the old index is valid.
    pub keys: Vec<Vec<u8>>,
    /// What is wrong at the first of these bytes; `None` if the shard ends before them.
    pub problem: Option<Problem>,
}

/// Why bytes of a shard hold no good record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// They are damaged.
    #[error(transparent)]
    Damage(#[from] format::Error),
    /// They cannot be read.
    #[error(transparent)]
    Unreadable(#[from] shardtool_read::Error),
}

impl Problem {
    /// Returns the kind of damage, as named in `format-spec.md`; `None` if the bytes cannot be read.
    pub fn damage(&self) -> Option<Damage> {
        match self {
            Problem::Damage(error) => Some(error.damage()),
            Problem::Unreadable(error) => error.damage(),
        }
    }
}

/// Offset and key of each record, from a valid index.
pub(crate) struct OldIndex {
    offsets: Vec<u64>,
    keys: Vec<Vec<u8>>,
}

impl OldIndex {
    /// Parses an index; `None` if it is damaged.
    pub(crate) fn parse(file: &[u8]) -> Option<Self> {
        let index = Index::parse(file).ok()?;
        (0..index.columns().len()).try_for_each(|column| index.check(column)).ok()?;
        let offsets = index.fixed::<u64>(index.position(index::RECORD_OFFSET)?)?.iter().flatten().collect();
        let keys = index.variable(index.position(index::KEY)?)?.iter().flatten().map(<[u8]>::to_vec).collect();
        Some(OldIndex { offsets, keys })
    }

    /// Returns what is lost with these bytes.
    pub(crate) fn lost(old: Option<&Self>, bytes: Range<u64>, problem: Option<Problem>) -> Lost {
        let row = |old: &Self, at: u64| old.offsets.partition_point(|offset| *offset < at);
        let rows = old.map(|old| row(old, bytes.start)..row(old, bytes.end));
        let keys = old.zip(rows.clone()).map(|(old, rows)| old.keys[rows].to_vec()).unwrap_or_default();
        Lost { bytes, records: rows.map(|r| r.start as u64..r.end as u64), keys, problem }
    }

    /// Returns the offset of the last record, to detect records lost by truncation.
    pub(crate) fn last_offset(&self) -> Option<u64> {
        self.offsets.last().copied()
    }
}

/// Calls `visit` for every good record of a shard, in order, with its data's CRC32C. Returns the bytes between them, and
/// those of records with which `visit` finds a problem.
///
/// # Errors
/// [`Error::Io`], and those of `visit`.
pub(crate) fn salvage(
    frames: &mut Frames,
    old: Option<&OldIndex>,
    mut visit: impl FnMut(&[u8], u32) -> Result<Option<format::Error>, Error>,
) -> Result<Vec<Lost>, Error> {
    let (mut offset, mut lost) = (0, vec![]);
    while offset < frames.bytes() {
        let (problem, end) = match frames.at(offset)? {
            FrameAt::Record(data, crc) => {
                let end = offset + (data.len() + OVERHEAD_BYTES) as u64;
                if let Some(problem) = visit(data, crc)? {
                    lost.push(OldIndex::lost(old, offset..end, Some(problem.into())));
                }
                offset = end;
                continue;
            }
            FrameAt::Damaged(problem, end) => (problem, end),
        };
        let next = next_record(frames, offset, end, old)?;
        lost.push(OldIndex::lost(old, offset..next, Some(problem)));
        offset = next;
    }
    Ok(lost)
}

/// Returns where to continue after a damaged frame. `end` is the frame's end, if its length is valid.
fn next_record(frames: &mut Frames, from: u64, end: Option<u64>, old: Option<&OldIndex>) -> Result<u64, Error> {
    if let Some(end) = end
        && (end == frames.bytes() || matches!(frames.at(end)?, FrameAt::Record(..) | FrameAt::Damaged(_, Some(_))))
    {
        return Ok(end);
    }
    // Prefers the offsets of the old index, since bytes inside an image may look like a record.
    if let Some(old) = old {
        let after = old.offsets.partition_point(|offset| *offset <= from);
        for offset in &old.offsets[after..] {
            if *offset < frames.bytes() && matches!(frames.at(*offset)?, FrameAt::Record(..)) {
                return Ok(*offset);
            }
        }
    }
    let mut offset = from + 1;
    loop {
        offset = frames.next_header(offset)?;
        if offset == frames.bytes() || matches!(frames.at(offset)?, FrameAt::Record(..)) {
            return Ok(offset);
        }
        offset += 1;
    }
}
