//! The columns of a split that can be sorted, filtered and summarised: keys, image lengths, and the features of its indexes.

use shardtool_format::example::Logical;
use shardtool_format::index::{self, Element, Fixed, Variable};
use shardtool_format::manifest::DType;
use shardtool_read::{Result, Shard, Split, Value};
use std::borrow::Cow;

/// A column of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// The feature's name, or [`index::KEY`] or [`index::IMAGE_LENGTH`].
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) dtype: DType,
    /// Whether the indexes that were looked at hold it. Columns that they do not hold have several or long values.
    pub(crate) indexed: bool,
}

/// Where a column's values lie in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Key,
    ImageLength,
    Feature,
}

/// Returns the columns of a split, in the order in which pages list them. Looks at three shards at most.
pub(crate) fn columns(split: &Split) -> Vec<Column> {
    let shards = split.entry().shards.len();
    let mut looked = vec![0, shards / 2, shards.saturating_sub(1)];
    looked.dedup();
    let looked: Vec<_> = looked.into_iter().filter(|n| *n < shards).filter_map(|n| split.shard(n).ok()).collect();
    let has = |name: &str| looked.iter().any(|shard| shard.columns().iter().any(|c| c.name() == name));
    let mut columns = vec![Column {
        name: index::KEY.to_owned(),
        source: Source::Key,
        dtype: DType::Bytes,
        indexed: has(index::KEY),
    }];
    if split.manifest().has_images() && has(index::IMAGE_LENGTH) {
        columns.push(Column {
            name: index::IMAGE_LENGTH.to_owned(),
            source: Source::ImageLength,
            dtype: DType::Int64,
            indexed: true,
        });
    }
    for feature in &split.manifest().features {
        columns.push(Column {
            name: feature.name.clone(),
            source: Source::Feature,
            dtype: feature.dtype,
            indexed: looked.iter().any(|shard| shard.indexed_feature(&feature.name).is_some()),
        });
    }
    columns
}

/// The values of a column in one shard.
#[derive(Clone, Copy)]
pub(crate) enum Values<'s> {
    U32(Fixed<'s, u32>),
    I64(Fixed<'s, i64>),
    F32(Fixed<'s, f32>),
    F64(Variable<'s>),
    U64(Variable<'s>),
    Bytes(Variable<'s>),
    /// The index of the shard does not hold the column.
    Absent,
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'s> {
    Int(i64),
    Float(f32),
    Float64(f64),
    Uint64(u64),
    Bytes(&'s [u8]),
}

impl<'s> Values<'s> {
    /// Returns the values of a column in an open shard. Checks the column's CRC on its first use.
    ///
    /// # Errors
    /// [`shardtool_read::Error::Index`] if the column is damaged.
    pub(crate) fn of(shard: &'s Shard, column: &Column) -> Result<Self> {
        Ok(match column.source {
            Source::Key => shard.variable(index::KEY)?.map_or(Values::Absent, Values::Bytes),
            Source::ImageLength => shard.column::<u32>(index::IMAGE_LENGTH)?.map_or(Values::Absent, Values::U32),
            Source::Feature => match shard.indexed_feature(&column.name) {
                Some(Element::I64) => shard.feature(&column.name)?.map_or(Values::Absent, Values::I64),
                Some(Element::F32) => shard.feature(&column.name)?.map_or(Values::Absent, Values::F32),
                Some(Element::Bytes) => {
                    let values = match column.dtype {
                        DType::Float64 => Values::F64,
                        DType::Uint64 => Values::U64,
                        _ => Values::Bytes,
                    };
                    shard.feature_bytes(&column.name)?.map_or(Values::Absent, values)
                }
                _ => Values::Absent,
            },
        })
    }

    /// Returns the value of a row; `None` if it is null, or the shard's index does not hold the column.
    #[inline]
    pub(crate) fn get(&self, row: u64) -> Option<Cell<'s>> {
        match self {
            Values::U32(column) => column.get(row).map(|n| Cell::Int(n.into())),
            Values::I64(column) => column.get(row).map(Cell::Int),
            Values::F32(column) => column.get(row).map(Cell::Float),
            Values::F64(column) => column.get(row).and_then(f64::from_bytes).map(Cell::Float64),
            Values::U64(column) => column.get(row).and_then(u64::from_bytes).map(Cell::Uint64),
            Values::Bytes(column) => column.get(row).map(Cell::Bytes),
            Values::Absent => None,
        }
    }
}

impl<'s> From<Cell<'s>> for Value<'s> {
    fn from(cell: Cell<'s>) -> Self {
        match cell {
            Cell::Int(number) => Value::Int64(number),
            Cell::Float(number) => Value::Float(number),
            Cell::Float64(number) => Value::Float64(number),
            Cell::Uint64(number) => Value::Uint64(number),
            Cell::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
        }
    }
}

impl Cell<'_> {
    /// Returns the value as text; invalid UTF-8 and control characters are replaced.
    pub(crate) fn text(&self) -> String {
        match self {
            Cell::Int(number) => number.to_string(),
            Cell::Float(number) => number.to_string(),
            Cell::Float64(number) => number.to_string(),
            Cell::Uint64(number) => number.to_string(),
            Cell::Bytes(bytes) => crate::text::printable(bytes),
        }
    }
}
