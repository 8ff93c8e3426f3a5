//! The two passes of [`super::separable`] with AVX2. The sums are over the same integers in another order, so the results are
//! equal.
//!
//! A weight has 22 fractional bits, too many for `pmaddwd`, which multiplies 16-bit numbers and adds neighbours. So each
//! weight has two parts, and their sums are joined at the end.
//!
//! The loops contain no closures and call each function in one place only: the compiler inlines an AVX2 closure into a
//! function without that feature, such as `array::map`, only by chance, and it does not inline a large function that is
//! called in several places.

// Calls of functions that need AVX2; loads take pointers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::axis_filter::{AT_ONCE, PRECISION};
use super::kernel::{Kernel, ROW_PADDING};
use super::weights::{AxisWeights, LOW_BITS, WeightPair};
use crate::avx2::{load_32, store_16, store_32};
use crate::cpu::Avx2;

impl Kernel<WeightPair, 2> for Avx2 {
    fn horizontal<const C: usize>(self, rows: [&[u8]; 2], columns: &AxisWeights<WeightPair>, out: [&mut [u8]; 2]) {
        // SAFETY: the processor has AVX2, because only `detect` makes an `Avx2`, after checking for it.
        unsafe {
            match C {
                1 => horizontal_gray(rows, columns, out),
                _ => horizontal(rows, columns, out),
            }
        }
    }

    fn vertical(self, ring: &[u8], row_offsets: &[usize], weights: &[WeightPair], out: &mut [u8]) {
        // SAFETY: the processor has AVX2, because only `detect` makes an `Avx2`, after checking for it.
        unsafe { vertical(ring, row_offsets, weights, out) }
    }
}

/// Resizes two rows horizontally, one in each half of the registers, four result pixels at a time.
#[target_feature(enable = "avx2")]
fn horizontal(rows: [&[u8]; 2], columns: &AxisWeights<WeightPair>, out: [&mut [u8]; 2]) {
    match columns.groups() {
        1 => horizontal_pairs::<1>(rows, columns, out),
        2 => horizontal_pairs::<2>(rows, columns, out),
        3 => horizontal_pairs::<3>(rows, columns, out),
        _ => horizontal_pairs::<0>(rows, columns, out),
    }
}

/// [`horizontal`] for `PAIRS` pairs of weights per pixel, or for any number if `PAIRS` is 0.
#[target_feature(enable = "avx2")]
fn horizontal_pairs<const PAIRS: usize>(
    rows: [&[u8]; 2],
    columns: &AxisWeights<WeightPair>,
    [out_a, out_b]: [&mut [u8]; 2],
) {
    // Packs four pixels, each in the lower three of four bytes.
    let pack = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    let pack = _mm256_broadcastsi128_si256(pack);
    let groups = if PAIRS == 0 { columns.groups() } else { PAIRS };
    assert_eq!(groups, columns.groups());
    // All loads of `pixel` are inside these bounds, so that they are checked once.
    let needed = 3 * columns.last_start() + 12 * (groups.div_ceil(2) - 1) + 16;
    assert!(rows.iter().all(|row| row.len() >= needed));
    let rows = rows.map(<[u8]>::as_ptr);
    let (starts, weights) = (columns.starts().as_chunks::<AT_ONCE>().0, columns.all_weights());
    for (i, (starts, weights)) in starts.iter().zip(weights.chunks_exact(AT_ONCE * groups)).enumerate() {
        let mut sums = [_mm256_setzero_si256(); AT_ONCE];
        for ((sum, start), weights) in sums.iter_mut().zip(starts).zip(weights.chunks_exact(groups)) {
            // SAFETY: no start is above the last one, and there are `groups` weights: the loads are inside the rows (asserted above).
            *sum = unsafe { pixel::<PAIRS>(rows, 3 * *start as usize, weights) };
        }
        let four = _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]), _mm256_packs_epi32(sums[2], sums[3]));
        let four = _mm256_shuffle_epi8(four, pack);
        store_16(_mm256_castsi256_si128(four), &mut out_a[3 * AT_ONCE * i..]);
        store_16(_mm256_extracti128_si256::<1>(four), &mut out_b[3 * AT_ONCE * i..]);
    }
}

/// Resizes two rows of grey horizontally, one in each half of the registers, four result pixels at a time.
#[target_feature(enable = "avx2")]
fn horizontal_gray(rows: [&[u8]; 2], columns: &AxisWeights<WeightPair>, [out_a, out_b]: [&mut [u8]; 2]) {
    let last = columns.len() - 1;
    for i in (0..columns.len()).step_by(4) {
        let mut sums = [_mm256_setzero_si256(); 4];
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum = gray_pixel(rows, columns, (i + k).min(last));
        }
        // The upper parts of four results, then the lower ones.
        let (first, second) = (_mm256_unpacklo_epi32(sums[0], sums[1]), _mm256_unpacklo_epi32(sums[2], sums[3]));
        let (high, low) = (_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second));
        let four = joined(high, _mm256_add_epi32(low, _mm256_set1_epi32(1 << (PRECISION - 1))));
        let four = _mm256_packus_epi16(_mm256_packs_epi32(four, four), four);
        let (a, b) = (_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four));
        out_a[i..i + 4].copy_from_slice(&_mm_cvtsi128_si32(a).to_le_bytes());
        out_b[i..i + 4].copy_from_slice(&_mm_cvtsi128_si32(b).to_le_bytes());
    }
}

/// Computes grey result pixel `i` in both rows: the sums of the upper and of the lower parts of the weights, as the first two
/// 32-bit numbers of each half.
#[inline]
#[target_feature(enable = "avx2")]
fn gray_pixel(rows: [&[u8]; 2], columns: &AxisWeights<WeightPair>, i: usize) -> __m256i {
    // Pixels 0 and 1, twice, and pixels 2 and 3, twice, as 16-bit numbers: for both parts of two pairs of weights.
    let pairs = _mm_setr_epi8(0, -1, 1, -1, 0, -1, 1, -1, 2, -1, 3, -1, 2, -1, 3, -1);
    let pairs = _mm256_broadcastsi128_si256(pairs);
    let start = columns.start(i);
    let mut sum = _mm256_setzero_si256();
    for (q, two) in columns.weights(i).chunks(2).enumerate() {
        let second = two.get(1).copied().unwrap_or_default();
        let weights = _mm_setr_epi32(two[0].high, two[0].low, second.high, second.low);
        let (a, b) = (load_4(&rows[0][start + 4 * q..]), load_4(&rows[1][start + 4 * q..]));
        let pixels = _mm256_shuffle_epi8(_mm256_set_m128i(b, a), pairs);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pixels, _mm256_broadcastsi128_si256(weights)));
    }
    _mm256_add_epi32(sum, _mm256_shuffle_epi32::<0b01_00_11_10>(sum))
}

/// Loads the first four bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn load_4(bytes: &[u8]) -> __m128i {
    _mm_cvtsi32_si128(i32::from_le_bytes(bytes[..4].as_chunks().0[0]))
}

/// Computes red, green and blue of a result pixel in both rows, as 32-bit numbers, from source pixels at byte `start`, with
/// `PAIRS` pairs of weights, or any number if that is 0.
///
/// # Safety
/// 16 bytes must follow the first pixel of every second pair of weights in each row.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pixel<const PAIRS: usize>([a, b]: [*const u8; 2], start: usize, weights: &[WeightPair]) -> __m256i {
    let weights = if PAIRS == 0 { weights } else { &weights[..PAIRS] };
    // Interleaves red, green and blue of pixels 0 and 1, and of pixels 2 and 3, as 16-bit numbers.
    let first = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    let second = _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    let (first, second) = (_mm256_broadcastsi128_si256(first), _mm256_broadcastsi128_si256(second));
    let (mut high, mut low) = (_mm256_setzero_si256(), _mm256_set1_epi32(1 << (PRECISION - 1)));
    for (q, pairs) in weights.chunks(2).enumerate() {
        let at = start + 12 * q;
        // SAFETY: the caller's promise; these loads need no alignment.
        let (a, b) = unsafe { (_mm_loadu_si128(a.add(at).cast()), _mm_loadu_si128(b.add(at).cast())) };
        let both = _mm256_set_m128i(b, a);
        add(&mut high, &mut low, _mm256_shuffle_epi8(both, first), pairs[0]);
        if let Some(pair) = pairs.get(1) {
            add(&mut high, &mut low, _mm256_shuffle_epi8(both, second), *pair);
        }
    }
    joined(high, low)
}

/// Computes one result row, 32 bytes at a time.
#[target_feature(enable = "avx2")]
fn vertical(ring: &[u8], row_offsets: &[usize], weights: &[WeightPair], out: &mut [u8]) {
    for x in (0..out.len()).step_by(32) {
        let mut high = [_mm256_setzero_si256(); 4];
        let mut low = [_mm256_set1_epi32(1 << (PRECISION - 1)); 4];
        for (pair, offsets) in weights.iter().zip(row_offsets.as_chunks::<2>().0) {
            let (a, b) = (load_32(&ring[offsets[0] + x..]), load_32(&ring[offsets[1] + x..]));
            let (near, far) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
            let zero = _mm256_setzero_si256();
            let pixels = [
                _mm256_unpacklo_epi8(near, zero),
                _mm256_unpackhi_epi8(near, zero),
                _mm256_unpacklo_epi8(far, zero),
                _mm256_unpackhi_epi8(far, zero),
            ];
            for ((high, low), pixels) in high.iter_mut().zip(&mut low).zip(pixels) {
                add(high, low, pixels, *pair);
            }
        }
        let a = _mm256_packs_epi32(joined(high[0], low[0]), joined(high[1], low[1]));
        let b = _mm256_packs_epi32(joined(high[2], low[2]), joined(high[3], low[3]));
        let bytes = _mm256_packus_epi16(a, b);
        match out[x..].first_chunk_mut::<32>() {
            Some(out) => store_32(bytes, out),
            None => {
                let mut whole = [0; ROW_PADDING];
                store_32(bytes, &mut whole);
                let rest = &mut out[x..];
                rest.copy_from_slice(&whole[..rest.len()]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(high: &mut __m256i, low: &mut __m256i, pixels: __m256i, pair: WeightPair) {
    *high = _mm256_add_epi32(*high, _mm256_madd_epi16(pixels, _mm256_set1_epi32(pair.high)));
    *low = _mm256_add_epi32(*low, _mm256_madd_epi16(pixels, _mm256_set1_epi32(pair.low)));
}

#[inline]
#[target_feature(enable = "avx2")]
fn joined(high: __m256i, low: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(_mm256_slli_epi32::<{ LOW_BITS as i32 }>(high), low);
    _mm256_srai_epi32::<{ PRECISION as i32 }>(sum)
}
