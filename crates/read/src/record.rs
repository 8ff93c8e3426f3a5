//! One record.

use crate::partial_record::UncheckedValues;
use crate::{Result, Shard};
use shardtool_format::example::Example;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// One record whose framing has been checked. Its bytes lie in the shard's mapping, which a clone shares, or in a buffer of the
/// record, which a clone copies.
#[derive(Debug, Clone)]
pub struct Record {
    shard: Arc<Shard>,
    row: u64,
    /// Range of the data in the mapping, or in `buffer`.
    data: Range<usize>,
    buffer: Option<Vec<u8>>,
    /// The values that were not checked with the record.
    unchecked: Vec<UncheckedValues>,
}

impl Record {
    pub(crate) fn new(shard: Arc<Shard>, row: u64, data: Range<usize>, buffer: Option<Vec<u8>>) -> Self {
        Record { shard, row, data, buffer, unchecked: vec![] }
    }

    /// Adds the values that were not checked.
    pub(crate) fn with_unchecked(self, unchecked: Vec<UncheckedValues>) -> Self {
        Record { unchecked, ..self }
    }

    pub(crate) fn unchecked(&self) -> &[UncheckedValues] {
        &self.unchecked
    }

    /// Returns where the data begins in the shard, if the record is mapped.
    pub(crate) fn start_in_shard(&self) -> u64 {
        self.data.start as u64
    }

    /// Returns the shard of the record.
    pub fn shard(&self) -> &Arc<Shard> {
        &self.shard
    }

    /// Returns the row in the shard, from 0.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// Returns the frame's data: a `tf.train.Example`, unless the dataset's records are opaque. Bytes of a mapped file
    /// that cannot be read any more are zeros, which [`Record::check_readable`] reports.
    pub fn data(&self) -> &[u8] {
        let whole = match &self.buffer {
            Some(buffer) => buffer,
            None => self.shard.bytes().mapped().unwrap_or_default(),
        };
        &whole[self.data.clone()]
    }

    /// Returns the image's bytes as stored, which may be none; `None` if the record has no image.
    ///
    /// # Errors
    /// [`crate::Error::Index`] or [`crate::Error::IndexMismatch`] for a damaged index; for bare files, those of
    /// [`Record::example`].
    pub fn image(&self) -> Result<Option<&[u8]>> {
        let data = self.data();
        let range = self.shard.image(self.row, data)?;
        // An image never begins at the first byte, where the tag of the Example's features is.
        Ok(if range.start == 0 { None } else { Some(&data[range]) })
    }

    /// Parses the record as an Example or, if the manifest requires it, as a SequenceExample.
    ///
    /// # Errors
    /// [`crate::Error::Record`] if it is not an Example.
    pub fn example(&self) -> Result<Example<'_>> {
        self.shard.parse(self.row, self.data())
    }

    /// Returns the key.
    ///
    /// # Errors
    /// [`crate::Error::Index`].
    pub fn key(&self) -> Result<Cow<'_, [u8]>> {
        self.shard.key(self.row)
    }

    /// Returns an error if bytes of a mapped record, or of its shard's index, could not be read since the record was made:
    /// what was computed from them may be wrong. Call it after their last use.
    ///
    /// # Errors
    /// [`crate::Error::Unreadable`]. [`Shard::record`] then reads the record without the mapping.
    pub fn check_readable(&self) -> Result<()> {
        if self.buffer.is_none() {
            let range = self.data.start as u64..self.data.end as u64;
            self.shard.bytes().check_readable(range).map_err(|error| self.shard.unreadable(self.row, error))?;
        }
        self.shard.check_index_readable()
    }

    /// Returns the bytes of memory that the record occupies; 0 if it is mapped.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len() as u64)
    }

    /// Returns the buffer that the record was read into, for reuse with [`crate::Split::get_with`]. It is empty if the
    /// record is mapped.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer.unwrap_or_default()
    }
}

impl AsRef<[u8]> for Record {
    /// As [`Record::data`].
    fn as_ref(&self) -> &[u8] {
        self.data()
    }
}
