//! Values of JSON objects as columns.

use crate::Reason;
use crate::sample::{Number, Values};
use crate::source::nested::Nesting;
use crate::source::objects;
use serde_json::{Map, Value};

/// Converts the members of a JSON object to columns.
///
/// # Errors
/// [`Reason::Objects`].
pub(super) fn columns(members: Map<String, Value>, nesting: &Nesting) -> Result<Vec<(String, Values)>, Reason> {
    let in_pixels = members.get("objects").is_some();
    let column = |(name, value): (String, Value)| {
        let values = values(&value);
        let values = if in_pixels { objects::in_pixels(&name, values) } else { values };
        (name, values)
    };
    Ok(nesting.flat(members)?.into_iter().map(column).collect())
}

/// Converts a JSON value: numbers, texts and lists of one of them as they are, `null` and `[]` to no value, everything
/// else to JSON text.
pub(super) fn values(value: &Value) -> Values {
    match value {
        Value::Null => Values::Missing,
        Value::Array(list) if list.is_empty() => Values::Missing,
        Value::Bool(_) | Value::Number(_) => match number(value) {
            Some(Number::Int64(int)) => Values::Int64(int),
            other => Values::Numbers(other.into_iter().collect()),
        },
        Value::String(text) => Values::text(text),
        Value::Array(list) => array(list).unwrap_or_else(|| Values::text(&value.to_string())),
        Value::Object(_) => Values::text(&value.to_string()),
    }
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(value) => Some(Number::Int64((*value).into())),
        Value::Number(number) => Some(Number::of_json(number)),
        _ => None,
    }
}

fn array(list: &[Value]) -> Option<Values> {
    let bytes = |value: &Value| value.as_str().map(|text| Box::from(text.as_bytes()));
    let texts = || list.iter().map(bytes).collect::<Option<_>>().map(Values::BytesList);
    let numbers = list.iter().map(number).collect::<Option<Box<[_]>>>();
    let int = |number: &Number| match number {
        Number::Int64(int) => Some(*int),
        _ => None,
    };
    match numbers {
        Some(numbers) => {
            let ints = numbers.iter().map(int).collect::<Option<_>>().map(Values::Int64s);
            Some(ints.unwrap_or(Values::Numbers(numbers)))
        }
        None => texts(),
    }
}
