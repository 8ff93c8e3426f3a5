//! Makes the index of a shard from its records. `pack`, `adopt`, `repair` and `reshard` all use it, so that the same
//! records always give the same index.

use crate::Error;
use crate::error::ShardError;
use shardtool_format::checksum::{combine, crc32c};
use shardtool_format::example::{Example, Feature, range_within};
use shardtool_format::index::{self, Builder};
use shardtool_format::manifest::{Kind, Shard};
use shardtool_format::{frame, names};

/// What a shard's records hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// `tf.train.Example`s; the image, if any, is the single value of the feature `image`.
    Examples {
        /// Name of the image's feature.
        image: Option<String>,
    },
    /// Bytes of an unknown format, without features or images. Readers deliver the whole record.
    Opaque,
}

/// Collects the columns of one shard's index from its records.
pub struct IndexWriter {
    file: String,
    payload: Payload,
    shard_bytes: u64,
    shard_crc: u32,
    record_offsets: Vec<u64>,
    image_offsets: Vec<u32>,
    image_lengths: Vec<u32>,
    keys: BytesColumn,
    /// In byte order of their names.
    features: Vec<FeatureColumn>,
    /// The column `jpeg_entries`, if it is written.
    entry_points: Option<BytesColumn>,
}

/// The index of a whole shard, and what its records have in common.
#[non_exhaustive]
pub struct Indexed {
    /// The index as bytes.
    pub index: Vec<u8>,
    /// The shard's line in the manifest.
    pub shard: Shard,
    /// Features that occur, with their type and the first record that has them; in byte order of names.
    pub features: Vec<(String, Kind, u64)>,
}

/// A column of byte strings.
#[derive(Default)]
struct BytesColumn {
    ends: Vec<u64>,
    bytes: Vec<u8>,
}

impl BytesColumn {
    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len() as u64);
    }
}

/// A feature that occurred.
struct FeatureColumn {
    name: String,
    kind: Kind,
    first_record: u64,
    numbers: Scalars,
}

/// The numbers of a feature, as long as every record has exactly one.
enum Scalars {
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Other,
}

impl IndexWriter {
    /// Begins the index of the shard with this file name. With `entry_points`, it gets the column `jpeg_entries`.
    pub fn new(file: &str, payload: Payload, entry_points: bool) -> Self {
        IndexWriter {
            file: file.to_owned(),
            payload,
            shard_bytes: 0,
            shard_crc: 0,
            record_offsets: vec![],
            image_offsets: vec![],
            image_lengths: vec![],
            keys: BytesColumn::default(),
            features: vec![],
            entry_points: entry_points.then(BytesColumn::default),
        }
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

    fn take<'a>(
        &mut self,
        data: &'a [u8],
        data_crc: u32,
        entry_points: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<Option<Example<'a>>, Error> {
        let record = self.records();
        let example = match &self.payload {
            Payload::Opaque => None,
            Payload::Examples { .. } => Some(
                Example::parse(data)
                    .map_err(|source| Error::Shard(ShardError::Record { shard: self.file.clone(), record, source }))?,
            ),
        };
        let image = match (&self.payload, &example) {
            (Payload::Examples { image: Some(name) }, Some(example)) => example.bytes(name),
            _ => None,
        };
        let range = image.and_then(|image| range_within(data, image)).unwrap_or(0..0);
        let long = |_| Error::Shard(ShardError::TooLong { shard: self.file.clone(), record, bytes: data.len() as u64 });
        self.image_offsets.push(u32::try_from(range.start).map_err(long)?);
        self.image_lengths.push(u32::try_from(range.len()).map_err(long)?);
        self.keys.push(&names::key_of(example.as_ref(), &self.file, record));
        if let Some(column) = &mut self.entry_points {
            column.push(&image.map(entry_points).unwrap_or_default());
        }
        if let Some(example) = &example {
            self.observe(record, example)?;
        }
        self.record_offsets.push(self.shard_bytes);
        self.append(&frame::header(data.len() as u64), None);
        self.append(data, Some(data_crc));
        self.append(&frame::footer(data_crc), None);
        Ok(example)
    }

    /// Adds bytes to the shard's length and CRC.
    fn append(&mut self, bytes: &[u8], crc: Option<u32>) {
        let crc = crc.unwrap_or_else(|| crc32c(bytes));
        self.shard_crc = combine(self.shard_crc, crc, bytes.len() as u64);
        self.shard_bytes += bytes.len() as u64;
    }

    fn observe(&mut self, record: u64, example: &Example<'_>) -> Result<(), Error> {
        for (i, (name, feature)) in example.features().iter().enumerate() {
            let kind = match feature {
                Feature::Empty => continue,
                Feature::Bytes(_) => Kind::Bytes,
                Feature::Float(_) => Kind::Float,
                Feature::Int64(_) => Kind::Int64,
            };
            // Records mostly have the same features, so each feature is usually where it was before.
            let at = match self.features.get(i) {
                Some(seen) if seen.name == *name => i,
                _ => match self.features.binary_search_by_key(name, |seen| &seen.name) {
                    Ok(at) => at,
                    Err(at) => {
                        let numbers = Scalars::new(kind);
                        let seen = FeatureColumn { name: (*name).to_owned(), kind, first_record: record, numbers };
                        self.features.insert(at, seen);
                        at
                    }
                },
            };
            let seen = &mut self.features[at];
            if seen.kind != kind {
                return Err(Error::Shard(ShardError::FeatureType {
                    feature: seen.name.clone(),
                    first: (self.file.clone(), seen.first_record, seen.kind),
                    second: (self.file.clone(), record, kind),
                }));
            }
            seen.numbers.push(record, feature);
        }
        Ok(())
    }

    /// Returns the index of all records.
    pub fn finish(self) -> Indexed {
        let records = self.records();
        let mut index = Builder::new(records, self.shard_bytes, self.shard_crc);
        index.fixed(index::RECORD_OFFSET, &self.record_offsets);
        index.fixed(index::IMAGE_OFFSET, &self.image_offsets);
        index.fixed(index::IMAGE_LENGTH, &self.image_lengths);
        index.variable(index::KEY, &self.keys.ends, self.keys.bytes);
        for seen in &self.features {
            let column = format!("{}{}", index::FEATURE_PREFIX, seen.name);
            match &seen.numbers {
                Scalars::Int64(values) if values.len() as u64 == records => index.fixed(&column, values),
                Scalars::Float(values) if values.len() as u64 == records => index.fixed(&column, values),
                _ => continue,
            };
        }
        if let Some(column) = self.entry_points {
            index.variable(index::JPEG_ENTRIES, &column.ends, column.bytes);
        }
        let index = index.finish();
        let shard = Shard {
            file: self.file,
            records,
            bytes: self.shard_bytes,
            crc32c: self.shard_crc,
            index_bytes: index.len() as u64,
            index_crc32c: crc32c(&index),
        };
        let features = self.features.into_iter().map(|seen| (seen.name, seen.kind, seen.first_record)).collect();
        Indexed { index, shard, features }
    }
}

impl Scalars {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Int64 => Scalars::Int64(vec![]),
            Kind::Float => Scalars::Float(vec![]),
            Kind::Bytes => Scalars::Other,
        }
    }

    /// Adds the feature's number in `record`. A record with no number, or several, ends the column.
    fn push(&mut self, record: u64, feature: &Feature<'_>) {
        match (&mut *self, feature) {
            (Scalars::Int64(values), Feature::Int64(list)) if values.len() as u64 == record => match list.single() {
                Some(value) => values.push(value),
                None => *self = Scalars::Other,
            },
            (Scalars::Float(values), Feature::Float(list)) if values.len() as u64 == record => match list.single() {
                Some(value) => values.push(value),
                None => *self = Scalars::Other,
            },
            _ => *self = Scalars::Other,
        }
    }
}
