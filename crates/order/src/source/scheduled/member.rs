//! A member of a scheduled source: a dataset, or some of the samples of the run.

use crate::Error;
use crate::source::crc32c_numbers;

/// The samples of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// Consecutive ids, such as those of one split of several.
    Range {
        /// The first id.
        first: u64,
        /// M_d, the number of samples.
        len: u64,
    },
    /// These ids, such as those of a class, or those that meet a condition.
    List(Box<[u64]>),
}

impl Member {
    /// Returns M_d, the number of samples.
    #[expect(clippy::len_without_is_empty, reason = "a number of samples, of which a stage needs at least one")]
    pub fn len(&self) -> u64 {
        match self {
            Member::Range { len, .. } => *len,
            Member::List(ids) => ids.len() as u64,
        }
    }

    /// Checks that all ids are below `split_len`.
    pub(super) fn check(&self, split_len: u64) -> Result<(), Error> {
        match self {
            // Has no id.
            Member::Range { len: 0, .. } => Ok(()),
            Member::Range { first, len } if first.checked_add(*len).is_none_or(|end| end > split_len) => {
                Err(Error::ListedId {
                    index: split_len.saturating_sub(*first),
                    id: split_len.max(*first),
                    len: split_len,
                })
            }
            Member::Range { .. } => Ok(()),
            Member::List(ids) => match ids.iter().position(|id| *id >= split_len) {
                Some(index) => Err(Error::ListedId { index: index as u64, id: ids[index], len: split_len }),
                None => Ok(()),
            },
        }
    }

    /// Returns the id of the sample with this number.
    #[inline]
    pub(super) fn id(&self, number: u64) -> u64 {
        match self {
            Member::Range { first, .. } => first + number,
            Member::List(ids) => ids[number as usize],
        }
    }

    /// Returns one past the largest id; 0 without ids.
    pub(super) fn end(&self) -> u64 {
        match self {
            Member::Range { len: 0, .. } => 0,
            Member::Range { first, len } => first + len,
            Member::List(ids) => ids.iter().max().map_or(0, |id| id + 1),
        }
    }

    pub(super) fn canonical_json(&self) -> String {
        match self {
            Member::Range { first, len } => format!(r#"{{"first":{first},"count":{len}}}"#),
            Member::List(ids) => {
                format!(r#"{{"count":{},"crc32c":"{:08x}"}}"#, ids.len(), crc32c_numbers(ids.iter().copied()))
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Member::Range { .. } => 0,
            Member::List(ids) => 8 * ids.len() as u64,
        }
    }
}
