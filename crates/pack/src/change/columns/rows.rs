//! The values that a source has, row by row.

use crate::Value;
use crate::sample::Values;
use shardtool_format::example::{Feature, Logical};
use shardtool_format::manifest::DType;
use std::path::PathBuf;

/// Rows of values, each for one record.
#[derive(Debug, Clone)]
pub struct ColumnRows {
    /// Where they come from, for messages.
    pub source: PathBuf,
    /// The key of the record of each row; `None` if the rows are in the order of the records.
    pub keys: Option<Vec<Vec<u8>>>,
    /// The columns, each with as many rows.
    pub columns: Vec<ColumnValues>,
}

/// A column of a source.
#[derive(Debug, Clone)]
pub struct ColumnValues {
    /// Name of the feature.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// The values of each row, all of the type; `None` if the row has none.
    pub rows: Vec<Option<Value>>,
}

impl ColumnRows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.keys.as_ref().map_or_else(|| self.columns.first().map_or(0, |column| column.rows.len()), Vec::len)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Value {
    /// Returns the values of a column of a list; `None` if there are none.
    pub(super) fn of_list(values: &Values) -> Option<Value> {
        Some(match values {
            Values::Int64(value) => Value::Int64(vec![*value]),
            Values::Int64s(list) => Value::Int64(list.to_vec()),
            Values::Float(value) => Value::Float(vec![*value]),
            Values::Floats(list) | Values::Pixels(list) | Values::Fractions(list) => Value::Float(list.to_vec()),
            Values::Bytes(bytes) => Value::Bytes(vec![bytes.to_vec()]),
            Values::BytesList(list) | Values::FractionPolygons(list) => {
                Value::Bytes(list.iter().map(|bytes| bytes.to_vec()).collect())
            }
            Values::Logical(DType::Uint64, list) => {
                Value::Uint64(list.iter().map(|stored| u64::from_stored(*stored)).collect())
            }
            Values::Logical(_, list) => Value::Float64(list.iter().map(|stored| f64::from_stored(*stored)).collect()),
            Values::Missing | Values::Numbers(_) | Values::File(_) | Values::Clip(_) => return None,
        })
    }

    /// Returns the values of a feature; `None` of a missing one.
    pub(super) fn of_feature(feature: &Feature<'_>, dtype: DType) -> Option<Value> {
        Some(match feature {
            Feature::Empty => return None,
            Feature::Int64(list) => Value::Int64(list.iter().collect()),
            Feature::Float(list) => Value::Float(list.iter().collect()),
            Feature::Bytes(list) => match dtype {
                DType::Float64 => list.numbers().map(Value::Float64).unwrap_or(Value::Float64(vec![])),
                DType::Uint64 => list.numbers().map(Value::Uint64).unwrap_or(Value::Uint64(vec![])),
                _ => Value::Bytes(list.iter().map(<[u8]>::to_vec).collect()),
            },
        })
    }

    /// Returns the type of the values.
    pub(super) fn dtype(&self) -> Option<DType> {
        Some(match self {
            Value::Int64(_) => DType::Int64,
            Value::Float(_) => DType::Float,
            Value::Float64(_) => DType::Float64,
            Value::Uint64(_) => DType::Uint64,
            Value::Bytes(_) => DType::Bytes,
            Value::Pixels(_) | Value::Array(_) => return None,
        })
    }

    /// Returns the number of values.
    pub(super) fn count(&self) -> usize {
        match self {
            Value::Int64(list) => list.len(),
            Value::Float(list) | Value::Pixels(list) => list.len(),
            Value::Float64(list) => list.len(),
            Value::Uint64(list) => list.len(),
            Value::Bytes(list) => list.len(),
            Value::Array(_) => 0,
        }
    }
}
