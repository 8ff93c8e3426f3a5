//! Pixels of one size from pixels of another: antialiased bilinear as PIL and torchvision (`antialias=True`) do it, or the
//! nearest pixel, for masks.

use crate::bilinear::Bilinear;
use crate::error::Error;
use crate::geometry::{Area, Rect};
use crate::nearest::{Nearest, Place};
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
    let source = Source { pixels, rect: view, view, area: view.area() };
    Resizer::default().resize(source, Filter::Bilinear, (width, height), Mirror::default(), &mut out.data)?;
    Ok(out)
}

/// Which way round the result is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mirror {
    /// Left to right.
    pub(crate) across: bool,
    /// Top to bottom.
    pub(crate) down: bool,
}

/// What is resized, in the coordinates of the stored image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// Decoded pixels of it.
    pub(crate) pixels: PixelsRef<'a>,
    /// Where they stand in the stored image.
    pub(crate) rect: Rect,
    /// Pixels outside do not exist for the filter; those inside but outside `area` do. What the filter reaches of it is
    /// among the pixels.
    pub(crate) view: Rect,
    /// What fills the result.
    pub(crate) area: Area,
}

impl Source<'_> {
    fn place(&self) -> Place {
        Place { rect: self.rect, view: self.view, area: self.area }
    }
}

/// Resizes, and keeps its buffers from one image to the next.
#[derive(Debug, Default)]
pub(crate) struct Resizer {
    bilinear: Bilinear,
    nearest: Nearest,
}

impl Resizer {
    /// Writes the source's area at `size` (width, height) into `out`, which has room for just that.
    pub(crate) fn resize(
        &mut self,
        source: Source<'_>,
        filter: Filter,
        size: (u32, u32),
        mirror: Mirror,
        out: &mut [u8],
    ) -> Result<(), Error> {
        check_len(size.0, size.1, out.len())?;
        match filter {
            Filter::Bilinear => self.bilinear.resize(source, size, mirror, out),
            Filter::Nearest => self.nearest.resize::<3>(source.pixels.data(), source.place(), size, mirror, out),
        }
        Ok(())
    }
}
