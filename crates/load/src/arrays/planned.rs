//! The arrays of a record: planned, then written into their rows.

use super::group::{ArrayOutput, ArrayScratch, Group, PlannedGroup, scratch};
use super::resolved::ResolvedArrays;
use super::stored::StoredArray;
use crate::buffer::RowMut;
use crate::error::SampleError;
use crate::image::SampleDraws;
use shardtool_format::example::Example;
use shardtool_read::Record;
use std::sync::atomic::Ordering;

/// The arrays of a record, with what was drawn for them.
pub(crate) struct PlannedArrays<'r> {
    groups: Vec<(&'r dyn Group, Box<dyn PlannedGroup + 'r>)>,
    /// Bytes of scratch of the arrays.
    pub(crate) scratch: u64,
}

impl<'r> PlannedArrays<'r> {
    /// Finds the arrays of a record and draws what is done to them.
    ///
    /// # Errors
    /// If an array is missing, invalid, or does not have the type and shape that its row needs.
    pub(crate) fn of(
        example: &Example<'r>,
        resolved: &'r ResolvedArrays,
        draws: SampleDraws,
    ) -> Result<Self, SampleError> {
        let mut groups = vec![];
        for group in &resolved.groups {
            let arrays = group.features().iter().map(|feature| StoredArray::of(example, feature, &resolved.limits));
            let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
            groups.push((&**group, group.plan(arrays, &resolved.limits, draws)?));
        }
        let planned = PlannedArrays { groups, scratch: 0 };
        let scratch = scratch(planned.arrays().map(|(group, array, _)| (group, array)));
        Ok(PlannedArrays { scratch, ..planned })
    }

    /// Returns the features of the arrays and, of each, the numbers of the chunks that are decoded.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (&str, Vec<u64>)> {
        let of = |(group, planned): &'_ (&'r dyn Group, Box<dyn PlannedGroup + 'r>)| -> Vec<_> {
            let features = group.features().iter().enumerate();
            features.map(|(at, feature)| (feature.as_str(), planned.chunks(at))).collect()
        };
        self.groups.iter().flat_map(of)
    }

    /// Checks that those arrays that follow the image have its size.
    ///
    /// # Errors
    /// [`SampleError::ArrayImageSize`].
    pub(crate) fn check_size(&self, (width, height): (u32, u32)) -> Result<(), SampleError> {
        for (group, array, output) in self.arrays() {
            let Some((first, second)) = group.image_axes() else { continue };
            let shape = array.shape();
            let (found, expected) = ([shape[first], shape[second]], [height, width].map(u64::from));
            if found != expected {
                return Err(SampleError::ArrayImageSize { feature: output.name.clone(), found, expected });
            }
        }
        Ok(())
    }

    /// Returns the arrays that have an element for each pixel of an image of this size (width, height) and do not follow it, each
    /// once for all records.
    pub(crate) fn unmoved(&self, (width, height): (u32, u32)) -> impl Iterator<Item = &str> {
        let arrays = self.arrays().filter(move |(group, array, output)| {
            let image = [height, width].map(u64::from);
            group.image_axes().is_none()
                && array.shape().windows(2).any(|sides| sides == image)
                && !output.reported.swap(true, Ordering::Relaxed)
        });
        arrays.map(|(_, _, output)| &*output.name)
    }

    /// Decodes the arrays of `record` into their rows; those that follow the image, as the positions in `scratch` say. Returns the
    /// bytes of values that were read, of a record that was made without them.
    pub(crate) fn write(
        &self,
        record: &Record,
        resolved: &ResolvedArrays,
        scratch: &mut ArrayScratch,
        mut rows: &mut [RowMut<'_>],
    ) -> Result<u64, SampleError> {
        let mut read = 0;
        for (group, planned) in &self.groups {
            let (own, others) = rows.split_at_mut(group.outputs().len().min(rows.len()));
            read += planned.write(record, &resolved.limits, scratch, own)?;
            rows = others;
        }
        Ok(read)
    }

    /// Returns the arrays with their groups and outputs.
    fn arrays(&self) -> impl Iterator<Item = (&dyn Group, &StoredArray<'_>, &ArrayOutput)> {
        self.groups.iter().flat_map(|(group, planned)| {
            let arrays = planned.arrays().iter().zip(group.outputs());
            arrays.map(|(array, output)| (*group, array, output))
        })
    }
}
