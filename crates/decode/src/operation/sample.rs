//! Conversions of floating-point values to samples.

/// 2²³: the fraction bits of an f32 between 2²³ and 2²⁴ are an integer.
const INTEGERS: f32 = 8_388_608.0;

/// Clamps to 0 to 255 and rounds down. NaN becomes 0.
#[inline(always)]
pub(super) fn truncated(value: f32) -> u8 {
    (clamped(value).floor() + INTEGERS).to_bits() as u8
}

/// Clamps to 0 to 255 and rounds to nearest even. NaN becomes 0.
#[inline(always)]
pub(super) fn rounded(value: f32) -> u8 {
    (clamped(value) + INTEGERS).to_bits() as u8
}

/// 1.5 · 2²³. Added to a number between −[`WHOLE_LIMIT`] and `WHOLE_LIMIT`, it rounds to nearest even and leaves the integer in
/// the fraction bits.
const WHOLE: f32 = 12_582_912.0;

/// 2²²: the numbers that [`whole`] rounds are smaller.
pub(super) const WHOLE_LIMIT: f32 = 4_194_304.0;

/// Rounds to nearest even. Vectorises, unlike a cast, which handles numbers out of range.
#[inline(always)]
pub(super) fn whole(value: f32) -> i32 {
    ((value + WHOLE).to_bits() as i32).wrapping_sub(WHOLE.to_bits() as i32)
}

/// Clamps with comparisons that compile to one instruction each, unlike `f32::clamp`, which keeps NaN.
#[inline(always)]
fn clamped(value: f32) -> f32 {
    let value = if value > 0.0 { value } else { 0.0 };
    if value < 255.0 { value } else { 255.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_rounded_to_even() {
        let limit = WHOLE_LIMIT - 1.0;
        for value in [-2.5, -1.5, -0.5, 0.0, 0.499, 0.5, 1.5, 7.2, limit, -limit] {
            assert_eq!(whole(value), value.round_ties_even() as i32);
        }
    }

    #[test]
    fn values_are_clamped_then_truncated_or_rounded_to_even() {
        let cases = [
            (f32::NAN, 0, 0),
            (f32::NEG_INFINITY, 0, 0),
            (-0.6, 0, 0),
            (0.5, 0, 0),
            (0.999_999_94, 0, 1),
            (1.5, 1, 2),
            (2.5, 2, 2),
            (254.5, 254, 254),
            (254.999_98, 254, 255),
            (255.0, 255, 255),
            (f32::INFINITY, 255, 255),
        ];
        for (value, down, nearest) in cases {
            assert_eq!((truncated(value), rounded(value)), (down, nearest), "{value}");
        }
    }
}
