//! The two passes of [`super::separable`] for colour with AVX-512 and its VNNI instructions. The sums are over the same integers
//! in another order, so the results are equal.
//!
//! `vpdpbusd` multiplies four neighbouring bytes by four signed bytes and adds the products to a 32-bit sum. A weight has 22
//! fractional bits, so it has three digits, and their sums are joined at the end.

// Calls of functions that need AVX-512; loads and stores take pointers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::axis_filter::{AT_ONCE, AxisFilter, PRECISION, WeightBlocks};
use super::kernel::Kernel;
use super::weights::{AxisWeights, WeightQuad};
use crate::cpu::Avx512;

/// Rows of the horizontal pass: one in each quarter of the registers.
const ROWS: usize = 4;

/// Bytes of a vector, and of a quarter.
const VECTOR: usize = 64;
const QUARTER: usize = 16;

impl Kernel<WeightQuad, ROWS> for Avx512 {
    fn write_weights(self, axis: &AxisFilter, flipped: bool, out: &mut WeightBlocks) {
        if axis.is_bilinear() && axis.blocks() == 1 {
            // SAFETY: the processor has the instructions, because only `detect` makes an `Avx512`, after checking for them.
            unsafe { bilinear_weights(axis, flipped, out) }
        } else {
            axis.write_weights(flipped, out);
        }
    }

    /// Pixels must have three bytes.
    fn horizontal<const C: usize>(
        self,
        rows: [&[u8]; ROWS],
        columns: &AxisWeights<WeightQuad>,
        out: [&mut [u8]; ROWS],
    ) {
        assert_eq!(C, 3, "colour");
        // SAFETY: the processor has the instructions, because only `detect` makes an `Avx512`, after checking for them.
        unsafe {
            match columns.taps() {
                4 => horizontal::<1>(rows, columns, out),
                8 => horizontal::<2>(rows, columns, out),
                _ => horizontal::<0>(rows, columns, out),
            }
        }
    }

    fn vertical(self, ring: &[u8], row_offsets: &[usize], weights: &[WeightQuad], out: &mut [u8]) {
        // SAFETY: the processor has the instructions, because only `detect` makes an `Avx512`, after checking for them.
        unsafe {
            match weights.len() {
                1 => vertical::<1>(ring, row_offsets, weights, out),
                2 => vertical::<2>(ring, row_offsets, weights, out),
                _ => vertical::<0>(ring, row_offsets, weights, out),
            }
        }
    }
}

/// As [`AxisFilter::write_weights`], for a bilinear filter with one block for each result pixel: all of its weights at once, in the
/// same arithmetic.
#[target_feature(enable = "avx512f")]
fn bilinear_weights(axis: &AxisFilter, flipped: bool, out: &mut WeightBlocks) {
    let n = out.starts.len();
    let lanes = _mm512_setr_pd(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0);
    let (half, one) = (_mm512_set1_pd(0.5), _mm512_set1_pd(1.0));
    let (inverse, unit) = (_mm512_set1_pd(axis.inverse()), _mm512_set1_pd(f64::from(1 << PRECISION)));
    for (i, (start, block)) in out.starts.iter_mut().zip(&mut out.blocks).enumerate() {
        let centre = axis.centre(if flipped { n - 1 - i } else { i });
        let span = axis.span(centre);
        *start = span.start;
        let x = _mm512_add_pd(_mm512_set1_pd(f64::from(span.start)), lanes);
        let distance = _mm512_mul_pd(_mm512_add_pd(_mm512_sub_pd(x, _mm512_set1_pd(centre)), half), inverse);
        let weights = _mm512_max_pd(_mm512_sub_pd(one, _mm512_abs_pd(distance)), _mm512_setzero_pd());
        let inside = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, _mm512_set1_pd(f64::from(span.end)));
        let weights = _mm512_maskz_mov_pd(inside, weights);
        let mut exact = [0.0; 8];
        // SAFETY: `exact` has 64 bytes, and this store needs no alignment.
        unsafe { _mm512_storeu_pd(exact.as_mut_ptr(), weights) };
        // In order, like PIL.
        let sum: f64 = exact.iter().sum();
        let sum = if sum == 0.0 { 1.0 } else { sum };
        let weights = _mm512_mul_pd(_mm512_div_pd(weights, _mm512_set1_pd(sum)), unit);
        let weights = _mm512_cvttpd_epi32(_mm512_add_pd(weights, half));
        // SAFETY: a block has 32 bytes, and this store needs no alignment.
        unsafe { _mm256_storeu_si256(block.as_mut_ptr().cast(), weights) };
    }
}

/// Resizes rows horizontally, four result pixels at a time, with `QUADS` groups of weights for each, or any number if that is 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn horizontal<const QUADS: usize>(rows: [&[u8]; ROWS], columns: &AxisWeights<WeightQuad>, mut out: [&mut [u8]; ROWS]) {
    // Packs four pixels, each in the lower three of four bytes.
    let pack = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    let pack = _mm512_broadcast_i32x4(pack);
    let quads = if QUADS == 0 { columns.groups() } else { QUADS };
    let starts = columns.starts().as_chunks::<AT_ONCE>().0;
    let weights = columns.all_weights().chunks_exact(AT_ONCE * quads);
    // The last quarter that is loaded and stored.
    let (loaded, stored) = (3 * columns.last_start() + 12 * (quads - 1), 12 * (starts.len() - 1));
    assert!(
        rows.iter().all(|row| row.len() >= loaded + QUARTER) && out.iter().all(|row| row.len() >= stored + QUARTER)
    );
    let (rows, out) = (rows.map(<[u8]>::as_ptr), out.each_mut().map(|row| row.as_mut_ptr()));
    for (four, (starts, weights)) in starts.iter().zip(weights).enumerate() {
        let mut sums = [_mm512_setzero_si512(); AT_ONCE];
        for ((sum, start), weights) in sums.iter_mut().zip(starts).zip(weights.chunks_exact(quads)) {
            // SAFETY: 16 bytes follow the last group's first pixel (asserted for the largest start).
            *sum = unsafe { pixel(rows, 3 * *start as usize, weights) };
        }
        let pixels = _mm512_packus_epi16(_mm512_packs_epi32(sums[0], sums[1]), _mm512_packs_epi32(sums[2], sums[3]));
        let pixels = _mm512_shuffle_epi8(pixels, pack);
        let at = 12 * four;
        // SAFETY: 16 bytes follow in each row (asserted for the last four pixels), and these stores need no alignment.
        unsafe {
            _mm_storeu_si128(out[0].add(at).cast(), _mm512_castsi512_si128(pixels));
            _mm_storeu_si128(out[1].add(at).cast(), _mm512_extracti32x4_epi32::<1>(pixels));
            _mm_storeu_si128(out[2].add(at).cast(), _mm512_extracti32x4_epi32::<2>(pixels));
            _mm_storeu_si128(out[3].add(at).cast(), _mm512_extracti32x4_epi32::<3>(pixels));
        }
    }
}

/// Computes red, green and blue of a result pixel in all rows, as 32-bit numbers, from source pixels at byte `start`.
///
/// # Safety
/// 16 bytes must follow the first pixel of each group of weights in each row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn pixel([a, b, c, d]: [*const u8; ROWS], start: usize, weights: &[WeightQuad]) -> __m512i {
    // Of four pixels red, then green, then blue.
    let channels = _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
    let channels = _mm512_broadcast_i32x4(channels);
    let mut sums = Sums::new();
    for (q, quad) in weights.iter().enumerate() {
        let at = start + 12 * q;
        // SAFETY: the caller's promise; these loads need no alignment.
        let [a, b, c, d] = unsafe {
            [
                _mm_loadu_si128(a.add(at).cast()),
                _mm_loadu_si128(b.add(at).cast()),
                _mm_loadu_si128(c.add(at).cast()),
                _mm_loadu_si128(d.add(at).cast()),
            ]
        };
        let near = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
        let pixels = _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(near, c), d);
        sums.add(_mm512_shuffle_epi8(pixels, channels), *quad);
    }
    sums.joined()
}

/// Computes one result row, [`VECTOR`] bytes at a time, from `QUADS` times four rows, or any number if that is 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn vertical<const QUADS: usize>(ring: &[u8], row_offsets: &[usize], weights: &[WeightQuad], out: &mut [u8]) {
    let weights = if QUADS == 0 { weights } else { &weights[..QUADS] };
    let rows = row_offsets.as_chunks::<4>().0;
    let rows = if QUADS == 0 { rows } else { &rows[..QUADS] };
    for x in (0..out.len()).step_by(VECTOR) {
        let mut sums = [Sums::new(); 4];
        for (quad, offsets) in weights.iter().zip(rows) {
            let (a, b) = (load(&ring[offsets[0] + x..]), load(&ring[offsets[1] + x..]));
            let (c, d) = (load(&ring[offsets[2] + x..]), load(&ring[offsets[3] + x..]));
            // The four rows of a column become neighbours.
            let (near_ab, far_ab) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
            let (near_cd, far_cd) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
            sums[0].add(_mm512_unpacklo_epi16(near_ab, near_cd), *quad);
            sums[1].add(_mm512_unpackhi_epi16(near_ab, near_cd), *quad);
            sums[2].add(_mm512_unpacklo_epi16(far_ab, far_cd), *quad);
            sums[3].add(_mm512_unpackhi_epi16(far_ab, far_cd), *quad);
        }
        let near = _mm512_packs_epi32(sums[0].joined(), sums[1].joined());
        let far = _mm512_packs_epi32(sums[2].joined(), sums[3].joined());
        store(_mm512_packus_epi16(near, far), &mut out[x..]);
    }
}

/// Sums of products with the three digits of weights, as 32-bit numbers. The products of the lowest digits include one half of a
/// result's unit, for rounding.
#[derive(Clone, Copy)]
struct Sums {
    high: __m512i,
    middle: __m512i,
    low: __m512i,
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new() -> Self {
        let zero = _mm512_setzero_si512();
        Sums { high: zero, middle: zero, low: _mm512_set1_epi32(1 << (PRECISION - 1)) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn add(&mut self, pixels: __m512i, WeightQuad { high, middle, low }: WeightQuad) {
        self.high = _mm512_dpbusd_epi32(self.high, pixels, _mm512_set1_epi32(high));
        self.middle = _mm512_dpbusd_epi32(self.middle, pixels, _mm512_set1_epi32(middle));
        self.low = _mm512_dpbusd_epi32(self.low, pixels, _mm512_set1_epi32(low));
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn joined(self) -> __m512i {
        let sum = _mm512_add_epi32(_mm512_slli_epi32::<8>(self.high), self.middle);
        let sum = _mm512_add_epi32(_mm512_slli_epi32::<8>(sum), self.low);
        _mm512_srai_epi32::<PRECISION>(sum)
    }
}

/// Loads the first 64 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8]) -> __m512i {
    let bytes: &[u8; VECTOR] = &bytes[..VECTOR].as_chunks().0[0];
    // SAFETY: `bytes` refers to 64 readable bytes, and this load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Stores as many bytes as the slice has, at most 64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store(vector: __m512i, out: &mut [u8]) {
    let length = out.len().min(VECTOR);
    if length > 0 {
        let mask = u64::MAX >> (VECTOR - length);
        // SAFETY: only the first `length` bytes of `out` are written, and this store needs no alignment.
        unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, vector) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resize::Filter;
    use crate::resize::axis_filter::SourceAxis;

    /// Also of areas that begin and end between pixels, and of result pixels beyond the last source pixel.
    #[test]
    fn weights_equal_those_of_the_portable_code() {
        let Some(avx512) = Avx512::detect() else { return println!("skipped: this processor lacks AVX-512 with VNNI") };
        let mut cases = 0;
        for limit in [1, 2, 7, 60, 300] {
            for start in [0.0, 0.3, 2.75, f64::from(limit) - 0.5] {
                for length in [0.1, 1.0, 6.5, f64::from(limit), f64::from(limit) + 9.0] {
                    for n in [1u32, 3, 32, 101, 224] {
                        let source = SourceAxis { start, length, limit, skipped: 0 };
                        let axis = AxisFilter::new(source, n, Filter::Bilinear);
                        for flipped in [false, true] {
                            let mut out = [WeightBlocks::default(), WeightBlocks::default()];
                            out.iter_mut().for_each(|out| out.reset(&axis, n as usize));
                            axis.write_weights(flipped, &mut out[0]);
                            avx512.write_weights(&axis, flipped, &mut out[1]);
                            let same = out[0].starts == out[1].starts && out[0].blocks == out[1].blocks;
                            assert!(same, "{source:?}, {n} pixels");
                            cases += usize::from(axis.blocks() == 1);
                        }
                    }
                }
            }
        }
        assert!(cases > 500, "{cases}");
    }
}
