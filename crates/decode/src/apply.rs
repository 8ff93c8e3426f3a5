//! A geometry applied to decoded pixels: from the source straight into its place in the batch.

use crate::error::Error;
use crate::geometry::Geometry;
use crate::pixels::check_len;
use crate::resize::{Filter, Mirror, Resizer, Source};
use crate::window::DecodedRegion;

/// What applying geometries keeps from one image to the next: one for each thread.
#[derive(Debug, Default)]
pub struct ResizeScratch {
    resizer: Resizer,
    turned: Vec<u8>,
}

/// Writes what `geometry` makes of a decoded window into `out`, `[H, W, 3]` u8 RGB with H and W its
/// [`output_size`](Geometry::output_size). Crop and resize read the window in place, and write in the order that a
/// flip asks; only orientations that exchange rows and columns pass through a buffer of one result in `scratch`.
///
/// # Errors
/// [`Error::PixelBytes`] if `out` has another length; [`Error::SizeMismatch`] if the window is of an image of another size;
/// [`Error::Region`] if it lacks a pixel that is needed.
pub fn apply_geometry(
    geometry: &Geometry,
    window: &DecodedRegion<'_>,
    filter: Filter,
    out: &mut [u8],
    scratch: &mut ResizeScratch,
) -> Result<(), Error> {
    let (width, height) = geometry.size;
    check_len(width, height, out.len())?;
    geometry.check_stored(window.stored)?;
    let geometry = geometry.reduced(window.reduction.max(1));
    let needed = geometry.needed();
    let pixels = window.pixels;
    let shown = (window.rect.width, window.rect.height) == (pixels.width(), pixels.height());
    if !shown || !window.rect.contains(needed) {
        return Err(Error::Region { needed, found: window.rect });
    }
    let source = Source { pixels, rect: window.rect, view: geometry.view, area: geometry.area };
    let orientation = geometry.orientation;
    let size = orientation.size(geometry.size);
    if orientation.swap {
        scratch.turned.resize(out.len(), 0);
        scratch.resizer.resize(source, filter, size, Mirror::default(), &mut scratch.turned)?;
        orientation.write::<3>(size, &scratch.turned, out);
        return Ok(());
    }
    let mirror = Mirror { across: orientation.flip_x, down: orientation.flip_y };
    scratch.resizer.resize(source, filter, size, mirror, out)
}
