//! Datasets in an S3 server, with signed requests: copied there and back, verified, read, refused.

use crate::bucket::{Bucket, text};
use shardtool_store_server::{Checksums, Faults, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Starts a server with an empty bucket, and packs a dataset next to it.
fn place(faults: Faults) -> Bucket {
    place_with(Options { faults, ..Options::default() })
}

fn place_with(options: Options) -> Bucket {
    let place = Bucket::new(options);
    crate::demo::copy_into(&place.path(""));
    place
}

/// The files that a manifest names, by their relative paths.
fn files(dataset: &Path) -> BTreeMap<String, Vec<u8>> {
    let list =
        |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let all = list(dataset).into_iter().chain(list(&dataset.join("_index"))).filter(|path| path.is_file());
    let named = all.map(|path| (path.strip_prefix(dataset).unwrap().to_str().unwrap().to_owned(), path));
    let named = named.filter(|(name, _)| !name.starts_with(['.', '_']) || name.starts_with("_index/"));
    named.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

const URL: &str = "s3://bucket/data/set";

#[test]
fn copies_are_equal_and_all_commands_read_them() {
    let place = place(Faults::default());
    assert!(place.good(&["copy", "demo/dataset", URL]).contains("is complete"));
    assert!(files(&place.path("s3/bucket/data/set")) == files(&place.path("demo/dataset")));
    assert!(place.good(&["copy", "demo/dataset", URL]).contains("copied before"));
    for command in ["info", "ls", "verify", "plan"] {
        let (mut here, mut there) = (vec![command, "demo/dataset"], vec![command, URL]);
        if command == "verify" {
            (here, there) = ([&here[..], &["--decode"]].concat(), [&there[..], &["--decode"]].concat());
        }
        let same =
            |text: String| text.replace(URL, "demo/dataset").lines().take(1).map(str::to_owned).collect::<Vec<_>>();
        // Times differ, and what follows the first comma.
        let (here, there) = (same(place.good(&here)), same(place.good(&there)));
        assert_eq!(here[0].split(',').next(), there[0].split(',').next(), "{command}");
    }
    // Status 0: no difference.
    place.good(&["diff", "demo/dataset", URL]);
    place.good(&["extract", URL, "images"]);
    place.good(&["copy", &format!("{URL}/"), "back"]);
    assert!(files(&place.path("back")) == files(&place.path("demo/dataset")));
    let bench = place.good(&["bench", URL, "--epochs", "1", "--batch", "8", "--size", "32", "--json"]);
    assert!(bench.contains("\"requests\""), "{bench}");
}

#[test]
fn plan_names_the_requests_that_bench_makes() {
    let place = place(Faults::default());
    place.good(&["copy", "demo/dataset", URL]);
    for order in [&["sequential"][..], &["shuffled"], &["interleaved", "--run", "20", "--window", "4"]] {
        let options =
            ["--batch", "8", "--size", "32", "--remainder", "mask", "--read-ahead", "2MB", "--fetch-gap", "1kB"];
        let options = [&["--fetch-size", "300kB", "--order"], order, &options[..]].concat();
        let plan = place.good(&[&["plan", URL, "--json"], &options[..]].concat());
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        assert_eq!(plan["store"]["fetch_size_bytes"], 300_000);
        let number = ["sequential", "shuffled", "interleaved"].iter().position(|name| *name == order[0]).unwrap();
        let planned = plan["store"]["orders"][number]["requests"].as_u64().unwrap();
        let requests = |epochs: &str| {
            let before = place.server.requests_of(".tfrecord");
            place.good(&[&["bench", URL, "--epochs", epochs], &options[..]].concat());
            place.server.requests_of(".tfrecord") - before
        };
        // Eight epochs more. What the loader requests ahead of the last one differs by less than an epoch.
        let counted = requests("9") - requests("1");
        assert!((7 * planned..=9 * planned).contains(&counted), "{order:?}: 8 × {planned} planned, {counted} counted");
    }
}

#[test]
fn plan_shows_an_order_that_needs_fewer_requests() {
    let place = place(Faults::default());
    place.good(&["copy", "demo/dataset", URL]);
    let plan = place.good(&["plan", URL, "--order", "interleaved", "--run", "2", "--window", "3", "--batch", "8"]);
    for line in ["interleaved (run 2, window 3) needs more than one request per 4.2 MB", "This order needs fewer:"] {
        assert!(plan.contains(line), "{plan}");
    }
    // Without read-ahead, each record is requested.
    let plan = place.good(&["plan", URL, "--read-ahead", "0", "--batch", "8"]);
    assert!(plan.contains("No run and window need fewer"), "{plan}");
}

#[test]
fn an_interrupted_copy_continues_and_another_dataset_is_kept() {
    let place = place(Faults::default());
    place.good(&["copy", "demo/dataset", URL]);
    let bucket = place.path("s3/bucket/data/set");
    // As after a kill: the manifest and one index are not there yet.
    std::fs::remove_file(bucket.join("dataset.json")).unwrap();
    let index = std::fs::read_dir(bucket.join("_index")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&index).unwrap();
    place.good(&["copy", "demo/dataset", URL]);
    assert!(files(&bucket) == files(&place.path("demo/dataset")));
    // The same for a folder.
    place.good(&["copy", URL, "back"]);
    std::fs::remove_file(place.path("back/dataset.json")).unwrap();
    assert!(place.good(&["copy", URL, "back"]).contains("copied before"));
    let shard = files(&place.path("back")).into_keys().find(|name| name.ends_with(".tfrecord")).unwrap();
    std::fs::remove_file(place.path("back/dataset.json")).unwrap();
    std::fs::write(place.path("back").join(&shard), "mine").unwrap();
    place.refused(&["copy", URL, "back"], "move it elsewhere");
    assert_eq!(std::fs::read(place.path("back").join(&shard)).unwrap(), b"mine");
    // Another dataset.
    place.good(&["reshard", "demo/dataset", "other", "--shard-size", "10KB"]);
    place.refused(&["copy", "other", URL], "has another dataset already");
    place.refused(&["copy", "other", "demo/dataset"], "has another dataset already");
    assert!(files(&bucket) == files(&place.path("demo/dataset")));
}

#[test]
fn nothing_that_exists_is_overwritten() {
    let place = place(Faults::default());
    let shard = files(&place.path("demo/dataset")).into_keys().find(|name| name.ends_with(".tfrecord")).unwrap();
    let bucket = place.path("s3/bucket/data/set");
    std::fs::create_dir_all(&bucket).unwrap();
    // As long as the shard.
    let theirs = vec![7; std::fs::metadata(place.path("demo/dataset").join(&shard)).unwrap().len() as usize];
    std::fs::write(bucket.join(&shard), &theirs).unwrap();
    place.refused(&["copy", "demo/dataset", URL], "move it elsewhere");
    assert!(std::fs::read(bucket.join(&shard)).unwrap() == theirs && !bucket.join("dataset.json").exists());
    std::fs::remove_file(bucket.join(&shard)).unwrap();
    // The refused copy has claimed the folder; the same dataset may be copied, another one may not.
    assert!(bucket.join("_copy.json").exists());
    place.good(&["reshard", "demo/dataset", "other", "--shard-size", "10KB"]);
    place.refused(&["copy", "other", URL], "another dataset is being copied here");
    place.good(&["copy", "demo/dataset", URL]);
    assert!(files(&bucket) == files(&place.path("demo/dataset")) && !bucket.join("_copy.json").exists());
    place.refused(&["copy", "demo/dataset", "http://127.0.0.1:1/set"], "web servers are only read");
    place.good(&["copy", "demo/dataset", "s3://bucket/alone", "--single-writer"]);
}

#[test]
fn damage_is_not_copied_and_verify_finds_it() {
    let place = place(Faults::default());
    place.good(&["copy", "demo/dataset", URL]);
    let shard = files(&place.path("demo/dataset")).into_keys().find(|name| name.ends_with(".tfrecord")).unwrap();
    let stored = place.path("s3/bucket/data/set").join(&shard);
    let mut bytes = std::fs::read(&stored).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&stored, &bytes).unwrap();
    let output = place.run(&["verify", URL]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains(&format!("{URL}/{shard}")), "{}", text(&output));
    place.refused(&["copy", URL, "back"], "expected by the manifest");
    assert!(!place.path("back/dataset.json").exists() && !place.path("back").join(&shard).exists());
    // A cut one.
    std::fs::write(&stored, &bytes[..at]).unwrap();
    let output = place.run(&["verify", URL]);
    assert!(output.status.code() == Some(1) && text(&output).contains("bytes expected"), "{}", text(&output));
    std::fs::remove_file(&stored).unwrap();
    let output = place.run(&["verify", URL]);
    assert!(output.status.code() == Some(1) && text(&output).contains("is missing"), "{}", text(&output));
}

/// Runs `verify --quick --json` and returns its status and document.
fn quick(place: &Bucket, dataset: &str) -> (i32, serde_json::Value) {
    let output = place.run(&["verify", dataset, "--quick", "--json"]);
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output)));
    (output.status.code().unwrap(), document)
}

/// Flips a bit in the middle of a file.
fn flip(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

/// Encodes a CRC as S3 does.
fn base64(crc: u32) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = u64::from(crc) << 4;
    let digits = (0..6).rev().map(|n| ALPHABET[(bits >> (6 * n)) as usize % 64] as char);
    digits.collect::<String>() + "=="
}

#[test]
fn quick_verification_compares_lengths() {
    let place = place_with(Options { checksums: Checksums::Ignored, ..Options::default() });
    place.good(&["copy", "demo/dataset", URL]);
    let bucket = place.path("s3/bucket/data/set");
    let shards = files(&bucket).keys().filter(|name| name.ends_with(".tfrecord")).count();
    let before = (place.server.requests_of(".tfrecord"), place.server.requests());
    for dataset in [URL, "demo/dataset"] {
        let (status, document) = quick(&place, dataset);
        assert_eq!((status, &document["good"], &document["shards"]), (0, &true.into(), &shards.into()));
        assert_eq!(document["quick"], serde_json::json!({ "crc_shards": 0, "length_shards": shards }));
        assert!(place.good(&["verify", dataset, "--quick"]).contains("0 by length and the store's CRC32C"));
    }
    // Twice the manifest, a listing of unfinished splits, and two requests per shard.
    assert_eq!(place.server.requests_of(".tfrecord") - before.0, 2 * shards as u64);
    assert_eq!(place.server.requests() - before.1, 2 * (2 + 2 * shards as u64));
    // A flipped bit does not change the length.
    let shard = bucket.join(files(&bucket).keys().find(|name| name.ends_with(".tfrecord")).unwrap());
    flip(&shard);
    assert_eq!(quick(&place, URL).0, 0);
    let bytes = std::fs::read(&shard).unwrap();
    std::fs::write(&shard, &bytes[..bytes.len() - 1]).unwrap();
    let (status, document) = quick(&place, URL);
    assert_eq!((status, &document["damages"][0]["name"]), (1, &"ShardLength".into()), "{document}");
    let lengths = (document["damages"][0]["expected"].clone(), document["damages"][0]["found"].clone());
    assert_eq!(lengths, (bytes.len().to_string().into(), (bytes.len() - 1).to_string().into()));
    std::fs::remove_file(&shard).unwrap();
    let index = files(&bucket).into_keys().find(|name| name.ends_with(".index")).unwrap();
    std::fs::write(bucket.join(&index), "short").unwrap();
    let (status, document) = quick(&place, URL);
    let names: Vec<_> = document["damages"].as_array().unwrap().iter().map(|damage| damage["name"].clone()).collect();
    assert!(status == 1 && names.len() == 2, "{document}");
    assert!(names.contains(&"MissingShard".into()) && names.contains(&"IndexMismatch".into()), "{names:?}");
}

#[test]
fn quick_verification_compares_the_checksums_of_a_store() {
    let place = place(Faults::default());
    place.good(&["copy", "demo/dataset", URL]);
    let dataset = shardtool_read::Dataset::open(place.path("demo/dataset")).unwrap();
    let shards = &dataset.splits()[0].entry().shards;
    // `copy` has sent those of shards and indexes.
    let (status, document) = quick(&place, URL);
    assert_eq!(status, 0, "{document}");
    assert_eq!(document["quick"], serde_json::json!({ "crc_shards": shards.len(), "length_shards": 0 }));
    // Another object of the same length.
    let name = &shards[0].file;
    place.server.set_crc32c(&format!("bucket/data/set/{name}"), &base64(shards[0].crc32c ^ 1));
    let (status, document) = quick(&place, URL);
    assert_eq!((status, &document["damages"][0]["name"]), (1, &"ShardCrc".into()), "{document}");
    assert!(document["damages"][0]["file"].as_str().unwrap().ends_with(name), "{document}");
    // A checksum of parts says nothing about the whole.
    place.server.set_crc32c(&format!("bucket/data/set/{name}"), &(base64(shards[0].crc32c ^ 1) + "-2"));
    let (status, document) = quick(&place, URL);
    assert_eq!((status, &document["quick"]["length_shards"]), (0, &1.into()), "{document}");
}

#[test]
fn quick_verification_without_a_store_or_a_manifest_cannot_run() {
    let place = place(Faults::default());
    let shard = files(&place.path("demo/dataset")).into_keys().find(|name| name.ends_with(".tfrecord")).unwrap();
    place.refused(&["verify", &format!("demo/dataset/{shard}"), "--quick"], "have no manifest");
    place.refused(&["verify", "demo/dataset", "--quick", "--decode"], "cannot be used with");
    place.good(&["copy", "demo/dataset", URL]);
    let mut command = place.shardtool(["verify", URL, "--quick"]);
    let output = command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1").env("SHARDTOOL_STORE_TIMEOUT", "2").output();
    assert_eq!(output.unwrap().status.code(), Some(2));
    // The manifest is found, and a shard cannot be examined.
    std::fs::remove_file(place.path("demo/dataset").join(&shard)).unwrap();
    std::fs::create_dir(place.path("demo/dataset").join(&shard)).unwrap();
    place.refused(&["verify", "demo/dataset", "--quick"], &shard);
}

#[test]
fn verify_and_copy_survive_a_failing_network() {
    for seed in 0..crate::bucket::seeds() {
        let place = place(Faults { seed, one_in: 5, ..Faults::default() });
        place.good(&["copy", "demo/dataset", URL]);
        assert!(place.good(&["verify", URL]).contains("No damage found"), "seed {seed}");
        place.good(&["copy", URL, "back"]);
        assert!(files(&place.path("back")) == files(&place.path("demo/dataset")), "seed {seed}");
    }
}

#[test]
fn settings_of_gcs_and_azure_are_checked_before_the_first_request() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |url: &str, environment: &[(&str, &str)], message: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AZURE_") || name.starts_with("GOOGLE_"))
        {
            command.env_remove(name);
        }
        command.args(["info", url]).env("HOME", folder.path()).env("SHARDTOOL_STORE_TIMEOUT", "2");
        let output = command.envs(environment.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{url}: {}", text(&output));
        assert!(text(&output).contains(message), "{message}: {}", text(&output));
    };
    let account = [("AZURE_STORAGE_ACCOUNT_NAME", "name"), ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")];
    let closed_port = "http://127.0.0.1:1";
    refused("az://data/set", &[], "credentials are taken from AZURE_STORAGE_ACCOUNT_NAME");
    for name in ["AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"] {
        refused("az://data/set", &[account[0], account[1], (name, closed_port)], "set AZURE_ALLOW_HTTP=true");
        let allowed = [account[0], account[1], (name, closed_port), ("AZURE_ALLOW_HTTP", "true")];
        refused("az://data/set", &allowed, "no answer within 2 s");
    }
    let emulator = [("AZURE_STORAGE_USE_EMULATOR", "true"), ("AZURITE_BLOB_STORAGE_URL", closed_port)];
    refused("az://data/set", &emulator, "no answer within 2 s");
    let gcs = [("GOOGLE_SKIP_SIGNATURE", "true"), ("GOOGLE_BASE_URL", closed_port)];
    refused("gs://data/set", &gcs, "set GOOGLE_ALLOW_HTTP=true");
    refused("gs://data/set", &[gcs[0], gcs[1], ("GOOGLE_ALLOW_HTTP", "true")], "no answer within 2 s");
}

#[test]
fn messages_name_what_was_looked_for() {
    let place = place(Faults::default());
    place.refused(&["info", URL], "it has no dataset.json");
    place.refused(&["info", "ftp://host/set"], "unknown scheme ftp://");
    place.refused(&["info", "s3:///set"], "names no bucket");
    let refused = |name: &str, value: Option<&str>, message: &str| {
        let mut command = place.shardtool(["info", URL]);
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
        let output = command.env("SHARDTOOL_STORE_TIMEOUT", "2").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(message), "{message}: {}", text(&output));
    };
    refused("AWS_SECRET_ACCESS_KEY", Some("wrong"), "credentials are taken from AWS_ACCESS_KEY_ID");
    refused("AWS_ENDPOINT_URL", Some("http://127.0.0.1:1"), "no answer within 2 s");
    refused("AWS_ALLOW_HTTP", None, "set AWS_ALLOW_HTTP=true");
    place.refused(&["copy", "demo/dataset", "s3://absent/set"], "s3://absent does not exist");
    // Credentials of a profile.
    std::fs::create_dir(place.path(".aws")).unwrap();
    let (id, secret) = shardtool_store_server::CREDENTIALS;
    let profile = format!(
        "[default]\naws_access_key_id = closed_port\n[team]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n"
    );
    std::fs::write(place.path(".aws/credentials"), profile).unwrap();
    place.good(&["copy", "demo/dataset", URL]);
    let mut command = place.shardtool(["info", URL]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY").env("AWS_PROFILE", "team");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}
