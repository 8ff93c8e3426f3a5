//! One record's image, to its place in the batch.

use crate::bad::Fault;
use crate::batch::RowPixels;
use crate::config::Images;
use crate::input::Input;
use crate::stats::Meters;
use shardtool_decode::{
    DecodedRegion, Decoder, EncodedImage, Error, Filter, Format, Geometry, ImageInfo, LabelMap, Normalizer,
    Orientation, PixelsMut, Random, RegionOptions,
};
use shardtool_format::{index, names};
use shardtool_order::Rng;
use shardtool_read::{Record, Shard};
use std::sync::Arc;
use std::time::Instant;

/// What decoding keeps from one image to the next: one for each worker.
#[derive(Default)]
pub(crate) struct Scratch {
    decoder: Decoder,
    resize: shardtool_decode::ResizeScratch,
    unpacked: Vec<u8>,
    /// The finished image as u8, where the batch holds other numbers.
    pixels: Vec<u8>,
    labels: LabelMap,
}

/// A stored image: its bytes, and what is known of it without decoding.
#[derive(Clone)]
struct Stored<'r> {
    bytes: &'r [u8],
    format: Option<Format>,
    size: (u32, u32),
    orientation: u8,
    /// JPEG entry points, where the index has any: hints, which the decoder checks.
    entries: Option<&'r [u8]>,
    /// The label map that goes with it, where one was asked for.
    mask: Option<&'r [u8]>,
}

impl<'r> Stored<'r> {
    /// What the index says of a record's image, else its own header.
    fn of(record: &'r Record, images: &Images) -> Result<Self, Fault> {
        let bytes = record.image()?.ok_or(Fault::NoImage)?;
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
            return Ok(Stored { bytes, format: Some(format), size, orientation: 1, entries: None, mask });
        }
        let orientation = match images.apply_orientation {
            true => shard.feature::<i64>(names::IMAGE_ORIENTATION)?.and_then(|c| c.get(row)),
            false => Some(1),
        };
        let entries = shard.variable(index::JPEG_ENTRIES)?.and_then(|c| c.get(row)).filter(|e| !e.is_empty());
        match (indexed, orientation.and_then(|o| u8::try_from(o).ok())) {
            (Some(size), Some(orientation)) => Ok(Stored { bytes, format: None, size, orientation, entries, mask }),
            _ => Stored { bytes, format: None, size: (0, 0), orientation: 1, entries, mask }.probed(images),
        }
    }

    /// The same by the image's own header.
    fn probed(self, images: &Images) -> Result<Self, Fault> {
        let ImageInfo { width, height, orientation, .. } = shardtool_decode::probe(self.bytes, &images.limits)?;
        let orientation = if images.apply_orientation { orientation } else { 1 };
        Ok(Stored { size: (width, height), orientation, ..self })
    }

    /// What is to be shown of it, as the pipeline draws it, and what that takes of memory.
    fn planned(self, images: &Images, rng: &Rng) -> Result<Planned<'r>, Error> {
        let mut draw = Draw(rng.clone());
        let geometry = images.pipeline.plan(self.size, Orientation::from_exif(self.orientation), &mut draw)?;
        let mut encoded = None;
        let image = match self.format {
            Some(Format::Raw) => FIXED,
            Some(_) => FIXED + 3 * pixels(self.size),
            None => encoded.insert(EncodedImage::parse(self.bytes)?).scratch_bytes(&geometry, &options(images))?,
        };
        let mask = self.mask.map_or(0, |_| mask_scratch(self.size));
        let output = images.output.map_or(0, |_| 3 * pixels(geometry.output_size()));
        Ok(Planned { stored: self, encoded, geometry, draw, scratch: image + mask + output })
    }
}

/// A stored image, and what is to be shown of it.
pub(crate) struct Planned<'r> {
    stored: Stored<'r>,
    /// The image with its parsed header, unless it is stored as raw pixels.
    encoded: Option<EncodedImage<'r>>,
    geometry: Geometry,
    /// What the pipeline's steps left of the sample's randomness.
    draw: Draw,
    /// Bytes of memory that decoding and showing take at most.
    pub(crate) scratch: u64,
}

impl<'r> Planned<'r> {
    /// The image of a record, and how it is shown under this randomness.
    pub(crate) fn of(record: &'r Record, images: &Images, rng: &Rng) -> Result<Self, Fault> {
        let stored = Stored::of(record, images)?;
        match stored.clone().planned(images, rng) {
            // The index is wrong about the size (an adopted file may say anything there): the image knows better.
            Err(Error::SizeMismatch { .. }) if stored.format.is_none() => {
                Ok(stored.probed(images)?.planned(images, rng)?)
            }
            result => Ok(result?),
        }
    }

    /// Width and height of the stored image.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.stored.size
    }
}

/// Decodes an image, and its label map if there is one, and writes what is to be shown of them into `out`.
pub(crate) fn place(
    planned: Planned<'_>,
    images: &Images,
    normalizer: Option<&Normalizer>,
    out: &mut RowPixels<'_>,
    scratch: &mut Scratch,
    meters: &Meters,
) -> Result<(), Fault> {
    let Planned { stored, encoded, geometry, mut draw, .. } = planned;
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
    let window = decode(&stored, encoded.as_ref(), &geometry, images, &mut scratch.decoder, &mut scratch.unpacked)?;
    let decoded = Instant::now();
    meters.decode.add(decoded - start, 1);
    shardtool_decode::apply_geometry(&geometry, &window, Filter::Bilinear, image, &mut scratch.resize)?;
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
    let shown = labels.decode(stored, &images.limits).and_then(|()| labels.apply_geometry(&geometry, out));
    meters.decode.add(resized.elapsed(), 0);
    shown.map_err(|source| Fault::Mask { feature: images.mask.clone().unwrap_or_default(), source })
}

/// The one place where a record's stored bytes become pixels: at least those that the geometry needs.
fn decode<'a>(
    stored: &Stored<'a>,
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

/// The order's generator, as transforms draw from it.
struct Draw(Rng);

impl Random for Draw {
    fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    fn below(&mut self, n: u64) -> u64 {
        u64::from(self.0.below(u32::try_from(n).unwrap_or(u32::MAX)))
    }
}

/// Scratch for the largest images of each split's first, middle and last shard, as far as they can be opened: the most that
/// some crops of each take, and a quarter more. What takes still more, met later, takes the place of batches.
pub(crate) fn typical_scratch(input: &Input, images: &Images) -> u64 {
    let largest = input.splits().iter().flat_map(|split| {
        let shards = split.entry().shards.len();
        let looked_at = [0, shards / 2, shards.saturating_sub(1)];
        let looked_at = looked_at.into_iter().filter(move |at| *at < shards);
        looked_at.filter_map(|at| largest_scratch(&split.shard(at).ok()?, images))
    });
    let (width, height) = images.pipeline.output_size();
    // Without an index that tells sizes: a photograph of two megapixels.
    let photograph = || shardtool_decode::scratch_bound((1600, 1200), 1 << 20, (width, height));
    largest.max().unwrap_or_else(photograph)
}

/// Images of a shard, the largest, and crops of each, that are looked at.
const LOOKED_AT: (usize, u64) = (8, 32);

fn largest_scratch(shard: &Arc<Shard>, images: &Images) -> Option<u64> {
    let widths = shard.feature::<i64>(names::IMAGE_WIDTH).ok()??;
    let heights = shard.feature::<i64>(names::IMAGE_HEIGHT).ok()??;
    let sizes = widths.iter().zip(heights.iter()).zip(0u64..);
    let mut sizes: Vec<_> = sizes.filter_map(|((w, h), row)| Some((pixels(size(w, h)?), row))).collect();
    let (largest, crops) = LOOKED_AT;
    if sizes.len() > largest {
        sizes.select_nth_unstable_by(largest, |a, b| b.cmp(a));
    }
    let scratch = sizes.into_iter().take(largest).flat_map(|(_, row)| {
        let record = shard.record(row, vec![]).ok();
        // What a record is read into is counted too.
        let own = record.as_ref().map_or(0, |r| if shard.bytes().mapped().is_some() { 0 } else { r.data().len() });
        (0..crops).filter_map(move |crop| {
            let planned = Planned::of(record.as_ref()?, images, &Rng::augment(0, 0, crop)).ok()?;
            Some(planned.scratch + own as u64)
        })
    });
    scratch.max().map(|most| most + most / 4)
}

/// What decoding a label map takes beside its file: its values, and what a TIFF decoder may add.
fn mask_scratch(size: (u32, u32)) -> u64 {
    3 * pixels(size)
}

/// What raw pixels take beside themselves: rows, the resizer's coefficients.
const FIXED: u64 = 512 << 10;

fn pixels((width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height)
}

fn size(width: i64, height: i64) -> Option<(u32, u32)> {
    let side = |n: i64| u32::try_from(n).ok().filter(|n| *n > 0);
    side(width).zip(side(height))
}

fn indexed_size(shard: &Shard, row: u64) -> Result<Option<(u32, u32)>, Fault> {
    let width = shard.feature::<i64>(names::IMAGE_WIDTH)?.and_then(|c| c.get(row));
    let height = shard.feature::<i64>(names::IMAGE_HEIGHT)?.and_then(|c| c.get(row));
    Ok(width.zip(height).and_then(|(w, h)| size(w, h)))
}

/// Whether the bytes could be raw pixels: only then is the record's own word asked for, which costs parsing it.
fn maybe_raw(bytes: &[u8], size: Option<(u32, u32)>) -> bool {
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    bytes.starts_with(&ZSTD)
        || size.is_some_and(|size| 3 * pixels(size) == bytes.len() as u64)
        || shardtool_decode::sniff(bytes).is_none()
}

fn raw_format(record: &Record) -> Result<Option<Format>, Fault> {
    let example = record.example()?;
    let name = example.bytes(names::IMAGE_FORMAT).and_then(|name| std::str::from_utf8(name).ok());
    Ok(name.and_then(Format::from_name).filter(|f| matches!(f, Format::Raw | Format::RawZstd)))
}

fn mask_of<'r>(record: &'r Record, feature: &str) -> Result<&'r [u8], Fault> {
    let mask = record.example()?.bytes(feature).filter(|mask| !mask.is_empty());
    mask.ok_or_else(|| Fault::NoMask { feature: feature.to_owned() })
}

fn raw_size(record: &Record) -> Result<(u32, u32), Fault> {
    let example = record.example()?;
    let side = |feature| {
        let side = example.int64(feature).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        side.ok_or(Fault::RawSize { feature })
    };
    Ok((side(names::IMAGE_WIDTH)?, side(names::IMAGE_HEIGHT)?))
}
