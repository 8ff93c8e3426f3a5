//! A geometry applied to decoded pixels: from the source straight into its place in the batch.

use crate::decode::Window;
use crate::error::Error;
use crate::geometry::{Area, Geometry, Rect};
use crate::orientation::Orientation;
use crate::pixels::check_len;
use crate::resize::{Filter, Resizer};

/// What applying geometries keeps from one image to the next: one for each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    resizer: Resizer,
    turned: Vec<u8>,
}

/// Writes what `geometry` makes of a decoded window into `out`, `[H, W, 3]` u8 RGB with H and W its
/// [`output_size`](Geometry::output_size). Crop and resize read the window in place; flips happen inside `out`; only
/// orientations that exchange rows and columns pass through a buffer of one result in `scratch`.
///
/// # Errors
/// [`Error::PixelBytes`] if `out` has another length; [`Error::SizeMismatch`] if the window is of an image of another size;
/// [`Error::Window`] if it lacks a pixel that is needed.
pub fn apply(
    geometry: &Geometry,
    window: &Window<'_>,
    filter: Filter,
    out: &mut [u8],
    scratch: &mut Scratch,
) -> Result<(), Error> {
    let (width, height) = geometry.size;
    check_len(width, height, out.len())?;
    geometry.check_stored(window.stored)?;
    let needed = geometry.needed();
    let pixels = window.pixels;
    let shown = (window.rect.width, window.rect.height) == (pixels.width(), pixels.height());
    if !shown || !window.rect.contains(needed) {
        return Err(Error::Window { needed, found: window.rect });
    }
    let origin = (window.rect.left, window.rect.top);
    let view = geometry.view.meet(window.rect);
    let view = Rect { left: view.left - origin.0, top: view.top - origin.1, ..view };
    let area = Area {
        left: geometry.area.left - f64::from(origin.0),
        top: geometry.area.top - f64::from(origin.1),
        ..geometry.area
    };
    let orientation = geometry.orientation;
    let size = orientation.size(geometry.size);
    if orientation.swap {
        scratch.turned.resize(out.len(), 0);
        scratch.resizer.resize(pixels, view, area, filter, size, &mut scratch.turned)?;
        orientation.write(size, &scratch.turned, out);
    } else {
        scratch.resizer.resize(pixels, view, area, filter, size, out)?;
        if orientation != Orientation::default() {
            orientation.mirror_in_place(width, out);
        }
    }
    Ok(())
}
