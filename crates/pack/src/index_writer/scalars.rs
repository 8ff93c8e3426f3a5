//! The column of a feature that has at most one value in each record.

use super::rows::ByteRows;
use shardtool_format::example::Feature;
use shardtool_format::index::{Builder, MAX_FEATURE_BYTES, Scalar, Validity};
use shardtool_format::manifest::DType;

/// Features whose byte strings are never columns: their names begin with this.
const IMAGE_PREFIX: &str = "image/";

/// The values of a feature, as long as no record rules the column out.
pub(super) enum Scalars {
    Int64(Sparse<Vec<i64>>),
    Float(Sparse<Vec<f32>>),
    Bytes(Sparse<ByteRows>),
    /// A record has several values or a long byte string, or the feature is never a column.
    RuledOut,
}

/// The values of the records that have one, and which records these are.
#[derive(Default)]
pub(super) struct Sparse<V> {
    present: Validity,
    values: V,
}

impl Scalars {
    pub(super) fn new(name: &str, dtype: DType) -> Self {
        match dtype.stored() {
            DType::Int64 => Scalars::Int64(Sparse::default()),
            DType::Float => Scalars::Float(Sparse::default()),
            DType::Bytes if name.starts_with(IMAGE_PREFIX) => Scalars::RuledOut,
            _ => Scalars::Bytes(Sparse::default()),
        }
    }

    /// Adds the numbers of `record`. Does nothing for byte strings.
    pub(super) fn push_numbers(&mut self, record: u64, feature: &Feature<'_>) {
        let fits = match (&mut *self, feature) {
            (Scalars::Int64(column), Feature::Int64(list)) => column.push(record, list.iter()),
            (Scalars::Float(column), Feature::Float(list)) => column.push(record, list.iter()),
            _ => return,
        };
        if !fits {
            *self = Scalars::RuledOut;
        }
    }

    /// Adds the only byte string of `record`.
    pub(super) fn push_bytes(&mut self, record: u64, value: &[u8]) {
        match self {
            Scalars::Bytes(column) if value.len() <= MAX_FEATURE_BYTES => {
                column.present.set(record);
                column.values.push(value);
            }
            Scalars::Bytes(_) => *self = Scalars::RuledOut,
            _ => {}
        }
    }

    /// Writes the column, unless it is ruled out or has no value.
    pub(super) fn write(&self, name: &str, records: u64, index: &mut Builder) {
        match self {
            Scalars::Int64(column) => column.write(name, records, index),
            Scalars::Float(column) => column.write(name, records, index),
            Scalars::Bytes(column) if !column.values.is_empty() => {
                let mut values = column.values.iter();
                index.variable_nullable(name, column.present.rows(records, || values.next()));
            }
            Scalars::Bytes(_) | Scalars::RuledOut => {}
        }
    }
}

impl<T: Scalar> Sparse<Vec<T>> {
    /// Adds the value of a record, if it has one. Returns whether it has no second one.
    fn push(&mut self, record: u64, mut values: impl Iterator<Item = T>) -> bool {
        let Some(value) = values.next() else { return true };
        self.present.set(record);
        self.values.push(value);
        values.next().is_none()
    }

    fn write(&self, name: &str, records: u64, index: &mut Builder) {
        if !self.values.is_empty() {
            let mut values = self.values.iter().copied();
            index.fixed_nullable(name, self.present.rows(records, || values.next()));
        }
    }
}
