//! The files of a dataset as this crate's writers write them.

use crate::bytes::example::List;
use crate::bytes::index::{Column, F32, I64, U32, U64};
use crate::dataset::Shard;
use shardtool_format::example::{self, encode};
use shardtool_format::index::Builder;
use std::collections::BTreeMap;

/// Returns the index that [`Builder`] makes of a shard's columns.
pub(crate) fn index(shard: &Shard) -> Vec<u8> {
    let header = shard.header();
    let mut builder = Builder::new(header.records, header.shard_bytes, header.shard_crc);
    for column in &shard.columns {
        let name = std::str::from_utf8(&column.name).expect("names of columns are UTF-8");
        let valid = |row: usize| column.validity.as_ref().is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1);
        match column.element {
            U32 => builder.fixed_nullable(name, rows(column, valid, u32::from_le_bytes)),
            U64 => builder.fixed_nullable(name, rows(column, valid, u64::from_le_bytes)),
            I64 => builder.fixed_nullable(name, rows(column, valid, i64::from_le_bytes)),
            F32 => builder.fixed_nullable(name, rows(column, valid, f32::from_le_bytes)),
            _ => {
                let offsets = column.offsets.as_ref().expect("a variable column has offsets").chunks_exact(8);
                let offsets: Vec<usize> =
                    offsets.map(|n| i64::from_le_bytes(n.try_into().expect("eight bytes")) as usize).collect();
                let row = |row: usize| valid(row).then(|| &column.values[offsets[row]..offsets[row + 1]]);
                builder.variable_nullable(name, (0..offsets.len() - 1).map(row))
            }
        };
    }
    builder.finish()
}

fn rows<const N: usize, T>(column: &Column, valid: impl Fn(usize) -> bool, number: fn([u8; N]) -> T) -> Vec<Option<T>> {
    let numbers = column.values.chunks_exact(N).map(|bytes| number(bytes.try_into().expect("a number's bytes")));
    numbers.enumerate().map(|(row, value)| valid(row).then_some(value)).collect()
}

/// Returns the Example that [`encode`] writes.
pub(crate) fn example(features: &BTreeMap<String, List>) -> Vec<u8> {
    let strings: BTreeMap<_, Vec<&[u8]>> =
        features.iter().map(|(name, list)| (name, list.strings().iter().map(Vec::as_slice).collect())).collect();
    let floats: BTreeMap<_, Vec<f32>> = features
        .iter()
        .filter_map(|(name, list)| match list {
            List::Float(bits) => Some((name, bits.iter().copied().map(f32::from_bits).collect())),
            _ => None,
        })
        .collect();
    let mut columns: Vec<(&str, example::Column<'_>)> = features
        .iter()
        .map(|(name, list)| {
            let column = match list {
                List::Bytes(_) => example::Column::Bytes(&strings[name]),
                List::Float(_) => example::Column::Float(&floats[name]),
                List::Int64(values) => example::Column::Int64(values),
            };
            (name.as_str(), column)
        })
        .collect();
    let mut data = vec![];
    encode(&mut columns, &mut data);
    data
}
