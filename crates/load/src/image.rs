//! Decodes the image and the label map of a record into their rows of the batch.

use crate::bad_samples::SampleError;
use crate::buffer::RowPixels;
use crate::config::Images;
use crate::meters::Meters;
use shardtool_decode::{
    DecodedRegion, Decoder, EncodedImage, Error, Filter, Format, Geometry, ImageInfo, LabelMap, Normalizer,
    Orientation, PixelsMut, Random, RegionOptions,
};
use shardtool_format::{index, names};
use shardtool_order::Rng;
use shardtool_read::{Record, Shard};
use std::time::Instant;

/// Memory that a worker reuses from one image to the next.
#[derive(Default)]
pub(crate) struct DecodeScratch {
    decoder: Decoder,
    resize: shardtool_decode::ResizeScratch,
    unpacked: Vec<u8>,
    /// The finished image as u8, if the batch holds other numbers.
    pixels: Vec<u8>,
    labels: LabelMap,
    /// Upper bound on the memory of all of these, in bytes.
    bytes: u64,
}

impl DecodeScratch {
    /// Prepares for an image that needs `bytes`: drops what earlier images left if the larger of both exceeds `most`.
    pub(crate) fn prepare(&mut self, bytes: u64, most: u64) {
        self.trim(if bytes > most { 0 } else { most });
        self.bytes = self.bytes.max(bytes);
    }

    /// Drops the memory if it exceeds `most` bytes.
    pub(crate) fn trim(&mut self, most: u64) {
        if self.bytes > most {
            *self = Self::default();
        }
    }
}

/// A stored image: its bytes, and its properties from the index or its header.
#[derive(Clone)]
struct StoredImage<'r> {
    bytes: &'r [u8],
    /// The format, if the image is stored as raw pixels.
    format: Option<Format>,
    /// Width and height in pixels.
    size: (u32, u32),
    orientation: u8,
    /// JPEG entry points, if the index has any: hints, which the decoder checks.
    entries: Option<&'r [u8]>,
    /// Its label map, if the configuration has one.
    mask: Option<&'r [u8]>,
}

impl<'r> StoredImage<'r> {
    /// Returns the image of a record. Size and orientation come from the index, otherwise from the image's header.
    fn of(record: &'r Record, images: &Images) -> Result<Self, SampleError> {
        let bytes = record.image()?.ok_or(SampleError::NoImage)?;
        let mask = images.mask.as_deref().map(|feature| mask_of(record, feature)).transpose()?;
        let (shard, row) = (record.shard(), record.row());
        let indexed = indexed_size(shard, row)?;
        if maybe_raw(bytes, indexed)
            && let Some(format) = raw_format(record)?
        {
            let size = match indexed {
                Some(size) => size,
                None => raw_size(record)?,
            };
            return Ok(StoredImage { bytes, format: Some(format), size, orientation: 1, entries: None, mask });
        }
        let orientation = match images.apply_orientation {
            true => shard.feature::<i64>(names::IMAGE_ORIENTATION)?.and_then(|c| c.get(row)),
            false => Some(1),
        };
        let entries = shard.variable(index::JPEG_ENTRIES)?.and_then(|c| c.get(row)).filter(|e| !e.is_empty());
        match (indexed, orientation.and_then(|o| u8::try_from(o).ok())) {
            (Some(size), Some(orientation)) => {
                Ok(StoredImage { bytes, format: None, size, orientation, entries, mask })
            }
            _ => StoredImage { bytes, format: None, size: (0, 0), orientation: 1, entries, mask }.with_header(images),
        }
    }

    /// Sets size and orientation from the image's header.
    fn with_header(self, images: &Images) -> Result<Self, SampleError> {
        let ImageInfo { width, height, orientation, .. } = shardtool_decode::probe(self.bytes, &images.limits)?;
        let orientation = if images.apply_orientation { orientation } else { 1 };
        Ok(StoredImage { size: (width, height), orientation, ..self })
    }

    /// Draws the image's crop and flip, and computes the scratch that decoding them needs.
    fn plan(self, images: &Images, rng: &Rng) -> Result<PlannedImage<'r>, Error> {
        let mut draw = AugmentRng(rng.clone());
        let geometry = images.pipeline.plan(self.size, Orientation::from_exif(self.orientation), &mut draw)?;
        let mut encoded = None;
        let image = match self.format {
            Some(raw) => shardtool_decode::raw_scratch_bytes(raw, self.size),
            None => encoded.insert(EncodedImage::parse(self.bytes)?).scratch_bytes(&geometry, &options(images))?,
        };
        let mask = self.mask.map_or(0, |mask| LabelMap::scratch_bytes(mask, images.mask_dtype, self.size));
        let output = images.output.map_or(0, |_| 3 * pixels(geometry.output_size()));
        Ok(PlannedImage { stored: self, encoded, geometry, draw, scratch: image + mask + output })
    }
}

/// A stored image, and the crop, size and flip drawn for it.
pub(crate) struct PlannedImage<'r> {
    stored: StoredImage<'r>,
    /// The image with its parsed header, unless it is stored as raw pixels.
    encoded: Option<EncodedImage<'r>>,
    geometry: Geometry,
    /// The sample's random generator, after the pipeline's draws.
    draw: AugmentRng,
    /// Upper bound in bytes on the memory that decoding and resizing need.
    pub(crate) scratch: u64,
}

impl<'r> PlannedImage<'r> {
    /// Returns the image of a record, with crop and flip drawn from `rng`.
    pub(crate) fn of(record: &'r Record, images: &Images, rng: &Rng) -> Result<Self, SampleError> {
        let stored = StoredImage::of(record, images)?;
        match stored.clone().plan(images, rng) {
            // The index may have the wrong size (as in an adopted file); the image's header is then used.
            Err(Error::SizeMismatch { .. }) if stored.format.is_none() => {
                Ok(stored.with_header(images)?.plan(images, rng)?)
            }
            result => Ok(result?),
        }
    }

    /// Width and height of the stored image.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.stored.size
    }
}

/// Decodes an image, and its label map if it has one, applies the geometry to both, and writes them into `out`.
pub(crate) fn write_row(
    planned: PlannedImage<'_>,
    images: &Images,
    normalizer: Option<&Normalizer>,
    out: &mut RowPixels<'_>,
    scratch: &mut DecodeScratch,
    meters: &Meters,
) -> Result<(), SampleError> {
    let PlannedImage { stored, encoded, geometry, mut draw, .. } = planned;
    let start = Instant::now();
    let (width, height) = geometry.output_size();
    let row = out.image.as_deref_mut().unwrap_or_default();
    let (image, normalized) = match normalizer {
        None => (row, None),
        Some(normalizer) => {
            scratch.pixels.resize(3 * width as usize * height as usize, 0);
            (&mut scratch.pixels[..], Some((normalizer, row)))
        }
    };
    let region = decode(&stored, encoded.as_ref(), &geometry, images, &mut scratch.decoder, &mut scratch.unpacked)?;
    let decoded = Instant::now();
    meters.decode.add(decoded - start, 1);
    shardtool_decode::apply_geometry(&geometry, &region, Filter::Bilinear, image, &mut scratch.resize)?;
    if let Some(custom) = &images.custom {
        custom(PixelsMut::new(width, height, image)?, &mut draw);
    }
    if let Some((normalizer, row)) = normalized {
        normalizer.write(image, row);
    }
    let resized = Instant::now();
    meters.resize.add(resized - decoded, 1);
    let Some((stored, out)) = stored.mask.zip(out.mask.as_deref_mut()) else { return Ok(()) };
    let labels = &mut scratch.labels;
    let written = labels.decode(stored, images.mask_dtype, &images.limits);
    let written = written.and_then(|()| labels.apply_geometry(&geometry, out));
    meters.decode.add(resized.elapsed(), 0);
    written.map_err(|source| SampleError::Mask { feature: images.mask.clone().unwrap_or_default(), source })
}

/// Decodes at least the pixels that the geometry needs. The only code that decodes a record's image.
fn decode<'a>(
    stored: &StoredImage<'a>,
    encoded: Option<&EncodedImage<'a>>,
    geometry: &Geometry,
    images: &Images,
    decoder: &'a mut Decoder,
    unpacked: &'a mut Vec<u8>,
) -> Result<DecodedRegion<'a>, Error> {
    let (limits, (width, height)) = (&images.limits, stored.size);
    match stored.format {
        Some(raw) => Ok(DecodedRegion::whole_image(shardtool_decode::decode_raw(
            raw,
            stored.bytes,
            width,
            height,
            limits,
            unpacked,
        )?)),
        None => match encoded {
            Some(image) => decoder.decode_parsed_region(image, stored.entries, geometry, &options(images)),
            None => decoder.decode_region(stored.bytes, stored.entries, geometry, &options(images)),
        },
    }
}

fn options(images: &Images) -> RegionOptions {
    RegionOptions::default()
        .with_limits(images.limits)
        .with_reducing_gap(images.reducing_gap)
        .with_float_range(images.float_range)
}

/// The random generator of `order`, for the transforms of `decode`.
struct AugmentRng(Rng);

impl Random for AugmentRng {
    fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    fn below(&mut self, n: u64) -> u64 {
        u64::from(self.0.below(u32::try_from(n).unwrap_or(u32::MAX)))
    }
}

/// Returns the number of pixels of a size.
pub(crate) fn pixels((width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height)
}

/// Returns width and height, if both are at least 1 and fit `u32`.
pub(crate) fn size(width: i64, height: i64) -> Option<(u32, u32)> {
    let side = |n: i64| u32::try_from(n).ok().filter(|n| *n > 0);
    side(width).zip(side(height))
}

fn indexed_size(shard: &Shard, row: u64) -> Result<Option<(u32, u32)>, SampleError> {
    let width = shard.feature::<i64>(names::IMAGE_WIDTH)?.and_then(|c| c.get(row));
    let height = shard.feature::<i64>(names::IMAGE_HEIGHT)?.and_then(|c| c.get(row));
    Ok(width.zip(height).and_then(|(w, h)| size(w, h)))
}

/// Returns whether the bytes could be raw pixels: only then is the record parsed for its format.
fn maybe_raw(bytes: &[u8], size: Option<(u32, u32)>) -> bool {
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    bytes.starts_with(&ZSTD)
        || size.is_some_and(|size| 3 * pixels(size) == bytes.len() as u64)
        || shardtool_decode::sniff(bytes).is_none()
}

fn raw_format(record: &Record) -> Result<Option<Format>, SampleError> {
    let example = record.example()?;
    let name = example.bytes(names::IMAGE_FORMAT).and_then(|name| std::str::from_utf8(name).ok());
    Ok(name.and_then(Format::from_name).filter(|f| matches!(f, Format::Raw | Format::RawZstd)))
}

fn mask_of<'r>(record: &'r Record, feature: &str) -> Result<&'r [u8], SampleError> {
    let mask = record.example()?.bytes(feature).filter(|mask| !mask.is_empty());
    mask.ok_or_else(|| SampleError::NoMask { feature: feature.to_owned() })
}

fn raw_size(record: &Record) -> Result<(u32, u32), SampleError> {
    let example = record.example()?;
    let side = |feature| {
        let side = example.int64(feature).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        side.ok_or(SampleError::RawSize { feature })
    };
    Ok((side(names::IMAGE_WIDTH)?, side(names::IMAGE_HEIGHT)?))
}
