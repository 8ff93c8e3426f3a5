//! Reads JSON without losing a value in silence: a member that occurs twice, an integer that no type holds, and constants that are
//! not JSON are errors by name.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Constants that Python writes and that are not JSON.
const CONSTANTS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
/// Digits from which an integer may not fit 64 bits.
const LONG: usize = 19;

/// Why a text cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    #[error("{name} at column {column} is not JSON: write null, or leave the member out")]
    Constant { name: &'static str, column: usize },
    #[error("{digits} is an integer of more than 64 bits: write it as text, in quotes")]
    Integer { digits: String },
}

/// Parses a text.
///
/// # Errors
/// [`JsonError`].
pub(crate) fn parse(text: &[u8]) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let large = Cell::new(false);
    let value = Unique { large: &large }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(value) => match Some(text).filter(|_| large.get()).and_then(long_integer) {
            Some(digits) => Err(JsonError::Integer { digits }),
            None => Ok(value),
        },
        Err(error) => {
            let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
            let constant = CONSTANTS.into_iter().find_map(|name| {
                // The parser stops at the first or second character of the constant.
                let near = error.column().saturating_sub(2)..=error.column();
                near.into_iter()
                    .find(|at| line.get(*at..).is_some_and(|rest| rest.starts_with(name.as_bytes())))
                    .map(|at| JsonError::Constant { name, column: at + 1 })
            });
            Err(constant.unwrap_or(JsonError::Syntax(error)))
        }
    }
}

/// Returns the digits of the first integer that neither int64 nor uint64 holds, which the parser has rounded.
fn long_integer(text: &[u8]) -> Option<String> {
    let (mut at, mut quoted) = (0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => quoted = !quoted,
            b'0'..=b'9' if !quoted => {
                let number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let end = at + text[at..].iter().take_while(|byte| number(byte)).count();
                let start = if at > 0 && text[at - 1] == b'-' { at - 1 } else { at };
                let digits = std::str::from_utf8(&text[start..end]).unwrap_or_default();
                let fits = || digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok();
                if end - at >= LONG && digits.bytes().all(|b| b.is_ascii_digit() || b == b'-') && !fits() {
                    return Some(digits.to_owned());
                }
                at = end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Floats from which one may have been written as an integer of more than 64 bits.
const LARGE: f64 = i64::MAX as f64;

/// Reads a value whose objects have each member once.
#[derive(Clone, Copy)]
struct Unique<'a> {
    /// Whether a float of at least [`LARGE`] was read.
    large: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        if value.abs() >= LARGE {
            self.large.set(true);
        }
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let mut list = vec![];
        while let Some(value) = values.next_element_seed(self)? {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
            match map.entry(name) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(there) => {
                    let twice = format!("the member `{}` occurs twice, and a sample has one value of it", there.key());
                    return Err(serde::de::Error::custom(twice));
                }
            }
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads() {
        for text in [
            r#"{"a": [1, -2, 3.5, 1e300, true, null, "x\"1234567890123456789012\\"], "b": {"a": 1}}"#,
            "18446744073709551615",
            "[-9223372036854775808, 1234567890123456789012.0, 12345678901234567890e10]",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn what_would_be_lost_is_named() {
        for (text, part) in [
            (r#"{"a": 1, "b": {"c": 1, "c": 2}}"#, "`c` occurs twice"),
            (r#"{"id": 18446744073709551616}"#, "18446744073709551616 is an integer"),
            (r#"{"id": [1, -9223372036854775809]}"#, "-9223372036854775809 is an integer"),
            (r#"{"a": NaN}"#, "NaN at column 7 is not JSON"),
            (r#"{"a": -Infinity}"#, "-Infinity at column 7 is not JSON"),
            ("{\"b\": 1,\n\"a\": [1, Infinity]}", "Infinity at column 10 is not JSON"),
            (r#"{"a": Nothing}"#, "expected"),
            (r#"{"a": 1} x"#, "trailing"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
