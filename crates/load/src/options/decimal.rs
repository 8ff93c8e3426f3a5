//! Numbers as they are written: 0.1 is a tenth, not the nearest binary fraction.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A number of at least 0: `digits` ÷ 10^`places`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    pub(crate) digits: u64,
    pub(crate) places: u32,
}

/// Decimal places, at most: those of a double.
const MOST_PLACES: u32 = 350;

impl From<u32> for Decimal {
    fn from(whole: u32) -> Self {
        Decimal { digits: whole.into(), places: 0 }
    }
}

/// Parses decimal digits, perhaps with a point and an exponent.
impl FromStr for Decimal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("`{text}`: expected a number of at least 0, of at most 19 digits");
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(expected());
        }
        let significant = digits.trim_start_matches('0').trim_end_matches('0');
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        if significant.is_empty() {
            return Ok(Decimal { digits: 0, places: 0 });
        }
        let digits: u64 = significant.parse().map_err(|_| expected())?;
        let exponent: i64 = exponent.parse().map_err(|_| expected())?;
        let places = (fraction.len() as i64 - zeros as i64).checked_sub(exponent).ok_or_else(expected)?;
        match u32::try_from(places) {
            Ok(places) if places <= MOST_PLACES => Ok(Decimal { digits, places }),
            Ok(_) => Err(expected()),
            Err(_) => {
                let power = u32::try_from(places.unsigned_abs()).ok().and_then(|power| 10u64.checked_pow(power));
                let digits = power.and_then(|power| digits.checked_mul(power)).ok_or_else(expected)?;
                Ok(Decimal { digits, places: 0 })
            }
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, places) = (self.digits.to_string(), self.places as usize);
        match places {
            0 => f.write_str(&digits),
            1..=20 => {
                let digits = format!("{digits:0>width$}", width = places + 1);
                let (whole, fraction) = digits.split_at(digits.len() - places);
                write!(f, "{whole}.{fraction}")
            }
            _ => write!(f, "{digits}e-{places}"),
        }
    }
}

impl Serialize for Decimal {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_their_texts_say() {
        for (text, shown) in [
            ("0", "0"),
            ("0.0", "0"),
            ("0.1", "0.1"),
            ("12", "12"),
            ("1200", "1200"),
            ("2.50", "2.5"),
            ("1e-05", "0.00001"),
            ("2.5e3", "2500"),
            ("1E2", "100"),
            ("0.30000000000000004", "0.30000000000000004"),
            (".5", "0.5"),
            ("7.", "7"),
            ("1e-300", "1e-300"),
            ("0e99999999999", "0"),
        ] {
            let parsed: Decimal = text.parse().unwrap();
            assert_eq!(parsed.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(parsed), "{text}");
        }
        for text in [
            "",
            ".",
            "-1",
            "+1",
            "1,5",
            "nan",
            "inf",
            "1e",
            "1e20",
            "123456789012345678901",
            "1e-999",
            "10e9223372036854775807",
            "1e-9223372036854775808",
            "0x1",
            "1 2",
        ] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
    }
}
