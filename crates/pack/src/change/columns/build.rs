//! Makes the companion of a shard: the values of one column, in the order of the shard's rows.

use super::MissingRows;
use super::rows::ColumnValues;
use crate::{Error, Value};
use shardtool_format::example::{Column, Logical, encode_feature};
use shardtool_format::index::{Builder, ENCODED_PREFIX, FEATURE_PREFIX};
use shardtool_format::manifest::DType;
use shardtool_read::{Shard, Split};
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the name and the bytes of a companion. `rows` has, for each row of the shard, the row of the source.
///
/// # Errors
/// [`Error::Read`], if values are kept.
pub(super) fn companion(
    split: &Split,
    number: usize,
    column: &ColumnValues,
    rows: &[Option<u32>],
    missing: MissingRows,
) -> Result<(String, Vec<u8>), Error> {
    let entry = &split.entry().shards[number];
    let mut values: Vec<Option<Cow<'_, Value>>> = vec![];
    let mut shard = None;
    let deleted = split.deleted_rows(number)?;
    for (row, at) in (0..).zip(rows) {
        let is_deleted = deleted.as_ref().is_some_and(|deleted| deleted.contains(row));
        values.push(match at {
            Some(at) => column.rows[*at as usize].as_ref().map(Cow::Borrowed),
            None if missing == MissingRows::Keep && !is_deleted => {
                let shard = match &shard {
                    Some(shard) => shard,
                    None => shard.insert(split.shard(number)?),
                };
                kept(shard, row, column)?.map(Cow::Owned)
            }
            None => None,
        });
    }
    let mut builder = Builder::companion(entry.records, entry.bytes, entry.crc32c);
    let one = values.iter().flatten().all(|value| value.count() == 1);
    let name = format!("{}{}", if one { FEATURE_PREFIX } else { ENCODED_PREFIX }, column.name);
    if !one {
        let messages = values.iter().map(|value| value.as_ref().map(|value| message(value)));
        builder.variable_nullable(&name, messages);
        return Ok((name, builder.finish()));
    }
    let values = values.iter().map(Option::as_deref);
    match column.dtype {
        DType::Int64 => builder.fixed_nullable(&name, values.map(int64)),
        DType::Float => builder.fixed_nullable(&name, values.map(float)),
        DType::Bytes | DType::Float64 | DType::Uint64 => builder.variable_nullable(&name, values.map(bytes)),
    };
    Ok((name, builder.finish()))
}

/// Returns what a record has in the version that is changed.
fn kept(shard: &Arc<Shard>, row: u64, column: &ColumnValues) -> Result<Option<Value>, Error> {
    if let Some(changed) = shard.changed_feature(row, &column.name)? {
        return Ok(changed.and_then(|feature| Value::of_feature(&feature, column.dtype)));
    }
    if shard.indexed_feature(&column.name).is_some() {
        let value = shard.value(row, &column.name)?.and_then(|value| value.of_type(column.dtype));
        return Ok(value.map(|value| match value {
            shardtool_read::Value::Int64(value) => Value::Int64(vec![value]),
            shardtool_read::Value::Float(value) => Value::Float(vec![value]),
            shardtool_read::Value::Float64(value) => Value::Float64(vec![value]),
            shardtool_read::Value::Uint64(value) => Value::Uint64(vec![value]),
            shardtool_read::Value::Bytes(bytes) => Value::Bytes(vec![bytes.into_owned()]),
        }));
    }
    let record = shard.record(row, vec![])?;
    let value = record.example()?.get(&column.name).and_then(|feature| Value::of_feature(&feature, column.dtype));
    record.check_readable()?;
    Ok(value)
}

fn int64(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::Int64(list) => list.first().copied(),
        _ => None,
    }
}

fn float(value: Option<&Value>) -> Option<f32> {
    match value? {
        Value::Float(list) => list.first().copied(),
        _ => None,
    }
}

fn bytes(value: Option<&Value>) -> Option<Cow<'_, [u8]>> {
    match value? {
        Value::Bytes(list) => list.first().map(|bytes| Cow::Borrowed(&bytes[..])),
        Value::Float64(list) => list.first().map(|value| Cow::Owned(value.to_stored().to_vec())),
        Value::Uint64(list) => list.first().map(|value| Cow::Owned(value.to_stored().to_vec())),
        _ => None,
    }
}

/// Returns the message `Feature` of several values.
fn message(value: &Value) -> Vec<u8> {
    let mut message = vec![];
    let strings: Vec<Vec<u8>> = match value {
        Value::Float64(list) => list.iter().map(|value| value.to_stored().to_vec()).collect(),
        Value::Uint64(list) => list.iter().map(|value| value.to_stored().to_vec()).collect(),
        _ => vec![],
    };
    let listed: Vec<&[u8]> = match value {
        Value::Bytes(list) => list.iter().map(Vec::as_slice).collect(),
        _ => strings.iter().map(Vec::as_slice).collect(),
    };
    let column = match value {
        Value::Int64(list) => Column::Int64(list),
        Value::Float(list) => Column::Float(list),
        _ => Column::Bytes(&listed),
    };
    encode_feature(&column, &mut message);
    message
}
