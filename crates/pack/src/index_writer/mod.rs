//! Makes the index of a shard from its records. `pack`, `adopt`, `repair` and `reshard` all use it, so that the same
//! records always give the same index.

mod features;
mod ranges;
mod rows;
mod scalars;
mod virtual_rows;

use crate::Error;
use crate::error::ShardError;
use crate::virtual_source::FrameRange;
use features::FeatureColumns;
use rows::ByteRows;
use sha2::Digest;
use shardtool_format::checksum::{Sha256, combine, crc32c};
use shardtool_format::example::{Example, Message, range_within};
use shardtool_format::index::{self, Builder};
use shardtool_format::manifest::{DType, FeatureType, Manifest, Shard};
use shardtool_format::{frame, names};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use virtual_rows::VirtualRows;

/// What a shard's records hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// `tf.train.Example`s or `tf.train.SequenceExample`s; the image, if any, is the single value of the feature `image`.
    Examples {
        /// Which of the two.
        message: Message,
        /// Name of the image's feature.
        image: Option<String>,
        /// The features of logical types, which are byte strings in records.
        logical: BTreeMap<String, DType>,
    },
    /// Bytes of an unknown format, without features or images. Readers deliver the whole record.
    Opaque,
}

/// What is written about a shard beyond what is always written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexOptions {
    /// Writes the column `jpeg_entries`.
    pub entry_points: bool,
    /// Computes the SHA-256 of the shard for the manifest.
    pub sha256: bool,
}

/// Returns the path of a file with the records of an index.
type ShardFile<'a> = &'a mut dyn FnMut() -> Result<PathBuf, Error>;

/// Collects the columns of one shard's index from its records.
pub struct IndexWriter {
    file: String,
    payload: Payload,
    shard_bytes: u64,
    shard_crc: u32,
    sha256: Option<sha2::Sha256>,
    record_offsets: Vec<u64>,
    image_offsets: Vec<u32>,
    image_lengths: Vec<u32>,
    keys: ByteRows,
    features: FeatureColumns,
    /// The column `jpeg_entries`, if it is written.
    entry_points: Option<ByteRows>,
    /// Where the bytes of the records lie, if the shard is virtual.
    virtual_rows: Option<VirtualRows>,
}

impl fmt::Debug for IndexWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexWriter").finish_non_exhaustive()
    }
}

/// The index of a whole shard, and what its records have in common.
#[non_exhaustive]
#[derive(Debug)]
pub struct Indexed {
    /// The index as bytes.
    pub index: Vec<u8>,
    /// The shard's line in the manifest.
    pub shard: Shard,
    /// Features that occur, with their type and the first record that has them; in byte order of names.
    pub features: Vec<(String, DType, u64)>,
}

impl IndexWriter {
    /// Begins the index of the shard with this file name.
    pub fn new(file: &str, payload: Payload, options: IndexOptions) -> Self {
        IndexWriter {
            file: file.to_owned(),
            payload,
            shard_bytes: 0,
            shard_crc: 0,
            sha256: options.sha256.then(sha2::Sha256::new),
            record_offsets: vec![],
            image_offsets: vec![],
            image_lengths: vec![],
            keys: ByteRows::default(),
            features: FeatureColumns::default(),
            entry_points: options.entry_points.then(ByteRows::default),
            virtual_rows: None,
        }
    }

    /// Begins the index of a virtual shard, to which [`IndexWriter::push_virtual`] adds records.
    pub(crate) fn new_virtual(file: &str, payload: Payload, options: IndexOptions) -> Self {
        let features = FeatureColumns::with_all_ranges();
        IndexWriter { features, virtual_rows: Some(VirtualRows::default()), ..IndexWriter::new(file, payload, options) }
    }

    /// Returns the number of records so far.
    pub fn records(&self) -> u64 {
        self.record_offsets.len() as u64
    }

    /// Adds a record: its data and their (unmasked) CRC32C. Returns the Example, unless records are opaque.
    ///
    /// # Errors
    /// [`ShardError::Record`] if it is not an Example, [`ShardError::TooLong`], [`ShardError::FeatureType`].
    pub fn push<'a>(&mut self, data: &'a [u8], data_crc: u32) -> Result<Option<Example<'a>>, Error> {
        self.take(data, data_crc, shardtool_decode::entry_points)
    }

    /// Adds a record whose entry points are known.
    pub(crate) fn push_with_entries(&mut self, data: &[u8], data_crc: u32, entries: Vec<u8>) -> Result<(), Error> {
        self.take(data, data_crc, |_| entries).map(drop)
    }

    /// Adds a record to a virtual shard, given its frame, the CRC of its data, its entry points, and where its bytes lie.
    ///
    /// # Errors
    /// As [`IndexWriter::push`].
    pub(crate) fn push_virtual(
        &mut self,
        frame: &[u8],
        data_crc: u32,
        entries: Vec<u8>,
        ranges: &[FrameRange],
    ) -> Result<(), Error> {
        let data = &frame[frame::HEADER_BYTES..frame.len() - frame::FOOTER_BYTES];
        self.push_with_entries(data, data_crc, entries)?;
        if let Some(rows) = &mut self.virtual_rows {
            rows.push(frame, ranges);
        }
        Ok(())
    }

    fn take<'a>(
        &mut self,
        data: &'a [u8],
        data_crc: u32,
        entry_points: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<Option<Example<'a>>, Error> {
        let record = self.records();
        if u32::try_from(data.len()).is_err() {
            let (shard, bytes) = (self.file.clone(), data.len() as u64);
            return Err(Error::Shard(ShardError::TooLong { shard, record, bytes }));
        }
        let example = self.payload.parse(data).map_err(|source| self.malformed(record, source))?;
        let image = match (&self.payload, &example) {
            (Payload::Examples { image: Some(name), .. }, Some(example)) => example.bytes(name),
            _ => None,
        };
        let range = image.and_then(|image| range_within(data, image)).unwrap_or(0..0);
        self.image_offsets.push(range.start as u32);
        self.image_lengths.push(range.len() as u32);
        self.keys.push(&names::key_of(example.as_ref(), &self.file, record));
        if let Some(column) = &mut self.entry_points {
            column.push(&image.map(entry_points).unwrap_or_default());
        }
        if let Some(example) = &example {
            self.features.push(record, data, example, &self.file)?;
        }
        self.record_offsets.push(self.shard_bytes);
        self.append(&frame::header(data.len() as u64), None);
        self.append(data, Some(data_crc));
        self.append(&frame::footer(data_crc), None);
        Ok(example)
    }

    fn malformed(&self, record: u64, source: shardtool_format::Error) -> Error {
        Error::Shard(ShardError::Record { shard: self.file.clone(), record, source })
    }

    /// Adds bytes to the shard's length, CRC and SHA-256.
    fn append(&mut self, bytes: &[u8], crc: Option<u32>) {
        let crc = crc.unwrap_or_else(|| crc32c(bytes));
        self.shard_crc = combine(self.shard_crc, crc, bytes.len() as u64);
        self.shard_bytes += bytes.len() as u64;
        if let Some(digest) = &mut self.sha256 {
            digest.update(bytes);
        }
    }

    /// Returns the index of all records. `shard` is a file with exactly these records; it is read again if a feature has
    /// two values in a record and one in an earlier one, and needs value ranges.
    ///
    /// # Errors
    /// [`Error::Io`], [`ShardError::Record`].
    pub fn finish(self, shard: &Path) -> Result<Indexed, Error> {
        self.finish_with(&mut || Ok(shard.to_owned()))
    }

    /// As [`Self::finish`]. `shard` is called if the file is read again.
    pub(crate) fn finish_with(self, shard: ShardFile<'_>) -> Result<Indexed, Error> {
        let records = self.records();
        let mut index = Builder::new(records, self.shard_bytes, self.shard_crc);
        // Each column is freed once the builder has it.
        index.fixed(index::RECORD_OFFSET, &{ self.record_offsets });
        index.fixed(index::IMAGE_OFFSET, &{ self.image_offsets });
        index.fixed(index::IMAGE_LENGTH, &{ self.image_lengths });
        index.variable(index::KEY, { self.keys }.iter());
        let features = self.features.finish(records, &mut index, &self.payload, shard)?;
        if let Some(column) = self.entry_points {
            index.variable(index::JPEG_ENTRIES, column.iter());
        }
        if let Some(rows) = self.virtual_rows {
            rows.finish(&mut index);
        }
        let index = index.finish();
        let shard = Shard {
            file: self.file,
            records,
            bytes: self.shard_bytes,
            crc32c: self.shard_crc,
            index_bytes: index.len() as u64,
            index_crc32c: crc32c(&index),
            sha256: self.sha256.map(|digest| Sha256(digest.finalize().into())),
            companions: Default::default(),
            foreign: Default::default(),
        };
        Ok(Indexed { index, shard, features })
    }
}

/// Returns the features of logical types.
pub(crate) fn logical(features: &[FeatureType]) -> BTreeMap<String, DType> {
    let logical = features.iter().filter(|feature| feature.dtype.is_logical());
    logical.map(|feature| (feature.name.clone(), feature.dtype)).collect()
}

impl Payload {
    /// Returns the payload of a dataset's records.
    pub(crate) fn of(manifest: &Manifest) -> Self {
        match manifest.is_opaque() {
            true => Payload::Opaque,
            false => {
                let (message, image) = (manifest.message(), manifest.image.clone());
                Payload::Examples { message, image, logical: logical(&manifest.features) }
            }
        }
    }

    /// Parses a record's data; `None` if records are opaque.
    ///
    /// # Errors
    /// [`shardtool_format::Error::MalformedExample`].
    pub(crate) fn parse<'a>(&self, data: &'a [u8]) -> shardtool_format::Result<Option<Example<'a>>> {
        match self {
            Payload::Opaque => Ok(None),
            Payload::Examples { message, .. } => message.parse(data).map(Some),
        }
    }

    /// Returns the type of a feature that records have with the type `stored`.
    fn dtype(&self, feature: &str, stored: DType) -> DType {
        match self {
            Payload::Examples { logical, .. } => logical.get(feature).copied(),
            Payload::Opaque => None,
        }
        .filter(|logical| logical.stored() == stored)
        .unwrap_or(stored)
    }
}
