//! Makes records: reads an image once, checks it, encodes the sample as an Example, and frames it.

mod attached_images;
mod clip;
pub(crate) mod conversion;
pub(crate) mod image;
pub(crate) mod optimize;
pub(crate) mod origins;

use crate::input::{self, place};
use crate::known_images::KnownImage;
use crate::metadata;
use crate::sample::{FORMAT_SUFFIX, ResolvedSample, SampleSchema, Values};
use crate::source::archive::sample::StoredValue;
use crate::source::coordinates::{self, ImageSizes};
use crate::source::{Entry, Listing};
use crate::virtual_source::{FrameRange, SourceName};
use crate::{JpegLayout, Options, Reason};
use clip::ClipFrames;
use image::{ImageConverter, PixelArray, StoredImage};
use optimize::{Optimizer, Outcome};
use origins::{Origin, frame_ranges};
use shardtool_decode as decode;
use shardtool_format::checksum::combine;
use shardtool_format::example::{self, Column, Example, range_within};
use shardtool_format::{checksum, frame, names};
use shardtool_store::is_url;
use std::borrow::Cow;
use std::io;
use std::ops::BitOrAssign;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A framed record.
pub(crate) struct Record {
    /// The frame: length, its CRC, data, its CRC.
    pub(crate) frame: Vec<u8>,
    /// CRC32C of the data.
    pub(crate) data_crc: u32,
    /// Entry points of its image, if requested.
    pub(crate) entries: Vec<u8>,
    /// Bytes of source files, if the shard is virtual.
    pub(crate) ranges: Vec<FrameRange>,
    /// How its image was transcoded.
    pub(crate) outcome: Outcome,
    /// What is counted of its images.
    pub(crate) counted: Counted,
}

/// What is counted of the images of a record: its own, frames, and files of other features.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    /// Whether its image or a frame is cut or damaged.
    pub(crate) truncated: bool,
    /// Whether one was converted to PNG, because its format is not stored.
    pub(crate) converted: bool,
    /// Whether metadata was removed from one.
    pub(crate) stripped: bool,
    /// Whether its image lost bits or alpha.
    pub(crate) reduced: bool,
}

impl BitOrAssign for Counted {
    fn bitor_assign(&mut self, other: Counted) {
        self.truncated |= other.truncated;
        self.converted |= other.converted;
        self.stripped |= other.stripped;
        self.reduced |= other.reduced;
    }
}

/// Returns a record's data, without the frame.
pub(crate) fn data(frame: &[u8]) -> &[u8] {
    &frame[frame::HEADER_BYTES..frame.len() - frame::FOOTER_BYTES]
}

/// Makes records on one thread, reusing its buffers.
pub(crate) struct RecordWriter<'a> {
    schema: &'a SampleSchema,
    options: &'a Options,
    file: Vec<u8>,
    storing: ImageConverter,
    optimizer: Option<Optimizer>,
}

/// The image of a record.
#[derive(Clone, Copy)]
pub(crate) enum Image<'a> {
    /// No image.
    None,
    /// The bytes of an image file.
    File(&'a [u8]),
    /// A file that was not read: as many bytes, and what is known of them.
    Known(&'a [u8], KnownImage<'a>),
    /// Decoded pixels.
    Pixels(PixelArray<'a>),
}

/// A sample without its image.
struct Fields<'a> {
    key: &'a str,
    /// The name of the image's file; `None` if the key ends with it.
    filename: Option<&'a str>,
    /// The name by which the image's format is detected, if it is another one.
    image_name: Option<&'a str>,
    label: Option<i64>,
    values: &'a [Values],
    /// What is counted of the files whose bytes are values.
    counted: Counted,
}

impl<'a> Fields<'a> {
    fn filename(&self) -> &'a str {
        self.filename.unwrap_or_else(|| self.key.rsplit('/').next().unwrap_or_default())
    }
}

impl<'a> RecordWriter<'a> {
    pub(crate) fn new(schema: &'a SampleSchema, options: &'a Options) -> Self {
        let optimizer = (options.jpeg == JpegLayout::Optimize).then(Optimizer::new);
        RecordWriter { schema, options, file: vec![], storing: ImageConverter::default(), optimizer }
    }

    /// Makes the record of a listing's entry, framed into `buffer`.
    ///
    /// # Errors
    /// The reason why the entry cannot be packed.
    pub(crate) fn file(&mut self, listing: &Listing, entry: &Entry, buffer: Vec<u8>) -> Result<Record, Reason> {
        if !listing.schema.images {
            let Attached { values, counted, files } = attached(listing, entry, self.options)?;
            let (key, label) = (&entry.key, entry.label);
            let fields = Fields { key, filename: None, image_name: None, label, values: &values, counted };
            let record = self.record(&fields, Image::None, buffer)?;
            return self.with_ranges(record, &[], &files);
        }
        if entry.size == 0 {
            return Err(Reason::Empty);
        }
        listing.check_version(&listing.path(entry), entry.version)?;
        let known = self.known(listing, entry)?;
        match known {
            Some(_) => {
                self.file.clear();
                self.file.resize(entry.size as usize, 0);
            }
            None => read(&listing.path(entry), entry.size, &mut self.file)?,
        }
        let file = std::mem::take(&mut self.file);
        let Attached { values, counted, files } = attached(listing, entry, self.options)?;
        let path = listing.path(entry);
        let filename = path.file_name().and_then(|name| name.to_str());
        let (key, label) = (&entry.key, entry.label);
        let fields = Fields { key, filename, image_name: None, label, values: &values, counted };
        let record = match known {
            Some((name, known)) => {
                let record = self.record(&fields, Image::Known(&file, known), buffer);
                let record = record.and_then(|record| self.with_ranges(record, &[], &files));
                record.map(|record| with_known(record, name, known.crc))
            }
            None => {
                let record = self.record(&fields, Image::File(&file), buffer);
                record.and_then(|record| self.with_ranges(record, &[(&path, &file)], &files))
            }
        };
        self.file = file;
        record
    }

    /// Returns the name of an image that need not be read, and what is known of it.
    ///
    /// # Errors
    /// Those of [`VirtualSource::name`](crate::virtual_source::VirtualSource::name).
    fn known(&self, listing: &Listing, entry: &Entry) -> Result<Option<(Arc<SourceName>, KnownImage<'a>)>, Reason> {
        let Some(source) = &self.options.virtual_source else { return Ok(None) };
        let described = (listing.relative_path(entry), entry.version);
        if !source.known.has(self.options.split(), described) {
            return Ok(None);
        }
        let name = source.name(&listing.path(entry), entry.size)?;
        let known = source.known.find(self.options.split(), &name.name, name.length);
        Ok(known.map(|known| (name, known)))
    }

    /// Adds where the bytes of a record lie in these files, if its shard is virtual.
    ///
    /// # Errors
    /// Those of [`VirtualSource::name`](crate::virtual_source::VirtualSource::name).
    fn with_ranges(
        &self,
        mut record: Record,
        image: &[(&Path, &[u8])],
        files: &[(PathBuf, Box<[u8]>)],
    ) -> Result<Record, Reason> {
        let Some(source) = &self.options.virtual_source else { return Ok(record) };
        let files = files.iter().map(|(path, bytes)| (&**path, &**bytes));
        let origins = image.iter().copied().chain(files).map(|(path, bytes)| {
            let file = source.name(path, bytes.len() as u64)?;
            Ok(Origin { file, value: StoredValue::whole(0, bytes) })
        });
        record.ranges = frame_ranges(&record.frame, &origins.collect::<Result<Vec<_>, Reason>>()?);
        Ok(record)
    }

    /// Makes the record of a sample of an archive or of a program, framed into `buffer`. `image_name` is the name of the image's
    /// file, if it is not that of the key and its format is detected by it. `origins` are the bytes of the sample in its archive, if the
    /// shard is virtual.
    ///
    /// # Errors
    /// The reason why the sample cannot be packed.
    pub(crate) fn sample(
        &mut self,
        sample: &ResolvedSample,
        image: Image<'_>,
        image_name: Option<&str>,
        origins: &[Origin<'_>],
        buffer: Vec<u8>,
    ) -> Result<Record, Reason> {
        let (key, label, values) = (&sample.key, sample.label, &sample.values);
        let fields = Fields { key, filename: None, image_name, label, values, counted: Counted::default() };
        let mut record = self.record(&fields, image, buffer)?;
        if !origins.is_empty() {
            record.ranges = frame_ranges(&record.frame, origins);
        }
        Ok(record)
    }

    fn record(&mut self, fields: &Fields<'_>, image: Image<'_>, buffer: Vec<u8>) -> Result<Record, Reason> {
        let record = self.converted(fields, image, buffer);
        self.storing.release();
        record
    }

    /// Makes the record; the memory for converting its image is still held afterwards.
    fn converted(&mut self, fields: &Fields<'_>, image: Image<'_>, buffer: Vec<u8>) -> Result<Record, Reason> {
        let (values, is_converted) = conversion::values(self.schema, fields.values, self.options)?;
        let mut counted = fields.counted;
        counted.converted |= is_converted;
        let (values, is_stripped) = match self.options.strip_metadata {
            true => {
                let (stripped, is_stripped) = metadata::values(self.schema, &values)?;
                (Cow::Owned(stripped.into_owned()), is_stripped)
            }
            false => (values, false),
        };
        counted.stripped |= is_stripped;
        let fields = &Fields { values: &values, ..*fields };
        let (coded, png);
        let stored = match image {
            Image::None => {
                let values = coordinates::stored(self.schema, fields.values, None, self.options)?;
                let fields = Fields { values: &values, ..*fields };
                return frame(self.schema, &fields, None, vec![], (Outcome::Other, counted), buffer);
            }
            Image::File([]) => return Err(Reason::Empty),
            Image::File(file) => {
                png = conversion::image(file, fields.image_name.unwrap_or(fields.filename()), &self.options.limits)?;
                counted.converted |= png.is_some();
                let file = png.as_deref().unwrap_or(file);
                let info = decode::probe(file, &self.options.limits)?;
                coded = ((info.width, info.height), u32::from(info.orientation));
                counted.truncated |= self.options.is_cut(file)?;
                attached_images::check_masks(self.schema, fields.values, coded, self.options)?;
                self.storing.store(file, &info, self.options)?
            }
            Image::Known(bytes, known) => {
                let KnownImage { format, width, height, channels, orientation, .. } = known;
                coded = ((width, height), orientation);
                attached_images::check_masks(self.schema, fields.values, coded, self.options)?;
                let (filled, stripped, reduced) = (false, false, false);
                StoredImage { bytes, format, width, height, channels, orientation, filled, stripped, reduced }
            }
            Image::Pixels(pixels) => {
                coded = (pixels.size(), 1);
                attached_images::check_masks(self.schema, fields.values, coded, self.options)?;
                self.storing.store_pixels(&pixels, self.options)?
            }
        };
        counted.truncated |= stored.filled;
        counted.stripped |= stored.stripped;
        counted.reduced |= stored.reduced;
        let (stored, outcome) = match &mut self.optimizer {
            Some(optimizer) => optimizer.optimize(stored),
            None => (stored, Outcome::Other),
        };
        let entries = match image {
            _ if !self.options.entry_points => vec![],
            Image::Known(_, known) => known.entries.to_vec(),
            _ => decode::entry_points(stored.bytes),
        };
        let (coded, orientation) = coded;
        let turned = orientation != stored.orientation;
        let sizes = ImageSizes { coded, orientation, stored: (stored.width, stored.height), turned };
        if sizes.turned || sizes.stored != sizes.coded {
            attached_images::refuse_any(self.schema, fields.values, sizes.coded, self.options)?;
        }
        let values = coordinates::stored(self.schema, fields.values, Some(&sizes), self.options)?;
        let fields = &Fields { values: &values, ..*fields };
        frame(self.schema, fields, Some(&stored), entries, (outcome, counted), buffer)
    }
}

/// Encodes a sample's Example and frames it into `buffer`.
fn frame(
    schema: &SampleSchema,
    fields: &Fields<'_>,
    stored: Option<&StoredImage<'_>>,
    entries: Vec<u8>,
    (outcome, counted): (Outcome, Counted),
    mut buffer: Vec<u8>,
) -> Result<Record, Reason> {
    buffer.clear();
    buffer.resize(frame::HEADER_BYTES, 0);
    encode(schema, fields, stored, &mut buffer);
    let (header, data) = buffer.split_at_mut(frame::HEADER_BYTES);
    if u32::try_from(data.len()).is_err() {
        return Err(Reason::TooLong { bytes: stored.map_or(data.len(), |stored| stored.bytes.len()) as u64 });
    }
    header.copy_from_slice(&frame::header(data.len() as u64));
    let data_crc = checksum::crc32c(data);
    buffer.extend_from_slice(&frame::footer(data_crc));
    Ok(Record { frame: buffer, data_crc, entries, ranges: vec![], outcome, counted })
}

/// Gives a record whose image was not read the CRC that it has with its image, and the image's place.
fn with_known(mut record: Record, file: Arc<SourceName>, crc: u32) -> Record {
    let data = data(&record.frame);
    let image = Example::parse(data).ok().and_then(|example| range_within(data, example.bytes(names::IMAGE_ENCODED)?));
    let image = image.expect("a record with an image");
    let (before, after) = (&data[..image.start], &data[image.end..]);
    let with_image = combine(checksum::crc32c(before), crc, image.len() as u64);
    record.data_crc = combine(with_image, checksum::crc32c(after), after.len() as u64);
    let at = frame::HEADER_BYTES + image.start;
    // A file of zeros is as long as what stands for the image.
    record.ranges.retain(|range| range.at != at);
    record.ranges.push(FrameRange { at, length: image.len() as u32, crc, file, offset: 0 });
    record.ranges.sort_by_key(|range| range.at);
    let footer = record.frame.len() - frame::FOOTER_BYTES;
    record.frame[footer..].copy_from_slice(&frame::footer(record.data_crc));
    record
}

/// The values of an entry whose files were read.
struct Attached<'a> {
    values: Cow<'a, [Values]>,
    /// What is counted of the files.
    counted: Counted,
    /// The files that are values as they are, if the shard is virtual.
    files: Vec<(PathBuf, Box<[u8]>)>,
}

/// Returns an entry's values, with paths of listed files replaced by the bytes of the files, or by the arrays in them, and what is
/// counted of these files.
fn attached<'a>(listing: &Listing, entry: &'a Entry, options: &Options) -> Result<Attached<'a>, Reason> {
    let mut values = Cow::Borrowed(&*entry.values);
    let (mut counted, mut files) = (Counted::default(), vec![]);
    let is_virtual = options.virtual_source.is_some();
    for (at, (name, _)) in listing.schema.columns.iter().enumerate() {
        let file = match &entry.values[at] {
            Values::File(file) => file,
            Values::Clip(listed) => {
                let ClipFrames { frames, format, counted: of_frames, files: paths } =
                    clip::read_clip(listing.root(), listed, options)?;
                counted |= of_frames;
                if is_virtual && let Values::BytesList(frames) = &frames {
                    files
                        .extend(paths.into_iter().zip(frames).filter_map(|(path, bytes)| Some((path?, bytes.clone()))));
                }
                let described = format!("{name}{FORMAT_SUFFIX}");
                let described = listing.schema.columns.iter().position(|(name, _)| *name == described);
                values.to_mut()[at] = frames;
                values.to_mut()[described.expect("a column next to each clip")] = Values::text(format.name());
                continue;
            }
            _ => continue,
        };
        let mut bytes = vec![];
        let wrong = |reason| Reason::File { column: name.clone(), reason: Box::new(reason) };
        let path = place(listing.root(), &file.path);
        let read = listing.check_version(&path, file.version).and_then(|()| read(&path, file.size, &mut bytes));
        read.map_err(wrong)?;
        let Some(array) = options.arrays.iter().find(|array| array.name == *name) else {
            let png = conversion::attached(&bytes, name, &file.path, &options.limits).map_err(wrong)?;
            counted.converted |= png.is_some();
            if is_virtual && png.is_none() {
                files.push((path, bytes.as_slice().into()));
            }
            values.to_mut()[at] =
                Values::Bytes(png.map_or_else(|| bytes.as_slice().into(), |png| png.into_owned().into()));
            continue;
        };
        let encoded = array.parse(&bytes, &file.path, &options.limits).and_then(|parsed| array.encode(&parsed));
        for ((member, _), value) in array.features().iter().zip(encoded.map_err(|refused| wrong(refused.into()))?) {
            if let Some(at) = listing.schema.columns.iter().position(|(column, _)| column == member) {
                values.to_mut()[at] = value;
            }
        }
    }
    Ok(Attached { values, counted, files })
}

/// Reads a file and checks that it still has its listed length.
fn read(path: &Path, listed: u64, buffer: &mut Vec<u8>) -> Result<(), Reason> {
    buffer.clear();
    if !is_url(path) {
        buffer.reserve(usize::try_from(listed).map_err(|_| Reason::TooLong { bytes: listed })? + 1);
    }
    match input::read_into(path, listed + 1, buffer) {
        // Longer than it was.
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge && is_url(path) => {
            return Err(Reason::Changed { listed, found: listed + 1 });
        }
        read => read.map_err(Reason::of_open)?,
    }
    match buffer.len() as u64 {
        found if found != listed => Err(Reason::Changed { listed, found }),
        _ => Ok(()),
    }
}

/// Appends the sample's Example.
fn encode(schema: &SampleSchema, fields: &Fields<'_>, stored: Option<&StoredImage<'_>>, out: &mut Vec<u8>) {
    let filename = fields.filename().as_bytes();
    let label = fields.label.unwrap_or_default();
    let class = usize::try_from(label).ok().and_then(|id| schema.classes.get(id)).map_or("", String::as_str);
    let lists: Vec<Vec<&[u8]>> = fields.values.iter().map(Values::byte_strings).collect();
    let (key, label, text, filename) = ([fields.key.as_bytes()], [label], [class.as_bytes()], [filename]);
    let numbers = stored.map(|s| [s.channels, s.height, s.orientation, s.width].map(i64::from));
    let bytes = stored.map(|s| ([s.bytes], [s.format.name().as_bytes()]));
    let mut features = vec![(names::IMAGE_KEY, Column::Bytes(&key))];
    if let (Some(numbers), Some((encoded, format))) = (&numbers, &bytes) {
        features.extend([
            (names::IMAGE_CHANNELS, Column::Int64(&numbers[0..1])),
            (names::IMAGE_ENCODED, Column::Bytes(encoded)),
            (names::IMAGE_FILENAME, Column::Bytes(&filename)),
            (names::IMAGE_FORMAT, Column::Bytes(format)),
            (names::IMAGE_HEIGHT, Column::Int64(&numbers[1..2])),
            (names::IMAGE_ORIENTATION, Column::Int64(&numbers[2..3])),
            (names::IMAGE_WIDTH, Column::Int64(&numbers[3..4])),
        ]);
    }
    if fields.label.is_some() {
        features.push((names::CLASS_LABEL, Column::Int64(&label)));
    }
    if fields.label.is_some() && !schema.classes.is_empty() {
        features.push((names::CLASS_TEXT, Column::Bytes(&text)));
    }
    for (((name, dtype), values), list) in schema.columns.iter().zip(fields.values).zip(&lists) {
        // A record without one of the features that describe an array has no such array, instead of a damaged one.
        if *values != Values::Missing || !schema.is_array_member(name) {
            features.push((name, values.column(*dtype, list)));
        }
    }
    example::encode(&mut features, out);
}
