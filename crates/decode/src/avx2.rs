//! Unaligned loads and stores of vectors from and to slices.

// Loads and stores take pointers.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

/// Loads the first 16 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_16(bytes: &[u8]) -> __m128i {
    let bytes: &[u8; 16] = &bytes[..16].as_chunks().0[0];
    // SAFETY: `bytes` refers to 16 readable bytes, and this load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Loads the first 32 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_32(bytes: &[u8]) -> __m256i {
    let bytes: &[u8; 32] = &bytes[..32].as_chunks().0[0];
    // SAFETY: `bytes` refers to 32 readable bytes, and this load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Stores into the first 16 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_16(vector: __m128i, out: &mut [u8]) {
    let out: &mut [u8; 16] = &mut out[..16].as_chunks_mut().0[0];
    // SAFETY: `out` refers to 16 writable bytes, and this store needs no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), vector) }
}

/// Stores into the first 32 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_32(vector: __m256i, out: &mut [u8]) {
    let out: &mut [u8; 32] = &mut out[..32].as_chunks_mut().0[0];
    // SAFETY: `out` refers to 32 writable bytes, and this store needs no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), vector) }
}
