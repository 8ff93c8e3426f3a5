//! `pack` into an S3 server: the same bytes as into a folder, whatever ends the process, fails in the network or is written
//! by others at the same time.

use crate::bucket::{Bucket, seeds, text};
use shardtool_store_server::{Checksums, Faults, Options};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

struct Place(Bucket);

const URL: &str = "s3://bucket/data/set";

impl Deref for Place {
    type Target = Bucket;

    fn deref(&self) -> &Bucket {
        &self.0
    }
}

impl Place {
    /// Starts a server with an empty bucket.
    fn new(options: Options) -> Self {
        Place(Bucket::new(options))
    }

    /// The folder in which the server keeps the dataset.
    fn bucket(&self) -> PathBuf {
        self.path("s3/bucket/data/set")
    }

    fn command(&self, arguments: &str) -> Command {
        self.shardtool(arguments.split_whitespace())
    }

    /// Runs a command in which the server answers `requests` requests, then kills it. Returns whether it had ended by itself.
    fn kill_after(&self, requests: u64, arguments: &str) -> bool {
        self.server.hold_after(requests);
        let mut child = self.spawn(arguments);
        let mut ended = false;
        wait_until("the command ends or is held", || {
            ended = child.try_wait().unwrap().is_some();
            ended || self.server.is_holding()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        self.server.release().unwrap();
        ended
    }

    fn spawn(&self, arguments: &str) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command that must end with this status.
    fn run(&self, arguments: &str, status: i32) -> String {
        let output = self.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments}: {}", text(&output));
        text(&output)
    }

    /// Runs a command that must fail with status 2 and one message.
    fn refused(&self, arguments: &str, message: &str) {
        let output = self.run(arguments, 2);
        assert!(output.contains(message) && errors(&output) == 1, "{arguments}: {output}");
    }

    /// Makes the claim of the split `train` one of a process on another machine, written this number of seconds ago.
    fn claim_elsewhere(&self, seconds: u64) {
        let claim = self.bucket().join(".pack-train.lock");
        let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&claim).unwrap()).unwrap();
        // By the boot of the machine, or by a lock on it.
        let identity = if json["owner"].get("boot").is_some() { "boot" } else { "lock" };
        assert!(json["owner"][identity].is_string(), "{json}");
        json["owner"][identity] = "another".into();
        fs::write(&claim, serde_json::to_vec(&json).unwrap()).unwrap();
        let file = fs::File::options().write(true).open(&claim).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }

    /// Checks that no upload, claim or probe is left.
    fn check_clean(&self) {
        self.check_clean_of("upload");
    }

    /// As [`Self::check_clean`], after a kill: an upload without parts may be left, if the process ended between its beginning and the entry
    /// in the claim.
    fn check_clean_after_kill(&self) {
        self.check_clean_of(".part-");
    }

    fn check_clean_of(&self, upload: &str) {
        let uploads: Vec<_> = names(&self.path("s3")).into_iter().filter(|name| name.contains(upload)).collect();
        assert!(uploads.is_empty(), "{uploads:?}");
        let left: Vec<_> =
            names(&self.bucket()).into_iter().filter(|n| n.contains(".lock") || n.ends_with(".tmp")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Returns the number of error messages.
fn errors(output: &str) -> usize {
    output.lines().filter(|line| line.starts_with("error: ")).count()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// All files of a dataset, by their relative paths, also hidden ones.
fn files(dataset: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in ["", "_index/"] {
        for name in names(&dataset.join(folder)) {
            let path = dataset.join(folder).join(&name);
            if path.is_file() {
                found.insert(format!("{folder}{name}"), fs::read(path).unwrap());
            }
        }
    }
    found
}

fn same(a: &Path, b: &Path) {
    let (a, b) = (files(a), files(b));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    let different: Vec<_> = a.iter().filter(|(name, bytes)| b[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(different.is_empty(), "{different:?}");
}

/// A bitmap of noise.
fn bitmap(side: u32, seed: u32) -> Vec<u8> {
    let row = (3 * side).next_multiple_of(4);
    let mut bytes = b"BM".to_vec();
    for value in [54 + row * side, 0, 54, 40, side, side, 1 | 24 << 16, 0, row * side, 2835, 2835, 0, 0] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    bytes.extend((0..row * side).map(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    }));
    bytes
}

/// Makes a folder of two classes with bitmaps, and a file that is not an image.
fn sources(folder: &Path, images: u32, side: u32) {
    for i in 0..images {
        let class = folder.join(["cat", "dog"][i as usize % 2]);
        fs::create_dir_all(&class).unwrap();
        fs::write(class.join(format!("{i:03}.bmp")), bitmap(side, i)).unwrap();
    }
    fs::write(folder.join("dog/zz-broken.jpg"), b"\xff\xd8\xff and no more").unwrap();
}

/// Waits for a condition.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Two shards of about 12 MB, so that each is uploaded in two parts.
const LARGE: (u32, u32) = (22, 600);

#[test]
fn packs_the_bytes_that_it_packs_into_a_folder() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), LARGE.0, LARGE.1);
    sources(&place.path("more"), 8, 20);
    for (source, options) in [("photos", "--shards 2 --sha256"), ("more", "--split validation --shards 3")] {
        place.run(&format!("pack {source} here {options}"), 1);
        let packed = place.run(&format!("pack {source} {URL} {options}"), 1);
        assert!(packed.contains("packed") && packed.contains(&format!("{URL}/rejected-")), "{packed}");
        same(&place.bucket(), &place.path("here"));
        place.check_clean();
    }
    assert!(place.run(&format!("verify {URL}"), 0).contains("No damage found"));
    // Again, other options, replacing.
    let before = place.server.requests();
    assert!(place.run(&format!("pack photos {URL}/ --shards 2 --sha256"), 1).contains("already complete"));
    assert!(place.server.requests() - before < 20, "{}", place.server.requests() - before);
    place.refused(&format!("pack photos {URL} --shards 3 --sha256"), "different shards: \"2\" before, \"3\" now");
    for to in ["here", URL] {
        place.run(&format!("pack more {to} --shards 1 --force"), 1);
    }
    same(&place.bucket(), &place.path("here"));
    place.check_clean();
    // A split that does not fit.
    fs::rename(place.path("more/cat"), place.path("more/wolf")).unwrap();
    place.refused(
        &format!("pack more {URL} --split test"),
        "split `test` does not fit the dataset in s3://bucket/data/set",
    );
    same(&place.bucket(), &place.path("here"));
    // Files that no manifest or plan names.
    fs::write(place.bucket().join("test-00000.tfrecord"), "mine").unwrap();
    place.refused(&format!("pack photos {URL} --split test"), "no manifest or plan names it");
    assert_eq!(fs::read(place.bucket().join("test-00000.tfrecord")).unwrap(), b"mine");
    // Archives.
    place.run("pack here/validation-00000.tfrecord archive --shard-size 4KB", 0);
    place.run("pack here/validation-00000.tfrecord s3://bucket/archive --shard-size 4KB", 0);
    same(&place.path("s3/bucket/archive"), &place.path("archive"));
    for command in ["extract here s3://bucket/x", "repair s3://bucket/archive"] {
        place.refused(command, "writes to folders only");
    }
    assert_eq!(names(&place.path("s3/bucket")).len(), 2, "no folder x");
    place.refused("pack photos http://127.0.0.1:1/set", "web servers are only read");
}

#[test]
fn a_killed_pack_continues_with_the_same_command() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), LARGE.0, LARGE.1);
    let pack = |to: &str| format!("pack photos {to} --shards 3 --jobs 2");
    place.run(&pack("here"), 1);
    let mut killed = 0;
    for requests in (0..).step_by(3) {
        let _ = fs::remove_dir_all(place.bucket());
        if place.kill_after(requests, &pack(URL)) {
            break;
        }
        killed += 1;
        let manifest = place.bucket().join("dataset.json").exists();
        let finished = names(&place.bucket().join("_index")).iter().filter(|n| n.ends_with(".index")).count();
        let output = place.run(&pack(URL), 1);
        if !manifest {
            assert_eq!(
                output.contains("already finished by an interrupted run"),
                finished > 0,
                "{requests}: {finished} {output}"
            );
        }
        same(&place.bucket(), &place.path("here"));
        place.check_clean();
    }
    assert!(killed > 10, "{killed}");
}

#[test]
fn splits_that_are_packed_at_once_are_both_in_the_manifest() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), 12, 20);
    let pack = |split: &str, to: &str| format!("pack photos {to} --split {split}");
    place.run(&pack("train", "here"), 1);
    place.run(&pack("validation", "here"), 1);
    // Both have read that no manifest exists when they write one. Then two more, that have read the same one.
    for splits in [["train", "validation"], ["test", "extra"]] {
        place.server.hold_writes_of("/dataset.json");
        let packs = splits.map(|split| place.spawn(&pack(split, URL)));
        wait_until("both write the manifest", || place.server.waiting() == 2);
        place.server.let_pass();
        for pack in packs {
            let output = pack.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        }
        if splits[0] == "train" {
            same(&place.bucket(), &place.path("here"));
        }
    }
    let info = place.run(&format!("info {URL}"), 0);
    assert!(["train", "validation", "test", "extra"].iter().all(|split| info.contains(split)), "{info}");
    place.check_clean();
}

#[test]
fn a_split_has_one_writer() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), 12, 20);
    place.run("pack photos here", 1);
    place.server.hold_writes_of("train-00000.tfrecord");
    let first = place.spawn(&format!("pack photos {URL}"));
    wait_until("the first pack writes", || place.server.waiting() == 1);
    let message = format!("process {} on", first.id());
    place.refused(&format!("pack photos {URL} --wait 0"), &message);
    let waits = place.spawn(&format!("pack photos {URL}"));
    place.refused(&format!("pack photos {URL} --force"), "is writing this split of s3://bucket/data/set");
    place.refused(&format!("copy here {URL}"), "a split is being packed here");
    place.server.let_pass();
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let output = waits.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("is writing this split") && text(&output).contains("complete"), "{}", text(&output));
    same(&place.bucket(), &place.path("here"));
    place.check_clean();
}

/// A claim of a process on another machine ends after some time; how long it has not been written is what the store says.
#[test]
fn a_claim_of_another_machine_ends_after_its_silence() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), 12, 20);
    place.run("pack photos here", 1);
    place.server.hold_writes_of("train-00000.tfrecord");
    let mut child = place.spawn(&format!("pack photos {URL}"));
    wait_until("the pack writes", || place.server.waiting() == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    place.server.let_pass();
    place.claim_elsewhere(100);
    place.refused(&format!("pack photos {URL} --wait 0"), "continues its work 2");
    place.claim_elsewhere(125);
    place.run(&format!("pack photos {URL}"), 1);
    same(&place.bucket(), &place.path("here"));
    place.check_clean();
}

/// Another process takes over the split of one that seemed to have ended. The first one finds that, and stops.
#[test]
fn a_pack_whose_split_was_taken_over_stops() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), 12, 20);
    place.run("pack photos here", 1);
    place.server.hold_writes_of("train-00000.tfrecord");
    // A claim is written again after a quarter of the time limit of requests: 2 s.
    let spawn = || {
        let mut command = place.command(&format!("pack photos {URL}"));
        command.env("SHARDTOOL_STORE_TIMEOUT", "8").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = spawn();
    wait_until("the first pack writes", || place.server.waiting() == 1);
    place.claim_elsewhere(125);
    let second = spawn();
    wait_until("the second pack writes", || place.server.waiting() == 2);
    std::thread::sleep(Duration::from_secs(5));
    place.server.let_pass();
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("another process has taken over this split"), "{}", text(&output));
    let output = second.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    same(&place.bucket(), &place.path("here"));
    place.check_clean();
}

#[test]
fn a_failing_network_changes_no_byte() {
    for seed in 0..seeds() {
        let faults = Faults { seed, one_in: 6, writes: true, ..Faults::default() };
        let place = Place::new(Options { faults, ..Options::default() });
        sources(&place.path("photos"), LARGE.0, LARGE.1);
        for to in ["here", URL] {
            place.run(&format!("pack photos {to} --shards 3"), 1);
            place.run(&format!("pack photos {to} --shards 2 --split test"), 1);
        }
        assert!(place.server.injected() > 5, "{}", place.server.injected());
        same(&place.bucket(), &place.path("here"));
        let left: Vec<_> = names(&place.bucket()).into_iter().filter(|name| name.contains(".lock")).collect();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
    }
}

#[test]
fn uploads_carry_the_crc32c_that_quick_verification_compares() {
    let warning = "takes no CRC32C with an upload";
    for (checksums, variable, by_crc) in [
        (Checksums::Kept, "when_supported", 3),
        (Checksums::Kept, "when_required", 0),
        (Checksums::Ignored, "", 0),
        (Checksums::Refused, "", 0),
        (Checksums::Refused, "when_required", 0),
    ] {
        let place = Place::new(Options { checksums, ..Options::default() });
        sources(&place.path("photos"), LARGE.0, LARGE.1);
        sources(&place.path("more"), 8, 20);
        let mut warned = false;
        for (source, options) in [("photos", "--shards 2"), ("more", "--split validation")] {
            place.run(&format!("pack {source} here {options}"), 1);
            let mut command = place.command(&format!("pack {source} {URL} {options}"));
            let output = command.env("AWS_REQUEST_CHECKSUM_CALCULATION", variable).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", text(&output));
            assert!(text(&output).matches(warning).count() <= 1, "{}", text(&output));
            warned |= text(&output).contains(warning);
        }
        assert_eq!(warned, checksums == Checksums::Refused && variable.is_empty(), "{checksums:?} {variable}");
        same(&place.bucket(), &place.path("here"));
        place.check_clean();
        let report: serde_json::Value =
            serde_json::from_str(&place.run(&format!("verify --quick --json {URL}"), 0)).unwrap();
        let expected = serde_json::json!({ "crc_shards": by_crc, "length_shards": 3 - by_crc });
        assert_eq!(report["quick"], expected, "{checksums:?} {variable}");
    }
}

#[test]
fn a_store_that_ignores_conditions_needs_a_single_writer() {
    let place = Place::new(Options { anonymous: true, ignore_conditions: true, ..Options::default() });
    sources(&place.path("photos"), 12, 20);
    place.refused(&format!("pack photos {URL}"), "add --single-writer if nothing else writes there");
    assert!(names(&place.bucket()).is_empty(), "{:?}", names(&place.bucket()));
    for split in ["train", "test"] {
        place.run(&format!("pack photos here --split {split}"), 1);
        place.run(&format!("pack photos {URL} --split {split} --single-writer"), 1);
    }
    same(&place.bucket(), &place.path("here"));
    place.check_clean();
}

#[test]
fn a_store_that_is_down_is_one_error() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), LARGE.0, LARGE.1);
    place.run("pack photos here --shards 2", 1);
    let failing = |endpoint: Option<&str>| {
        let since = Instant::now();
        let mut command = place.command(&format!("pack photos {URL} --shards 2"));
        command.env("SHARDTOOL_STORE_TIMEOUT", "1");
        command.envs(endpoint.map(|endpoint| ("AWS_ENDPOINT_URL", endpoint)));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        let message = text(&output);
        assert!(message.contains(URL) && message.contains("no answer within 1 s"), "{message}");
        assert_eq!(errors(&message), 1, "{message}");
        assert!(since.elapsed() < Duration::from_secs(40), "{:?}", since.elapsed());
    };
    failing(Some("http://127.0.0.1:1"));
    // In the middle: while parts are being uploaded.
    for requests in [3, 12, 20] {
        place.server.hold_after(requests);
        failing(None);
        place.server.release().unwrap();
    }
    place.run(&format!("pack photos {URL} --shards 2"), 1);
    same(&place.bucket(), &place.path("here"));
    place.check_clean();
}

#[test]
fn a_failed_pack_leaves_no_parts() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), LARGE.0, LARGE.1);
    let pack = format!("pack photos {URL} --shards 1 --no-shuffle --on-error");
    let output = place.run(&format!("{pack} fail"), 1);
    assert!(output.contains("zz-broken.jpg"), "{output}");
    place.check_clean();
    assert!(!names(&place.bucket()).iter().any(|name| name.ends_with(".tfrecord")), "{:?}", names(&place.bucket()));
    place.run("pack photos here --shards 1 --no-shuffle", 1);
    place.run(&format!("{pack} skip"), 1);
    same(&place.bucket(), &place.path("here"));
}

#[test]
fn reshard_and_merge_write_to_a_store() {
    let place = Place::new(Options::default());
    sources(&place.path("photos"), LARGE.0, LARGE.1);
    place.run("pack photos set --shards 2", 1);
    place.run("pack photos set --shards 2 --split test", 1);
    place.run("pack set/test-00000.tfrecord other --split more", 0);
    place.run("reshard set here --shards 3", 0);
    // Killed after each few requests; the next command continues.
    let mut killed = 0;
    for requests in (2..).step_by(11) {
        let _ = fs::remove_dir_all(place.bucket());
        if place.kill_after(requests, &format!("reshard set {URL} --shards 3 --jobs 2")) {
            break;
        }
        killed += 1;
        if killed % 2 == 0 && !place.bucket().join("dataset.json").exists() {
            // Another one removes what it left.
            place.run(&format!("reshard set {URL} --shards 1 --jobs 2"), 0);
            let shards = names(&place.bucket()).iter().filter(|name| name.ends_with(".tfrecord")).count();
            assert_eq!(shards, 2, "{:?}", names(&place.bucket()));
        } else {
            place.run(&format!("reshard set {URL} --shards 3 --jobs 2"), 0);
            same(&place.bucket(), &place.path("here"));
        }
        place.check_clean_after_kill();
    }
    assert!(killed > 3, "{killed}");
    place.run(&format!("reshard set {URL} --shards 3"), 0);
    same(&place.bucket(), &place.path("here"));
    place.refused(&format!("reshard set {URL} --shards 2"), "different shards: \"3\" before, \"2\" now");
    fs::write(place.bucket().join("mine"), "mine").unwrap();
    place.refused(&format!("reshard set {URL} --shards 3"), "exists and is not empty");
    fs::remove_file(place.bucket().join("mine")).unwrap();
    place.run("merge merged set other --shards 2", 0);
    // From a store into a store.
    place.run("copy set s3://bucket/set", 0);
    place.run("merge s3://bucket/merged s3://bucket/set other --shards 2", 0);
    same(&place.path("s3/bucket/merged"), &place.path("merged"));
    fs::create_dir_all(place.path("s3/bucket/mine")).unwrap();
    fs::write(place.path("s3/bucket/mine/train-00000.tfrecord"), "mine").unwrap();
    place.refused("reshard set s3://bucket/mine", "exists and is not empty");
    assert_eq!(names(&place.path("s3/bucket/mine")), ["train-00000.tfrecord"]);
}
