//! The accurate transform with AVX-512: four blocks at a time, one in each quarter of the registers. The steps
//! are those of `idct_avx2`, the results those of `idct`.

use std::arch::x86_64::*;

use crate::plan::Plane;
use crate::transform::idct::{BlockRow, CONST_BITS, PASS1_BITS, QUARTER, fix::*, flat};

/// As [`crate::transform::idct::row`], for blocks of 8×8 samples.
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn row(plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    let columns = plane.block_columns();
    let (first, last) = (columns.start as usize, columns.end as usize - 1);
    // Every row of 32 samples is written through `rows`, so that its bounds are checked once.
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
        // SAFETY: the assertion above: `column - first` is less than `needed / 8`, and a multiple of 4.
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
            // SAFETY: rows 2y and 2y + 1 are at most row 7, and have 32 bytes from `out` on (the assertion above).
            unsafe {
                let out = out.add(2 * y * stride);
                _mm256_storeu_si256(out.cast(), _mm512_castsi512_si256(two));
                _mm256_storeu_si256(out.add(stride).cast(), _mm512_extracti64x4_epi64::<1>(two));
            }
        }
    }
}

/// Two rows of 32 samples in each register.
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
    let mut x = [_mm512_setzero_si512(); 8];
    for (r, x) in x.iter_mut().enumerate().take(rows) {
        // SAFETY: row `r` of a block is 16 bytes at 8 r.
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
    let columns = transpose(pass::<SPARSE, { (CONST_BITS - PASS1_BITS) as u32 }>(&x));
    bytes(pass::<SPARSE, { (CONST_BITS + PASS1_BITS + 3) as u32 }>(&columns))
}

/// Two factors, for pairs of 16-bit numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn factors(a: i32, b: i32) -> __m512i {
    _mm512_set1_epi32(b << 16 | (a & 0xffff))
}

/// 32-bit sums for the lower and the upper four of eight columns.
type Wide = [__m512i; 2];

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn zip(a: __m512i, b: __m512i) -> Wide {
    [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn dot(pairs: Wide, a: i32, b: i32) -> Wide {
    pairs.map(|p| _mm512_madd_epi16(p, factors(a, b)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add(a: Wide, b: Wide) -> Wide {
    [_mm512_add_epi32(a[0], b[0]), _mm512_add_epi32(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn sub(a: Wide, b: Wide) -> Wide {
    [_mm512_sub_epi32(a[0], b[0]), _mm512_sub_epi32(a[1], b[1])]
}

/// The eight-point transform of eight columns of four blocks. `SPARSE` says that the last four inputs are 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn pass<const SPARSE: bool, const BITS: u32>(x: &[__m512i; 8]) -> [__m512i; 8] {
    let zero = _mm512_setzero_si512();
    let round = _mm512_set1_epi32(1 << (BITS - 1));
    let lift =
        |v: __m512i| zip(zero, v).map(|w| _mm512_add_epi32(_mm512_srai_epi32::<{ 16 - CONST_BITS as u32 }>(w), round));
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
        (tmp0, tmp1) = (lift(_mm512_add_epi16(x[0], x[4])), lift(_mm512_sub_epi16(x[0], x[4])));
        let z = zip(_mm512_add_epi16(x[7], x[3]), _mm512_add_epi16(x[5], x[1]));
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
    let narrow = |w: Wide| _mm512_packs_epi32(_mm512_srai_epi32::<BITS>(w[0]), _mm512_srai_epi32::<BITS>(w[1]));
    let mut out = [zero; 8];
    for k in 0..4 {
        out[k] = narrow(add(even[k], odd[k]));
        out[7 - k] = narrow(sub(even[k], odd[k]));
    }
    out
}

/// Transposes all four blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn transpose(x: [__m512i; 8]) -> [__m512i; 8] {
    let [a, b, c, d] = [zip(x[0], x[1]), zip(x[2], x[3]), zip(x[4], x[5]), zip(x[6], x[7])];
    let zip32 = |a, b| [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)];
    let (e, f) = ([zip32(a[0], b[0]), zip32(a[1], b[1])], [zip32(c[0], d[0]), zip32(c[1], d[1])]);
    let zip64 = |a, b| [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)];
    let [r01, r23, r45, r67] =
        [zip64(e[0][0], f[0][0]), zip64(e[0][1], f[0][1]), zip64(e[1][0], f[1][0]), zip64(e[1][1], f[1][1])];
    [r01[0], r01[1], r23[0], r23[1], r45[0], r45[1], r67[0], r67[1]]
}

/// Columns of all blocks, as 16-bit numbers around 0, to rows of samples: two rows of 32 in each register.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn bytes(x: [__m512i; 8]) -> [__m512i; 4] {
    let pack = |i: usize| _mm512_packs_epi16(x[i], x[i + 4]);
    let [a, b, c, d] = [pack(0), pack(1), pack(2), pack(3)];
    let zip8 = |a, b| [_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)];
    let (ab, cd) = (zip8(a, b), zip8(c, d));
    let (left, right) = (zip(ab[0], cd[0]), zip(ab[1], cd[1]));
    let zip32 = |a, b| [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)];
    let ([r01, r23], [r45, r67]) = (zip32(left[0], right[0]), zip32(left[1], right[1]));
    [r01, r23, r45, r67].map(|r| {
        let r = _mm512_xor_si512(r, _mm512_set1_epi8(-128));
        _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), r)
    })
}
