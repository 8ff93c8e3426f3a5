//! The columns of an index, from records: their parts, and their expected values.

use crate::bytes::crc::{crc32c, sum};
use crate::bytes::example::List;
use crate::bytes::index::{Column, F32, I64, U32, U64};
use crate::sample::Sample;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A column `feature:NAME` or `values:NAME`.
pub(crate) enum Cells {
    Int64(Vec<Option<i64>>),
    Float(Vec<Option<u32>>),
    Bytes(Vec<Option<Vec<u8>>>),
    /// Offset, length and CRC of each value.
    Ranges(Vec<Vec<[u32; 3]>>),
}

impl Cells {
    pub(crate) fn column(&self, name: &str) -> Column {
        match self {
            Cells::Int64(rows) => {
                Column::nullable(name, I64, &rows.iter().map(|row| row.map(i64::to_le_bytes)).collect::<Vec<_>>())
            }
            Cells::Float(rows) => {
                Column::nullable(name, F32, &rows.iter().map(|row| row.map(u32::to_le_bytes)).collect::<Vec<_>>())
            }
            Cells::Bytes(rows) => Column::variable(name, rows),
            Cells::Ranges(rows) => {
                let bytes =
                    |row: &Vec<[u32; 3]>| row.iter().flatten().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
                Column::variable(name, &rows.iter().map(|row| Some(bytes(row))).collect::<Vec<_>>())
            }
        }
    }

    /// Returns the expected member `values`.
    pub(crate) fn values(&self) -> Value {
        match self {
            Cells::Int64(rows) => json!(rows.iter().map(|row| row.map(|n| n.to_string())).collect::<Vec<_>>()),
            Cells::Float(rows) => json!(rows.iter().map(|row| row.map(|n| format!("{n:08x}"))).collect::<Vec<_>>()),
            Cells::Bytes(rows) => json!(rows.iter().map(|row| row.as_deref().map(sum)).collect::<Vec<_>>()),
            Cells::Ranges(rows) => {
                let range = |[offset, length, crc]: &[u32; 3]| {
                    json!([offset.to_string(), length.to_string(), format!("{crc:08x}")])
                };
                json!(rows.iter().map(|row| row.iter().map(range).collect::<Vec<_>>()).collect::<Vec<_>>())
            }
        }
    }
}

fn names(samples: &[Sample]) -> BTreeSet<&String> {
    samples.iter().flat_map(|sample| sample.features.iter().flatten()).map(|(name, _)| name).collect()
}

/// Returns the columns of features and of value ranges that a writer stores, in their order.
pub(crate) fn features(samples: &[Sample]) -> Vec<(String, Cells)> {
    let names = names(samples);
    let features = names.iter().filter_map(|name| Some((format!("feature:{name}"), feature(samples, name)?)));
    let ranges = names.iter().filter_map(|name| Some((format!("values:{name}"), ranges(samples, name)?)));
    features.chain(ranges).collect()
}

/// Returns the column of a feature, if a writer stores one.
fn feature(samples: &[Sample], name: &str) -> Option<Cells> {
    let lists: Vec<Option<&List>> = samples.iter().map(|sample| sample.get(name)).collect();
    let present: Vec<&List> = lists.iter().flatten().copied().collect();
    let one_type = present.iter().all(|list| list.type_name() == present[0].type_name());
    let singles = present.iter().all(|list| list.len() <= 1) && present.iter().any(|list| list.len() == 1);
    if !one_type || !singles {
        return None;
    }
    Some(match present[0] {
        List::Int64(_) => Cells::Int64(lists.iter().map(|l| l.and_then(int)).collect()),
        List::Float(_) => Cells::Float(lists.iter().map(|l| l.and_then(float)).collect()),
        List::Bytes(_) => {
            let rows: Vec<_> = lists.iter().map(|l| l.and_then(|l| l.strings().first().cloned())).collect();
            let short = rows.iter().flatten().all(|value| value.len() <= 256);
            return (short && !name.starts_with("image/")).then_some(Cells::Bytes(rows));
        }
    })
}

fn int(list: &List) -> Option<i64> {
    if let List::Int64(values) = list { values.first().copied() } else { None }
}

fn float(list: &List) -> Option<u32> {
    if let List::Float(values) = list { values.first().copied() } else { None }
}

/// Returns the value ranges of a feature, if a writer stores them.
fn ranges(samples: &[Sample], name: &str) -> Option<Cells> {
    let lists: Vec<&[Vec<u8>]> =
        samples.iter().map(|sample| sample.get(name).map(List::strings).unwrap_or_default()).collect();
    let several = lists.iter().any(|values| values.len() >= 2);
    let long = lists.iter().flat_map(|values| values.iter()).any(|value| value.len() > 256);
    if !several || !long {
        return None;
    }
    let row = |(sample, values): (&Sample, &&[Vec<u8>])| {
        let range = |(offset, value): (usize, &Vec<u8>)| [offset as u32, value.len() as u32, crc32c(value)];
        if values.is_empty() {
            vec![]
        } else {
            sample.offsets(name).into_iter().zip(values.iter()).map(range).collect()
        }
    };
    Some(Cells::Ranges(samples.iter().zip(&lists).map(row).collect()))
}

/// Returns the required columns.
pub(crate) fn required(samples: &[Sample], image: Option<&str>, file: &str) -> Vec<Column> {
    let mut at = 0u64;
    let mut columns = vec![vec![]; 3];
    for sample in samples {
        columns[0].extend(at.to_le_bytes());
        at += sample.data.len() as u64 + 16;
        let (offset, length) = range(sample, image);
        columns[1].extend((offset as u32).to_le_bytes());
        columns[2].extend((length as u32).to_le_bytes());
    }
    let keys: Vec<_> = samples.iter().enumerate().map(|(row, sample)| Some(sample.key(file, row))).collect();
    let [record_offset, image_offset, image_length] = columns.try_into().expect("three columns");
    vec![
        Column::fixed("record_offset", U64, record_offset),
        Column::fixed("image_offset", U32, image_offset),
        Column::fixed("image_length", U32, image_length),
        Column::variable("key", &keys),
    ]
}

/// Returns offset and length of the image; both are 0 without an image.
fn range(sample: &Sample, image: Option<&str>) -> (usize, usize) {
    match image.and_then(|name| Some((name, sample.string(name)?))) {
        Some((name, value)) => (sample.offsets(name)[0], value.len()),
        None => (0, 0),
    }
}
