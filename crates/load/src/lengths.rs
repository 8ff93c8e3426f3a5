//! Columns of the indexes that decide which samples share a batch or a row.

use crate::error::{Error, Result};
use crate::splits::Splits;
use shardtool_format::example::Logical;
use shardtool_format::manifest::DType;
use shardtool_order::{Order, Source};
use shardtool_read::{Rows, Shard};

/// Returns the values of a source's samples, given those of all records; none of a source that buckets and packing refuse.
pub(crate) fn of_source<T: Copy + Default>(source: &Source, values: Vec<T>) -> Vec<T> {
    if let Source::All(_) = source {
        return values;
    }
    let value = |id: u64| usize::try_from(id).ok().and_then(|id| values.get(id)).copied().unwrap_or_default();
    if source.is_fixed() {
        (0..source.len()).map(|v| value(source.id(Order::Sequential, 0, 0, v))).collect()
    } else {
        vec![]
    }
}

/// Returns the length of each sample: 0 where the feature is missing or negative.
pub(crate) fn lengths(feature: &str, splits: &Splits) -> Result<Vec<u64>> {
    let mut lengths = Vec::with_capacity(splits.len() as usize);
    let unsigned = splits.as_slice().iter().any(|split| split.manifest().dtype(feature) == Some(DType::Uint64));
    for_each_shard(splits, |shard, rows| {
        let missing = || Error::NoIndexColumn { path: shard.path().to_owned(), feature: feature.to_owned() };
        let rows = rows.map(|(_, row)| row);
        if unsigned && let Some(column) = shard.feature_bytes(feature)? {
            lengths.extend(rows.map(|row| column.get(row).and_then(u64::from_bytes).unwrap_or(0)));
            return Ok(());
        }
        let column = shard.feature::<i64>(feature)?.ok_or_else(missing)?;
        let length = |row| column.get(row).and_then(|length| u64::try_from(length).ok()).unwrap_or(0);
        lengths.extend(rows.map(length));
        Ok(())
    })?;
    Ok(lengths)
}

/// Calls `f` with every shard of every split, in order.
pub(crate) fn for_each_shard(splits: &Splits, mut f: impl FnMut(&Shard, Rows) -> Result<()>) -> Result<()> {
    for split in splits.as_slice() {
        for number in 0..split.entry().shards.len() {
            f(&*split.shard(number)?, split.rows(number)?)?;
        }
    }
    Ok(())
}
