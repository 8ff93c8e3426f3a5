//! One record.

use crate::partial_record::UncheckedValues;
use crate::{Result, Shard};
use shardtool_format::example::Example;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

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
    /// The canonical Example of the stored features and the columns of the version, made on its first use; `None` if the version has
    /// what is stored.
    composed: Option<OnceLock<Vec<u8>>>,
}

impl Record {
    pub(crate) fn new(shard: Arc<Shard>, row: u64, data: Range<usize>, buffer: Option<Vec<u8>>) -> Self {
        Record { shard, row, data, buffer, unchecked: vec![], composed: None }
    }

    /// Returns the record of the dataset's version: this one, or the canonical Example of its features with the columns of the
    /// version.
    ///
    /// # Errors
    /// As [`Record::example`] and [`Record::image`].
    pub(crate) fn of_version(self) -> Result<Self> {
        if !self.shard.is_changed() {
            return Ok(self);
        }
        // What is composed later has no errors.
        self.example()?;
        self.check_readable()?;
        Ok(Record { composed: Some(OnceLock::new()), ..self })
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

    /// Returns the data: a `tf.train.Example`, unless the dataset's records are opaque. Those of [`crate::Split::get`] are the record of
    /// the dataset's version, those of [`Shard::record`] the frame as it is stored. Bytes of a mapped file
    /// that cannot be read any more are zeros, or missing from what is composed, which [`Record::check_readable`] reports.
    pub fn data(&self) -> &[u8] {
        match &self.composed {
            None => self.stored(),
            Some(composed) => composed.get_or_init(|| {
                let mut data = vec![];
                // Fails only if bytes cannot be read any more.
                self.example().iter().for_each(|example| example.encode(&mut data));
                data
            }),
        }
    }

    pub(crate) fn stored(&self) -> &[u8] {
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
        let data = self.stored();
        let range = self.shard.image(self.row, data)?;
        // An image never begins at the first byte, where the tag of the Example's features is.
        Ok(if range.start == 0 { None } else { Some(&data[range]) })
    }

    /// Parses the record as an Example or, if the manifest requires it, as a SequenceExample.
    ///
    /// # Errors
    /// [`crate::Error::Record`] if it is not an Example.
    pub fn example(&self) -> Result<Example<'_>> {
        self.shard.parse(self.row, self.stored())
    }

    /// Parses the record as it is stored, without the columns of the version.
    pub(crate) fn stored_example(&self) -> Result<Example<'_>> {
        self.shard.parse_stored(self.row, self.stored())
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
        let composed = self.composed.as_ref().and_then(OnceLock::get);
        [self.buffer.as_ref(), composed].into_iter().flatten().map(|buffer| buffer.len() as u64).sum()
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
