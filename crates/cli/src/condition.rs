//! Conditions on features, such as `source=flickr`: which records a command shows.

use crate::headings;
use shardtool_format::manifest::{DType, Manifest};
use shardtool_pack::Selection;
use shardtool_read::{Shard, Split, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// The flag `--where`.
#[derive(clap::Args)]
pub(crate) struct WhereArgument {
    /// Take only records for which this holds
    ///
    /// CONDITION is FEATURE, one of = != < <= > >=, and a value, such as source=flickr. May be repeated: all must hold.
    #[arg(long = "where", value_name = "CONDITION", help_heading = headings::RECORDS)]
    conditions: Vec<String>,
}

impl WhereArgument {
    /// Parses the conditions on records of a dataset.
    pub(crate) fn conditions(&self, manifest: &Manifest) -> anyhow::Result<Conditions> {
        let parsed = self.conditions.iter().map(|text| Condition::parse(text, manifest));
        Ok(Conditions(parsed.collect::<anyhow::Result<_>>()?))
    }

    /// Returns the records of splits to take; `None` for all.
    ///
    /// # Errors
    /// If no record is to be taken.
    pub(crate) fn selection(&self, splits: &[Split]) -> anyhow::Result<Option<Selection>> {
        let Some(first) = splits.first().filter(|_| !self.conditions.is_empty()) else { return Ok(None) };
        let conditions = self.conditions(first.manifest())?;
        if !some_hold(&conditions, splits)? {
            anyhow::bail!("--where {}: no record meets it", self.conditions.join(" --where "));
        }
        let holds = move |shard: &Arc<Shard>, row| conditions.hold(shard, row);
        Ok(Some(Selection::new(self.conditions.clone(), holds)))
    }
}

/// Returns whether a record of the splits meets the conditions.
fn some_hold(conditions: &Conditions, splits: &[Split]) -> anyhow::Result<bool> {
    for split in splits {
        for number in 0..split.entry().shards.len() {
            let shard = split.shard(number)?;
            for row in 0..shard.records() {
                if conditions.hold(&shard, row)? {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Conditions that must all hold.
pub(crate) struct Conditions(Vec<Condition>);

impl Conditions {
    /// Returns whether all records meet them, since none was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a record meets all conditions.
    pub(crate) fn hold(&self, shard: &Arc<Shard>, row: u64) -> shardtool_read::Result<bool> {
        for condition in &self.0 {
            if !condition.holds(shard, row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A condition on one feature.
struct Condition {
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
    fn parse(text: &str, manifest: &Manifest) -> anyhow::Result<Self> {
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
    fn holds(&self, shard: &Arc<Shard>, row: u64) -> shardtool_read::Result<bool> {
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
