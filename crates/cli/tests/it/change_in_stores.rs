//! Changes of a dataset in an S3 server: what they make in a folder, whatever ends the process or changes the dataset at the same time.

use crate::bucket::{Bucket, text};
use serde_json::{Value, json};
use shardtool_decode::{PixelsRef, encode_jpeg};
use shardtool_store_server::{Faults, Options};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

pub(crate) const URL: &str = "s3://bucket/data/set";

/// Each changes the dataset `{}`; the versions are 2 and up.
pub(crate) const CHANGES: [&str; 10] = [
    "column add {} captions.csv",
    "delete {} --keys gone.txt --message withdrawn",
    "append further {} --jobs 1",
    "column replace {} labels.csv --missing keep",
    "tag {} paper --at 2",
    "column drop {} caption",
    "rollback {} 4",
    "compact {} --jobs 1",
    "select {} some --where image/class/label=1",
    "delete {} --where image/class/label=1 --message withdrawn",
];

/// Makes photographs of two classes, lists of columns and keys, and packs them into a folder and into the store.
pub(crate) fn prepare(bucket: &Bucket) {
    for n in 0..12 {
        photo(&bucket.path("photos"), n);
    }
    photo(&bucket.path("further"), 12);
    let rows = |value: fn(usize) -> String| (0..12).map(|n| format!("{},{}\n", key(n), value(n))).collect::<String>();
    fs::write(bucket.path("captions.csv"), format!("key,caption\n{}", rows(|n| format!("caption {n}")))).unwrap();
    fs::write(bucket.path("labels.csv"), format!("key,label\n{},dog\n", key(2))).unwrap();
    fs::write(bucket.path("gone.txt"), format!("{}\n{}\n", key(0), key(7))).unwrap();
    for to in ["here", URL] {
        bucket.good(&["pack", "photos", to, "--shards", "3", "--jobs", "1"]);
    }
}

fn key(n: usize) -> String {
    format!("{}/{n}.jpg", ["cat", "dog"][n % 2])
}

fn photo(folder: &Path, n: usize) {
    let path = folder.join(key(n));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let data: Vec<u8> = (0..32 * 24 * 3).map(|i| (i * (n + 3) / 5) as u8).collect();
    fs::write(path, encode_jpeg(PixelsRef::new(32, 24, &data).unwrap(), 90).unwrap()).unwrap();
}

/// Runs a change of a dataset, which must succeed.
pub(crate) fn change(bucket: &Bucket, command: &str, dataset: &str) {
    let command = command.replace("{}", dataset);
    bucket.good(&command.split_whitespace().collect::<Vec<_>>());
}

/// Returns the records of a version with their captions, after a verification; or what the command that fails prints.
pub(crate) fn contents(bucket: &Bucket, dataset: &str) -> Result<Value, String> {
    let run = |arguments: &[&str]| {
        let output = bucket.run(arguments);
        if output.status.success() { Ok(output.stdout) } else { Err(format!("{arguments:?}: {}", text(&output))) }
    };
    run(&["verify", dataset])?;
    let info: Value = serde_json::from_slice(&run(&["info", dataset, "--json"])?).unwrap();
    let has_captions = info["features"].as_array().unwrap().iter().any(|feature| feature["name"] == "caption");
    let captions: &[&str] = if has_captions { &["--column", "caption"] } else { &[] };
    let mut rows: Value = serde_json::from_slice(&run(&[&["ls", dataset, "--json"], captions].concat())?).unwrap();
    // The names of new shards are random.
    rows["listed"].as_array_mut().unwrap().iter_mut().for_each(|row| row["shard"] = Value::Null);
    Ok(rows["listed"].take())
}

#[test]
fn changes_make_what_they_make_in_a_folder() {
    let bucket = Bucket::new(Options::default());
    prepare(&bucket);
    for change_of in CHANGES {
        for dataset in ["here", URL] {
            change(&bucket, change_of, dataset);
        }
    }
    for version in 1..=CHANGES.len() + 1 {
        let found = contents(&bucket, &format!("{URL}@{version}")).unwrap();
        assert_eq!(found, contents(&bucket, &format!("here@{version}")).unwrap(), "version {version}");
        assert_eq!(
            found.as_array().unwrap().len(),
            [12, 12, 10, 11, 11, 11, 11, 11, 11, 11, 6][version - 1],
            "version {version}"
        );
    }
    // A view has five records, which are deleted in the version after it.
    for (version, records) in [(10, 5), (11, 0)] {
        let keys = |dataset: &str| -> Vec<String> {
            let listed = bucket.good(&["ls", &format!("{dataset}@{version}"), "--split", "some", "--json"]);
            let listed: Value = serde_json::from_str(&listed).unwrap();
            listed["listed"].as_array().unwrap().iter().map(|row| row["key"].to_string()).collect()
        };
        assert_eq!((keys(URL).len(), keys(URL)), (records, keys("here")));
    }
    assert_eq!(contents(&bucket, &format!("{URL}@paper")), contents(&bucket, "here@2"));
    let log = bucket.good(&["log", URL]);
    assert!(log.contains("withdrawn") && log.contains("[paper]"), "{log}");
    bucket.refused(&["delete", URL, "--keys", "gone.txt"], "cat/0.jpg");
    bucket.refused(&["append", "further", URL], "cat/12.jpg");
    // A copy of all versions, and of one.
    bucket.good(&["copy", URL, "all", "--all-versions"]);
    bucket.good(&["copy", &format!("{URL}@3"), "third"]);
    assert_eq!(contents(&bucket, "all@5"), contents(&bucket, "here@5"));
    assert_eq!(contents(&bucket, "third"), contents(&bucket, "here@3"));
    let left: Vec<_> =
        crate::bucket::files(&bucket.path("s3")).into_keys().filter(|name| name.contains(".lock")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Lets the files of the dataset be as old as this.
fn age(bucket: &Bucket, days: u64) {
    let since = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    let folder = bucket.path("s3/bucket/data/set");
    for name in crate::bucket::files(&folder).into_keys() {
        fs::File::options().write(true).open(folder.join(name)).unwrap().set_modified(since).unwrap();
    }
}

#[test]
fn gc_removes_what_no_version_names_and_is_a_day_old() {
    let bucket = Bucket::new(Options::default());
    prepare(&bucket);
    for change_of in ["delete {} --keys gone.txt", "compact {} --jobs 1", "append further {} --jobs 1"] {
        change(&bucket, change_of, URL);
    }
    let folder = bucket.path("s3/bucket/data/set");
    let files = || -> BTreeSet<String> { crate::bucket::files(&folder).into_keys().collect() };
    let gc = |more: &[&str]| -> Value {
        serde_json::from_str(&bucket.good(&[&["gc", URL, "--json"], more].concat())).unwrap()
    };
    let newest = contents(&bucket, URL).unwrap();
    // What killed changes left, and files of the user.
    let left = ["_columns/0123456789abcdef.columns", "train-1234567890123456-00000.tfrecord"];
    for name in left.into_iter().chain(["notes.txt", "_columns/notes.txt"]) {
        fs::write(folder.join(name), "left").unwrap();
    }
    let before = files();
    let kept = gc(&["--yes"]);
    assert_eq!((&kept["files"], &kept["recent"]), (&json!([]), &json!(2)), "{kept}");
    assert_eq!(files(), before);
    age(&bucket, 2);
    // The list writes nothing, and names what is then removed.
    let listed = gc(&[]);
    assert_eq!(listed["files"], json!(["train-1234567890123456-00000.tfrecord", "_columns/0123456789abcdef.columns"]));
    assert_eq!((files(), &listed["removed"]), (before.clone(), &json!(false)));
    assert_eq!(gc(&["--yes"])["files"], listed["files"]);
    assert_eq!(files(), before.iter().filter(|name| !left.contains(&name.as_str())).cloned().collect());
    // An old file of an append that is running: its lock was written just now.
    let running = ["train-6543210987654321-00000.tfrecord", ".pack-train-6543210987654321.json"];
    running.iter().for_each(|name| fs::write(folder.join(name), "under way").unwrap());
    age(&bucket, 2);
    fs::write(folder.join(".pack-train-6543210987654321.lock"), "{}").unwrap();
    assert_eq!(gc(&["--yes"])["files"], json!([]));
    fs::remove_file(folder.join(".pack-train-6543210987654321.lock")).unwrap();
    assert_eq!(gc(&["--yes"])["files"].as_array().unwrap().len(), 2);
    // Old shards of a write of tasks, whose driver has a claim; and when it has ended.
    let attempts = [
        "train-1234567890123456-00000-12345678.tfrecord",
        "_index/train-1234567890123456-00001-89abcdef.tfrecord.index",
    ];
    attempts.iter().for_each(|name| fs::write(folder.join(name), "of a task").unwrap());
    age(&bucket, 2);
    let claim = folder.join(".pack-train.lock.0123456789abcdef.joined");
    fs::write(&claim, "{}").unwrap();
    assert_eq!(gc(&["--yes"])["files"], json!([]));
    fs::remove_file(claim).unwrap();
    assert_eq!(gc(&["--yes"])["files"], json!(attempts));
    // Of one version. A young file of a version that is dropped stays until it is a day old.
    let young = folder.join("_index/train-00000.tfrecord.index");
    fs::File::options().write(true).open(&young).unwrap().set_modified(SystemTime::now()).unwrap();
    let removed = gc(&["--keep", "1", "--yes"]);
    assert_eq!((&removed["versions"], &removed["recent"]), (&json!([1, 2, 3]), &json!(1)));
    let gone = removed["files"].as_array().unwrap();
    assert!(
        ["train-00000.tfrecord", "_versions/000001.json"].iter().all(|name| gone.contains(&json!(name))),
        "{gone:?}"
    );
    assert_eq!(contents(&bucket, URL).unwrap(), newest);
    bucket.refused(&["ls", &format!("{URL}@2")], "has no version");
    age(&bucket, 2);
    assert_eq!(gc(&["--yes"])["files"], json!(["_index/train-00000.tfrecord.index"]));
    assert!(["notes.txt", "_columns/notes.txt"].iter().all(|name| files().contains(*name)));
    assert_eq!(contents(&bucket, URL).unwrap(), newest);
}

#[test]
fn gc_is_refused_while_a_change_is_made() {
    let bucket = Bucket::new(Options::default());
    prepare(&bucket);
    change(&bucket, "delete {} --keys gone.txt", URL);
    age(&bucket, 2);
    // A change that has joined, and has not put its manifest in place.
    bucket.server.hold_writes_of("/dataset.json");
    let mut child = bucket.shardtool(["tag", URL, "paper"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    while bucket.server.waiting() == 0 {
        assert!(since.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    bucket.refused(&["gc", URL, "--yes"], "wait until it ends");
    bucket.server.let_pass();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    bucket.good(&["gc", URL, "--yes"]);
    assert_eq!(contents(&bucket, &format!("{URL}@paper")), contents(&bucket, URL));
}

/// Shards that a killed append left are old when it is continued: a `gc` waits for it, and later keeps them.
#[test]
fn gc_removes_no_shard_that_a_continued_append_uses() {
    let bucket = Bucket::new(Options::default());
    prepare(&bucket);
    let folder = bucket.path("s3/bucket/data/set");
    let files = || -> BTreeSet<String> { crate::bucket::files(&folder).into_keys().collect() };
    let before = files();
    let append = || {
        let waiting = bucket.server.waiting();
        bucket.server.hold_writes_of("/dataset.json");
        let mut child = bucket.shardtool(["append", "further", URL, "--jobs", "1"]);
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let since = Instant::now();
        while bucket.server.waiting() == waiting {
            assert!(since.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        child
    };
    let mut killed = append();
    killed.kill().unwrap();
    killed.wait().unwrap();
    bucket.server.release().unwrap();
    let is_shard = |name: &&String| name.ends_with(".tfrecord") && !before.contains(*name);
    let left: BTreeSet<String> = files().iter().filter(is_shard).cloned().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    age(&bucket, 2);
    let resumed = append();
    let shard = folder.join(left.first().unwrap());
    let old = fs::metadata(&shard).unwrap().modified().unwrap();
    assert!(old.elapsed().unwrap() > Duration::from_secs(24 * 60 * 60), "it was written again");
    bucket.refused(&["gc", URL, "--yes"], "wait until it ends");
    bucket.server.let_pass();
    let output = resumed.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let found = contents(&bucket, URL).unwrap();
    age(&bucket, 2);
    bucket.good(&["gc", URL, "--yes"]);
    assert!(files().is_superset(&left));
    assert_eq!(contents(&bucket, URL).unwrap(), found);
    assert_eq!(bucket.good(&["ls", URL]).lines().filter(|line| line.contains(".jpg")).count(), 13);
}

/// A change that joins takes over the lock of a `gc` that was stopped for long, so that this one removes nothing when it continues.
#[test]
fn a_gc_that_was_stopped_for_long_removes_nothing() {
    let bucket = Bucket::new(Options {
        faults: Faults { delay: Duration::from_millis(20), ..Faults::default() },
        ..Options::default()
    });
    prepare(&bucket);
    change(&bucket, "delete {} --keys gone.txt", URL);
    change(&bucket, "compact {} --jobs 1", URL);
    age(&bucket, 2);
    let (folder, lock) = (bucket.path("s3/bucket/data/set"), bucket.path("s3/bucket/data/set/.change.lock"));
    // A claim is written again after a quarter of the time limit of requests: 2 s.
    let mut gc = bucket.shardtool(["gc", URL, "--keep", "1", "--yes"]);
    let gc = gc.env("SHARDTOOL_STORE_TIMEOUT", "8").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let signal = |name: &str| {
        let sent = std::process::Command::new("kill").args([name, &gc.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    let since = Instant::now();
    while !lock.exists() {
        assert!(since.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    signal("-STOP");
    let stopped = Instant::now();
    bucket.refused(&["tag", URL, "early"], "wait until it ends");
    let before = SystemTime::now() - Duration::from_secs(125);
    fs::File::options().write(true).open(&lock).unwrap().set_modified(before).unwrap();
    change(&bucket, "rollback {} 1", URL);
    assert!(!lock.exists());
    let files: BTreeSet<String> = crate::bucket::files(&folder).into_keys().collect();
    std::thread::sleep(Duration::from_secs(7).saturating_sub(stopped.elapsed()));
    signal("-CONT");
    let output = gc.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("another process has taken over"), "{}", text(&output));
    assert_eq!(crate::bucket::files(&folder).into_keys().collect::<BTreeSet<_>>(), files);
    assert_eq!(contents(&bucket, URL), contents(&bucket, &format!("{URL}@1")));
}

#[test]
fn a_killed_change_leaves_the_version_before_or_after_it() {
    let bucket = Bucket::new(Options::default());
    prepare(&bucket);
    change(&bucket, CHANGES[0], URL);
    change(&bucket, CHANGES[1], URL);
    let (template, folder) = (bucket.path("template"), bucket.path("s3/bucket/data/set"));
    let copy = |from: &Path, to: &Path| {
        let _ = fs::remove_dir_all(to);
        assert!(std::process::Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
    };
    copy(&folder, &template);
    let before = contents(&bucket, URL).unwrap();
    let versions = [1, 2].map(|version| contents(&bucket, &format!("{URL}@{version}")).unwrap());
    let mut killed = 0;
    for command in CHANGES[2..].iter().filter(|command| !command.starts_with("rollback")) {
        let arguments = command.replace("{}", URL);
        change(&bucket, command, URL);
        let after = contents(&bucket, URL).unwrap();
        for requests in (0..).step_by(9) {
            copy(&template, &folder);
            bucket.server.hold_after(requests);
            let mut child = bucket.shardtool(arguments.split_whitespace());
            let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let (since, mut ended) = (Instant::now(), false);
            while !ended && !bucket.server.is_holding() {
                assert!(since.elapsed() < Duration::from_secs(60), "{arguments}");
                std::thread::sleep(Duration::from_millis(1));
                ended = child.try_wait().unwrap().is_some();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            bucket.server.release().unwrap();
            for (version, expected) in [1, 2].iter().zip(&versions) {
                let found = contents(&bucket, &format!("{URL}@{version}"));
                assert_eq!(found.as_ref(), Ok(expected), "{arguments}, killed after {requests} requests");
            }
            let found = contents(&bucket, URL).unwrap();
            assert!(found == before || found == after, "{arguments}, killed after {requests} requests: {found}");
            if ended {
                assert_eq!(found, after, "{arguments}");
                break;
            }
            killed += 1;
            if found == before && before != after {
                let output = bucket.run(&arguments.split_whitespace().collect::<Vec<_>>());
                assert!(output.status.success(), "{arguments}, after {requests} requests: {}", text(&output));
                assert_eq!(contents(&bucket, URL).as_ref(), Ok(&after), "{arguments}");
            }
        }
        copy(&template, &folder);
    }
    assert!(killed >= 10, "{killed}");
}

#[test]
fn changes_at_the_same_time_all_stand_or_are_refused() {
    let bucket = Bucket::new(Options::default());
    prepare(&bucket);
    fs::write(bucket.path("one.txt"), key(3)).unwrap();
    fs::write(bucket.path("scores.csv"), {
        let rows: String = (0..12).map(|n| format!("{},{n}\n", key(n))).collect();
        format!("key,score\n{rows}")
    })
    .unwrap();
    let commands = [
        "delete {} --keys gone.txt",
        "delete {} --keys one.txt",
        "append further {} --jobs 1",
        "tag {} first --at 1",
        "column add {} scores.csv",
    ];
    let children: Vec<_> = commands
        .iter()
        .map(|command| {
            let arguments = command.replace("{}", URL);
            let mut child = bucket.shardtool(arguments.split_whitespace());
            child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let done: Vec<bool> = outputs.iter().map(|output| output.status.success()).collect();
    for output in outputs.iter().filter(|output| !output.status.success()) {
        assert_eq!(output.status.code(), Some(2), "{}", text(output));
        assert_eq!(text(output).lines().filter(|line| line.starts_with("error: ")).count(), 1, "{}", text(output));
    }
    // A tag and an append stand, whatever else was made; and one change is the first.
    assert!(done[2] && done[3], "{done:?}: {:?}", outputs.iter().map(text).collect::<Vec<_>>());
    let keys: Vec<String> = contents(&bucket, URL)
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["key"].as_str().unwrap().to_owned())
        .collect();
    let gone = |n: usize| (done[0] && [0, 7].contains(&n)) || (done[1] && n == 3);
    let mut expected: Vec<String> = (0..13).filter(|n| !gone(*n)).map(key).collect();
    let mut found = keys.clone();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{done:?}");
    let info: Value = serde_json::from_str(&bucket.good(&["info", URL, "--json"])).unwrap();
    let has_scores = info["features"].as_array().unwrap().iter().any(|feature| feature["name"] == "score");
    assert_eq!(has_scores, done[4]);
    assert_eq!(info["version"], 1 + done.iter().filter(|done| **done).count(), "{done:?}");
}
