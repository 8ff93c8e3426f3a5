//! Antialiased bilinear resize of RGB, from the decoded window straight into the batch: PIL's two passes (across, rounded
//! to 8 bits, then down) and its arithmetic, so that the pixels are PIL's bit for bit. (PIL after version 12 goes down first
//! for some sizes; the same pixels everywhere matter more here.)
//!
//! Rows go through a ring that holds no more of them than one result row needs, two at a time, so that what is between the
//! passes stays in the first-level cache. Mirroring costs nothing: weights are laid out, and rows written, in reverse.

#[cfg(target_arch = "x86_64")]
use crate::bilinear_avx2::Avx2;
use crate::resize::{Mirror, Source};
use crate::taps::{Axis, PRECISION, Pair, Taps};

/// Bytes that a row may be read or written beyond its pixels, by instructions that work on many at once.
pub(crate) const SLACK: usize = 32;

/// Resizes, and keeps its memory from one image to the next.
#[derive(Debug)]
pub(crate) struct Bilinear {
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
    columns: Taps,
    rows: Taps,
    ring: Vec<u8>,
    /// Copies of rows after which the source has no slack.
    ends: [Vec<u8>; 2],
    /// Where the rows of the ring are that make the result row at hand.
    places: Vec<usize>,
}

impl Default for Bilinear {
    fn default() -> Self {
        Bilinear {
            #[cfg(target_arch = "x86_64")]
            avx2: Avx2::detect(),
            columns: Taps::default(),
            rows: Taps::default(),
            ring: Vec::new(),
            ends: [Vec::new(), Vec::new()],
            places: Vec::new(),
        }
    }
}

impl Bilinear {
    /// Writes the source's area at `size` (width, height) into `out`, mirrored left to right and top to bottom as asked.
    pub(crate) fn resize(&mut self, source: Source<'_>, (width, height): (u32, u32), mirror: Mirror, out: &mut [u8]) {
        let Source { view, area, .. } = source;
        let shown = view.meet(source.rect);
        let axis = |start: f64, length, from: u32, limit, first: u32| Axis {
            start: start - f64::from(from),
            length,
            limit,
            skipped: first - from,
        };
        let across = axis(area.left, area.width, view.left, view.width, shown.left);
        let down = axis(area.top, area.height, view.top, view.height, shown.top);
        self.columns.fill(across, width, mirror.across);
        self.rows.fill(down, height, false);
        let row_len = width as usize * 3;
        let stride = row_len.next_multiple_of(SLACK) + SLACK;
        // Two rows are made at a time, so one may be there before it is needed.
        let held = 2 * self.rows.pairs() + 2;
        self.ring.resize((held * stride).max(self.ring.len()), 0);
        let limit = shown.height as usize;
        let mut made = 0;
        for y in 0..height as usize {
            let start = self.rows.start(y);
            let end = (start + 2 * self.rows.pairs()).min(limit);
            made = made.max(start);
            while made < end {
                self.pass_across(source, made, (made + 1).min(limit - 1), [made, made + 1].map(|r| r % held * stride));
                made += 2;
            }
            let last = end - 1;
            self.places.clear();
            self.places.extend((start..start + 2 * self.rows.pairs()).map(|r| r.min(last) % held * stride));
            let at = if mirror.down { height as usize - 1 - y } else { y };
            self.pass_down(y, &mut out[at * row_len..][..row_len]);
        }
    }

    /// Makes rows `a` and `b` of what is shown into the ring at `places`.
    fn pass_across(&mut self, source: Source<'_>, a: usize, b: usize, places: [usize; 2]) {
        let Bilinear { columns, ring, ends, .. } = self;
        let [end_a, end_b] = ends;
        let len = columns.reach() * 3 + SLACK;
        let rows = [row(source, a, len, end_a), row(source, b, len, end_b)];
        let out_len = columns.len() * 3 + SLACK;
        let out = places.map(|p| p..p + out_len);
        let Ok(out) = ring.get_disjoint_mut(out) else { unreachable!("two rows of the ring") };
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.across(rows, columns, out);
        }
        for (row, out) in rows.into_iter().zip(out) {
            across(row, columns, out);
        }
    }

    /// Makes result row `y` from the ring's rows.
    fn pass_down(&self, y: usize, out: &mut [u8]) {
        let weights = self.rows.weights(y);
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return avx2.down(&self.ring, &self.places, weights, out);
        }
        down(&self.ring, &self.places, weights, out);
    }
}

/// At least `len` bytes of row `y` of what is shown, from its first pixel on; those after the row count for nothing.
fn row<'a>(source: Source<'a>, y: usize, len: usize, end: &'a mut Vec<u8>) -> &'a [u8] {
    let shown = source.view.meet(source.rect);
    let left = (shown.left - source.rect.left) as usize;
    let top = (shown.top - source.rect.top) as usize;
    let from = ((top + y) * source.pixels.width() as usize + left) * 3;
    let rest = &source.pixels.data()[from..];
    if let Some(row) = rest.get(..len) {
        return row;
    }
    end.clear();
    end.extend_from_slice(rest);
    end.resize(len, 0);
    end
}

/// One row across, in plain arithmetic.
fn across(row: &[u8], taps: &Taps, out: &mut [u8]) {
    for (i, out) in out.as_chunks_mut::<3>().0.iter_mut().take(taps.len()).enumerate() {
        let mut sums = [1 << (PRECISION - 1); 3];
        let pixels = row[taps.start(i) * 3..].as_chunks::<3>().0;
        for (pair, two) in taps.weights(i).iter().zip(pixels.as_chunks::<2>().0) {
            let [a, b] = pair.weights();
            for (sum, (p, q)) in sums.iter_mut().zip(two[0].iter().zip(&two[1])) {
                *sum += a * i32::from(*p) + b * i32::from(*q);
            }
        }
        *out = sums.map(rounded);
    }
}

/// One row down, in plain arithmetic; a few columns at a time, whose sums stay in registers.
fn down(ring: &[u8], places: &[usize], weights: &[Pair], out: &mut [u8]) {
    const COLUMNS: usize = 32;
    for (x, out) in (0..).step_by(COLUMNS).zip(out.chunks_mut(COLUMNS)) {
        let mut sums = [1 << (PRECISION - 1); COLUMNS];
        for (pair, places) in weights.iter().zip(places.as_chunks::<2>().0) {
            let [a, b] = pair.weights();
            let [p, q] = places.map(|place| &ring[place + x..][..COLUMNS]);
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
    use crate::geometry::{Area, Rect};
    use crate::pixels::PixelsRef;

    /// The same bytes without vector instructions, for all small sizes and places, ratios up to 40.
    #[test]
    fn portable_gives_the_same() {
        let data: Vec<u8> = (0..200u32 * 90 * 3).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect();
        let (mut fast, mut plain) = (Bilinear::default(), Bilinear { avx2: None, ..Bilinear::default() });
        let mut cases = 0;
        for (width, height) in [(200, 90), (60, 300), (9, 7), (1, 5), (5, 1), (2, 2)] {
            let rect = Rect { left: 3, top: 2, width, height };
            let pixels = PixelsRef::new(width, height, &data[..(width * height * 3) as usize]).unwrap();
            for view in [rect, Rect { left: 3 + width / 3, top: 2 + height / 2, width: width - width / 3, height: 1 }] {
                for (w, h) in [(1, 1), (5, 9), (33, 31), (64, 4), (101, 97)] {
                    let area = Area { left: f64::from(view.left) + 0.3, ..view.area() };
                    let area = Area { width: area.width - 0.4, ..area };
                    for mirror in [Mirror::default(), Mirror { across: true, down: true }] {
                        let source = Source { pixels, rect, view, area };
                        let mut out = [vec![1; (w * h * 3) as usize], vec![2; (w * h * 3) as usize]];
                        fast.resize(source, (w, h), mirror, &mut out[0]);
                        plain.resize(source, (w, h), mirror, &mut out[1]);
                        assert_eq!(out[0], out[1], "{width}x{height} to {w}x{h}");
                        cases += 1;
                    }
                }
            }
        }
        assert_eq!(cases, 120);
    }
}
