//! Upsampling and conversion to RGB with AVX2, 32 samples at a time.
//!
//! Vectors are loaded and stored beyond the samples used, so the slices must have as many bytes more as each function says.
//! Functions panic if they have not.

use std::arch::x86_64::*;

use crate::cpu::Avx2;
use crate::markers::header::Color;

impl Avx2 {
    /// As [`super::upsample::across`]. `row` must have at least 17 bytes more than `n`, and `out` 32 more than 2 n.
    pub(super) fn upsample_across(self, row: &[u8], n: usize, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if the processor has AVX2 (`cpu.rs`).
        unsafe { across(row, n, out) }
    }

    /// As [`super::upsample::both`]. The rows must have at least 17 bytes more than `n`, and `out` 32 more than 2 n.
    pub(super) fn upsample_both(self, near: &[u8], far: &[u8], n: usize, out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if the processor has AVX2 (`cpu.rs`).
        unsafe { both(near, far, n, out) }
    }

    /// As [`super::color::convert`]. The rows must have at least 32 bytes more than samples used.
    pub(super) fn convert_to_rgb(self, color: Color, rows: [&[u8]; 3], out: &mut [u8]) {
        // SAFETY: an `Avx2` exists only if the processor has AVX2 (`cpu.rs`).
        unsafe { convert(color, rows, out) }
    }
}
use super::color::{BLUE_CB, GREEN_CB, GREEN_CR, RED_CR};

/// Loads sixteen samples as 16-bit numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn wide(row: &[u8], at: usize) -> __m256i {
    let bytes = &row[at..at + 16];
    // SAFETY: `bytes` has 16 bytes.
    _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

/// Stores pairs of samples, given as 16-bit numbers in two registers, one after the other.
#[inline]
#[target_feature(enable = "avx2")]
fn store_pairs(out: &mut [u8], at: usize, left: __m256i, right: __m256i) {
    let pairs = _mm256_or_si256(left, _mm256_slli_epi16::<8>(right));
    let out = &mut out[at..at + 32];
    // SAFETY: `out` has 32 bytes.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), pairs) }
}

#[target_feature(enable = "avx2")]
fn across(row: &[u8], n: usize, out: &mut [u8]) {
    let (one, two, three) = (_mm256_set1_epi16(1), _mm256_set1_epi16(2), _mm256_set1_epi16(3));
    for i in (1..n - 1).step_by(16) {
        let here = _mm256_mullo_epi16(wide(row, i), three);
        let left = _mm256_add_epi16(_mm256_add_epi16(here, wide(row, i - 1)), one);
        let right = _mm256_add_epi16(_mm256_add_epi16(here, wide(row, i + 1)), two);
        store_pairs(out, 2 * i, _mm256_srli_epi16::<2>(left), _mm256_srli_epi16::<2>(right));
    }
    let v = |i: usize| u16::from(row[i]);
    out[0] = row[0];
    out[1] = ((3 * v(0) + v(1) + 2) >> 2) as u8;
    out[2 * n - 2] = ((3 * v(n - 1) + v(n - 2) + 1) >> 2) as u8;
    out[2 * n - 1] = row[n - 1];
}

#[target_feature(enable = "avx2")]
fn both(near: &[u8], far: &[u8], n: usize, out: &mut [u8]) {
    let (seven, eight, three) = (_mm256_set1_epi16(7), _mm256_set1_epi16(8), _mm256_set1_epi16(3));
    let sum = |i: usize| _mm256_add_epi16(_mm256_mullo_epi16(wide(near, i), three), wide(far, i));
    for i in (1..n - 1).step_by(16) {
        let here = _mm256_mullo_epi16(sum(i), three);
        let left = _mm256_add_epi16(_mm256_add_epi16(here, sum(i - 1)), eight);
        let right = _mm256_add_epi16(_mm256_add_epi16(here, sum(i + 1)), seven);
        store_pairs(out, 2 * i, _mm256_srli_epi16::<4>(left), _mm256_srli_epi16::<4>(right));
    }
    let v = |i: usize| 3 * u16::from(near[i]) + u16::from(far[i]);
    out[0] = ((4 * v(0) + 8) >> 4) as u8;
    out[1] = ((3 * v(0) + v(1) + 7) >> 4) as u8;
    out[2 * n - 2] = ((3 * v(n - 1) + v(n - 2) + 8) >> 4) as u8;
    out[2 * n - 1] = ((4 * v(n - 1) + 7) >> 4) as u8;
}

#[target_feature(enable = "avx2")]
fn convert(color: Color, rows: [&[u8]; 3], out: &mut [u8]) {
    let n = out.len() / 3;
    let mut x = 0;
    while x < n {
        let load = |c: usize| {
            let bytes = &rows[c][x..x + 32];
            // SAFETY: `bytes` has 32 bytes.
            unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
        };
        let pixels = match color {
            Color::Grey => [load(0); 3],
            Color::Rgb => [load(0), load(1), load(2)],
            Color::YCbCr => ycbcr(load(0), load(1), load(2)),
        };
        let here = &mut out[3 * x..];
        match here.first_chunk_mut() {
            Some(here) => store(pixels, here),
            None => {
                let mut whole = [0; 96];
                store(pixels, &mut whole);
                let n = here.len();
                here.copy_from_slice(&whole[..n]);
            }
        }
        x += 32;
    }
}

/// Each factor is split so that products of 16 bits suffice: 1.402 = 1 + 0.402, 1.772 = 2 − 0.228, −0.714 = 0.286 − 1. The
/// parts are exact, because they come from the constants with 16 fraction bits, so the rounding is that of `color`.
#[inline]
#[target_feature(enable = "avx2")]
fn ycbcr(y: __m256i, cb: __m256i, cr: __m256i) -> [__m256i; 3] {
    let zero = _mm256_setzero_si256();
    let half = |high: bool| {
        let part = |v| if high { _mm256_unpackhi_epi8(v, zero) } else { _mm256_unpacklo_epi8(v, zero) };
        let middle = _mm256_set1_epi16(128);
        let (y, cb, cr) = (part(y), _mm256_sub_epi16(part(cb), middle), _mm256_sub_epi16(part(cr), middle));
        // ((2 x c >> 16) + 1) >> 1 is x c / 2¹⁶, rounded to the nearest.
        let round = |v: __m256i, c: i32| {
            let twice = _mm256_mulhi_epi16(_mm256_add_epi16(v, v), _mm256_set1_epi16(c as i16));
            _mm256_srai_epi16::<1>(_mm256_add_epi16(twice, _mm256_set1_epi16(1)))
        };
        let r = _mm256_add_epi16(cr, round(cr, RED_CR - 65536));
        let b = _mm256_add_epi16(_mm256_add_epi16(cb, cb), round(cb, BLUE_CB - 131_072));
        let factors = _mm256_set1_epi32((GREEN_CR + 65536) << 16 | (GREEN_CB & 0xffff));
        let green = |pairs| {
            let sum = _mm256_add_epi32(_mm256_madd_epi16(pairs, factors), _mm256_set1_epi32(1 << 15));
            _mm256_srai_epi32::<16>(sum)
        };
        let g = _mm256_packs_epi32(green(_mm256_unpacklo_epi16(cb, cr)), green(_mm256_unpackhi_epi16(cb, cr)));
        [_mm256_add_epi16(y, r), _mm256_add_epi16(y, _mm256_sub_epi16(g, cr)), _mm256_add_epi16(y, b)]
    };
    let (low, high) = (half(false), half(true));
    [0, 1, 2].map(|c| _mm256_packus_epi16(low[c], high[c]))
}

/// For each third of 16 pixels and each colour, the shuffle from samples to their places.
static MASKS: [[[u8; 16]; 3]; 3] = {
    let mut masks = [[[0x80; 16]; 3]; 3];
    let mut i = 0;
    while i < 48 {
        masks[i / 16][i % 3][i % 16] = (i / 3) as u8;
        i += 1;
    }
    masks
};

/// Stores 32 samples of each colour as pixels.
#[inline]
#[target_feature(enable = "avx2")]
fn store(pixels: [__m256i; 3], out: &mut [u8; 96]) {
    let third = |t: usize| {
        let [r, g, b] = [0, 1, 2].map(|c| {
            // SAFETY: a mask is 16 bytes.
            let mask = unsafe { _mm_loadu_si128(MASKS[t][c].as_ptr().cast()) };
            _mm256_shuffle_epi8(pixels[c], _mm256_broadcastsi128_si256(mask))
        });
        _mm256_or_si256(_mm256_or_si256(r, g), b)
    };
    let [a, b, c] = [third(0), third(1), third(2)];
    let parts = [
        _mm256_permute2x128_si256::<0x20>(a, b),
        _mm256_permute2x128_si256::<0x30>(c, a),
        _mm256_permute2x128_si256::<0x31>(b, c),
    ];
    for (part, out) in parts.into_iter().zip(out.as_chunks_mut::<32>().0) {
        // SAFETY: `out` is a chunk of 32 bytes.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), part) }
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::CpuFeatures;
    use crate::markers::header::Color;

    /// Rows without the bytes after them that vector code reads are an error of the caller, not zeros.
    #[test]
    fn short_rows_panic() {
        let Some(avx2) = CpuFeatures::detect().avx2() else { return };
        let panics = |f: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
        let (row, long) = ([7u8; 20], [7u8; 20 + 64]);
        assert!(panics(&|| avx2.upsample_across(&row, 20, &mut [0; 128])));
        assert!(panics(&|| avx2.upsample_both(&long, &row, 20, &mut [0; 128])));
        assert!(panics(&|| avx2.upsample_across(&long, 20, &mut [0; 40])));
        assert!(panics(&|| avx2.convert_to_rgb(Color::YCbCr, [&long, &long, &row], &mut [0; 60])));
        avx2.upsample_across(&long, 20, &mut [0; 128]);
        avx2.convert_to_rgb(Color::YCbCr, [&long; 3], &mut [0; 60]);
    }
}
