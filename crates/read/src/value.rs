//! The value of a feature of one record: from its column in the index or, where the shard has no such column, from the
//! record.

use crate::{Result, Shard};
use shardtool_format::example::{Feature, Logical};
use shardtool_format::index::Element;
use shardtool_format::manifest::DType;
use std::borrow::Cow;
use std::sync::Arc;

/// The only value of a feature.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A value of an int64 feature.
    Int64(i64),
    /// A value of a float feature.
    Float(f32),
    /// A value of a float64 feature ([`Value::of_type`]).
    Float64(f64),
    /// A value of a uint64 feature ([`Value::of_type`]).
    Uint64(u64),
    /// A value of a bytes feature.
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Value<'a> {
    /// Returns the number that a byte string of a logical type holds; other values as they are. `None` if it holds none.
    pub fn of_type(self, dtype: DType) -> Option<Value<'a>> {
        match (&self, dtype) {
            (Value::Bytes(bytes), DType::Float64) => f64::from_bytes(bytes).map(Value::Float64),
            (Value::Bytes(bytes), DType::Uint64) => u64::from_bytes(bytes).map(Value::Uint64),
            _ => Some(self),
        }
    }

    /// Returns the value without a borrow of the index.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Int64(number) => Value::Int64(number),
            Value::Float(number) => Value::Float(number),
            Value::Float64(number) => Value::Float64(number),
            Value::Uint64(number) => Value::Uint64(number),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
        }
    }
}

impl Shard {
    /// Returns whether a record has values of a feature, one or several, of any type. If the index has a column of the feature,
    /// each record has one value, or null, which means none; otherwise reads the record.
    ///
    /// # Errors
    /// As [`Shard::value`].
    pub fn has_values(self: &Arc<Self>, row: u64, feature: &str) -> Result<bool> {
        if self.indexed_feature(feature).is_some() {
            return Ok(self.value(row, feature)?.is_some());
        }
        if let Some(changed) = self.changed_feature(row, feature)? {
            return Ok(changed.is_some_and(|feature| feature.count() > 0));
        }
        let record = self.record(row, vec![])?;
        let has = record.stored_example()?.get(feature).is_some_and(|feature| feature.count() > 0);
        record.check_readable()?;
        Ok(has)
    }

    /// Returns the value of a feature of a record as it is stored; `None` if the record has no value or several. Where the index has no
    /// column of the feature, its values are unknown, not null: they are then read from the record.
    ///
    /// # Errors
    /// [`crate::Error::Index`]; those of [`Shard::record`] and [`crate::Record::example`], if the record is read.
    pub fn value<'s>(self: &'s Arc<Self>, row: u64, feature: &str) -> Result<Option<Value<'s>>> {
        let value = match self.indexed_feature(feature) {
            Some(Element::I64) => self.feature::<i64>(feature)?.and_then(|c| c.get(row)).map(Value::Int64),
            Some(Element::F32) => self.feature::<f32>(feature)?.and_then(|c| c.get(row)).map(Value::Float),
            Some(Element::Bytes) => {
                self.feature_bytes(feature)?.and_then(|c| c.get(row)).map(|bytes| Value::Bytes(Cow::Borrowed(bytes)))
            }
            _ => match self.changed_feature(row, feature)? {
                Some(changed) => changed.and_then(|feature| single(&feature)),
                None => {
                    let record = self.record(row, vec![])?;
                    let value = record.stored_example()?.get(feature).and_then(|feature| single(&feature));
                    record.check_readable()?;
                    value
                }
            },
        };
        self.check_index_readable()?;
        Ok(value)
    }
}

/// Returns the value of a feature that has exactly one.
fn single(feature: &Feature<'_>) -> Option<Value<'static>> {
    match feature {
        Feature::Int64(list) => list.single().map(Value::Int64),
        Feature::Float(list) => list.single().map(Value::Float),
        Feature::Bytes(list) => list.single().map(|bytes| Value::Bytes(Cow::Owned(bytes.to_vec()))),
        Feature::Empty => None,
    }
}
