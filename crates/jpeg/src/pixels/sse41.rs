//! Upsampling and conversion to RGB with SSE4.1, 16 samples at a time.
//!
//! Vectors are loaded and stored beyond the samples used, so the slices must have as many bytes more as each function says.
//! Functions panic if they have not.

use std::arch::x86_64::{
    __m128i, _mm_add_epi16 as add_epi16, _mm_add_epi32 as add_epi32, _mm_cvtepu8_epi16 as cvtepu8_epi16,
    _mm_loadl_epi64 as loadu_half, _mm_loadu_si128, _mm_loadu_si128 as loadu, _mm_madd_epi16 as madd_epi16,
    _mm_mulhi_epi16 as mulhi_epi16, _mm_mullo_epi16 as mullo_epi16, _mm_or_si128 as or, _mm_packs_epi32 as packs_epi32,
    _mm_packus_epi16 as packus_epi16, _mm_set1_epi16 as set1_epi16, _mm_set1_epi32 as set1_epi32,
    _mm_setzero_si128 as setzero, _mm_shuffle_epi8 as shuffle_epi8, _mm_slli_epi16 as slli_epi16,
    _mm_srai_epi16 as srai_epi16, _mm_srai_epi32 as srai_epi32, _mm_srli_epi16 as srli_epi16,
    _mm_storeu_si128 as storeu, _mm_sub_epi16 as sub_epi16, _mm_unpackhi_epi8 as unpackhi_epi8,
    _mm_unpackhi_epi16 as unpackhi_epi16, _mm_unpacklo_epi8 as unpacklo_epi8, _mm_unpacklo_epi16 as unpacklo_epi16,
};
use std::convert::identity as broadcast;

use super::color::{BLUE_CB, Conversion, GREEN_CB, GREEN_CR, RED_CR};
use super::simd::{MASKS, define_pixels};
use crate::cpu::Sse41;

define_pixels!(Sse41, "sse4.1", __m128i, 8, i32);

#[target_feature(enable = "sse4.1")]
fn convert(conversion: Conversion, rows: [&[u8]; 3], out: &mut [u8]) {
    let n = out.len() / 3;
    for x in (0..n).step_by(16) {
        let pixels = thirds(colors(conversion, rows, x));
        let here = &mut out[3 * x..];
        match here.first_chunk_mut() {
            Some(here) => store(pixels, here),
            None => {
                let mut whole = [0; 48];
                store(pixels, &mut whole);
                let n = here.len();
                here.copy_from_slice(&whole[..n]);
            }
        }
    }
}

/// Stores 16 pixels.
#[inline]
#[target_feature(enable = "sse4.1")]
fn store(thirds: [__m128i; 3], out: &mut [u8; 48]) {
    for (third, out) in thirds.into_iter().zip(out.as_chunks_mut::<16>().0) {
        // SAFETY: `out` is a chunk of 16 bytes.
        unsafe { storeu(out.as_mut_ptr().cast(), third) }
    }
}
