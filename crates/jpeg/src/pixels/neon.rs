//! Upsampling and conversion to RGB with NEON, 16 samples at a time.
//!
//! Vectors are loaded and stored beyond the samples used, so the slices must have as many bytes more as each function says.
//! Functions panic if they have not.

use std::arch::aarch64::*;

use super::color::{BLUE_CB, Conversion, GREEN_CB, GREEN_CR, RED_CR};
use crate::cpu::Neon;

/// The samples of a vector.
const SAMPLES: usize = 16;

/// A 16-bit number for each sample of a vector.
type Wide = [uint16x8_t; 2];

impl Neon {
    /// As [`super::upsample::across`]. `row` must have at least a vector and a byte more than `n`, and `out` two vectors more than
    /// 2 n.
    pub(super) fn upsample_across(self, row: &[u8], n: usize, out: &mut [u8]) {
        // SAFETY: every aarch64 processor has NEON (`cpu.rs`).
        unsafe { across(row, n, out) }
    }

    /// As [`super::upsample::both`]. The rows must have at least two vectors more than `n`, and `out` two vectors more than 2 n.
    pub(super) fn upsample_both(self, near: &[u8], far: &[u8], n: usize, out: &mut [u8]) {
        // SAFETY: as above.
        unsafe { both(near, far, n, out) }
    }

    /// As [`super::color::convert`], of three components. The rows must have at least a vector more than the samples used.
    pub(super) fn convert_to_rgb(self, conversion: Conversion, rows: [&[u8]; 3], out: &mut [u8]) {
        // SAFETY: as above.
        unsafe { convert(conversion, rows, out) }
    }
}

#[target_feature(enable = "neon")]
fn across(row: &[u8], n: usize, out: &mut [u8]) {
    let one = vdupq_n_u16(1);
    for i in (1..n - 1).step_by(SAMPLES) {
        let here = load(row, i);
        let three = [vmull_u8(vget_low_u8(here), vdup_n_u8(3)), vmull_high_u8(here, vdupq_n_u8(3))];
        let [low, high] = plus(three, load(row, i - 1));
        let left = vshrn_high_n_u16::<2>(vshrn_n_u16::<2>(vaddq_u16(low, one)), vaddq_u16(high, one));
        let [low, high] = plus(three, load(row, i + 1));
        let right = vrshrn_high_n_u16::<2>(vrshrn_n_u16::<2>(low), high);
        store_pairs(out, 2 * i, left, right);
    }
    let v = |i: usize| u16::from(row[i]);
    out[0] = row[0];
    out[1] = ((3 * v(0) + v(1) + 2) >> 2) as u8;
    out[2 * n - 2] = ((3 * v(n - 1) + v(n - 2) + 1) >> 2) as u8;
    out[2 * n - 1] = row[n - 1];
}

#[target_feature(enable = "neon")]
fn both(near: &[u8], far: &[u8], n: usize, out: &mut [u8]) {
    let seven = vdupq_n_u16(7);
    let sum = |i: usize| {
        let (near, far) = (load(near, i), load(far, i));
        let three = [vmull_u8(vget_low_u8(near), vdup_n_u8(3)), vmull_high_u8(near, vdupq_n_u8(3))];
        plus(three, far)
    };
    let (mut before, mut here) = (vdupq_n_u16(0), sum(0));
    for i in (0..n).step_by(SAMPLES) {
        let after = sum(i + SAMPLES);
        let three = here.map(|half| vmulq_n_u16(half, 3));
        let left = [vextq_u16::<7>(before, here[0]), vextq_u16::<7>(here[0], here[1])];
        let left = [vaddq_u16(three[0], left[0]), vaddq_u16(three[1], left[1])];
        let right = [vextq_u16::<1>(here[0], here[1]), vextq_u16::<1>(here[1], after[0])];
        let three = three.map(|half| vaddq_u16(half, seven));
        let right = [vaddq_u16(three[0], right[0]), vaddq_u16(three[1], right[1])];
        let left = vrshrn_high_n_u16::<4>(vrshrn_n_u16::<4>(left[0]), left[1]);
        let right = vshrn_high_n_u16::<4>(vshrn_n_u16::<4>(right[0]), right[1]);
        store_pairs(out, 2 * i, left, right);
        (before, here) = (here[1], after);
    }
    // At the edges the missing neighbour is the sample itself.
    let v = |i: usize| 3 * u16::from(near[i]) + u16::from(far[i]);
    out[0] = ((4 * v(0) + 8) >> 4) as u8;
    out[2 * n - 1] = ((4 * v(n - 1) + 7) >> 4) as u8;
}

#[target_feature(enable = "neon")]
fn convert(conversion: Conversion, rows: [&[u8]; 3], out: &mut [u8]) {
    let n = out.len() / 3;
    for x in (0..n).step_by(SAMPLES) {
        let pixels = match conversion {
            Conversion::Grey => [load(rows[0], x); 3],
            Conversion::Rgb => rows.map(|row| load(row, x)),
            Conversion::YCbCr => ycbcr(rows.map(|row| load(row, x))),
        };
        let here = &mut out[3 * x..];
        match here.first_chunk_mut() {
            Some(here) => store_pixels(pixels, here),
            None => {
                let mut whole = [0; 3 * SAMPLES];
                store_pixels(pixels, &mut whole);
                let n = here.len();
                here.copy_from_slice(&whole[..n]);
            }
        }
    }
}

/// Loads a vector of samples.
#[inline]
#[target_feature(enable = "neon")]
fn load(row: &[u8], at: usize) -> uint8x16_t {
    let bytes = &row[at..at + SAMPLES];
    // SAFETY: `bytes` is a vector.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Stores pairs of samples, one after the other.
#[inline]
#[target_feature(enable = "neon")]
fn store_pairs(out: &mut [u8], at: usize, left: uint8x16_t, right: uint8x16_t) {
    let out = &mut out[at..at + 2 * SAMPLES];
    // SAFETY: `out` is two vectors.
    unsafe { vst2q_u8(out.as_mut_ptr(), uint8x16x2_t(left, right)) }
}

/// Stores 16 samples of each colour as pixels.
#[inline]
#[target_feature(enable = "neon")]
fn store_pixels([red, green, blue]: [uint8x16_t; 3], out: &mut [u8; 3 * SAMPLES]) {
    // SAFETY: `out` is three vectors.
    unsafe { vst3q_u8(out.as_mut_ptr(), uint8x16x3_t(red, green, blue)) }
}

/// Adds samples to wide numbers.
#[inline]
#[target_feature(enable = "neon")]
fn plus([low, high]: Wide, samples: uint8x16_t) -> Wide {
    [vaddw_u8(low, vget_low_u8(samples)), vaddw_high_u8(high, samples)]
}

/// Each factor is split so that products of 16 bits suffice: 1.402 = 1 + 0.402, 1.772 = 2 − 0.228, −0.714 = 0.286 − 1. The parts
/// are exact, because they come from the constants with 16 fraction bits, so the rounding is that of `color`.
#[inline]
#[target_feature(enable = "neon")]
fn ycbcr([y, cb, cr]: [uint8x16_t; 3]) -> [uint8x16_t; 3] {
    let low = half(vmovl_u8(vget_low_u8(y)), centred(vget_low_u8(cb)), centred(vget_low_u8(cr)));
    let high = half(vmovl_high_u8(y), centred(vget_high_u8(cb)), centred(vget_high_u8(cr)));
    std::array::from_fn(|c| vqmovun_high_s16(vqmovun_s16(low[c]), high[c]))
}

/// Subtracts 128.
#[inline]
#[target_feature(enable = "neon")]
fn centred(chroma: uint8x8_t) -> int16x8_t {
    vreinterpretq_s16_u16(vsubl_u8(chroma, vdup_n_u8(128)))
}

/// Red, green and blue of eight pixels, which may be below 0 and above 255.
#[inline]
#[target_feature(enable = "neon")]
fn half(y: uint16x8_t, cb: int16x8_t, cr: int16x8_t) -> [int16x8_t; 3] {
    let y = vreinterpretq_s16_u16(y);
    let r = vaddq_s16(cr, rounded(cr, RED_CR - 65536));
    let b = vaddq_s16(vaddq_s16(cb, cb), rounded(cb, BLUE_CB - 131_072));
    let (of_cb, of_cr) = (GREEN_CB as i16, (GREEN_CR + 65536) as i16);
    let low = vmlal_n_s16(vmull_n_s16(vget_low_s16(cb), of_cb), vget_low_s16(cr), of_cr);
    let high = vmlal_high_n_s16(vmull_high_n_s16(cb, of_cb), cr, of_cr);
    let g = vsubq_s16(vrshrn_high_n_s32::<16>(vrshrn_n_s32::<16>(low), high), cr);
    [vaddq_s16(y, r), vaddq_s16(y, g), vaddq_s16(y, b)]
}

/// `factor` / 2¹⁶ times each number, rounded to the nearest: ((2 x factor >> 16) + 1) >> 1.
#[inline]
#[target_feature(enable = "neon")]
fn rounded(x: int16x8_t, factor: i32) -> int16x8_t {
    vrshrq_n_s16::<1>(vqdmulhq_n_s16(x, factor as i16))
}
