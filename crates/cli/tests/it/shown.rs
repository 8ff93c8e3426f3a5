//! What `ls`, `info` and `plan` show.

use crate::made;
use std::path::Path;
use std::process::{Command, Stdio};

fn run(folder: &Path, program: &str, arguments: &[&str], environment: &[(&str, String)]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SHARDTOOL: &str = env!("CARGO_BIN_EXE_shardtool");

/// Packs `classes` classes of `each` images.
fn dataset(folder: &Path, classes: u32, each: u32) {
    made::photos(folder, classes, each, (48, 32));
    run(folder, SHARDTOOL, &["pack", "photos", "set"], &[]);
}

#[test]
fn ls_has_a_header_in_a_terminal_only() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    dataset(folder, 2, 2);
    let piped = run(folder, SHARDTOOL, &["ls", "set"], &[]);
    assert_eq!(piped.lines().count(), 4, "{piped}");
    assert!(piped.starts_with("       0  class"), "{piped}");
    // `script` (util-linux) runs a command in a terminal.
    let terminal = run(folder, "script", &["-qec", &format!("{SHARDTOOL} ls set"), "/dev/null"], &[]);
    let lines: Vec<_> = terminal.lines().map(str::trim_end).collect();
    assert_eq!(lines.len(), 5, "{terminal}");
    assert_eq!(lines[0], "      id  class                   size     bytes  key");
    assert_eq!(lines[1], piped.lines().next().unwrap());
}

#[test]
fn info_says_that_classes_are_of_one_size() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    dataset(folder, 14, 1);
    let text = run(folder, SHARDTOOL, &["info", "set"], &[]);
    assert!(text.contains("classes of train: 14 classes, 1 record each\nimages"), "{text}");
    std::fs::copy(folder.join("photos/class00/000.jpg"), folder.join("photos/class00/001.jpg")).unwrap();
    run(folder, SHARDTOOL, &["pack", "photos", "uneven"], &[]);
    let text = run(folder, SHARDTOOL, &["info", "uneven"], &[]);
    assert!(text.contains("classes of train: 14 classes\n"), "{text}");
    assert!(text.contains(" 4  1 each\n"), "4 others have one record each: {text}");
}

#[test]
fn plan_advises_on_requests_only_in_a_store_and_never_more_than_the_dataset() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    made::photos(folder, 2, 150, (640, 480));
    run(folder, SHARDTOOL, &["pack", "photos", "s3/bucket/set", "--shards", "2"], &[]);
    // Two windows of 64 × 256 records of 30 kB do not fit.
    let plan = ["--batch", "8", "--read-ahead", "1MiB"];
    let local = run(folder, SHARDTOOL, &[&["plan", "s3/bucket/set"][..], &plan].concat(), &[]);
    assert!(local.contains("requests of replica 0 per epoch"), "{local}");
    for advice in ["needs more than one request", "that takes --read-ahead"] {
        assert!(!local.contains(advice), "{local}");
    }
    assert!(local.lines().all(|line| line.chars().count() <= 80), "{local}");
    let server = shardtool_store_server::Server::start(&folder.join("s3"), Default::default()).unwrap();
    let stored = run(folder, SHARDTOOL, &[&["plan", "s3://bucket/set"][..], &plan].concat(), &server.environment());
    let bytes: u64 = (0..2)
        .map(|i| std::fs::metadata(folder.join(format!("s3/bucket/set/train-0000{i}.tfrecord"))).unwrap().len())
        .sum();
    let (_, advised) = stored.split_once("that takes --read-ahead ").expect(&stored);
    let (number, unit) = advised.split_once(".\n").unwrap().0.split_once(' ').unwrap();
    assert_eq!(unit, "MB", "{stored}");
    assert!((number.parse::<f64>().unwrap() - bytes as f64 / 1e6).abs() < 0.1, "{bytes} bytes: {stored}");
}

#[test]
fn plan_and_bench_take_a_schedule_of_splits_other_datasets_and_classes() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    dataset(folder, 3, 4);
    run(folder, SHARDTOOL, &["pack", "photos", "other", "--split", "val"], &[]);
    let fails = |arguments: &[&str]| {
        let output = Command::new(SHARDTOOL).args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let members = ["--member", "train", "--member", "other#val", "--batch", "4"];
    let stages = ["--schedule", "0: 0.75,0.25; 1.5: 1,1; 50%: 0,1", "--run-epochs", "10", "--draws", "16"];
    let text = run(folder, SHARDTOOL, &[&["plan", "set"][..], &members, &stages].concat(), &[]);
    for line in [
        "stage 0 from epoch 0: set/train 75 %, other/val 25 %",
        "stage 1 from epoch 1 after 8 samples: set/train 50 %, other/val 50 %",
        "stage 2 from epoch 5: other/val 100 %",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("with 4 steps per epoch") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json = run(folder, SHARDTOOL, &[&["plan", "set", "--json"][..], &members, &stages].concat(), &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["stages"][1]["start"], 24);
    assert_eq!(json["stages"][1]["shares"][1]["member"], "other/val");
    // An epoch to warm up and one that is measured: half of the second is of the second stage.
    let bench = ["bench", "set", "--work", "read", "--epochs", "1", "--json"];
    let json = run(folder, SHARDTOOL, &[&bench[..], &members, &stages].concat(), &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let had: Vec<_> = json["stats"]["members"].as_array().unwrap().iter().map(|member| &member["samples"]).collect();
    assert_eq!(had, [22, 10]);
    let classes = ["--schedule", "0: 2,1,1", "--by-class", "--batch", "4", "--work", "read", "--epochs", "1"];
    let text = run(folder, SHARDTOOL, &[&["bench", "set"][..], &classes].concat(), &[]);
    assert!(text.contains("class00: 12 samples, 3.0 passes through 4; 50 % in this stage"), "{text}");
    let text = fails(&[&["plan", "set"][..], &members, &["--schedule", "0: 1"]].concat());
    assert!(text.contains("1 weights for 2 members (set/train, other/val)"), "{text}");
    let text = fails(&["plan", "set", "--schedule", "0: 1; later: 2"]);
    assert!(text.contains("later") && text.contains("90000 samples"), "{text}");
    for (arguments, words) in [
        (&["--member", "train"][..], "--schedule"),
        (&["--member", "nothing", "--schedule", "0: 1"], "nothing"),
        (&["--member", "train", "--split", "train", "--schedule", "0: 1"], "--split"),
        (&["--schedule", "0: 1; 50%: 1"], "epochs"),
        (&["--schedule", "0: 1", "--policy", "shard"], "not a scheduled source"),
    ] {
        let text = fails(&[&["plan", "set"][..], arguments].concat());
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
}
