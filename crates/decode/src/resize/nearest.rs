//! Nearest-neighbour resize, for pixels of any number of bytes.

use super::{Flip, SourceRegion};

/// A row or column of padding.
const OUTSIDE: usize = usize::MAX;

/// Resizes by nearest neighbour and keeps its buffer from one image to the next.
#[derive(Debug, Default)]
pub(crate) struct Nearest {
    /// Source column of each result column; [`OUTSIDE`] for padding.
    columns: Vec<usize>,
}

impl Nearest {
    /// Resizes the region's area to `size` (width, height) and writes it to `out`, which must have exactly that size.
    /// Pixels have `C` bytes; those of the crop that were not decoded are padding, and become `fill`.
    pub(crate) fn resize<const C: usize>(
        &mut self,
        pixels: &[u8],
        region: SourceRegion,
        (width, height): (u32, u32),
        flip: Flip,
        fill: [u8; C],
        out: &mut [u8],
    ) {
        let SourceRegion { decoded, crop, area } = region;
        let (columns, rows) = (crop.left..crop.left + crop.width, crop.top..crop.top + crop.height);
        let offset = |at: u32, start: u32, length: u32| {
            let offset = at.checked_sub(start).filter(|offset| *offset < length);
            offset.map_or(OUTSIDE, |offset| offset as usize)
        };
        self.columns.clear();
        let sources = nearest(width, area.left, area.width, columns);
        self.columns.extend(sources.map(|x| offset(x, decoded.left, decoded.width)));
        if flip.horizontal {
            self.columns.reverse();
        }
        let (stride, out_stride) = (decoded.width as usize, width as usize);
        let (pixels, out) = (pixels.as_chunks::<C>().0, out.as_chunks_mut::<C>().0);
        let rows = nearest(height, area.top, area.height, rows).map(|y| offset(y, decoded.top, decoded.height));
        for (i, y) in rows.enumerate() {
            let i = if flip.vertical { height as usize - 1 - i } else { i };
            // A row of padding has no columns.
            let row = if y == OUTSIDE { &[][..] } else { &pixels[stride * y..][..stride] };
            let out = &mut out[i * out_stride..][..out_stride];
            out.iter_mut().zip(&self.columns).for_each(|(o, &x)| *o = row.get(x).copied().unwrap_or(fill));
        }
    }
}

/// Returns the source pixels under the centres of `n` target pixels, limited to `range`. The positions are summed, not
/// multiplied, as in PIL's nearest resize: where a centre falls between two pixels, the rounding of the sum decides, so
/// masks are equal to PIL's.
fn nearest(n: u32, start: f64, length: f64, range: std::ops::Range<u32>) -> impl Iterator<Item = u32> {
    let step = length / f64::from(n);
    let (whole, mut at) = (start.floor(), start.fract() + step * 0.5);
    (0..n).map(move |_| {
        let pixel = (whole + at.floor()) as u32;
        at += step;
        pixel.clamp(range.start, range.end - 1)
    })
}
