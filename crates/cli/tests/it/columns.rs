//! Columns of the index on the command line: `ls --where` and `--column`, `info --spec`; and `repair --reseal`.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const CSV: &str = "key,caption,score,source\n\
    a,a red car,1,flickr\n\
    b,,2,flickr\n\
    c,a blue boat,3,web\n\
    d,a red car,,web\n";

fn shardtool(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shardtool")).current_dir(folder).args(arguments).output().unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = shardtool(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A dataset of four records without images, one shard each.
fn dataset() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("list.csv"), CSV).unwrap();
    json(folder.path(), &["pack", "list.csv", "data", "--shards", "4", "--no-shuffle", "--sha256", "--json"]);
    folder
}

fn keys(listed: &Value) -> Vec<&str> {
    listed["listed"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect()
}

/// The records that each list of conditions selects.
const SELECTED: [(&[&str], &[&str]); 10] = [
    (&[], &["a", "b", "c", "d"]),
    (&["caption=a red car"], &["a", "d"]),
    (&["caption!=a red car"], &["b", "c"]),
    (&["source=web", "score>=3"], &["c"]),
    (&["score<3"], &["a", "b"]),
    (&["score=7"], &[]),
    (&["caption~red"], &["a", "d"]),
    (&["caption~a b", "score!="], &["c"]),
    (&["score="], &["d"]),
    (&["key~c"], &["c"]),
];

fn ls<'a>(conditions: &[&'a str]) -> Vec<&'a str> {
    let conditions = conditions.iter().flat_map(|condition| ["--where", *condition]);
    ["ls", "data", "--json", "--column", "caption", "--column", "score"].into_iter().chain(conditions).collect()
}

/// Replaces the shards by files of the same length that hold nothing but zeros: reading a record then fails.
fn erase_shards(folder: &Path) {
    for entry in std::fs::read_dir(folder.join("data")).unwrap().map(|e| e.unwrap()) {
        if entry.path().extension().is_some_and(|e| e == "tfrecord") {
            std::fs::write(entry.path(), vec![0; entry.metadata().unwrap().len() as usize]).unwrap();
        }
    }
}

#[test]
fn values_that_an_index_lacks_are_read_from_the_records() {
    let folder = dataset();
    for (conditions, expected) in SELECTED {
        assert_eq!(keys(&json(folder.path(), &ls(conditions))), expected, "{conditions:?}");
    }
    erase_shards(folder.path());
    // Every record has a source, so every index has it.
    assert_eq!(keys(&json(folder.path(), &["ls", "data", "--json", "--where", "source=web"])), ["c", "d"]);
    // The only record of the second shard has no caption, so its index has no such column: the value is unknown.
    let output = shardtool(folder.path(), &ls(&["caption=a red car"]));
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("train-00001.tfrecord"), "{output:?}");
}

#[test]
fn conditions_and_columns_give_the_values_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("list.csv"), CSV).unwrap();
    json(folder.path(), &["pack", "list.csv", "data", "--shards", "1", "--no-shuffle", "--json"]);
    // With one shard every feature is a column, with nulls.
    erase_shards(folder.path());
    for (conditions, expected) in SELECTED {
        assert_eq!(keys(&json(folder.path(), &ls(conditions))), expected, "{conditions:?}");
    }
    let listed = json(folder.path(), &ls(&[]));
    let columns: Vec<_> = listed["listed"].as_array().unwrap().iter().map(|row| row["columns"].clone()).collect();
    let value = |caption: Value, score: Value| serde_json::json!({ "caption": caption, "score": score });
    let expected = [
        value("a red car".into(), 1.into()),
        value(Value::Null, 2.into()),
        value("a blue boat".into(), 3.into()),
        value("a red car".into(), Value::Null),
    ];
    assert_eq!(columns, expected);
    for (condition, message) in [
        ("colour=red", "no feature `colour`; the dataset has caption"),
        ("score=red", "`score` is int64, found `red`"),
        ("score", "expected FEATURE"),
        ("score~3", "~ is for text, and `score` is int64"),
    ] {
        let output = shardtool(folder.path(), &["ls", "data", "--where", condition]);
        assert_eq!(output.status.code(), Some(2), "{condition}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(message), "{condition}: {error}");
    }
}

#[test]
fn spec_shows_columns_and_what_is_ignored() {
    let folder = dataset();
    let spec = json(folder.path(), &["info", "data", "--spec", "--json"]);
    assert_eq!((&spec["version"], &spec["class"]), (&"1.0".into(), &"full reader".into()));
    let columns = spec["columns"].as_array().unwrap();
    let caption = columns.iter().find(|column| column["name"] == "feature:caption").unwrap();
    assert_eq!((&caption["element"], &caption["shards"]), (&"bytes".into(), &3.into()));
    assert_eq!(spec["ignored_by_1.0"], serde_json::json!([]));
    let later = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/conformance/golden/later-minor");
    let spec = json(&later, &["info", ".", "--spec", "--json"]);
    let ignored = spec["ignored_by_1.0"].to_string();
    for part in ["member", "column", "optional flags"] {
        assert!(ignored.contains(part), "{part}: {ignored}");
    }
}

#[test]
fn an_edited_manifest_is_sealed_only_if_it_is_true() {
    let folder = dataset();
    let manifest = folder.path().join("data/dataset.json");
    let good = std::fs::read_to_string(&manifest).unwrap();
    let edited = good.replace("  \"crc32c\": ", "  \"x-licence\": \"CC BY 4.0\",\n  \"crc32c\": ");
    assert_ne!(edited, good);
    std::fs::write(&manifest, &edited).unwrap();
    let refused = shardtool(folder.path(), &["info", "data"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("repair --reseal"), "the error names the cure");
    json(folder.path(), &["repair", "data", "--reseal", "--json"]);
    json(folder.path(), &["verify", "data", "--json"]);
    let sealed = std::fs::read_to_string(&manifest).unwrap();
    assert!(sealed.contains("\"x-licence\": \"CC BY 4.0\""));
    // A further pack keeps the private member.
    json(folder.path(), &["pack", "list.csv", "data", "--split", "again", "--json"]);
    assert!(std::fs::read_to_string(&manifest).unwrap().contains("\"x-licence\": \"CC BY 4.0\""));
    std::fs::write(&manifest, &sealed).unwrap();
    for (from, to) in [("\"records\": 1", "\"records\": 2"), ("\"label_offset\": 0", "\"label_offset\": 0.5")] {
        let wrong = sealed.replacen(from, to, 1);
        assert_ne!(wrong, sealed, "{from}");
        std::fs::write(&manifest, &wrong).unwrap();
        let refused = shardtool(folder.path(), &["repair", "data", "--reseal"]);
        assert!(!refused.status.success(), "{to}");
        assert_eq!(std::fs::read_to_string(&manifest).unwrap(), wrong, "{to}: the manifest is unchanged");
    }
}

#[test]
fn sha256_of_shards_is_verified() {
    let folder = dataset();
    let manifest = folder.path().join("data/dataset.json");
    let json_text = std::fs::read_to_string(&manifest).unwrap();
    let at = json_text.find("\"sha256\": \"").unwrap() + 11;
    let digit = if json_text.as_bytes()[at] == b'0' { "1" } else { "0" };
    let edited = format!("{}{digit}{}", &json_text[..at], &json_text[at + 1..]);
    std::fs::write(&manifest, edited).unwrap();
    json(folder.path(), &["repair", "data", "--reseal", "--json"]);
    let verified = shardtool(folder.path(), &["verify", "data"]);
    assert_eq!(verified.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&verified.stdout).contains("ShardSha256"));
}
