//! The cache on a local disk, from the command line: killed processes, a full disk, and what it refuses.
//!
//! `SHARDTOOL_CACHE_KILLS` is the number of kills (default 4; `scripts/campaign stores` asks for 50).

use crate::bucket::{Bucket, text};
use shardtool_store_server::Options;
use std::process::{Command, Stdio};
use std::time::Duration;

const URL: &str = "s3://bucket/set";

/// Packs a dataset of many shards, and copies it to the bucket.
fn place() -> Bucket {
    let place = Bucket::new(Options::default());
    crate::demo::copy_into(&place.path(""));
    place.good(&["reshard", "demo/dataset", "set", "--shards", "16"]);
    place.good(&["copy", "set", URL]);
    place
}

/// Returns the bytes of the shards.
fn bytes(place: &Bucket) -> u64 {
    std::fs::read_dir(place.path("set")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn commands_read_through_the_cache() {
    let place = place();
    let before = place.server.requests();
    let equal = ["diff", "set", URL, "--cache", "cache", "--cache-size", "1GiB"];
    place.good(&equal);
    let cold = place.server.requests() - before;
    place.good(&equal);
    let warm = place.server.requests() - before - cold;
    // The manifest, and a listing of unfinished splits.
    assert!(cold > 33 && warm == 2, "{cold} and {warm} requests");
    let bench = ["bench", URL, "--cache", "cache", "--epochs", "2", "--batch", "8", "--size", "32", "--json"];
    assert!(place.good(&bench).contains("\"cache_hits\""));
    assert_eq!(place.server.requests() - before - cold - warm, 2);
    // `verify` reads the store.
    assert_eq!(place.run(&["verify", URL, "--cache", "cache"]).status.code(), Some(2));
    let shard = place.path("s3/bucket/set");
    let shard = std::fs::read_dir(shard).unwrap().map(|entry| entry.unwrap().path());
    let shard = shard.into_iter().find(|path| path.extension().is_some_and(|e| e == "tfrecord")).unwrap();
    let mut bytes = std::fs::read(&shard).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    assert_eq!(place.run(&["verify", URL]).status.code(), Some(1));
    place.good(&equal);
}

#[test]
fn refuses_what_cannot_be_a_cache() {
    let place = place();
    std::fs::write(place.path("file"), "").unwrap();
    for (arguments, message) in [
        (&["ls", URL, "--cache", "file"][..], "cannot use file as a cache"),
        (&["ls", URL, "--cache", "cache", "--cache-size", "1MiB"], "less than one block"),
        (&["ls", URL, "--cache-size", "1GiB"], "--cache"),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output).contains(message), "{arguments:?}: {}", text(&output));
    }
}

#[test]
fn whenever_its_users_are_killed_the_next_run_is_right() {
    let place = place();
    let kills = std::env::var("SHARDTOOL_CACHE_KILLS").map_or(4, |count| count.parse().unwrap());
    let half = (bytes(&place) / 2).max(4 << 20).to_string();
    let mut killed = 0;
    for number in 0..kills {
        // Sizes that hold everything, and half of it.
        let size = if number % 2 == 0 { "1GiB" } else { &half };
        if number % 8 == 0 {
            let _ = std::fs::remove_dir_all(place.path("cache"));
        }
        let rank = |rank: &str| {
            let mut command =
                place.shardtool(["bench", URL, "--cache", "cache", "--cache-size", size, "--epochs", "1000"]);
            command.args(["--work", "read", "--batch", "4", "--order", "interleaved", "--world", "2", "--rank", rank]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut ranks = [rank("0"), rank("1")];
        // A different moment each time, from the start to some epochs later.
        std::thread::sleep(Duration::from_millis(20 + number * 7919 % 400));
        for process in &mut ranks {
            killed += usize::from(process.try_wait().unwrap().is_none());
            process.kill().unwrap();
            process.wait().unwrap();
        }
        place.good(&["diff", "set", URL, "--cache", "cache", "--cache-size", size]);
    }
    assert_eq!(killed as u64, 2 * kills);
    println!("{killed} processes killed, no difference");
}

#[test]
fn a_full_disk_is_reported_and_the_run_goes_on() {
    let place = place();
    let namespace = ["-rm", "sh", "-c"];
    if !Command::new("unshare").args(namespace).arg("true").status().is_ok_and(|status| status.success()) {
        println!("skipped: unshare -rm is not allowed here");
        return;
    }
    std::fs::create_dir(place.path("cache")).unwrap();
    // Less than the dataset.
    let small = bytes(&place) / 3;
    let script = format!(
        "mount -t tmpfs -o size={small} tmpfs cache && exec {} diff set {URL} --cache cache --cache-size 1GiB",
        env!("CARGO_BIN_EXE_shardtool")
    );
    let output = place.program("unshare").args(namespace).arg(script).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("cannot be written (No space left on device"), "{}", text(&output));
}
