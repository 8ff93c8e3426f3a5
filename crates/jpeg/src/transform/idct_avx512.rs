//! The full-size inverse transform with AVX-512: four blocks at a time, one in each quarter of a vector.

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm256_set_m128i, _mm256_storeu_si256, _mm512_add_epi16 as add_epi16,
    _mm512_add_epi32 as add_epi32, _mm512_broadcast_i32x4, _mm512_castsi256_si512, _mm512_castsi512_si256,
    _mm512_cmpneq_epi16_mask, _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_loadu_si512,
    _mm512_madd_epi16 as madd_epi16, _mm512_mullo_epi16, _mm512_packs_epi16 as packs_epi16,
    _mm512_packs_epi32 as packs_epi32, _mm512_permutexvar_epi64, _mm512_set1_epi8 as set1_epi8,
    _mm512_set1_epi32 as set1_epi32, _mm512_setr_epi64, _mm512_setzero_si512 as setzero, _mm512_slli_epi16,
    _mm512_srai_epi16, _mm512_srai_epi32 as srai_epi32, _mm512_storeu_si512, _mm512_sub_epi16 as sub_epi16,
    _mm512_sub_epi32 as sub_epi32, _mm512_unpackhi_epi8 as unpackhi_epi8, _mm512_unpackhi_epi16 as unpackhi_epi16,
    _mm512_unpackhi_epi32 as unpackhi_epi32, _mm512_unpackhi_epi64 as unpackhi_epi64,
    _mm512_unpacklo_epi8 as unpacklo_epi8, _mm512_unpacklo_epi16 as unpacklo_epi16,
    _mm512_unpacklo_epi32 as unpacklo_epi32, _mm512_unpacklo_epi64 as unpacklo_epi64, _mm512_xor_si512 as xor,
};

use super::idct_simd::define_idct;
use super::portable::{CONST_BITS, PASS1_BITS, fix::*, flat, is_one_row, wrapped};
use crate::blocks::{BlockRow, QUARTER};
use crate::cpu::Avx512;
use crate::plan::Plane;

define_idct!("avx512f,avx512bw", __m512i, u32, order_rows);

impl Avx512 {
    /// As [`super::idct::transform_row`], for blocks of 8×8 samples.
    pub(super) fn transform_full_row(self, plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
        // SAFETY: an `Avx512` exists only if the processor has AVX-512F and AVX-512BW (`cpu.rs`).
        unsafe { row(plane, blocks, out, stride) }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn row(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    let columns = plane.block_columns();
    let (first, last) = (columns.start as usize, columns.end as usize - 1);
    // All stores below are inside these bounds, so that they are checked once.
    let needed = (last - first + 1).next_multiple_of(4) * 8;
    assert!(stride >= needed && out.len() >= 7 * stride + needed);
    let quant: [__m512i; 8] = std::array::from_fn(|r| {
        let table: &[u16; 8] = plane.quant[8 * r..].first_chunk().unwrap_or(&[0; 8]);
        // SAFETY: `table` is 16 bytes.
        _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
    });
    for column in (first..=last).step_by(4) {
        let (a, last_a) = blocks.get(column);
        let (b, last_b) = blocks.get((column + 1).min(last));
        let (c, last_c) = blocks.get((column + 2).min(last));
        let (d, last_d) = blocks.get((column + 3).min(last));
        // SAFETY: `column - first` is a multiple of 4 and less than `needed / 8`, so the offset is inside `out` (asserted
        // above).
        let out = unsafe { out.as_mut_ptr().add((column - first) * 8) };
        let rows = match last_a.max(last_b).max(last_c).max(last_d) {
            0 => {
                let value = |block: &[i16; 64]| flat(block[0], plane.quant[0]);
                flat_four([value(a), value(b), value(c), value(d)])
            }
            1..=QUARTER => four::<true>([a, b, c, d], &quant),
            _ => four::<false>([a, b, c, d], &quant),
        };
        for (y, two) in rows.into_iter().enumerate() {
            // SAFETY: rows 2y and 2y + 1 are at most row 7, of which 32 bytes from `out` on exist (asserted above).
            unsafe {
                let out = out.add(2 * y * stride);
                _mm256_storeu_si256(out.cast(), _mm512_castsi512_si256(two));
                _mm256_storeu_si256(out.add(stride).cast(), _mm512_extracti64x4_epi64::<1>(two));
            }
        }
    }
}

/// Two rows of 32 samples in each register, for four blocks of one sample value each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn flat_four(values: [u8; 4]) -> [__m512i; 4] {
    let [a, b, c, d] = values.map(|v| i64::from_le_bytes([v; 8]));
    [_mm512_setr_epi64(a, b, c, d, a, b, c, d); 4]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn four<const SPARSE: bool>(blocks: [&[i16; 64]; 4], quant: &[__m512i; 8]) -> [__m512i; 4] {
    let rows = if SPARSE { 4 } else { 8 };
    let mut x = [setzero(); 8];
    for (r, x) in x.iter_mut().enumerate().take(rows) {
        // SAFETY: row `r` of a block of 64 values is 16 bytes at value 8 r.
        let [a, b, c, d] = unsafe {
            [
                _mm_loadu_si128(blocks[0].as_ptr().add(8 * r).cast()),
                _mm_loadu_si128(blocks[1].as_ptr().add(8 * r).cast()),
                _mm_loadu_si128(blocks[2].as_ptr().add(8 * r).cast()),
                _mm_loadu_si128(blocks[3].as_ptr().add(8 * r).cast()),
            ]
        };
        let (low, high) = (_mm256_set_m128i(b, a), _mm256_set_m128i(d, c));
        *x = _mm512_mullo_epi16(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high), quant[r]);
    }
    if exceeds(x[0]) {
        x[0] = wrap_rows(x[0], &blocks);
    }
    transform::<SPARSE>(&x)
}

/// Whether any number of the first rows is beyond what [`wrapped`] keeps.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn exceeds(first: __m512i) -> bool {
    let kept = _mm512_srai_epi16::<{ PASS1_BITS as u32 }>(_mm512_slli_epi16::<{ PASS1_BITS as u32 }>(first));
    _mm512_cmpneq_epi16_mask(kept, first) != 0
}

/// The first rows of four blocks, wrapped if the block [`is_one_row`].
#[cold]
#[target_feature(enable = "avx512f,avx512bw")]
fn wrap_rows(first: __m512i, blocks: &[&[i16; 64]; 4]) -> __m512i {
    let mut rows = [[0i16; 8]; 4];
    // SAFETY: `rows` is 64 bytes.
    unsafe { _mm512_storeu_si512(rows.as_mut_ptr().cast(), first) };
    for (row, block) in rows.iter_mut().zip(blocks) {
        if is_one_row(block, false) {
            *row = row.map(wrapped);
        }
    }
    // SAFETY: `rows` is 64 bytes.
    unsafe { _mm512_loadu_si512(rows.as_ptr().cast()) }
}

/// Moves the 64-bit parts `a0 a1 b0 b1 c0 c1 d0 d1` to `a0 b0 c0 d0 a1 b1 c1 d1`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn order_rows(r: __m512i) -> __m512i {
    _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), r)
}
