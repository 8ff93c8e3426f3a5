//! The arrays of a batch's columns.

use crate::buffer::OwnedBytes;
use crate::cell::Cell;

/// Values of one column of a batch of N rows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// Integers, `[N, width]`.
    Int64(Vec<i64>),
    /// Floats, `[N, width]`.
    Float(Vec<f32>),
    /// 64-bit floats, `[N, width]`.
    Float64(Vec<f64>),
    /// Unsigned integers, `[N, width]`.
    Uint64(Vec<u64>),
    /// Integers of all rows, concatenated: those of row i are `offsets[i]..offsets[i + 1]`.
    RaggedInt64 {
        /// `[N + 1]`, the first one 0.
        offsets: Vec<i64>,
        /// The values of all rows.
        values: Vec<i64>,
    },
    /// Floats of all rows, concatenated.
    RaggedFloat {
        /// `[N + 1]`, the first one 0.
        offsets: Vec<i64>,
        /// The values of all rows.
        values: Vec<f32>,
    },
    /// 64-bit floats of all rows, concatenated.
    RaggedFloat64 {
        /// `[N + 1]`, the first one 0.
        offsets: Vec<i64>,
        /// The values of all rows.
        values: Vec<f64>,
    },
    /// Unsigned integers of all rows, concatenated.
    RaggedUint64 {
        /// `[N + 1]`, the first one 0.
        offsets: Vec<i64>,
        /// The values of all rows.
        values: Vec<u64>,
    },
    /// Bytes of all rows, concatenated.
    RaggedUint8 {
        /// `[N + 1]`, the first one 0.
        offsets: Vec<i64>,
        /// The values of all rows.
        values: OwnedBytes,
    },
    /// Byte strings of all rows, concatenated.
    Bytes {
        /// `[N + 1]`, the first one 0.
        offsets: Vec<i64>,
        /// The values of all rows.
        values: Vec<u8>,
    },
}

impl Values {
    /// Appends a row.
    pub(crate) fn push(&mut self, cell: &Cell) {
        match (self, cell) {
            (Values::Int64(values), Cell::Int64(cell)) => values.extend_from_slice(cell),
            (Values::Float(values), Cell::Float(cell)) => values.extend_from_slice(cell),
            (Values::Float64(values), Cell::Float64(cell)) => values.extend_from_slice(cell),
            (Values::Uint64(values), Cell::Uint64(cell)) => values.extend_from_slice(cell),
            (Values::RaggedInt64 { offsets, values }, Cell::Int64(cell)) => append(offsets, values, cell),
            (Values::RaggedFloat { offsets, values }, Cell::Float(cell)) => append(offsets, values, cell),
            (Values::RaggedFloat64 { offsets, values }, Cell::Float64(cell)) => append(offsets, values, cell),
            (Values::RaggedUint64 { offsets, values }, Cell::Uint64(cell)) => append(offsets, values, cell),
            // Gathered at once.
            (Values::RaggedUint8 { .. }, Cell::Maps(_)) => {}
            (Values::Bytes { offsets, values }, Cell::Bytes(cell)) => append(offsets, values, cell),
            _ => unreachable!("a cell has the type of its column"),
        }
    }

    /// Returns ragged numbers as `[N, width]`: values of a row beyond `width` are cut, missing ones are `fill`; `None` for other
    /// columns.
    pub fn padded(&self, width: usize, fill: f64) -> Option<Values> {
        match self {
            Values::RaggedInt64 { offsets, values } => Some(Values::Int64(padded(offsets, values, width, fill as i64))),
            Values::RaggedFloat { offsets, values } => Some(Values::Float(padded(offsets, values, width, fill as f32))),
            Values::RaggedFloat64 { offsets, values } => Some(Values::Float64(padded(offsets, values, width, fill))),
            Values::RaggedUint64 { offsets, values } => {
                Some(Values::Uint64(padded(offsets, values, width, fill as u64)))
            }
            _ => None,
        }
    }

    /// Returns the bytes of memory that it occupies.
    pub(crate) fn held(&self) -> u64 {
        (match self {
            Values::Int64(values) => 8 * values.capacity(),
            Values::Float(values) => 4 * values.capacity(),
            Values::Float64(values) => 8 * values.capacity(),
            Values::Uint64(values) => 8 * values.capacity(),
            Values::RaggedFloat64 { offsets, values } => 8 * (offsets.capacity() + values.capacity()),
            Values::RaggedUint64 { offsets, values } => 8 * (offsets.capacity() + values.capacity()),
            Values::RaggedInt64 { offsets, values } => 8 * (offsets.capacity() + values.capacity()),
            Values::RaggedFloat { offsets, values } => 8 * offsets.capacity() + 4 * values.capacity(),
            Values::RaggedUint8 { offsets, values } => 8 * offsets.capacity() + values.capacity(),
            Values::Bytes { offsets, values } => 8 * offsets.capacity() + values.capacity(),
        }) as u64
    }
}

fn padded<T: Copy>(offsets: &[i64], values: &[T], width: usize, fill: T) -> Vec<T> {
    let mut array = vec![fill; offsets.len().saturating_sub(1) * width];
    for (row, ends) in array.chunks_mut(width.max(1)).zip(offsets.windows(2)) {
        let values = &values[ends[0] as usize..ends[1] as usize];
        let count = values.len().min(width);
        row[..count].copy_from_slice(&values[..count]);
    }
    array
}

fn append<T: Copy>(offsets: &mut Vec<i64>, values: &mut Vec<T>, cell: &[T]) {
    values.extend_from_slice(cell);
    offsets.push(values.len() as i64);
}
