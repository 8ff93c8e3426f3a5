//! Values of JSON objects as columns.

use crate::Reason;
use crate::sample::Values;
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
        Value::Bool(_) | Value::Number(_) => number(value),
        Value::String(text) => Values::text(text),
        Value::Array(list) => array(list).unwrap_or_else(|| Values::text(&value.to_string())),
        Value::Object(_) => Values::text(&value.to_string()),
    }
}

fn number(value: &Value) -> Values {
    match int(value) {
        Some(int) => Values::Int64(int),
        None => Values::Float(value.as_f64().unwrap_or(f64::NAN) as f32),
    }
}

fn int(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_bool().map(i64::from))
}

fn array(list: &[Value]) -> Option<Values> {
    let bytes = |value: &Value| value.as_str().map(|text| Box::from(text.as_bytes()));
    let float = |value: &Value| value.as_f64().map(|v| v as f32);
    let ints = list.iter().map(int).collect::<Option<_>>().map(Values::Int64s);
    let floats = || list.iter().map(float).collect::<Option<_>>().map(Values::Floats);
    let texts = || list.iter().map(bytes).collect::<Option<_>>().map(Values::BytesList);
    ints.or_else(floats).or_else(texts)
}
