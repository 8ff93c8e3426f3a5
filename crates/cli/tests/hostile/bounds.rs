//! What a file claims costs nothing until the bytes prove it; what it holds costs time and memory in proportion.

use crate::corpus::{encoded, framed, limited, packed, put, status, text};
use serde_json::Value;
use shardtool_format::example::Column;
use shardtool_format::manifest::Manifest;
use shardtool_read::verify::Report;
use std::path::{Path, PathBuf};

const SHARD: &str = "train-00000.tfrecord";

/// Lets a dataset's manifest claim `records` records in its first shard.
fn claim(set: &Path, records: u64) {
    let path = set.join("dataset.json");
    let mut manifest = Manifest::parse(&std::fs::read(&path).unwrap()).unwrap();
    manifest.splits[0].shards[0].records = records;
    put(&path, manifest.to_json().as_bytes());
}

#[test]
fn a_manifest_with_more_records_than_its_files_hold_ends_every_command() {
    let temp = tempfile::tempdir().unwrap();
    let good = packed(&temp.path().join("good"), &["a", "b"], 4);
    let set = packed(temp.path(), &["a", "b"], 4);
    let out = temp.path().join("out");
    for records in [1 << 20, 1 << 30, 1 << 60] {
        claim(&set, records);
        for arguments in [
            &["diff", text(&set), text(&good)][..],
            &["diff", text(&good), text(&set)],
            &["extract", text(&set), text(&out)],
            &["bench", text(&set), "--work", "read", "--batch", "4", "--order", "sequential"],
            &["bench", text(&set), "--work", "train", "--batch", "4"],
            &["export", text(&set), text(&out), "--to", "folder"],
            &["export", text(&set), text(&out), "--to", "tfrecord"],
            &["reshard", text(&set), text(&out)],
            &["ls", text(&set)],
        ] {
            let output = limited(1024, arguments);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(errors.contains(&format!("{records} records expected")), "{arguments:?}: {errors}");
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        }
        let verified = limited(1024, &["verify", text(&set), "--json"]);
        let document: Value = serde_json::from_slice(&verified.stdout).unwrap();
        assert_eq!(document["damages"][0]["name"], "RecordCount");
        assert_eq!(limited(1024, &["info", text(&set)]).status.code(), Some(2));
        let plan = limited(1024, &["plan", text(&set), "--batch", "4", "--world", "3", "--json"]);
        let errors = String::from_utf8_lossy(&plan.stderr);
        let plan: Value = serde_json::from_slice(&plan.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
        let replica = &plan["replicas"][2];
        assert_eq!((&replica["shards"], &replica["shards_estimated"]), (&1.into(), &(records > 10_000_000).into()));
    }
}

#[test]
fn a_lost_shard_costs_extract_one_line() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), &["a", "b"], 4);
    std::fs::remove_file(set.join(SHARD)).unwrap();
    let out = temp.path().join("out");
    let output = limited(1024, &["extract", text(&set), text(&out), "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(document["written"], 0);
    let refused = document["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 1, "{document:#}");
    assert_eq!((&refused[0]["id"], &refused[0]["records"]), (&0.into(), &8.into()));
}

#[test]
fn info_opens_a_bounded_number_of_indexes() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), &["a", "b"], 2);
    let path = set.join("dataset.json");
    let mut manifest = Manifest::parse(&std::fs::read(&path).unwrap()).unwrap();
    let shard = manifest.splits[0].shards.remove(0);
    // The same shard under 8,192 names. Those with an odd number do not exist.
    for number in 0..8192 {
        let file = format!("train-{number:05}.tfrecord");
        if number % 2 == 0 && file != shard.file {
            let index = |file: &str| shardtool_format::names::index_path(&set.join(file));
            std::fs::hard_link(set.join(&shard.file), set.join(&file)).unwrap();
            std::fs::hard_link(index(&shard.file), index(&file)).unwrap();
        }
        manifest.splits[0].shards.push(shardtool_format::manifest::Shard { file, ..shard.clone() });
    }
    put(&path, manifest.to_json().as_bytes());
    let output = limited(2048, &["info", text(&set)]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("(from 4096 of 8192 shards)"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let output = limited(2048, &["info", text(&set), "--json"]);
    let split = &serde_json::from_slice::<Value>(&output.stdout).unwrap()["splits"][0];
    assert_eq!((&split["records"], &split["surveyed_shards"]), (&(4 * 8192).into(), &4096.into()));
}

/// Makes a file of `bytes` bytes that takes no space.
fn sparse(path: &Path, bytes: u64) {
    std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_huge_manifest_is_refused_before_it_is_read() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), &["a"], 2);
    sparse(&set.join("dataset.json"), 20 << 30);
    for arguments in [&["verify", text(&set)][..], &["info", text(&set)], &["info", text(&set), "--spec"]] {
        let output = limited(1024, arguments);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("21474836480 bytes"), "{arguments:?}: {said}");
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}");
    }
    let output = limited(1024, &["repair", text(&set)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(status(&["verify", text(&set)]).0, Some(0), "the manifest is rebuilt");
}

#[test]
fn a_huge_index_is_refused_before_it_is_read() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), &["a"], 2);
    let index = set.join("_index").join(format!("{SHARD}.index"));
    let index = if index.exists() { index } else { set.join("_index/train-00000.index") };
    std::fs::OpenOptions::new().write(true).open(&index).unwrap().set_len(20 << 30).unwrap();
    let output = limited(1024, &["verify", text(&set), "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["damages"][0]["name"], "IndexLayout", "{document:#}");
    let output = limited(1024, &["repair", text(&set)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(status(&["verify", text(&set)]).0, Some(0), "the index is rebuilt");
}

#[test]
fn findings_are_counted_beyond_those_that_are_listed() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("bad.tfrecord");
    let mut frame = framed(b"");
    frame[12] ^= 1;
    let frames = 250_000;
    put(&path, &frame.repeat(frames));
    let output = limited(768, &["verify", text(&path), "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["damages"].as_array().unwrap().len(), Report::MAX_FINDINGS);
    assert_eq!(document["unlisted"], frames - Report::MAX_FINDINGS);
    let output = limited(768, &["verify", text(&path)]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("250,000 findings"));
}

/// Writes TFRecord files of records that have `features` features each; those of the second sort before those of the first.
fn many_features(folder: &Path, features: usize) -> PathBuf {
    let path = folder.join(SHARD);
    let record = |letter: char| {
        let names: Vec<_> = (0..features).map(|n| format!("{letter}{n:07}")).collect();
        let mut columns: Vec<_> = names.iter().map(|name| (name.as_str(), Column::Int64(&[1]))).collect();
        framed(&encoded(&mut columns))
    };
    put(&path, &[record('b'), record('a')].concat());
    path
}

#[test]
fn very_many_features_take_time_in_proportion() {
    let temp = tempfile::tempdir().unwrap();
    let set = temp.path().join("set");
    let shard = many_features(&set, 150_000);
    let run = |arguments: &[&str]| {
        let output = limited(8192, arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["index", text(&shard)]);
    run(&["reshard", text(&set), text(&temp.path().join("out"))]);
    std::fs::remove_dir_all(set.join("_index")).unwrap();
    run(&["repair", text(&set)]);
}

#[test]
fn very_many_columns_of_a_list_take_time_in_proportion() {
    let temp = tempfile::tempdir().unwrap();
    let columns = 100_000;
    let names: Vec<_> = (0..columns).map(|n| format!("c{n}")).collect();
    let row = vec!["1"; columns].join(",");
    let list = temp.path().join("list.csv");
    put(&list, format!("key,{}\na,{row}\nb,{row}\n", names.join(",")).as_bytes());
    let output = limited(8192, &["pack", text(&list), text(&temp.path().join("set"))]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn json_of_a_list_is_the_same_document_as_before_it_was_streamed() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), &["a", "b"], 3);
    let output = limited(1024, &["ls", text(&set), "--json", "--column", "image/width"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("{document:#}\n"),
        "members in their order, indented"
    );
    assert_eq!((&document["records"], &document["split"]), (&6.into(), &"train".into()));
    assert_eq!(document["listed"].as_array().unwrap().len(), 6);
    assert_eq!(document["listed"][5]["columns"]["image/width"], 2);
    let none = limited(1024, &["ls", text(&set), "--json", "--count", "0"]);
    assert_eq!(serde_json::from_slice::<Value>(&none.stdout).unwrap()["listed"], Value::Array(vec![]));
}
