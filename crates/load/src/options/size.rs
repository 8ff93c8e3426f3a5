//! Sizes in bytes: numbers, or text such as `"4GiB"`.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use std::fmt;

/// Parses a size and returns bytes. Units are B, kB, MB, GB, TB and KiB, MiB, GiB, TiB, in any case.
///
/// # Errors
/// A message for the user, if the text is not a size.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1u64 << 40,
        other => return Err(format!("unknown unit `{other}`; use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB")),
    };
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => {
            let value: f64 = number.parse().map_err(|_| format!("invalid size `{text}`; for example 256MiB"))?;
            Some((value * factor as f64).round()).filter(|v| (0.0..u64::MAX as f64).contains(v)).map(|v| v as u64)
        }
    };
    bytes.ok_or_else(|| format!("size `{text}` is larger than 64 bits allow"))
}

/// Reads bytes, or text.
pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    from.deserialize_any(Bytes)
}

/// As [`bytes`], of an option without a default.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    from.deserialize_any(Optional)
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes, or text such as \"4GiB\"")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<u64, E> {
        Ok(bytes)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        parse_size(text).map_err(E::custom)
    }
}

struct Optional;

impl<'de> Visitor<'de> for Optional {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes.expecting(f)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Option<u64>, E> {
        Ok(Some(bytes))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<u64>, E> {
        Bytes.visit_str(text).map(Some)
    }
}

/// The schema of a size.
pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "string"], "minimum": 0})
}

/// The schema of a size that has no default.
pub(super) fn optional_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["integer", "string", "null"], "minimum": 0})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sizes_and_rejects_other_text() {
        for (text, bytes) in [("0", 0), ("4096", 4096), ("256MiB", 256 << 20), ("1.5 gb", 1_500_000_000), ("2k", 2000)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "MiB", "1.2.3", "5 parsecs", "-1", "99999999999999999999", "20000000TiB", "1e400"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reads_numbers_text_and_null() {
        let read = |json: &str| optional(&mut serde_json::Deserializer::from_str(json));
        assert_eq!(read("null").unwrap(), None);
        assert_eq!(read("7").unwrap(), Some(7));
        assert_eq!(read("\"2KiB\"").unwrap(), Some(2048));
        let refused = read("\"2 parsecs\"").unwrap_err().to_string();
        assert!(refused.contains("unknown unit `parsecs`"), "{refused}");
        assert!(read("1.5").is_err() && read("-1").is_err());
    }
}
