//! Finds the good records of a damaged shard (length and data match their CRCs), and the lost bytes between them.

use crate::Error;
use crate::frames::{FrameAt, Frames};
use shardtool_format as format;
use shardtool_format::Damage;
use shardtool_format::frame::OVERHEAD_BYTES;
use shardtool_format::index::{self, Fixed, Index, Variable};
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

/// Offset and key of each record, from the bytes of a valid index.
pub(crate) struct OldIndex<'a> {
    offsets: Fixed<'a, u64>,
    keys: Variable<'a>,
    records: u64,
}

impl<'a> OldIndex<'a> {
    /// Examines an index; `None` if it is damaged, or a record lacks its offset or key.
    pub(crate) fn of<B: AsRef<[u8]>>(index: &'a Index<B>) -> Option<Self> {
        (0..index.columns().len()).try_for_each(|column| index.check(column)).ok()?;
        let position = |name| index.position(name).filter(|at| !index.columns()[*at].nullable());
        let offsets = index.fixed::<u64>(position(index::RECORD_OFFSET)?)?;
        let keys = index.variable(position(index::KEY)?)?;
        Some(OldIndex { offsets, keys, records: index.records() })
    }

    /// Returns what is lost with these bytes.
    pub(crate) fn lost(old: Option<&Self>, bytes: Range<u64>, problem: Option<Problem>) -> Lost {
        let rows = old.map(|old| old.first_from(bytes.start)..old.first_from(bytes.end));
        let keys =
            |(old, rows): (&Self, Range<u64>)| rows.filter_map(|row| old.keys.get(row).map(<[u8]>::to_vec)).collect();
        Lost { keys: old.zip(rows.clone()).map(keys).unwrap_or_default(), bytes, records: rows, problem }
    }

    /// Returns the offset of the last record, to detect records lost by truncation.
    pub(crate) fn last_offset(&self) -> Option<u64> {
        self.offsets.get(self.records.checked_sub(1)?)
    }

    /// Returns the first record that begins at or after an offset.
    fn first_from(&self, offset: u64) -> u64 {
        let (mut low, mut high) = (0, self.records);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.offsets.get(middle).is_some_and(|at| at < offset) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Calls `visit` for every good record of a shard, in order, with its data's CRC32C. Returns the bytes between them, and
/// those of records with which `visit` finds a problem.
///
/// # Errors
/// [`Error::Io`], and those of `visit`.
pub(crate) fn salvage(
    frames: &mut Frames,
    old: Option<&OldIndex<'_>>,
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
fn next_record(frames: &mut Frames, from: u64, end: Option<u64>, old: Option<&OldIndex<'_>>) -> Result<u64, Error> {
    if let Some(end) = end
        && (end == frames.bytes() || matches!(frames.at(end)?, FrameAt::Record(..) | FrameAt::Damaged(_, Some(_))))
    {
        return Ok(end);
    }
    // Prefers the offsets of the old index, since bytes inside an image may look like a record.
    if let Some(old) = old {
        for offset in (old.first_from(from + 1)..old.records).filter_map(|row| old.offsets.get(row)) {
            if offset < frames.bytes() && matches!(frames.at(offset)?, FrameAt::Record(..)) {
                return Ok(offset);
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
