//! Upsampling and conversion to RGB with AVX-512, 64 samples at a time.
//!
//! Vectors are loaded and stored beyond the samples used, so the slices must have as many bytes more as each function says.
//! Functions panic if they have not.

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm256_loadu_si256 as loadu_half, _mm512_add_epi16 as add_epi16,
    _mm512_add_epi32 as add_epi32, _mm512_broadcast_i32x4 as broadcast, _mm512_cvtepu8_epi16 as cvtepu8_epi16,
    _mm512_loadu_si512 as loadu, _mm512_madd_epi16 as madd_epi16, _mm512_mask_permutexvar_epi64,
    _mm512_mask_storeu_epi8, _mm512_mulhi_epi16 as mulhi_epi16, _mm512_mullo_epi16 as mullo_epi16,
    _mm512_or_si512 as or, _mm512_packs_epi32 as packs_epi32, _mm512_packus_epi16 as packus_epi16,
    _mm512_permutex2var_epi64, _mm512_set1_epi16 as set1_epi16, _mm512_set1_epi32 as set1_epi32, _mm512_setr_epi64,
    _mm512_setzero_si512 as setzero, _mm512_shuffle_epi8 as shuffle_epi8, _mm512_slli_epi16 as slli_epi16,
    _mm512_srai_epi16 as srai_epi16, _mm512_srai_epi32 as srai_epi32, _mm512_srli_epi16 as srli_epi16,
    _mm512_storeu_si512 as storeu, _mm512_sub_epi16 as sub_epi16, _mm512_unpackhi_epi8 as unpackhi_epi8,
    _mm512_unpackhi_epi16 as unpackhi_epi16, _mm512_unpacklo_epi8 as unpacklo_epi8,
    _mm512_unpacklo_epi16 as unpacklo_epi16,
};

use super::color::{BLUE_CB, Conversion, GREEN_CB, GREEN_CR, RED_CR};
use super::simd::{MASKS, define_pixels};
use crate::cpu::Avx512;

define_pixels!(Avx512, "avx512f,avx512bw", __m512i, 32, u32);

#[target_feature(enable = "avx512f,avx512bw")]
fn convert(conversion: Conversion, rows: [&[u8]; 3], out: &mut [u8]) {
    let n = out.len() / 3;
    for x in (0..n).step_by(64) {
        let parts = interleave(colors(conversion, rows, x));
        let here = &mut out[3 * x..];
        match here.first_chunk_mut::<192>() {
            Some(here) => {
                for (part, out) in parts.into_iter().zip(here.as_chunks_mut::<64>().0) {
                    // SAFETY: `out` is a chunk of 64 bytes.
                    unsafe { storeu(out.as_mut_ptr().cast(), part) }
                }
            }
            None => {
                for (part, out) in parts.into_iter().zip(here.chunks_mut(64)) {
                    // SAFETY: the mask has a bit for each byte of `out`, of which there are at most 64.
                    unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), u64::MAX >> (64 - out.len()), part) }
                }
            }
        }
    }
}

/// Interleaves 64 samples of each colour to pixels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave(pixels: [__m512i; 3]) -> [__m512i; 3] {
    let [a, b, c] = thirds(pixels);
    // The quarters `a0 b0 c0 a1`, `b1 c1 a2 b2` and `c2 a3 b3 c3`: two from the first vector, one from the second and one from the
    // third. `from` has a number for each: below 4 from the first, above from the second.
    let pick = |first, second, third, from: [i64; 4], quarter: i64| {
        let [p, q, r, s] = from.map(|n| 2 * n);
        let two = _mm512_permutex2var_epi64(first, _mm512_setr_epi64(p, p + 1, q, q + 1, r, r + 1, s, s + 1), second);
        let (low, high) = (2 * quarter, 2 * quarter + 1);
        let index = _mm512_setr_epi64(low, high, low, high, low, high, low, high);
        // The third quarter of each vector is from `third`.
        _mm512_mask_permutexvar_epi64(two, 0b0011_0000, index, third)
    };
    [pick(a, b, c, [0, 4, 0, 1], 0), pick(b, c, a, [1, 5, 0, 2], 2), pick(c, a, b, [2, 7, 0, 3], 3)]
}
