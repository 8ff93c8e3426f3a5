//! Purges of a dataset in an S3 server: what they leave in a folder, whatever ends the process or is written at the same time.

use crate::bucket::{Bucket, files, text};
use serde_json::{Value, json};
use shardtool_decode::{PixelsRef, encode_jpeg};
use shardtool_store_server::Options;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const URL: &str = "s3://bucket/data/set";
/// Bytes that no other image has, wherever they lie.
const WINDOW: usize = 64;

/// Each changes the dataset `{}`; the versions are 2 to 8.
const CHANGES: [&str; 7] = [
    "column add {} captions.csv",
    "select {} some --where image/class/label=1",
    "delete {} --keys gone.txt --message withdrawn",
    "tag {} paper --at 2",
    "compact {} --jobs 1 --shards 2",
    "append other {} --jobs 1 --replace",
    "delete {} --keys later.txt",
];
/// The keys that are deleted.
const DELETED: [usize; 3] = [0, 7, 4];
/// The key whose image is replaced.
const REPLACED: usize = 3;

fn key(n: usize) -> String {
    format!("{}/person-{:06}.jpg", ["cat", "dog"][n % 2], n * 7919)
}

fn photo(folder: &Path, n: usize, seed: usize) {
    let path = folder.join(key(n));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let value = |i: usize| (i.wrapping_mul(seed * 2_654_435_761 + 40_503) >> 16) as u8;
    let data: Vec<u8> = (0..32 * 24 * 3).map(value).collect();
    fs::write(path, encode_jpeg(PixelsRef::new(32, 24, &data).unwrap(), 90).unwrap()).unwrap();
}

/// Makes a dataset of eight versions in a folder and in the store.
fn prepare(bucket: &Bucket) {
    for n in 0..12 {
        photo(&bucket.path("photos"), n, n + 1);
    }
    photo(&bucket.path("other"), REPLACED, 100);
    photo(&bucket.path("again"), DELETED[0], DELETED[0] + 1);
    let rows: String = (0..12).map(|n| format!("{},a caption of person {n:06} alone\n", key(n))).collect();
    fs::write(bucket.path("captions.csv"), format!("key,caption\n{rows}")).unwrap();
    fs::write(bucket.path("gone.txt"), format!("{}\n{}\n", key(DELETED[0]), key(DELETED[1]))).unwrap();
    fs::write(bucket.path("later.txt"), format!("{}\n", key(DELETED[2]))).unwrap();
    bucket.good(&["pack", "photos", "here", "--shards", "3", "--jobs", "1"]);
    for command in CHANGES {
        change(bucket, command, "here");
    }
    bucket.good(&["copy", "here", URL, "--all-versions"]);
}

fn change(bucket: &Bucket, command: &str, dataset: &str) {
    let command = command.replace("{}", dataset);
    bucket.good(&command.split_whitespace().collect::<Vec<_>>());
}

/// Returns the records of a version, and whether it is whole.
fn contents(bucket: &Bucket, dataset: &str) -> Result<Value, String> {
    let run = |arguments: &[&str]| {
        let output = bucket.run(arguments);
        let error = || format!("{arguments:?}: {}", text(&output));
        if output.status.success() { Ok(output.stdout.clone()) } else { Err(error()) }
    };
    run(&["verify", dataset])?;
    let listed = run(&["ls", dataset, "--json", "--column", "caption"])
        .or_else(|_| run(&["ls", dataset, "--json"]))
        .map(|out| serde_json::from_slice::<Value>(&out).unwrap())?;
    let mut rows = listed["listed"].as_array().unwrap().clone();
    rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("shard")));
    Ok(json!(rows))
}

fn versions(bucket: &Bucket, dataset: &str) -> Vec<Result<Value, String>> {
    (1..=CHANGES.len() + 1).map(|version| contents(bucket, &format!("{dataset}@{version}"))).collect()
}

/// Returns the windows of purged images that no other image has, the purged keys that no record has any more, and the captions.
fn needles(bucket: &Bucket) -> BTreeSet<Vec<u8>> {
    let windows = |folder: &str, n: usize| -> BTreeSet<Vec<u8>> {
        let image = fs::read(bucket.path(folder).join(key(n))).unwrap();
        image.windows(WINDOW).map(<[u8]>::to_vec).collect()
    };
    let is_gone = |n: &usize| DELETED.contains(n) || *n == REPLACED;
    let kept = (0..12).filter(|n| !is_gone(n)).map(|n| windows("photos", n));
    let kept: BTreeSet<_> = kept.chain([windows("other", REPLACED)]).flatten().collect();
    let gone: BTreeSet<_> = (0..12).filter(is_gone).flat_map(|n| windows("photos", n)).collect();
    let mut needles: BTreeSet<_> = gone.difference(&kept).cloned().collect();
    assert!(needles.len() > 1000, "{}", needles.len());
    needles.extend(DELETED.iter().map(|n| key(*n).into_bytes()));
    needles.extend((0..12).filter(is_gone).map(|n| format!("person {n:06} alone").into_bytes()));
    needles
}

/// Returns the objects that have one of them.
fn found(objects: &BTreeMap<String, Vec<u8>>, needles: &BTreeSet<Vec<u8>>) -> Vec<String> {
    let lengths: BTreeSet<usize> = needles.iter().map(Vec::len).collect();
    let has = |bytes: &[u8]| lengths.iter().any(|length| bytes.windows(*length).any(|window| needles.contains(window)));
    objects.iter().filter(|(_, bytes)| has(bytes)).map(|(name, _)| name.clone()).collect()
}

/// Returns the objects of the bucket, hidden ones and what the server remembers of them included.
fn objects(bucket: &Bucket) -> BTreeMap<String, Vec<u8>> {
    files(&bucket.path("s3"))
}

#[test]
fn what_was_purged_is_in_no_object_and_every_version_is_as_in_a_folder() {
    let bucket = Bucket::new(Options::default());
    prepare(&bucket);
    let (needles, before) = (needles(&bucket), versions(&bucket, URL));
    assert!(before.iter().all(Result::is_ok), "{before:?}");
    assert!(found(&objects(&bucket), &needles).len() > 5, "the search finds them before the purge");
    // A killed compaction has left a shard of records that were deleted later, just now; notes are the user's.
    let folder = bucket.path("s3/bucket/data/set");
    fs::copy(folder.join("train-00000.tfrecord"), folder.join("train-1234567890123456-00000.tfrecord")).unwrap();
    fs::create_dir(folder.join("mine")).unwrap();
    fs::write(folder.join("mine/notes.txt"), format!("deleted {}", key(DELETED[0]))).unwrap();
    // The list writes nothing.
    let there = objects(&bucket);
    let listed: Value = serde_json::from_str(&bucket.good(&["purge", URL, "--json"])).unwrap();
    assert_eq!(objects(&bucket), there);
    assert_eq!(listed["version"], Value::Null);

    let purge = |dataset: &str| {
        // The notes are found, which is status 1.
        let output = bucket.run(&["purge", dataset, "--yes", "--search", "--json", "--jobs", "2"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
    };
    let (there, here) = (purge(URL), purge("here"));
    for member in ["version", "splits", "versions", "shards", "bytes", "remembered", "copies", "keeps_versions"] {
        assert_eq!(there[member], here[member], "{member}");
    }
    assert_eq!(there["splits"], json!([{"split": "train", "records": DELETED.len() + 1}]));
    assert_eq!((&there["others"], &there["found"]), (&json!(["mine"]), &json!(["mine/notes.txt"])));
    assert!(there["removed"].as_array().unwrap().contains(&json!("train-1234567890123456-00000.tfrecord")));
    assert_eq!(listed["splits"], there["splits"]);
    assert_eq!(versions(&bucket, URL), versions(&bucket, "here"));
    assert_ne!(versions(&bucket, URL), before);
    assert_eq!(found(&objects(&bucket), &needles), ["bucket/data/set/mine/notes.txt"]);
    // The same objects as files but for random names; no lock is left.
    let lengths = |folder: &Path| -> Vec<usize> {
        let mut lengths: Vec<_> = files(folder)
            .into_iter()
            .filter(|(name, _)| !name.starts_with("mine") && !name.contains(".pack") && !name.ends_with(".lock"))
            .map(|(_, bytes)| bytes.len())
            .collect();
        lengths.sort_unstable();
        lengths
    };
    assert_eq!(lengths(&folder), lengths(&bucket.path("here")));
    assert!(files(&folder).keys().all(|name| !name.contains(".lock")), "{:?}", files(&folder).keys());
    // Purged keys stay out, and nothing more is to do.
    bucket.refused(&["append", "again", URL], "was purged from it");
    assert!(bucket.good(&["purge", URL, "--yes"]).contains("nothing to purge"));
}

#[test]
fn a_killed_purge_leaves_versions_that_open_and_the_next_one_completes() {
    let bucket = Bucket::new(Options::default());
    prepare(&bucket);
    let needles = needles(&bucket);
    let before = versions(&bucket, URL);
    bucket.good(&["purge", "here", "--yes"]);
    let after = versions(&bucket, "here");
    let (template, folder) = (bucket.path("template"), bucket.path("s3/bucket/data/set"));
    let copy = |from: &Path, to: &Path| {
        let _ = fs::remove_dir_all(to);
        assert!(std::process::Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
    };
    copy(&folder, &template);
    // `scripts/campaign purge` also kills after every 29th request, until a purge ends before.
    let step: Option<usize> = std::env::var("SHARDTOOL_PURGE_STEP").ok().map(|step| step.parse().unwrap());
    let after_requests = step.into_iter().flat_map(|step| (0..).step_by(step).map(Some));
    let (mut killed, mut was_between) = (0, false);
    // While the third version is written again; then after a number of requests.
    for requests in std::iter::once(None).chain(after_requests) {
        copy(&template, &folder);
        match requests {
            Some(requests) => bucket.server.hold_after(requests),
            None => bucket.server.hold_writes_of("/_versions/000003.json"),
        }
        let mut child = bucket.shardtool(["purge", URL, "--yes", "--jobs", "1"]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (since, mut ended) = (Instant::now(), false);
        while !ended && !bucket.server.is_holding() && bucket.server.waiting() == 0 {
            assert!(since.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
            ended = child.try_wait().unwrap().is_some();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        bucket.server.let_pass();
        bucket.server.release().unwrap();
        let left = versions(&bucket, URL);
        for (version, left) in left.iter().enumerate() {
            let is_whole = left == &before[version] || left == &after[version];
            assert!(is_whole, "version {}, killed after {requests:?} requests: {left:?}", version + 1);
        }
        was_between |= left != before && left != after;
        if ended {
            assert_eq!(left, after);
            break;
        }
        killed += 1;
        bucket.good(&["purge", URL, "--yes"]);
        assert_eq!(versions(&bucket, URL), after, "killed after {requests:?} requests");
        assert_eq!(found(&objects(&bucket), &needles), [""; 0], "killed after {requests:?} requests");
    }
    assert!(killed >= if step.is_some() { 8 } else { 1 } && was_between, "{killed}");
}

/// A pack of another split reads the manifest, and puts it among the earlier versions before it writes the next one. A purge in between
/// would have written the earlier version again.
#[test]
fn a_purge_and_a_pack_wait_for_each_other() {
    let bucket = Bucket::new(Options::default());
    prepare_single(&bucket, &[]);
    let start = |arguments: &[&str]| {
        let mut command = bucket.shardtool(arguments.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let until = |is_so: &dyn Fn() -> bool| {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let ended = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    };
    // Keys that are not purged.
    for n in [2, 5] {
        photo(&bucket.path("more"), n, n + 1);
    }
    let before = [1, 2].map(|version| contents(&bucket, &format!("{URL}@{version}")).unwrap());
    let without = |rows: &Value| -> Value {
        json!(
            rows.as_array()
                .unwrap()
                .iter()
                .filter(|row| row["key"] != key(0))
                .map(|row| row["key"].clone())
                .collect::<Vec<_>>()
        )
    };
    let pack = |split| ["pack", "more", URL, "--split", split, "--jobs", "1"];
    // A pack that began first.
    bucket.server.hold_writes_of("-00000.tfrecord.index");
    let first = start(&pack("validation"));
    until(&|| bucket.server.waiting() == 1);
    bucket.refused(&["purge", URL, "--yes"], "wait until it ends");
    bucket.server.let_pass();
    ended(first);
    // A pack that begins after the purge, and would commit first.
    bucket.server.hold_writes_of("/_versions/000003.json");
    let purge = start(&["purge", URL, "--yes"]);
    until(&|| bucket.server.waiting() == 1);
    let asked = bucket.server.requests_of("/.change.lock");
    let second = start(&pack("test"));
    let plan = bucket.path("s3/bucket/data/set/_index/test-00000.tfrecord.index");
    until(&|| plan.exists() && bucket.server.requests_of("/.change.lock") > asked);
    bucket.server.let_pass();
    ended(purge);
    ended(second);
    for (version, before) in (1..).zip(&before) {
        let now = contents(&bucket, &format!("{URL}@{version}")).unwrap();
        assert_eq!(without(&now), without(before), "version {version}");
        assert_eq!(now.as_array().unwrap().len(), 2, "version {version}");
    }
    let log: Value = serde_json::from_str(&bucket.good(&["log", URL, "--json"])).unwrap();
    let commands: Vec<_> = log["versions"].as_array().unwrap().iter().map(|version| &version["command"]).collect();
    assert_eq!(commands, [&json!("pack"), &json!("purge"), &json!("pack"), &json!("delete"), &Value::Null]);
}

#[test]
fn a_pack_that_is_not_finished_is_refused_and_a_store_that_keeps_versions_is_named() {
    let bucket = Bucket::new(Options { names_versions: true, ..Options::default() });
    prepare(&bucket);
    for arguments in [&["purge", URL][..], &["purge", URL, "--yes"]] {
        assert!(bucket.good(arguments).contains("the store keeps versions of objects"), "{arguments:?}");
    }
    assert!(!bucket.good(&["purge", "here"]).contains("the store keeps"));
    fs::write(bucket.path("s3/bucket/data/set/.pack-validation.json"), "{}").unwrap();
    bucket.refused(&["purge", URL, "--yes"], "the pack of split `validation`");
}

#[test]
fn a_store_without_conditions_needs_a_single_writer() {
    let bucket = Bucket::new(Options { anonymous: true, ignore_conditions: true, ..Options::default() });
    prepare_single(&bucket, &["--single-writer"]);
    bucket.refused(&["purge", URL, "--yes"], "--single-writer");
    assert!(bucket.good(&["purge", URL, "--yes", "--single-writer"]).contains("1 record purged"));
}

/// Makes a dataset of three records in the store, of which one is deleted.
fn prepare_single(bucket: &Bucket, options: &[&str]) {
    for n in 0..3 {
        photo(&bucket.path("photos"), n, n + 1);
    }
    fs::write(bucket.path("gone.txt"), format!("{}\n", key(0))).unwrap();
    bucket.good(&[&["pack", "photos", URL], options].concat());
    bucket.good(&[&["delete", URL, "--keys", "gone.txt"], options].concat());
}
