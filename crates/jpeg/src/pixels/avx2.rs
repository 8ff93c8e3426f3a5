//! Upsampling and conversion to RGB with AVX2, 32 samples at a time.
//!
//! Vectors are loaded and stored beyond the samples used, so the slices must have as many bytes more as each function says.
//! Functions panic if they have not.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm_loadu_si128 as loadu_half, _mm256_add_epi16 as add_epi16,
    _mm256_add_epi32 as add_epi32, _mm256_broadcastsi128_si256 as broadcast, _mm256_cvtepu8_epi16 as cvtepu8_epi16,
    _mm256_loadu_si256 as loadu, _mm256_madd_epi16 as madd_epi16, _mm256_mulhi_epi16 as mulhi_epi16,
    _mm256_mullo_epi16 as mullo_epi16, _mm256_or_si256 as or, _mm256_packs_epi32 as packs_epi32,
    _mm256_packus_epi16 as packus_epi16, _mm256_permute2x128_si256 as permute2x128, _mm256_set1_epi16 as set1_epi16,
    _mm256_set1_epi32 as set1_epi32, _mm256_setzero_si256 as setzero, _mm256_shuffle_epi8 as shuffle_epi8,
    _mm256_slli_epi16 as slli_epi16, _mm256_srai_epi16 as srai_epi16, _mm256_srai_epi32 as srai_epi32,
    _mm256_srli_epi16 as srli_epi16, _mm256_storeu_si256 as storeu, _mm256_sub_epi16 as sub_epi16,
    _mm256_unpackhi_epi8 as unpackhi_epi8, _mm256_unpackhi_epi16 as unpackhi_epi16,
    _mm256_unpacklo_epi8 as unpacklo_epi8, _mm256_unpacklo_epi16 as unpacklo_epi16,
};

use super::color::{BLUE_CB, Conversion, GREEN_CB, GREEN_CR, RED_CR};
use super::simd::{MASKS, define_pixels};
use crate::cpu::Avx2;

define_pixels!(Avx2, "avx2", __m256i, 16, i32);

#[target_feature(enable = "avx2")]
fn convert(conversion: Conversion, rows: [&[u8]; 3], out: &mut [u8]) {
    let n = out.len() / 3;
    for x in (0..n).step_by(32) {
        let pixels = colors(conversion, rows, x);
        let here = &mut out[3 * x..];
        match here.first_chunk_mut() {
            Some(here) => store(pixels, here),
            None => {
                let mut whole = [0; 96];
                store(pixels, &mut whole);
                let n = here.len();
                here.copy_from_slice(&whole[..n]);
            }
        }
    }
}

/// Stores 32 samples of each colour as pixels.
#[inline]
#[target_feature(enable = "avx2")]
fn store(pixels: [__m256i; 3], out: &mut [u8; 96]) {
    let [a, b, c] = thirds(pixels);
    let parts = [permute2x128::<0x20>(a, b), permute2x128::<0x30>(c, a), permute2x128::<0x31>(b, c)];
    for (part, out) in parts.into_iter().zip(out.as_chunks_mut::<32>().0) {
        // SAFETY: `out` is a chunk of 32 bytes.
        unsafe { storeu(out.as_mut_ptr().cast(), part) }
    }
}
