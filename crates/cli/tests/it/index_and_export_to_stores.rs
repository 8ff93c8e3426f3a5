//! `index` and `export` in an S3 server: the same files as in a folder, and nothing left of what failed.

use crate::bucket::{Bucket, files, same_files, text};
use shardtool_store_server::{Fault, Faults, Options};
use std::fs;

fn same(bucket: &Bucket, a: &str, b: &str) {
    // A folder also has the mark of the export that made it.
    same_files(&bucket.path(a), &bucket.path(b), |name| !name.starts_with('.'));
}

/// Copies the shards of the demo to folders, without indexes and manifest.
fn shards(bucket: &Bucket, folders: &[&str]) {
    crate::demo::copy_into(&bucket.path(""));
    for folder in folders {
        fs::create_dir_all(bucket.path(folder)).unwrap();
        for (name, bytes) in files(&bucket.path("demo/dataset")) {
            if name.ends_with(".tfrecord") {
                fs::write(bucket.path(folder).join(name), bytes).unwrap();
            }
        }
    }
}

#[test]
fn index_writes_beside_the_shards() {
    let bucket = Bucket::new(Options::default());
    shards(&bucket, &["here", "s3/bucket/set"]);
    let here = ["00000", "00001", "00002", "00003"].map(|number| format!("here/train-{number}.tfrecord"));
    bucket.good(&[&["index"], &here.each_ref().map(String::as_str)[..]].concat());
    let index = ["index", "s3://bucket/set/train-*.tfrecord"];
    // Killed after each few requests; the next command continues.
    let mut killed = 0;
    for requests in (1..).step_by(3) {
        let _ = fs::remove_dir_all(bucket.path("s3/bucket/set/_index"));
        let _ = fs::remove_file(bucket.path("s3/bucket/set/dataset.json"));
        bucket.server.hold_after(requests);
        let mut child = bucket.shardtool(index).spawn().unwrap();
        let ended = loop {
            let ended = child.try_wait().unwrap().is_some();
            if ended || bucket.server.is_holding() {
                break ended;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        child.kill().unwrap();
        child.wait().unwrap();
        bucket.server.release().unwrap();
        if ended {
            break;
        }
        killed += 1;
        assert!(bucket.good(&index).contains("indexed 360 records in 4 shards"));
        same(&bucket, "here", "s3/bucket/set");
    }
    assert!(killed > 5, "{killed}");
    same(&bucket, "here", "s3/bucket/set");
    bucket.good(&["verify", "s3://bucket/set", "--decode"]);
    // Again, and files that are not there.
    assert!(bucket.good(&index).contains("indexed 360 records in 4 shards"));
    same(&bucket, "here", "s3/bucket/set");
    bucket.refused(&["index", "s3://bucket/set/none-*.tfrecord"], "s3://bucket/set/none-*.tfrecord");
    bucket.refused(&["index", "s3://bucket/set/none.tfrecord", "--split", "x"], "s3://bucket/set/none.tfrecord");
    bucket.refused(&["index", "s3://bucket/set/train-00000.tfrecord", "--out", "links"], "links to a store");
    bucket.refused(&["index", "here/train-00000.tfrecord", "--out", "s3://bucket/x"], "a folder on a disk");
    bucket.refused(&["index", "s3://bucket/none/*"], "s3://bucket/none/*");
}

#[test]
fn a_damaged_shard_is_not_indexed_and_a_changed_answer_is_no_damage() {
    let bucket = Bucket::new(Options::default());
    shards(&bucket, &["s3/bucket/set"]);
    let path = bucket.path("s3/bucket/set/train-00002.tfrecord");
    let good = fs::read(&path).unwrap();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    fs::write(&path, &damaged).unwrap();
    bucket.refused(&["index", "s3://bucket/set/*"], "train-00002.tfrecord");
    assert_eq!(files(&bucket.path("s3/bucket/set")).len(), 4, "no index, no manifest");
    for seed in 0..crate::bucket::seeds() {
        let faults = Faults { seed, one_in: 5, only: Some(Fault::WrongByte), ..Faults::default() };
        let bucket = Bucket::new(Options { faults, ..Options::default() });
        shards(&bucket, &["here", "s3/bucket/set"]);
        let here: Vec<String> = (0..4).map(|number| format!("here/train-{number:05}.tfrecord")).collect();
        bucket.good(&["index"].into_iter().chain(here.iter().map(String::as_str)).collect::<Vec<_>>());
        bucket.good(&["index", "s3://bucket/set/train-*", "--jobs", "1"]);
        assert!(bucket.server.injected() > 2, "{}", bucket.server.injected());
        same(&bucket, "here", "s3/bucket/set");
    }
}

#[test]
fn exports_become_the_files_that_a_folder_has() {
    let bucket = Bucket::new(Options::default());
    crate::demo::copy_into(&bucket.path(""));
    bucket.good(&["copy", "demo/dataset", "s3://bucket/dataset"]);
    for (kind, more) in
        [("tfrecord", &["--dali-index"][..]), ("webdataset", &[]), ("parquet", &[]), ("folder", &["--jobs", "8"])]
    {
        bucket.good(&[&["export", "demo/dataset", kind, "--to", kind], more].concat());
        for from in ["demo/dataset", "s3://bucket/dataset"] {
            let to = format!("s3://bucket/{kind}-{}", from.len());
            bucket.good(&[&["export", from, &to, "--to", kind], more].concat());
            same(&bucket, kind, &format!("s3/bucket/{kind}-{}", from.len()));
        }
        bucket.good(&[&["export", "s3://bucket/dataset", &format!("from-{kind}"), "--to", kind], more].concat());
        same(&bucket, kind, &format!("from-{kind}"));
    }
    let to = ["export", "demo/dataset", "s3://bucket/parquet-12", "--to", "parquet"];
    bucket.refused(&to, "not empty");
    bucket.good(&[&to[..], &["--force"]].concat());
    same(&bucket, "parquet", "s3/bucket/parquet-12");
    bucket.refused(&["export", "demo/dataset", "http://127.0.0.1:1/x", "--to", "parquet"], "web servers are only read");
    // Damage is left out, as in a folder.
    let path = bucket.path("demo/dataset/train-00001.tfrecord");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for to in ["damaged", "s3://bucket/damaged"] {
        let output = bucket.run(&["export", "demo/dataset", to, "--to", "tfrecord"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("exported 359 records to 4 files"), "{}", text(&output));
    }
    same(&bucket, "damaged", "s3/bucket/damaged");
}

#[test]
fn a_failed_export_leaves_nothing() {
    let bucket = Bucket::new(Options::default());
    crate::demo::copy_into(&bucket.path(""));
    fs::remove_file(bucket.path("demo/dataset/train-00003.tfrecord")).unwrap();
    for kind in ["tfrecord", "webdataset", "folder"] {
        let to = format!("s3://bucket/{kind}");
        bucket.refused(&["export", "demo/dataset", &to, "--to", kind, "--jobs", "1"], "train-00003.tfrecord");
        assert!(bucket.server.requests() > 3);
        assert_eq!(files(&bucket.path("s3/bucket")).len(), 0, "{kind}");
    }
    // A failed export with --force removes no object that existed before it.
    fs::create_dir_all(bucket.path("s3/bucket/kept")).unwrap();
    for number in 0..4 {
        fs::write(bucket.path(&format!("s3/bucket/kept/train-{number:05}.tar")), "old").unwrap();
    }
    bucket.refused(
        &["export", "demo/dataset", "s3://bucket/kept", "--to", "webdataset", "--jobs", "1", "--force"],
        "train-00003.tfrecord",
    );
    assert_eq!(files(&bucket.path("s3/bucket/kept")).len(), 4);
}
