//! Nearest-neighbour resize, for pixels of any number of bytes.

use super::{Flip, SourceRegion};

/// Resizes by nearest neighbour and keeps its buffer from one image to the next.
#[derive(Debug, Default)]
pub(crate) struct Nearest {
    /// Source column of each result column.
    columns: Vec<usize>,
}

impl Nearest {
    /// Resizes the region's area to `size` (width, height) and writes it to `out`, which must have exactly that size.
    /// Pixels have `C` bytes.
    pub(crate) fn resize<const C: usize>(
        &mut self,
        pixels: &[u8],
        region: SourceRegion,
        (width, height): (u32, u32),
        flip: Flip,
        out: &mut [u8],
    ) {
        let SourceRegion { decoded, crop, area } = region;
        let crop = crop.intersect(decoded);
        let (columns, rows) = (crop.left..crop.left + crop.width, crop.top..crop.top + crop.height);
        self.columns.clear();
        self.columns.extend(nearest(width, area.left, area.width, columns).map(|x| (x - decoded.left) as usize));
        if flip.horizontal {
            self.columns.reverse();
        }
        let (stride, out_stride) = (decoded.width as usize, width as usize);
        let (pixels, out) = (pixels.as_chunks::<C>().0, out.as_chunks_mut::<C>().0);
        let rows = nearest(height, area.top, area.height, rows).map(|y| (y - decoded.top) as usize);
        for (i, y) in rows.enumerate() {
            let i = if flip.vertical { height as usize - 1 - i } else { i };
            let row = &pixels[stride * y..][..stride];
            out[i * out_stride..][..out_stride].iter_mut().zip(&self.columns).for_each(|(o, &x)| *o = row[x]);
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
