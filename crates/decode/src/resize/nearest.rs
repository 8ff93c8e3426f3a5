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
        self.find_columns(region, width, flip);
        let (stride, out_stride) = (region.decoded.width as usize, width as usize);
        let (pixels, out) = (pixels.as_chunks::<C>().0, out.as_chunks_mut::<C>().0);
        for (i, y) in rows(region, height, flip) {
            // A row of padding has no columns.
            let row = if y == OUTSIDE { &[][..] } else { &pixels[stride * y..][..stride] };
            let out = &mut out[i * out_stride..][..out_stride];
            out.iter_mut().zip(&self.columns).for_each(|(o, &x)| *o = row.get(x).copied().unwrap_or(fill));
        }
    }

    /// As [`resize`](Self::resize), of pixels that all have one value.
    pub(crate) fn resize_uniform<const C: usize>(
        &mut self,
        value: [u8; C],
        region: SourceRegion,
        (width, height): (u32, u32),
        flip: Flip,
        fill: [u8; C],
        out: &mut [u8],
    ) {
        self.find_columns(region, width, flip);
        let (out_stride, out) = (width as usize, out.as_chunks_mut::<C>().0);
        // The first row of the image is copied to the others.
        let mut first = None;
        for (i, y) in rows(region, height, flip) {
            let start = i * out_stride;
            match (y, first) {
                (OUTSIDE, _) => out[start..][..out_stride].fill(fill),
                (_, Some(first)) => out.copy_within(first..first + out_stride, start),
                (_, None) => {
                    let row = out[start..][..out_stride].iter_mut().zip(&self.columns);
                    row.for_each(|(o, x)| *o = if *x == OUTSIDE { fill } else { value });
                    first = Some(start);
                }
            }
        }
    }

    /// Finds the source column of each column of a result of this width.
    fn find_columns(&mut self, SourceRegion { decoded, crop, area }: SourceRegion, width: u32, flip: Flip) {
        let sources = nearest(width, area.left, area.width, crop.left..crop.left + crop.width);
        self.columns.clear();
        self.columns.extend(sources.map(|x| offset(x, decoded.left, decoded.width)));
        if flip.horizontal {
            self.columns.reverse();
        }
    }
}

/// Returns each row of a result of this height, and its source row.
fn rows(
    SourceRegion { decoded, crop, area }: SourceRegion,
    height: u32,
    flip: Flip,
) -> impl Iterator<Item = (usize, usize)> {
    let sources = nearest(height, area.top, area.height, crop.top..crop.top + crop.height);
    sources.enumerate().map(move |(i, y)| {
        let i = if flip.vertical { height as usize - 1 - i } else { i };
        (i, offset(y, decoded.top, decoded.height))
    })
}

/// Returns the place of a column or row among those that were decoded; [`OUTSIDE`] for padding.
fn offset(at: u32, start: u32, length: u32) -> usize {
    let offset = at.checked_sub(start).filter(|offset| *offset < length);
    offset.map_or(OUTSIDE, |offset| offset as usize)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::rect::{Area, Rect};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_uniform_image_is_resized_as_any_other(
            (left, top, width, height) in (0..9_u32, 0..9_u32, 1..30_u32, 1..30_u32),
            crop in (0..9_u32, 0..9_u32, 1..40_u32, 1..40_u32),
            fraction in (0.0..1.0, 0.0..1.0),
            size in (1..50_u32, 1..50_u32),
            (horizontal, vertical) in (any::<bool>(), any::<bool>()),
        ) {
            let decoded = Rect { left, top, width, height };
            let crop = Rect { left: crop.0, top: crop.1, width: crop.2, height: crop.3 };
            let (x, y) = (f64::from(crop.left) + fraction.0, f64::from(crop.top) + fraction.1);
            let (right, bottom) = (f64::from(crop.left + crop.width), f64::from(crop.top + crop.height));
            let area = Area { left: x, top: y, width: right - x, height: bottom - y };
            let (region, flip) = (SourceRegion { decoded, crop, area }, Flip { horizontal, vertical });
            let bytes = (size.0 * size.1) as usize * 2;
            let (mut plain, mut uniform) = (vec![0; bytes], vec![0; bytes]);
            let pixels = [7, 8].repeat((width * height) as usize);
            Nearest::default().resize(&pixels, region, size, flip, [1, 2], &mut plain);
            Nearest::default().resize_uniform([7, 8], region, size, flip, [1, 2], &mut uniform);
            prop_assert_eq!(plain, uniform);
        }
    }
}
