//! Normalises 16 samples at a time with NEON. The bits are equal to those of the tables.

// Loads, stores, and the conversion to half precision.
#![allow(unsafe_code)]

use super::output::{Dtype, Layout, Output};
use super::simd::{BF16, F16, F32, define_normalization};
use crate::cpu::Neon;
use std::arch::aarch64::*;

/// Bytes of 16 pixels.
const STEP: usize = 48;

define_normalization!(Neon, "neon");

/// Writes values in the order of the samples. The channels of four lanes repeat after three vectors.
#[target_feature(enable = "neon")]
fn interleaved<const DTYPE: u8, const VALUE: usize>(pixels: &[u8], output: &Output, out: &mut [u8]) -> usize {
    let (a, b) = output.coefficients();
    let lanes = |of: [f32; 3], j: usize| load_floats(&std::array::from_fn(|k| of[(4 * j + k) % 3]));
    let coefficients: [_; 3] = std::array::from_fn(|j| (lanes(a, j), lanes(b, j)));
    let (steps, _) = pixels.as_chunks::<STEP>();
    for (bytes, out) in steps.iter().zip(out.chunks_exact_mut(STEP * VALUE)) {
        for (i, (bytes, out)) in bytes.as_chunks().0.iter().zip(out.chunks_exact_mut(16 * VALUE)).enumerate() {
            let coefficients = std::array::from_fn(|j| coefficients[(4 * i + j) % 3]);
            store::<DTYPE>(affine(load(bytes), coefficients), out);
        }
    }
    steps.len() * STEP / 3
}

/// Writes one plane per channel.
#[target_feature(enable = "neon")]
fn planar<const DTYPE: u8, const VALUE: usize>(pixels: &[u8], output: &Output, out: &mut [u8]) -> usize {
    let (a, b) = output.coefficients();
    let coefficients: [_; 3] = std::array::from_fn(|c| [(vdupq_n_f32(a[c]), vdupq_n_f32(b[c])); 4]);
    let (steps, _) = pixels.as_chunks::<STEP>();
    let plane = pixels.len() / 3 * VALUE;
    let (red, rest) = out.split_at_mut(plane);
    let (green, blue) = rest.split_at_mut(plane);
    let [red, green, blue] = [red, green, blue].map(|plane| plane.chunks_exact_mut(16 * VALUE));
    for (((bytes, red), green), blue) in steps.iter().zip(red).zip(green).zip(blue) {
        // SAFETY: `bytes` refers to 48 readable bytes.
        let uint8x16x3_t(r, g, b) = unsafe { vld3q_u8(bytes.as_ptr()) };
        for ((channel, coefficients), out) in [r, g, b].into_iter().zip(coefficients).zip([red, green, blue]) {
            store::<DTYPE>(affine(channel, coefficients), out);
        }
    }
    steps.len() * STEP / 3
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: `bytes` refers to 16 readable bytes.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_floats(floats: &[f32; 4]) -> float32x4_t {
    // SAFETY: `floats` refers to four numbers.
    unsafe { vld1q_f32(floats.as_ptr()) }
}

/// The places of each four bytes as 32-bit numbers. Place 255 gives 0.
static PLACES: [[u8; 16]; 4] = {
    let mut places = [[255; 16]; 4];
    let mut i = 0;
    while i < 16 {
        places[i / 4][4 * (i % 4)] = i as u8;
        i += 1;
    }
    places
};

/// Returns `x·a + b` with one rounding, for the bytes x.
#[inline]
#[target_feature(enable = "neon")]
fn affine(bytes: uint8x16_t, coefficients: [(float32x4_t, float32x4_t); 4]) -> [float32x4_t; 4] {
    std::array::from_fn(|q| {
        let (a, b) = coefficients[q];
        let four = vqtbl1q_u8(bytes, load(&PLACES[q]));
        vfmaq_f32(b, vcvtq_f32_u32(vreinterpretq_u32_u8(four)), a)
    })
}

/// Writes 16 values.
#[inline]
#[target_feature(enable = "neon")]
fn store<const DTYPE: u8>(values: [float32x4_t; 4], out: &mut [u8]) {
    let [a, b, c, d] = values.map(|v| vreinterpretq_u8_f32(v));
    match DTYPE {
        F32 => store_vectors([a, b, c, d], out),
        F16 => store_vectors([half(values[0], values[1]), half(values[2], values[3])], out),
        _ => store_vectors([brain(a, b), brain(c, d)], out),
    }
}

/// # Panics
/// If `out` is not as long as the vectors.
#[inline]
#[target_feature(enable = "neon")]
fn store_vectors<const N: usize>(vectors: [uint8x16_t; N], out: &mut [u8]) {
    let (out, []) = out.as_chunks_mut::<16>() else { panic!("whole vectors") };
    for (out, vector) in out.iter_mut().zip(vectors) {
        // SAFETY: `out` refers to 16 writable bytes.
        unsafe { vst1q_u8(out.as_mut_ptr(), vector) }
    }
}

/// Rounds to half precision, to nearest even. `vcvt_f16_f32` is not yet stable.
#[inline]
#[target_feature(enable = "neon")]
fn half(low: float32x4_t, high: float32x4_t) -> uint8x16_t {
    let both: uint8x16_t;
    // SAFETY: the instructions read two registers and write one; every aarch64 processor has them.
    unsafe {
        std::arch::asm!(
            "fcvtn {both:v}.4h, {low:v}.4s",
            "fcvtn2 {both:v}.8h, {high:v}.4s",
            both = out(vreg) both,
            low = in(vreg) low,
            high = in(vreg) high,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    both
}

/// The upper halves, rounded to nearest even.
#[inline]
#[target_feature(enable = "neon")]
fn brain(low: uint8x16_t, high: uint8x16_t) -> uint8x16_t {
    let rounded = |bits: uint8x16_t| {
        let bits = vreinterpretq_u32_u8(bits);
        let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
        vreinterpretq_u16_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd))
    };
    vreinterpretq_u8_u16(vuzp2q_u16(rounded(low), rounded(high)))
}
