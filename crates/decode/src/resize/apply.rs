//! Applies a geometry to decoded pixels and writes the result into the batch, without an intermediate image.

use super::padding::compose;
use super::{Filter, Flip, ResizeSource, Resizer, SourceRegion};
use crate::error::Error;
use crate::pixel_format::PixelFormat;
use crate::pixels::PixelsRef;
use crate::region::DecodedRegion;
use crate::transform::geometry::Geometry;
use crate::transform::rect::Rect;

/// Buffers that [`apply_geometry`] reuses from one image to the next. Use one per thread.
#[derive(Debug, Default)]
pub struct ResizeScratch {
    resizer: Resizer,
    /// The decoded pixels with their padding.
    padded: Vec<u8>,
    /// The result before rows and columns are exchanged.
    transposed: Vec<u8>,
}

/// Crops, resizes and orients a decoded region as `geometry` says, and writes the result to `out`: `[H, W, channels]` in the
/// region's pixel format, where (W, H) is the geometry's [`output_size`](Geometry::output_size).
///
/// Reads the region in place and flips while writing. Only orientations that exchange rows and columns use a buffer of the
/// size of the result, in `scratch`.
///
/// ```
/// use shardtool_decode::{
///     Decoder, Filter, Limits, Orientation, Pipeline, Random, RegionOptions, ResizeScratch, apply_geometry, probe,
/// };
///
/// /// Always the middle of the range.
/// struct Middle;
///
/// impl Random for Middle {
///     fn unit(&mut self) -> f64 {
///         0.5
///     }
///     fn below(&mut self, n: u64) -> u64 {
///         n / 2
///     }
/// }
///
/// # let mut image = b"BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x04\0\0\0\x04\0\0\0\x01\0\x18\0".to_vec();
/// # image.extend([0; 24]);
/// # image.extend([200; 48]);
/// // Plan the image by its header, decode what the plan needs, and write the result into the batch.
/// let info = probe(&image, &Limits::default())?;
/// let orientation = Orientation::from_exif(info.orientation);
/// let geometry = Pipeline::train(2)?.plan((info.width, info.height), orientation, &mut Middle, &[])?.geometry();
///
/// let (mut decoder, mut scratch) = (Decoder::default(), ResizeScratch::default());
/// let region = decoder.decode_region(&image, None, &geometry, &RegionOptions::default())?;
/// let mut row = [0; 2 * 2 * 3];
/// apply_geometry(&geometry, &region, Filter::Bilinear, &mut row, &mut scratch)?;
/// assert_eq!(row, [200; 12]);
/// # Ok::<(), shardtool_decode::Error>(())
/// ```
///
/// # Errors
/// [`Error::PixelBytes`] if the length of `out` is wrong; [`Error::SizeMismatch`] if the region belongs to an image of
/// another size; [`Error::Region`] if the region lacks a pixel that is needed.
pub fn apply_geometry(
    geometry: &Geometry,
    region: &DecodedRegion<'_>,
    filter: Filter,
    out: &mut [u8],
    scratch: &mut ResizeScratch,
) -> Result<(), Error> {
    match region.pixels.format() {
        PixelFormat::RGB8 => apply_as::<3>(geometry, region, filter, out, scratch),
        PixelFormat::GRAY8 => apply_as::<1>(geometry, region, filter, out, scratch),
        PixelFormat::RGB16 => apply_as::<6>(geometry, region, filter, out, scratch),
        PixelFormat::GRAY16 => apply_as::<2>(geometry, region, filter, out, scratch),
    }
}

/// [`apply_geometry`] for pixels of `B` bytes.
fn apply_as<const B: usize>(
    geometry: &Geometry,
    region: &DecodedRegion<'_>,
    filter: Filter,
    out: &mut [u8],
    scratch: &mut ResizeScratch,
) -> Result<(), Error> {
    let format = region.pixels.format();
    format.check_len(geometry.size, out.len())?;
    geometry.check_stored(region.stored)?;
    let geometry = geometry.reduced(region.reduction.max(1));
    let needed = geometry.needed();
    let mut pixels = region.pixels;
    let complete = (region.rect.width, region.rect.height) == (pixels.width(), pixels.height());
    if !complete || !region.rect.contains(needed) {
        return Err(Error::Region { needed, found: region.rect });
    }
    let (x, y) = geometry.canvas.offset;
    let mut decoded = Rect { left: region.rect.left + x, top: region.rect.top + y, ..region.rect };
    if geometry.shows_padding() {
        let wanted = geometry.needed_canvas();
        let fill = format.pixel(geometry.canvas.fill);
        let bytes = format.len((wanted.width, wanted.height)) as usize;
        scratch.padded.reserve_exact(bytes.saturating_sub(scratch.padded.len()));
        scratch.padded.resize(bytes, 0);
        compose::<B>(wanted, (decoded, pixels.data()), fill, &mut scratch.padded);
        decoded = wanted;
        pixels = PixelsRef::with_format(wanted.width, wanted.height, format, &scratch.padded)?;
    }
    let source_region = SourceRegion { decoded, crop: geometry.crop, area: geometry.area };
    let source = ResizeSource { pixels, region: source_region };
    let orientation = geometry.orientation;
    let size = orientation.size(geometry.size);
    if orientation.transpose {
        scratch.transposed.resize(out.len(), 0);
        scratch.resizer.resize(source, filter, size, Flip::default(), &mut scratch.transposed)?;
        orientation.write::<B>(size, &scratch.transposed, out);
        return Ok(());
    }
    let flip = Flip { horizontal: orientation.flip_x, vertical: orientation.flip_y };
    scratch.resizer.resize(source, filter, size, flip, out)
}
