//! Makes the objects of each row of a batch from those of several rows.

use crate::buffer::OwnedBytes;
use crate::column_values::Values;
use crate::error::{Error, Result};
use crate::objects::{BOX, ObjectColumns};

/// An object that a row of the result has.
pub(crate) struct Kept<P> {
    /// The row that it comes from, and its number there.
    pub(crate) source: usize,
    pub(crate) object: usize,
    /// Its box in the result.
    pub(crate) corners: [f32; BOX],
    /// What else is known of its place in the result.
    pub(crate) place: P,
}

/// The boxes of a batch.
pub(crate) struct Boxes<'v> {
    /// The number of the first object of each row, and the number of all objects.
    pub(crate) starts: Vec<usize>,
    corners: &'v [[f32; BOX]],
}

impl<'v> Boxes<'v> {
    /// Returns the boxes of a batch; `None` if its column has none.
    pub(crate) fn of(columns: &ObjectColumns, values: &'v [Values]) -> Option<Self> {
        let Values::RaggedFloat { offsets, values } = &values[columns.boxes] else { return None };
        let starts = offsets.iter().map(|offset| *offset as usize / BOX).collect();
        Some(Boxes { starts, corners: values.as_chunks::<BOX>().0 })
    }

    /// Returns the boxes of a row.
    pub(crate) fn of_row(&self, row: usize) -> &'v [[f32; BOX]] {
        &self.corners[self.starts[row]..self.starts[row + 1]]
    }
}

/// Replaces the objects of every row by those that it keeps, in their order, with their boxes there. `starts` are those of the boxes
/// before. Masks have `mask` bytes each; `write` is given the row, the object, its mask in its source, and the one to fill, all 0.
///
/// # Errors
/// [`Error::Alloc`].
pub(crate) fn replace<P>(
    columns: &ObjectColumns,
    values: &mut [Values],
    starts: &[usize],
    kept: &[Vec<Kept<P>>],
    mask: usize,
    mut write: impl FnMut(usize, &Kept<P>, &[u8], &mut [u8]),
) -> Result<()> {
    for column in columns.all() {
        values[column] = match &values[column] {
            Values::RaggedFloat { offsets, values } => {
                let (offsets, values) = take(offsets, values, starts, kept);
                Values::RaggedFloat { offsets, values }
            }
            Values::RaggedInt64 { offsets, values } => {
                let (offsets, values) = take(offsets, values, starts, kept);
                Values::RaggedInt64 { offsets, values }
            }
            Values::RaggedFloat64 { offsets, values } => {
                let (offsets, values) = take(offsets, values, starts, kept);
                Values::RaggedFloat64 { offsets, values }
            }
            Values::RaggedUint64 { offsets, values } => {
                let (offsets, values) = take(offsets, values, starts, kept);
                Values::RaggedUint64 { offsets, values }
            }
            Values::RaggedUint8 { offsets, values } => {
                let (offsets, values) = masks(offsets, values, starts, kept, mask, &mut write)?;
                Values::RaggedUint8 { offsets, values }
            }
            _ => unreachable!("values of objects are ragged numbers"),
        };
    }
    if let Values::RaggedFloat { values, .. } = &mut values[columns.boxes] {
        let corners = kept.iter().flatten().map(|kept| kept.corners);
        values.as_chunks_mut::<BOX>().0.iter_mut().zip(corners).for_each(|(value, corners)| *value = corners);
    }
    Ok(())
}

/// Calls `f` with each object of a row and its points, `[k * 3]`: x, y and visibility in pixels of its source.
pub(crate) fn each_points<P>(
    columns: &ObjectColumns,
    values: &mut [Values],
    (row, kept): (usize, &[Kept<P>]),
    mut f: impl FnMut(&Kept<P>, &mut [f32]),
) {
    if let Some(column) = columns.keypoints
        && let Values::RaggedFloat { offsets, values } = &mut values[column]
    {
        let values = &mut values[offsets[row] as usize..offsets[row + 1] as usize];
        let each = values.len() / kept.len().max(1);
        kept.iter().zip(values.chunks_mut(each.max(1))).for_each(|(kept, points)| f(kept, points));
    }
}

/// Returns the values of the objects that each row keeps.
fn take<T: Copy, P>(offsets: &[i64], values: &[T], starts: &[usize], kept: &[Vec<Kept<P>>]) -> (Vec<i64>, Vec<T>) {
    let (mut ends, mut taken) = (vec![0], vec![]);
    for row in kept {
        for Kept { source, object, .. } in row {
            let values = &values[offsets[*source] as usize..offsets[source + 1] as usize];
            let each = values.len() / (starts[source + 1] - starts[*source]);
            taken.extend_from_slice(&values[object * each..(object + 1) * each]);
        }
        ends.push(taken.len() as i64);
    }
    (ends, taken)
}

/// Returns the masks of the objects that each row keeps.
///
/// # Errors
/// [`Error::Alloc`].
fn masks<P>(
    offsets: &[i64],
    values: &[u8],
    starts: &[usize],
    kept: &[Vec<Kept<P>>],
    mask: usize,
    write: &mut impl FnMut(usize, &Kept<P>, &[u8], &mut [u8]),
) -> Result<(Vec<i64>, OwnedBytes)> {
    let mut ends = vec![0];
    ends.extend(kept.iter().scan(0, |end, kept| {
        *end += (kept.len() * mask) as i64;
        Some(*end)
    }));
    let bytes = kept.iter().map(Vec::len).sum::<usize>() * mask;
    // All 0.
    let mut moved = OwnedBytes::alloc(bytes).map_err(|source| Error::Alloc { bytes, source })?;
    let objects = kept.iter().enumerate().flat_map(|(row, kept)| kept.iter().map(move |kept| (row, kept)));
    for ((row, kept), moved) in objects.zip(moved.chunks_exact_mut(mask.max(1))) {
        debug_assert_eq!(offsets[kept.source] as usize, starts[kept.source] * mask);
        write(row, kept, &values[(starts[kept.source] + kept.object) * mask..][..mask], moved);
    }
    Ok((ends, moved))
}
