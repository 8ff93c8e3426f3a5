//! A file that holds a column, or the bitmap of deleted rows, of each of many shards; or the keys of purged records.

use crate::Error;
use crate::commit::unique;
use crate::place::{NewFile, Place};
use shardtool_format::checksum::crc32c;
use shardtool_format::index::ALIGNMENT;
use shardtool_format::manifest::{Deleted, FilePart};
use shardtool_format::{DeletedRows, names};
use shardtool_read::Split;
use std::path::{Path, PathBuf};

/// What the file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Columns,
    Deleted,
    PurgedKeys,
}

/// A file that is being written. It does not exist before its first part.
pub(super) struct PartsFile<'p, P: Place> {
    place: &'p P,
    name: String,
    /// `None` before the first part.
    file: Option<P::File>,
    bytes: u64,
}

impl<'p, P: Place> PartsFile<'p, P> {
    /// Prepares a file with a new name.
    pub(super) fn new(place: &'p P, holds: Holds) -> Self {
        let end = match holds {
            Holds::Columns => "columns",
            Holds::Deleted => "deleted",
            Holds::PurgedKeys => "purged",
        };
        PartsFile { place, name: format!("{}.{end}", unique()), file: None, bytes: 0 }
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns its length so far, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a part at the next multiple of 64.
    ///
    /// # Errors
    /// [`DestinationError::Link`](crate::DestinationError), [`Error::Io`].
    pub(super) fn add(&mut self, part: &[u8]) -> Result<FilePart, Error> {
        let offset = self.bytes.next_multiple_of(ALIGNMENT);
        if self.file.is_none() {
            self.place.create_folder(Path::new(names::COLUMNS_FOLDER))?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let path = Path::new(names::COLUMNS_FOLDER).join(&self.name);
                self.file.insert(self.place.create(&path)?)
            }
        };
        file.write(&vec![0; (offset - self.bytes) as usize])?;
        file.write(part)?;
        self.bytes = offset + part.len() as u64;
        Ok(FilePart { file: self.name.clone(), offset, bytes: part.len() as u64, crc32c: crc32c(part) })
    }

    /// Appends the bitmap of a shard in which further rows are deleted.
    ///
    /// # Errors
    /// Those of [`PartsFile::add`]; [`Error::Read`] if the rows that are deleted already cannot be read.
    pub(super) fn add_deleted(&mut self, split: &Split, number: usize, rows: &[u64]) -> Result<Deleted, Error> {
        let records = split.entry().shards[number].records;
        let rows = rows.iter().copied();
        let after = match split.deleted_rows(number)? {
            Some(before) => before.with(rows),
            None => DeletedRows::none(records).with(rows),
        };
        Ok(Deleted { rows: records - after.live_rows(), bitmap: self.add(after.as_bytes())? })
    }

    /// Makes the file durable under its name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        if let Some(file) = self.file.take() {
            file.publish()?;
            self.place.sync(Path::new(names::COLUMNS_FOLDER))?;
            self.place.sync(Path::new(""))?;
        }
        Ok(())
    }

    /// Returns its path in the dataset.
    pub(super) fn path(&self) -> PathBuf {
        Path::new(names::COLUMNS_FOLDER).join(&self.name)
    }
}
