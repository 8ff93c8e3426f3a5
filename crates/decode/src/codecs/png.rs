//! Decodes PNG with the `png` crate. Colour profiles and texts are skipped unread: they are compressed, so a file of 1 MB may
//! hold 1 GB of them, and no pixel depends on them.

use std::io::Cursor;
use std::ops::Range;

use ::png::{BitDepth, ColorType, Decoder, Transformations};

use super::decoder_error;
use super::png_palette::repaired;
use super::to_rgb::{replicate, select};
use crate::error::Error;
use crate::format::Format;
use crate::image_info::ImageInfo;
use crate::limits::{Limits, MAX_PNG_CHUNKS};
use crate::metadata;
use crate::pixel_format::{Channels, Depth, PixelFormat};
use crate::pixels::Pixels;
use crate::stored_samples::{FEW_BITS, StoredSamples};

/// What [`decode`] decoded: as many rows as its pixels have.
pub(crate) struct DecodedRows {
    /// The format of the pixels.
    pub(crate) format: PixelFormat,
    /// The first row.
    pub(crate) top: u32,
    /// Rows of the whole image.
    pub(crate) stored_height: u32,
}

type Reader<'a> = ::png::Reader<Cursor<&'a [u8]>>;

/// Reads the header of an image. Call it inside [`catch_panic`](super::panics::catch_panic).
pub(crate) fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageInfo, Error> {
    let repaired = repaired(bytes);
    let reader = open(&repaired, limits, Depth::Sixteen)?;
    let (width, height) = reader.info().size();
    let channels = reader.output_color_type().0.samples() as u8;
    Ok(ImageInfo { format: Format::Png, width, height, channels, orientation: metadata::png(bytes).orientation() })
}

/// Returns what the samples are. Reads the bit depth and the colour type, which follow signature, length and name of the first chunk (IHDR), width and height.
pub(crate) fn stored_samples(bytes: &[u8]) -> Option<StoredSamples> {
    let (bits, color) = (*bytes.get(24)?, *bytes.get(25)?);
    let depth = if bits == 16 { Depth::Sixteen } else { Depth::Eight };
    // PNG, section 11.2.1: 0 and 4 are grey, 2 and 6 RGB, 3 has a palette.
    let channels = if matches!(color, 0 | 4) { Channels::Gray } else { Channels::Rgb };
    let changed = match (color, bits) {
        (4 | 6, _) => Some("an image with alpha, which is dropped"),
        (0, ..8) => Some(FEW_BITS),
        _ => None,
    };
    Some(StoredSamples { format: PixelFormat { channels, depth }, palette: color == 3, changed })
}

/// Decodes an image, or at least the rows `rows` of it. The samples are decoded into the buffer of `pixels` and converted there.
/// Rows below are not decompressed, unless the image is interlaced. Call it inside
/// [`catch_panic`](super::panics::catch_panic).
///
/// The pixels are for `wanted` 8-bit RGB in that format, otherwise with the channels of the image, of 16 bits if both the image
/// and `wanted` have 16.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    wanted: PixelFormat,
    rows: Option<Range<u32>>,
    pixels: &mut Pixels,
) -> Result<DecodedRows, Error> {
    let bytes = repaired(bytes);
    let mut reader = open(&bytes, limits, wanted.depth)?;
    let (width, height) = reader.info().size();
    let rows = match rows {
        Some(rows) if rows.end < height && !reader.info().interlaced => rows,
        _ => 0..height,
    };
    // `open` checked the limits, so these products do not overflow.
    let count = width as usize * rows.len();
    let (color, depth) = reader.output_color_type();
    let row_len = width as usize * color.samples() * if depth == BitDepth::Sixteen { 2 } else { 1 };
    let stored_len = row_len * rows.len();
    let len = stored_len.max(count * 3);
    pixels.data.reserve_exact(len.saturating_sub(pixels.data.len()));
    pixels.data.resize(len, 0);
    if rows.end == height && rows.start == 0 {
        reader.next_frame(&mut pixels.data[..stored_len]).map_err(damaged)?;
    } else {
        for y in 0..rows.end {
            // The rows above are needed to decode the others; each is overwritten by the next one.
            let at = y.saturating_sub(rows.start) as usize * row_len;
            reader.read_row(&mut pixels.data[at..at + row_len]).map_err(damaged)?;
        }
    }
    let format = match wanted {
        PixelFormat::RGB8 => {
            to_rgb(color, &mut pixels.data, count);
            PixelFormat::RGB8
        }
        _ => select_colors(color, depth, &mut pixels.data, count),
    };
    pixels.data.truncate(count * format.bytes());
    (pixels.width, pixels.height) = (width, rows.len() as u32);
    Ok(DecodedRows { format, top: rows.start, stored_height: height })
}

/// Reads the header, and checks the limits. Of 16-bit samples, which are big-endian, the high byte is kept for `depth` 8.
fn open<'a>(bytes: &'a [u8], limits: &Limits, depth: Depth) -> Result<Reader<'a>, Error> {
    let mut decoder = decoder(bytes, limits)?;
    // Palettes are looked up, and samples of less than 8 bits scaled to 8.
    decoder.set_transformations(match depth {
        Depth::Eight => Transformations::EXPAND | Transformations::STRIP_16,
        Depth::Sixteen => Transformations::EXPAND,
    });
    let reader = decoder.read_info().map_err(damaged)?;
    let (width, height) = reader.info().size();
    let color = reader.output_color_type().0;
    // The limit is on the pixels at the depth of the file.
    let stored = color.samples() as u8 * if reader.info().bit_depth == BitDepth::Sixteen { 2 } else { 1 };
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

/// Converts `count` pixels of 8-bit samples at the start of a buffer to RGB, in place.
fn to_rgb(color: ColorType, data: &mut [u8], count: usize) {
    match color {
        ColorType::Grayscale => replicate::<1>(data, count, 0),
        ColorType::GrayscaleAlpha => replicate::<2>(data, count, 0),
        ColorType::Rgba => select::<4, 3>(data, count, [0, 1, 2]),
        // Palettes are expanded to RGB.
        ColorType::Rgb | ColorType::Indexed => {}
    }
}

/// Drops alpha from `count` pixels at the start of a buffer, in place. Returns the format of the pixels. 16-bit samples become
/// little-endian.
fn select_colors(color: ColorType, depth: BitDepth, data: &mut [u8], count: usize) -> PixelFormat {
    let gray = matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha);
    let channels = if gray { Channels::Gray } else { Channels::Rgb };
    let depth = if depth == BitDepth::Sixteen { Depth::Sixteen } else { Depth::Eight };
    match (color, depth) {
        (ColorType::Grayscale, Depth::Sixteen) => select::<2, 2>(data, count, [1, 0]),
        (ColorType::GrayscaleAlpha, Depth::Sixteen) => select::<4, 2>(data, count, [1, 0]),
        (ColorType::Rgb | ColorType::Indexed, Depth::Sixteen) => select::<6, 6>(data, count, [1, 0, 3, 2, 5, 4]),
        (ColorType::Rgba, Depth::Sixteen) => select::<8, 6>(data, count, [1, 0, 3, 2, 5, 4]),
        (ColorType::GrayscaleAlpha, Depth::Eight) => select::<2, 1>(data, count, [0]),
        (ColorType::Rgba, Depth::Eight) => select::<4, 3>(data, count, [0, 1, 2]),
        // Palettes are expanded to RGB.
        (ColorType::Grayscale | ColorType::Rgb | ColorType::Indexed, Depth::Eight) => {}
    }
    PixelFormat { channels, depth }
}

pub(crate) fn damaged(source: ::png::DecodingError) -> Error {
    decoder_error(Format::Png, source)
}
