//! The full-size inverse transform with NEON, one block at a time.

use std::arch::aarch64::*;

use super::portable::{CONST_BITS, PASS1_BITS, fix::*, flat, is_one_row, wrapped};
use crate::blocks::{BlockRow, QUARTER};
use crate::cpu::Neon;
use crate::plan::Plane;

/// A 32-bit sum for each of eight columns.
pub(super) type Wide = [int32x4_t; 2];

/// Shifts that undo the scaling of the first and of the second pass. The second one is made in two steps.
const FIRST: i32 = CONST_BITS - PASS1_BITS;
const SECOND: i32 = CONST_BITS + PASS1_BITS + 3;

impl Neon {
    /// As [`super::idct::transform_row`], for blocks of 8×8 samples.
    pub(super) fn transform_full_row(self, plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
        // SAFETY: every aarch64 processor has NEON (`cpu.rs`).
        unsafe { row(plane, blocks, out, stride) }
    }
}

#[target_feature(enable = "neon")]
fn row(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    let columns = plane.block_columns();
    let (first, last) = (columns.start as usize, columns.end as usize - 1);
    // All stores below are inside these bounds, so that they are checked once.
    let needed = (last - first + 1) * 8;
    assert!(stride >= needed && out.len() >= 7 * stride + needed);
    let quant = rows(&plane.quant.map(|q| q as i16));
    for column in first..=last {
        let (block, last) = blocks.get(column);
        let rows = match last {
            0 => [vdup_n_u8(flat(block[0], plane.quant[0])); 8],
            1..=QUARTER => transform::<true>(block, &quant),
            _ => transform::<false>(block, &quant),
        };
        // SAFETY: the offset is less than `needed`, so that eight bytes of each of eight rows exist there (asserted above).
        unsafe {
            let out = out.as_mut_ptr().add((column - first) * 8);
            for (y, row) in rows.into_iter().enumerate() {
                vst1_u8(out.add(y * stride), row);
            }
        }
    }
}

/// The rows of a block.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn rows(block: &[i16; 64]) -> [int16x8_t; 8] {
    // SAFETY: row `r` of a block of 64 values is 16 bytes at value 8 r.
    std::array::from_fn(|r| unsafe { vld1q_s16(block.as_ptr().add(8 * r)) })
}

/// The first row of a block, dequantised, which is wrapped if it exceeds what [`wrapped`] keeps and the block [`is_one_row`].
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn first_row(row: int16x8_t, block: &[i16; 64], half: bool) -> int16x8_t {
    let kept = vshrq_n_s16::<PASS1_BITS>(vshlq_n_s16::<PASS1_BITS>(row));
    if vminvq_u16(vceqq_s16(kept, row)) != 0 { row } else { wrap_row(row, block, half) }
}

#[cold]
#[target_feature(enable = "neon")]
fn wrap_row(row: int16x8_t, block: &[i16; 64], half: bool) -> int16x8_t {
    if !is_one_row(block, half) {
        return row;
    }
    let mut values = [0i16; 8];
    // SAFETY: `values` is 16 bytes.
    unsafe { vst1q_s16(values.as_mut_ptr(), row) };
    let values = values.map(wrapped);
    // SAFETY: as above.
    unsafe { vld1q_s16(values.as_ptr()) }
}

/// Both passes: from a block to rows of samples. If `SPARSE`, the last four rows and columns of coefficients are 0.
#[inline]
#[target_feature(enable = "neon")]
fn transform<const SPARSE: bool>(block: &[i16; 64], quant: &[int16x8_t; 8]) -> [uint8x8_t; 8] {
    let read = if SPARSE { 4 } else { 8 };
    let mut x = rows(block);
    for (r, x) in x.iter_mut().enumerate() {
        *x = if r < read { vmulq_s16(*x, quant[r]) } else { vdupq_n_s16(0) };
    }
    x[0] = first_row(x[0], block, false);
    let [even, odd] = pass::<SPARSE>(&x, 1 << (FIRST - 1));
    let mut y = [vdupq_n_s16(0); 8];
    for k in 0..4 {
        y[k] = narrow(sum(even[k], odd[k]));
        y[7 - k] = narrow(difference(even[k], odd[k]));
    }
    let [even, odd] = pass::<SPARSE>(&transpose(y), 1 << (SECOND - 1));
    let mut columns = [vdupq_n_s16(0); 8];
    for k in 0..4 {
        let (e, o) = (even[k], odd[k]);
        columns[k] = vaddhn_high_s32(vaddhn_s32(e[0], o[0]), e[1], o[1]);
        columns[7 - k] = vsubhn_high_s32(vsubhn_s32(e[0], o[0]), e[1], o[1]);
    }
    samples(columns)
}

#[inline]
#[target_feature(enable = "neon")]
fn sum(a: Wide, b: Wide) -> Wide {
    [vaddq_s32(a[0], b[0]), vaddq_s32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "neon")]
fn difference(a: Wide, b: Wide) -> Wide {
    [vsubq_s32(a[0], b[0]), vsubq_s32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "neon")]
fn narrow(w: Wide) -> int16x8_t {
    vqshrn_high_n_s32::<FIRST>(vqshrn_n_s32::<FIRST>(w[0]), w[1])
}

/// `factor` times each number.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn times(x: int16x8_t, factor: i32) -> Wide {
    [vmull_n_s16(vget_low_s16(x), factor as i16), vmull_high_n_s16(x, factor as i16)]
}

/// Adds `factor` times each number.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn plus(w: Wide, x: int16x8_t, factor: i32) -> Wide {
    [vmlal_n_s16(w[0], vget_low_s16(x), factor as i16), vmlal_high_n_s16(w[1], x, factor as i16)]
}

/// The eight-point transform of eight columns: the even and the odd parts, whose sums and differences are the outputs. `round` is
/// added to each output. If `SPARSE`, the last four inputs are 0.
#[inline]
#[target_feature(enable = "neon")]
fn pass<const SPARSE: bool>(x: &[int16x8_t; 8], round: i32) -> [[Wide; 4]; 2] {
    let round = [vdupq_n_s32(round); 2];
    let lift = |v: int16x8_t| plus(round, v, 1 << CONST_BITS);
    let (tmp0, tmp1, tmp2, tmp3, odd);
    if SPARSE {
        (tmp2, tmp3) = (times(x[2], F_0_541), times(x[2], F_0_541 + F_0_765));
        tmp0 = lift(x[0]);
        tmp1 = tmp0;
        // The general sums below without inputs 5 and 7, with their factors added up.
        let dot = |third, first| plus(times(x[3], third), x[1], first);
        odd = [
            dot(F_1_175, F_1_175 - F_0_390 + F_1_501 - F_0_899),
            dot(F_1_175 - F_1_961 + F_3_072 - F_2_562, F_1_175),
            dot(F_1_175 - F_2_562, F_1_175 - F_0_390),
            dot(F_1_175 - F_1_961, F_1_175 - F_0_899),
        ];
    } else {
        tmp2 = plus(times(x[2], F_0_541), x[6], F_0_541 - F_1_847);
        tmp3 = plus(times(x[2], F_0_541 + F_0_765), x[6], F_0_541);
        (tmp0, tmp1) = (lift(vaddq_s16(x[0], x[4])), lift(vsubq_s16(x[0], x[4])));
        let (s73, s51) = (vaddq_s16(x[7], x[3]), vaddq_s16(x[5], x[1]));
        let z3 = plus(times(s73, F_1_175 - F_1_961), s51, F_1_175);
        let z4 = plus(times(s73, F_1_175), s51, F_1_175 - F_0_390);
        odd = [
            plus(plus(z4, x[7], -F_0_899), x[1], F_1_501 - F_0_899),
            plus(plus(z3, x[5], -F_2_562), x[3], F_3_072 - F_2_562),
            plus(plus(z4, x[5], F_2_053 - F_2_562), x[3], -F_2_562),
            plus(plus(z3, x[7], F_0_298 - F_0_899), x[1], -F_0_899),
        ];
    }
    let even = [sum(tmp0, tmp3), sum(tmp1, tmp2), difference(tmp1, tmp2), difference(tmp0, tmp3)];
    [even, odd]
}

/// Transposes a block.
#[inline]
#[target_feature(enable = "neon")]
fn transpose(x: [int16x8_t; 8]) -> [int16x8_t; 8] {
    let [a, b, c, d] = [0, 2, 4, 6]
        .map(|i| [vtrn1q_s16(x[i], x[i + 1]), vtrn2q_s16(x[i], x[i + 1])].map(|v| vreinterpretq_s32_s16(v)));
    let pairs = |a: [int32x4_t; 2], b: [int32x4_t; 2]| {
        [vtrn1q_s32(a[0], b[0]), vtrn1q_s32(a[1], b[1]), vtrn2q_s32(a[0], b[0]), vtrn2q_s32(a[1], b[1])]
            .map(|v| vreinterpretq_s64_s32(v))
    };
    let (upper, lower) = (pairs(a, b), pairs(c, d));
    std::array::from_fn(|i| {
        let (a, b) = (upper[i % 4], lower[i % 4]);
        vreinterpretq_s16_s64(if i < 4 { vtrn1q_s64(a, b) } else { vtrn2q_s64(a, b) })
    })
}

/// Converts columns of numbers around 0, four times the samples' and more, to rows of samples.
#[inline]
#[target_feature(enable = "neon")]
fn samples(columns: [int16x8_t; 8]) -> [uint8x8_t; 8] {
    let two = |a, b| vqshrn_high_n_s16::<{ SECOND - 16 }>(vqshrn_n_s16::<{ SECOND - 16 }>(a), b);
    // Columns k and k + 4 in each vector.
    let [a, b, c, d] =
        [0, 1, 2, 3].map(|k| veorq_u8(vreinterpretq_u8_s8(two(columns[k], columns[k + 4])), vdupq_n_u8(128)));
    let zip8 = |a, b| [vtrn1q_u8(a, b), vtrn2q_u8(a, b)].map(|v| vreinterpretq_u16_u8(v));
    let (ab, cd) = (zip8(a, b), zip8(c, d));
    // Rows r and r + 4 of columns 0 to 3 and 4 to 7: even rows, then odd ones.
    let zip16 = |a, b| [vtrn1q_u16(a, b), vtrn2q_u16(a, b)].map(|v| vreinterpretq_u32_u16(v));
    let (even, odd) = (zip16(ab[0], cd[0]), zip16(ab[1], cd[1]));
    // The 32-bit parts of `even[0]`: row 0 left, row 4 left, row 0 right, row 4 right.
    let rows = [even[0], odd[0], even[1], odd[1]].map(|v| {
        let (low, high) = (vget_low_u32(v), vget_high_u32(v));
        [vtrn1_u32(low, high), vtrn2_u32(low, high)].map(|v| vreinterpret_u8_u32(v))
    });
    [rows[0][0], rows[1][0], rows[2][0], rows[3][0], rows[0][1], rows[1][1], rows[2][1], rows[3][1]]
}
