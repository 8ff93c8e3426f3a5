//! Pixels of one size from pixels of another: antialiased bilinear as PIL and torchvision (`antialias=True`) do it, or the
//! nearest pixel, for masks.

use fast_image_resize as fir;
use fir::images::{CroppedImage, Image, ImageRef};

use crate::error::Error;
use crate::geometry::{Area, Rect};
use crate::pixels::{Pixels, PixelsRef, check_len};

/// How pixels between pixels are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// A triangle as wide as the reduction asks (PIL's `BILINEAR`): for images.
    Bilinear,
    /// The pixel under the centre (PIL's `NEAREST`): for masks, whose values must not mix.
    Nearest,
}

/// Width and height with the shorter side reduced to `shorter` pixels, the other in proportion and rounded down, as
/// torchvision's `Resize` does. Never larger than before.
pub fn reduce_shorter((width, height): (u32, u32), shorter: u32) -> (u32, u32) {
    if width.min(height) <= shorter { (width, height) } else { scale_shorter((width, height), shorter) }
}

/// Width and height with the longer side reduced to `longer` pixels, the other in proportion, rounded down, at least 1.
/// Never larger than before.
pub fn reduce_longer((width, height): (u32, u32), longer: u32) -> (u32, u32) {
    let long = width.max(height);
    if long <= longer {
        return (width, height);
    }
    let scaled = |side: u32| (u64::from(longer) * u64::from(side) / u64::from(long)).max(1) as u32;
    (scaled(width), scaled(height))
}

/// torchvision's `_compute_resized_output_size`: the shorter side becomes `shorter`, the longer one
/// `int(shorter * long / short)`, at most `u32::MAX`.
pub(crate) fn scale_shorter((width, height): (u32, u32), shorter: u32) -> (u32, u32) {
    let (short, long) = (width.min(height), width.max(height));
    let scaled = u64::from(shorter) * u64::from(long) / u64::from(short.max(1));
    let scaled = u32::try_from(scaled).unwrap_or(u32::MAX);
    if width <= height { (shorter, scaled) } else { (scaled, shorter) }
}

/// The whole image at another size, antialiased bilinear.
///
/// # Errors
/// [`Error::Side`] if the new size is zero, or above 65,535 pixels a side.
pub fn resize(pixels: PixelsRef<'_>, (width, height): (u32, u32)) -> Result<Pixels, Error> {
    if ![width, height].iter().all(|s| (1..=65_535).contains(s)) {
        return Err(Error::Side { width, height });
    }
    let mut out = Pixels { width, height, data: vec![0; width as usize * height as usize * 3] };
    let view = Rect { left: 0, top: 0, width: pixels.width(), height: pixels.height() };
    Resizer::default().resize(pixels, view, view.area(), Filter::Bilinear, (width, height), &mut out.data)?;
    Ok(out)
}

/// Resizes, and keeps its buffers from one image to the next.
#[derive(Debug, Default)]
pub(crate) struct Resizer {
    bilinear: fir::Resizer,
    columns: Vec<usize>,
}

impl Resizer {
    /// Writes `area` of the pixels at `size` into `out`. `view` and `area` are in pixels of `pixels`; pixels outside `view`
    /// do not exist for the filter, those inside `view` but outside `area` do.
    pub(crate) fn resize(
        &mut self,
        pixels: PixelsRef<'_>,
        view: Rect,
        area: Area,
        filter: Filter,
        size: (u32, u32),
        out: &mut [u8],
    ) -> Result<(), Error> {
        check_len(size.0, size.1, out.len())?;
        match filter {
            Filter::Bilinear => self.bilinear(pixels, view, area, size, out),
            Filter::Nearest => {
                self.nearest(pixels, view, area, size, out);
                Ok(())
            }
        }
    }

    fn bilinear(
        &mut self,
        pixels: PixelsRef<'_>,
        view: Rect,
        area: Area,
        (width, height): (u32, u32),
        out: &mut [u8],
    ) -> Result<(), Error> {
        let bad = |source: fir::ResizeError| Error::Resize { source };
        let source = ImageRef::new(pixels.width(), pixels.height(), pixels.data(), fir::PixelType::U8x3)
            .map_err(|_| bad(fir::CropBoxError::SizeIsOutOfImageBoundaries.into()))?;
        let source =
            CroppedImage::new(&source, view.left, view.top, view.width, view.height).map_err(|e| bad(e.into()))?;
        let mut target = Image::from_slice_u8(width, height, out, fir::PixelType::U8x3)
            .map_err(|_| bad(fir::CropBoxError::SizeIsOutOfImageBoundaries.into()))?;
        // Rounding may have carried the area past the view by a hair, which the library would refuse.
        let left = (area.left - f64::from(view.left)).max(0.0);
        let top = (area.top - f64::from(view.top)).max(0.0);
        let options = fir::ResizeOptions::new()
            .resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::Bilinear))
            .crop(left, top, within(left, area.width, view.width), within(top, area.height, view.height));
        self.bilinear.resize(&source, &mut target, &options).map_err(bad)
    }

    fn nearest(&mut self, pixels: PixelsRef<'_>, view: Rect, area: Area, (width, height): (u32, u32), out: &mut [u8]) {
        let stride = pixels.width() as usize * 3;
        let (columns, rows) = (view.left..view.left + view.width, view.top..view.top + view.height);
        self.columns.clear();
        self.columns.extend((0..width).map(|x| 3 * nearest(x, width, area.left, area.width, &columns)));
        for (y, out_row) in (0..height).zip(out.chunks_exact_mut(width as usize * 3)) {
            let row = &pixels.data()[stride * nearest(y, height, area.top, area.height, &rows)..][..stride];
            for (o, &x) in out_row.as_chunks_mut::<3>().0.iter_mut().zip(&self.columns) {
                o.copy_from_slice(&row[x..x + 3]);
            }
        }
    }
}

/// The largest length not above `length` for which `start + length`, in floating point, stays within `limit`.
fn within(start: f64, length: f64, limit: u32) -> f64 {
    let mut length = length.min(f64::from(limit) - start);
    while start + length > f64::from(limit) {
        length = length.next_down();
    }
    length
}

/// The source pixel under the centre of target pixel `i` of `n`, as PIL's nearest resize picks it.
fn nearest(i: u32, n: u32, start: f64, length: f64, range: &std::ops::Range<u32>) -> usize {
    let at = start + (f64::from(i) + 0.5) * length / f64::from(n);
    (at as u32).clamp(range.start, range.end - 1) as usize
}
