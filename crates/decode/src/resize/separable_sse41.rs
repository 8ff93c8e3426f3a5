//! The two passes of [`super::separable`] for colour with SSE4.1: those of [`super::separable_avx2`] with half of its vectors.

// Calls of functions that need SSE4.1; loads and stores take pointers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::axis_filter::{AT_ONCE, PRECISION};
use super::kernel::Kernel;
use super::weights::{AxisWeights, LOW_BITS, WeightPair};
use crate::cpu::Sse41;

impl Kernel<WeightPair, 2> for Sse41 {
    /// Pixels must have three bytes.
    fn horizontal<const C: usize>(self, rows: [&[u8]; 2], columns: &AxisWeights<WeightPair>, out: [&mut [u8]; 2]) {
        assert_eq!(C, 3, "colour");
        for (row, out) in rows.into_iter().zip(out) {
            // SAFETY: an `Sse41` exists only if the processor has SSE4.1 (`cpu.rs`).
            unsafe { horizontal(row, columns, out) }
        }
    }

    fn vertical(self, ring: &[u8], row_offsets: &[usize], weights: &[WeightPair], out: &mut [u8]) {
        // SAFETY: as above.
        unsafe { vertical(ring, row_offsets, weights, out) }
    }
}

/// Resizes a row horizontally, four result pixels at a time.
#[target_feature(enable = "sse4.1")]
fn horizontal(row: &[u8], columns: &AxisWeights<WeightPair>, out: &mut [u8]) {
    // Packs four pixels, each in the lower three of four bytes.
    let pack = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    // Interleaves red, green and blue of pixels 0 and 1, and of pixels 2 and 3, as 16-bit numbers.
    let first = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    let second = _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    let groups = columns.groups();
    let (starts, weights) = (columns.starts().as_chunks::<AT_ONCE>().0, columns.all_weights());
    for (i, (starts, weights)) in starts.iter().zip(weights.chunks_exact(AT_ONCE * groups)).enumerate() {
        let mut pixels = [_mm_setzero_si128(); AT_ONCE];
        for ((pixel, start), weights) in pixels.iter_mut().zip(starts).zip(weights.chunks_exact(groups)) {
            let (mut high, mut low) = (_mm_setzero_si128(), half());
            for (q, pairs) in weights.chunks(2).enumerate() {
                let bytes = load(&row[3 * *start as usize + 12 * q..]);
                add(&mut high, &mut low, _mm_shuffle_epi8(bytes, first), pairs[0]);
                if let Some(pair) = pairs.get(1) {
                    add(&mut high, &mut low, _mm_shuffle_epi8(bytes, second), *pair);
                }
            }
            *pixel = joined(high, low);
        }
        let four = _mm_packus_epi16(_mm_packs_epi32(pixels[0], pixels[1]), _mm_packs_epi32(pixels[2], pixels[3]));
        store(_mm_shuffle_epi8(four, pack), &mut out[3 * AT_ONCE * i..]);
    }
}

/// Computes one result row, 16 bytes at a time.
#[target_feature(enable = "sse4.1")]
fn vertical(ring: &[u8], row_offsets: &[usize], weights: &[WeightPair], out: &mut [u8]) {
    let zero = _mm_setzero_si128();
    for x in (0..out.len()).step_by(16) {
        let (mut high, mut low) = ([zero; 4], [half(); 4]);
        for (pair, offsets) in weights.iter().zip(row_offsets.as_chunks::<2>().0) {
            let (a, b) = (load(&ring[offsets[0] + x..]), load(&ring[offsets[1] + x..]));
            let (near, far) = (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b));
            let pixels = [
                _mm_unpacklo_epi8(near, zero),
                _mm_unpackhi_epi8(near, zero),
                _mm_unpacklo_epi8(far, zero),
                _mm_unpackhi_epi8(far, zero),
            ];
            for ((high, low), pixels) in high.iter_mut().zip(&mut low).zip(pixels) {
                add(high, low, pixels, *pair);
            }
        }
        let a = _mm_packs_epi32(joined(high[0], low[0]), joined(high[1], low[1]));
        let b = _mm_packs_epi32(joined(high[2], low[2]), joined(high[3], low[3]));
        let bytes = _mm_packus_epi16(a, b);
        match out[x..].first_chunk_mut::<16>() {
            Some(out) => store(bytes, out),
            None => {
                let mut whole = [0; 16];
                store(bytes, &mut whole);
                let rest = &mut out[x..];
                rest.copy_from_slice(&whole[..rest.len()]);
            }
        }
    }
}

/// What the sums of lower parts begin with, so that they are rounded.
#[inline]
#[target_feature(enable = "sse4.1")]
fn half() -> __m128i {
    _mm_set1_epi32(1 << (PRECISION - 1))
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn add(high: &mut __m128i, low: &mut __m128i, pixels: __m128i, pair: WeightPair) {
    *high = _mm_add_epi32(*high, _mm_madd_epi16(pixels, _mm_set1_epi32(pair.high)));
    *low = _mm_add_epi32(*low, _mm_madd_epi16(pixels, _mm_set1_epi32(pair.low)));
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn joined(high: __m128i, low: __m128i) -> __m128i {
    let sum = _mm_add_epi32(_mm_slli_epi32::<{ LOW_BITS as i32 }>(high), low);
    _mm_srai_epi32::<{ PRECISION as i32 }>(sum)
}

/// Loads the first 16 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "sse4.1")]
fn load(bytes: &[u8]) -> __m128i {
    let bytes: &[u8; 16] = &bytes[..16].as_chunks().0[0];
    // SAFETY: `bytes` refers to 16 readable bytes, and this load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Stores into the first 16 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "sse4.1")]
fn store(vector: __m128i, out: &mut [u8]) {
    let out: &mut [u8; 16] = &mut out[..16].as_chunks_mut().0[0];
    // SAFETY: `out` refers to 16 writable bytes, and this store needs no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), vector) }
}
