//! Decodes PNG with the `png` crate. Colour profiles and texts are skipped unread: they are compressed, so a file of 1 MB may
//! hold 1 GB of them, and no pixel depends on them.

use std::io::Cursor;

use ::png::{BitDepth, ColorType, Decoder, Transformations};
use image::metadata::Orientation;

use super::decoder_error;
use super::to_rgb::{replicate, select};
use crate::error::Error;
use crate::format::Format;
use crate::image_info::ImageInfo;
use crate::limits::{Limits, MAX_PNG_CHUNKS};
use crate::pixel_format::{Channels, Depth, PixelFormat};
use crate::pixels::Pixels;

type Reader<'a> = ::png::Reader<Cursor<&'a [u8]>>;

/// Reads the header of an image. Call it inside [`catch_panic`](super::panics::catch_panic).
pub(crate) fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageInfo, Error> {
    let reader = open(bytes, limits)?;
    let (width, height) = reader.info().size();
    let exif = reader.info().exif_metadata.as_deref();
    let orientation = exif.and_then(Orientation::from_exif_chunk).unwrap_or(Orientation::NoTransforms).to_exif();
    let channels = reader.output_color_type().0.samples() as u8;
    Ok(ImageInfo { format: Format::Png, width, height, channels, orientation })
}

/// Decodes a whole image. The samples are decoded into the buffer of `pixels` and converted there. Call it inside
/// [`catch_panic`](super::panics::catch_panic).
///
/// Returns the format of the pixels: for `wanted` 8-bit RGB that, otherwise the channels of the image, of 16 bits if both the
/// image and `wanted` have 16.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    wanted: PixelFormat,
    pixels: &mut Pixels,
) -> Result<PixelFormat, Error> {
    let mut reader = open(bytes, limits)?;
    let (width, height) = reader.info().size();
    // `open` checked the limits, so these products do not overflow.
    let count = width as usize * height as usize;
    let (color, depth) = reader.output_color_type();
    let stored_len = count * color.samples() * if depth == BitDepth::Sixteen { 2 } else { 1 };
    pixels.data.resize(stored_len.max(count * 3), 0);
    reader.next_frame(&mut pixels.data[..stored_len]).map_err(damaged)?;
    let found = match wanted {
        PixelFormat::RGB8 => {
            to_rgb(color, depth, &mut pixels.data, count);
            PixelFormat::RGB8
        }
        wanted => select_colors(color, depth, &mut pixels.data, count, wanted.depth),
    };
    pixels.data.truncate(count * found.bytes());
    (pixels.width, pixels.height) = (width, height);
    Ok(found)
}

/// Reads the header, and checks the limits.
fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Reader<'a>, Error> {
    let mut decoder = decoder(bytes, limits)?;
    // Palettes are looked up, and samples of less than 8 bits scaled to 8.
    decoder.set_transformations(Transformations::EXPAND);
    let reader = decoder.read_info().map_err(damaged)?;
    let (width, height) = reader.info().size();
    let (color, depth) = reader.output_color_type();
    let stored = color.samples() as u8 * if depth == BitDepth::Sixteen { 2 } else { 1 };
    limits.check(Format::Png, width, height, stored.max(3))?;
    Ok(reader)
}

/// Returns a decoder that skips colour profiles and texts, and whose other allocations are limited.
///
/// # Errors
/// [`Error::Chunks`].
pub(crate) fn decoder<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Decoder<Cursor<&'a [u8]>>, Error> {
    let found = chunks(bytes);
    if found > MAX_PNG_CHUNKS {
        return Err(Error::Chunks { format: Format::Png, found, allowed: MAX_PNG_CHUNKS });
    }
    let allowed = ::png::Limits { bytes: usize::try_from(limits.max_bytes).unwrap_or(usize::MAX) };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), allowed);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_ignore_text_chunk(true);
    Ok(decoder)
}

/// Counts the chunks: length, type, data and CRC each, after the signature (PNG, section 5.3).
fn chunks(bytes: &[u8]) -> u64 {
    let (mut count, mut at) = (0, 8usize);
    while let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        at = at.saturating_add(12).saturating_add(u32::from_be_bytes(*length) as usize);
        count += 1;
    }
    count
}

/// Converts `count` pixels at the start of a buffer to RGB, in place. Of 16-bit samples, which are big-endian, the high
/// byte is kept.
fn to_rgb(color: ColorType, depth: BitDepth, data: &mut [u8], count: usize) {
    match (color, depth == BitDepth::Sixteen) {
        (ColorType::Grayscale, false) => replicate::<1>(data, count, 0),
        (ColorType::Grayscale, true) | (ColorType::GrayscaleAlpha, false) => replicate::<2>(data, count, 0),
        (ColorType::GrayscaleAlpha, true) => select::<4, 3>(data, count, [0; 3]),
        (ColorType::Rgb, true) => select::<6, 3>(data, count, [0, 2, 4]),
        (ColorType::Rgba, false) => select::<4, 3>(data, count, [0, 1, 2]),
        (ColorType::Rgba, true) => select::<8, 3>(data, count, [0, 2, 4]),
        // Palettes are expanded to RGB.
        (ColorType::Rgb | ColorType::Indexed, _) => {}
    }
}

/// Drops alpha from `count` pixels at the start of a buffer, in place, and the low bytes of 16-bit samples unless `wanted` has
/// them. Returns the format of the pixels. 16-bit samples become little-endian.
fn select_colors(color: ColorType, depth: BitDepth, data: &mut [u8], count: usize, wanted: Depth) -> PixelFormat {
    let gray = matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha);
    let channels = if gray { Channels::Gray } else { Channels::Rgb };
    let depth = match (depth, wanted) {
        (BitDepth::Sixteen, Depth::Eight) => {
            match color {
                ColorType::Grayscale => select::<2, 1>(data, count, [0]),
                ColorType::GrayscaleAlpha => select::<4, 1>(data, count, [0]),
                ColorType::Rgb | ColorType::Indexed => select::<6, 3>(data, count, [0, 2, 4]),
                ColorType::Rgba => select::<8, 3>(data, count, [0, 2, 4]),
            }
            Depth::Eight
        }
        (BitDepth::Sixteen, Depth::Sixteen) => {
            match color {
                ColorType::Grayscale => select::<2, 2>(data, count, [1, 0]),
                ColorType::GrayscaleAlpha => select::<4, 2>(data, count, [1, 0]),
                ColorType::Rgb | ColorType::Indexed => select::<6, 6>(data, count, [1, 0, 3, 2, 5, 4]),
                ColorType::Rgba => select::<8, 6>(data, count, [1, 0, 3, 2, 5, 4]),
            }
            Depth::Sixteen
        }
        _ => {
            match color {
                ColorType::GrayscaleAlpha => select::<2, 1>(data, count, [0]),
                ColorType::Rgba => select::<4, 3>(data, count, [0, 1, 2]),
                // Palettes are expanded to RGB.
                ColorType::Grayscale | ColorType::Rgb | ColorType::Indexed => {}
            }
            Depth::Eight
        }
    };
    PixelFormat { channels, depth }
}

pub(crate) fn damaged(source: ::png::DecodingError) -> Error {
    decoder_error(Format::Png, source)
}
