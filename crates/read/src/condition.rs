//! Conditions on one feature, such as `source=flickr`: their text, and which values meet them. The home of what `--where` and the
//! filters of `shardtool view` mean.

use crate::Value;
use shardtool_format::manifest::DType;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A condition on the value of a feature: the text `FEATURE`, an operator, and what the value is compared with.
///
/// ```
/// # use shardtool_format::manifest::DType;
/// # use shardtool_read::{Condition, Value};
/// let condition = Condition::parse("width>=500", |name| (name == "width").then_some(DType::Int64))?;
/// assert!(condition.holds(Some(&Value::Int64(512))));
/// assert!(!condition.holds(None));
/// # Ok::<(), shardtool_read::ConditionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    name: String,
    dtype: DType,
    operator: Operator,
    /// What a value is compared with; `None` for no value: `FEATURE=` of a number, which finds records without it.
    operand: Option<Value<'static>>,
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`, of byte strings in the order of their bytes, as all comparisons.
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `~`: the byte string contains the bytes. Upper and lower case differ.
    Contains,
}

/// What is wrong with the text of a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// Text without an operator.
    #[error("expected FEATURE, one of = != < <= > >= ~, and a value")]
    NoOperator,
    /// The name of no feature.
    #[error("no feature `{name}`{}", the_dataset_has(.known))]
    Unknown {
        /// The name.
        name: String,
        /// The features of the dataset; none if the parser does not know them.
        known: Vec<String>,
    },
    /// A value of another type than the feature.
    #[error("`{name}` is {dtype}, found `{found}`")]
    Operand {
        /// The feature.
        name: String,
        /// Its type.
        dtype: &'static str,
        /// As given.
        found: String,
    },
    /// A record with several values of the feature, or one of another type.
    #[error(
        "record `{key}` has several values of `{name}`, or one of another type: a condition compares one; choose such records in a \
         program, and give their keys or ids"
    )]
    Several {
        /// The feature.
        name: String,
        /// The key of the record.
        key: String,
    },
    /// `~` with a number.
    #[error("~ is for text, and `{name}` is {dtype}")]
    NotText {
        /// The feature.
        name: String,
        /// Its type.
        dtype: &'static str,
    },
}

/// Signs of operators; those of two characters first, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Contains),
];

fn the_dataset_has(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; the dataset has {}", known.join(", ")) }
}

impl Condition {
    /// Parses a feature, the first operator that occurs, and a value. `dtype` returns the type of a feature, which decides what the
    /// value is; `None` if the feature does not exist.
    ///
    /// # Errors
    /// If the operator is missing, the feature does not exist, or the value does not have its type.
    pub fn parse(text: &str, dtype: impl FnOnce(&str) -> Option<DType>) -> Result<Self, ConditionError> {
        let first = text.char_indices().find_map(|(at, _)| {
            let operator = OPERATORS.iter().find(|(sign, _)| text[at..].starts_with(sign));
            operator.map(|(sign, operator)| (&text[..at], *operator, &text[at + sign.len()..]))
        });
        let (name, operator, value) = first.ok_or(ConditionError::NoOperator)?;
        let dtype = dtype(name).ok_or_else(|| ConditionError::Unknown { name: name.to_owned(), known: vec![] })?;
        if operator == Operator::Contains && dtype != DType::Bytes {
            return Err(ConditionError::NotText { name: name.to_owned(), dtype: dtype.name() });
        }
        let wrong = || {
            let (name, found) = (name.to_owned(), value.to_owned());
            ConditionError::Operand { name, dtype: dtype.name(), found }
        };
        let operand = match dtype {
            DType::Bytes => Some(Value::Bytes(Cow::Owned(value.as_bytes().to_vec()))),
            _ if value.is_empty() => None,
            DType::Int64 => Some(Value::Int64(value.parse().map_err(|_| wrong())?)),
            DType::Float => Some(Value::Float(value.parse().map_err(|_| wrong())?)),
            DType::Float64 => Some(Value::Float64(value.parse().map_err(|_| wrong())?)),
            DType::Uint64 => Some(Value::Uint64(value.parse().map_err(|_| wrong())?)),
        };
        Ok(Condition { text: text.to_owned(), name: name.to_owned(), dtype, operator, operand })
    }

    /// Returns the text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the feature.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the feature.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns how values are compared.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// Returns what values are compared with; `None` for no value.
    pub fn operand(&self) -> Option<&Value<'static>> {
        self.operand.as_ref()
    }

    /// Returns whether a value of the feature's type ([`Value::of_type`]) meets the condition. A record without the value meets only
    /// `!=`, and of a number `=` without a value.
    #[inline]
    pub fn holds(&self, value: Option<&Value<'_>>) -> bool {
        let order = match (value, &self.operand) {
            (Some(Value::Int64(value)), Some(Value::Int64(operand))) => value.partial_cmp(operand),
            (Some(Value::Float(value)), Some(Value::Float(operand))) => value.partial_cmp(operand),
            (Some(Value::Float64(value)), Some(Value::Float64(operand))) => value.partial_cmp(operand),
            (Some(Value::Uint64(value)), Some(Value::Uint64(operand))) => value.partial_cmp(operand),
            (Some(Value::Bytes(value)), Some(Value::Bytes(operand))) => {
                if self.operator == Operator::Contains {
                    return memchr::memmem::find(value, operand).is_some();
                }
                value.as_ref().partial_cmp(operand.as_ref())
            }
            (None, None) => Some(Ordering::Equal),
            _ => None,
        };
        match self.operator {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::NotEqual => order != Some(Ordering::Equal),
            // No value is less or greater than another.
            _ if self.operand.is_none() => false,
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
            Operator::Greater => order == Some(Ordering::Greater),
            Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
            Operator::Contains => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Condition, ConditionError> {
        Condition::parse(text, |name| match name {
            "n" => Some(DType::Int64),
            "x" => Some(DType::Float),
            "text" => Some(DType::Bytes),
            _ => None,
        })
    }

    fn meets(text: &str, value: Option<Value<'_>>) -> bool {
        parse(text).unwrap().holds(value.as_ref())
    }

    fn text(text: &str) -> Option<Value<'_>> {
        Some(Value::Bytes(Cow::Borrowed(text.as_bytes())))
    }

    #[test]
    fn compares_numbers_and_text() {
        for (condition, less, equal, greater) in [
            ("n=5", false, true, false),
            ("n!=5", true, false, true),
            ("n<5", true, false, false),
            ("n<=5", true, true, false),
            ("n>5", false, false, true),
            ("n>=5", false, true, true),
        ] {
            let found = [4, 5, 6].map(|n| meets(condition, Some(Value::Int64(n))));
            assert_eq!(found, [less, equal, greater], "{condition}");
            let found =
                ["d", "e", "f"].map(|value| meets(&condition.replace("n", "text").replace('5', "e"), text(value)));
            assert_eq!(found, [less, equal, greater], "{condition}");
        }
        assert!(!meets("x<1", Some(Value::Float(f32::NAN))) && meets("x!=1", Some(Value::Float(f32::NAN))));
    }

    #[test]
    fn finds_bytes_in_text() {
        for (condition, expected) in [("text~red", true), ("text~", true), ("text~Red", false), ("text~cars", false)] {
            assert_eq!(meets(condition, text("a red car")), expected, "{condition}");
        }
        assert!(meets("text~=", text("a=b")), "what follows the operator is the value");
        assert!(!meets("text~red", None));
    }

    #[test]
    fn an_empty_number_is_no_value() {
        let five = || Some(Value::Int64(5));
        assert!(meets("n=", None) && !meets("n=", five()) && meets("n!=", five()) && !meets("n!=", None));
        assert!(!meets("n<=", None) && !meets("n>=", None) && !meets("n>", five()));
        assert!(meets("text=", text("")) && !meets("text=", None) && meets("text!=a", None));
    }

    #[test]
    fn names_what_is_wrong() {
        let text = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(text("n"), "expected FEATURE, one of = != < <= > >= ~, and a value");
        assert_eq!(text("m=1"), "no feature `m`");
        assert_eq!(text("n=one"), "`n` is int64, found `one`");
        assert_eq!(text("n~1"), "~ is for text, and `n` is int64");
    }
}
