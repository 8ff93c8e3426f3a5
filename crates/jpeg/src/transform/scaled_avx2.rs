//! The inverse transforms for 1/2 and 1/4 with AVX2: two blocks at a time, one in each half of a vector.

use std::arch::x86_64::*;

use super::idct_avx2::{Wide, add, dot, exceeds, sub, wrap_rows, zip};
use super::portable::{self, CONST_BITS, PASS1_BITS, fix::*, flat, flat_quarter, row_portable};
use crate::blocks::BlockRow;
use crate::cpu::Avx2;
use crate::plan::Plane;

/// Shifts that undo the scaling of the first and of the second pass, without the bits that each transform adds.
const FIRST: i32 = CONST_BITS - PASS1_BITS;
const SECOND: i32 = CONST_BITS + PASS1_BITS + 3;

impl Avx2 {
    /// As [`super::idct::transform_row`], for blocks of fewer than 8×8 samples.
    pub(super) fn transform_scaled_row(self, plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
        // SAFETY: an `Avx2` exists only if the processor has AVX2 (`cpu.rs`).
        unsafe { row(plane, blocks, out, stride) }
    }
}

#[target_feature(enable = "avx2")]
fn row(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    match plane.block {
        4 => pairs(plane, blocks, (out, stride), flat, |a, b, quant| half(a, b, quant)),
        2 => pairs(plane, blocks, (out, stride), flat_quarter, |a, b, quant| quarter(a, b, quant)),
        _ => row_portable(plane, blocks, out, stride),
    }
}

/// Transforms two blocks at a time to `SIZE` rows, each of which holds a row of both blocks side by side. `flat` returns the sample
/// of a block that has only a DC coefficient.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs<const SIZE: usize>(
    plane: &Plane,
    blocks: &BlockRow<'_>,
    (out, stride): (&mut [u8], usize),
    flat: impl Fn(i16, u16) -> u8,
    transform: impl Fn(&[i16; 64], &[i16; 64], &[u16; 64]) -> [u64; SIZE],
) {
    let columns = plane.block_columns();
    let (first, last) = (columns.start as usize, columns.end as usize - 1);
    for column in (first..=last).step_by(2) {
        let (a, last_a) = blocks.get(column);
        let (b, last_b) = if column < last { blocks.get(column + 1) } else { (a, last_a) };
        let rows = match last_a | last_b {
            0 => {
                let [a, b] = [a, b].map(|block| u64::from(flat(block[0], plane.quant[0])) * 0x0101_0101);
                [b << (8 * SIZE) | a & ((1 << (8 * SIZE)) - 1); SIZE]
            }
            _ => transform(a, b, &plane.quant),
        };
        let at = (column - first) * SIZE;
        for (y, row) in rows.into_iter().enumerate() {
            out[y * stride + at..][..2 * SIZE].copy_from_slice(&row.to_le_bytes()[..2 * SIZE]);
        }
    }
}

/// Row `r` of both blocks, dequantised.
#[inline]
#[target_feature(enable = "avx2")]
fn load(a: &[i16; 64], b: &[i16; 64], quant: &[u16; 64], r: usize) -> __m256i {
    let part = |r: usize| 8 * r..8 * r + 8;
    let (a, b, quant) = (&a[part(r)], &b[part(r)], &quant[part(r)]);
    // SAFETY: each of the three slices is eight values, 16 bytes.
    let (a, b, quant) = unsafe {
        (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast()), _mm_loadu_si128(quant.as_ptr().cast()))
    };
    _mm256_mullo_epi16(_mm256_set_m128i(b, a), _mm256_broadcastsi128_si256(quant))
}

#[inline]
#[target_feature(enable = "avx2")]
fn narrow<const BITS: i32>(w: Wide) -> __m256i {
    _mm256_packs_epi32(descale::<BITS>(w[0]), descale::<BITS>(w[1]))
}

#[inline]
#[target_feature(enable = "avx2")]
fn descale<const BITS: i32>(sums: __m256i) -> __m256i {
    _mm256_srai_epi32::<BITS>(_mm256_add_epi32(sums, _mm256_set1_epi32(1 << (BITS - 1))))
}

/// Multiplies each number by 2 to the power of `BITS`, 14 or 15.
#[inline]
#[target_feature(enable = "avx2")]
fn lift<const BITS: i32>(x: __m256i) -> Wide {
    let zero = _mm256_setzero_si256();
    let [low, high] = [_mm256_unpacklo_epi16(zero, x), _mm256_unpackhi_epi16(zero, x)];
    match BITS {
        14 => [_mm256_srai_epi32::<2>(low), _mm256_srai_epi32::<2>(high)],
        _ => [_mm256_srai_epi32::<1>(low), _mm256_srai_epi32::<1>(high)],
    }
}

/// The four-point transform: from 2¹⁴ times the first input, and pairs of the others.
#[inline]
#[target_feature(enable = "avx2")]
fn four(first: Wide, z26: Wide, z37: Wide, z15: Wide) -> [Wide; 4] {
    let second = dot(z26, F_1_847, -F_0_765);
    let outer = add(dot(z37, F_0_899, -F_0_509), dot(z15, F_2_562, -F_0_601));
    let inner = add(dot(z37, -F_2_172, -F_0_211), dot(z15, F_1_061, F_1_451));
    let (above, below) = (add(first, second), sub(first, second));
    [add(above, outer), add(below, inner), sub(below, inner), sub(above, outer)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn half(a: &[i16; 64], b: &[i16; 64], quant: &[u16; 64]) -> [u64; 4] {
    let (x1, x2, x3) = (load(a, b, quant, 1), load(a, b, quant, 2), load(a, b, quant, 3));
    let (x5, x6, x7) = (load(a, b, quant, 5), load(a, b, quant, 6), load(a, b, quant, 7));
    let mut first = load(a, b, quant, 0);
    if exceeds(first) {
        first = wrap_rows(first, &[a, b], true);
    }
    let first = lift::<{ CONST_BITS + 1 }>(first);
    let [r0, r1, r2, r3] = four(first, zip(x2, x6), zip(x3, x7), zip(x1, x5));
    let (r0, r1) = (narrow::<{ FIRST + 1 }>(r0), narrow::<{ FIRST + 1 }>(r1));
    let (r2, r3) = (narrow::<{ FIRST + 1 }>(r2), narrow::<{ FIRST + 1 }>(r3));
    // Two columns of four rows in each half of a register.
    let ([low01, high01], [low23, high23]) = (zip(r0, r1), zip(r2, r3));
    let (c01, c23) = (_mm256_unpacklo_epi32(low01, low23), _mm256_unpackhi_epi32(low01, low23));
    let (c45, c67) = (_mm256_unpacklo_epi32(high01, high23), _mm256_unpackhi_epi32(high01, high23));
    let [z26, z37] = zip(c23, c67);
    let [first, _] = lift::<{ CONST_BITS + 1 }>(c01);
    let [_, z15] = zip(c01, c45);
    let [[c0, _], [c1, _], [c2, _], [c3, _]] = four([first; 2], [z26; 2], [z37; 2], [z15; 2]);
    let samples = _mm256_packs_epi16(narrow::<{ SECOND + 1 }>([c0, c1]), narrow::<{ SECOND + 1 }>([c2, c3]));
    // Sixteen samples from column by column to row by row.
    let order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let samples = _mm256_shuffle_epi8(samples, _mm256_broadcastsi128_si256(order));
    let samples = _mm256_xor_si256(samples, _mm256_set1_epi8(-128));
    let (a, b) = (_mm256_castsi256_si128(samples), _mm256_extracti128_si256::<1>(samples));
    let (upper, lower) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    let [r0, r2] = [_mm_cvtsi128_si64(upper), _mm_cvtsi128_si64(lower)];
    let [r1, r3] = [_mm_extract_epi64::<1>(upper), _mm_extract_epi64::<1>(lower)];
    [r0 as u64, r1 as u64, r2 as u64, r3 as u64]
}

#[inline]
#[target_feature(enable = "avx2")]
fn quarter(a: &[i16; 64], b: &[i16; 64], quant: &[u16; 64]) -> [u64; 2] {
    let zero = _mm256_setzero_si256();
    let (x1, x3) = (load(a, b, quant, 1), load(a, b, quant, 3));
    let (x5, x7) = (load(a, b, quant, 5), load(a, b, quant, 7));
    let x0 = load(a, b, quant, 0);
    let largest =
        [x1, x3, x5, x7].into_iter().fold(_mm256_abs_epi16(x0), |max, x| _mm256_max_epu16(max, _mm256_abs_epi16(x)));
    if _mm256_movemask_epi8(_mm256_cmpeq_epi16(_mm256_subs_epu16(largest, _mm256_set1_epi16(LARGE)), zero)) != -1 {
        return large_quarter(a, b, quant);
    }
    let first = lift::<{ CONST_BITS + 2 }>(x0);
    let odd = add(dot(zip(x1, x3), F_3_624, -F_1_272), dot(zip(x5, x7), F_0_850, -F_0_720));
    let rows = [narrow::<{ FIRST + 2 }>(add(first, odd)), narrow::<{ FIRST + 2 }>(sub(first, odd))];
    // Within a row: −2¹⁵ times its first number, and the weighted sum of its odd ones.
    let factor = |k: i32| k as i16;
    let first = _mm_setr_epi16(i16::MIN, 0, 0, 0, 0, 0, 0, 0);
    let [f1, f3, f5, f7] = [factor(F_3_624), factor(-F_1_272), factor(F_0_850), factor(-F_0_720)];
    let odd = _mm_setr_epi16(0, f1, 0, f3, 0, f5, 0, f7);
    let (less, odd) = (sums(rows, first), sums(rows, odd));
    let left = _mm256_sub_epi32(odd, less);
    let right = _mm256_sub_epi32(_mm256_sub_epi32(zero, odd), less);
    // Left and right samples of rows 0 and 1.
    let samples = narrow::<{ SECOND + 2 }>([_mm256_unpacklo_epi32(left, right); 2]);
    let samples = _mm256_xor_si256(_mm256_packs_epi16(samples, samples), _mm256_set1_epi8(-128));
    let a = _mm_cvtsi128_si32(_mm256_castsi256_si128(samples)) as u32;
    let b = _mm_cvtsi128_si32(_mm256_extracti128_si256::<1>(samples)) as u32;
    [u64::from(a & 0xffff | b << 16), u64::from(a >> 16 | b & 0xffff_0000)]
}

/// Dequantised coefficients up to this one have sums of 16 bits after the first pass: 4 + 3.624 + 1.272 + 0.850 + 0.720 times as much.
const LARGE: i16 = 3000;

/// As [`quarter`], of any coefficients.
#[cold]
fn large_quarter(a: &[i16; 64], b: &[i16; 64], quant: &[u16; 64]) -> [u64; 2] {
    let mut out = [0; 8];
    portable::quarter(a, quant, &mut out, 4);
    portable::quarter(b, quant, &mut out[2..], 4);
    let row = |r: usize| u64::from(u32::from_le_bytes([out[r], out[r + 1], out[r + 2], out[r + 3]]));
    [row(0), row(4)]
}

/// The sums of the eight products of each row: first row, second row, first row, second row.
#[inline]
#[target_feature(enable = "avx2")]
fn sums(rows: [__m256i; 2], factors: __m128i) -> __m256i {
    let factors = _mm256_broadcastsi128_si256(factors);
    let sums = _mm256_hadd_epi32(_mm256_madd_epi16(rows[0], factors), _mm256_madd_epi16(rows[1], factors));
    _mm256_hadd_epi32(sums, sums)
}
