//! The inverse transform from coefficients to samples: libjpeg's accurate integer one ("islow"), and its reduced ones for
//! 1/2, 1/4 and 1/8, bit for bit.
//!
//! The transform is that of C. Loeffler, A. Ligtenberg and G. Moschytz, "Practical Fast 1-D DCT Algorithms with 11
//! Multiplications", ICASSP 1989, with constants of 13 bits. Intermediate values have 16 bits, as in libjpeg-turbo's SIMD
//! code: sums wrap, and the results of a pass saturate. The coefficients of an encoder reach neither.

use crate::blocks::BlockRow;
use crate::plan::Plane;

/// Constants of 13 bits: x · 2¹³, rounded.
pub(crate) mod fix {
    pub(crate) const F_0_211: i32 = 1730;
    pub(crate) const F_0_298: i32 = 2446;
    pub(crate) const F_0_390: i32 = 3196;
    pub(crate) const F_0_509: i32 = 4176;
    pub(crate) const F_0_541: i32 = 4433;
    pub(crate) const F_0_601: i32 = 4926;
    pub(crate) const F_0_720: i32 = 5906;
    pub(crate) const F_0_765: i32 = 6270;
    pub(crate) const F_0_850: i32 = 6967;
    pub(crate) const F_0_899: i32 = 7373;
    pub(crate) const F_1_061: i32 = 8697;
    pub(crate) const F_1_175: i32 = 9633;
    pub(crate) const F_1_272: i32 = 10426;
    pub(crate) const F_1_451: i32 = 11893;
    pub(crate) const F_1_501: i32 = 12299;
    pub(crate) const F_1_847: i32 = 15137;
    pub(crate) const F_1_961: i32 = 16069;
    pub(crate) const F_2_053: i32 = 16819;
    pub(crate) const F_2_172: i32 = 17799;
    pub(crate) const F_2_562: i32 = 20995;
    pub(crate) const F_3_072: i32 = 25172;
    pub(crate) const F_3_624: i32 = 29692;
}

use fix::*;

/// Fraction bits of the constants.
pub(crate) const CONST_BITS: i32 = 13;
/// Fraction bits of the results of the first pass.
pub(crate) const PASS1_BITS: i32 = 2;

/// As [`super::idct::transform_row`], without instruction sets; also compiled for AVX2 by `scaled_avx2`, where the compiler vectorises it.
#[inline(always)]
pub(crate) fn row_portable(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    let size = plane.block as usize;
    for (i, column) in (plane.block_columns().start as usize..plane.block_columns().end as usize).enumerate() {
        let (block, last) = blocks.get(column);
        let out = &mut out[i * size..];
        match size {
            8 => full(block, last, &plane.quant, out, stride),
            4 => half(block, last, &plane.quant, out, stride),
            2 => quarter(block, &plane.quant, out, stride),
            _ => out[0] = single(block[0], plane.quant[0]),
        }
    }
}

#[inline(always)]
fn descale(x: i32, bits: i32) -> i32 {
    x.wrapping_add(1 << (bits - 1)) >> bits
}

#[inline(always)]
fn saturate(x: i32) -> i16 {
    x.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

#[inline(always)]
fn sample(x: i32) -> u8 {
    (x.clamp(-128, 127) + 128) as u8
}

/// The sample of a block that has only a DC coefficient: both passes, simplified.
#[inline(always)]
pub(crate) fn flat(dc: i16, quant: u16) -> u8 {
    let first = dc.wrapping_mul(quant as i16) << PASS1_BITS;
    sample(descale(first.into(), PASS1_BITS + 3))
}

/// As [`flat`], at 1/4, where the first pass is not left out.
#[inline(always)]
pub(crate) fn flat_quarter(dc: i16, quant: u16) -> u8 {
    let first = i32::from(dc.wrapping_mul(quant as i16)) << PASS1_BITS;
    sample(descale(first << (CONST_BITS + 2), CONST_BITS + 2 + PASS1_BITS + 3))
}

/// Whether libjpeg-turbo leaves out the first pass of a block, since only its first row has coefficients: it then shifts them,
/// so that large ones wrap instead of saturating. The transforms for 1/2 do not look at row 4.
pub(super) fn is_one_row(block: &[i16; 64], half: bool) -> bool {
    let rest = |rows: std::ops::Range<usize>| block[8 * rows.start..8 * rows.end].iter().all(|&value| value == 0);
    rest(1..4) && (half || rest(4..5)) && rest(5..8)
}

/// Wraps a dequantised coefficient to the bits that [`is_one_row`] leaves.
pub(super) const fn wrapped(value: i16) -> i16 {
    value << PASS1_BITS >> PASS1_BITS
}

/// Dequantises a block.
#[inline(always)]
fn dequantised(block: &[i16; 64], quant: &[u16; 64], half: bool) -> [[i16; 8]; 8] {
    let mut rows = dequantise(block, quant);
    if rows[0] != rows[0].map(wrapped) && is_one_row(block, half) {
        rows[0] = rows[0].map(wrapped);
    }
    rows
}

/// The only sample of a block at 1/8. libjpeg has no vector code for it, and keeps 10 bits of the sum (`RANGE_MASK`).
#[inline(always)]
fn single(dc: i16, quant: u16) -> u8 {
    let value = descale(i32::from(dc) * i32::from(quant as i16), 3);
    sample((value << 22) >> 22)
}

#[inline(always)]
fn fill(value: u8, size: usize, out: &mut [u8], stride: usize) {
    for y in 0..size {
        out[y * stride..][..size].fill(value);
    }
}

/// The eight-point transform of eight columns at once (each inner array holds one value of every column).
#[inline(always)]
fn pass(x: &[[i16; 8]; 8], bits: i32) -> [[i16; 8]; 8] {
    let mut out = [[0; 8]; 8];
    for i in 0..8 {
        let v = |k: usize| i32::from(x[k][i]);
        let wrap = |a: i16, b: i16| i32::from(a.wrapping_add(b));
        let m = |a: i32, b: i32| a.wrapping_mul(b);
        let tmp2 = m(v(2), F_0_541).wrapping_add(m(v(6), F_0_541 - F_1_847));
        let tmp3 = m(v(2), F_0_541 + F_0_765).wrapping_add(m(v(6), F_0_541));
        let tmp0 = wrap(x[0][i], x[4][i]) << CONST_BITS;
        let tmp1 = i32::from(x[0][i].wrapping_sub(x[4][i])) << CONST_BITS;
        let even = [tmp0.wrapping_add(tmp3), tmp1.wrapping_add(tmp2), tmp1.wrapping_sub(tmp2), tmp0.wrapping_sub(tmp3)];
        let (s73, s51) = (wrap(x[7][i], x[3][i]), wrap(x[5][i], x[1][i]));
        let z3 = m(s73, F_1_175 - F_1_961).wrapping_add(m(s51, F_1_175));
        let z4 = m(s73, F_1_175).wrapping_add(m(s51, F_1_175 - F_0_390));
        let add3 = |a: i32, b: i32, c: i32| a.wrapping_add(b).wrapping_add(c);
        let odd = [
            add3(m(v(7), -F_0_899), m(v(1), F_1_501 - F_0_899), z4),
            add3(m(v(5), -F_2_562), m(v(3), F_3_072 - F_2_562), z3),
            add3(m(v(5), F_2_053 - F_2_562), m(v(3), -F_2_562), z4),
            add3(m(v(7), F_0_298 - F_0_899), m(v(1), -F_0_899), z3),
        ];
        for k in 0..4 {
            out[k][i] = saturate(descale(even[k].wrapping_add(odd[k]), bits));
            out[7 - k][i] = saturate(descale(even[k].wrapping_sub(odd[k]), bits));
        }
    }
    out
}

#[inline(always)]
fn transpose(x: &[[i16; 8]; 8]) -> [[i16; 8]; 8] {
    std::array::from_fn(|r| std::array::from_fn(|c| x[c][r]))
}

#[inline(always)]
fn dequantise(block: &[i16; 64], quant: &[u16; 64]) -> [[i16; 8]; 8] {
    std::array::from_fn(|r| std::array::from_fn(|c| block[r * 8 + c].wrapping_mul(quant[r * 8 + c] as i16)))
}

#[inline(always)]
fn full(block: &[i16; 64], last: u8, quant: &[u16; 64], out: &mut [u8], stride: usize) {
    if last == 0 {
        return fill(flat(block[0], quant[0]), 8, out, stride);
    }
    let first = pass(&dequantised(block, quant, false), CONST_BITS - PASS1_BITS);
    let second = transpose(&pass(&transpose(&first), CONST_BITS + PASS1_BITS + 3));
    for (y, row) in second.iter().enumerate() {
        out[y * stride..][..8].copy_from_slice(&row.map(|v| sample(v.into())));
    }
}

/// The transform from eight coefficients, of which the fifth is not used, to four samples, for eight columns at once.
#[inline(always)]
fn four(x: &[[i16; 8]; 8], bits: i32) -> [[i16; 8]; 4] {
    let mut out = [[0; 8]; 4];
    for i in 0..8 {
        let m = |k: usize, factor: i32| i32::from(x[k][i]).wrapping_mul(factor);
        let add4 = |a: i32, b: i32, c: i32, d: i32| a.wrapping_add(b).wrapping_add(c).wrapping_add(d);
        let first = i32::from(x[0][i]) << (CONST_BITS + 1);
        let second = m(2, F_1_847).wrapping_add(m(6, -F_0_765));
        let outer = add4(m(7, -F_0_509), m(5, -F_0_601), m(3, F_0_899), m(1, F_2_562));
        let inner = add4(m(7, -F_0_211), m(5, F_1_451), m(3, -F_2_172), m(1, F_1_061));
        let (above, below) = (first.wrapping_add(second), first.wrapping_sub(second));
        let scaled = |v: i32| saturate(descale(v, bits + 1));
        out[0][i] = scaled(above.wrapping_add(outer));
        out[1][i] = scaled(below.wrapping_add(inner));
        out[2][i] = scaled(below.wrapping_sub(inner));
        out[3][i] = scaled(above.wrapping_sub(outer));
    }
    out
}

#[inline(always)]
fn half(block: &[i16; 64], last: u8, quant: &[u16; 64], out: &mut [u8], stride: usize) {
    if last == 0 {
        return fill(flat(block[0], quant[0]), 4, out, stride);
    }
    let rows = four(&dequantised(block, quant, true), CONST_BITS - PASS1_BITS);
    let columns = std::array::from_fn(|c| std::array::from_fn(|r| if r < 4 { rows[r][c] } else { 0 }));
    let columns = four(&columns, CONST_BITS + PASS1_BITS + 3);
    for y in 0..4 {
        out[y * stride..][..4].copy_from_slice(&[0, 1, 2, 3].map(|x: usize| sample(columns[x][y].into())));
    }
}

/// The transform from the first and the odd coefficients to two sums, which do not saturate.
#[inline(always)]
fn two(x0: i32, odd: [i16; 4], bits: i32) -> [i32; 2] {
    let constants = [F_3_624, -F_1_272, F_0_850, -F_0_720];
    let sum = odd.iter().zip(constants).fold(0i32, |a, (&x, c)| a.wrapping_add(i32::from(x).wrapping_mul(c)));
    let first = x0 << (CONST_BITS + 2);
    [first.wrapping_add(sum), first.wrapping_sub(sum)].map(|v| descale(v, bits + 2))
}

#[inline(always)]
pub(super) fn quarter(block: &[i16; 64], quant: &[u16; 64], out: &mut [u8], stride: usize) {
    let value = |r: usize, c: usize| block[r * 8 + c].wrapping_mul(quant[r * 8 + c] as i16);
    let mut rows = [[0i32; 8]; 2];
    for column in [0, 1, 3, 5, 7] {
        let odd = [1, 3, 5, 7].map(|r| value(r, column));
        [rows[0][column], rows[1][column]] = two(value(0, column).into(), odd, CONST_BITS - PASS1_BITS);
    }
    for (y, row) in rows.into_iter().enumerate() {
        // The first sum keeps its 32 bits.
        let samples = two(row[0], [row[1], row[3], row[5], row[7]].map(saturate), CONST_BITS + PASS1_BITS + 3);
        out[y * stride..][..2].copy_from_slice(&samples.map(|v| sample(saturate(v).into())));
    }
}
