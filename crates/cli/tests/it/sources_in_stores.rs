//! Sources that stay in an S3 server, and those that stay on a disk, by their commands: what is read, what is found, what is refused.

use crate::bucket::{Bucket, files, text};
use shardtool_store_server::{Fault, Faults, Options};
use std::fs;

/// Puts the images of the demo into tars, on the disk and in the bucket.
fn tars(bucket: &Bucket) {
    crate::demo::copy_into(&bucket.path(""));
    bucket.good(&["export", "demo/dataset", "tars", "--to", "webdataset"]);
    fs::create_dir_all(bucket.path("s3/bucket/tars")).unwrap();
    for (name, bytes) in files(&bucket.path("tars")).into_iter().filter(|(name, _)| name.ends_with(".tar")) {
        fs::write(bucket.path("s3/bucket/tars").join(name), bytes).unwrap();
    }
    bucket.good(&["pack", "tars", "packed"]);
}

#[test]
fn tars_in_a_store_are_read_by_ranges() {
    let bucket = Bucket::new(Options::default());
    tars(&bucket);
    let printed = bucket.good(&["index", "s3://bucket/tars"]);
    assert!(printed.contains("360 images") && printed.contains("The dataset is s3://bucket/tars"), "{printed}");
    // The index adds only manifest, indexes and plan to the tars.
    let names = files(&bucket.path("s3/bucket/tars"));
    assert!(names.keys().all(|name| !name.ends_with(".tfrecord")), "{:?}", names.keys());
    let equal = bucket.good(&["diff", "s3://bucket/tars", "packed"]);
    assert!(equal.contains("360 equal"), "{equal}");
    bucket.good(&["verify", "s3://bucket/tars", "--decode"]);
    let before = bucket.server.requests_of(".tar");
    bucket.good(&["verify", "s3://bucket/tars", "--quick"]);
    assert_eq!(bucket.server.requests_of(".tar") - before, 4, "one for each tar");
    // Training: neighbours become one request, and a cache needs none in the second epoch.
    let tar_requests = |arguments: &[&str]| {
        let before = bucket.server.requests_of(".tar");
        let printed = bucket.good(arguments);
        assert!(printed.contains("images"), "{printed}");
        bucket.server.requests_of(".tar") - before
    };
    let bench = ["bench", "s3://bucket/tars", "--epochs", "1", "--batch", "8", "--size", "32", "--json"];
    let sequential = tar_requests(&[&bench[..], &["--order", "sequential"]].concat());
    assert!(sequential < 2 * 60, "{sequential} requests for two epochs of 360 records in sequence");
    let shuffled = tar_requests(&[&bench[..], &["--order", "shuffled"]].concat());
    // The chunks of a small dataset hold most of a tar, so that neighbours are near here too.
    assert!((8..360).contains(&shuffled), "{shuffled}, {sequential} in sequence");
    let cached = [&bench[..], &["--cache", "cache", "--order", "shuffled"]].concat();
    let first = tar_requests(&cached);
    assert!(first > 0);
    assert_eq!(tar_requests(&cached), 0, "all blocks are in the cache");
    // From another place: only with the user's word.
    bucket.good(&["index", "s3://bucket/tars", "--out", "elsewhere"]);
    let before = bucket.server.requests();
    bucket.refused(&["show", "elsewhere", "3"], "--source s3://bucket/tars");
    for near in ["s3://bucket/tar", "s3://bucket/tars/../tars", "http://bucket/tars", "/"] {
        bucket.refused(&["show", "elsewhere", "3", "--source", near], "--source s3://bucket/tars");
    }
    assert_eq!(bucket.server.requests(), before, "nothing was asked for");
    for allowed in ["s3://bucket/tars", "s3://bucket/", "s3://bucket"] {
        bucket.good(&["verify", "elsewhere", "--source", allowed]);
    }
    let allowed = [("SHARDTOOL_SOURCES", "/nowhere,s3://bucket/tars/")];
    let output = bucket.shardtool(["show", "elsewhere", "3"]).envs(allowed).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn changed_objects_are_damage_and_other_answers_are_none() {
    let bucket = Bucket::new(Options::default());
    tars(&bucket);
    bucket.good(&["index", "s3://bucket/tars"]);
    let path = bucket.path("s3/bucket/tars/train-00001.tar");
    let good = fs::read(&path).unwrap();
    let findings = |name: &str| {
        let output = bucket.run(&["verify", "s3://bucket/tars"]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output));
        let printed = text(&output);
        assert!(printed.contains(name) && printed.contains("s3://bucket/tars/train-00001.tar"), "{name}: {printed}");
        printed
    };
    let mut bit = good.clone();
    bit[good.len() / 2] ^= 4;
    fs::write(&path, &bit).unwrap();
    assert!(findings("DataCrc").contains("359 good records"));
    fs::write(&path, &good[..good.len() / 2]).unwrap();
    findings("SourceLength");
    fs::remove_file(&path).unwrap();
    let printed = findings("MissingSource");
    assert!(printed.contains("270 good records") || printed.contains("good records"), "{printed}");
    // A grown object is harmless where its bytes are those that were indexed.
    fs::write(&path, [&good[..], &[0; 1024]].concat()).unwrap();
    bucket.good(&["verify", "s3://bucket/tars"]);
    assert_eq!(bucket.run(&["verify", "--quick", "s3://bucket/tars"]).status.code(), Some(1));
    fs::write(&path, &good).unwrap();
    // The reader repeats a request whose answer the connection changed.
    for seed in 0..crate::bucket::seeds() {
        let faults = Faults { seed, one_in: 4, only: Some(Fault::WrongByte), ..Faults::default() };
        let faulty = Bucket::new(Options { faults, ..Options::default() });
        fs::create_dir_all(faulty.path("s3/bucket/tars/_index")).unwrap();
        for (name, bytes) in files(&bucket.path("s3/bucket/tars")) {
            fs::write(faulty.path("s3/bucket/tars").join(name), bytes).unwrap();
        }
        faulty.good(&["verify", "s3://bucket/tars"]);
        for record in ["1", "50", "99", "150", "200", "250", "300", "350"] {
            faulty.good(&["show", "s3://bucket/tars", record]);
        }
        assert!(faulty.server.injected() > 2, "{}", faulty.server.injected());
    }
}

#[test]
fn commands_on_files_that_stay() {
    let bucket = Bucket::new(Options::default());
    crate::demo::copy_into(&bucket.path(""));
    bucket.good(&["extract", "demo/dataset", "photos"]);
    bucket.good(&["pack", "photos", "packed", "--shard-size", "100KB"]);
    let printed = bucket.good(&["index", "photos", "--shard-size", "100KB"]);
    assert!(printed.contains("stay where they are"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    assert!(bucket.good(&["index", "photos", "--shard-size", "100KB"]).contains("already indexed"));
    let json = bucket.good(&["index", "photos", "--shard-size", "100KB", "--json"]);
    assert!(json.contains("\"already_complete\": true") && json.contains("\"sources\": []"), "{json}");
    assert!(bucket.good(&["info", "photos"]).contains("virtual shards"));
    // Every command that reads.
    for (command, same) in [
        (&["export", "SET", "OUT", "--to", "tfrecord"][..], true),
        (&["export", "SET", "OUT", "--to", "tfrecord", "--where", "image/class/label=1"], true),
        (&["export", "SET", "OUT", "--to", "webdataset"], true),
        (&["export", "SET", "OUT", "--to", "folder"], true),
        (&["reshard", "SET", "OUT", "--shards", "2"], true),
        (&["extract", "SET", "OUT"], true),
    ] {
        let run = |set: &str, out: &str| {
            let named = |word: &&str| if *word == "SET" { set.to_owned() } else { word.replace("OUT", out) };
            let arguments: Vec<_> = command.iter().map(named).collect();
            bucket.good(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
            let mut found = files(&bucket.path(out));
            found.retain(|name, _| !name.starts_with('.'));
            fs::remove_dir_all(bucket.path(out)).unwrap();
            found
        };
        let (one, other) = (run("photos", "out"), run("packed", "out"));
        assert!(!one.is_empty() && one.keys().eq(other.keys()), "{command:?}");
        assert_eq!(one == other, same, "{command:?}");
    }
    for command in [["ls", "SET"].as_slice(), &["ls", "SET", "--json"], &["show", "SET", "7"], &["plan", "SET"]] {
        let run = |set: &str| {
            let text =
                bucket.good(&command.iter().map(|word| if *word == "SET" { set } else { word }).collect::<Vec<_>>());
            // What a process has used before depends on the moment.
            text.lines().filter(|line| !line.contains("already used")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(run("photos").replace("photos", "packed"), run("packed"), "{command:?}");
    }
    // Versions on top: the files are as they were.
    let photos = || {
        let mut found = files(&bucket.path("photos"));
        found.retain(|name, _| name.contains('/') && !name.starts_with('_'));
        found
    };
    let before = photos();
    fs::write(bucket.path("rows.csv"), "key,caption\n").unwrap();
    let keys = bucket.good(&["ls", "photos", "--json"]);
    let keys = keys.lines().filter_map(|line| Some(line.split("\"key\": \"").nth(1)?.split('"').next()?.to_owned()));
    let rows: String = keys.map(|key| format!("{key},a caption of {key}\n")).collect();
    assert_eq!(rows.lines().count(), 360);
    fs::write(bucket.path("rows.csv"), format!("key,caption\n{rows}")).unwrap();
    bucket.good(&["column", "add", "photos", "rows.csv"]);
    bucket.good(&["delete", "photos", "--where", "image/class/label=1"]);
    bucket.good(&["select", "photos", "zero", "--where", "image/class/label=0"]);
    assert!(bucket.good(&["show", "photos", "3"]).contains("a caption of"));
    bucket.good(&["verify", "photos"]);
    assert!(bucket.good(&["diff", "photos@1", "packed"]).contains("360 equal"));
    bucket.refused(&["index", "photos", "--shard-size", "90KB"], "versions");
    bucket.refused(&["purge", "photos", "--yes"], "virtual shards");
    bucket.good(&["rollback", "photos", "1"]);
    bucket.good(&["compact", "photos@2"].map(|word| word.trim_end_matches("@2")));
    bucket.good(&["verify", "photos"]);
    for version in 1..=5 {
        bucket.good(&["verify", &format!("photos@{version}")]);
    }
    assert_eq!(photos(), before);
}
