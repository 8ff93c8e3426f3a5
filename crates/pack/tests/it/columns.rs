//! Columns of features and value ranges, compared with a model that reads the specification's rules literally.

use crate::adopt::{example, framed};
use crate::support::{manifest, put};
use sha2::Digest;
use shardtool_format::checksum::{Sha256, crc32c};
use shardtool_format::example::{Column, Example, range_within};
use shardtool_format::index::{Index, ValueRange};
use shardtool_order::Rng;
use shardtool_pack::{AdoptOptions, RepairOptions, adopt, repair};
use shardtool_read::{Dataset, verify};
use std::path::Path;

/// The values of one record; `None` is an absent feature.
#[derive(Debug, Default)]
struct Values {
    numbers: Option<Vec<i64>>,
    floats: Option<Vec<f32>>,
    texts: Option<Vec<Vec<u8>>>,
    frames: Option<Vec<Vec<u8>>>,
}

impl Values {
    fn record(&self) -> Vec<u8> {
        let slices = |values: &Option<Vec<Vec<u8>>>| values.clone().unwrap_or_default();
        let (texts, frames) = (slices(&self.texts), slices(&self.frames));
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let mut features = vec![("image/key", Column::Bytes(&[b"k"]))];
        features.extend(self.numbers.as_ref().map(|values| ("a number", Column::Int64(values))));
        features.extend(self.floats.as_ref().map(|values| ("float", Column::Float(values))));
        features.extend(self.texts.as_ref().map(|_| ("text", Column::Bytes(&texts))));
        features.extend(self.frames.as_ref().map(|_| ("image/frames", Column::Bytes(&frames))));
        example(features)
    }
}

/// Returns the rows of a column of values, `None` without such a column.
fn column<T: Clone>(rows: &[Values], of: impl Fn(&Values) -> &Option<Vec<T>>) -> Option<Vec<Option<T>>> {
    let lists: Vec<_> = rows.iter().map(|row| of(row).clone().unwrap_or_default()).collect();
    let one = lists.iter().all(|list| list.len() <= 1) && lists.iter().any(|list| !list.is_empty());
    one.then(|| lists.into_iter().map(|list| list.into_iter().next()).collect())
}

/// Returns whether a feature has value ranges.
fn ranged(rows: &[Values], of: impl Fn(&Values) -> &Option<Vec<Vec<u8>>>) -> bool {
    let lists: Vec<_> = rows.iter().filter_map(|row| of(row).as_ref()).collect();
    lists.iter().any(|list| list.len() > 1) && lists.iter().any(|list| list.iter().any(|value| value.len() > 256))
}

fn write(folder: &Path, rows: &[Values]) -> Vec<u8> {
    let file = folder.join("train-00000.tfrecord");
    put(&file, &rows.iter().flat_map(|row| framed(&row.record())).collect::<Vec<_>>());
    adopt(&[file], &AdoptOptions::default(), &()).unwrap();
    std::fs::read(folder.join("_index/train-00000.tfrecord.index")).unwrap()
}

fn check(rows: &[Values]) {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), rows);
    let index = Index::parse(&file).unwrap();
    (0..index.columns().len()).for_each(|column| index.check(column).unwrap());
    let found: Vec<_> = index.columns().iter().map(|c| c.name()).filter(|name| name.contains(':')).collect();
    let numbers = column(rows, |row| &row.numbers);
    let floats = column(rows, |row| &row.floats);
    let short = rows.iter().filter_map(|row| row.texts.as_ref()).flatten().all(|text| text.len() <= 256);
    let texts = column(rows, |row| &row.texts).filter(|_| short);
    let (text_ranges, frame_ranges) = (ranged(rows, |row| &row.texts), ranged(rows, |row| &row.frames));
    let expected = [
        (numbers.is_some(), "feature:a number"),
        (floats.is_some(), "feature:float"),
        (texts.is_some(), "feature:text"),
        (frame_ranges, "values:image/frames"),
        (text_ranges, "values:text"),
    ];
    let expected: Vec<_> = expected.into_iter().filter(|(exists, _)| *exists).map(|(_, name)| name).collect();
    assert_eq!(found, expected, "{rows:?}");
    let at = |name| index.position(name).unwrap();
    if let Some(numbers) = numbers {
        let column = at("feature:a number");
        assert_eq!(index.columns()[column].nullable(), numbers.contains(&None));
        assert_eq!(index.fixed::<i64>(column).unwrap().iter().collect::<Vec<_>>(), numbers);
    }
    if let Some(floats) = floats {
        assert_eq!(index.fixed::<f32>(at("feature:float")).unwrap().iter().collect::<Vec<_>>(), floats);
    }
    if let Some(texts) = texts {
        let found: Vec<_> = index.variable(at("feature:text")).unwrap().iter().map(|t| t.map(<[u8]>::to_vec)).collect();
        assert_eq!(found, texts);
    }
    for (name, feature) in [("values:image/frames", "image/frames"), ("values:text", "text")] {
        let Some(column) = index.position(name) else { continue };
        for (row, values) in rows.iter().enumerate() {
            let data = values.record();
            let ranges: Vec<_> = ValueRange::decode(index.variable(column).unwrap().get(row as u64).unwrap()).collect();
            let parsed = Example::parse(&data).unwrap();
            let expected = if feature == "text" { &values.texts } else { &values.frames };
            let found: Vec<_> = ranges.iter().map(|range| data[range.bytes()].to_vec()).collect();
            assert_eq!(found, expected.clone().unwrap_or_default());
            assert!(ranges.iter().zip(&found).all(|(range, value)| range.crc == crc32c(value)));
            if let Some(shardtool_format::example::Feature::Bytes(list)) = parsed.get(feature) {
                let starts = list.iter().map(|value| range_within(&data, value).unwrap().start as u32);
                assert_eq!(ranges.iter().map(|range| range.offset).collect::<Vec<_>>(), starts.collect::<Vec<_>>());
            }
        }
    }
    let report = verify::verify(&Dataset::open(folder.path()).unwrap(), &verify::Options::default());
    assert!(report.findings.is_empty(), "{rows:?}: {:?}", report.findings);
}

#[test]
fn indexes_hold_the_columns_of_the_specification() {
    let mut random = Rng::augment(10, 0, 0);
    let mut below = |n: u32| random.below(n);
    for _ in 0..400 {
        // Features that often have one value, so that columns exist, and now and then none, two or a long one.
        let rows: Vec<_> = (0..below(6))
            .map(|_| {
                let mut count = || match below(12) {
                    0 => None,
                    1 => Some(0),
                    2 => Some(2 + below(2)),
                    _ => Some(1),
                };
                let (numbers, floats, texts, frames) = (count(), count(), count(), count());
                let mut bytes = |longest: u32| -> Vec<u8> {
                    let length = if below(4) == 0 { longest } else { below(256) };
                    (0..length).map(|_| below(256) as u8).collect()
                };
                Values {
                    texts: texts.map(|n| (0..n).map(|_| bytes(257)).collect()),
                    frames: frames.map(|n| (0..n).map(|_| bytes(300)).collect()),
                    numbers: numbers.map(|n| (0..n).map(|_| i64::from(below(u32::MAX)) << 31).collect()),
                    floats: floats.map(|n| (0..n).map(|_| below(1000) as f32 - 500.0).collect()),
                }
            })
            .collect();
        check(&rows);
    }
}

/// The first record has one value, so that its range is collected when the shard is read again.
#[test]
fn value_ranges_of_earlier_records_are_found() {
    let frames = |lengths: &[usize]| Values {
        frames: Some(lengths.iter().map(|length| vec![*length as u8; *length]).collect()),
        ..Values::default()
    };
    check(&[frames(&[10]), frames(&[]), Values::default(), frames(&[20, 300]), frames(&[1])]);
    check(&[frames(&[257]), frames(&[20, 30])]);
    check(&[frames(&[256]), frames(&[256, 0])]);
}

#[test]
fn sha256_of_shards_is_written_kept_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("train-00000.tfrecord");
    let bytes = framed(&Values::default().record());
    put(&file, &bytes);
    adopt(std::slice::from_ref(&file), &with!(AdoptOptions::default(), sha256 = true), &()).unwrap();
    let digest = |bytes: &[u8]| Some(Sha256(sha2::Sha256::digest(bytes).into()));
    let stored = || manifest(folder.path()).splits[0].shards[0].sha256;
    assert_eq!(stored(), digest(&bytes));
    let longer = [&bytes[..], &bytes].concat();
    put(&file, &longer);
    repair(folder.path(), &RepairOptions::default(), &()).unwrap();
    assert_eq!(stored(), digest(&longer));
    let report = verify::verify(&Dataset::open(folder.path()).unwrap(), &verify::Options::default());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}
