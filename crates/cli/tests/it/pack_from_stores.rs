//! Sources in an S3 server: packed to the same bytes as from files, or refused by name.

use crate::bucket::{Bucket, text};
use shardtool_store_server::{Fault, Faults, Options, Server};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;

/// A server, and below `s3/bucket` sources of all kinds, made from the demo.
struct Place(Bucket);

impl Deref for Place {
    type Target = Bucket;

    fn deref(&self) -> &Bucket {
        &self.0
    }
}

impl Place {
    fn new(faults: Faults) -> Self {
        let place = Place(Bucket::new(Options { faults, ..Options::default() }));
        crate::demo::copy_into(&place.path(""));
        std::fs::rename(place.path("demo/photos"), place.path("s3/bucket/photos")).unwrap();
        place
    }

    /// Packs a source below the bucket as files and as objects, and compares what was written.
    fn same(&self, source: &str, options: &[&str]) {
        let (local, remote) = (format!("s3/bucket/{source}"), format!("s3://bucket/{source}"));
        let name = |kind: &str| format!("{kind}-{}", source.replace('/', "-"));
        for (from, to) in [(&local, name("local")), (&remote, name("remote"))] {
            self.good(&[&["pack", from, &to], options].concat());
        }
        let (local, remote) = (files(&self.path(&name("local"))), files(&self.path(&name("remote"))));
        assert!(local.len() >= 3 && local == remote, "{source}: {:?}, {:?}", local.keys(), remote.keys());
        self.good(&["verify", &name("remote"), "--decode"]);
    }

    /// Writes a list of photographs, with a prefix before their paths. Returns how many.
    fn list(&self, name: &str, prefix: &str) -> usize {
        let mut rows = String::from("path,label,weight\n");
        let mut count = 0;
        for class in list(&self.path("s3/bucket/photos")) {
            for photo in list(&self.path("s3/bucket/photos").join(&class)).iter().take(5) {
                rows += &format!("{prefix}photos/{class}/{photo},{class},0.5\n");
                count += 1;
            }
        }
        std::fs::write(self.path(name), rows).unwrap();
        count
    }
}

fn list(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

/// The files of a dataset, by their relative paths.
fn files(dataset: &Path) -> BTreeMap<String, Vec<u8>> {
    let folders = [("", dataset.to_owned()), ("_index/", dataset.join("_index"))];
    let named = folders.iter().flat_map(|(prefix, folder)| {
        let files = list(folder).into_iter().filter(|name| folder.join(name).is_file());
        files.map(move |name| (format!("{prefix}{name}"), std::fs::read(folder.join(name)).unwrap()))
    });
    named.collect()
}

#[test]
fn archives_become_the_same_bytes_as_from_files() {
    let place = Place::new(Faults::default());
    for kind in ["webdataset", "parquet", "tfrecord"] {
        place.good(&["export", "demo/dataset", &format!("s3/bucket/{kind}"), "--to", kind]);
        let files = list(&place.path("s3/bucket").join(kind));
        let archive = files.iter().find(|name| [".tar", ".parquet", ".tfrecord"].iter().any(|e| name.ends_with(e)));
        let archive = format!("{kind}/{}", archive.unwrap());
        place.same(&archive, &["--shard-size", "1MB"]);
        // All archives, by the folder and by a glob.
        place.same(kind, &["--shard-size", "1MB"]);
        let (_, extension) = archive.rsplit_once('.').unwrap();
        place.same(&format!("{kind}/*.{extension}"), &["--shard-size", "2MB"]);
        if kind != "parquet" {
            let output = Command::new("gzip").arg("-c").arg(place.path("s3/bucket").join(&archive)).output().unwrap();
            std::fs::write(place.path("s3/bucket").join(format!("{archive}.gz")), output.stdout).unwrap();
            place.same(&format!("{archive}.gz"), &[]);
        }
    }
}

#[test]
fn lists_become_the_same_bytes_as_from_files() {
    let place = Place::new(Faults::default());
    let count = place.list("s3/bucket/list.csv", "");
    place.same("list.csv", &[]);
    let row = |path: &str| format!("{{\"path\": \"{path}\", \"second\": \"{path}\", \"label\": 1}}\n");
    let class = list(&place.path("s3/bucket/photos"))[0].clone();
    let photos = list(&place.path("s3/bucket/photos").join(&class));
    let rows: String = photos.iter().map(|name| row(&format!("photos/{class}/{name}"))).collect();
    std::fs::write(place.path("s3/bucket/list.jsonl"), rows).unwrap();
    place.same("list.jsonl", &["--column", "second:file"]);
    let image = |name: &String| serde_json::json!({ "id": name.len(), "file_name": format!("photos/{class}/{name}") });
    let coco = serde_json::json!({ "images": [image(&photos[0])], "annotations": [], "categories": [] });
    std::fs::write(place.path("s3/bucket/coco.json"), coco.to_string()).unwrap();
    place.same("coco.json", &[]);
    // Lists whose entries are URLs, in a folder on a disk and in one of a store.
    for folder in ["lists", "s3/bucket/lists"] {
        std::fs::create_dir(place.path(folder)).unwrap();
        assert_eq!(place.list(&format!("{folder}/urls.csv"), "s3://bucket/"), count);
    }
    place.good(&["pack", "s3://bucket/lists/urls.csv", "listed"]);
    let before = place.server.requests();
    place.good(&["pack", "lists/urls.csv", "urls"]);
    // For each image, one request for its length and one for its bytes.
    assert_eq!(place.server.requests() - before, 2 * count as u64);
    assert!(place.good(&["ls", "urls", "--json"]).contains(&format!("s3://bucket/photos/{class}/")));
    place.good(&["verify", "urls", "--decode"]);
    assert!(files(&place.path("urls")) == files(&place.path("listed")));
    // The split is complete.
    assert!(place.good(&["pack", "lists/urls.csv", "urls"]).contains("complete"));
}

#[test]
fn a_failing_network_changes_no_byte() {
    let place = Place::new(Faults { seed: 2, one_in: 5, only: Some(Fault::Cut), ..Faults::default() });
    place.good(&["export", "demo/dataset", "s3/bucket/tar", "--to", "webdataset"]);
    let archive = list(&place.path("s3/bucket/tar")).into_iter().find(|name| name.ends_with(".tar")).unwrap();
    place.same(&format!("tar/{archive}"), &[]);
    place.list("s3/bucket/list.csv", "");
    place.same("list.csv", &[]);
    assert!(place.server.injected() > 0);
}

#[test]
fn a_missing_object_is_a_rejected_input() {
    let place = Place::new(Faults::default());
    let count = place.list("list.csv", "s3://bucket/");
    let rows = std::fs::read_to_string(place.path("list.csv")).unwrap();
    let lost = "s3://bucket/photos/none.jpg";
    std::fs::write(place.path("list.csv"), format!("{rows}{lost},owl,1\n")).unwrap();
    let output = place.run(&["pack", "list.csv", "dataset"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let rejected = std::fs::read_to_string(place.path("dataset/rejected-train.jsonl")).unwrap();
    assert!(rejected.contains(lost) && rejected.lines().count() == 1, "{rejected}");
    let records = shardtool_read::Dataset::open(place.path("dataset")).unwrap().split("train").unwrap().len();
    assert_eq!(records, count as u64);
}

#[test]
fn a_store_that_fails_stops_the_run() {
    let place = Place::new(Faults::default());
    place.list("list.csv", "s3://bucket/");
    let dead = [("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("SHARDTOOL_STORE_TIMEOUT", "2")];
    place.refused_with(&["pack", "list.csv", "dataset"], &dead, "s3://bucket/photos/");
    let wrong = [("AWS_SECRET_ACCESS_KEY", "wrong")];
    place.refused_with(&["pack", "list.csv", "dataset"], &wrong, "credentials are taken from");
    place.refused_with(&["pack", "s3://bucket/x.tar", "dataset"], &wrong, "s3://bucket/x.tar");
    assert!(!place.path("dataset/dataset.json").exists());
    // A server that fails after the lengths were read: only GET requests are refused.
    let faults = Faults { one_in: 1, only: Some(Fault::Forbidden), ..Faults::default() };
    let refusing = Server::start(&place.path("s3"), Options { faults, ..Options::default() }).unwrap();
    let endpoint = refusing.endpoint();
    let refusing = [("AWS_ENDPOINT_URL", &*endpoint)];
    place.refused_with(&["pack", "list.csv", "dataset"], &refusing, "s3://bucket/photos/");
    // The same command continues with a server that answers.
    place.good(&["pack", "list.csv", "dataset"]);
}

#[test]
fn what_cannot_be_listed_is_refused_by_name() {
    let place = Place::new(Faults::default());
    for source in ["s3://bucket/folder", "s3://bucket/folder/", "s3://bucket/*.tar", "s3://bucket/none.csv"] {
        place.refused_with(&["pack", source, "dataset"], &[], "no such object");
    }
    let class = list(&place.path("s3/bucket/photos"))[0].clone();
    place.refused_with(&["pack", &format!("s3://bucket/photos/{class}"), "dataset"], &[], "named by a list");
    std::fs::write(place.path("s3/bucket/words.bin"), "no format").unwrap();
    place.refused_with(&["pack", "s3://bucket/words.bin", "dataset"], &[], "unknown format");
    place.refused_with(&["pack", "s3:///x.tar", "dataset"], &[], "names no bucket");
}
