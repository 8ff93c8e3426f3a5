//! The arrays of a record: planned, then written into their rows.

use super::geometry::{Placement, place};
use super::resolved::{ArrayOutput, Group, ResolvedArrays};
use super::stored::StoredArray;
use crate::bad_samples::SampleError;
use crate::buffer::RowMut;
use crate::image::SampleDraws;
use shardtool_format::example::Example;
use shardtool_read::Record;
use std::sync::Arc;

/// The arrays of a record, with what was drawn for them.
pub(crate) struct PlannedArrays<'r> {
    arrays: Vec<(StoredArray<'r>, Arc<Placement>)>,
    /// Bytes of memory that decompressing the largest chunk takes.
    pub(crate) scratch: u64,
}

impl<'r> PlannedArrays<'r> {
    /// Finds the arrays of a record and draws their geometry.
    ///
    /// # Errors
    /// If an array is missing, invalid, or does not have the type and shape that its row needs.
    pub(crate) fn of(
        example: &Example<'r>,
        resolved: &ResolvedArrays,
        draws: SampleDraws,
    ) -> Result<Self, SampleError> {
        let mut arrays = vec![];
        for (number, group) in (0..).zip(&resolved.groups) {
            let mut placement: Option<Arc<Placement>> = None;
            let mut first = vec![];
            for output in &group.arrays {
                let array = StoredArray::of(example, &output.feature, &resolved.limits)?;
                group.check(&array, output)?;
                let shape = array.shape();
                if placement.is_some() && first != shape {
                    let (feature, other) = (output.feature.clone(), group.arrays[0].feature.clone());
                    return Err(SampleError::ArrayShapes { feature, found: shape, other, expected: first });
                }
                let drawn = placement.get_or_insert_with(|| Arc::new(place(group, number, &shape, draws)));
                arrays.push((array, drawn.clone()));
                first = shape;
            }
        }
        let scratch = arrays.iter().map(|(array, _)| array.scratch).max().unwrap_or(0);
        Ok(PlannedArrays { arrays, scratch })
    }

    /// Returns the features of the arrays and, of each, the numbers of the chunks that are decoded.
    pub(crate) fn chunks<'c>(&'c self, resolved: &'c ResolvedArrays) -> impl Iterator<Item = (&'c str, Vec<u64>)> {
        let arrays = self.arrays.iter().zip(resolved.outputs());
        arrays.map(|((array, placement), output)| (&*output.feature, array.chunks(&placement.part)))
    }

    /// Decodes the arrays of `record` into their rows. `chunk` is scratch. Returns the bytes of values that were read, of a record
    /// that was made without them.
    pub(crate) fn write(
        &self,
        record: &Record,
        resolved: &ResolvedArrays,
        chunk: &mut Vec<u8>,
        rows: &mut [RowMut<'_>],
    ) -> Result<u64, SampleError> {
        let mut read = 0;
        for (((array, placement), output), row) in self.arrays.iter().zip(resolved.outputs()).zip(rows) {
            if !placement.fills {
                row.chunks_exact_mut(output.pad.len()).for_each(|element| element.copy_from_slice(&output.pad));
            }
            read += array.decode((record, &output.feature), &placement.part, &resolved.limits, chunk, row)?;
        }
        Ok(read)
    }
}

impl Group {
    /// Checks that an array has the type and shape that its row needs.
    fn check(&self, array: &StoredArray<'_>, output: &ArrayOutput) -> Result<(), SampleError> {
        let (feature, shape) = (|| output.feature.clone(), array.shape());
        if array.dtype() != output.dtype {
            let (expected, found) = (output.dtype.name(), array.dtype().name());
            return Err(SampleError::ArrayDtype { feature: feature(), expected, found });
        }
        let size = self.spec.crop.as_ref().map(|crop| &crop.size[..]);
        let whole = |d: usize| size.is_none_or(|size| size[d].is_none());
        if shape.len() != self.shape.len() || (0..shape.len()).any(|d| whole(d) && shape[d] != self.shape[d]) {
            let expected = (0..self.shape.len()).map(|d| whole(d).then_some(self.shape[d])).collect();
            return Err(SampleError::ArrayShape { feature: feature(), expected, found: shape });
        }
        if self.spec.pad.is_none() && shape.iter().zip(&self.shape).any(|(length, row)| length < row) {
            return Err(SampleError::ArraySmall { feature: feature(), found: shape, crop: self.shape.clone() });
        }
        Ok(())
    }
}
