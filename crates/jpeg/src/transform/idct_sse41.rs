//! The full-size inverse transform with SSE4.1, one block at a time.

use std::arch::x86_64::{
    __m128i, _mm_add_epi16 as add_epi16, _mm_add_epi32 as add_epi32, _mm_cmpeq_epi16, _mm_loadu_si128,
    _mm_madd_epi16 as madd_epi16, _mm_movemask_epi8, _mm_mullo_epi16, _mm_packs_epi16 as packs_epi16,
    _mm_packs_epi32 as packs_epi32, _mm_set1_epi8 as set1_epi8, _mm_set1_epi32 as set1_epi32,
    _mm_setzero_si128 as setzero, _mm_slli_epi16, _mm_srai_epi16, _mm_srai_epi32 as srai_epi32, _mm_storel_epi64,
    _mm_storeu_si128, _mm_sub_epi16 as sub_epi16, _mm_sub_epi32 as sub_epi32, _mm_unpackhi_epi8 as unpackhi_epi8,
    _mm_unpackhi_epi16 as unpackhi_epi16, _mm_unpackhi_epi32 as unpackhi_epi32, _mm_unpackhi_epi64 as unpackhi_epi64,
    _mm_unpacklo_epi8 as unpacklo_epi8, _mm_unpacklo_epi16 as unpacklo_epi16, _mm_unpacklo_epi32 as unpacklo_epi32,
    _mm_unpacklo_epi64 as unpacklo_epi64, _mm_xor_si128 as xor,
};
use std::convert::identity as order_rows;

use super::idct_simd::define_idct;
use super::portable::{CONST_BITS, PASS1_BITS, fix::*, flat, is_one_row, wrapped};
use crate::blocks::{BlockRow, QUARTER};
use crate::cpu::Sse41;
use crate::plan::Plane;

define_idct!("sse4.1", __m128i, i32, order_rows);

impl Sse41 {
    /// As [`super::idct::transform_row`], for blocks of 8×8 samples.
    pub(super) fn transform_full_row(self, plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
        // SAFETY: an `Sse41` exists only if the processor has SSE4.1 (`cpu.rs`).
        unsafe { row(plane, blocks, out, stride) }
    }
}

#[target_feature(enable = "sse4.1")]
fn row(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    let columns = plane.block_columns();
    let (first, last) = (columns.start as usize, columns.end as usize - 1);
    // All stores below are inside these bounds, so that they are checked once.
    let needed = (last - first + 1) * 8;
    assert!(stride >= needed && out.len() >= 7 * stride + needed);
    let quant: [__m128i; 8] = std::array::from_fn(|r| {
        let table: &[u16; 8] = plane.quant[8 * r..].first_chunk().unwrap_or(&[0; 8]);
        // SAFETY: `table` is 16 bytes.
        unsafe { _mm_loadu_si128(table.as_ptr().cast()) }
    });
    for column in first..=last {
        let (block, last) = blocks.get(column);
        // SAFETY: the offset is less than `needed`, so it is inside `out` (asserted above).
        let out = unsafe { out.as_mut_ptr().add((column - first) * 8) };
        let rows = match last {
            0 => [set1_epi8(flat(block[0], plane.quant[0]) as i8); 4],
            1..=QUARTER => one::<true>(block, &quant),
            _ => one::<false>(block, &quant),
        };
        for (y, two) in rows.into_iter().enumerate() {
            // SAFETY: rows 2y and 2y + 1 are at most row 7, of which 8 bytes from `out` on exist (asserted above).
            unsafe {
                let out = out.add(2 * y * stride);
                _mm_storel_epi64(out.cast(), two);
                _mm_storel_epi64(out.add(stride).cast(), unpackhi_epi64(two, two));
            }
        }
    }
}

/// Two rows of eight samples in each register.
#[inline]
#[target_feature(enable = "sse4.1")]
fn one<const SPARSE: bool>(block: &[i16; 64], quant: &[__m128i; 8]) -> [__m128i; 4] {
    let rows = if SPARSE { 4 } else { 8 };
    let mut x = [setzero(); 8];
    for (r, x) in x.iter_mut().enumerate().take(rows) {
        // SAFETY: row `r` of a block of 64 values is 16 bytes at value 8 r.
        *x = _mm_mullo_epi16(unsafe { _mm_loadu_si128(block.as_ptr().add(8 * r).cast()) }, quant[r]);
    }
    let kept = _mm_srai_epi16::<PASS1_BITS>(_mm_slli_epi16::<PASS1_BITS>(x[0]));
    if _mm_movemask_epi8(_mm_cmpeq_epi16(kept, x[0])) != 0xffff {
        x[0] = wrap_row(x[0], block);
    }
    transform::<SPARSE>(&x)
}

/// The first row of a block, wrapped if the block [`is_one_row`].
#[cold]
#[target_feature(enable = "sse4.1")]
fn wrap_row(first: __m128i, block: &[i16; 64]) -> __m128i {
    if !is_one_row(block, false) {
        return first;
    }
    let mut row = [0i16; 8];
    // SAFETY: `row` is 16 bytes.
    unsafe { _mm_storeu_si128(row.as_mut_ptr().cast(), first) };
    let row = row.map(wrapped);
    // SAFETY: `row` is 16 bytes.
    unsafe { _mm_loadu_si128(row.as_ptr().cast()) }
}
