//! Infers the types of a list's columns from their values.

use crate::sample::Values;
use serde_json::Value;
use shardtool_format::manifest::DType;

/// One value of a list.
pub(super) enum Cell<'a> {
    /// Text of a CSV file, which is a number if it parses as one.
    Text(&'a str),
    /// A member of a JSON object, with its JSON type.
    Json(&'a Value),
}

/// The type of a column as far as it is known.
#[derive(Debug, Clone)]
pub(super) struct Inferred {
    pub(super) dtype: Option<DType>,
    /// Whether the user declared the type, which all values must then fit.
    pub(super) declared: bool,
    /// The line with the value that determined the type.
    pub(super) line: u64,
}

impl Inferred {
    pub(super) fn new(declared: Option<DType>) -> Self {
        Inferred { dtype: declared, declared: declared.is_some(), line: 0 }
    }

    /// Updates the type with the value of a line. Integers and floats together are floats. In a column of text, CSV
    /// numbers are text; but text in a column of numbers is an error, because one wrong cell would change the type of
    /// the whole column.
    ///
    /// # Errors
    /// The type of a value that does not fit; `None` if no feature can hold it, or the column's type is declared.
    pub(super) fn observe(&mut self, cell: &Cell<'_>, line: u64) -> Result<(), Option<DType>> {
        if let Some(dtype) = self.dtype.filter(|_| self.declared) {
            return cell.values(dtype).map(drop).ok_or(None);
        }
        for dtype in cell.kinds() {
            let dtype = dtype.ok_or(None)?;
            let joined = match (self.dtype, dtype, cell) {
                (None, _, _) => dtype,
                (Some(before), now, _) if before == now => now,
                (Some(DType::Int64), DType::Float, _) | (Some(DType::Float), DType::Int64, _) => DType::Float,
                (Some(DType::Bytes), _, Cell::Text(_)) => DType::Bytes,
                _ => return Err(Some(dtype)),
            };
            if self.dtype != Some(joined) {
                (self.dtype, self.line) = (Some(joined), line);
            }
        }
        Ok(())
    }
}

impl Cell<'_> {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Cell::Text("") | Cell::Json(Value::Null))
    }

    /// Returns the natural type of each value; `None` for values that no feature can hold.
    fn kinds(&self) -> Vec<Option<DType>> {
        match self {
            Cell::Text("") | Cell::Json(Value::Null) => vec![],
            Cell::Text(text) => vec![Some(text_kind(text))],
            Cell::Json(Value::Array(list)) => list.iter().map(json_kind).collect(),
            Cell::Json(value) => vec![json_kind(value)],
        }
    }

    /// Converts the values to a column's type; `None` if they do not fit.
    pub(super) fn values(&self, dtype: DType) -> Option<Values> {
        if self.is_missing() {
            return Some(Values::Missing);
        }
        Some(match (self, dtype) {
            (Cell::Text(text), DType::Int64) => Values::Int64(text.parse().ok()?),
            (Cell::Text(text), DType::Float) => Values::Float(text.parse().ok()?),
            (Cell::Text(text), DType::Bytes) => Values::Bytes(text.as_bytes().into()),
            (Cell::Json(Value::Array(list)), DType::Int64) => {
                Values::Int64s(list.iter().map(json_int).collect::<Option<_>>()?)
            }
            (Cell::Json(Value::Array(list)), DType::Float) => {
                Values::Floats(list.iter().map(json_float).collect::<Option<_>>()?)
            }
            (Cell::Json(Value::Array(list)), DType::Bytes) => {
                Values::BytesList(list.iter().map(json_bytes).collect::<Option<_>>()?)
            }
            (Cell::Json(value), DType::Int64) => Values::Int64(json_int(value)?),
            (Cell::Json(value), DType::Float) => Values::Float(json_float(value)?),
            (Cell::Json(value), DType::Bytes) => Values::Bytes(json_bytes(value)?),
        })
    }
}

impl std::fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(text),
            Cell::Json(value) => value.fmt(f),
        }
    }
}

/// Infers the type of a CSV value. `nan` and `inf` are text unless the column is declared as float.
fn text_kind(text: &str) -> DType {
    let number = text.parse::<f32>().is_ok() && !text.contains(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E'));
    match (text.parse::<i64>(), number) {
        (Ok(_), _) => DType::Int64,
        (Err(_), true) => DType::Float,
        (Err(_), false) => DType::Bytes,
    }
}

fn json_kind(value: &Value) -> Option<DType> {
    match value {
        Value::Bool(_) => Some(DType::Int64),
        Value::Number(number) if number.is_i64() => Some(DType::Int64),
        Value::Number(_) => Some(DType::Float),
        Value::String(_) => Some(DType::Bytes),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn json_int(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_bool().map(i64::from))
}

fn json_float(value: &Value) -> Option<f32> {
    value.as_f64().map(|v| v as f32)
}

fn json_bytes(value: &Value) -> Option<Box<[u8]>> {
    match value {
        Value::String(text) => Some(text.as_bytes().into()),
        Value::Number(number) => Some(number.to_string().into_bytes().into()),
        _ => None,
    }
}
