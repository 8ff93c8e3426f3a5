//! The rows of a shard that are records of the split: those that are not deleted.

use crate::overlay;
use crate::{Error, Result, Split};
use shardtool_format::DeletedRows;
use std::iter::FusedIterator;
use std::ops::Range;
use std::sync::Arc;

/// Iterates over the records of a shard, as ids in the split and rows in the shard: see [`Split::rows`].
#[derive(Debug, Clone)]
pub struct Rows {
    /// `None` if no row is deleted.
    deleted: Option<Arc<DeletedRows>>,
    /// The row of the next record, or one before it that is deleted.
    row: u64,
    /// The ids of the records that remain.
    ids: Range<u64>,
}

impl Iterator for Rows {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let id = self.ids.next()?;
        while self.deleted.as_ref().is_some_and(|deleted| deleted.contains(self.row)) {
            self.row += 1;
        }
        self.row += 1;
        Some((id, self.row - 1))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ids.size_hint()
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
        let end = *self.starts().get(number + 1).ok_or_else(|| self.no_shard(number))?;
        Ok(Rows { deleted: self.deleted_rows(number)?, row: 0, ids: self.starts()[number]..end })
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
        let read = |deleted| overlay::deleted_rows(self.companion_files(), deleted, entry.records);
        let rows = read(deleted)?;
        // What is deleted is in no view of its split.
        if let Some(of_split) = &entry.companions.of_split
            && !rows.contains_all(&read(of_split)?)
        {
            let problem = "a view has a row that its split has deleted".to_owned();
            let path = self.companion_files().path(&deleted.bitmap);
            return Err(Error::Bitmap { path, source: shardtool_format::Error::BitmapValue { problem } });
        }
        let rows = Arc::new(rows);
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
        let Some(deleted) = self.deleted_rows(number)? else { return Ok(false) };
        let records = self.entry().shards[number].records;
        let used = |byte: usize| u8::MAX >> (8 * (byte as u64 + 1)).saturating_sub(records);
        Ok(bits
            .iter()
            .zip(deleted.as_bytes())
            .enumerate()
            .all(|(byte, (valid, deleted))| (valid | deleted) & used(byte) == used(byte)))
    }
}
