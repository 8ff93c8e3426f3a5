//! Groups of [`Arrays`]: each row has a crop of its record's array, perhaps flipped and rotated by quarter turns, or the array in the
//! geometry of the record's image.

mod geometry;

use super::group::{ArrayOutput, ArrayScratch, Group, PlannedGroup, check_whole, pads, problem};
use super::moved_values::MovedValues;
use super::stored::StoredArray;
use crate::buffer::RowMut;
use crate::error::{ArrayProblem, Error, SampleError};
use crate::groups::Groups;
use crate::image::SampleDraws;
use crate::options::{ArrayKind, Arrays};
use crate::planes::Planes;
use geometry::{Placement, place};
use shardtool_decode::Limits;
use shardtool_format::array::ArrayDtype;
use shardtool_read::Record;

/// Arrays that share their geometry.
pub(super) struct CropGroup {
    /// The number of the group among those of its kind, from 0.
    number: u64,
    spec: Arrays,
    /// The shape of a row.
    shape: Vec<u64>,
    outputs: Vec<ArrayOutput>,
    /// What the geometry of the image changes in each array.
    moved_values: Option<Vec<MovedValues>>,
}

/// The arrays of a record, and where their elements go.
struct Planned<'g> {
    group: &'g CropGroup,
    arrays: Vec<StoredArray<'g>>,
    placement: Placement,
}

impl CropGroup {
    /// Checks a group. `first` are type and shape of each array in the first record.
    pub(super) fn new(
        number: u64,
        spec: &Arrays,
        groups: &Groups,
        first: &[(ArrayDtype, Vec<u64>)],
        batch: u32,
    ) -> Result<Self, Error> {
        let Some((name, (_, shape))) = spec.features.first().zip(first.first()) else {
            return Err(problem("", ArrayProblem::NoFeature));
        };
        let image = spec.image_axes.map(|_| image_size(groups, spec)).transpose()?;
        let shape = row_shape(spec, image, shape).map_err(|found| problem(name, found))?;
        let dtypes: Vec<_> = first.iter().map(|(dtype, _)| *dtype).collect();
        let moved_values = spec.kind.map(|kind| {
            let of_array = |(name, dtype): (&String, &ArrayDtype)| {
                check_steps(groups, kind)
                    .and_then(|()| MovedValues::new(kind, *dtype, &shape, spec.image_axes))
                    .map_err(|found| problem(name, found))
            };
            spec.features.iter().zip(&dtypes).map(of_array).collect::<Result<Vec<_>, _>>()
        });
        let moved_values = moved_values.transpose()?;
        // A pixel outside the image moves nowhere that is known.
        let unknown = (spec.kind == Some(ArrayKind::Flow)).then(|| vec![f64::NAN; spec.features.len()]);
        let pads = pads(&spec.features, spec.pad_value.as_ref().or(unknown.as_ref()).map(Vec::as_slice), &dtypes)?;
        let outputs = spec.features.iter().zip(dtypes).zip(pads);
        // No flow is known there.
        let pads_masked = spec.kind == Some(ArrayKind::Flow);
        let planes = |dtype: ArrayDtype| {
            let (first, last) = spec.image_axes?;
            let product = |lengths: &[u64]| lengths.iter().product::<u64>() as usize;
            Some(Planes { count: product(&shape[..first]), pixel: product(&shape[last + 1..]) * dtype.bytes() })
        };
        let outputs = outputs.map(|((feature, dtype), pad)| {
            let planes = planes(dtype);
            ArrayOutput::new(feature, dtype, &shape, pad, batch).map(|output| ArrayOutput {
                pads_masked,
                planes,
                ..output
            })
        });
        Ok(CropGroup { number, spec: spec.clone(), outputs: outputs.collect::<Result<_, _>>()?, shape, moved_values })
    }

    /// Checks that an array has the type and shape that its row needs.
    fn check(&self, array: &StoredArray<'_>, output: &ArrayOutput) -> Result<(), SampleError> {
        output.check_dtype(array)?;
        let (feature, shape) = (|| output.name.clone(), array.shape());
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

impl Group for CropGroup {
    fn features(&self) -> &[String] {
        &self.spec.features
    }

    fn outputs(&self) -> &[ArrayOutput] {
        &self.outputs
    }

    fn is_partial(&self) -> bool {
        self.spec.crop.is_some()
    }

    fn share(&self, array: &StoredArray<'_>) -> f64 {
        if self.spec.image_axes.is_some() { 1.0 } else { array.share(&self.shape) }
    }

    fn whole(&self, array: &StoredArray<'_>) -> u64 {
        if self.spec.image_axes.is_some() { array.bytes() } else { 0 }
    }

    fn image_axes(&self) -> Option<(usize, usize)> {
        self.spec.image_axes
    }

    fn plan<'g>(
        &'g self,
        arrays: Vec<StoredArray<'g>>,
        limits: &Limits,
        draws: SampleDraws,
    ) -> Result<Box<dyn PlannedGroup + 'g>, SampleError> {
        let mut expected = None;
        for (array, output) in arrays.iter().zip(&self.outputs) {
            self.check(array, output)?;
            let (feature, shape) = (|| output.name.clone(), array.shape());
            match &expected {
                None => expected = Some(shape),
                Some(expected) if *expected == shape => {}
                Some(expected) => {
                    let (other, expected) = (self.spec.features[0].clone(), expected.clone());
                    return Err(SampleError::ArrayShapes { feature: feature(), found: shape, other, expected });
                }
            }
            if self.spec.image_axes.is_some() {
                check_whole(array, &output.name, limits)?;
            }
        }
        let shape = expected.unwrap_or_default();
        let placement = match self.spec.image_axes {
            Some(_) => Placement::whole(&shape),
            None => place((&self.spec, &self.shape), self.number, &shape, draws),
        };
        Ok(Box::new(Planned { group: self, arrays, placement }))
    }
}

impl PlannedGroup for Planned<'_> {
    fn arrays(&self) -> &[StoredArray<'_>] {
        &self.arrays
    }

    fn chunks(&self, at: usize) -> Vec<u64> {
        self.arrays[at].chunks(&self.placement.part)
    }

    fn write(
        &self,
        record: &Record,
        limits: &Limits,
        scratch: &mut ArrayScratch,
        rows: &mut [RowMut<'_>],
    ) -> Result<u64, SampleError> {
        let mut read = 0;
        for (number, ((array, output), row)) in self.arrays.iter().zip(&self.group.outputs).zip(rows).enumerate() {
            let source = (record, output.name.as_str());
            if let Some((_, last)) = self.group.spec.image_axes {
                read += scratch.decode_whole(array, source, limits)?;
                let shape: Vec<_> = array.shape().iter().map(|length| *length as usize).collect();
                let planes = shape[..last - 1].iter().product();
                let pixel = shape[last + 1..].iter().product::<usize>() * output.dtype.bytes();
                let shape = [planes, shape[last - 1], shape[last], pixel];
                scratch.positions.gather(&scratch.whole, shape, &output.pad, row);
                if let Some(values) = &self.group.moved_values {
                    values[number].turn(&output.name, &scratch.positions, row)?;
                }
                continue;
            }
            if !self.placement.fills {
                output.fill(row);
            }
            read += array.decode(source, &self.placement.part, limits, &mut scratch.chunk, row)?;
        }
        Ok(read)
    }
}

/// Checks that no step does what cannot be done to elements of a kind.
fn check_steps(groups: &Groups, kind: ArrayKind) -> Result<(), ArrayProblem> {
    let views = groups.images.iter().flat_map(|images| &images.views);
    match kind {
        ArrayKind::Disparity if views.into_iter().any(|view| view.pipeline.tilts()) => {
            let expected = "steps that leave rows horizontal, since disparities are distances along a row";
            Err(ArrayProblem::Kind { expected, found: "a step that turns or shears the image".to_owned() })
        }
        _ => Ok(()),
    }
}

/// Returns height and width of the images that a group follows.
fn image_size(groups: &Groups, group: &Arrays) -> Result<[u64; 2], Error> {
    let name = group.features.first().map_or("", String::as_str);
    let refused = |reason| Err(problem(name, ArrayProblem::InImage { reason }));
    let Some(images) = &groups.images else {
        return refused("the loader has no image: give the steps of the image as well, or leave it out");
    };
    match &images.views[..] {
        [view] => {
            let (width, height) = view.pipeline.output_size();
            Ok([height.into(), width.into()])
        }
        _ => refused("each view of an image has its own geometry"),
    }
}

/// Returns the shape of a row, from that of the first array.
fn row_shape(spec: &Arrays, image: Option<[u64; 2]>, first: &[u64]) -> Result<Vec<u64>, ArrayProblem> {
    let dimensions = first.len();
    let check = |option, found| match found == dimensions {
        true => Ok(()),
        false => Err(ArrayProblem::Dimensions { option, found, dimensions }),
    };
    let mut shape = first.to_vec();
    if let Some((axes, image)) = spec.image_axes.zip(image) {
        if spec.crop.is_some() || !spec.flip.is_empty() || !spec.rotate90.is_empty() {
            let reason =
                "the geometry is that of the image: leave out the crop, the flips and the rotations of the array";
            return Err(ArrayProblem::InImage { reason });
        }
        if axes.0.checked_add(1) != Some(axes.1) || axes.1 >= dimensions {
            return Err(ArrayProblem::ImageAxes { axes, dimensions });
        }
        shape[axes.0..=axes.1].copy_from_slice(&image);
    } else if let Some(crop) = &spec.crop {
        check("crop", crop.len())?;
        shape = shape.iter().zip(crop).map(|(length, size)| size.unwrap_or(*length)).collect();
    } else if spec.pad_value.is_some() {
        return Err(ArrayProblem::PadWithoutCrop);
    }
    if let Some(dimension) = shape.iter().position(|length| *length == 0) {
        return Err(ArrayProblem::Empty { dimension });
    }
    if !spec.flip.is_empty() {
        check("flip", spec.flip.len())?;
    }
    if let Some(dimension) = spec.flip.iter().position(|p| !(0.0..=1.0).contains(p)) {
        return Err(ArrayProblem::Probability { dimension, found: spec.flip[dimension] });
    }
    for plane in spec.rotate90.iter().copied() {
        let (a, b) = plane;
        if a == b || a.max(b) >= dimensions {
            return Err(ArrayProblem::Plane { plane, dimensions });
        }
        if shape[a] != shape[b] {
            return Err(ArrayProblem::Sides { plane, lengths: (shape[a], shape[b]) });
        }
    }
    Ok(shape)
}
