//! The numbers of a feature in all records of a split.

use crate::{Result, Rows, Shard, Split, Value};
use shardtool_format::example::Logical;
use shardtool_format::manifest::DType;
use std::sync::Arc;

/// A number that a feature can have.
pub trait Number: Copy + sealed::Sealed {
    /// The type of the feature in the manifest.
    const DTYPE: DType;

    /// Returns the numbers of a shard from its index; `None` if the index has no such column.
    #[doc(hidden)]
    fn of_index(shard: &Shard, rows: &Rows, feature: &str) -> Result<Option<Vec<Option<Self>>>>;

    /// Returns the number that a value is.
    #[doc(hidden)]
    fn of_value(value: Value<'_>) -> Option<Self>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! number {
    ($($type:ty: $dtype:ident, $column:ident;)*) => {
        $(impl Number for $type {
            const DTYPE: DType = DType::$dtype;

            fn of_index(shard: &Shard, rows: &Rows, feature: &str) -> Result<Option<Vec<Option<Self>>>> {
                $column(shard, rows, feature)
            }

            fn of_value(value: Value<'_>) -> Option<Self> {
                match value {
                    Value::$dtype(number) => Some(number),
                    _ => None,
                }
            }
        }
        impl sealed::Sealed for $type {})*
    };
}

number! {
    i64: Int64, scalars;
    f32: Float, scalars;
    f64: Float64, logical;
    u64: Uint64, logical;
}

fn scalars<T: shardtool_format::index::Scalar>(
    shard: &Shard,
    rows: &Rows,
    feature: &str,
) -> Result<Option<Vec<Option<T>>>> {
    let column = shard.feature::<T>(feature)?;
    Ok(column.map(|column| rows.clone().map(|(_, row)| column.get(row)).collect()))
}

fn logical<T: Logical>(shard: &Shard, rows: &Rows, feature: &str) -> Result<Option<Vec<Option<T>>>> {
    let column = shard.feature_bytes(feature)?;
    Ok(column.map(|column| rows.clone().map(|(_, row)| T::from_bytes(column.get(row)?)).collect()))
}

impl Split {
    /// Returns the number that each record has of a feature, `[records]`; `None` for a record that has none, or several. The type is
    /// that of the manifest: `i64`, `f32`, `f64` or `u64`. The numbers are those of the indexes; of a shard whose index lacks them, those
    /// of its records.
    ///
    /// ```
    /// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance/golden/tiny");
    /// # let dataset = shardtool_read::Dataset::open(folder)?;
    /// let train = dataset.split("train")?;
    /// let labels: Vec<Option<i64>> = train.column("image/class/label")?.expect("the dataset has labels");
    /// assert_eq!(labels.len() as u64, train.len());
    /// assert!(train.column::<f32>("image/class/label")?.is_none(), "they are integers");
    /// # Ok::<(), shardtool_read::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Split::shard`] and [`Shard::value`]. `Ok(None)` if the manifest has no feature of that name and type.
    pub fn column<T: Number>(&self, feature: &str) -> Result<Option<Vec<Option<T>>>> {
        if self.manifest().dtype(feature) != Some(T::DTYPE) {
            return Ok(None);
        }
        let mut values = vec![];
        for number in 0..self.entry().shards.len() {
            let shard: Arc<Shard> = self.shard(number)?;
            let rows = self.rows(number)?;
            match T::of_index(&shard, &rows, feature)? {
                Some(column) => values.extend(column),
                None => {
                    for (_, row) in rows {
                        let value = shard.value(row, feature)?.and_then(|value| value.of_type(T::DTYPE));
                        values.push(value.and_then(T::of_value));
                    }
                }
            }
            shard.check_index_readable()?;
        }
        Ok(Some(values))
    }
}
