//! Conditions on columns, such as `image/width>=500`, as the URL states them.

use crate::columns::{Cell, Column, Values};
use shardtool_format::manifest::DType;
use std::cmp::Ordering;

/// A condition on one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub(crate) column: Column,
    pub(crate) operator: Operator,
    pub(crate) operand: Operand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
}

/// What a value is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Int(i64),
    Float(f32),
    Float64(f64),
    Uint64(u64),
    Bytes(Vec<u8>),
    /// No value: `COLUMN=` of a number, which finds records without it.
    Null,
}

/// Signs of operators; those of two characters first, so that `<=` is not read as `<`.
pub(crate) const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Contains),
];

impl Condition {
    /// Parses `COLUMN`, the first operator that occurs, and a value. The column's type decides what the value is.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn parse(text: &str, columns: &[Column]) -> Result<Self, String> {
        let first = text.char_indices().find_map(|(at, _)| {
            let operator = OPERATORS.iter().find(|(sign, _)| text[at..].starts_with(sign));
            operator.map(|(sign, operator)| (&text[..at], *operator, &text[at + sign.len()..]))
        });
        let Some((name, operator, value)) = first else {
            return Err(format!("filter `{text}`: expected a column, one of = != < <= > >= ~, and a value"));
        };
        let Some(column) = columns.iter().find(|column| column.name == name) else {
            return Err(format!("filter `{text}`: this split has no column `{name}`"));
        };
        if !column.indexed {
            return Err(format!("filter `{text}`: the indexes do not hold `{name}`, whose values are several or long"));
        }
        let wrong = || format!("filter `{text}`: `{name}` is {}, found `{value}`", column.dtype.name());
        let operand = match column.dtype {
            dtype if dtype != DType::Bytes && value.is_empty() => Operand::Null,
            DType::Int64 => Operand::Int(value.parse().map_err(|_| wrong())?),
            DType::Float => Operand::Float(value.parse().map_err(|_| wrong())?),
            DType::Float64 => Operand::Float64(value.parse().map_err(|_| wrong())?),
            DType::Uint64 => Operand::Uint64(value.parse().map_err(|_| wrong())?),
            DType::Bytes => Operand::Bytes(value.as_bytes().to_vec()),
        };
        let numeric = column.dtype != DType::Bytes;
        if numeric && operator == Operator::Contains {
            return Err(format!("filter `{text}`: ~ is for text, and `{name}` is {}", column.dtype.name()));
        }
        Ok(Condition { column: column.clone(), operator, operand })
    }

    /// Returns whether a value meets the condition. A record without the value meets only `!=`, and `=` without a value.
    #[inline]
    pub(crate) fn holds(&self, value: Option<Cell<'_>>) -> bool {
        let order = match (value, &self.operand) {
            (Some(Cell::Int(value)), Operand::Int(operand)) => value.partial_cmp(operand),
            (Some(Cell::Float(value)), Operand::Float(operand)) => value.partial_cmp(operand),
            (Some(Cell::Float64(value)), Operand::Float64(operand)) => value.partial_cmp(operand),
            (Some(Cell::Uint64(value)), Operand::Uint64(operand)) => value.partial_cmp(operand),
            (Some(Cell::Bytes(value)), Operand::Bytes(operand)) => {
                if self.operator == Operator::Contains {
                    return memchr::memmem::find(value, operand).is_some();
                }
                value.partial_cmp(operand.as_slice())
            }
            (None, Operand::Null) => Some(Ordering::Equal),
            _ => None,
        };
        match self.operator {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::NotEqual => order != Some(Ordering::Equal),
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
            Operator::Greater => order == Some(Ordering::Greater),
            Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
            Operator::Contains => false,
        }
    }

    /// Keeps those rows whose value meets the condition.
    pub(crate) fn retain(&self, values: &Values<'_>, rows: &mut Vec<u32>) {
        match (values, &self.operand, self.operator) {
            // The loops of the most frequent filters, without a branch on the type in each row.
            (Values::I64(column), Operand::Int(operand), Operator::Equal) => {
                rows.retain(|row| column.get((*row).into()) == Some(*operand));
            }
            (Values::I64(column), Operand::Int(operand), Operator::GreaterOrEqual) => {
                rows.retain(|row| column.get((*row).into()).is_some_and(|value| value >= *operand));
            }
            _ => rows.retain(|row| self.holds(values.get((*row).into()))),
        }
    }
}
