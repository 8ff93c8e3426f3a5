//! Conditions on columns of the indexes, such as `image/width>=500`, as the URL states them.

use crate::columns::{Cell, Column, Values};
use shardtool_format::Chain;
use shardtool_read::{Operator, Shard, Value};
use std::sync::Arc;

/// A condition on one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub(crate) column: Column,
    condition: shardtool_read::Condition,
}

impl Condition {
    /// Parses a condition on one of the columns.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn parse(text: &str, columns: &[Column]) -> Result<Self, String> {
        let named = |name: &str| columns.iter().find(|column| column.name == name);
        let condition = shardtool_read::Condition::parse(text, |name| Some(named(name)?.dtype));
        let condition = condition.map_err(|error| format!("filter `{text}`: {error}"))?;
        match named(condition.name()) {
            Some(column) if column.indexed => Ok(Condition { column: column.clone(), condition }),
            _ => Err(format!(
                "filter `{text}`: the indexes do not hold `{}`, whose values are several or long",
                condition.name()
            )),
        }
    }

    /// Returns whether a value meets the condition.
    #[inline]
    pub(crate) fn holds(&self, value: Option<Cell<'_>>) -> bool {
        self.condition.holds(value.map(Value::from).as_ref())
    }

    /// Keeps those rows whose value in the record meets the condition, where the index has no column of them.
    ///
    /// # Errors
    /// A message for the user: a record has several values.
    pub(crate) fn retain_by_records(&self, shard: &Arc<Shard>, rows: &mut Vec<u32>) -> Result<(), String> {
        let mut problem = None;
        rows.retain(|row| {
            problem.is_none()
                && self.condition.holds_in(shard, (*row).into()).unwrap_or_else(|error| {
                    problem = Some(Chain(&error).to_string());
                    false
                })
        });
        problem.map_or(Ok(()), Err)
    }

    /// Keeps those rows whose value meets the condition.
    pub(crate) fn retain(&self, values: &Values<'_>, rows: &mut Vec<u32>) {
        match (values, self.condition.operand(), self.condition.operator()) {
            // The loops of the most frequent filters, without a branch on the type in each row.
            (Values::I64(column), Some(Value::Int64(operand)), Operator::Equal) => {
                rows.retain(|row| column.get((*row).into()) == Some(*operand));
            }
            (Values::I64(column), Some(Value::Int64(operand)), Operator::GreaterOrEqual) => {
                rows.retain(|row| column.get((*row).into()).is_some_and(|value| value >= *operand));
            }
            _ => rows.retain(|row| self.holds(values.get((*row).into()))),
        }
    }
}
