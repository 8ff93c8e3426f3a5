//! Writes a `tf.train.Example` in canonical form.

use super::{Example, Feature};
use crate::wire::{delimited_len, put_delimited, put_varint, varint_len};

/// Values of a feature to be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Column<'a> {
    /// Byte strings.
    Bytes(&'a [&'a [u8]]),
    /// 32-bit floats.
    Float(&'a [f32]),
    /// 64-bit integers.
    Int64(&'a [i64]),
}

impl Column<'_> {
    /// Field number of the list in a Feature message.
    fn field(&self) -> u8 {
        match self {
            Column::Bytes(_) => 1,
            Column::Float(_) => 2,
            Column::Int64(_) => 3,
        }
    }

    /// Returns the length of the list message in bytes.
    fn list_len(&self) -> usize {
        match self {
            Column::Bytes(values) => values.iter().map(|v| delimited_len(v.len())).sum(),
            Column::Float([]) | Column::Int64([]) => 0,
            Column::Float(values) => delimited_len(4 * values.len()),
            Column::Int64(_) => delimited_len(self.packed_len()),
        }
    }

    fn packed_len(&self) -> usize {
        match self {
            Column::Int64(values) => values.iter().map(|v| varint_len(*v as u64)).sum(),
            Column::Float(values) => 4 * values.len(),
            Column::Bytes(_) => 0,
        }
    }

    fn put_list(&self, out: &mut Vec<u8>) {
        match self {
            Column::Bytes(values) => {
                for v in *values {
                    put_delimited(1, v.len(), out);
                    out.extend_from_slice(v);
                }
            }
            Column::Float([]) | Column::Int64([]) => {}
            Column::Float(values) => {
                put_delimited(1, self.packed_len(), out);
                values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
            }
            Column::Int64(values) => {
                put_delimited(1, self.packed_len(), out);
                values.iter().for_each(|v| put_varint(*v as u64, out));
            }
        }
    }
}

/// Appends the canonical Example of `features` to `out`: names in byte order, one entry each, packed numbers, minimal
/// varints, no unknown fields.
///
/// # Panics
/// If two features have the same name.
pub fn encode(features: &mut [(&str, Column<'_>)], out: &mut Vec<u8>) {
    features.sort_by_key(|(name, _)| *name);
    assert!(features.windows(2).all(|w| w[0].0 != w[1].0), "feature names are unique");
    let entry_len =
        |name: &str, column: &Column<'_>| delimited_len(name.len()) + delimited_len(delimited_len(column.list_len()));
    let all: usize = features.iter().map(|(name, column)| delimited_len(entry_len(name, column))).sum();
    out.reserve(delimited_len(all));
    put_delimited(1, all, out);
    for (name, column) in features {
        put_delimited(1, entry_len(name, column), out);
        put_delimited(1, name.len(), out);
        out.extend_from_slice(name.as_bytes());
        let list = column.list_len();
        put_delimited(2, delimited_len(list), out);
        put_delimited(column.field(), list, out);
        column.put_list(out);
    }
}

/// Appends the message `Feature` of a column: what an entry of an Example has as its value.
pub fn encode_feature(column: &Column<'_>, out: &mut Vec<u8>) {
    put_delimited(column.field(), column.list_len(), out);
    column.put_list(out);
}

/// The values of a feature, gathered from its lists.
enum Gathered<'a> {
    Bytes(Vec<&'a [u8]>),
    Float(Vec<f32>),
    Int64(Vec<i64>),
}

impl<'a> Gathered<'a> {
    /// Returns the values; `None` of a feature without a list, which is a missing one.
    fn of(feature: &Feature<'a>) -> Option<Self> {
        Some(match feature {
            Feature::Empty => return None,
            Feature::Bytes(list) => Gathered::Bytes(list.iter().collect()),
            Feature::Float(list) => Gathered::Float(list.iter().collect()),
            Feature::Int64(list) => Gathered::Int64(list.iter().collect()),
        })
    }

    fn column(&self) -> Column<'_> {
        match self {
            Gathered::Bytes(values) => Column::Bytes(values),
            Gathered::Float(values) => Column::Float(values),
            Gathered::Int64(values) => Column::Int64(values),
        }
    }
}

impl Feature<'_> {
    /// Appends the feature as a message in canonical form; nothing if it is missing.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(values) = Gathered::of(self) {
            encode_feature(&values.column(), out);
        }
    }
}

impl Example<'_> {
    /// Appends the Example in canonical form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let gathered = self.features().iter().filter_map(|(name, feature)| Some((&**name, Gathered::of(feature)?)));
        let gathered: Vec<_> = gathered.collect();
        let mut columns: Vec<_> = gathered.iter().map(|(name, values)| (*name, values.column())).collect();
        encode(&mut columns, out);
    }
}
