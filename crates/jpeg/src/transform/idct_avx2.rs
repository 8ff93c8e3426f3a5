//! The full-size inverse transform with AVX2: two blocks at a time, one in each half of a vector.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm_set1_epi8, _mm_storeu_si128, _mm_unpacklo_epi64, _mm256_add_epi16 as add_epi16,
    _mm256_add_epi32 as add_epi32, _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_cmpeq_epi16,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_madd_epi16 as madd_epi16, _mm256_movemask_epi8,
    _mm256_mullo_epi16, _mm256_packs_epi16 as packs_epi16, _mm256_packs_epi32 as packs_epi32, _mm256_permute4x64_epi64,
    _mm256_set_m128i, _mm256_set1_epi8 as set1_epi8, _mm256_set1_epi32 as set1_epi32, _mm256_setzero_si256 as setzero,
    _mm256_slli_epi16, _mm256_srai_epi16, _mm256_srai_epi32 as srai_epi32, _mm256_storeu_si256,
    _mm256_sub_epi16 as sub_epi16, _mm256_sub_epi32 as sub_epi32, _mm256_unpackhi_epi8 as unpackhi_epi8,
    _mm256_unpackhi_epi16 as unpackhi_epi16, _mm256_unpackhi_epi32 as unpackhi_epi32,
    _mm256_unpackhi_epi64 as unpackhi_epi64, _mm256_unpacklo_epi8 as unpacklo_epi8,
    _mm256_unpacklo_epi16 as unpacklo_epi16, _mm256_unpacklo_epi32 as unpacklo_epi32,
    _mm256_unpacklo_epi64 as unpacklo_epi64, _mm256_xor_si256 as xor,
};

use super::idct_simd::define_idct;
use super::portable::{CONST_BITS, PASS1_BITS, fix::*, flat, is_one_row, wrapped};
use crate::blocks::{BlockRow, QUARTER};
use crate::cpu::Avx2;
use crate::plan::Plane;

define_idct!("avx2", __m256i, i32, order_rows);

impl Avx2 {
    /// As [`super::idct::transform_row`], for blocks of 8×8 samples.
    pub(super) fn transform_full_row(self, plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
        // SAFETY: an `Avx2` exists only if the processor has AVX2 (`cpu.rs`).
        unsafe { row(plane, blocks, out, stride) }
    }
}

#[target_feature(enable = "avx2")]
fn row(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    let columns = plane.block_columns();
    let (first, last) = (columns.start as usize, columns.end as usize - 1);
    // All stores below are inside these bounds, so that they are checked once.
    let needed = (last - first + 1).next_multiple_of(2) * 8;
    assert!(stride >= needed && out.len() >= 7 * stride + needed);
    let quant: [__m256i; 8] = std::array::from_fn(|r| {
        let table: &[u16; 8] = plane.quant[8 * r..].first_chunk().unwrap_or(&[0; 8]);
        // SAFETY: `table` is 16 bytes.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
    });
    for column in (first..=last).step_by(2) {
        let (a, last_a) = blocks.get(column);
        let (b, last_b) = if column < last { blocks.get(column + 1) } else { (a, last_a) };
        // SAFETY: `column - first` is even and less than `needed / 8`, so the offset is inside `out` (asserted above).
        let out = unsafe { out.as_mut_ptr().add((column - first) * 8) };
        let rows = match last_a.max(last_b) {
            0 => flat_pair(flat(a[0], plane.quant[0]), flat(b[0], plane.quant[0])),
            1..=QUARTER => pair::<true>(a, b, &quant),
            _ => pair::<false>(a, b, &quant),
        };
        for (y, two) in rows.into_iter().enumerate() {
            // SAFETY: rows 2y and 2y + 1 are at most row 7, of which 16 bytes from `out` on exist (asserted above).
            unsafe {
                let out = out.add(2 * y * stride);
                _mm_storeu_si128(out.cast(), _mm256_castsi256_si128(two));
                _mm_storeu_si128(out.add(stride).cast(), _mm256_extracti128_si256::<1>(two));
            }
        }
    }
}

/// Two rows of 16 samples in each register, for two blocks of one sample value each.
#[inline]
#[target_feature(enable = "avx2")]
fn flat_pair(a: u8, b: u8) -> [__m256i; 4] {
    let both = _mm_unpacklo_epi64(_mm_set1_epi8(a as i8), _mm_set1_epi8(b as i8));
    [_mm256_broadcastsi128_si256(both); 4]
}

#[inline]
#[target_feature(enable = "avx2")]
fn pair<const SPARSE: bool>(a: &[i16; 64], b: &[i16; 64], quant: &[__m256i; 8]) -> [__m256i; 4] {
    let rows = if SPARSE { 4 } else { 8 };
    let mut x = [setzero(); 8];
    for (r, x) in x.iter_mut().enumerate().take(rows) {
        // SAFETY: row `r` of a block of 64 values is 16 bytes at value 8 r.
        let (low, high) =
            unsafe { (_mm_loadu_si128(a.as_ptr().add(8 * r).cast()), _mm_loadu_si128(b.as_ptr().add(8 * r).cast())) };
        *x = _mm256_mullo_epi16(_mm256_set_m128i(high, low), quant[r]);
    }
    if exceeds(x[0]) {
        x[0] = wrap_rows(x[0], &[a, b], false);
    }
    transform::<SPARSE>(&x)
}

/// Whether any number of the first rows is beyond what [`wrapped`] keeps.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn exceeds(first: __m256i) -> bool {
    let kept = _mm256_srai_epi16::<PASS1_BITS>(_mm256_slli_epi16::<PASS1_BITS>(first));
    _mm256_movemask_epi8(_mm256_cmpeq_epi16(kept, first)) != -1
}

/// The first rows of two blocks, wrapped if the block [`is_one_row`].
#[cold]
#[target_feature(enable = "avx2")]
pub(super) fn wrap_rows(first: __m256i, blocks: &[&[i16; 64]; 2], half: bool) -> __m256i {
    let mut rows = [[0i16; 8]; 2];
    // SAFETY: `rows` is 32 bytes.
    unsafe { _mm256_storeu_si256(rows.as_mut_ptr().cast(), first) };
    for (row, block) in rows.iter_mut().zip(blocks) {
        if is_one_row(block, half) {
            *row = row.map(wrapped);
        }
    }
    // SAFETY: `rows` is 32 bytes.
    unsafe { _mm256_loadu_si256(rows.as_ptr().cast()) }
}

/// Moves the 64-bit parts `a0 a1 b0 b1` to `a0 b0 a1 b1`.
#[inline]
#[target_feature(enable = "avx2")]
fn order_rows(r: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(r)
}
