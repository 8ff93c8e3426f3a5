//! The rows of a shard that are records of the split: those that are not deleted.

use crate::overlay;
use crate::{Result, Split};
use shardtool_format::DeletedRows;
use std::iter::FusedIterator;
use std::ops::Range;
use std::sync::Arc;

/// Iterates over the records of a shard, as ids in the split and rows in the shard: see [`Split::rows`].
#[derive(Debug, Clone)]
pub struct Rows {
    /// `None` if no row is deleted.
    deleted: Option<Arc<DeletedRows>>,
    /// Id of the first record.
    first: u64,
    /// The records that remain, counted from the first one of the shard.
    left: Range<u64>,
}

impl Iterator for Rows {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let n = self.left.next()?;
        let row = self.deleted.as_ref().map_or(Some(n), |deleted| deleted.live_row(n))?;
        Some((self.first + n, row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl FusedIterator for Rows {}

impl Split {
    /// Returns the records of a shard, each as its id in the split and its row in the shard, in order. Rows that the dataset's
    /// version has deleted are left out.
    ///
    /// # Errors
    /// [`crate::Error::NoShard`]; [`crate::Error::MissingCompanion`], [`crate::Error::CompanionCrc`],
    /// [`crate::Error::Bitmap`] for a bitmap that is absent or damaged: which rows are deleted is then unknown.
    pub fn rows(&self, number: usize) -> Result<Rows> {
        let records = self.starts().get(number + 1).map(|end| end - self.starts()[number]);
        let records = records.ok_or_else(|| self.no_shard(number))?;
        Ok(Rows { deleted: self.deleted_rows(number)?, first: self.starts()[number], left: 0..records })
    }

    /// Returns whether the records of a shard are those that its file holds: none is deleted, and no column takes the place of a
    /// feature.
    pub fn has_stored_records(&self, number: usize) -> bool {
        let shard = self.entry().shards.get(number);
        shard.is_none_or(|shard| shard.companions.is_empty()) && self.manifest().dropped_features().is_empty()
    }

    /// Returns the id of a row of a shard; `None` if it is deleted.
    ///
    /// # Errors
    /// As [`Split::rows`].
    pub fn id_of(&self, number: usize, row: u64) -> Result<Option<u64>> {
        let first = *self.starts().get(number).ok_or_else(|| self.no_shard(number))?;
        Ok(match self.deleted_rows(number)? {
            None => Some(first + row),
            Some(deleted) => deleted.rank(row).map(|before| first + before),
        })
    }

    /// Returns the deleted rows of a shard, read on their first use; `None` if there are none.
    ///
    /// # Errors
    /// As [`Split::rows`].
    pub fn deleted_rows(&self, number: usize) -> Result<Option<Arc<DeletedRows>>> {
        let entry = &self.entry().shards[number];
        let (Some(deleted), Some(known)) = (&entry.companions.deleted, self.known_deleted(number)) else {
            return Ok(None);
        };
        if let Some(rows) = known.get() {
            return Ok(Some(rows.clone()));
        }
        let rows = Arc::new(overlay::deleted_rows(self.companion_files(), deleted, entry.records)?);
        Ok(Some(known.get_or_init(|| rows).clone()))
    }

    /// Returns whether each record of a shard has exactly one value of a feature: its column has no null, but for deleted rows.
    ///
    /// # Errors
    /// As [`Split::rows`], and [`Shard::feature`](crate::Shard::feature).
    pub fn has_one_value_each(&self, number: usize, name: &str) -> Result<bool> {
        let shard = self.shard(number)?;
        if shard.is_stored_without_nulls(name) {
            return Ok(true);
        }
        let Some(validity) = shard.validity(name)? else { return Ok(false) };
        let Some(bits) = validity else { return Ok(true) };
        if self.entry().shards[number].companions.deleted.is_none() {
            return Ok(false);
        }
        Ok(self.rows(number)?.all(|(_, row)| bits[row as usize / 8] >> (row % 8) & 1 == 1))
    }
}
