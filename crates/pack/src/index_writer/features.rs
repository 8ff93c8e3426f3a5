//! The columns of features: `feature:NAME` and `values:NAME`.

use super::Payload;
use super::ranges::{self, Needed, Ranges};
use super::rows::ByteRows;
use super::scalars::Scalars;
use crate::error::ShardError;
use crate::frames::{FrameAt, Frames};
use crate::{Error, Problem};
use shardtool_format::example::{Example, Feature};
use shardtool_format::frame::OVERHEAD_BYTES;
use shardtool_format::index::{Builder, FEATURE_PREFIX, VALUES_PREFIX};
use shardtool_format::manifest::DType;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The features that occurred.
#[derive(Default)]
pub(super) struct FeatureColumns {
    /// In the order of their first occurrence.
    columns: Vec<FeatureColumn>,
    /// Their positions, in byte order of their names.
    positions: BTreeMap<Arc<str>, usize>,
    /// Whether ranges are collected from the first record on, since the records cannot be read again.
    all_ranges: bool,
}

struct FeatureColumn {
    name: Arc<str>,
    dtype: DType,
    first_record: u64,
    scalars: Scalars,
    ranges: Ranges,
}

impl FeatureColumns {
    /// Collects what value ranges need from the first record on, so that no record is read again.
    pub(super) fn with_all_ranges() -> Self {
        FeatureColumns { all_ranges: true, ..FeatureColumns::default() }
    }

    /// Adds the features of a record.
    ///
    /// # Errors
    /// [`ShardError::FeatureType`].
    pub(super) fn push(&mut self, record: u64, data: &[u8], example: &Example<'_>, file: &str) -> Result<(), Error> {
        for (i, (name, feature)) in example.features().iter().enumerate() {
            let Some(dtype) = feature.dtype() else { continue };
            let at = self.position(i, name, dtype, record);
            let seen = &mut self.columns[at];
            if seen.dtype != dtype {
                return Err(Error::Shard(ShardError::FeatureType {
                    feature: seen.name.to_string(),
                    first: (file.to_owned(), seen.first_record, seen.dtype),
                    second: (file.to_owned(), record, dtype),
                }));
            }
            match feature {
                Feature::Bytes(list) => {
                    let mut values = list.iter();
                    match (values.next(), values.next()) {
                        (None, _) => {}
                        (Some(value), None) => {
                            seen.scalars.push_bytes(record, value);
                            seen.ranges.push_one(record, data, value);
                        }
                        _ => {
                            seen.scalars = Scalars::RuledOut;
                            seen.ranges.push_several(record, data, list);
                        }
                    }
                }
                numbers => seen.scalars.push_numbers(record, numbers),
            }
        }
        Ok(())
    }

    /// Returns the position of a feature, which is the i-th of its record. Adds it if it is new.
    fn position(&mut self, i: usize, name: &str, dtype: DType, record: u64) -> usize {
        // Records mostly have the same features, so each feature is usually where it was before.
        if self.columns.get(i).is_some_and(|seen| *seen.name == *name) {
            return i;
        }
        if let Some(at) = self.positions.get(name) {
            return *at;
        }
        let (at, name) = (self.columns.len(), Arc::<str>::from(name));
        let ranges = if self.all_ranges { Ranges::all() } else { Ranges::default() };
        let scalars = Scalars::new(&name, dtype);
        self.columns.push(FeatureColumn { name: name.clone(), dtype, first_record: record, scalars, ranges });
        self.positions.insert(name, at);
        at
    }

    /// Writes the columns. Returns the features, as [`super::Indexed`] has them. As [`super::IndexWriter::finish`],
    /// `shard` is read again if needed.
    ///
    /// # Errors
    /// [`Error::Io`], [`ShardError::Record`].
    pub(super) fn finish(
        mut self,
        records: u64,
        index: &mut Builder,
        payload: &Payload,
        shard: super::ShardFile<'_>,
    ) -> Result<Vec<(String, DType, u64)>, Error> {
        let (mut features, mut values, mut late) = (vec![], vec![], vec![]);
        self.columns.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for FeatureColumn { name, dtype, first_record, scalars, ranges } in self.columns {
            let name = name.to_string();
            scalars.write(&format!("{FEATURE_PREFIX}{name}"), records, index);
            match ranges.finish(records) {
                Needed::Nothing => {}
                Needed::Rows(rows) => values.push((name.clone(), rows)),
                Needed::SecondPass => late.push((name.clone(), ByteRows::default())),
            }
            let dtype = payload.dtype(&name, dtype);
            features.push((name, dtype, first_record));
        }
        if !late.is_empty() {
            read_again(&shard()?, payload, &mut late)?;
            values.append(&mut late);
            values.sort_by(|a, b| a.0.cmp(&b.0));
        }
        for (name, rows) in values {
            index.variable(&format!("{VALUES_PREFIX}{name}"), rows.iter());
        }
        Ok(features)
    }
}

/// Collects the value ranges of some features from all records of a shard.
fn read_again(shard: &Path, payload: &Payload, features: &mut [(String, ByteRows)]) -> Result<(), Error> {
    let mut frames = Frames::open(shard)?;
    let (mut offset, mut record) = (0, 0);
    while offset < frames.bytes() {
        let damaged = |source| Error::Shard(ShardError::Record { shard: shard.display().to_string(), record, source });
        let data = match frames.at(offset)? {
            FrameAt::Record(data, _) => data,
            FrameAt::Damaged(Problem::Damage(source), _) => return Err(damaged(source)),
            FrameAt::Damaged(Problem::Unreadable(error), _) => return Err(Error::Read(error)),
        };
        let example = payload.parse(data).map_err(damaged)?;
        for (name, rows) in &mut *features {
            match example.as_ref().and_then(|example| example.get(name)) {
                Some(Feature::Bytes(list)) => ranges::push_row(rows, data, &list),
                _ => rows.push(&[]),
            }
        }
        (offset, record) = (offset + (data.len() + OVERHEAD_BYTES) as u64, record + 1);
    }
    Ok(())
}
