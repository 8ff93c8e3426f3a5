//! `--where` of `export`, `reshard` and `merge`: the records that are taken, and the counts of those left out.

use crate::made;
use serde_json::Value;
use std::path::Path;

fn run(folder: &Path, arguments: &str) -> (i32, String, String) {
    let output = made::run(folder, arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn document(folder: &Path, arguments: &str) -> Value {
    let (status, stdout, stderr) = run(folder, &format!("{arguments} --json"));
    assert_eq!(status, 0, "{arguments}: {stderr}");
    serde_json::from_str(&stdout).unwrap()
}

/// Returns the keys of a dataset, sorted.
fn keys(folder: &Path, arguments: &str) -> Vec<String> {
    let document = document(folder, &format!("ls {arguments}"));
    let rows = document["listed"].as_array().unwrap();
    let mut keys: Vec<_> = rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect();
    keys.sort();
    keys
}

/// A dataset of 12 records, of which 4 have `source=a`.
fn dataset(folder: &Path) {
    let row = |i: u32| format!("{},{}", i % 2, ["a", "b", "c"][i as usize % 3]);
    made::list(folder, "list", "label,source", (0..12).map(row));
    document(folder, "pack list.csv set --shards 3");
}

#[test]
fn reshard_and_merge_take_the_records_that_ls_lists() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    dataset(folder);
    let written = document(folder, "reshard set few --shards 2 --where source=a");
    assert_eq!((&written["samples"], &written["left_out"]), (&12.into(), &8.into()));
    assert_eq!(written["splits"][0]["records"], 4);
    assert_eq!(keys(folder, "few"), keys(folder, "set --where source=a"));
    document(folder, "verify few --decode");

    // All conditions must hold.
    let (status, text, _) = run(folder, "reshard set both --where source!=a --where source<=b --no-shuffle");
    assert_eq!((status, text.contains("8 of 12 left out: --where does not hold for them")), (0, true), "{text}");
    assert_eq!(keys(folder, "both"), keys(folder, "set --where source=b"));

    document(folder, "reshard set rest --where source!=a");
    let merged = document(folder, "merge all few rest");
    assert_eq!((&merged["samples"], &merged["left_out"]), (&12.into(), &0.into()));
    let merged = document(folder, "merge some few rest --where source>b");
    assert_eq!((&merged["samples"], &merged["left_out"]), (&12.into(), &8.into()));
    assert_eq!(keys(folder, "some"), keys(folder, "set --where source=c"));
    let (status, ..) = run(folder, "diff set all");
    assert_eq!(status, 0, "together, the parts are the dataset");
}

#[test]
fn export_writes_only_selected_records_in_each_format() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    dataset(folder);
    for format in ["tfrecord", "webdataset", "parquet", "folder"] {
        let exported = document(folder, &format!("export set {format} --to {format} --where source=a"));
        let counts = ["samples", "left_out", "records"].map(|name| exported[name].as_u64().unwrap());
        assert_eq!((counts, exported["refused"].as_array().unwrap().len()), ([12, 8, 4], 0), "{format}");
        // A complete output is recognised, with its counts, and is not taken for that of another condition.
        let again = document(folder, &format!("export set {format} --to {format} --where source=a"));
        assert_eq!((&again["already_complete"], &again["left_out"]), (&true.into(), &8.into()), "{format}");
        let (status, _, message) = run(folder, &format!("export set {format} --to {format} --where source=b"));
        assert_eq!(status, 2, "{format}: {message}");
    }
    assert_eq!(document(folder, "verify tfrecord/*.tfrecord")["good_records"], 4);
    for source in ["webdataset", "parquet"] {
        let packed = document(folder, &format!("pack {source} from-{source}"));
        assert_eq!(packed["images"], 4, "{source}");
    }
}

#[test]
fn conditions_that_no_record_meets_or_that_are_wrong_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    dataset(folder);
    for (command, expected) in [
        ("reshard set out --where source=z", "--where source=z: no record meets it"),
        ("export set out --to folder --where source=z", "--where source=z: no record meets it"),
        ("merge out set set --where nothing=1", "no feature `nothing`"),
        ("export set out --to tfrecord --allow-damage --where source=a", "--allow-damage exports whole shards"),
    ] {
        let (status, _, message) = run(folder, command);
        assert_eq!((status, message.contains(expected)), (2, true), "{command}: {message}");
        assert!(!folder.join("out").exists(), "{command}");
    }
}
