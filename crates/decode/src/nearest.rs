//! The nearest pixel, for masks, whose values must not mix: pixels of any number of bytes.

use crate::geometry::{Area, Rect};
use crate::resize::Mirror;

/// Where decoded pixels stand in the stored image, and what of it is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The decoded pixels.
    pub(crate) rect: Rect,
    /// Pixels outside do not exist.
    pub(crate) view: Rect,
    /// What fills the result.
    pub(crate) area: Area,
}

/// Takes nearest pixels, and keeps its buffer from one image to the next.
#[derive(Debug, Default)]
pub(crate) struct Nearest {
    columns: Vec<usize>,
}

impl Nearest {
    /// Writes the area at `size` (width, height) into `out`, which has room for just that. Pixels have `C` bytes.
    pub(crate) fn resize<const C: usize>(
        &mut self,
        pixels: &[u8],
        place: Place,
        (width, height): (u32, u32),
        mirror: Mirror,
        out: &mut [u8],
    ) {
        let Place { rect, view, area } = place;
        let view = view.meet(rect);
        let (columns, rows) = (view.left..view.left + view.width, view.top..view.top + view.height);
        self.columns.clear();
        self.columns.extend(nearest(width, area.left, area.width, columns).map(|x| (x - rect.left) as usize));
        if mirror.across {
            self.columns.reverse();
        }
        let (stride, out_stride) = (rect.width as usize, width as usize);
        let (pixels, out) = (pixels.as_chunks::<C>().0, out.as_chunks_mut::<C>().0);
        let rows = nearest(height, area.top, area.height, rows).map(|y| (y - rect.top) as usize);
        for (i, y) in rows.enumerate() {
            let i = if mirror.down { height as usize - 1 - i } else { i };
            let row = &pixels[stride * y..][..stride];
            out[i * out_stride..][..out_stride].iter_mut().zip(&self.columns).for_each(|(o, &x)| *o = row[x]);
        }
    }
}

/// The source pixels under the centres of `n` target pixels. Steps are summed, not multiplied, as PIL's nearest resize does:
/// where a centre falls between two pixels, the rounding of the sum decides, and masks come out the same as there.
fn nearest(n: u32, start: f64, length: f64, range: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
    let step = length / f64::from(n);
    let (whole, mut at) = (start.floor(), start.fract() + step * 0.5);
    (0..n).map(move |_| {
        let pixel = (whole + at.floor()) as u32;
        at += step;
        pixel.clamp(range.start, range.end - 1)
    })
}
