//! The features of a dataset, and checks of a configuration against them.

use crate::bad_samples::SampleError;
use crate::classes::describe;
use crate::columns::{ResolvedColumn, wrong_layout};
use crate::error::{Error, Result};
use crate::sampled_records::{SAMPLED_RECORDS, SampledRecords};
use crate::splits::Splits;
use shardtool_format::index::Column as IndexColumn;
use shardtool_format::manifest::DType;
use shardtool_format::names;
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
            column.read(number, record, &mut example, &mut cell).ok()?;
            // Stored in the row's cell and in the column's array, both of which grow by doubling.
            Some(4 * cell.held())
        });
        let cells: u64 = cells.collect::<Option<Vec<_>>>()?.into_iter().sum();
        let own = if keeps_records { record.buffer_bytes() } else { 0 };
        Some(cells + own)
    };
    let largest = splits.as_slice().iter().enumerate().filter_map(|(number, split)| {
        if split.is_in_store() {
            return stored.of(number).iter().filter_map(|record| measured(number, record)).max();
        }
        sampled_ids(split).filter_map(|id| measured(number, &split.get(id).ok()?)).max()
    });
    largest.max().unwrap_or(0)
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
            column.read(number, record, &mut example, &mut column.cell())
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

/// Checks that the records have images. Opaque records are images themselves.
pub(crate) fn check_images(splits: &Splits) -> Result<()> {
    match splits.as_slice().iter().find(|split| !split.manifest().has_images()) {
        Some(split) => {
            let (feature, known) = (names::IMAGE_ENCODED.to_owned(), Features::new(split).names());
            Err(Error::NoFeature { split: describe(split), feature, known })
        }
        None => Ok(()),
    }
}

/// Checks that all splits have a feature of byte strings, for `what`.
pub(crate) fn check_bytes(feature: &str, what: &'static str, splits: &Splits) -> Result<()> {
    splits.as_slice().iter().try_for_each(|split| {
        let known = Features::new(split);
        match known.dtype(feature) {
            Some((DType::Bytes, _)) => Ok(()),
            Some((dtype, _)) => Err(wrong_layout(feature, dtype, what)),
            None => Err(Error::NoFeature { split: describe(split), feature: feature.to_owned(), known: known.names() }),
        }
    })
}

/// The features of a split: name, type, and whether every record holds exactly one number.
pub(crate) struct Features {
    features: Vec<(String, DType, bool)>,
}

impl Features {
    /// Takes types from the manifest, and scalar features from an index. For bare files, which have neither, takes both
    /// from the first record.
    pub(crate) fn new(split: &Split) -> Self {
        let first = (0..split.entry().shards.len()).find(|n| split.entry().shards[*n].records > 0);
        let shard = first.and_then(|n| split.shard(n).ok());
        let scalar = |column: &IndexColumn, name: &str| column.feature() == Some(name) && !column.nullable();
        let indexed = |name: &str| shard.iter().any(|s| s.columns().iter().any(|column| scalar(column, name)));
        let listed = &split.manifest().features;
        let mut features: Vec<_> = listed.iter().map(|f| (f.name.clone(), f.dtype, indexed(&f.name))).collect();
        if features.is_empty() {
            let record = first.and_then(|_| split.get(0).ok());
            let example = record.as_ref().and_then(|r| r.example().ok());
            features.extend(
                example
                    .iter()
                    .flat_map(|e| e.features())
                    .filter_map(|(name, feature)| Some((name.to_string(), feature.dtype()?, feature.count() == 1))),
            );
        }
        Features { features }
    }

    /// Returns the type of a feature, and whether it is scalar.
    pub(crate) fn dtype(&self, feature: &str) -> Option<(DType, bool)> {
        self.features.iter().find(|(name, ..)| name == feature).map(|(_, dtype, scalar)| (*dtype, *scalar))
    }

    /// Returns the names of all features.
    pub(crate) fn names(&self) -> Vec<String> {
        self.features.iter().map(|(name, ..)| name.clone()).collect()
    }
}
