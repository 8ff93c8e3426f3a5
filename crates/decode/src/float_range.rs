//! The range of floating-point samples that is scaled to 8 or 16 bits.

use serde::{Deserialize, Serialize};

/// The values of floating-point samples that become 0 and 255. Values between are scaled linearly and rounded to nearest;
/// values outside the range, including infinities, are clamped; NaN becomes 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "(f64, f64)", into = "(f64, f64)")]
pub struct FloatRange {
    low: f64,
    high: f64,
}

impl TryFrom<(f64, f64)> for FloatRange {
    type Error = String;

    fn try_from((low, high): (f64, f64)) -> Result<Self, String> {
        let expected = || format!("({low}, {high}): expected two finite numbers, the smaller one first");
        FloatRange::new(low, high).ok_or_else(expected)
    }
}

impl From<FloatRange> for (f64, f64) {
    fn from(FloatRange { low, high }: FloatRange) -> Self {
        (low, high)
    }
}

impl FloatRange {
    /// Makes a range from the value that becomes 0 and the value that becomes 255. Returns `None` unless both are finite
    /// and `low` is less than `high`.
    pub fn new(low: f64, high: f64) -> Option<Self> {
        (low < high && (high - low).is_finite()).then_some(FloatRange { low, high })
    }

    /// Returns the value that becomes 0.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Returns the value that becomes 255.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Scales a sample to 8 bits.
    pub(crate) fn scale(self, value: f64) -> u8 {
        // A conversion from float to integer saturates, and turns NaN into 0.
        (((value - self.low) / (self.high - self.low)) * 255.0).round_ties_even() as u8
    }

    /// Scales a sample to 16 bits.
    pub(crate) fn scale_16(self, value: f64) -> u16 {
        (((value - self.low) / (self.high - self.low)) * 65_535.0).round_ties_even() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_linearly_and_clamps() {
        let range = FloatRange::new(-1.0, 1.0).unwrap();
        for (value, expected) in [
            (-1.0, 0),
            (1.0, 255),
            (0.0, 128),
            (0.5, 191),
            (-7.0, 0),
            (1e300, 255),
            (f64::NEG_INFINITY, 0),
            (f64::INFINITY, 255),
            (f64::NAN, 0),
        ] {
            assert_eq!(range.scale(value), expected, "{value}");
        }
    }

    #[test]
    fn rejects_empty_and_infinite_ranges() {
        for (low, high) in [(0.0, 0.0), (1.0, 0.0), (0.0, f64::INFINITY), (f64::NAN, 1.0), (f64::MIN, f64::MAX)] {
            assert_eq!(FloatRange::new(low, high), None, "{low} {high}");
        }
    }
}
