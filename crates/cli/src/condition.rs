//! Conditions on features, such as `source=flickr`: which records a command shows.

use shardtool_format::manifest::{DType, Manifest};
use shardtool_read::{Shard, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// A condition on one feature.
pub(crate) struct Condition {
    feature: String,
    dtype: DType,
    operator: Operator,
    operand: Operand,
}

#[derive(Clone, Copy)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

enum Operand {
    Int64(i64),
    Float(f32),
    Float64(f64),
    Uint64(u64),
    Bytes(Vec<u8>),
}

/// Signs of operators; those of two characters first, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Operator); 6] = [
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Condition {
    /// Parses `FEATURE=VALUE`, or another operator: the first that occurs. The feature's type is that of the manifest.
    pub(crate) fn parse(text: &str, manifest: &Manifest) -> anyhow::Result<Self> {
        let first = (0..text.len()).filter(|at| text.is_char_boundary(*at)).find_map(|at| {
            let operator = OPERATORS.iter().find(|(sign, _)| text[at..].starts_with(sign));
            operator.map(|(sign, operator)| (&text[..at], *operator, &text[at + sign.len()..]))
        });
        let Some((feature, operator, value)) = first else {
            anyhow::bail!("--where `{text}`: expected FEATURE, one of = != < <= > >=, and a value");
        };
        let Some(listed) = manifest.features.iter().find(|f| f.name == feature) else {
            let known: Vec<_> = manifest.features.iter().map(|f| f.name.as_str()).collect();
            anyhow::bail!("--where `{text}`: no feature `{feature}`; the dataset has {}", known.join(", "));
        };
        let wrong = || anyhow::anyhow!("--where `{text}`: `{feature}` is {}, found `{value}`", listed.dtype.name());
        let operand = match listed.dtype {
            DType::Int64 => Operand::Int64(value.parse().map_err(|_| wrong())?),
            DType::Float => Operand::Float(value.parse().map_err(|_| wrong())?),
            DType::Float64 => Operand::Float64(value.parse().map_err(|_| wrong())?),
            DType::Uint64 => Operand::Uint64(value.parse().map_err(|_| wrong())?),
            DType::Bytes => Operand::Bytes(value.as_bytes().to_vec()),
        };
        Ok(Condition { feature: feature.to_owned(), dtype: listed.dtype, operator, operand })
    }

    /// Returns whether a record meets the condition. A record without the value meets only `!=`.
    pub(crate) fn holds(&self, shard: &Arc<Shard>, row: u64) -> anyhow::Result<bool> {
        let value = shard.value(row, &self.feature)?.and_then(|value| value.of_type(self.dtype));
        let order = match (value, &self.operand) {
            (Some(Value::Int64(value)), Operand::Int64(operand)) => value.partial_cmp(operand),
            (Some(Value::Float(value)), Operand::Float(operand)) => value.partial_cmp(operand),
            (Some(Value::Float64(value)), Operand::Float64(operand)) => value.partial_cmp(operand),
            (Some(Value::Uint64(value)), Operand::Uint64(operand)) => value.partial_cmp(operand),
            (Some(Value::Bytes(value)), Operand::Bytes(operand)) => value.as_ref().partial_cmp(operand.as_slice()),
            _ => None,
        };
        Ok(match self.operator {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::NotEqual => order != Some(Ordering::Equal),
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
            Operator::Greater => order == Some(Ordering::Greater),
            Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        })
    }
}
