//! The inverse transforms for 1/2 and 1/4 with NEON, one block at a time.

use std::arch::aarch64::*;

use super::idct_neon::{Wide, first_row, plus, times};
use super::portable::{CONST_BITS, PASS1_BITS, fix::*, flat, flat_quarter, row_portable};
use crate::blocks::BlockRow;
use crate::cpu::Neon;
use crate::plan::Plane;

/// Shifts that undo the scaling of the first and of the second pass, without the bits that each transform adds.
const FIRST: i32 = CONST_BITS - PASS1_BITS;
const SECOND: i32 = CONST_BITS + PASS1_BITS + 3;

impl Neon {
    /// As [`super::idct::transform_row`], for blocks of fewer than 8×8 samples.
    pub(super) fn transform_scaled_row(self, plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
        // SAFETY: every aarch64 processor has NEON (`cpu.rs`).
        unsafe { row(plane, blocks, out, stride) }
    }
}

#[target_feature(enable = "neon")]
fn row(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    match plane.block {
        4 => each(plane, blocks, (out, stride), flat, |block, quant| half(block, quant)),
        2 => each(plane, blocks, (out, stride), flat_quarter, |block, quant| quarter(block, quant)),
        _ => row_portable(plane, blocks, out, stride),
    }
}

/// Transforms the blocks to `SIZE` rows of `SIZE` samples. `flat` returns the sample of a block that has only a DC coefficient.
#[inline]
#[target_feature(enable = "neon")]
fn each<const SIZE: usize>(
    plane: &Plane,
    blocks: &BlockRow<'_>,
    (out, stride): (&mut [u8], usize),
    flat: impl Fn(i16, u16) -> u8,
    transform: impl Fn(&[i16; 64], &[u16; 64]) -> [[u8; SIZE]; SIZE],
) {
    for (i, column) in (plane.block_columns().start as usize..plane.block_columns().end as usize).enumerate() {
        let (block, last) = blocks.get(column);
        let rows = match last {
            0 => [[flat(block[0], plane.quant[0]); SIZE]; SIZE],
            _ => transform(block, &plane.quant),
        };
        for (y, row) in rows.into_iter().enumerate() {
            out[y * stride + i * SIZE..][..SIZE].copy_from_slice(&row);
        }
    }
}

/// Row `r` of a block, dequantised.
#[inline]
#[target_feature(enable = "neon")]
fn load(block: &[i16; 64], quant: &[u16; 64], r: usize) -> int16x8_t {
    let (block, quant) = (&block[8 * r..8 * r + 8], &quant[8 * r..8 * r + 8]);
    // SAFETY: both slices are eight values, 16 bytes.
    unsafe { vmulq_s16(vld1q_s16(block.as_ptr()), vreinterpretq_s16_u16(vld1q_u16(quant.as_ptr()))) }
}

/// The four-point transform of eight columns, from inputs 0 to 3 and 5 to 7; `round` is added to each output.
#[inline]
#[target_feature(enable = "neon")]
fn four([x0, x1, x2, x3, x5, x6, x7]: [int16x8_t; 7], round: i32) -> [Wide; 4] {
    // Twice 2¹³ in one factor.
    let first = plus([vdupq_n_s32(round); 2], x0, 1 << (CONST_BITS + 1));
    let second = plus(times(x2, F_1_847), x6, -F_0_765);
    let outer = plus(plus(plus(times(x7, -F_0_509), x5, -F_0_601), x3, F_0_899), x1, F_2_562);
    let inner = plus(plus(plus(times(x7, -F_0_211), x5, F_1_451), x3, -F_2_172), x1, F_1_061);
    let both = |a: Wide, b: Wide| [vaddq_s32(a[0], b[0]), vaddq_s32(a[1], b[1])];
    let less = |a: Wide, b: Wide| [vsubq_s32(a[0], b[0]), vsubq_s32(a[1], b[1])];
    let (above, below) = (both(first, second), less(first, second));
    [both(above, outer), both(below, inner), less(below, inner), less(above, outer)]
}

#[inline]
#[target_feature(enable = "neon")]
fn half(block: &[i16; 64], quant: &[u16; 64]) -> [[u8; 4]; 4] {
    let row = |r| load(block, quant, r);
    let first = first_row(row(0), block, true);
    let inputs = [first, row(1), row(2), row(3), row(5), row(6), row(7)];
    let rows =
        four(inputs, 1 << FIRST).map(|w| vqshrn_high_n_s32::<{ FIRST + 1 }>(vqshrn_n_s32::<{ FIRST + 1 }>(w[0]), w[1]));
    // Columns k and k + 4 of four rows, in halves of vectors.
    let [a, b, c, d] = rows;
    let [ab0, ab1] = [vtrn1q_s16(a, b), vtrn2q_s16(a, b)].map(|v| vreinterpretq_s32_s16(v));
    let [cd0, cd1] = [vtrn1q_s16(c, d), vtrn2q_s16(c, d)].map(|v| vreinterpretq_s32_s16(v));
    let columns = [vtrn1q_s32(ab0, cd0), vtrn1q_s32(ab1, cd1), vtrn2q_s32(ab0, cd0), vtrn2q_s32(ab1, cd1)]
        .map(|v| vreinterpretq_s16_s32(v));
    let upper = |v| vcombine_s16(vget_high_s16(v), vget_high_s16(v));
    let inputs =
        [columns[0], columns[1], columns[2], columns[3], upper(columns[1]), upper(columns[2]), upper(columns[3])];
    // Only the lower halves are used.
    let columns = four(inputs, 1 << SECOND).map(|w| vshrn_n_s32::<16>(w[0]));
    let narrow = |a, b| vqshrn_n_s16::<{ SECOND + 1 - 16 }>(vcombine_s16(a, b));
    let mut by_column = [0u8; 16];
    let flip = |v| veor_u8(vreinterpret_u8_s8(v), vdup_n_u8(128));
    let both = vcombine_u8(flip(narrow(columns[0], columns[1])), flip(narrow(columns[2], columns[3])));
    // SAFETY: `ORDER` and `by_column` are 16 bytes.
    unsafe { vst1q_u8(by_column.as_mut_ptr(), vqtbl1q_u8(both, vld1q_u8(ORDER.as_ptr()))) };
    let (rows, _) = by_column.as_chunks();
    [rows[0], rows[1], rows[2], rows[3]]
}

/// Places of 16 samples, from column by column to row by row.
static ORDER: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

#[inline]
#[target_feature(enable = "neon")]
fn quarter(block: &[i16; 64], quant: &[u16; 64]) -> [[u8; 2]; 2] {
    let row = |r| load(block, quant, r);
    let x0 = row(0);
    let odd = plus(times(row(1), F_3_624), row(3), -F_1_272);
    let odd = plus(plus(odd, row(5), F_0_850), row(7), -F_0_720);
    const LIFT: i32 = CONST_BITS + 2;
    let round = vdupq_n_s32(1 << (FIRST + 1));
    let first = [vshll_n_s16::<LIFT>(vget_low_s16(x0)), vshll_high_n_s16::<LIFT>(x0)].map(|w| vaddq_s32(w, round));
    let above = [vaddq_s32(first[0], odd[0]), vaddq_s32(first[1], odd[1])];
    let below = [vsubq_s32(first[0], odd[0]), vsubq_s32(first[1], odd[1])];
    [above, below].map(|row| two(row))
}

/// The second pass of 1/4, of one row of sums.
#[inline]
#[target_feature(enable = "neon")]
fn two(row: Wide) -> [u8; 2] {
    let [low, high] = row.map(|w| vshrq_n_s32::<{ FIRST + 2 }>(w));
    // The first sum keeps its 32 bits.
    let first = vgetq_lane_s32::<0>(low) << (CONST_BITS + 2);
    let factor = |k: i32| k as i16;
    let factors = [0, factor(F_3_624), 0, factor(-F_1_272), 0, factor(F_0_850), 0, factor(-F_0_720)];
    // SAFETY: `factors` is 16 bytes.
    let factors = unsafe { vld1q_s16(factors.as_ptr()) };
    let numbers = vqmovn_high_s32(vqmovn_s32(low), high);
    let sums = vmull_s16(vget_low_s16(numbers), vget_low_s16(factors));
    let odd = vaddvq_s32(vmlal_high_s16(sums, numbers, factors));
    [first.wrapping_add(odd), first.wrapping_sub(odd)].map(|sum| {
        let value = sum.wrapping_add(1 << (SECOND + 1)) >> (SECOND + 2);
        (value.clamp(-128, 127) + 128) as u8
    })
}
