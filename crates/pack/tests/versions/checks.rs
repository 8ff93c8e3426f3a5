//! Reads versions completely, and compares them with the model.

use crate::model::{Sample, Texts, Version};
use shardtool_format::example::Feature;
use shardtool_format::manifest::DType;
use shardtool_read::{Dataset, Split, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(crate) fn train(dataset: &Dataset) -> &Split {
    dataset.split("train").unwrap()
}

/// Reads a split or a view completely.
pub(crate) fn read(split: &Split) -> Vec<Sample> {
    let listed: BTreeMap<_, _> =
        split.manifest().features.iter().map(|feature| (feature.name.clone(), feature.dtype)).collect();
    let sample = |id: u64| {
        let record = split.get(id).unwrap();
        let example = record.example().unwrap();
        let features = example.features().iter().filter(|(name, _)| !name.starts_with("image/"));
        let features = features.filter_map(|(name, feature)| {
            assert!(listed.contains_key(&**name), "{name} is listed");
            let texts: Texts = match (feature, listed[&**name]) {
                (Feature::Int64(list), _) => list.iter().map(|v| v.to_string()).collect(),
                (Feature::Float(list), _) => list.iter().map(|v| format!("{v:?}")).collect(),
                (Feature::Bytes(list), DType::Float64) => {
                    list.numbers::<f64>().unwrap().iter().map(|v| format!("{v:?}")).collect()
                }
                (Feature::Bytes(list), DType::Uint64) => {
                    list.numbers::<u64>().unwrap().iter().map(u64::to_string).collect()
                }
                (Feature::Bytes(list), _) => list.iter().map(|v| String::from_utf8(v.to_vec()).unwrap()).collect(),
                (Feature::Empty, _) => vec![],
            };
            (!texts.is_empty()).then(|| (name.to_string(), texts))
        });
        let features = features.collect();
        // The bytes of the record are the canonical Example of the same features.
        let mut again = vec![];
        example.encode(&mut again);
        assert_eq!(record.data(), again);
        Sample { key: String::from_utf8(record.key().unwrap().into_owned()).unwrap(), features, row: 0 }
    };
    (0..split.len()).map(sample).collect()
}

/// Returns the records of a view.
pub(crate) fn records_of(version: &Version, view: &BTreeSet<String>) -> Vec<Sample> {
    version.records.iter().filter(|sample| view.contains(&sample.key)).cloned().collect()
}

/// Compares a version with the model, by every way to read it.
pub(crate) fn check(path: &Path, number: u64, expected: &Version, context: &str) {
    let dataset = Dataset::open(format!("{}@{number}", path.display())).unwrap_or_else(|e| panic!("{context}: {e}"));
    assert_eq!(dataset.version(), number);
    let found = read(train(&dataset));
    assert_eq!(found, expected.records, "{context}: version {number}");
    assert!(dataset.view_names().eq(expected.views.keys()), "{context}: version {number}");
    for (name, view) in &expected.views {
        let found = read(dataset.split(name).unwrap());
        assert_eq!(found, records_of(expected, view), "{context}: view {name} of version {number}");
    }
    let split = dataset.split("train").unwrap();
    for (id, sample) in expected.records.iter().enumerate() {
        assert_eq!(split.find(sample.key.as_bytes()).unwrap(), Some(id as u64), "{context}");
    }
    for feature in &dataset.manifest().features {
        if feature.name.starts_with("image/") {
            continue;
        }
        assert_eq!(expected.types.get(&feature.name), Some(&feature.dtype), "{context}: {}", feature.name);
        if feature.dtype == DType::Int64 {
            let column = split.column::<i64>(&feature.name).unwrap().unwrap();
            let one = |sample: &Sample| match sample.features.get(&feature.name).map(Vec::as_slice) {
                Some([one]) => Some(one.parse().unwrap()),
                _ => None,
            };
            assert_eq!(column, expected.records.iter().map(one).collect::<Vec<Option<i64>>>(), "{context}");
            let condition = format!("{}>4", feature.name);
            let matching = split.matching([condition.as_str()]);
            let has_several = |sample: &&Sample| sample.features.get(&feature.name).is_some_and(|all| all.len() > 1);
            match (expected.records.iter().find(has_several), matching) {
                (None, Ok(found)) => {
                    let ids = (0..).zip(&expected.records).filter(|(_, sample)| one(sample).is_some_and(|n| n > 4));
                    assert_eq!(found, ids.map(|(id, _)| id).collect::<Vec<u64>>(), "{context}");
                }
                (Some(_), Err(shardtool_read::Error::Condition { .. })) => {}
                (several, found) => panic!("{context}: {:?}, {found:?}", several.map(|sample| &sample.key)),
            }
        }
    }
    assert_eq!(
        dataset.manifest().features.iter().filter(|f| !f.name.starts_with("image/")).count(),
        expected.types.len()
    );
    let findings = verify::verify(&dataset, &verify::Options::default()).findings;
    assert!(findings.is_empty(), "{context}: version {number}: {findings:?}");
}
