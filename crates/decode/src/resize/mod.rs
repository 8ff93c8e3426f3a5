//! Resizing: antialiased as PIL and torchvision (`antialias=True`) do it, or nearest neighbour for masks.
//!
//! | module | content |
//! |---|---|
//! | `apply` | writes the result of a geometry into the batch |
//! | `separable` | the two passes of a separable filter, for 8-bit pixels |
//! | `kernel` | what of them depends on the processor |
//! | `separable_portable`, `separable_sse41`, `separable_avx2`, `separable_avx512`, `separable_neon` | their arithmetic |
//! | `separable_deep` | the same for 16-bit pixels |
//! | `axis_filter` | the filter along one axis, and its weights |
//! | `weights` | these weights, grouped for a kernel |
//! | `nearest` | nearest neighbour |
//! | `padding` | padding around an image |

pub(crate) mod apply;
mod axis_filter;
mod kernel;
mod nearest;
pub(crate) mod padding;
mod separable;
#[cfg(target_arch = "x86_64")]
mod separable_avx2;
#[cfg(target_arch = "x86_64")]
mod separable_avx512;
mod separable_deep;
#[cfg(target_arch = "aarch64")]
mod separable_neon;
mod separable_portable;
#[cfg(target_arch = "x86_64")]
mod separable_sse41;
mod weights;

use crate::error::Error;
use crate::pixel_format::{Depth, PixelFormat};
use crate::pixels::{Pixels, PixelsRef};
use crate::transform::rect::{Area, Rect};
use axis_filter::SourceAxis;
pub(crate) use nearest::Nearest;
use separable::Separable;
use separable_deep::SeparableDeep;
use serde::{Deserialize, Serialize};

/// Resampling filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Filter {
    /// Triangle filter, widened by the reduction factor (PIL's `BILINEAR`): for images.
    #[default]
    Bilinear,
    /// Cubic filter of four pixels, widened by the reduction factor (PIL's `BICUBIC`): sharper.
    Bicubic,
    /// Windowed sinc of six pixels, widened by the reduction factor (PIL's `LANCZOS`): the sharpest, and the slowest.
    Lanczos,
    /// Nearest neighbour (PIL's `NEAREST`): for masks, whose values must not be mixed.
    Nearest,
}

impl Filter {
    /// Returns half of the filter's width in pixels of the reduced image.
    pub(crate) fn support(self) -> u32 {
        match self {
            Filter::Bilinear | Filter::Nearest => 1,
            Filter::Bicubic => 2,
            Filter::Lanczos => 3,
        }
    }
}

/// Returns the width and height after reducing the shorter side to `shorter` pixels and the other side in proportion,
/// rounded down, as torchvision's `Resize` does. Never enlarges.
pub fn reduce_shorter((width, height): (u32, u32), shorter: u32) -> (u32, u32) {
    if width.min(height) <= shorter { (width, height) } else { scale_shorter((width, height), shorter) }
}

/// Returns the width and height after reducing the longer side to `longer` pixels and the other side in proportion,
/// rounded down but at least 1. Never enlarges.
pub fn reduce_longer((width, height): (u32, u32), longer: u32) -> (u32, u32) {
    let long = width.max(height);
    if long <= longer {
        return (width, height);
    }
    let scaled = |side: u32| (u64::from(longer) * u64::from(side) / u64::from(long)).max(1) as u32;
    (scaled(width), scaled(height))
}

/// torchvision's `_compute_resized_output_size` with `max_size`: as [`scale_shorter`], unless the longer side then exceeds
/// `longest`, to which it is then scaled.
pub(crate) fn scale_to_side(size: (u32, u32), shorter: u32, longest: Option<u32>) -> (u32, u32) {
    let scaled = scale_shorter(size, shorter);
    match longest {
        Some(most) if scaled.0.max(scaled.1) > most => {
            let short = (u64::from(most) * u64::from(shorter) / u64::from(scaled.0.max(scaled.1))).max(1) as u32;
            if size.0 <= size.1 { (short, most) } else { (most, short) }
        }
        _ => scaled,
    }
}

/// torchvision's `_compute_resized_output_size`: scales the shorter side to `shorter` and the longer one to
/// `int(shorter * long / short)`, at most `u32::MAX`.
pub(crate) fn scale_shorter((width, height): (u32, u32), shorter: u32) -> (u32, u32) {
    let (short, long) = (width.min(height), width.max(height));
    let scaled = u64::from(shorter) * u64::from(long) / u64::from(short.max(1));
    let scaled = u32::try_from(scaled).unwrap_or(u32::MAX);
    if width <= height { (shorter, scaled) } else { (scaled, shorter) }
}

/// Returns an upper bound of the bytes that resizing an area (width, height) to `size` takes: the weights of both axes and the
/// ring of rows. Doubled, because a vector's capacity may be twice its length.
pub(crate) fn resize_bytes(format: PixelFormat, (width, height): (f64, f64), size: (u32, u32), filter: Filter) -> u64 {
    let support = f64::from(filter.support());
    let taps = |length: f64, n: u32| ((length / f64::from(n)).max(1.0) * support).ceil() as u64 + 1;
    let (across, down) = (taps(width, size.0), taps(height, size.1));
    let channels = format.channels.count() as u64;
    if format.depth == Depth::Sixteen {
        let weights = u64::from(size.0) * (4 + 8 * across) + u64::from(size.1) * (4 + 8 * down);
        return 2 * (weights + 2 * channels * u64::from(size.0) * (down + 1));
    }
    // In groups of up to four weights of three or four bytes each, and in blocks of eight of four bytes each.
    let axis = |n: u32, taps: u64| u64::from(n) * (40 + 16 * taps) + 32 * taps;
    let weights = axis(size.0, across) + axis(size.1, down);
    let rows = 2 * down + 8;
    let ring = (u64::from(size.0) * channels + 96) * rows + 8 * rows;
    let ends = 4 * (channels * width as u64 + 64);
    2 * (weights + ring + ends)
}

/// Resizes a whole image to (width, height) with the antialiased bilinear filter.
///
/// # Errors
/// [`Error::Side`] if a side of the new size is 0 or above 65,535 pixels.
pub fn resize(pixels: PixelsRef<'_>, (width, height): (u32, u32)) -> Result<Pixels, Error> {
    if ![width, height].iter().all(|s| (1..=65_535).contains(s)) {
        return Err(Error::Side { width, height });
    }
    let mut out = Pixels { width, height, data: vec![0; width as usize * height as usize * 3] };
    let whole = Rect { left: 0, top: 0, width: pixels.width(), height: pixels.height() };
    let source = ResizeSource { pixels, region: SourceRegion { decoded: whole, crop: whole, area: whole.area() } };
    Resizer::default().resize(source, Filter::Bilinear, (width, height), Flip::default(), &mut out.data)?;
    Ok(out)
}

/// Flips that are applied while the result is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flip {
    /// Left to right.
    pub(crate) horizontal: bool,
    /// Top to bottom.
    pub(crate) vertical: bool,
}

/// Which part of a stored image is decoded and which part is resized, in coordinates of the stored image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceRegion {
    /// The decoded pixels. They include every pixel of the crop that the filter reads.
    pub(crate) decoded: Rect,
    /// The filter reads no pixels outside this rectangle; pixels inside it but outside `area` it does read.
    pub(crate) crop: Rect,
    /// The area that fills the result.
    pub(crate) area: Area,
}

impl SourceRegion {
    /// Returns the decoded pixels that the filter may read.
    fn available(&self) -> Rect {
        self.crop.intersect(self.decoded)
    }

    /// Returns the horizontal and the vertical axis.
    fn axes(&self) -> [SourceAxis; 2] {
        let SourceRegion { crop, area, .. } = *self;
        let available = self.available();
        let axis = |start: f64, length, crop_start: u32, limit, first: u32| SourceAxis {
            start: start - f64::from(crop_start),
            length,
            limit,
            skipped: first - crop_start,
        };
        [
            axis(area.left, area.width, crop.left, crop.width, available.left),
            axis(area.top, area.height, crop.top, crop.height, available.top),
        ]
    }
}

/// Decoded pixels and the part of them that is resized.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResizeSource<'a> {
    /// The pixels of `region.decoded`.
    pub(crate) pixels: PixelsRef<'a>,
    pub(crate) region: SourceRegion,
}

/// Resizes images and keeps its buffers from one image to the next.
#[derive(Debug, Default)]
pub(crate) struct Resizer {
    separable: Separable,
    deep: SeparableDeep,
    nearest: Nearest,
}

impl Resizer {
    /// Resizes the source's area to `size` (width, height) and writes it to `out`, which must have exactly that size.
    pub(crate) fn resize(
        &mut self,
        source: ResizeSource<'_>,
        filter: Filter,
        size: (u32, u32),
        flip: Flip,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let format = source.pixels.format();
        format.check_len(size, out.len())?;
        let (data, region) = (source.pixels.data(), source.region);
        match (filter, format) {
            (Filter::Nearest, PixelFormat::RGB8) => self.nearest.resize::<3>(data, region, size, flip, [0; 3], out),
            (Filter::Nearest, PixelFormat::GRAY8) => self.nearest.resize::<1>(data, region, size, flip, [0; 1], out),
            (Filter::Nearest, PixelFormat::RGB16) => self.nearest.resize::<6>(data, region, size, flip, [0; 6], out),
            (Filter::Nearest, PixelFormat::GRAY16) => self.nearest.resize::<2>(data, region, size, flip, [0; 2], out),
            (_, PixelFormat::RGB8) => self.separable.resize::<3>(source, filter, size, flip, out),
            (_, PixelFormat::GRAY8) => self.separable.resize::<1>(source, filter, size, flip, out),
            (_, PixelFormat::RGB16) => self.deep.resize::<3>(source, filter, size, flip, out),
            (_, PixelFormat::GRAY16) => self.deep.resize::<1>(source, filter, size, flip, out),
        }
        Ok(())
    }
}
