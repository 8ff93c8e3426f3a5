//! An image becomes a record: read once, looked at, and framed as an Example.

use crate::optimize::{Optimizer, Outcome};
use crate::pixels::{Stored, Storing};
use crate::source::archive::Packed;
use crate::source::{Described, Entry, Listing, Values};
use crate::{JpegLayout, Options, Reason};
use shardtool_decode as decode;
use shardtool_format::example::{self, Column};
use shardtool_format::manifest::{FeatureType, Kind};
use shardtool_format::{checksum, frame, names};
use std::fs::File;
use std::io::Read;

/// Features of every record, besides the source's own columns.
const ALWAYS: [(&str, Kind); 8] = [
    (names::IMAGE_CHANNELS, Kind::Int64),
    (names::IMAGE_ENCODED, Kind::Bytes),
    (names::IMAGE_FILENAME, Kind::Bytes),
    (names::IMAGE_FORMAT, Kind::Bytes),
    (names::IMAGE_HEIGHT, Kind::Int64),
    (names::IMAGE_KEY, Kind::Bytes),
    (names::IMAGE_ORIENTATION, Kind::Int64),
    (names::IMAGE_WIDTH, Kind::Int64),
];
/// Features of records with a class.
const LABELLED: [(&str, Kind); 2] = [(names::CLASS_LABEL, Kind::Int64), (names::CLASS_TEXT, Kind::Bytes)];

/// Whether records have a feature of this name without a source's doing.
pub(crate) fn is_written(name: &str) -> bool {
    ALWAYS.iter().chain(&LABELLED).any(|(written, _)| *written == name)
}

/// The features of a source's records, in byte order of their names.
pub(crate) fn features(described: &Described) -> Vec<FeatureType> {
    let labelled = LABELLED.iter().filter(|(name, _)| match *name {
        names::CLASS_TEXT => described.labelled && !described.classes.is_empty(),
        _ => described.labelled,
    });
    let fixed = ALWAYS.iter().chain(labelled).map(|(name, kind)| ((*name).to_owned(), *kind));
    let all = fixed.chain(described.columns.iter().cloned());
    let mut features: Vec<_> = all.map(|(name, kind)| FeatureType { name, kind }).collect();
    features.sort_by(|a, b| a.name.cmp(&b.name));
    features
}

/// A record, framed.
pub(crate) struct Record {
    /// The frame: length, its CRC, data, its CRC.
    pub(crate) frame: Vec<u8>,
    /// CRC32C of the data.
    pub(crate) data_crc: u32,
    /// Entry points of its image, if they are asked for.
    pub(crate) entries: Vec<u8>,
    /// What a better layout did to its image.
    pub(crate) outcome: Outcome,
}

/// A record's data, without the frame.
pub(crate) fn data(frame: &[u8]) -> &[u8] {
    &frame[frame::HEADER_BYTES..frame.len() - frame::FOOTER_BYTES]
}

/// Makes records on one thread; its buffers are used again for every image.
pub(crate) struct RecordWriter<'a> {
    described: &'a Described,
    options: &'a Options,
    file: Vec<u8>,
    storing: Storing,
    optimizer: Option<Optimizer>,
}

/// A sample, but for its image.
struct Fields<'a> {
    key: &'a str,
    label: Option<i64>,
    values: &'a [Values],
}

impl<'a> RecordWriter<'a> {
    pub(crate) fn new(described: &'a Described, options: &'a Options) -> Self {
        let optimizer = (options.jpeg == JpegLayout::Optimize).then(Optimizer::new);
        RecordWriter { described, options, file: vec![], storing: Storing::default(), optimizer }
    }

    /// The record of a listing's entry, framed into `buffer`.
    ///
    /// # Errors
    /// Why the entry cannot be packed.
    pub(crate) fn file(&mut self, listing: &Listing, entry: &Entry, buffer: Vec<u8>) -> Result<Record, Reason> {
        self.read(listing, entry)?;
        let file = std::mem::take(&mut self.file);
        let fields = Fields { key: &entry.key, label: entry.label, values: &entry.values };
        let record = self.record(&fields, &file, buffer);
        self.file = file;
        record
    }

    /// The record of an archive's sample and its image's file, framed into `buffer`.
    ///
    /// # Errors
    /// Why the sample cannot be packed.
    pub(crate) fn sample(&mut self, sample: Packed, image: &[u8], buffer: Vec<u8>) -> Result<Record, Reason> {
        let fields = Fields { key: &sample.key, label: sample.label, values: &sample.values };
        self.record(&fields, image, buffer)
    }

    fn record(&mut self, fields: &Fields<'_>, image: &[u8], mut buffer: Vec<u8>) -> Result<Record, Reason> {
        if image.is_empty() {
            return Err(Reason::Empty);
        }
        let info = decode::probe(image, &self.options.limits)?;
        decode::check_complete(image)?;
        let stored = self.storing.store(image, &info, self.options)?;
        let (stored, outcome) = match &mut self.optimizer {
            Some(optimizer) => optimizer.optimize(stored),
            None => (stored, Outcome::Other),
        };
        let entries = self.options.entry_points.map(|find| find(stored.bytes)).unwrap_or_default();
        buffer.clear();
        buffer.resize(frame::HEADER_BYTES, 0);
        encode(self.described, fields, &stored, &mut buffer);
        let (header, data) = buffer.split_at_mut(frame::HEADER_BYTES);
        if u32::try_from(data.len()).is_err() {
            return Err(Reason::TooLong { bytes: stored.bytes.len() as u64 });
        }
        header.copy_from_slice(&frame::header(data.len() as u64));
        let data_crc = checksum::crc32c(data);
        buffer.extend_from_slice(&frame::footer(data_crc));
        Ok(Record { frame: buffer, data_crc, entries, outcome })
    }

    /// Reads the entry's file, which must be as long as it was when it was listed.
    fn read(&mut self, listing: &Listing, entry: &Entry) -> Result<(), Reason> {
        if entry.size == 0 {
            return Err(Reason::Empty);
        }
        let file = File::open(listing.path(entry)).map_err(Reason::of_stat)?;
        self.file.clear();
        self.file.reserve(usize::try_from(entry.size).map_err(|_| Reason::TooLong { bytes: entry.size })? + 1);
        file.take(entry.size + 1).read_to_end(&mut self.file).map_err(Reason::Unreadable)?;
        match self.file.len() as u64 {
            found if found != entry.size => Err(Reason::Changed { listed: entry.size, found }),
            _ => Ok(()),
        }
    }
}

/// Appends the sample's Example.
fn encode(described: &Described, fields: &Fields<'_>, stored: &Stored<'_>, out: &mut Vec<u8>) {
    let key = fields.key.as_bytes();
    let filename = fields.key.rsplit('/').next().unwrap_or_default().as_bytes();
    let numbers = [stored.channels, stored.height, stored.orientation, stored.width].map(i64::from);
    let label = fields.label.unwrap_or_default();
    let class = usize::try_from(label).ok().and_then(|id| described.classes.get(id)).map_or("", String::as_str);
    let lists: Vec<Vec<&[u8]>> = fields.values.iter().map(Values::byte_strings).collect();
    let (encoded, format) = ([stored.bytes], [stored.format.name().as_bytes()]);
    let (text, filename, key) = ([class.as_bytes()], [filename], [key]);
    let mut features = vec![
        (names::IMAGE_CHANNELS, Column::Int64(&numbers[0..1])),
        (names::IMAGE_ENCODED, Column::Bytes(&encoded)),
        (names::IMAGE_FILENAME, Column::Bytes(&filename)),
        (names::IMAGE_FORMAT, Column::Bytes(&format)),
        (names::IMAGE_HEIGHT, Column::Int64(&numbers[1..2])),
        (names::IMAGE_KEY, Column::Bytes(&key)),
        (names::IMAGE_ORIENTATION, Column::Int64(&numbers[2..3])),
        (names::IMAGE_WIDTH, Column::Int64(&numbers[3..4])),
    ];
    let label = [label];
    if fields.label.is_some() {
        features.push((names::CLASS_LABEL, Column::Int64(&label)));
    }
    if fields.label.is_some() && !described.classes.is_empty() {
        features.push((names::CLASS_TEXT, Column::Bytes(&text)));
    }
    for (((name, kind), values), list) in described.columns.iter().zip(fields.values).zip(&lists) {
        features.push((name, values.column(*kind, list)));
    }
    example::encode(&mut features, out);
}
