//! Numbers that JSON lacks: `"nan"`, `"inf"` and `"-inf"` as text.

use serde::de::{Deserialize, Deserializer, Error};
use std::collections::BTreeMap;

/// A number, or the text of one.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Number<'t> {
    Number(f64),
    Text(&'t str),
}

fn number<E: Error>(read: &Number<'_>) -> Result<f64, E> {
    match read {
        Number::Number(number) => Ok(*number),
        Number::Text(text) => text.parse().map_err(|_| E::custom(format!("`{text}` is not a number"))),
    }
}

/// Reads a number.
pub(super) fn one<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    number(&Number::deserialize(from)?)
}

/// Reads a number, or nothing.
pub(super) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Option::<Number<'de>>::deserialize(from)?.as_ref().map(number).transpose()
}

/// Reads a list of numbers, or nothing.
pub(super) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<f64>>, D::Error> {
    let read = Option::<Vec<Number<'de>>>::deserialize(from)?;
    read.map(|read| read.iter().map(number).collect()).transpose()
}

/// Reads numbers by name.
pub(super) fn map<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let read = BTreeMap::<String, Number<'de>>::deserialize(from)?;
    read.into_iter().map(|(name, read)| Ok((name, number(&read)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_their_texts() {
        let json = |text: &str| map(&mut serde_json::Deserializer::from_str(text));
        let read = json(r#"{"a": 1, "b": -0.5, "c": "nan", "d": "-inf"}"#).unwrap();
        assert_eq!((read["a"], read["b"], read["d"]), (1.0, -0.5, f64::NEG_INFINITY));
        assert!(read["c"].is_nan());
        assert!(json(r#"{"a": "one"}"#).is_err());
        assert_eq!(list(&mut serde_json::Deserializer::from_str("null")).unwrap(), None);
    }
}
