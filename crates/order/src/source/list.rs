//! A list of ids: a subset, the result of a filter, or any other sequence.

use super::crc32c_numbers;
use crate::Error;

/// A sequence of ids of one split; an id may occur several times. Holds 8 bytes per id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    ids: Box<[u64]>,
}

impl List {
    /// Makes a list of ids of a split with `split_len` samples.
    ///
    /// # Errors
    /// [`Error::ListedId`] for an id of `split_len` or more.
    pub fn new(ids: Vec<u64>, split_len: u64) -> Result<Self, Error> {
        match ids.iter().position(|&id| id >= split_len) {
            Some(i) => Err(Error::ListedId { index: i as u64, id: ids[i], len: split_len }),
            None => Ok(List { ids: ids.into() }),
        }
    }

    /// Returns the ids.
    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }

    pub(super) fn canonical_json(&self) -> String {
        let crc = crc32c_numbers(self.ids.iter().copied());
        format!(r#"{{"source":"list","count":{},"crc32c":"{crc:08x}"}}"#, self.ids.len())
    }
}
