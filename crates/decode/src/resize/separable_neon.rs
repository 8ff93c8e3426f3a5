//! The two passes of [`super::separable`] with NEON: bytes are spread to 32-bit numbers by a table look-up, and multiplied by whole
//! weights.

// Loads take pointers.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::axis_filter::PRECISION;
use super::kernel::{Kernel, ROW_PADDING};
use super::weights::AxisWeights;
use crate::cpu::Neon;

/// Rows of the horizontal pass, which share the loads of weights.
const ROWS: usize = 4;

impl Kernel<[i32; 2], ROWS> for Neon {
    fn horizontal<const C: usize>(self, rows: [&[u8]; ROWS], columns: &AxisWeights<[i32; 2]>, out: [&mut [u8]; ROWS]) {
        // SAFETY: every aarch64 processor has NEON (`cpu.rs`).
        unsafe {
            match (C, columns.groups()) {
                (1, _) => horizontal_gray(rows, columns, out),
                (_, 1) => horizontal::<1>(rows, columns, out),
                (_, 2) => horizontal::<2>(rows, columns, out),
                _ => horizontal::<0>(rows, columns, out),
            }
        }
    }

    fn vertical(self, ring: &[u8], row_offsets: &[usize], weights: &[[i32; 2]], out: &mut [u8]) {
        // SAFETY: every aarch64 processor has NEON.
        unsafe { vertical(ring, row_offsets, weights, out) }
    }
}

/// Loads the first 16 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8]) -> uint8x16_t {
    let bytes: &[u8; 16] = &bytes[..16].as_chunks().0[0];
    // SAFETY: `bytes` refers to 16 readable bytes.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Stores into the first 16 bytes.
///
/// # Panics
/// If the slice is shorter.
#[inline]
#[target_feature(enable = "neon")]
fn store(vector: uint8x16_t, out: &mut [u8]) {
    let out: &mut [u8; 16] = &mut out[..16].as_chunks_mut().0[0];
    // SAFETY: `out` refers to 16 writable bytes.
    unsafe { vst1q_u8(out.as_mut_ptr(), vector) }
}

/// Loads two weights.
#[inline]
#[target_feature(enable = "neon")]
fn weights(pair: &[i32; 2]) -> int32x2_t {
    // SAFETY: `pair` refers to two numbers.
    unsafe { vld1_s32(pair.as_ptr()) }
}

/// The places of four bytes in four 32-bit numbers, from byte `from` on. Place 255 gives 0; the bytes after `count` give 0 too.
const fn places(from: u8, count: u8) -> [u8; 16] {
    let mut places = [255; 16];
    let mut i = 0;
    while i < count {
        places[4 * i as usize] = from + i;
        i += 1;
    }
    places
}

/// Spreads bytes to 32-bit numbers.
#[inline]
#[target_feature(enable = "neon")]
fn spread(bytes: uint8x16_t, places: uint8x16_t) -> int32x4_t {
    vreinterpretq_s32_u8(vqtbl1q_u8(bytes, places))
}

/// Converts sums to bytes: shifted by [`PRECISION`], and saturated.
#[inline]
#[target_feature(enable = "neon")]
fn rounded(sums: [int32x4_t; 4]) -> uint8x16_t {
    const REST: i32 = PRECISION as i32 - 16;
    // The upper halves of two vectors of sums.
    let upper = |a, b| vuzp2q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
    vqshrun_high_n_s16::<REST>(vqshrun_n_s16::<REST>(upper(sums[0], sums[1])), upper(sums[2], sums[3]))
}

/// What sums begin with, so that they are rounded.
#[inline]
#[target_feature(enable = "neon")]
fn half() -> int32x4_t {
    vdupq_n_s32(1 << (PRECISION - 1))
}

/// Resizes rows horizontally, four result pixels at a time, with `PAIRS` pairs of weights per pixel, or any number if `PAIRS` is 0.
#[target_feature(enable = "neon")]
fn horizontal<const PAIRS: usize>(rows: [&[u8]; ROWS], columns: &AxisWeights<[i32; 2]>, mut out: [&mut [u8]; ROWS]) {
    static PIXELS: [[u8; 16]; 4] = [places(0, 3), places(3, 3), places(6, 3), places(9, 3)];
    // Packs four pixels, each in the lower three of four bytes.
    static PACK: [u8; 16] = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 255, 255, 255, 255];
    let (pixels, pack) = (PIXELS.each_ref().map(|places| load(places)), load(&PACK));
    let last = columns.len() - 1;
    for i in (0..columns.len()).step_by(4) {
        let mut sums = [[half(); 4]; ROWS];
        for k in 0..4 {
            let i = (i + k).min(last);
            let (start, pairs) = (3 * columns.start(i), columns.weights(i));
            let pairs = if PAIRS == 0 { pairs } else { &pairs[..PAIRS] };
            for (q, two) in pairs.chunks(2).enumerate() {
                let first = weights(&two[0]);
                for (sums, row) in sums.iter_mut().zip(rows) {
                    let bytes = load(&row[start + 12 * q..]);
                    sums[k] = vmlaq_lane_s32::<0>(sums[k], spread(bytes, pixels[0]), first);
                    sums[k] = vmlaq_lane_s32::<1>(sums[k], spread(bytes, pixels[1]), first);
                    if let Some(second) = two.get(1) {
                        let second = weights(second);
                        sums[k] = vmlaq_lane_s32::<0>(sums[k], spread(bytes, pixels[2]), second);
                        sums[k] = vmlaq_lane_s32::<1>(sums[k], spread(bytes, pixels[3]), second);
                    }
                }
            }
        }
        for (sums, out) in sums.into_iter().zip(&mut out) {
            store(vqtbl1q_u8(rounded(sums), pack), &mut out[3 * i..]);
        }
    }
}

/// Resizes rows of grey horizontally, four result pixels at a time.
#[target_feature(enable = "neon")]
fn horizontal_gray(rows: [&[u8]; ROWS], columns: &AxisWeights<[i32; 2]>, mut out: [&mut [u8]; ROWS]) {
    static FOUR: [u8; 16] = places(0, 4);
    let four = load(&FOUR);
    let last = columns.len() - 1;
    for i in (0..columns.len()).step_by(4) {
        let mut sums = [[vdupq_n_s32(0); 4]; ROWS];
        for k in 0..4 {
            let i = (i + k).min(last);
            let start = columns.start(i);
            for (q, two) in columns.weights(i).chunks(2).enumerate() {
                let second = two.get(1).map_or(vdup_n_s32(0), |pair| weights(pair));
                let both = vcombine_s32(weights(&two[0]), second);
                for (sums, row) in sums.iter_mut().zip(rows) {
                    sums[k] = vmlaq_s32(sums[k], spread(load(&row[start + 4 * q..]), four), both);
                }
            }
        }
        for ([a, b, c, d], out) in sums.into_iter().zip(&mut out) {
            let four = vaddq_s32(vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)), half());
            let bytes = vreinterpretq_u32_u8(rounded([four; 4]));
            out[i..i + 4].copy_from_slice(&vgetq_lane_u32::<0>(bytes).to_le_bytes());
        }
    }
}

/// Computes one result row, 16 bytes at a time.
#[target_feature(enable = "neon")]
fn vertical(ring: &[u8], row_offsets: &[usize], pairs: &[[i32; 2]], out: &mut [u8]) {
    static QUARTERS: [[u8; 16]; 4] = [places(0, 4), places(4, 4), places(8, 4), places(12, 4)];
    let quarters = QUARTERS.each_ref().map(|places| load(places));
    for x in (0..out.len()).step_by(16) {
        let mut sums = [half(); 4];
        for (pair, offsets) in pairs.iter().zip(row_offsets.as_chunks::<2>().0) {
            let pair = weights(pair);
            let (a, b) = (load(&ring[offsets[0] + x..]), load(&ring[offsets[1] + x..]));
            for (sum, places) in sums.iter_mut().zip(quarters) {
                *sum = vmlaq_lane_s32::<0>(*sum, spread(a, places), pair);
                *sum = vmlaq_lane_s32::<1>(*sum, spread(b, places), pair);
            }
        }
        let bytes = rounded(sums);
        match out[x..].first_chunk_mut::<16>() {
            Some(out) => store(bytes, out),
            None => {
                let mut whole = [0; ROW_PADDING];
                store(bytes, &mut whole);
                let rest = &mut out[x..];
                rest.copy_from_slice(&whole[..rest.len()]);
            }
        }
    }
}
