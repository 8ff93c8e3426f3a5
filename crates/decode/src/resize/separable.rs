//! Antialiased resize of 8-bit pixels with a separable filter, from the decoded region to the batch: PIL's two passes (horizontal, rounded to 8
//! bits, then vertical) and its arithmetic, so that the pixels are equal to PIL's. PIL after version 12 starts with the
//! vertical pass for some sizes; here the order is always the same, so that pixels do not depend on the version.
//!
//! Rows between the passes are in a ring buffer that holds only the rows one result row needs; it stays in the L1 cache.
//! Flips cost nothing: the weights are computed, and the rows written, in reverse order.

use super::axis_filter::AxisFilter;
use super::kernel::{Kernel, ROW_PADDING};
use super::separable_portable::Portable;
use super::weights::{AxisWeights, WeightGroup};
#[cfg(target_arch = "x86_64")]
use super::weights::{WeightPair, WeightQuad};
use super::{Filter, Flip, ResizeSource};
#[cfg(target_arch = "aarch64")]
use crate::cpu::Neon;
#[cfg(target_arch = "x86_64")]
use crate::cpu::{Avx2, Avx512, Sse41};

/// Rows of the ring begin at multiples of this number of bytes, up to which vector instructions may read them.
const ROW_ALIGNMENT: usize = 64;

/// Resizes images with the best kernel for the processor, and keeps its memory from one image to the next.
#[derive(Debug)]
pub(crate) struct Separable {
    #[cfg(target_arch = "x86_64")]
    sse41: Option<Sse41>,
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
    #[cfg(target_arch = "x86_64")]
    avx512: Option<Avx512>,
    #[cfg(target_arch = "aarch64")]
    neon: Option<Neon>,
    #[cfg(target_arch = "x86_64")]
    pairs: Passes<WeightPair, 2>,
    #[cfg(target_arch = "x86_64")]
    quads: Passes<WeightQuad, 4>,
    whole: Passes<[i32; 2], 4>,
}

impl Default for Separable {
    fn default() -> Self {
        Separable {
            #[cfg(target_arch = "x86_64")]
            sse41: Sse41::detect(),
            #[cfg(target_arch = "x86_64")]
            avx2: Avx2::detect(),
            #[cfg(target_arch = "x86_64")]
            avx512: Avx512::detect(),
            #[cfg(target_arch = "aarch64")]
            neon: Neon::detect(),
            #[cfg(target_arch = "x86_64")]
            pairs: Passes::default(),
            #[cfg(target_arch = "x86_64")]
            quads: Passes::default(),
            whole: Passes::default(),
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
        size: (u32, u32),
        flip: Flip,
        out: &mut [u8],
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = self.avx512
            && C == 3
        {
            return self.quads.resize::<C, _>(avx512, source, filter, size, flip, out);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            return self.pairs.resize::<C, _>(avx2, source, filter, size, flip, out);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(sse41) = self.sse41
            && C == 3
        {
            return self.pairs.resize::<C, _>(sse41, source, filter, size, flip, out);
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(neon) = self.neon {
            return self.whole.resize::<C, _>(neon, source, filter, size, flip, out);
        }
        self.whole.resize::<C, _>(Portable, source, filter, size, flip, out);
    }
}

/// The memory of the two passes.
#[derive(Debug)]
struct Passes<G, const R: usize> {
    columns: AxisWeights<G>,
    rows: AxisWeights<G>,
    /// Rows after the horizontal pass.
    ring: Vec<u8>,
    /// Copies of source rows that are not followed by enough padding.
    padded_rows: [Vec<u8>; R],
    /// Offsets in the ring of the rows that make the current result row.
    row_offsets: Vec<usize>,
}

impl<G: WeightGroup, const R: usize> Default for Passes<G, R> {
    fn default() -> Self {
        let padded_rows = std::array::from_fn(|_| Vec::new());
        let (columns, rows) = (AxisWeights::default(), AxisWeights::default());
        Passes { columns, rows, ring: Vec::new(), padded_rows, row_offsets: Vec::new() }
    }
}

impl<G: WeightGroup, const R: usize> Passes<G, R> {
    /// As [`Separable::resize`].
    fn resize<const C: usize, K: Kernel<G, R>>(
        &mut self,
        kernel: K,
        source: ResizeSource<'_>,
        filter: Filter,
        (width, height): (u32, u32),
        flip: Flip,
        out: &mut [u8],
    ) {
        let (available, [horizontal, vertical]) = (source.region.available(), source.region.axes());
        let write_weights = |axis: &AxisFilter, flipped, out: &mut _| kernel.write_weights(axis, flipped, out);
        self.columns.compute(horizontal, width, flip.horizontal, filter, write_weights);
        self.rows.compute(vertical, height, false, filter, write_weights);
        let row_len = width as usize * C;
        let stride = (row_len + ROW_PADDING).next_multiple_of(ROW_ALIGNMENT);
        // The horizontal pass makes several rows at a time, so the ring may hold rows before they are needed.
        let ring_rows = self.rows.taps() + R;
        self.ring.resize((ring_rows * stride).max(self.ring.len()), 0);
        let limit = available.height as usize;
        let mut done = 0;
        for y in 0..height as usize {
            let start = self.rows.start(y);
            let end = (start + self.rows.taps()).min(limit);
            done = done.max(start);
            while done < end {
                let offsets = std::array::from_fn(|r| (done + r) % ring_rows * stride);
                let rows = std::array::from_fn(|r| (done + r).min(limit - 1));
                self.horizontal_pass::<C, K>(kernel, source, rows, offsets);
                done += R;
            }
            let last = end - 1;
            self.row_offsets.clear();
            let rows = start..start + self.rows.taps();
            self.row_offsets.extend(rows.map(|r| r.min(last) % ring_rows * stride));
            let at = if flip.vertical { height as usize - 1 - y } else { y };
            let out = &mut out[at * row_len..][..row_len];
            kernel.vertical(&self.ring, &self.row_offsets, self.rows.weights(y), out);
        }
    }

    /// Resizes source rows horizontally and writes them to the ring at `offsets`.
    fn horizontal_pass<const C: usize, K: Kernel<G, R>>(
        &mut self,
        kernel: K,
        source: ResizeSource<'_>,
        rows: [usize; R],
        offsets: [usize; R],
    ) {
        let Passes { columns, ring, padded_rows, .. } = self;
        let len = columns.source_len() * C + ROW_PADDING;
        let mut padded = padded_rows.iter_mut();
        let rows = rows.map(|y| padded.next().map_or(&[][..], |padded| source_row::<C>(source, y, len, padded)));
        let out_len = columns.len() * C + ROW_PADDING;
        let out = offsets.map(|offset| offset..offset + out_len);
        let Ok(out) = ring.get_disjoint_mut(out) else { unreachable!("different rows of the ring") };
        kernel.horizontal::<C>(rows, columns, out);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pixel_format::PixelFormat;
    use crate::pixels::PixelsRef;
    use crate::resize::SourceRegion;
    use crate::transform::rect::{Area, Rect};

    /// Over small sizes and offsets, and ratios up to 40.
    #[test]
    fn all_kernels_give_equal_bytes() {
        #[cfg(target_arch = "x86_64")]
        if Avx2::detect().is_none() || Avx512::detect().is_none() {
            println!("skipped: this processor lacks AVX2 or AVX-512 with VNNI (in part)");
        }
        compare::<3>();
        compare::<1>();
    }

    fn compare<const C: usize>() {
        let format = if C == 3 { PixelFormat::RGB8 } else { PixelFormat::GRAY8 };
        let data: Vec<u8> = (0..200u32 * 90 * 3).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect();
        #[cfg(target_arch = "x86_64")]
        let mut kernels = [
            ("AVX-512", Separable::default()),
            ("AVX2", Separable { avx512: None, ..Separable::default() }),
            ("SSE4.1", Separable { avx512: None, avx2: None, ..Separable::default() }),
            ("portable", Separable { avx512: None, avx2: None, sse41: None, ..Separable::default() }),
        ];
        #[cfg(target_arch = "aarch64")]
        let mut kernels =
            [("NEON", Separable::default()), ("portable", Separable { neon: None, ..Separable::default() })];
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
                        for filter in [Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
                            let results = kernels.each_mut().map(|(name, kernel)| {
                                let mut out = vec![name.len() as u8; w as usize * h as usize * C];
                                kernel.resize::<C>(source, filter, (w, h), flip, &mut out);
                                (*name, out)
                            });
                            let [.., (_, portable)] = &results;
                            for (name, out) in &results {
                                let case = format!("{width}x{height} to {w}x{h}, {filter:?}");
                                assert!(out == portable, "{name} and portable differ: {case}");
                            }
                            cases += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(cases, 360);
    }
}
