//! Clones of datasets in an S3 server, on a disk and in the server: what is read, and what is refused.

use crate::bucket::{Bucket, files};
use shardtool_store_server::Options;
use std::fs;

#[test]
fn a_clone_of_a_dataset_in_a_store_is_read_like_the_dataset() {
    let bucket = Bucket::new(Options::default());
    crate::demo::copy_into(&bucket.path(""));
    bucket.good(&["copy", "demo/dataset", "s3://bucket/set"]);
    let asked = || bucket.server.requests_of(".tfrecord") + bucket.server.requests_of(".index");
    let before = asked();
    let printed = bucket.good(&["clone", "s3://bucket/set", "--out", "mine"]);
    assert!(printed.contains("0 B copied") && printed.contains("--source s3://bucket/set"), "{printed}");
    assert_eq!(files(&bucket.path("mine")).keys().collect::<Vec<_>>(), ["dataset.json"]);
    bucket.good(&["clone", "s3://bucket/set", "--out", "s3://bucket/theirs"]);

    // Without the user's word, no shard and no index is requested.
    for near in ["s3://bucket/se", "s3://bucket/set/../set", "http://bucket/set", "/"] {
        for mine in ["mine", "s3://bucket/theirs"] {
            bucket.refused(&["show", mine, "3", "--source", near], "--source s3://bucket/set");
        }
    }
    bucket.refused(&["delete", "mine", "--where", "image/class/text=owl"], "--source s3://bucket/set");
    assert_eq!(asked(), before);

    for mine in ["mine", "s3://bucket/theirs"] {
        bucket.good(&["verify", mine, "--decode", "--source", "s3://bucket/set"]);
        bucket.good(&["verify", mine, "--quick", "--source", "s3://bucket"]);
        let equal = bucket.good(&["diff", mine, "demo/dataset", "--source", "s3://bucket/set"]);
        assert!(equal.contains("360 equal"), "{equal}");
    }
    // The cache of the dataset is that of the clone.
    let bench = ["bench", "mine", "--source", "s3://bucket/set", "--epochs", "1", "--batch", "8", "--size", "32"];
    let cached = [&bench[..], &["--cache", "cache", "--order", "shuffled"]].concat();
    bucket.good(&cached);
    let before = bucket.server.requests_of(".tfrecord");
    bucket.good(&cached);
    bucket.good(&["bench", "s3://bucket/set", "--epochs", "1", "--batch", "8", "--size", "32", "--cache", "cache"]);
    assert_eq!(bucket.server.requests_of(".tfrecord"), before, "all blocks are in the cache");

    // Its own changes, on the disk and in the store, and a copy without the other dataset.
    let set = files(&bucket.path("s3/bucket/set"));
    for mine in ["mine", "s3://bucket/theirs"] {
        bucket.good(&["delete", mine, "--where", "image/class/text=owl", "--source", "s3://bucket/set"]);
        bucket.good(&["verify", mine, "--source", "s3://bucket/set"]);
        let copied = format!("{}-copied", mine.rsplit('/').next().unwrap());
        bucket.good(&["copy", mine, &copied, "--source", "s3://bucket/set"]);
        bucket.good(&["verify", &copied]);
    }
    assert!(files(&bucket.path("s3/bucket/set")) == set);
    // Below the clone's own URL, nothing needs the user's word.
    bucket.good(&["copy", "demo/dataset", "s3://bucket/all/set"]);
    bucket.good(&["clone", "s3://bucket/all/set", "--out", "s3://bucket/all"]);
    bucket.good(&["verify", "s3://bucket/all"]);
    fs::remove_dir_all(bucket.path("s3/bucket/all/set")).unwrap();
    let lost = bucket.shardtool(["verify", "s3://bucket/all"]).output().unwrap();
    assert_eq!(lost.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&lost.stdout).contains("MissingShard"));
}
