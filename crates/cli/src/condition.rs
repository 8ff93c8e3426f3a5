//! Conditions on features, such as `source=flickr`: which records a command shows.

use crate::headings;
use shardtool_format::index;
use shardtool_format::manifest::{DType, Manifest};
use shardtool_pack::Selection;
use shardtool_read::{Condition, ConditionError, Operator, Shard, Split, Value};
use std::sync::Arc;

/// The flag `--where`.
#[derive(clap::Args)]
pub(crate) struct WhereArgument {
    /// Take only records for which this holds
    ///
    /// CONDITION is FEATURE, one of = != < <= > >= ~, and a value, such as source=flickr; ~ finds text that contains it. Without
    /// a value, = finds records that lack the number. May be repeated: all must hold.
    #[arg(long = "where", value_name = "CONDITION", help_heading = headings::RECORDS)]
    conditions: Vec<String>,
}

impl WhereArgument {
    /// Parses the conditions on records of a dataset.
    pub(crate) fn conditions(&self, manifest: &Manifest) -> anyhow::Result<Conditions> {
        let parse = |text: &String| {
            Condition::parse(text, |name| dtype(name, manifest)).map_err(|error| match error {
                ConditionError::Unknown { .. } => {
                    let known: Vec<_> = manifest.features.iter().map(|f| f.name.as_str()).collect();
                    anyhow::anyhow!("--where `{text}`: {error}; the dataset has {}", known.join(", "))
                }
                error => anyhow::anyhow!("--where `{text}`: {error}"),
            })
        };
        Ok(Conditions(self.conditions.iter().map(parse).collect::<anyhow::Result<_>>()?))
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

/// Returns the type of a column that conditions may name: the key, the bytes of the image, or a feature. `None` for others.
fn dtype(name: &str, manifest: &Manifest) -> Option<DType> {
    match name {
        index::KEY => Some(DType::Bytes),
        index::IMAGE_LENGTH => Some(DType::Int64),
        name => manifest.dtype(name),
    }
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
            let value = match condition.name() {
                index::KEY => Some(Value::Bytes(shard.key(row)?)),
                index::IMAGE_LENGTH => {
                    let length = shard.column::<u32>(index::IMAGE_LENGTH)?.and_then(|lengths| lengths.get(row));
                    length.map(|length| Value::Int64(length.into()))
                }
                name => shard.value(row, name)?.and_then(|value| value.of_type(condition.dtype())),
            };
            // Several values are not the lack of one.
            let several =
                value.is_none() && condition.operand().is_none() && shard.has_values(row, condition.name())?;
            let holds =
                if several { condition.operator() == Operator::NotEqual } else { condition.holds(value.as_ref()) };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
