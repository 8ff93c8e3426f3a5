//! Antialiased resize of 16-bit pixels with a separable filter, in Pillow's arithmetic for mode `I;16`: weights and sums in f64,
//! each pass rounded to nearest, halves away from 0. Pillow has no RGB of 16 bits; its channels are resized like grey.
//!
//! A sum outside 0 to 65535 is clamped. Pillow clamps its upper byte only, so that there an overshoot beyond white is up to 255
//! darker than white (bicubic and Lanczos only).

use super::axis_filter::{AxisFilter, SourceAxis};
use super::{Filter, Flip, ResizeSource};
use crate::transform::rect::Rect;

/// Resizes images and keeps its memory from one image to the next.
#[derive(Debug, Default)]
pub(crate) struct SeparableDeep {
    columns: Weights,
    rows: Weights,
    /// Rows after the horizontal pass: as many as a result row needs.
    ring: Vec<u16>,
}

/// The normalised weights of one axis.
#[derive(Debug, Default)]
struct Weights {
    /// First source pixel of each result pixel, counted from the first decoded one, and its number of weights.
    spans: Vec<(u32, u32)>,
    /// `taps` weights for each result pixel.
    weights: Vec<f64>,
    taps: usize,
    exact: Vec<f64>,
}

impl Weights {
    fn compute(&mut self, axis: SourceAxis, n: u32, filter: Filter) {
        let axis_filter = AxisFilter::new(axis, n, filter);
        self.taps = axis_filter.taps();
        self.spans.clear();
        self.weights.clear();
        self.spans.reserve_exact(n as usize);
        self.weights.reserve_exact(n as usize * self.taps);
        for i in 0..n as usize {
            let span = axis_filter.weigh(i, &mut self.exact);
            let sum: f64 = self.exact.iter().sum();
            // Pixels that were not decoded have a weight of 0.
            let skipped = axis.skipped.saturating_sub(span.start) as usize;
            let decoded = &self.exact[skipped.min(self.exact.len())..];
            self.spans.push(((span.start + skipped as u32).saturating_sub(axis.skipped), decoded.len() as u32));
            let normalised = |w: &f64| if sum == 0.0 { *w } else { w / sum };
            self.weights.extend(decoded.iter().map(normalised));
            self.weights.resize((i + 1) * self.taps, 0.0);
        }
    }

    /// Returns the first source pixel of result pixel `i` and the weights from it on.
    fn of(&self, i: usize) -> (usize, &[f64]) {
        let (start, count) = self.spans[i];
        (start as usize, &self.weights[i * self.taps..][..count as usize])
    }
}

impl SeparableDeep {
    /// Resizes the source's area to `size` (width, height) and writes it to `out`, flipped as requested. Pixels have `C`
    /// little-endian samples.
    pub(crate) fn resize<const C: usize>(
        &mut self,
        source: ResizeSource<'_>,
        filter: Filter,
        (width, height): (u32, u32),
        flip: Flip,
        out: &mut [u8],
    ) {
        let [horizontal, vertical] = source.region.axes();
        self.columns.compute(horizontal, width, filter);
        self.rows.compute(vertical, height, filter);
        let row_len = width as usize * C;
        let ring_rows = self.rows.taps;
        self.ring.resize((ring_rows * row_len).max(self.ring.len()), 0);
        let mut done = 0;
        for y in 0..height as usize {
            let (start, weights) = self.rows.of(y);
            done = done.max(start);
            while done < start + weights.len() {
                let out = &mut self.ring[done % ring_rows * row_len..][..row_len];
                horizontal_pass::<C>(source_row::<C>(source, done), &self.columns, out);
                done += 1;
            }
            let y = if flip.vertical { height as usize - 1 - y } else { y };
            let out = out[y * row_len * 2..][..row_len * 2].as_chunks_mut::<2>().0;
            for (x, out) in out.iter_mut().enumerate() {
                let rows = weights.iter().zip(start..);
                let sum = rows.fold(0.0, |sum, (w, y)| sum + f64::from(self.ring[y % ring_rows * row_len + x]) * w);
                *out = rounded(sum).to_le_bytes();
            }
            if flip.horizontal {
                out.as_chunks_mut::<C>().0.reverse();
            }
        }
    }
}

/// Returns row `y` of the decoded pixels that the filter may read, from the first of them on.
fn source_row<'a, const C: usize>(source: ResizeSource<'a>, y: usize) -> &'a [[u8; 2]] {
    let (decoded, available) = (source.region.decoded, source.region.available());
    let Rect { left, top, width, .. } = available;
    let from = ((top - decoded.top) as usize + y) * decoded.width as usize + (left - decoded.left) as usize;
    &source.pixels.data().as_chunks::<2>().0[from * C..][..width as usize * C]
}

fn horizontal_pass<const C: usize>(row: &[[u8; 2]], columns: &Weights, out: &mut [u16]) {
    let row = row.as_chunks::<C>().0;
    for (i, out) in out.as_chunks_mut::<C>().0.iter_mut().enumerate() {
        let (start, weights) = columns.of(i);
        let mut sums = [0.0; C];
        for (pixel, w) in row[start..].iter().zip(weights) {
            sums.iter_mut().zip(pixel).for_each(|(sum, v)| *sum += f64::from(u16::from_le_bytes(*v)) * w);
        }
        *out = sums.map(rounded);
    }
}

/// Rounds to nearest, halves up, and clamps.
fn rounded(sum: f64) -> u16 {
    // The conversion saturates, and truncates numbers that are not negative.
    (sum + 0.5) as u16
}
