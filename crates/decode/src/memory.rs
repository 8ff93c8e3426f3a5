//! What a sample takes of memory beside its bytes and its place in the batch, told before it is decoded, so that a loader
//! admits no more samples at a time than fit. Upper bounds, for a thread that holds nothing yet.

use shardtool_jpeg::Header;

use crate::codecs::tiff;
use crate::error::Error;
use crate::format::{Format, sniff};
use crate::jpeg;
use crate::pixels::rgb_len;
use crate::probe::{ImageInfo, probe};
use crate::region::RegionOptions;
use crate::transform::geometry::Geometry;

/// Bytes at most for an image of that size (width, height) and encoded length in bytes, in any format, and `output` (width,
/// height) pixels made of it: what is known from an index alone. JPEG XL and JPEG 2000 take more ([`scratch_bytes`]). Decoders of other formats, and of progressive JPEGs,
/// keep 12 bytes a pixel at most (coefficients beside pixels, or 16-bit samples with the rows they come from), and may copy
/// the file.
pub fn scratch_bound((width, height): (u32, u32), encoded: u64, output: (u32, u32)) -> u64 {
    // JPEGs are coded in units of up to 32 × 32 pixels.
    let padded = |side: u32| u64::from(side).next_multiple_of(32);
    let pixels = padded(width).saturating_mul(padded(height));
    let applied = applied((width.into(), height.into()), output, (output.1, output.0));
    pixels.saturating_mul(12).saturating_add(2 * encoded).saturating_add(applied + FIXED)
}

/// The same for just what [`Decoder::decode_region`](crate::Decoder::decode_region) and [`apply_geometry`](crate::apply_geometry) do with
/// this image: of most JPEGs the part that the geometry needs, by the header. Much less for large photographs.
///
/// # Errors
/// A header that is broken, not of the geometry's size, or beyond the limits.
pub fn scratch_bytes(bytes: &[u8], geometry: &Geometry, options: &RegionOptions) -> Result<u64, Error> {
    let all = || Ok(scratch_bound(geometry.stored, bytes.len() as u64, geometry.size));
    let format = sniff(bytes);
    if format != Some(Format::Jpeg) {
        let ImageInfo { width, height, .. } = probe(bytes, &options.limits)?;
        geometry.check_stored((width, height))?;
        let pixels = u64::from(width) * u64::from(height);
        return match format {
            Some(Format::Jxl | Format::Jp2) => all().map(|bound| bound.saturating_add(pixels * FLOATING)),
            // The bound includes 12 bytes per pixel, of which 3 are the result.
            Some(Format::Tiff) => {
                let chunk = tiff::chunk_bytes(bytes)?.saturating_sub(9 * pixels);
                all().map(|bound| bound.saturating_add(chunk))
            }
            _ => all(),
        };
    }
    let Some(header) = jpeg::supported(Header::parse(bytes, &jpeg::unlimited()))? else { return all() };
    options.limits.check(Format::Jpeg, header.width, header.height, 3)?;
    geometry.check_stored((header.width, header.height))?;
    let reduction = geometry.reduction(options.reducing_gap);
    let reduced = geometry.reduced(reduction);
    let rect = reduced.needed();
    let request = jpeg::request(rect, reduction);
    let decoding = shardtool_jpeg::Decoder::scratch_bytes(&header, &request, bytes.len());
    let decoding = decoding.map_err(|source| Error::Jpeg { source })? as u64;
    let size = geometry.orientation.size(geometry.size);
    let applied = applied((reduced.area.width, reduced.area.height), size, geometry.size);
    Ok(decoding + rgb_len(rect.width, rect.height) + applied + FIXED)
}

/// What resizing an area (width, height) to `size` takes: weights along both axes, the ring of rows, and, counted in any
/// case, a result whose rows and columns are exchanged. Vectors may be twice as long as what is in them.
fn applied((width, height): (f64, f64), size: (u32, u32), output: (u32, u32)) -> u64 {
    let taps = |length: f64, n: u32| (length / f64::from(n)).max(1.0).ceil() as u64 + 1;
    let (across, down) = (taps(width, size.0), taps(height, size.1));
    let weights = u64::from(size.0) * (4 + 8 * across) + u64::from(size.1) * (4 + 8 * down) + 16 * (across + down);
    let ring = (u64::from(size.0) * 3 + 64) * (2 * down + 2) + 16 * down;
    let ends = 2 * (3 * width as u64 + 64);
    2 * (weights + ring + ends) + rgb_len(output.0, output.1)
}

/// Bytes a pixel that decoders in floating point take beyond those of others: together 40, of which 33 (JPEG 2000) and 28
/// (JPEG XL) were measured of 12 megapixels of RGB.
const FLOATING: u64 = 28;

/// Tables and small buffers of any decoder.
const FIXED: u64 = 512 << 10;
