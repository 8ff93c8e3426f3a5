//! Upsampling and conversion of colours for vectors of any width. SSE4.1, AVX2 and AVX-512 compute the same operations, so they
//! are expanded from one macro.

/// Defines upsampling and the conversion of colours, as methods of a token. The caller has the intrinsics in scope without their
/// prefixes, of which those for half a vector are `loadu_half` and `cvtepu8_epi16`, and a function `convert` that stores pixels.
///
/// - `$token`: the token that proves that the processor has the features.
/// - `$features`: the `target_feature` string.
/// - `$vector`: the vector type.
/// - `$samples`: the number of 16-bit numbers in a vector.
/// - `$shift`: the type of the constants of shifts.
macro_rules! define_pixels {
    ($token:ty, $features:tt, $vector:ty, $samples:literal, $shift:ty) => {
        impl $token {
            /// As [`super::upsample::across`]. `row` must have at least half a vector and a byte more than `n`, and `out` a vector
            /// more than 2 n.
            pub(super) fn upsample_across(self, row: &[u8], n: usize, out: &mut [u8]) {
                // SAFETY: the token exists only if the processor has the features (`cpu.rs`).
                unsafe { across(row, n, out) }
            }

            /// As [`super::upsample::both`]. The rows must have at least half a vector and a byte more than `n`, and `out` a vector
            /// more than 2 n.
            pub(super) fn upsample_both(self, near: &[u8], far: &[u8], n: usize, out: &mut [u8]) {
                // SAFETY: as above.
                unsafe { both(near, far, n, out) }
            }

            /// As [`super::color::convert`]. The rows must have at least a vector more than the samples used.
            pub(super) fn convert_to_rgb(self, conversion: Conversion, rows: [&[u8]; 3], out: &mut [u8]) {
                // SAFETY: as above.
                unsafe { convert(conversion, rows, out) }
            }
        }

        /// Loads half a vector of samples as 16-bit numbers.
        #[inline]
        #[target_feature(enable = $features)]
        fn wide(row: &[u8], at: usize) -> $vector {
            let bytes = &row[at..at + $samples];
            // SAFETY: `bytes` is half a vector.
            cvtepu8_epi16(unsafe { loadu_half(bytes.as_ptr().cast()) })
        }

        /// Loads a vector of samples.
        #[inline]
        #[target_feature(enable = $features)]
        fn load(row: &[u8], at: usize) -> $vector {
            let bytes = &row[at..at + 2 * $samples];
            // SAFETY: `bytes` is a vector.
            unsafe { loadu(bytes.as_ptr().cast()) }
        }

        /// Stores pairs of samples, given as 16-bit numbers in two registers, one after the other.
        #[inline]
        #[target_feature(enable = $features)]
        fn store_pairs(out: &mut [u8], at: usize, left: $vector, right: $vector) {
            let pairs = or(left, slli_epi16::<8>(right));
            let out = &mut out[at..at + 2 * $samples];
            // SAFETY: `out` is a vector.
            unsafe { storeu(out.as_mut_ptr().cast(), pairs) }
        }

        #[target_feature(enable = $features)]
        fn across(row: &[u8], n: usize, out: &mut [u8]) {
            let (one, two, three) = (set1_epi16(1), set1_epi16(2), set1_epi16(3));
            for i in (1..n - 1).step_by($samples) {
                let here = mullo_epi16(wide(row, i), three);
                let left = add_epi16(add_epi16(here, wide(row, i - 1)), one);
                let right = add_epi16(add_epi16(here, wide(row, i + 1)), two);
                store_pairs(out, 2 * i, srli_epi16::<2>(left), srli_epi16::<2>(right));
            }
            let v = |i: usize| u16::from(row[i]);
            out[0] = row[0];
            out[1] = ((3 * v(0) + v(1) + 2) >> 2) as u8;
            out[2 * n - 2] = ((3 * v(n - 1) + v(n - 2) + 1) >> 2) as u8;
            out[2 * n - 1] = row[n - 1];
        }

        #[target_feature(enable = $features)]
        fn both(near: &[u8], far: &[u8], n: usize, out: &mut [u8]) {
            let (seven, eight, three) = (set1_epi16(7), set1_epi16(8), set1_epi16(3));
            let sum = |i: usize| add_epi16(mullo_epi16(wide(near, i), three), wide(far, i));
            for i in (1..n - 1).step_by($samples) {
                let here = mullo_epi16(sum(i), three);
                let left = add_epi16(add_epi16(here, sum(i - 1)), eight);
                let right = add_epi16(add_epi16(here, sum(i + 1)), seven);
                store_pairs(out, 2 * i, srli_epi16::<4>(left), srli_epi16::<4>(right));
            }
            let v = |i: usize| 3 * u16::from(near[i]) + u16::from(far[i]);
            out[0] = ((4 * v(0) + 8) >> 4) as u8;
            out[1] = ((3 * v(0) + v(1) + 7) >> 4) as u8;
            out[2 * n - 2] = ((3 * v(n - 1) + v(n - 2) + 8) >> 4) as u8;
            out[2 * n - 1] = ((4 * v(n - 1) + 7) >> 4) as u8;
        }

        /// Loads a vector of samples of each row, and converts them to red, green and blue.
        #[inline]
        #[target_feature(enable = $features)]
        fn colors(conversion: Conversion, rows: [&[u8]; 3], x: usize) -> [$vector; 3] {
            match conversion {
                Conversion::Grey => [load(rows[0], x); 3],
                Conversion::Rgb => [load(rows[0], x), load(rows[1], x), load(rows[2], x)],
                Conversion::YCbCr => ycbcr(load(rows[0], x), load(rows[1], x), load(rows[2], x)),
            }
        }

        /// Each factor is split so that products of 16 bits suffice: 1.402 = 1 + 0.402, 1.772 = 2 − 0.228,
        /// −0.714 = 0.286 − 1. The parts are exact, because they come from the constants with 16 fraction bits, so the rounding
        /// is that of `color`.
        #[inline]
        #[target_feature(enable = $features)]
        fn ycbcr(y: $vector, cb: $vector, cr: $vector) -> [$vector; 3] {
            let zero = setzero();
            let half = |high: bool| {
                let part = |v| if high { unpackhi_epi8(v, zero) } else { unpacklo_epi8(v, zero) };
                let middle = set1_epi16(128);
                let (y, cb, cr) = (part(y), sub_epi16(part(cb), middle), sub_epi16(part(cr), middle));
                // ((2 x c >> 16) + 1) >> 1 is x c / 2¹⁶, rounded to the nearest.
                let round = |v: $vector, c: i32| {
                    let twice = mulhi_epi16(add_epi16(v, v), set1_epi16(c as i16));
                    srai_epi16::<1>(add_epi16(twice, set1_epi16(1)))
                };
                let r = add_epi16(cr, round(cr, RED_CR - 65536));
                let b = add_epi16(add_epi16(cb, cb), round(cb, BLUE_CB - 131_072));
                let factors = set1_epi32((GREEN_CR + 65536) << 16 | (GREEN_CB & 0xffff));
                let green = |pairs| {
                    let sum = add_epi32(madd_epi16(pairs, factors), set1_epi32(1 << 15));
                    srai_epi32::<{ 16 as $shift }>(sum)
                };
                let g = packs_epi32(green(unpacklo_epi16(cb, cr)), green(unpackhi_epi16(cb, cr)));
                [add_epi16(y, r), add_epi16(y, sub_epi16(g, cr)), add_epi16(y, b)]
            };
            let (low, high) = (half(false), half(true));
            [0, 1, 2].map(|c| packus_epi16(low[c], high[c]))
        }

        /// Shuffles the samples of each 16 pixels to their places in each third of these pixels.
        #[inline]
        #[target_feature(enable = $features)]
        fn thirds(pixels: [$vector; 3]) -> [$vector; 3] {
            let third = |t: usize| {
                // SAFETY: a mask is 16 bytes.
                let mask = |c: usize| broadcast(unsafe { _mm_loadu_si128(MASKS[t][c].as_ptr().cast()) });
                let place = |c: usize| shuffle_epi8(pixels[c], mask(c));
                or(or(place(0), place(1)), place(2))
            };
            [third(0), third(1), third(2)]
        }
    };
}

pub(super) use define_pixels;

/// For each third of 16 pixels and each colour, the shuffle from samples to their places.
pub(super) static MASKS: [[[u8; 16]; 3]; 3] = {
    let mut masks = [[[0x80; 16]; 3]; 3];
    let mut i = 0;
    while i < 48 {
        masks[i / 16][i % 3][i % 16] = (i / 3) as u8;
        i += 1;
    }
    masks
};
