//! The two passes of [`crate::bilinear`] with AVX2: the same sums, in another order of the same integers.
//!
//! A weight has 22 bits after the point, too many for the instruction that multiplies 16-bit numbers and adds neighbours;
//! so it is taken in two parts, whose sums are joined at the end.
//!
//! The loops have no closures, and one call of each function: a closure that needs AVX2 is inlined into a function such as
//! `array::map`, which does not, only by chance, and a large function that is called in several places is not inlined.

// For calling functions that need AVX2.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::bilinear::SLACK;
use crate::taps::{LOW_BITS, PRECISION, Pair, Taps};
use crate::vectors::{load_16, load_32, store_16, store_32};

/// The knowledge that the processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }

    /// Two rows across, as [`crate::bilinear`] does one.
    pub(crate) fn across(self, rows: [&[u8]; 2], taps: &Taps, out: [&mut [u8]; 2]) {
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe { across(rows, taps, out) }
    }

    /// One row down, as [`crate::bilinear`] does it.
    pub(crate) fn down(self, ring: &[u8], places: &[usize], weights: &[Pair], out: &mut [u8]) {
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe { down(ring, places, weights, out) }
    }
}

/// Two rows across, one in each half of the registers; four result pixels at a time.
#[target_feature(enable = "avx2")]
fn across(rows: [&[u8]; 2], taps: &Taps, out: [&mut [u8]; 2]) {
    match taps.pairs() {
        1 => across_pairs::<1>(rows, taps, out),
        2 => across_pairs::<2>(rows, taps, out),
        _ => across_pairs::<0>(rows, taps, out),
    }
}

/// As [`across`], for `PAIRS` pairs of weights; 0 for any number.
#[target_feature(enable = "avx2")]
fn across_pairs<const PAIRS: usize>(rows: [&[u8]; 2], taps: &Taps, [out_a, out_b]: [&mut [u8]; 2]) {
    // Of four pixels in the lower three of every four bytes, those three.
    let close = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    let close = _mm256_broadcastsi128_si256(close);
    let last = taps.len() - 1;
    for i in (0..taps.len()).step_by(4) {
        let mut sums = [_mm256_setzero_si256(); 4];
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum = pixel::<PAIRS>(rows, taps, (i + k).min(last));
        }
        let four = _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]), _mm256_packs_epi32(sums[2], sums[3]));
        let four = _mm256_shuffle_epi8(four, close);
        store_16(_mm256_castsi256_si128(four), &mut out_a[3 * i..]);
        store_16(_mm256_extracti128_si256::<1>(four), &mut out_b[3 * i..]);
    }
}

/// Red, green and blue of result pixel `i` in both rows, as 32-bit numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn pixel<const PAIRS: usize>(rows: [&[u8]; 2], taps: &Taps, i: usize) -> __m256i {
    // The two reds, greens and blues of pixels 0 and 1, and of pixels 2 and 3, as 16-bit numbers.
    let first = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    let second = _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    let (first, second) = (_mm256_broadcastsi128_si256(first), _mm256_broadcastsi128_si256(second));
    let weights = taps.weights(i);
    let weights = if PAIRS == 0 { weights } else { &weights[..PAIRS] };
    let start = 3 * taps.start(i);
    let (mut high, mut low) = (_mm256_setzero_si256(), _mm256_set1_epi32(1 << (PRECISION - 1)));
    for (q, pairs) in weights.chunks(2).enumerate() {
        let (a, b) = (load_16(&rows[0][start + 12 * q..]), load_16(&rows[1][start + 12 * q..]));
        let both = _mm256_set_m128i(b, a);
        add(&mut high, &mut low, _mm256_shuffle_epi8(both, first), pairs[0]);
        if let Some(pair) = pairs.get(1) {
            add(&mut high, &mut low, _mm256_shuffle_epi8(both, second), *pair);
        }
    }
    joined(high, low)
}

/// One row down, 32 bytes at a time.
#[target_feature(enable = "avx2")]
fn down(ring: &[u8], places: &[usize], weights: &[Pair], out: &mut [u8]) {
    for x in (0..out.len()).step_by(32) {
        let mut high = [_mm256_setzero_si256(); 4];
        let mut low = [_mm256_set1_epi32(1 << (PRECISION - 1)); 4];
        for (pair, places) in weights.iter().zip(places.as_chunks::<2>().0) {
            let (a, b) = (load_32(&ring[places[0] + x..]), load_32(&ring[places[1] + x..]));
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
                let mut whole = [0; SLACK];
                store_32(bytes, &mut whole);
                let rest = &mut out[x..];
                rest.copy_from_slice(&whole[..rest.len()]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(high: &mut __m256i, low: &mut __m256i, pixels: __m256i, pair: Pair) {
    *high = _mm256_add_epi32(*high, _mm256_madd_epi16(pixels, _mm256_set1_epi32(pair.high)));
    *low = _mm256_add_epi32(*low, _mm256_madd_epi16(pixels, _mm256_set1_epi32(pair.low)));
}

#[inline]
#[target_feature(enable = "avx2")]
fn joined(high: __m256i, low: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(_mm256_slli_epi32::<{ LOW_BITS as i32 }>(high), low);
    _mm256_srai_epi32::<{ PRECISION as i32 }>(sum)
}
