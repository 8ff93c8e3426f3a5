//! Infers the types of a list's columns from their values.

use super::objects;
use crate::sample::{Conflict, Number, Numbers, Values};
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
    numbers: Numbers<u64>,
    /// Whether each text so far is one that tools write in a column of numbers where a number is missing ([`is_no_number`]).
    no_numbers: bool,
}

/// Why a value does not fit its column.
pub(super) enum Misfit {
    /// It has this type; `None` if no feature can hold it, or the column's type is declared.
    Type(Option<DType>),
    /// No type holds two numbers of the column.
    Numbers(Conflict<u64>),
}

impl Inferred {
    pub(super) fn new(declared: Option<DType>) -> Self {
        Inferred {
            dtype: declared,
            declared: declared.is_some(),
            line: 0,
            numbers: Numbers::default(),
            no_numbers: true,
        }
    }

    /// Returns the type of the column of this name: the declared one, or the inferred one.
    pub(super) fn column_type(&self, name: &str) -> Option<DType> {
        self.dtype.map(|dtype| if self.declared { dtype } else { objects::dtype(name, dtype) })
    }

    /// Updates the type with the value of a line: the type of numbers holds all of them ([`Numbers::dtype`]). In a column of
    /// text, CSV numbers are text, and a column with digits that a number would not keep, as in 007, is text. Other text in a
    /// column of numbers is an error, because one wrong cell would change the type of the whole column.
    ///
    /// # Errors
    /// Why the value does not fit.
    pub(super) fn observe(&mut self, cell: &Cell<'_>, line: u64) -> Result<(), Misfit> {
        if let Some(dtype) = self.dtype.filter(|_| self.declared) {
            return cell.values(dtype).map(drop).ok_or(Misfit::Type(None));
        }
        for kind in cell.kinds() {
            if let (Kind::Number(_), Some(DType::Bytes), Cell::Text(_), true) =
                (&kind, self.dtype, cell, self.no_numbers)
            {
                // The order of the rows decides nothing: a number first, and then such a text, is an error, too.
                return Err(Misfit::Type(Some(DType::Float)));
            }
            self.no_numbers &= matches!(cell, Cell::Text(text) if is_no_number(text));
            let dtype = match (kind, self.dtype, cell) {
                (Kind::Other, ..) => return Err(Misfit::Type(None)),
                (Kind::Text | Kind::Digits, None, _) | (Kind::Digits, Some(DType::Int64), _) => DType::Bytes,
                (_, Some(DType::Bytes), Cell::Text(_)) | (Kind::Text, Some(DType::Bytes), _) => DType::Bytes,
                (Kind::Text | Kind::Digits, ..) => return Err(Misfit::Type(Some(DType::Bytes))),
                (Kind::Number(number), Some(DType::Bytes), _) => {
                    let dtype = if number.int().is_some() { DType::Int64 } else { DType::Float };
                    return Err(Misfit::Type(Some(dtype)));
                }
                (Kind::Number(number), ..) => {
                    self.numbers.add(number, &line);
                    self.numbers.dtype().map_err(Misfit::Numbers)?.expect("a number has a type")
                }
            };
            if self.dtype != Some(dtype) {
                (self.dtype, self.line) = (Some(dtype), line);
            }
        }
        Ok(())
    }
}

/// What a value is.
enum Kind {
    Number(Number),
    Text,
    /// Text of digits that is not what the number is written as.
    Digits,
    /// No feature holds it.
    Other,
}

impl Cell<'_> {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Cell::Text("") | Cell::Json(Value::Null))
    }

    fn kinds(&self) -> Vec<Kind> {
        match self {
            Cell::Text("") | Cell::Json(Value::Null) => vec![],
            Cell::Text(text) => vec![text_kind(text)],
            Cell::Json(Value::Array(list)) => list.iter().map(json_kind).collect(),
            Cell::Json(value) => vec![json_kind(value)],
        }
    }

    /// Converts the values to a column's type; `None` if they do not fit.
    pub(super) fn values(&self, dtype: DType) -> Option<Values> {
        match (self, dtype) {
            _ if self.is_missing() => Some(Values::Missing),
            (Cell::Text(text), _) => Values::text(text).fit(dtype),
            (Cell::Json(Value::Array(list)), DType::Bytes) => {
                Some(Values::BytesList(list.iter().map(json_bytes).collect::<Option<_>>()?))
            }
            (Cell::Json(value), DType::Bytes) => Some(Values::Bytes(json_bytes(value)?)),
            (Cell::Json(Value::Array(list)), _) => {
                let values = list.iter().map(json_number).collect::<Option<Box<[_]>>>()?;
                Values::Numbers(values).fit(dtype)
            }
            (Cell::Json(value), _) => match (Values::Numbers([json_number(value)?].into()).fit(dtype)?, dtype) {
                (Values::Int64s(one), DType::Int64) => Some(Values::Int64(one[0])),
                (Values::Floats(one), DType::Float) => Some(Values::Float(one[0])),
                (values, _) => Some(values),
            },
        }
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

/// Returns whether a text is what tools write into a column of numbers where a number is missing, or a number that float64 does not hold.
fn is_no_number(text: &str) -> bool {
    const WORDS: [&str; 10] = ["na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "?", "."];
    let word = text.trim().to_lowercase();
    WORDS.contains(&&*word) || word.parse::<f64>().is_ok_and(|number| !number.is_finite())
}

/// Infers what a CSV value is. `nan` and `inf` are text unless the column is declared as float.
fn text_kind(text: &str) -> Kind {
    let digits = text.trim_start_matches('-');
    let leading = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    let long = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match Number::parse(text) {
        Some(number) if !leading => Kind::Number(number),
        None if long => Kind::Digits,
        Some(_) => Kind::Digits,
        None => Kind::Text,
    }
}

fn json_kind(value: &Value) -> Kind {
    match value {
        Value::String(_) => Kind::Text,
        value => json_number(value).map_or(Kind::Other, Kind::Number),
    }
}

fn json_number(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(value) => Some(Number::Int64((*value).into())),
        Value::Number(number) => Some(Number::of_json(number)),
        _ => None,
    }
}

fn json_bytes(value: &Value) -> Option<Box<[u8]>> {
    match value {
        Value::String(text) => Some(text.as_bytes().into()),
        Value::Number(number) => Some(number.to_string().into_bytes().into()),
        _ => None,
    }
}
