//! Groups of arrays, checked against the dataset.

use super::crop::CropGroup;
use super::group::{ArrayOutput, Group, problem, scratch};
use super::ragged::RaggedGroup;
use super::stored::StoredArray;
use crate::error::{ArrayProblem, Error, Result, SampleError};
use crate::features::check_bytes;
use crate::groups::Groups;
use crate::sampled_records::{SAMPLED_RECORDS, SampledRecords};
use crate::splits::Splits;
use shardtool_decode::Limits;
use shardtool_format::array::ArrayDtype;
use shardtool_read::{Record, Shard, Split};
use std::ops::Range;
use std::sync::Arc;

/// Smaller records are read whole: it takes less time than finding the chunks.
const MIN_PARTIAL_RECORD: u64 = 1 << 20;

/// The arrays of a batch.
#[derive(Default)]
pub(crate) struct ResolvedArrays {
    pub(crate) groups: Vec<Box<dyn Group>>,
    pub(crate) limits: Limits,
    /// Bytes of memory that a record read into memory, or decompressing one of its chunks, is expected to take.
    pub(crate) scratch: u64,
    /// Whether records are read without the chunks that rows do not need.
    pub(crate) partial: bool,
    /// Mean bytes of the chunks that a row needs, if records in an object store are read so.
    pub(crate) expected: u64,
}

/// Bytes of the records of a split that are read to estimate memory; the last one may exceed it.
const SAMPLED_BYTES: u64 = 64 << 20;

impl ResolvedArrays {
    /// Checks the groups of a configuration. The first readable record with the arrays gives their types and shapes.
    pub(crate) fn new(groups: &Groups, batch: u32, splits: &Splits, stored: &SampledRecords) -> Result<Self> {
        let limits = groups.images.as_ref().map_or(Limits::default(), |images| images.pixels.limits);
        let mut resolved = ResolvedArrays { limits, ..ResolvedArrays::default() };
        let given = groups.arrays.iter().flat_map(|group| &group.features);
        let given: Vec<_> = given.chain(groups.ragged.iter().flat_map(|group| &group.features)).collect();
        for (at, feature) in given.iter().enumerate() {
            check_bytes(feature, "arrays", splits)?;
            if given[..at].contains(feature) {
                return Err(problem(feature, ArrayProblem::Repeated));
            }
        }
        let first = |features: &[String]| first_arrays(features, splits, stored, &limits);
        for (number, group) in (0..).zip(&groups.arrays) {
            let first = first(&group.features)?;
            resolved.groups.push(Box::new(CropGroup::new(number, group, groups, &first, batch)?));
        }
        for (number, group) in (0..).zip(&groups.ragged) {
            let first = first(&group.features)?;
            resolved.groups.push(Box::new(RaggedGroup::new(number, group, &first, batch)?));
        }
        let names: Vec<_> = resolved.outputs().map(|output| &output.name).collect();
        if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(problem(twice, ArrayProblem::Repeated));
        }
        if !resolved.groups.is_empty() {
            resolved.scratch = resolved.typical_scratch(splits, stored);
            let partial = resolved.groups.iter().any(|group| group.is_partial());
            resolved.partial = partial && !groups.records && splits.mean_record() >= MIN_PARTIAL_RECORD;
            resolved.expected = resolved.expected_bytes(splits, stored).unwrap_or_else(|| splits.mean_record());
        }
        Ok(resolved)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns whether an array follows the geometry of its image.
    pub(crate) fn follow_image(&self) -> bool {
        self.groups.iter().any(|group| group.image_axes().is_some())
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
        self.groups.iter().flat_map(|group| group.features()).map(String::as_str).collect()
    }

    /// Returns the arrays of a batch, in the order of the configuration.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &ArrayOutput> {
        self.groups.iter().flat_map(|group| group.outputs())
    }

    /// Returns the bytes of a row.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.outputs().map(|array| array.row_bytes as u64).sum()
    }

    /// Returns the features of all arrays with their groups.
    fn with_features(&self) -> impl Iterator<Item = (&dyn Group, &String)> {
        self.groups.iter().flat_map(|group| group.features().iter().map(|feature| (&**group, feature)))
    }

    /// Returns the mean bytes of the chunks that the rows of a few records meet; `None` if no record was read from a store.
    fn expected_bytes(&self, splits: &Splits, stored: &SampledRecords) -> Option<u64> {
        let needed = |record: &Record| {
            let example = record.example().ok()?;
            let arrays = self.with_features().map(|(group, feature)| {
                let array = StoredArray::of(&example, feature, &self.limits).ok()?;
                Some((array.stored_bytes() as f64 * group.share(&array)) as u64)
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
            let stored = |feature: &String| StoredArray::of(&example, feature, &self.limits).ok();
            let arrays: Vec<_> =
                self.with_features().filter_map(|(group, name)| Some((group, stored(name)?))).collect();
            scratch(arrays.iter().map(|(group, array)| (*group, array))) + record.buffer_bytes()
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
    features: &[String],
    splits: &Splits,
    stored: &SampledRecords,
    limits: &Limits,
) -> Result<Vec<(ArrayDtype, Vec<u64>)>> {
    let read = |record: &Record| {
        let example = record.example().map_err(SampleError::from)?;
        let arrays = features.iter().map(|feature| {
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
        let names: Vec<_> = features.iter().map(String::as_str).collect();
        let local = local.map(|id| read(&layout_of(split, id, &names)?));
        for found in stored.of(number).iter().map(read).chain(local) {
            match found {
                Ok(arrays) => return Ok(arrays),
                Err(error) => first_error = first_error.or(Some((split.name().to_owned(), error))),
            }
        }
    }
    Err(match first_error {
        Some((split, source)) => Error::FirstArrays { features: features.to_vec(), split, source: Box::new(source) },
        None => problem(features.first().map_or("", String::as_str), ArrayProblem::NoFeature),
    })
}
