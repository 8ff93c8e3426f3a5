//! Changes of a dataset in an S3 server whose answers fail, come late, are cut, or are lost: each is made once, and what it makes in a
//! folder.

use crate::bucket::{Bucket, files, seeds};
use crate::change_in_stores::{CHANGES, URL, change, contents, prepare};
use serde_json::Value;
use shardtool_store_server::{Faults, Options};

#[test]
fn a_failing_network_makes_each_change_once() {
    for seed in 0..seeds() {
        let faults = Faults { seed, one_in: 6, writes: true, ..Faults::default() };
        let bucket = Bucket::new(Options { faults, ..Options::default() });
        prepare(&bucket);
        for change_of in CHANGES.into_iter().chain(["purge {} --yes --jobs 1", "gc {} --keep 3 --yes"]) {
            for dataset in ["here", URL] {
                change(&bucket, change_of, dataset);
            }
        }
        assert!(bucket.server.injected() > 50, "{}", bucket.server.injected());
        let log = |dataset: &str| -> Vec<Value> {
            let log: Value = serde_json::from_str(&bucket.good(&["log", dataset, "--json"])).unwrap();
            let versions = log["versions"].as_array().unwrap().clone();
            versions.into_iter().map(|version| version["version"].clone()).collect()
        };
        let versions = log("here");
        assert_eq!(log(URL), versions, "seed {seed}");
        assert_eq!(versions[0], 1 + CHANGES.len() + 1);
        for version in versions {
            let there = contents(&bucket, &format!("{URL}@{version}"));
            assert_eq!(there, contents(&bucket, &format!("here@{version}")), "seed {seed}, version {version}");
            assert!(there.is_ok(), "seed {seed}: {there:?}");
        }
        let left: Vec<_> = files(&bucket.path("s3")).into_keys().filter(|name| name.contains(".lock")).collect();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
    }
}
