//! The accurate transform with AVX2: two blocks at a time, one in each half of the registers. Same results as `idct`.

use std::arch::x86_64::*;

use crate::plan::Plane;
use crate::transform::idct::{BlockRow, CONST_BITS, PASS1_BITS, QUARTER, fix::*, flat};

/// As [`crate::transform::idct::row`], for blocks of 8×8 samples.
#[target_feature(enable = "avx2")]
pub(crate) fn row(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    let columns = plane.block_columns();
    let (first, last) = (columns.start as usize, columns.end as usize - 1);
    // Every row of 16 samples is written through `rows`, so that its bounds are checked once.
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
        // SAFETY: the assertion above: `column - first` is less than `needed / 8`, and even.
        let out = unsafe { out.as_mut_ptr().add((column - first) * 8) };
        let rows = match last_a.max(last_b) {
            0 => flat_pair(flat(a[0], plane.quant[0]), flat(b[0], plane.quant[0])),
            1..=QUARTER => pair::<true>(a, b, &quant),
            _ => pair::<false>(a, b, &quant),
        };
        for (y, two) in rows.into_iter().enumerate() {
            // SAFETY: rows 2y and 2y + 1 are at most row 7, and have 16 bytes from `out` on (the assertion above).
            unsafe {
                let out = out.add(2 * y * stride);
                _mm_storeu_si128(out.cast(), _mm256_castsi256_si128(two));
                _mm_storeu_si128(out.add(stride).cast(), _mm256_extracti128_si256::<1>(two));
            }
        }
    }
}

/// Two rows of 16 samples in each register.
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
    let mut x = [_mm256_setzero_si256(); 8];
    for (r, x) in x.iter_mut().enumerate().take(rows) {
        // SAFETY: row `r` of a block is 16 bytes at 8 r.
        let (low, high) =
            unsafe { (_mm_loadu_si128(a.as_ptr().add(8 * r).cast()), _mm_loadu_si128(b.as_ptr().add(8 * r).cast())) };
        *x = _mm256_mullo_epi16(_mm256_set_m128i(high, low), quant[r]);
    }
    let columns = transpose(pass::<SPARSE, { CONST_BITS - PASS1_BITS }>(&x));
    bytes(pass::<SPARSE, { CONST_BITS + PASS1_BITS + 3 }>(&columns))
}

/// Two factors, for pairs of 16-bit numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn factors(a: i32, b: i32) -> __m256i {
    _mm256_set1_epi32(b << 16 | (a & 0xffff))
}

/// 32-bit sums for the lower and the upper four of eight columns.
pub(crate) type Wide = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn zip(a: __m256i, b: __m256i) -> Wide {
    [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn dot(pairs: Wide, a: i32, b: i32) -> Wide {
    pairs.map(|p| _mm256_madd_epi16(p, factors(a, b)))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn add(a: Wide, b: Wide) -> Wide {
    [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn sub(a: Wide, b: Wide) -> Wide {
    [_mm256_sub_epi32(a[0], b[0]), _mm256_sub_epi32(a[1], b[1])]
}

/// The eight-point transform of eight columns of two blocks. `SPARSE` says that the last four inputs are 0.
#[inline]
#[target_feature(enable = "avx2")]
fn pass<const SPARSE: bool, const BITS: i32>(x: &[__m256i; 8]) -> [__m256i; 8] {
    let zero = _mm256_setzero_si256();
    let round = _mm256_set1_epi32(1 << (BITS - 1));
    let lift = |v: __m256i| zip(zero, v).map(|w| _mm256_add_epi32(_mm256_srai_epi32::<{ 16 - CONST_BITS }>(w), round));
    let (tmp2, tmp3, tmp0, tmp1, odd);
    if SPARSE {
        let z = zip(x[2], zero);
        (tmp2, tmp3) = (dot(z, F_0_541, 0), dot(z, F_0_541 + F_0_765, 0));
        tmp0 = lift(x[0]);
        tmp1 = tmp0;
        // The general sums below with inputs 5 and 7 left out, their factors added up.
        let z = zip(x[3], x[1]);
        odd = [
            dot(z, F_1_175, F_1_175 - F_0_390 + F_1_501 - F_0_899),
            dot(z, F_1_175 - F_1_961 + F_3_072 - F_2_562, F_1_175),
            dot(z, F_1_175 - F_2_562, F_1_175 - F_0_390),
            dot(z, F_1_175 - F_1_961, F_1_175 - F_0_899),
        ];
    } else {
        let z = zip(x[2], x[6]);
        (tmp2, tmp3) = (dot(z, F_0_541, F_0_541 - F_1_847), dot(z, F_0_541 + F_0_765, F_0_541));
        (tmp0, tmp1) = (lift(_mm256_add_epi16(x[0], x[4])), lift(_mm256_sub_epi16(x[0], x[4])));
        let z = zip(_mm256_add_epi16(x[7], x[3]), _mm256_add_epi16(x[5], x[1]));
        let (z3, z4) = (dot(z, F_1_175 - F_1_961, F_1_175), dot(z, F_1_175, F_1_175 - F_0_390));
        let (z71, z53) = (zip(x[7], x[1]), zip(x[5], x[3]));
        odd = [
            add(dot(z71, -F_0_899, F_1_501 - F_0_899), z4),
            add(dot(z53, -F_2_562, F_3_072 - F_2_562), z3),
            add(dot(z53, F_2_053 - F_2_562, -F_2_562), z4),
            add(dot(z71, F_0_298 - F_0_899, -F_0_899), z3),
        ];
    }
    let even = [add(tmp0, tmp3), add(tmp1, tmp2), sub(tmp1, tmp2), sub(tmp0, tmp3)];
    let narrow = |w: Wide| _mm256_packs_epi32(_mm256_srai_epi32::<BITS>(w[0]), _mm256_srai_epi32::<BITS>(w[1]));
    let mut out = [zero; 8];
    for k in 0..4 {
        out[k] = narrow(add(even[k], odd[k]));
        out[7 - k] = narrow(sub(even[k], odd[k]));
    }
    out
}

/// Transposes both blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(x: [__m256i; 8]) -> [__m256i; 8] {
    let [a, b, c, d] = [zip(x[0], x[1]), zip(x[2], x[3]), zip(x[4], x[5]), zip(x[6], x[7])];
    let zip32 = |a, b| [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)];
    let (e, f) = ([zip32(a[0], b[0]), zip32(a[1], b[1])], [zip32(c[0], d[0]), zip32(c[1], d[1])]);
    let zip64 = |a, b| [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)];
    let [r01, r23, r45, r67] =
        [zip64(e[0][0], f[0][0]), zip64(e[0][1], f[0][1]), zip64(e[1][0], f[1][0]), zip64(e[1][1], f[1][1])];
    [r01[0], r01[1], r23[0], r23[1], r45[0], r45[1], r67[0], r67[1]]
}

/// Columns of both blocks, as 16-bit numbers around 0, to rows of samples: two rows of 16 in each register.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes(x: [__m256i; 8]) -> [__m256i; 4] {
    let pack = |i: usize| _mm256_packs_epi16(x[i], x[i + 4]);
    let [a, b, c, d] = [pack(0), pack(1), pack(2), pack(3)];
    let zip8 = |a, b| [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)];
    let (ab, cd) = (zip8(a, b), zip8(c, d));
    let (left, right) = (zip(ab[0], cd[0]), zip(ab[1], cd[1]));
    let zip32 = |a, b| [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)];
    let ([r01, r23], [r45, r67]) = (zip32(left[0], right[0]), zip32(left[1], right[1]));
    [r01, r23, r45, r67].map(|r| {
        let r = _mm256_xor_si256(r, _mm256_set1_epi8(-128));
        _mm256_permute4x64_epi64::<0b11_01_10_00>(r)
    })
}
