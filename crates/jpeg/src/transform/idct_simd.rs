//! The full-size inverse transform for vectors that hold one block in each 128-bit lane: one block with SSE4.1, two with
//! AVX2, four with AVX-512. All compute the same operations, so they are expanded from one macro.

/// Defines the transform of the blocks in a vector. The caller has the intrinsics in scope without their prefixes.
///
/// - `$features`: the `target_feature` string.
/// - `$vector`: the vector type.
/// - `$shift`: the type of the constant of `srai_epi32`.
/// - `$order_rows`: a function that reorders the 64-bit parts of a vector with two rows of each block (`a0 a1 b0 b1 …`) to
///   the first row of all blocks and then the second (`a0 b0 … a1 b1 …`).
macro_rules! define_idct {
    ($features:tt, $vector:ty, $shift:ty, $order_rows:ident) => {
        /// 32-bit sums for the lower and the upper four of eight columns.
        pub(super) type Wide = [$vector; 2];

        /// Two 16-bit factors, repeated.
        #[inline]
        #[target_feature(enable = $features)]
        fn factors(a: i32, b: i32) -> $vector {
            set1_epi32(b << 16 | (a & 0xffff))
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn zip(a: $vector, b: $vector) -> Wide {
            [unpacklo_epi16(a, b), unpackhi_epi16(a, b)]
        }

        /// For each pair of 16-bit numbers, `a` times the first plus `b` times the second.
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn dot(pairs: Wide, a: i32, b: i32) -> Wide {
            pairs.map(|p| madd_epi16(p, factors(a, b)))
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn add(a: Wide, b: Wide) -> Wide {
            [add_epi32(a[0], b[0]), add_epi32(a[1], b[1])]
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn sub(a: Wide, b: Wide) -> Wide {
            [sub_epi32(a[0], b[0]), sub_epi32(a[1], b[1])]
        }

        /// Both passes: from the dequantised rows of all blocks to samples, two rows of every block in each vector. If
        /// `SPARSE`, the last four rows and columns of coefficients are 0.
        #[inline]
        #[target_feature(enable = $features)]
        fn transform<const SPARSE: bool>(rows: &[$vector; 8]) -> [$vector; 4] {
            let columns = transpose(pass::<SPARSE, { (CONST_BITS - PASS1_BITS) as $shift }>(rows));
            samples(pass::<SPARSE, { (CONST_BITS + PASS1_BITS + 3) as $shift }>(&columns))
        }

        /// The eight-point transform of eight columns of every block. If `SPARSE`, the last four inputs are 0.
        #[inline]
        #[target_feature(enable = $features)]
        fn pass<const SPARSE: bool, const BITS: $shift>(x: &[$vector; 8]) -> [$vector; 8] {
            const LIFT: $shift = 16 - CONST_BITS as $shift;
            let zero = setzero();
            let round = set1_epi32(1 << (BITS - 1));
            let lift = |v: $vector| zip(zero, v).map(|w| add_epi32(srai_epi32::<LIFT>(w), round));
            let (tmp2, tmp3, tmp0, tmp1, odd);
            if SPARSE {
                let z = zip(x[2], zero);
                (tmp2, tmp3) = (dot(z, F_0_541, 0), dot(z, F_0_541 + F_0_765, 0));
                tmp0 = lift(x[0]);
                tmp1 = tmp0;
                // The general sums below without inputs 5 and 7, with their factors added up.
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
                (tmp0, tmp1) = (lift(add_epi16(x[0], x[4])), lift(sub_epi16(x[0], x[4])));
                let z = zip(add_epi16(x[7], x[3]), add_epi16(x[5], x[1]));
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
            let narrow = |w: Wide| packs_epi32(srai_epi32::<BITS>(w[0]), srai_epi32::<BITS>(w[1]));
            let mut out = [zero; 8];
            for k in 0..4 {
                out[k] = narrow(add(even[k], odd[k]));
                out[7 - k] = narrow(sub(even[k], odd[k]));
            }
            out
        }

        /// Transposes every block.
        #[inline]
        #[target_feature(enable = $features)]
        fn transpose(x: [$vector; 8]) -> [$vector; 8] {
            let [a, b, c, d] = [zip(x[0], x[1]), zip(x[2], x[3]), zip(x[4], x[5]), zip(x[6], x[7])];
            let zip32 = |a, b| [unpacklo_epi32(a, b), unpackhi_epi32(a, b)];
            let (e, f) = ([zip32(a[0], b[0]), zip32(a[1], b[1])], [zip32(c[0], d[0]), zip32(c[1], d[1])]);
            let zip64 = |a, b| [unpacklo_epi64(a, b), unpackhi_epi64(a, b)];
            let [r01, r23, r45, r67] =
                [zip64(e[0][0], f[0][0]), zip64(e[0][1], f[0][1]), zip64(e[1][0], f[1][0]), zip64(e[1][1], f[1][1])];
            [r01[0], r01[1], r23[0], r23[1], r45[0], r45[1], r67[0], r67[1]]
        }

        /// Converts columns of 16-bit numbers around 0 to rows of samples: two rows of all blocks in each vector.
        #[inline]
        #[target_feature(enable = $features)]
        fn samples(x: [$vector; 8]) -> [$vector; 4] {
            let pack = |i: usize| packs_epi16(x[i], x[i + 4]);
            let [a, b, c, d] = [pack(0), pack(1), pack(2), pack(3)];
            let zip8 = |a, b| [unpacklo_epi8(a, b), unpackhi_epi8(a, b)];
            let (ab, cd) = (zip8(a, b), zip8(c, d));
            let (left, right) = (zip(ab[0], cd[0]), zip(ab[1], cd[1]));
            let zip32 = |a, b| [unpacklo_epi32(a, b), unpackhi_epi32(a, b)];
            let ([r01, r23], [r45, r67]) = (zip32(left[0], right[0]), zip32(left[1], right[1]));
            [r01, r23, r45, r67].map(|r| $order_rows(xor(r, set1_epi8(-128))))
        }
    };
}

pub(super) use define_idct;
