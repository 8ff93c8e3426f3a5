//! Groups of arrays, checked against the dataset: the type and shape that each has in a row.

use super::pad_value;
use super::stored::StoredArray;
use crate::error::{ArrayProblem, Error, Result, SampleError};
use crate::features::check_bytes;
use crate::groups::Groups;
use crate::options::Arrays;
use crate::sampled_records::{SAMPLED_RECORDS, SampledRecords};
use crate::splits::Splits;
use shardtool_decode::Limits;
use shardtool_format::array::ArrayDtype;
use shardtool_read::{Record, Shard, Split};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes of one array of a batch, at most: 2⁴⁸, so that sums and products of several batches do not overflow.
const MAX_BATCH_BYTES: u64 = 1 << 48;

/// Smaller records are read whole: it takes less time than finding the chunks.
const MIN_PARTIAL_RECORD: u64 = 1 << 20;

/// The arrays of a batch.
#[derive(Default)]
pub(crate) struct ResolvedArrays {
    pub(crate) groups: Vec<Group>,
    pub(crate) limits: Limits,
    /// Bytes of memory that a record read into memory, or decompressing one of its chunks, is expected to take.
    pub(crate) scratch: u64,
    /// Whether records are read without the chunks that crops do not need.
    pub(crate) partial: bool,
    /// Mean bytes of the chunks that a row needs, if records in an object store are read so.
    pub(crate) expected: u64,
}

/// Bytes of the records of a split that are read to estimate memory; the last one may exceed it.
const SAMPLED_BYTES: u64 = 64 << 20;

/// Arrays that share their geometry.
pub(crate) struct Group {
    pub(crate) spec: Arrays,
    /// The shape of a row.
    pub(crate) shape: Vec<u64>,
    pub(crate) arrays: Vec<ArrayOutput>,
}

/// One array of a batch.
pub(crate) struct ArrayOutput {
    pub(crate) feature: String,
    pub(crate) dtype: ArrayDtype,
    /// The element around an array that is smaller than the crop; zero without padding.
    pub(crate) pad: Vec<u8>,
    /// Bytes of a row.
    pub(crate) row_bytes: usize,
    /// Whether it was reported that the array does not follow its image.
    pub(crate) reported: AtomicBool,
}

impl ResolvedArrays {
    /// Checks the groups of a configuration. The first readable record with the arrays gives their types and shapes.
    pub(crate) fn new(groups: &Groups, batch: u32, splits: &Splits, stored: &SampledRecords) -> Result<Self> {
        let limits = groups.images.as_ref().map_or(Limits::default(), |images| images.pixels.limits);
        let mut resolved = ResolvedArrays { limits, ..ResolvedArrays::default() };
        let given: Vec<_> = groups.arrays.iter().flat_map(|group| &group.features).collect();
        for (at, feature) in given.iter().enumerate() {
            check_bytes(feature, "arrays", splits)?;
            if given[..at].contains(feature) {
                return Err(problem(feature, ArrayProblem::Repeated));
            }
        }
        for group in &groups.arrays {
            let image = group.image_axes.map(|_| image_size(groups, group)).transpose()?;
            let first = first_arrays(group, splits, stored, &limits)?;
            resolved.groups.push(Group::new(group, image, &first, batch)?);
        }
        if !resolved.groups.is_empty() {
            resolved.scratch = resolved.typical_scratch(splits, stored);
            let crops = groups.arrays.iter().any(|group| group.crop.is_some());
            resolved.partial = crops && !groups.records && splits.mean_record() >= MIN_PARTIAL_RECORD;
            resolved.expected = resolved.expected_bytes(splits, stored).unwrap_or_else(|| splits.mean_record());
        }
        Ok(resolved)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns whether an array follows the geometry of its image.
    pub(crate) fn follow_image(&self) -> bool {
        self.groups.iter().any(|group| group.spec.image_axes.is_some())
    }

    /// Reads a record, perhaps without the chunks that are not needed.
    pub(crate) fn record(&self, shard: &Arc<Shard>, row: u64) -> shardtool_read::Result<Record> {
        if !self.partial {
            return shard.record(row, vec![]);
        }
        shard.record_without_values(row, &self.features())
    }

    /// Makes a record of its parts that were requested, or reads it whole.
    pub(crate) fn record_of_parts<'b>(
        &self,
        shard: &Arc<Shard>,
        row: u64,
        part: impl Fn(&Range<u64>) -> Option<&'b [u8]>,
    ) -> shardtool_read::Result<Record> {
        match shard.record_of_parts(row, &self.features(), part)? {
            Some(record) => Ok(record),
            None => shard.record(row, vec![]),
        }
    }

    /// Returns the features of all arrays.
    pub(crate) fn features(&self) -> Vec<&str> {
        self.outputs().map(|array| array.feature.as_str()).collect()
    }

    /// Returns the arrays of a batch, in the order of the configuration.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &ArrayOutput> {
        self.groups.iter().flat_map(|group| &group.arrays)
    }

    /// Returns the arrays of a batch with the shapes of their rows.
    pub(crate) fn with_shapes(&self) -> impl Iterator<Item = (&ArrayOutput, &[u64])> {
        self.groups.iter().flat_map(|group| group.arrays.iter().map(|array| (array, &group.shape[..])))
    }

    /// Returns the bytes of a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.outputs().map(|array| array.row_bytes as u64).sum()
    }

    /// Returns the mean bytes of the chunks that the crops of a few records meet; `None` if no record was read from a store.
    fn expected_bytes(&self, splits: &Splits, stored: &SampledRecords) -> Option<u64> {
        let needed = |record: &Record| {
            let example = record.example().ok()?;
            let groups = self.groups.iter().flat_map(|group| group.arrays.iter().map(move |array| (group, array)));
            let arrays = groups.map(|(group, output)| {
                let array = StoredArray::of(&example, &output.feature, &self.limits).ok()?;
                let share = if group.spec.image_axes.is_some() { 1.0 } else { array.share(&group.shape) };
                Some((array.stored_bytes() as f64 * share) as u64)
            });
            arrays.sum::<Option<u64>>()
        };
        let records = (0..splits.as_slice().len()).flat_map(|number| stored.of(number));
        let needed: Vec<u64> = records.filter_map(needed).collect();
        needed.iter().sum::<u64>().checked_div(needed.len() as u64)
    }

    /// Returns the most that a few records need, plus a quarter, as for images.
    fn typical_scratch(&self, splits: &Splits, stored: &SampledRecords) -> u64 {
        let needed = |record: &Record| {
            let Ok(example) = record.example() else { return 0 };
            let groups = self.groups.iter().flat_map(|group| group.arrays.iter().map(move |array| (group, array)));
            let scratch = groups.filter_map(|(group, output)| {
                Some(group.scratch(&StoredArray::of(&example, &output.feature, &self.limits).ok()?))
            });
            scratch.max().unwrap_or(0) + record.buffer_bytes()
        };
        let features = self.features();
        let mut most = 0;
        for (number, split) in splits.as_slice().iter().enumerate() {
            most = stored.of(number).iter().map(needed).fold(most, u64::max);
            let mut bytes = 0;
            for record in sampled(split).filter_map(|id| layout_of(split, id, &features).ok()) {
                most = most.max(needed(&record));
                bytes += record.data().len() as u64 - record.unread_bytes();
                if bytes > SAMPLED_BYTES {
                    break;
                }
            }
        }
        most + most / 4
    }
}

/// Reads a record, without the chunks of its arrays where that is possible.
fn layout_of(split: &Split, id: u64, features: &[&str]) -> shardtool_read::Result<Record> {
    let (shard, row) = split.locate(id)?;
    split.shard(shard)?.record_without_values(row, features)
}

/// Returns some records of a split that is not in an object store.
fn sampled(split: &Split) -> impl Iterator<Item = u64> + use<> {
    let (step, records) = ((split.len() / SAMPLED_RECORDS).max(1) as usize, split.len());
    let most = if split.is_in_store() { 0 } else { SAMPLED_RECORDS as usize };
    (0..records).step_by(step).take(most)
}

/// Returns type and shape of each array of a group, in the first record that has them.
fn first_arrays(
    group: &Arrays,
    splits: &Splits,
    stored: &SampledRecords,
    limits: &Limits,
) -> Result<Vec<(ArrayDtype, Vec<u64>)>> {
    let read = |record: &Record| {
        let example = record.example().map_err(SampleError::from)?;
        let arrays = group.features.iter().map(|feature| {
            let array = StoredArray::of(&example, feature, limits)?;
            Ok((array.dtype(), array.shape()))
        });
        let arrays = arrays.collect::<std::result::Result<Vec<_>, SampleError>>()?;
        record.check_readable()?;
        Ok(arrays)
    };
    let mut first_error = None;
    for (number, split) in splits.as_slice().iter().enumerate() {
        let local = (0..split.len()).take(if split.is_in_store() { 0 } else { SAMPLED_RECORDS as usize });
        let features: Vec<_> = group.features.iter().map(String::as_str).collect();
        let local = local.map(|id| read(&layout_of(split, id, &features)?));
        for found in stored.of(number).iter().map(read).chain(local) {
            match found {
                Ok(arrays) => return Ok(arrays),
                Err(error) => first_error = first_error.or(Some((split.name().to_owned(), error))),
            }
        }
    }
    let features = group.features.clone();
    Err(match first_error {
        Some((split, source)) => Error::FirstArrays { features, split, source: Box::new(source) },
        None => problem(features.first().map_or("", String::as_str), ArrayProblem::NoFeature),
    })
}

fn problem(feature: &str, problem: ArrayProblem) -> Error {
    Error::Array { feature: feature.to_owned(), problem }
}

/// Returns height and width of the images that a group follows.
fn image_size(groups: &Groups, group: &Arrays) -> Result<[u64; 2]> {
    let name = group.features.first().map_or("", String::as_str);
    let refused = |reason| Err(problem(name, ArrayProblem::InImage { reason }));
    let Some(images) = &groups.images else {
        return refused("there is no image: give the steps of the image as well, or leave it out");
    };
    match &images.views[..] {
        [view] => {
            let (width, height) = view.pipeline.output_size();
            Ok([height.into(), width.into()])
        }
        _ => refused("each view of an image has its own geometry"),
    }
}

impl Group {
    /// Returns the scratch that an array of the group takes.
    pub(crate) fn scratch(&self, array: &StoredArray<'_>) -> u64 {
        array.scratch + if self.spec.image_axes.is_some() { array.bytes() } else { 0 }
    }

    fn new(spec: &Arrays, image: Option<[u64; 2]>, first: &[(ArrayDtype, Vec<u64>)], batch: u32) -> Result<Self> {
        let Some((name, (_, shape))) = spec.features.first().zip(first.first()) else {
            return Err(problem("", ArrayProblem::NoFeature));
        };
        let shape = row_shape(spec, image, shape).map_err(|found| problem(name, found))?;
        if let Some(pad) = &spec.pad_value
            && pad.len() != spec.features.len()
        {
            let (found, features) = (pad.len(), spec.features.len());
            return Err(problem(name, ArrayProblem::PadCount { found, features }));
        }
        let arrays = spec.features.iter().zip(first).enumerate().map(|(at, (feature, (dtype, _)))| {
            let (failed, value) = (|found| problem(feature, found), spec.pad_value.as_ref().map_or(0.0, |pad| pad[at]));
            let cannot = ArrayProblem::Pad { value, dtype: dtype.name() };
            let pad = pad_value::element(value, *dtype).ok_or_else(|| failed(cannot))?;
            let mut factors = shape.iter().copied().chain([dtype.bytes() as u64]);
            let bytes = factors.try_fold(1u64, u64::checked_mul);
            let fits =
                bytes.and_then(|bytes| bytes.checked_mul(batch.into())).is_some_and(|all| all <= MAX_BATCH_BYTES);
            match bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|_| fits) {
                Some(row_bytes) => {
                    let (feature, reported) = (feature.clone(), AtomicBool::new(false));
                    Ok(ArrayOutput { feature, dtype: *dtype, pad, row_bytes, reported })
                }
                None => Err(failed(ArrayProblem::TooLarge { shape: shape.clone(), dtype: dtype.name() })),
            }
        });
        Ok(Group { arrays: arrays.collect::<Result<_>>()?, spec: spec.clone(), shape })
    }
}

/// Returns the shape of a row, from that of the first array.
fn row_shape(spec: &Arrays, image: Option<[u64; 2]>, first: &[u64]) -> std::result::Result<Vec<u64>, ArrayProblem> {
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
