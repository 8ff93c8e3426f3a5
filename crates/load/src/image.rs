//! One record's image, to its place in the batch.

use crate::bad::Fault;
use crate::config::Images;
use crate::input::Input;
use crate::stats::Meters;
use shardtool_decode::{
    Decoder, Error, Filter, Format, Geometry, Info, Orientation, PixelsMut, Random, Window, WindowOptions,
};
use shardtool_format::{index, names};
use shardtool_order::Rng;
use shardtool_read::{Record, Shard};
use std::time::Instant;

/// What decoding keeps from one image to the next: one for each worker.
#[derive(Default)]
pub(crate) struct Scratch {
    decoder: Decoder,
    apply: shardtool_decode::Scratch,
    unpacked: Vec<u8>,
}

/// A stored image: its bytes, and what is known of it without decoding.
pub(crate) struct Stored<'r> {
    pub(crate) bytes: &'r [u8],
    pub(crate) format: Option<Format>,
    pub(crate) size: (u32, u32),
    orientation: u8,
    /// JPEG entry points, where the index has any: hints, which the decoder checks.
    entries: Option<&'r [u8]>,
}

impl<'r> Stored<'r> {
    /// What the index says of a record's image, else its own header.
    pub(crate) fn of(record: &'r Record, images: &Images) -> Result<Self, Fault> {
        let bytes = record.image()?.ok_or(Fault::NoImage)?;
        let (shard, row) = (record.shard(), record.row());
        let indexed = indexed_size(shard, row)?;
        if maybe_raw(bytes, indexed)
            && let Some(format) = raw_format(record)?
        {
            let size = match indexed {
                Some(size) => size,
                None => raw_size(record)?,
            };
            return Ok(Stored { bytes, format: Some(format), size, orientation: 1, entries: None });
        }
        let orientation = match images.apply_orientation {
            true => shard.feature::<i64>(names::IMAGE_ORIENTATION)?.and_then(|c| c.get(row)),
            false => Some(1),
        };
        let entries = shard.variable(index::JPEG_ENTRIES)?.and_then(|c| c.get(row)).filter(|e| !e.is_empty());
        match (indexed, orientation.and_then(|o| u8::try_from(o).ok())) {
            (Some(size), Some(orientation)) => Ok(Stored { bytes, format: None, size, orientation, entries }),
            _ => Stored { bytes, format: None, size: (0, 0), orientation: 1, entries }.probed(images),
        }
    }

    /// The same by the image's own header.
    fn probed(self, images: &Images) -> Result<Self, Fault> {
        let Info { width, height, orientation, .. } = shardtool_decode::probe(self.bytes, &images.limits)?;
        let orientation = if images.apply_orientation { orientation } else { 1 };
        Ok(Stored { size: (width, height), orientation, ..self })
    }

    fn plan(&self, images: &Images, draw: &mut Draw) -> Result<Geometry, Error> {
        images.pipeline.plan(self.size, Orientation::from_exif(self.orientation), draw)
    }

    /// Bytes of memory that decoding takes at most: what the decoders of all formats stay below, since the format is known
    /// only when the bytes are at hand.
    pub(crate) fn scratch(&self) -> u64 {
        match self.format {
            Some(Format::Raw) => FIXED,
            Some(_) => FIXED + 3 * pixels(self.size),
            None => decode_scratch(self.size, self.bytes.len() as u64),
        }
    }
}

/// Decodes an image and writes what the pipeline makes of it into `out`, `[H, W, 3]`.
pub(crate) fn place(
    stored: Stored<'_>,
    images: &Images,
    rng: &Rng,
    out: &mut [u8],
    scratch: &mut Scratch,
    meters: &Meters,
) -> Result<(), Fault> {
    match attempt(&stored, images, rng, out, scratch, meters) {
        // The index is wrong about the size (an adopted file may say anything there): the image knows better. Nothing
        // was decoded yet.
        Err(Error::SizeMismatch { .. }) if stored.format.is_none() => {
            Ok(attempt(&stored.probed(images)?, images, rng, out, scratch, meters)?)
        }
        result => Ok(result?),
    }
}

fn attempt(
    stored: &Stored<'_>,
    images: &Images,
    rng: &Rng,
    out: &mut [u8],
    scratch: &mut Scratch,
    meters: &Meters,
) -> Result<(), Error> {
    let start = Instant::now();
    let mut draw = Draw(rng.clone());
    let geometry = stored.plan(images, &mut draw)?;
    let Scratch { decoder, apply, unpacked } = scratch;
    let window = decode(stored, &geometry, images, decoder, unpacked)?;
    let decoded = Instant::now();
    meters.decode.add(decoded - start, 1);
    shardtool_decode::apply(&geometry, &window, Filter::Bilinear, out, apply)?;
    if let Some(custom) = &images.custom {
        let (width, height) = geometry.output_size();
        custom(PixelsMut::new(width, height, out)?, &mut draw);
    }
    meters.resize.add(decoded.elapsed(), 1);
    Ok(())
}

/// The one place where a record's stored bytes become pixels: at least those that the geometry needs.
fn decode<'a>(
    stored: &Stored<'a>,
    geometry: &Geometry,
    images: &Images,
    decoder: &'a mut Decoder,
    unpacked: &'a mut Vec<u8>,
) -> Result<Window<'a>, Error> {
    let (limits, (width, height)) = (&images.limits, stored.size);
    match stored.format {
        Some(raw) => {
            Ok(Window::whole(shardtool_decode::decode_raw(raw, stored.bytes, width, height, limits, unpacked)?))
        }
        None => {
            let options = WindowOptions { limits: images.limits, reducing_gap: images.reducing_gap };
            decoder.decode_window(stored.bytes, stored.entries, geometry, &options)
        }
    }
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

/// Scratch for the largest image of each split's first, middle and last shard, as far as they can be opened. A larger one
/// met later takes the place of batches.
pub(crate) fn typical_scratch(input: &Input, images: &Images) -> u64 {
    let largest = input.splits().iter().flat_map(|split| {
        let shards = split.entry().shards.len();
        let looked_at = [0, shards / 2, shards.saturating_sub(1)];
        looked_at.into_iter().filter(move |at| *at < shards).filter_map(|at| largest_scratch(&*split.shard(at).ok()?))
    });
    // Without an index that tells sizes: a photograph of two megapixels.
    let scratch = largest.max().unwrap_or(decode_scratch((1600, 1200), 1 << 20));
    let (width, height) = images.pipeline.output_size();
    scratch + 3 * pixels((width, height))
}

fn largest_scratch(shard: &Shard) -> Option<u64> {
    let widths = shard.feature::<i64>(names::IMAGE_WIDTH).ok()??;
    let heights = shard.feature::<i64>(names::IMAGE_HEIGHT).ok()??;
    let lengths = shard.column::<u32>(index::IMAGE_LENGTH).ok()??;
    let sizes = widths.iter().zip(heights.iter()).zip(lengths.iter());
    sizes.filter_map(|((w, h), n)| Some(decode_scratch(size(w, h)?, n.into()))).max()
}

/// What the `image` crate's decoders take at most for a file of `encoded` bytes: a progressive JPEG holds coefficients
/// (2 bytes a sample) beside the pixels, a 16-bit PNG 8 bytes a pixel and its unpacked rows; JPEG and WebP copy the file.
fn decode_scratch(size: (u32, u32), encoded: u64) -> u64 {
    FIXED + 12 * pixels(size) + 2 * encoded
}

/// Tables, rows, the resizer's coefficients.
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

fn raw_size(record: &Record) -> Result<(u32, u32), Fault> {
    let example = record.example()?;
    let side = |feature| {
        let side = example.int64(feature).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        side.ok_or(Fault::RawSize { feature })
    };
    Ok((side(names::IMAGE_WIDTH)?, side(names::IMAGE_HEIGHT)?))
}
