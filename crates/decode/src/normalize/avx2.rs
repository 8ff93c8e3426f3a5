//! Normalises eight pixels at a time with AVX2, FMA and F16C. The bits are equal to those of the tables.

// Calls of functions that need these instructions.
#![allow(unsafe_code)]

use super::output::{Dtype, Layout, Output};
use super::simd::{BF16, F16, F32, define_normalization};
use crate::avx2::{load_16, store_16, store_32};
use crate::cpu::Avx2FmaF16c;
use std::arch::x86_64::*;

/// Bytes of eight pixels.
const STEP: usize = 24;

define_normalization!(Avx2FmaF16c, "avx2,fma,f16c");

/// Writes values in the order of the samples: three vectors of eight values, whose lanes repeat the channels.
#[target_feature(enable = "avx2,fma,f16c")]
fn interleaved<const DTYPE: u8, const VALUE: usize>(pixels: &[u8], output: &Output, out: &mut [u8]) -> usize {
    let (a, b) = output.coefficients();
    let lanes = |of: [f32; 3], j: usize| {
        let [v0, v1, v2, v3, v4, v5, v6, v7]: [f32; 8] = std::array::from_fn(|k| of[(8 * j + k) % 3]);
        _mm256_setr_ps(v0, v1, v2, v3, v4, v5, v6, v7)
    };
    let coefficients: [_; 3] = std::array::from_fn(|j| (lanes(a, j), lanes(b, j)));
    let (steps, _) = pixels.as_chunks::<STEP>();
    for (bytes, out) in steps.iter().zip(out.chunks_exact_mut(STEP * VALUE)) {
        for (j, (a, b)) in coefficients.iter().enumerate() {
            let eight = u64::from_le_bytes(bytes.as_chunks().0[j]);
            let values = affine(_mm_cvtsi64_si128(eight as i64), *a, *b);
            store::<DTYPE>(values, &mut out[j * 8 * VALUE..(j + 1) * 8 * VALUE]);
        }
    }
    steps.len() * STEP / 3
}

/// Writes one plane per channel.
#[target_feature(enable = "avx2,fma,f16c")]
fn planar<const DTYPE: u8, const VALUE: usize>(pixels: &[u8], output: &Output, out: &mut [u8]) -> usize {
    let (a, b) = output.coefficients();
    let coefficients: [_; 3] = std::array::from_fn(|c| (_mm256_set1_ps(a[c]), _mm256_set1_ps(b[c])));
    // Byte 3k + c of eight pixels becomes byte k: the first ones from bytes 0 to 15, the others from bytes 8 to 23.
    let masks: [_; 3] = std::array::from_fn(|c| {
        let index = |k: usize, from: usize| {
            let at = 3 * k + c;
            let here = if from == 0 { at < 16 } else { at >= 16 };
            if k < 8 && here { (at - from) as i8 } else { -1 }
        };
        let [low, high]: [[i8; 16]; 2] = [0, 8].map(|from| std::array::from_fn(|k| index(k, from)));
        (load_16(&low.map(|i| i as u8)), load_16(&high.map(|i| i as u8)))
    });
    let (steps, _) = pixels.as_chunks::<STEP>();
    let plane = pixels.len() / 3 * VALUE;
    let (red, rest) = out.split_at_mut(plane);
    let (green, blue) = rest.split_at_mut(plane);
    let planes = [red, green, blue].map(|plane| plane.chunks_exact_mut(8 * VALUE));
    let [red, green, blue] = planes;
    for (((bytes, red), green), blue) in steps.iter().zip(red).zip(green).zip(blue) {
        let (low, high) = (load_16(&bytes[..16]), load_16(&bytes[8..]));
        for (out, (masks, (a, b))) in [red, green, blue].into_iter().zip(masks.iter().zip(&coefficients)) {
            let channel = _mm_or_si128(_mm_shuffle_epi8(low, masks.0), _mm_shuffle_epi8(high, masks.1));
            store::<DTYPE>(affine(channel, *a, *b), out);
        }
    }
    steps.len() * STEP / 3
}

/// Returns `x·a + b` with one rounding, for the lower eight bytes x.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn affine(bytes: __m128i, a: __m256, b: __m256) -> __m256 {
    _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), a, b)
}

/// Writes eight values.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store<const DTYPE: u8>(values: __m256, out: &mut [u8]) {
    match DTYPE {
        F32 => store_32(_mm256_castps_si256(values), out),
        F16 => store_16(_mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(values), out),
        _ => {
            // The upper half, rounded to nearest even.
            let bits = _mm256_castps_si256(values);
            let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
            let upper = _mm256_srli_epi32::<16>(rounded);
            let (low, high) = (_mm256_castsi256_si128(upper), _mm256_extracti128_si256::<1>(upper));
            store_16(_mm_packus_epi32(low, high), out);
        }
    }
}
