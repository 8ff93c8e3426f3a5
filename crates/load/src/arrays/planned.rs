//! The arrays of a record: planned, then written into their rows.

use super::geometry::{Placement, place};
use super::in_image::Positions;
use super::resolved::{ArrayOutput, Group, ResolvedArrays};
use super::stored::StoredArray;
use crate::buffer::RowMut;
use crate::error::SampleError;
use crate::image::SampleDraws;
use shardtool_format::example::Example;
use shardtool_read::Record;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The arrays of a record, with what was drawn for them.
pub(crate) struct PlannedArrays<'r> {
    arrays: Vec<(StoredArray<'r>, Arc<Placement>)>,
    /// Bytes of memory that decompressing the largest chunk takes; and the largest whole array, of those that follow their image.
    pub(crate) scratch: u64,
}

/// Memory that a worker reuses for the arrays of one record after the other.
#[derive(Default)]
pub(crate) struct ArrayScratch {
    /// A decompressed chunk.
    chunk: Vec<u8>,
    /// An array that follows its image.
    whole: Vec<u8>,
    /// Which pixel of the image each pixel of such an array's row shows.
    pub(crate) positions: Positions,
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
        let (mut arrays, mut scratch) = (vec![], 0);
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
                scratch = scratch.max(group.scratch(&array));
                if group.spec.image_axes.is_some() && array.bytes() > resolved.limits.max_bytes {
                    let (needed, allowed) = (array.bytes(), resolved.limits.max_bytes);
                    let source = shardtool_decode::Error::ArrayLimit { needed, allowed };
                    return Err(SampleError::Array { feature: output.feature.clone(), source });
                }
                let drawn = placement.get_or_insert_with(|| {
                    Arc::new(match group.spec.image_axes {
                        Some(_) => Placement::whole(&shape),
                        None => place(group, number, &shape, draws),
                    })
                });
                arrays.push((array, drawn.clone()));
                first = shape;
            }
        }
        Ok(PlannedArrays { arrays, scratch })
    }

    /// Returns the features of the arrays and, of each, the numbers of the chunks that are decoded.
    pub(crate) fn chunks<'c>(&'c self, resolved: &'c ResolvedArrays) -> impl Iterator<Item = (&'c str, Vec<u64>)> {
        let arrays = self.arrays.iter().zip(resolved.outputs());
        arrays.map(|((array, placement), output)| (&*output.feature, array.chunks(&placement.part)))
    }

    /// Checks that those arrays that follow the image have its size.
    ///
    /// # Errors
    /// [`SampleError::ArrayImageSize`].
    pub(crate) fn check_size(&self, resolved: &ResolvedArrays, (width, height): (u32, u32)) -> Result<(), SampleError> {
        for (group, (array, _), output) in self.with_groups(resolved) {
            let Some((first, second)) = group.spec.image_axes else { continue };
            let shape = array.shape();
            let (found, expected) = ([shape[first], shape[second]], [height, width].map(u64::from));
            if found != expected {
                return Err(SampleError::ArrayImageSize { feature: output.feature.clone(), found, expected });
            }
        }
        Ok(())
    }

    /// Returns the arrays that have an element for each pixel of an image of this size (width, height) and do not follow it, each
    /// once for all records.
    pub(crate) fn unmoved<'c>(
        &'c self,
        resolved: &'c ResolvedArrays,
        (width, height): (u32, u32),
    ) -> impl Iterator<Item = &'c str> {
        let arrays = self.with_groups(resolved).filter(move |(group, (array, _), output)| {
            let image = [height, width].map(u64::from);
            group.spec.image_axes.is_none()
                && array.shape().windows(2).any(|sides| sides == image)
                && !output.reported.swap(true, Ordering::Relaxed)
        });
        arrays.map(|(_, _, output)| &*output.feature)
    }

    /// Decodes the arrays of `record` into their rows; those that follow the image, as the positions in `scratch` say. Returns the
    /// bytes of values that were read, of a record that was made without them.
    pub(crate) fn write(
        &self,
        record: &Record,
        resolved: &ResolvedArrays,
        ArrayScratch { chunk, whole, positions }: &mut ArrayScratch,
        rows: &mut [RowMut<'_>],
    ) -> Result<u64, SampleError> {
        let mut read = 0;
        for ((group, (array, placement), output), row) in self.with_groups(resolved).zip(rows) {
            let source = (record, output.feature.as_str());
            if let Some((_, last)) = group.spec.image_axes {
                whole.clear();
                whole.reserve_exact(array.bytes() as usize);
                whole.resize(array.bytes() as usize, 0);
                read += array.decode(source, &placement.part, &resolved.limits, chunk, whole)?;
                let shape: Vec<_> = array.shape().iter().map(|length| *length as usize).collect();
                let planes = shape[..last - 1].iter().product();
                let pixel = shape[last + 1..].iter().product::<usize>() * output.dtype.bytes();
                positions.gather(whole, [planes, shape[last - 1], shape[last], pixel], &output.pad, row);
                continue;
            }
            if !placement.fills {
                row.chunks_exact_mut(output.pad.len()).for_each(|element| element.copy_from_slice(&output.pad));
            }
            read += array.decode(source, &placement.part, &resolved.limits, chunk, row)?;
        }
        Ok(read)
    }

    /// Returns the arrays with their groups and outputs.
    fn with_groups<'c>(
        &'c self,
        resolved: &'c ResolvedArrays,
    ) -> impl Iterator<Item = (&'c Group, &'c (StoredArray<'r>, Arc<Placement>), &'c ArrayOutput)> {
        let outputs = resolved.groups.iter().flat_map(|group| group.arrays.iter().map(move |output| (group, output)));
        outputs.zip(&self.arrays).map(|((group, output), array)| (group, array, output))
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
        let size = self.spec.crop.as_deref();
        let in_image = |d: usize| self.spec.image_axes.is_some_and(|(first, last)| (first..=last).contains(&d));
        let whole = |d: usize| size.is_none_or(|size| size[d].is_none()) && !in_image(d);
        if shape.len() != self.shape.len() || (0..shape.len()).any(|d| whole(d) && shape[d] != self.shape[d]) {
            let expected = (0..self.shape.len()).map(|d| whole(d).then_some(self.shape[d])).collect();
            return Err(SampleError::ArrayShape { feature: feature(), expected, found: shape });
        }
        let may_be_smaller = self.spec.pad_value.is_some() || self.spec.image_axes.is_some();
        if !may_be_smaller && shape.iter().zip(&self.shape).any(|(length, row)| length < row) {
            return Err(SampleError::ArraySmall { feature: feature(), found: shape, crop: self.shape.clone() });
        }
        Ok(())
    }
}
