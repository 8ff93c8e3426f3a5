//! Pictures of records: thumbnails, previews, and what a trainer sees. Memory and time are bounded: a hostile dataset costs a
//! placeholder.

use crate::text;
use shardtool_decode::{
    DecodedRegion, Decoder, Draws, EncodedImage, Filter, Format, ImageInfo, LabelDtype, LabelMap, Limits, Orientation,
    Pipeline, PixelFormat, PixelsRef, Plan, Random, RegionOptions, Transform, TransformScratch, catch_library_panic,
    decode_raw, encode_jpeg, probe, raw_scratch_bytes, reduce_longer,
};
use shardtool_format::example::Feature;
use shardtool_format::{index, names};
use shardtool_host::scratch_pool::{Admitted, ScratchPool};
use shardtool_load::{Image, SampleDraws};
use shardtool_read::{Record, Split};
use std::sync::OnceLock;

/// Longest side of a thumbnail in pixels, and of a preview of an image that browsers do not show.
pub(crate) const THUMBNAIL: u32 = 240;
pub(crate) const PREVIEW: u32 = 1600;
/// Longest side of what a trainer sees, in pixels.
pub(crate) const MAX_DRAWN: u32 = 1024;
/// Quality of thumbnails and previews, 1 to 100.
const QUALITY: u8 = 80;
/// Pixels of an image that is decoded, at most: the largest photographs of cameras. Time grows with pixels.
const MAX_PIXELS: u64 = 1 << 27;

/// Why a picture cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("no image")]
    NoImage,
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    #[error(transparent)]
    Decode(#[from] shardtool_decode::Error),
    #[error("the decoder panicked: {0}")]
    Panic(String),
    #[error("decoding takes {}, more than the {} for pictures (--memory)", text::bytes(*needed), text::bytes(*allowed))]
    Memory { needed: u64, allowed: u64 },
}

/// A stored image of a record: its bytes, and how to read them.
pub(crate) struct Stored<'r> {
    pub(crate) bytes: &'r [u8],
    pub(crate) format: Format,
    /// Width and height as stored, in pixels.
    pub(crate) size: (u32, u32),
    /// EXIF orientation, 1 to 8.
    pub(crate) orientation: u8,
}

impl<'r> Stored<'r> {
    /// Returns the image of a record: the one that the manifest names, else the first byte string that is an image.
    pub(crate) fn of(record: &'r Record) -> Result<Self, Error> {
        if let Some(bytes) = record.image()?.filter(|bytes| !bytes.is_empty()) {
            return Stored::parse(bytes).or_else(|error| raw(record, bytes).ok_or(error));
        }
        let example = record.example()?;
        for (_, feature) in example.features() {
            if let Feature::Bytes(list) = feature
                && let Some(bytes) = list.iter().next()
                && let Ok(stored) = Stored::parse(bytes)
            {
                return Ok(stored);
            }
        }
        Err(Error::NoImage)
    }

    /// Reads the header of an image.
    pub(crate) fn parse(bytes: &'r [u8]) -> Result<Self, Error> {
        let ImageInfo { format, width, height, orientation, .. } = probe(bytes, &limits())?;
        Ok(Stored { bytes, format, size: (width, height), orientation })
    }

    /// Returns the media type that browsers show; `None` for formats that they do not show.
    pub(crate) fn media_type(&self) -> Option<&'static str> {
        media_type(self.format)
    }

    fn is_raw(&self) -> bool {
        matches!(self.format, Format::Raw | Format::RawZstd)
    }
}

/// Returns the media type that browsers show; `None` for formats that they do not show.
pub(crate) fn media_type(format: Format) -> Option<&'static str> {
    match format {
        Format::Jpeg => Some("image/jpeg"),
        Format::Png => Some("image/png"),
        Format::WebP => Some("image/webp"),
        Format::Gif => Some("image/gif"),
        Format::Bmp => Some("image/bmp"),
        Format::Avif => Some("image/avif"),
        _ => None,
    }
}

fn raw<'r>(record: &'r Record, bytes: &'r [u8]) -> Option<Stored<'r>> {
    let example = record.example().ok()?;
    let format = example.bytes(names::IMAGE_FORMAT).and_then(|name| std::str::from_utf8(name).ok());
    let format = Format::from_name(format?).filter(|f| matches!(f, Format::Raw | Format::RawZstd))?;
    let side = |name| example.int64(name).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    Some(Stored { bytes, format, size: (side(names::IMAGE_WIDTH)?, side(names::IMAGE_HEIGHT)?), orientation: 1 })
}

pub(crate) fn limits() -> Limits {
    Limits::default().with_max_pixels(MAX_PIXELS)
}

/// Memory for decoding, in bytes, shared by all threads.
static POOL: OnceLock<(ScratchPool, u64)> = OnceLock::new();

/// Sets the memory for decoding. Only the first call of a process has an effect.
pub(crate) fn set_memory(bytes: u64) {
    POOL.get_or_init(|| (ScratchPool::new(bytes), bytes));
}

pub(crate) fn admit(needed: u64) -> Result<Admitted<'static>, Error> {
    let (pool, _) = POOL.get_or_init(|| (ScratchPool::new(crate::MEMORY), crate::MEMORY));
    pool.admit(needed).map_err(|allowed| Error::Memory { needed, allowed })
}

/// Draws nothing: the geometry of thumbnails is not random.
struct NoDraws;

impl Random for NoDraws {
    fn unit(&mut self) -> f64 {
        0.0
    }

    fn below(&mut self, _: u64) -> u64 {
        0
    }
}

/// Returns a JPEG of an image, upright, whose longer side has at most `side` pixels.
pub(crate) fn reduced(stored: &Stored<'_>, side: u32) -> Result<Vec<u8>, Error> {
    let orientation = Orientation::from_exif(stored.orientation);
    let (width, height) = reduce_longer(orientation.size(stored.size), side);
    let resize = Transform::ResizeTo { size: [height, width], interpolation: Filter::Bilinear };
    let plan = Pipeline::new(vec![resize])?.plan(stored.size, orientation, &mut NoDraws, &[])?;
    // A thumbnail need not be exact: decoding at 1/2, 1/4 or 1/8 suffices.
    let options = RegionOptions::default().with_limits(limits()).with_reducing_gap(Some(1.0));
    let pixels = apply(stored, None, &plan, &options)?;
    Ok(encode_jpeg(PixelsRef::new(width, height, &pixels)?, QUALITY)?)
}

/// Returns the key of a record and its thumbnail, a JPEG.
pub(crate) fn thumbnail(split: &Split, id: u64) -> Result<(String, Vec<u8>), Error> {
    let record = split.get(id)?;
    let key = text::printable(&record.key()?);
    let jpeg = reduced(&Stored::of(&record)?, THUMBNAIL)?;
    record.check_readable()?;
    Ok((key, jpeg))
}

/// Returns the plan of what a loader with these steps delivers for a record. `image` has one view.
pub(crate) fn plan(stored: &Stored<'_>, image: &Image, draws: SampleDraws) -> Result<Plan, Error> {
    let orientation = Orientation::from_exif(if image.pixels.apply_orientation { stored.orientation } else { 1 });
    let mut draws = draws.single();
    Ok(image.views[0].pipeline.plan(stored.size, orientation, &mut draws as &mut dyn Draws, &[])?)
}

/// Returns what a loader with these steps delivers for a record in an epoch, as a lossless PNG, decoded at full size. `image` has one view.
pub(crate) fn drawn(record: &Record, stored: &Stored<'_>, image: &Image, draws: SampleDraws) -> Result<Vec<u8>, Error> {
    let plan = plan(stored, image, draws)?;
    let options = RegionOptions::default().with_limits(image.pixels.limits);
    let entries = record.shard().variable(index::JPEG_ENTRIES)?.and_then(|column| column.get(record.row()));
    let pixels = apply(stored, entries.filter(|e| !e.is_empty()), &plan, &options)?;
    png(plan.output_size(), &pixels, png::ColorType::Rgb)
}

/// Decodes what a plan needs and applies it: `[H, W, 3]` u8.
fn apply(stored: &Stored<'_>, entries: Option<&[u8]>, plan: &Plan, options: &RegionOptions) -> Result<Vec<u8>, Error> {
    let (width, height) = plan.output_size();
    let output = 3 * u64::from(width) * u64::from(height);
    let geometry = plan.geometry();
    let decode = || -> Result<Vec<u8>, Error> {
        let mut out = vec![0; output as usize];
        let mut scratch = TransformScratch::default();
        if stored.is_raw() {
            let _held = admit(raw_scratch_bytes(stored.format, stored.size, PixelFormat::RGB8) + output)?;
            let mut unpacked = vec![];
            let (width, height) = stored.size;
            let pixels = decode_raw(stored.format, stored.bytes, width, height, &options.limits, &mut unpacked)?;
            plan.apply(&DecodedRegion::whole_image(pixels), &mut out, &mut scratch)?;
            return Ok(out);
        }
        let image = EncodedImage::parse(stored.bytes)?;
        let needed = image.scratch_bytes(&[geometry], options)? + plan.scratch_bytes(PixelFormat::RGB8) + 2 * output;
        let _held = admit(needed)?;
        let mut decoder = Decoder::default();
        let region = decoder.decode_parsed_region(&image, entries, &[geometry], options)?;
        plan.apply(&region, &mut out, &mut scratch)?;
        Ok(out)
    };
    catch_library_panic(decode).map_err(Error::Panic)?
}

/// Returns a label map (segmentation mask) as a PNG of at most `side` pixels: each label has a colour, label 0 is transparent.
pub(crate) fn label_map(stored: &Stored<'_>, side: u32) -> Result<Vec<u8>, Error> {
    // Ids that RGB codes are labels, too.
    let needed = LabelMap::scratch_bytes(stored.bytes, LabelDtype::I32, stored.size);
    let (width, height) = reduce_longer(stored.size, side);
    let _held = admit(needed + 8 * u64::from(width) * u64::from(height))?;
    let draw = || -> Result<Vec<u8>, Error> {
        let mut labels = LabelMap::default();
        labels.decode(stored.bytes, LabelDtype::I32, &limits())?;
        let resize = Transform::ResizeTo { size: [height, width], interpolation: Filter::Nearest };
        let plan = Pipeline::new(vec![resize])?.plan(stored.size, Orientation::default(), &mut NoDraws, &[])?;
        let mut values = vec![0u8; 4 * width as usize * height as usize];
        labels.apply_geometry(&plan.geometry(), 0, &mut values)?;
        let colours: Vec<u8> = values.as_chunks::<4>().0.iter().flat_map(|v| colour(u32::from_le_bytes(*v))).collect();
        png((width, height), &colours, png::ColorType::Rgba)
    };
    catch_library_panic(draw).map_err(Error::Panic)?
}

/// Returns the colour of a label: RGBA. The same labels always have the same colours, and neighbouring labels differ.
fn colour(label: u32) -> [u8; 4] {
    if label == 0 {
        return [0; 4];
    }
    // Multiples of the golden angle around the colour wheel.
    let hue = (f64::from(label) * 137.508 % 360.0) as f32;
    let channel = |offset: f32| {
        let k = (offset + hue / 30.0) % 12.0;
        (255.0 * (0.58 - 0.36 * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0))) as u8
    };
    [channel(0.0), channel(8.0), channel(4.0), 170]
}

pub(crate) fn png((width, height): (u32, u32), pixels: &[u8], colour: png::ColorType) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(pixels.len() / 2);
    let written = || -> Result<(), png::EncodingError> {
        let mut encoder = png::Encoder::new(&mut out, width, height);
        encoder.set_color(colour);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        encoder.write_header()?.write_image_data(pixels)
    };
    let mut written = written;
    written().map_err(|error| Error::Panic(error.to_string()))?;
    Ok(out)
}
