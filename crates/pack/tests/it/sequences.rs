//! TFRecord files of SequenceExamples become datasets that require them; their records are kept byte for byte.

use crate::adopt::{example, framed};
use crate::support::{chain, manifest, put, records};
use shardtool_format::example::{Column, Feature};
use shardtool_pack::{AdoptOptions, Options, RepairOptions, ReshardOptions, adopt, pack, repair, reshard};
use shardtool_read::{Dataset, verify};
use std::fs;
use std::path::{Path, PathBuf};

fn delimited(field: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 1 << 14);
    let length = if bytes.len() < 128 {
        vec![bytes.len() as u8]
    } else {
        vec![bytes.len() as u8 | 128, (bytes.len() >> 7) as u8]
    };
    [&[field << 3 | 2][..], &length, bytes].concat()
}

/// A SequenceExample with a key and the list `frames`, one byte string in each step.
fn clip(key: &str, frames: &[&[u8]]) -> Vec<u8> {
    let context = example(vec![("image/key", Column::Bytes(&[key.as_bytes()]))]);
    let steps: Vec<u8> = frames.iter().flat_map(|frame| delimited(1, &delimited(1, &delimited(1, frame)))).collect();
    let entry = [delimited(1, b"frames"), delimited(2, &steps)].concat();
    [context, delimited(2, &delimited(1, &entry))].concat()
}

/// Two shards; the first record of the first one has no lists.
fn clips(folder: &Path) -> [PathBuf; 2] {
    let long = [9; 300];
    let files = [
        [example(vec![("image/key", Column::Bytes(&[b"plain"]))]), clip("a", &[b"1", &long])],
        [clip("b", &[b"x"]), clip("c", &[&long, b"", b"z"])],
    ];
    [0, 1].map(|number| {
        let path = folder.join(format!("train-0000{number}.tfrecord"));
        put(&path, &files[number].iter().flat_map(|data| framed(data)).collect::<Vec<_>>());
        path
    })
}

/// Checks keys and frame lengths of all records, in any order, and finds no damage.
fn check(folder: &Path) {
    let dataset = Dataset::open(folder).unwrap();
    assert_eq!(manifest(folder).requires, ["sequence-example"]);
    let report = verify::verify(&dataset, &verify::Options::default());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(report.ignored_feature_lists, 0);
    let split = dataset.split("train").unwrap();
    let mut found: Vec<_> = (0..split.len())
        .map(|id| {
            let record = split.get(id).unwrap();
            let example = record.example().unwrap();
            let lengths = match example.get("frames") {
                Some(Feature::Bytes(list)) => list.iter().map(<[u8]>::len).collect(),
                _ => vec![],
            };
            let steps = match example.get("frames/lengths") {
                Some(Feature::Int64(list)) => list.iter().collect(),
                _ => vec![],
            };
            assert_eq!(steps, vec![1; lengths.len()]);
            (String::from_utf8(record.key().unwrap().to_vec()).unwrap(), lengths)
        })
        .collect();
    found.sort();
    let expected = [("a", vec![1, 300]), ("b", vec![1]), ("c", vec![300, 0, 1]), ("plain", vec![])];
    assert_eq!(found, expected.map(|(key, lengths)| (key.to_owned(), lengths)));
}

#[test]
fn sequence_examples_are_detected_and_kept() {
    let temp = tempfile::tempdir().unwrap();
    let files = clips(temp.path());
    let before: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    adopt(&files, &AdoptOptions::default(), &()).unwrap();
    check(temp.path());
    let kept = fs::read(temp.path().join("dataset.json")).unwrap();
    repair(temp.path(), &RepairOptions::default(), &()).unwrap();
    assert_eq!(fs::read(temp.path().join("dataset.json")).unwrap(), kept);
    fs::remove_file(temp.path().join("dataset.json")).unwrap();
    repair(temp.path(), &RepairOptions::default(), &()).unwrap();
    assert_eq!(fs::read(temp.path().join("dataset.json")).unwrap(), kept, "a rebuilt manifest requires them too");
    let destination = temp.path().join("one");
    let source = Dataset::open(temp.path()).unwrap();
    let options = with!(ReshardOptions::default(), shards = shardtool_pack::Shards::Count(1));
    reshard(source.splits(), &destination, &options, &()).unwrap();
    check(&destination);
    let all = |files: &[Vec<u8>]| {
        let mut all: Vec<_> = files.iter().flat_map(|file| records(file)).map(|(_, data)| data.to_vec()).collect();
        all.sort();
        all
    };
    let resharded = fs::read(destination.join("train-00000.tfrecord")).unwrap();
    assert_eq!(all(&[resharded]), all(&before), "records are kept byte for byte");
}

#[test]
fn pack_refuses_sequence_examples() {
    let temp = tempfile::tempdir().unwrap();
    let [_, file] = clips(temp.path());
    let error = pack(&Options::new(&file, temp.path().join("set")), &()).unwrap_err();
    assert!(chain(&error).contains("shardtool index"), "{}", chain(&error));
}
