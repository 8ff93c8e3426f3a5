//! Bounds of the memory that decoding an image takes, in addition to its bytes and its place in the batch, known before it is
//! decoded, so that a loader decodes no more images at a time than fit. Upper bounds, for a thread that holds no memory yet.

use crate::codecs::tiff;
use crate::encoded::EncodedImage;
use crate::error::Error;
use crate::format::Format;
use crate::image_info::ImageInfo;
use crate::jpeg;
use crate::limits::Limits;
use crate::pixel_format::PixelFormat;
use crate::pixels::rgb_len;
use crate::probe::probe;
use crate::region::RegionOptions;
use crate::resize::{Filter, resize_bytes};
use crate::transform::geometry::{Geometry, needed};
use crate::transform::rect::Rect;
use crate::truncated::Truncated;
use shardtool_jpeg::Request;

/// Returns an upper bound of the bytes that decoding takes for an image of any format, of this size (width, height) and
/// encoded length in bytes, of which `output` (width, height) pixels are made: what is known from an index alone. Decoders of
/// JPEG XL, of JPEG 2000 and of TIFF with deep samples can take more ([`scratch_bytes`]); those of other formats keep at most
/// 12 bytes a pixel (16-bit samples and the rows they come from), and may copy the file; JPEGs of hundreds of scans take up to 16 MiB
/// more, and those of one row of MCUs of four components up to 5 bytes a pixel more.
pub fn scratch_bound((width, height): (u32, u32), encoded: u64, output: (u32, u32)) -> u64 {
    bound(PixelFormat::RGB8, (width, height), encoded, output)
}

/// [`scratch_bound`] for a pixel format.
fn bound(format: PixelFormat, (width, height): (u32, u32), encoded: u64, output: (u32, u32)) -> u64 {
    let applied = applied(format, (width.into(), height.into()), output, (output.1, output.0), Filter::Lanczos);
    let deep = deep_bytes(format) * u64::from(width) * u64::from(height);
    deep + padded_pixels(width, height)
        .saturating_mul(CODED)
        .saturating_add(2 * encoded)
        .saturating_add(applied + FIXED)
}

/// Returns the pixels that an image is coded as: JPEGs are coded in units of up to 32 × 32 pixels.
fn padded_pixels(width: u32, height: u32) -> u64 {
    let padded = |side: u32| u64::from(side).next_multiple_of(32);
    padded(width).saturating_mul(padded(height))
}

/// Returns format and size (width, height) of an image, and an upper bound of the bytes that [`decode`](crate::decode())
/// takes for it.
///
/// # Errors
/// If the header is damaged or the image exceeds a limit.
pub(crate) fn whole_bytes(
    bytes: &[u8],
    limits: &Limits,
    truncated: Truncated,
) -> Result<(Format, (u32, u32), u64), Error> {
    let ImageInfo { format, width, height, .. } = probe(bytes, limits)?;
    let rgb = rgb_len(width, height);
    let decoding = match EncodedImage::parse(bytes)?.jpeg() {
        Some(jpeg) => {
            let request = Request { fill: truncated == Truncated::Fill, ..Request::default() };
            let scratch = shardtool_jpeg::Decoder::scratch_bytes(jpeg, &request);
            scratch.map_err(|source| Error::Jpeg { source })? as u64 + rgb
        }
        None => coded_bound(PixelFormat::RGB8, format, (width, height), bytes)?,
    };
    // The image once more, if it is oriented.
    Ok((format, (width, height), decoding + rgb + FIXED))
}

/// Returns an upper bound of the bytes that decoding a whole image takes with a decoder other than our JPEG decoder.
fn coded_bound(
    pixel_format: PixelFormat,
    format: Format,
    (width, height): (u32, u32),
    bytes: &[u8],
) -> Result<u64, Error> {
    let pixels = u64::from(width) * u64::from(height);
    let all = padded_pixels(width, height).saturating_mul(CODED).saturating_add(2 * bytes.len() as u64);
    let all = all.saturating_add(deep_bytes(pixel_format) * pixels);
    Ok(match format {
        Format::Jxl | Format::Jp2 => all.saturating_add(pixels * FLOATING),
        // The bound includes 12 bytes per pixel, of which 3 are the result.
        Format::Tiff => all.saturating_add(tiff::chunk_bytes(bytes)?.saturating_sub(9 * pixels)),
        _ => all,
    })
}

/// As [`EncodedImage::scratch_bytes`], for an image that is not parsed yet.
///
/// # Errors
/// As [`EncodedImage::parse`] and [`EncodedImage::scratch_bytes`].
pub fn scratch_bytes(bytes: &[u8], geometry: &Geometry, options: &RegionOptions) -> Result<u64, Error> {
    EncodedImage::parse(bytes)?.scratch_bytes(std::slice::from_ref(geometry), options)
}

impl EncodedImage<'_> {
    /// Returns an upper bound of the bytes that [`Decoder::decode_parsed_region`](crate::Decoder::decode_parsed_region) and
    /// [`apply_geometry`](crate::apply_geometry), one geometry after the other, take for this image. For most JPEGs it covers
    /// only the part that the geometries need: much less than [`scratch_bound`] for large photographs.
    ///
    /// # Errors
    /// If the header is damaged, not of the size that the geometries were planned for, or beyond the limits.
    pub fn scratch_bytes(&self, geometries: &[Geometry], options: &RegionOptions) -> Result<u64, Error> {
        let bytes = self.bytes();
        let pixel_format = options.pixel_format;
        let most = |of: &dyn Fn(&Geometry) -> u64| geometries.iter().map(of).max().unwrap_or(0);
        let padding = most(&|g| padding_bytes(pixel_format, g));
        let all = || Ok(most(&|g| bound(pixel_format, g.stored, bytes.len() as u64, g.size)) + padding);
        let check = |size| geometries.iter().try_for_each(|geometry| geometry.check_stored(size));
        if self.format() != Some(Format::Jpeg) {
            let ImageInfo { width, height, .. } = probe(bytes, &options.limits)?;
            check((width, height))?;
            let Some(format) = self.format() else { return all() };
            let area = (f64::from(width), f64::from(height));
            let applied = most(&|g| applied(pixel_format, area, g.size, (g.size.1, g.size.0), g.filter));
            return Ok(
                coded_bound(pixel_format, format, (width, height), bytes)?.saturating_add(applied + padding + FIXED)
            );
        }
        let Some(jpeg) = self.jpeg() else { return all() };
        let header = jpeg.header();
        options.limits.check(Format::Jpeg, header.width, header.height, 3)?;
        check((header.width, header.height))?;
        let (rect, reduction) = needed(geometries, options.reducing_gap);
        let request = jpeg::request(rect, reduction, options);
        let decoding = shardtool_jpeg::Decoder::scratch_bytes(jpeg, &request);
        let decoding = decoding.map_err(|source| Error::Jpeg { source })? as u64;
        let applied = most(&|g| g.reduced(reduction).scratch_bytes(pixel_format));
        Ok(decoding + pixel_format.len((rect.width, rect.height)) + applied + FIXED)
    }
}

impl Geometry {
    /// Returns an upper bound of the bytes that [`apply_geometry`](crate::apply_geometry) takes for decoded pixels of a format.
    pub fn scratch_bytes(&self, format: PixelFormat) -> u64 {
        let area = (self.area.width, self.area.height);
        let oriented = self.orientation.size(self.size);
        applied(format, area, oriented, self.size, self.filter) + padding_bytes(format, self)
    }
}

/// Returns an upper bound of the bytes that [`decode_raw_as`](crate::decode_raw_as) takes for raw pixels of that size (width,
/// height), stored as `format`.
pub fn raw_scratch_bytes(format: Format, (width, height): (u32, u32), wanted: PixelFormat) -> u64 {
    match (format, wanted) {
        // Used where they are stored.
        (Format::Raw, PixelFormat::RGB8) => FIXED,
        (_, PixelFormat::RGB8) => FIXED + rgb_len(width, height),
        // Decompressed, and then converted to a buffer that may be larger.
        _ => FIXED + rgb_len(width, height) + wanted.len((width, height)),
    }
}

/// Returns the bytes that resizing an area (width, height) to `size` takes, and a transposed result, whether it is needed or
/// not.
fn applied(format: PixelFormat, area: (f64, f64), size: (u32, u32), output: (u32, u32), filter: Filter) -> u64 {
    resize_bytes(format, area, size, filter) + format.len(output)
}

/// Returns the bytes that the pixels that a geometry needs take together with their padding; 0 if it shows none.
fn padding_bytes(format: PixelFormat, geometry: &Geometry) -> u64 {
    let Rect { width, height, .. } = geometry.needed_canvas();
    if geometry.shows_padding() { format.len((width, height)) } else { 0 }
}

/// Returns the bytes a pixel of a format beyond those of 8-bit RGB.
fn deep_bytes(format: PixelFormat) -> u64 {
    format.bytes().saturating_sub(3) as u64
}

/// Bytes a pixel that decoders keep at most, the result included, except those of [`FLOATING`] and of TIFF.
const CODED: u64 = 12;

/// Additional bytes a pixel of decoders that compute in floating point: 44 in all. 41 (JPEG 2000 with alpha) and 28 (JPEG XL) were
/// measured with 12 megapixels.
const FLOATING: u64 = 32;

/// Tables and small buffers of any decoder.
const FIXED: u64 = 512 << 10;
