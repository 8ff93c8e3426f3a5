//! Decoders of the formats other than JPEG: bytes to RGB, or to the requested pixel format.
//!
//! | module | content |
//! |---|---|
//! | `png`, `png_palette` | PNG, and palettes of a wrong length |
//! | `image_crate` | formats that the `image` crate decodes |
//! | `bmp` | BMP: run-length coded ones, others by `image_crate` |
//! | `webp` | WebP, by `image_crate`, or by `libwebp` if built with the feature of this name |
//! | `tiff` | TIFF, decoded as Pillow does |
//! | `jxl`, `jp2` | JPEG XL and JPEG 2000, if built with the features of these names |
//! | `panics` | turns a panic of a decoder into an error of that image |
//! | `to_rgb` | conversion of pixels to RGB in place |

mod bmp;
pub(crate) mod image_crate;
#[cfg(feature = "jp2")]
mod jp2;
#[cfg(feature = "jxl")]
mod jxl;
#[cfg(feature = "libwebp")]
mod libwebp;
pub(crate) mod panics;
pub(crate) mod png;
pub(crate) mod png_palette;
pub(crate) mod tiff;
mod to_rgb;
mod webp;

use std::ops::Range;

use crate::decode_options::DecodeOptions;
use crate::error::Error;
use crate::float_range::FloatRange;
use crate::format::Format;
use crate::header;
use crate::limits::Limits;
use crate::pixel_format::{PixelFormat, convert};
use crate::pixels::{Pixels, PixelsRef};
use crate::region::{DecodePath, DecodedRegion, RegionOptions};
use crate::transform::geometry::{Geometry, needed};
use crate::transform::rect::Rect;
use panics::catch_panic;

/// The options that these decoders use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodecOptions {
    pub(crate) limits: Limits,
    pub(crate) float_range: Option<FloatRange>,
    pub(crate) pixel_format: PixelFormat,
}

impl From<&DecodeOptions> for CodecOptions {
    fn from(options: &DecodeOptions) -> Self {
        CodecOptions { limits: options.limits, float_range: options.float_range, pixel_format: PixelFormat::RGB8 }
    }
}

impl From<&RegionOptions> for CodecOptions {
    fn from(options: &RegionOptions) -> Self {
        let RegionOptions { limits, float_range, pixel_format, .. } = *options;
        CodecOptions { limits, float_range, pixel_format }
    }
}

/// Decodes a whole image into `pixels`, in the requested format. If the decoder panics, the content of `pixels` is discarded.
pub(crate) fn decode(format: Format, bytes: &[u8], options: &CodecOptions, pixels: &mut Pixels) -> Result<(), Error> {
    decode_rows(format, bytes, None, options, pixels).map(drop)
}

/// As [`decode`], but decoders that can do so leave out rows other than `rows`. Returns the first row decoded and the rows of the
/// whole image.
fn decode_rows(
    format: Format,
    bytes: &[u8],
    rows: Option<Range<u32>>,
    options: &CodecOptions,
    pixels: &mut Pixels,
) -> Result<(u32, u32), Error> {
    let limits = &options.limits;
    // The size limits are checked before the decoder is called.
    if let Some(info) = header::probe(format, bytes, limits) {
        info?;
    }
    let mut part = None;
    let result = catch_panic(format, || match format {
        #[cfg(feature = "jxl")]
        Format::Jxl => jxl::decode(bytes, limits, pixels).map(|()| PixelFormat::RGB8),
        #[cfg(feature = "jp2")]
        Format::Jp2 => jp2::decode(bytes, limits, pixels).map(|()| PixelFormat::RGB8),
        #[allow(unreachable_patterns, reason = "features decide which formats have a decoder")]
        Format::Avif | Format::Heif | Format::Jxl | Format::Jp2 => Err(not_decoded(format)),
        Format::Png => {
            let decoded = png::decode(bytes, limits, options.pixel_format, rows, pixels)?;
            part = Some((decoded.top, decoded.stored_height));
            Ok(decoded.format)
        }
        Format::WebP => {
            part = webp::decode(bytes, limits, rows, pixels)?;
            Ok(PixelFormat::RGB8)
        }
        Format::Bmp => bmp::decode(bytes, limits, pixels).map(|()| PixelFormat::RGB8),
        Format::Tiff => match tiff::decode(bytes, options, pixels)? {
            Some(found) => Ok(found),
            None => image_crate::decode(format, bytes, limits, pixels).map(|()| PixelFormat::RGB8),
        },
        _ => image_crate::decode(format, bytes, limits, pixels).map(|()| PixelFormat::RGB8),
    });
    if matches!(result, Err(Error::Panic { .. })) {
        *pixels = Pixels::default();
    }
    let count = pixels.width as usize * pixels.height as usize;
    convert(&mut pixels.data, count, result?, options.pixel_format);
    Ok(part.unwrap_or((0, pixels.height)))
}

/// Decodes at least the pixels that geometries need into `pixels`.
pub(crate) fn decode_region<'a>(
    format: Format,
    bytes: &[u8],
    geometries: &[Geometry],
    options: &RegionOptions,
    pixels: &'a mut Pixels,
) -> Result<DecodedRegion<'a>, Error> {
    let rect = needed(geometries, None).0;
    let rows = rect.top..rect.top + rect.height;
    let (top, stored_height) = decode_rows(format, bytes, Some(rows), &CodecOptions::from(options), pixels)?;
    let (width, height) = (pixels.width, pixels.height);
    let path = if height < stored_height { DecodePath::Rows } else { DecodePath::WholeImage };
    let region = DecodedRegion {
        pixels: PixelsRef::with_format(width, height, options.pixel_format, &pixels.data)?,
        rect: Rect { left: 0, top, width, height },
        stored: (width, stored_height),
        reduction: 1,
        path,
        entries_rejected: false,
        filled: false,
    };
    geometries.iter().try_for_each(|geometry| geometry.check_stored(region.stored))?;
    Ok(region)
}

fn not_decoded(format: Format) -> Error {
    let reason = match format {
        Format::Jxl => "this build is without the feature `jxl`",
        Format::Jp2 => "this build is without the feature `jp2`",
        Format::Avif => {
            "no AVIF decoder in Rust is fit to use; convert it, for instance with Pillow 11.3 or newer: python -c \"from PIL \
             import Image, ImageOps as o; o.exif_transpose(Image.open('a.avif')).save('a.png')\""
        }
        _ => {
            "no HEIF decoder is built in; convert it, for instance with pip install pillow-heif: python -c \"import \
             pillow_heif; from PIL import Image, ImageOps as o; pillow_heif.register_heif_opener(); \
             o.exif_transpose(Image.open('a.heic')).save('a.png')\""
        }
    };
    Error::NotDecoded { format, reason }
}

/// The error of a decoder of another crate.
pub(crate) fn decoder_error(format: Format, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Decoder { format, source: source.into() }
}
