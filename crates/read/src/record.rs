//! One record.

use crate::{Result, Shard};
use shardtool_format::example::Example;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// One record, its framing already checked. Its bytes borrow from the shard's mapping, or were read into memory of the
/// record's own.
#[derive(Debug)]
pub struct Record {
    shard: Arc<Shard>,
    row: u64,
    /// Where the data lies in the mapping, or in `buffer`.
    data: Range<usize>,
    buffer: Option<Vec<u8>>,
}

impl Record {
    pub(crate) fn new(shard: Arc<Shard>, row: u64, data: Range<usize>, buffer: Option<Vec<u8>>) -> Self {
        Record { shard, row, data, buffer }
    }

    /// The shard it lies in.
    pub fn shard(&self) -> &Arc<Shard> {
        &self.shard
    }

    /// Its row in the shard, from 0.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// The frame's data: for a dataset of images, a `tf.train.Example`.
    pub fn data(&self) -> &[u8] {
        let whole = match &self.buffer {
            Some(buffer) => buffer,
            None => self.shard.bytes().mapped().unwrap_or_default(),
        };
        &whole[self.data.clone()]
    }

    /// The image's bytes as stored; `None` where the record has none.
    ///
    /// # Errors
    /// [`crate::Error::Index`] for a damaged index; for bare files, what parsing the Example gives.
    pub fn image(&self) -> Result<Option<&[u8]>> {
        let data = self.data();
        let range = self.shard.image(self.row, data)?;
        Ok(if range.is_empty() { None } else { Some(&data[range]) })
    }

    /// The record as an Example.
    ///
    /// # Errors
    /// [`crate::Error::Record`] where it is none.
    pub fn example(&self) -> Result<Example<'_>> {
        Example::parse(self.data()).map_err(|e| self.shard.damage(self.row, e))
    }

    /// Its key.
    ///
    /// # Errors
    /// [`crate::Error::Index`].
    pub fn key(&self) -> Result<Cow<'_, [u8]>> {
        self.shard.key(self.row)
    }

    /// Gives back the memory that the record was read into, to be used again.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer.unwrap_or_default()
    }
}
