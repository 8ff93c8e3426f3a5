//! Antialiased resize of 8-bit pixels with a separable filter, from the decoded region to the batch: PIL's two passes (horizontal, rounded to 8
//! bits, then vertical) and its arithmetic, so that the pixels are equal to PIL's. PIL after version 12 starts with the
//! vertical pass for some sizes; here the order is always the same, so that pixels do not depend on the version.
//!
//! Rows between the passes are in a ring buffer that holds only the rows one result row needs; it stays in the L1 cache.
//! Flips cost nothing: the weights are computed, and the rows written, in reverse order.

#[cfg(target_arch = "x86_64")]
use super::separable_avx2::Avx2;
use super::weights::{AxisWeights, PRECISION, WeightPair};
use super::{Filter, Flip, ResizeSource};

/// Bytes after the pixels of a row that vector instructions may read or write.
pub(crate) const ROW_PADDING: usize = 32;

/// Resizes images and keeps its memory from one image to the next.
#[derive(Debug)]
pub(crate) struct Separable {
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
    columns: AxisWeights,
    rows: AxisWeights,
    /// Rows after the horizontal pass.
    ring: Vec<u8>,
    /// Copies of source rows that are not followed by enough padding.
    padded_rows: [Vec<u8>; 2],
    /// Offsets in the ring of the rows that make the current result row.
    row_offsets: Vec<usize>,
}

impl Default for Separable {
    fn default() -> Self {
        Separable {
            #[cfg(target_arch = "x86_64")]
            avx2: Avx2::detect(),
            columns: AxisWeights::default(),
            rows: AxisWeights::default(),
            ring: Vec::new(),
            padded_rows: [Vec::new(), Vec::new()],
            row_offsets: Vec::new(),
        }
    }
}

impl Separable {
    /// Resizes the source's area to `size` (width, height) and writes it to `out`, flipped as requested. Pixels have `C` bytes, 3
    /// or 1.
    pub(crate) fn resize<const C: usize>(
        &mut self,
        source: ResizeSource<'_>,
        filter: Filter,
        (width, height): (u32, u32),
        flip: Flip,
        out: &mut [u8],
    ) {
        let (available, [horizontal, vertical]) = (source.region.available(), source.region.axes());
        self.columns.compute(horizontal, width, flip.horizontal, filter);
        self.rows.compute(vertical, height, false, filter);
        let row_len = width as usize * C;
        let stride = row_len.next_multiple_of(ROW_PADDING) + ROW_PADDING;
        // The horizontal pass makes two rows at a time, so the ring may hold one row before it is needed.
        let ring_rows = 2 * self.rows.pairs() + 2;
        self.ring.resize((ring_rows * stride).max(self.ring.len()), 0);
        let limit = available.height as usize;
        let mut done = 0;
        for y in 0..height as usize {
            let start = self.rows.start(y);
            let end = (start + 2 * self.rows.pairs()).min(limit);
            done = done.max(start);
            while done < end {
                let offsets = [done, done + 1].map(|r| r % ring_rows * stride);
                self.horizontal_pass::<C>(source, done, (done + 1).min(limit - 1), offsets);
                done += 2;
            }
            let last = end - 1;
            self.row_offsets.clear();
            let rows = start..start + 2 * self.rows.pairs();
            self.row_offsets.extend(rows.map(|r| r.min(last) % ring_rows * stride));
            let at = if flip.vertical { height as usize - 1 - y } else { y };
            self.vertical_pass(y, &mut out[at * row_len..][..row_len]);
        }
    }

    /// Resizes source rows `a` and `b` horizontally and writes them to the ring at `offsets`.
    fn horizontal_pass<const C: usize>(&mut self, source: ResizeSource<'_>, a: usize, b: usize, offsets: [usize; 2]) {
        let Separable { columns, ring, padded_rows, .. } = self;
        let [padded_a, padded_b] = padded_rows;
        let len = columns.source_len() * C + ROW_PADDING;
        let rows = [source_row::<C>(source, a, len, padded_a), source_row::<C>(source, b, len, padded_b)];
        let out_len = columns.len() * C + ROW_PADDING;
        let out = offsets.map(|offset| offset..offset + out_len);
        let Ok(out) = ring.get_disjoint_mut(out) else { unreachable!("two different rows of the ring") };
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.horizontal::<C>(rows, columns, out);
        }
        for (row, out) in rows.into_iter().zip(out) {
            horizontal::<C>(row, columns, out);
        }
    }

    /// Computes result row `y` from the rows in the ring.
    fn vertical_pass(&self, y: usize, out: &mut [u8]) {
        let weights = self.rows.weights(y);
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.vertical(&self.ring, &self.row_offsets, weights, out);
        }
        vertical(&self.ring, &self.row_offsets, weights, out);
    }
}

/// Returns at least `len` bytes from the first available pixel of row `y` on. Bytes after the end of the row have any value.
/// At the end of the image, copies the row to `padded`.
fn source_row<'a, const C: usize>(source: ResizeSource<'a>, y: usize, len: usize, padded: &'a mut Vec<u8>) -> &'a [u8] {
    let (decoded, available) = (source.region.decoded, source.region.available());
    let left = (available.left - decoded.left) as usize;
    let top = (available.top - decoded.top) as usize;
    let from = ((top + y) * source.pixels.width() as usize + left) * C;
    let rest = &source.pixels.data()[from..];
    if let Some(row) = rest.get(..len) {
        return row;
    }
    padded.clear();
    padded.extend_from_slice(rest);
    padded.resize(len, 0);
    padded
}

/// Resizes one row horizontally, in portable arithmetic.
fn horizontal<const C: usize>(row: &[u8], columns: &AxisWeights, out: &mut [u8]) {
    for (i, out) in out.as_chunks_mut::<C>().0.iter_mut().take(columns.len()).enumerate() {
        let mut sums = [1 << (PRECISION - 1); C];
        let pixels = row[columns.start(i) * C..].as_chunks::<C>().0;
        for (pair, two) in columns.weights(i).iter().zip(pixels.as_chunks::<2>().0) {
            let [a, b] = pair.weights();
            for (sum, (p, q)) in sums.iter_mut().zip(two[0].iter().zip(&two[1])) {
                *sum += a * i32::from(*p) + b * i32::from(*q);
            }
        }
        *out = sums.map(rounded);
    }
}

/// Computes one result row from rows of the ring, in portable arithmetic. Works on a few columns at a time, so that their
/// sums stay in registers.
fn vertical(ring: &[u8], row_offsets: &[usize], weights: &[WeightPair], out: &mut [u8]) {
    const COLUMNS: usize = 32;
    for (x, out) in (0..).step_by(COLUMNS).zip(out.chunks_mut(COLUMNS)) {
        let mut sums = [1 << (PRECISION - 1); COLUMNS];
        for (pair, offsets) in weights.iter().zip(row_offsets.as_chunks::<2>().0) {
            let [a, b] = pair.weights();
            let [p, q] = offsets.map(|offset| &ring[offset + x..][..COLUMNS]);
            for (sum, (p, q)) in sums.iter_mut().zip(p.iter().zip(q)) {
                *sum += a * i32::from(*p) + b * i32::from(*q);
            }
        }
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = rounded(sum));
    }
}

fn rounded(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::pixel_format::PixelFormat;
    use crate::pixels::PixelsRef;
    use crate::resize::SourceRegion;
    use crate::transform::rect::{Area, Rect};

    /// Over small sizes and offsets, and ratios up to 40.
    #[test]
    fn portable_and_avx2_give_equal_bytes() {
        compare::<3>();
        compare::<1>();
    }

    fn compare<const C: usize>() {
        let format = if C == 3 { PixelFormat::RGB8 } else { PixelFormat::GRAY8 };
        let data: Vec<u8> = (0..200u32 * 90 * 3).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect();
        let (mut fast, mut portable) = (Separable::default(), Separable { avx2: None, ..Separable::default() });
        let mut cases = 0;
        for (width, height) in [(200, 90), (60, 300), (9, 7), (1, 5), (5, 1), (2, 2)] {
            let rect = Rect { left: 3, top: 2, width, height };
            let len = width as usize * height as usize * C;
            let pixels = PixelsRef::with_format(width, height, format, &data[..len]).unwrap();
            for crop in [rect, Rect { left: 3 + width / 3, top: 2 + height / 2, width: width - width / 3, height: 1 }] {
                for (w, h) in [(1, 1), (5, 9), (33, 31), (64, 4), (101, 97)] {
                    let area = Area { left: f64::from(crop.left) + 0.3, ..crop.area() };
                    let area = Area { width: area.width - 0.4, ..area };
                    for flip in [Flip::default(), Flip { horizontal: true, vertical: true }] {
                        let region = SourceRegion { decoded: rect, crop, area };
                        let source = ResizeSource { pixels, region };
                        let mut out = [1, 2].map(|fill| vec![fill; w as usize * h as usize * C]);
                        for filter in [Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
                            fast.resize::<C>(source, filter, (w, h), flip, &mut out[0]);
                            portable.resize::<C>(source, filter, (w, h), flip, &mut out[1]);
                            assert_eq!(out[0], out[1], "{width}x{height} to {w}x{h}, {filter:?}");
                            cases += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(cases, 360);
    }
}
