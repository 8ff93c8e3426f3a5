//! The values of one row of a column.

/// One row's values of one column; its memory is reused from batch to batch.
#[derive(Debug)]
pub(crate) enum Cell {
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Float64(Vec<f64>),
    Uint64(Vec<u64>),
    /// Masks of objects, as bits: of each eight of them a map with a byte for each pixel.
    Maps(Vec<u8>),
    Bytes(Vec<u8>),
}

impl Cell {
    pub(crate) fn clear(&mut self) {
        match self {
            Cell::Int64(values) => values.clear(),
            Cell::Float(values) => values.clear(),
            Cell::Float64(values) => values.clear(),
            Cell::Uint64(values) => values.clear(),
            Cell::Maps(values) => values.clear(),
            Cell::Bytes(values) => values.clear(),
        }
    }

    /// Appends the first `most` values of another cell of this type.
    pub(crate) fn append(&mut self, other: &Cell, most: usize) {
        match (self, other) {
            (Cell::Int64(values), Cell::Int64(other)) => values.extend_from_slice(&other[..other.len().min(most)]),
            (Cell::Float(values), Cell::Float(other)) => values.extend_from_slice(&other[..other.len().min(most)]),
            (Cell::Float64(values), Cell::Float64(other)) => values.extend_from_slice(&other[..other.len().min(most)]),
            (Cell::Uint64(values), Cell::Uint64(other)) => values.extend_from_slice(&other[..other.len().min(most)]),
            (Cell::Bytes(values), Cell::Bytes(other)) => values.extend_from_slice(&other[..other.len().min(most)]),
            _ => unreachable!("both have the type of their column"),
        }
    }

    /// Returns the numbers of a float cell; none for other types.
    pub(crate) fn floats(&self) -> &[f32] {
        match self {
            Cell::Float(values) => values,
            _ => &[],
        }
    }

    /// Returns the numbers of a float cell for writing.
    ///
    /// # Panics
    /// If the cell has another type.
    pub(crate) fn floats_mut(&mut self) -> &mut Vec<f32> {
        match self {
            Cell::Float(values) => values,
            _ => unreachable!("the column was checked to be of floats"),
        }
    }

    /// Keeps those groups of `group` values that `kept` says.
    pub(crate) fn keep(&mut self, kept: &[bool], group: usize) {
        match self {
            Cell::Int64(values) => keep(values, kept, group),
            Cell::Float(values) => keep(values, kept, group),
            Cell::Float64(values) => keep(values, kept, group),
            Cell::Uint64(values) => keep(values, kept, group),
            // Drawn of the objects that are kept.
            Cell::Maps(_) | Cell::Bytes(_) => {}
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Cell::Int64(values) => values.len(),
            Cell::Float(values) => values.len(),
            Cell::Float64(values) => values.len(),
            Cell::Uint64(values) => values.len(),
            Cell::Maps(values) => values.len(),
            Cell::Bytes(values) => values.len(),
        }
    }

    /// Returns the bytes of memory that it occupies.
    pub(crate) fn held(&self) -> u64 {
        (match self {
            Cell::Int64(values) => 8 * values.capacity(),
            Cell::Float(values) => 4 * values.capacity(),
            Cell::Float64(values) => 8 * values.capacity(),
            Cell::Uint64(values) => 8 * values.capacity(),
            Cell::Maps(values) | Cell::Bytes(values) => values.capacity(),
        }) as u64
    }
}

fn keep<T>(values: &mut Vec<T>, kept: &[bool], group: usize) {
    let mut number = 0;
    values.retain(|_| {
        let keeps = kept.get(number / group.max(1)).copied().unwrap_or(false);
        number += 1;
        keeps
    });
}
