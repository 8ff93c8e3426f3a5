//! Columns compared with a few records of the dataset.

use crate::arrays::pad_value;
use crate::classes::describe;
use crate::columns::ResolvedColumn;
use crate::error::{Error, Result, SampleError};
use crate::image::OBJECTS;
use crate::objects::BOX;
use crate::options::InvalidOptions;
use crate::sampled_records::{SAMPLED_RECORDS, SampledRecords};
use crate::splits::Splits;
use shardtool_format::array::ArrayDtype;
use shardtool_format::manifest::DType;
use shardtool_read::{Record, Split};

/// Returns the expected bytes of a row's ragged values and byte strings, and of its record if that is read into memory:
/// the maximum of a few records.
pub(crate) fn expected_bytes(
    columns: &[ResolvedColumn],
    splits: &Splits,
    stored: &SampledRecords,
    keeps_records: bool,
) -> u64 {
    let ragged: Vec<_> = columns.iter().filter(|c| c.width().is_none()).collect();
    if ragged.is_empty() && !keeps_records {
        return 0;
    }
    let measured = |number: usize, record: &Record| {
        let mut example = None;
        let cells = ragged.iter().map(|column| {
            let mut cell = column.cell();
            column.read(number, record, &mut example, (None, &mut cell)).ok()?;
            // Stored in the row's cell and in the column's array, both of which grow by doubling.
            Some(4 * cell.held())
        });
        let cells: u64 = cells.collect::<Option<Vec<_>>>()?.into_iter().sum();
        let own = if keeps_records { record.buffer_bytes() } else { 0 };
        Some(cells + own)
    };
    sampled(splits, stored, measured).into_iter().max().unwrap_or(0)
}

/// Returns the expected bytes of the masks of a row, each of `mask` bytes: those of the mean of a few records, since their number
/// differs much, and maps of them in the row's cell.
pub(crate) fn expected_masks(boxes: &ResolvedColumn, mask: u64, splits: &Splits, stored: &SampledRecords) -> u64 {
    let count = |number: usize, record: &Record| {
        let mut cell = boxes.cell();
        boxes.read(number, record, &mut None, (None, &mut cell)).ok()?;
        Some((cell.len() / BOX) as u64)
    };
    let counts = sampled(splits, stored, count);
    let objects = counts.iter().sum::<u64>().div_ceil(counts.len().max(1) as u64);
    mask * (objects + objects.div_ceil(OBJECTS as u64))
}

/// Returns what is measured of a few records of each split, without those that cannot be read.
fn sampled(splits: &Splits, stored: &SampledRecords, measure: impl Fn(usize, &Record) -> Option<u64>) -> Vec<u64> {
    let of_split = |(number, split): (usize, &Split)| -> Vec<u64> {
        if split.is_in_store() {
            return stored.of(number).iter().filter_map(|record| measure(number, record)).collect();
        }
        sampled_ids(split).filter_map(|id| measure(number, &split.get(id).ok()?)).collect()
    };
    splits.as_slice().iter().enumerate().flat_map(of_split).collect()
}

/// Checks that the first record of each split, or the first sampled one in an object store, has the number of values that
/// each column takes; otherwise every sample would be bad. Checks that no sampled record has more; otherwise many would be.
pub(crate) fn check_counts(columns: &[ResolvedColumn], splits: &Splits, stored: &SampledRecords) -> Result<()> {
    for (number, split) in splits.as_slice().iter().enumerate() {
        if split.is_in_store() {
            let records = stored.of(number).iter().enumerate();
            records.into_iter().try_for_each(|(at, record)| check_record(columns, split, number, record, at == 0))?;
            continue;
        }
        for id in sampled_ids(split) {
            let place = split.locate(id).and_then(|(shard, row)| Ok((split.shard(shard)?, row)));
            if place.is_ok_and(|(shard, row)| ResolvedColumn::all_in_index(columns, &shard, row)) {
                continue;
            }
            // A damaged record is reported when it is loaded.
            let Ok(record) = split.get(id) else { continue };
            check_record(columns, split, number, &record, id == 0)?;
        }
    }
    Ok(())
}

fn check_record(columns: &[ResolvedColumn], split: &Split, number: usize, record: &Record, first: bool) -> Result<()> {
    let mut example = None;
    for column in columns {
        if let Err(SampleError::Values { feature, expected, found }) =
            column.read(number, record, &mut example, (None, &mut column.cell()))
            && (first || found > expected)
        {
            let key = record.key().map_or_else(|_| String::new(), |key| String::from_utf8_lossy(&key).into_owned());
            return Err(Error::Values { feature, expected, found, key, split: describe(split) });
        }
    }
    Ok(())
}

/// Returns the numbers of a few records of a split, evenly distributed.
fn sampled_ids(split: &Split) -> impl Iterator<Item = u64> {
    let step = (split.len() / SAMPLED_RECORDS).max(1) as usize;
    (0..split.len()).step_by(step).take(SAMPLED_RECORDS as usize)
}

/// Checks that the values between and behind the rows of ragged columns are numbers of their types.
///
/// # Errors
/// [`InvalidOptions::PaddedValue`].
pub(crate) fn padded_values(columns: &[ResolvedColumn], padded: &[(&String, f64)]) -> Result<()> {
    let holds = |dtype: DType, value: f64| match dtype {
        DType::Int64 => pad_value::element(value, ArrayDtype::I64).is_some(),
        DType::Uint64 => pad_value::element(value, ArrayDtype::U64).is_some(),
        DType::Float => (value as f32).is_finite() || !value.is_finite(),
        DType::Float64 | DType::Bytes => true,
    };
    for &(feature, value) in padded {
        let dtypes = columns.iter().filter(|column| column.feature == *feature).map(ResolvedColumn::dtype);
        if let Some(dtype) = dtypes.into_iter().find(|dtype| !holds(*dtype, value)) {
            return Err(InvalidOptions::PaddedValue { feature: feature.clone(), value, dtype }.into());
        }
    }
    Ok(())
}
