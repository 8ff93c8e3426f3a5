//! A pack in parts: the dataset of a single pack, whatever the parts go through, in a folder and in an S3 server.
//!
//! `SHARDTOOL_PART_KILLS` is the number of killed processes after which the tests of kills end (default 20;
//! `scripts/campaign parts` asks for 200).

mod bucket;

use bucket::{Bucket, text};
use serde_json::Value;
use shardtool_decode::{Pixels, encode_jpeg};
use shardtool_store_server::Options;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const SHARDS: &str = "--shards=11";
const URL: &str = "s3://bucket/set";

/// Photographs of three classes, of which every ninth file is not an image.
fn photographs(bucket: &Bucket) {
    for n in 0..60u32 {
        let folder = bucket.path(&format!("photos/class{}", n % 3));
        fs::create_dir_all(&folder).unwrap();
        let value = |i: u32| (i * (n + 3) / 7) as u8;
        let pixels = Pixels { width: 40, height: 24, data: (0..40 * 24 * 3).map(value).collect() };
        let jpeg = encode_jpeg(pixels.view().unwrap(), 80).unwrap();
        fs::write(folder.join(format!("{n:03}.jpg")), if n % 9 == 4 { b"no photograph".to_vec() } else { jpeg })
            .unwrap();
    }
}

/// Every file below a folder by its relative path, also hidden ones.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name().into_string().unwrap());
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inside, bytes)| (format!("{name}/{inside}"), bytes)));
        } else {
            found.insert(name, fs::read(path).unwrap());
        }
    }
    found
}

fn same(bucket: &Bucket, a: &str, b: &str) {
    let (a, b) = (files(&bucket.path(a)), files(&bucket.path(b)));
    assert!(!a.is_empty() && a.keys().eq(b.keys()), "{:?}\n{:?}", a.keys(), b.keys());
    let different: Vec<_> = a.iter().filter(|(name, bytes)| b[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(different.is_empty(), "{different:?}");
}

/// Runs a command that must end with a status, and returns what it prints.
fn ends(bucket: &Bucket, arguments: &[&str], status: i32) -> String {
    let output = bucket.run(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output));
    text(&output)
}

fn json(bucket: &Bucket, arguments: &[&str], status: i32) -> Value {
    serde_json::from_str(&ends(bucket, arguments, status)).unwrap()
}

/// Packs the photographs at once into the folder `one`.
fn pack_at_once(bucket: &Bucket) {
    photographs(bucket);
    ends(bucket, &["pack", "photos", "one", SHARDS], 1);
}

/// Where the parts of each test go, and the folder in which the result lies.
const PLACES: [(&str, &str); 2] = [("set", "set"), (URL, "s3/bucket/set")];

#[test]
fn parts_in_any_order_and_twice_make_the_dataset_of_one_pack() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    for (place, folder) in PLACES {
        let planned = json(&bucket, &["pack", "photos", place, SHARDS, "--plan-only", "--json"], 0);
        assert_eq!((planned["shards"].as_u64(), planned["images"].as_u64()), (Some(11), Some(60)));
        let missing = ends(&bucket, &["commit", place], 1);
        assert!(missing.contains("11 of 11 shards") && missing.contains("--part"), "{missing}");
        for part in ["3/4", "0/4", "3/4", "1/4"] {
            let packed = json(&bucket, &["pack", "photos", place, SHARDS, "--part", part, "--json"], 1);
            let shards = if part == "3/4" { 2 } else { 3 };
            assert_eq!((&packed["part"], packed["shards"].as_u64()), (&Value::from(part), Some(shards)));
            assert!(packed["rejected"].as_u64() > Some(0), "{packed}");
        }
        let status = json(&bucket, &["status", place, "--json"], 1);
        assert_eq!(status["splits"][0]["missing"], serde_json::json!([2, 6, 10]), "{status}");
        let missing = ends(&bucket, &["commit", place], 1);
        assert!(missing.contains("3 of 11 shards") && missing.contains("2, 6, 10"), "{missing}");
        assert!(!bucket.path(folder).join("dataset.json").exists(), "no manifest before all shards are there");
        ends(&bucket, &["pack", "photos", place, SHARDS, "--part", "2/4"], 1);
        let status = ends(&bucket, &["status", place], 0);
        assert!(status.contains("11 done") && status.contains("next: shardtool commit"), "{status}");
        let committed = json(&bucket, &["commit", place, "--json"], 1);
        assert_eq!(committed["splits"][0]["rejected"].as_u64(), Some(7), "{committed}");
        same(&bucket, "one", folder);
        ends(&bucket, &["verify", place], 0);
        // Everything once more changes nothing.
        let again = json(&bucket, &["pack", "photos", place, SHARDS, "--part", "1/4", "--json"], 0);
        assert_eq!(again["already_complete"], true);
        assert!(ends(&bucket, &["commit", place], 0).contains("no unfinished split"));
        let again = json(&bucket, &["commit", place, "--split", "train", "--json"], 1);
        assert_eq!(again["splits"][0]["already_complete"], true);
        assert!(ends(&bucket, &["status", place], 0).contains("no unfinished split"));
        assert!(ends(&bucket, &["clean", place], 0).contains("0 files removed"));
        same(&bucket, "one", folder);
    }
}

#[test]
fn parts_of_archives_and_a_second_split() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    ends(&bucket, &["export", "one", "web", "--to", "webdataset"], 0);
    for place in ["one", "set"] {
        if place == "set" {
            ends(&bucket, &["pack", "photos", "set", SHARDS], 1);
        }
    }
    let archives = ["pack", "web", "--split=more", "--shard-size=8kB"];
    let [command, source, options @ ..] = archives;
    ends(&bucket, &[&[command, source, "one"], &options[..]].concat(), 0);
    for part in ["1/2", "0/2"] {
        ends(&bucket, &[&[command, source, "set"], &options[..], &["--part", part]].concat(), 0);
    }
    ends(&bucket, &["commit", "set"], 0);
    same(&bucket, "one", "set");
}

#[test]
fn a_single_pack_continues_parts_and_parts_continue_it() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    for (place, folder) in PLACES {
        ends(&bucket, &["pack", "photos", place, SHARDS, "--part", "0/3"], 1);
        let whole = json(&bucket, &["pack", "photos", place, SHARDS, "--json"], 1);
        assert_eq!(whole["resumed_shards"].as_u64(), Some(4));
        same(&bucket, "one", folder);
    }
}

#[test]
fn other_plans_and_wrong_parts_are_refused() {
    let bucket = Bucket::new(Options::default());
    photographs(&bucket);
    for (place, folder) in PLACES {
        for part in ["3/3", "1", "x/2", "0/0", "-1/2"] {
            let refused = ends(&bucket, &["pack", "photos", place, &format!("--part={part}")], 2);
            assert!(refused.contains("expected I/N"), "{refused}");
        }
        ends(&bucket, &["pack", "photos", place, "--part", "0/2", "--force"], 2);
        ends(&bucket, &["pack", "photos", place, SHARDS, "--part", "0/3"], 1);
        let other = ends(&bucket, &["pack", "photos", place, "--shards=5", "--part", "1/3"], 2);
        assert!(other.contains("shards") && other.contains(".pack-train.json"), "{other}");
        let other = ends(&bucket, &["pack", "photos", place, SHARDS, "--seed=1", "--part", "1/3"], 2);
        assert!(other.contains("seed"), "{other}");
        let none = ends(&bucket, &["commit", place, "--split", "test"], 2);
        assert!(none.contains("no pack in parts") && none.contains("test"), "{none}");
        // A new plan removes what the old parts wrote.
        ends(&bucket, &["pack", "photos", place, "--shards=2", "--seed=1", "--plan-only", "--force"], 0);
        assert!(!files(&bucket.path(folder)).keys().any(|name| name.ends_with(".tfrecord")));
        for part in ["0/2", "1/2"] {
            ends(&bucket, &["pack", "photos", place, "--shards=2", "--seed=1", "--part", part], 1);
        }
        // A damaged index, or a shard of another length, is missing.
        let index = bucket.path(folder).join("_index/train-00001.tfrecord.index");
        let whole = fs::read(&index).unwrap();
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 1;
        fs::write(&index, damaged).unwrap();
        assert!(ends(&bucket, &["commit", place], 1).contains("1 of 2 shards"));
        fs::write(&index, whole).unwrap();
        ends(&bucket, &["commit", place], 1);
        ends(&bucket, &["verify", place], 0);
    }
    let none = ends(&bucket, &["commit", "nowhere"], 2);
    assert!(none.contains("nowhere"), "{none}");
}

#[test]
fn commit_and_clean_wait_for_no_running_part_and_remove_what_killed_ones_left() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    for part in ["0/2", "1/2"] {
        ends(&bucket, &["pack", "photos", "set", SHARDS, "--part", part], 1);
    }
    // What a part leaves that was killed on another machine.
    let left = bucket.path("set/.train-00003.tfrecord.0123456789abcdef.tmp");
    fs::write(&left, "half a shard").unwrap();
    let status = json(&bucket, &["status", "set", "--json"], 0);
    assert_eq!(
        (status["splits"][0]["attempts"].as_u64(), &status["splits"][0]["begun"]),
        (Some(1), &serde_json::json!([]))
    );
    ends(&bucket, &["commit", "set"], 1);
    same(&bucket, "one", "set");
    // A late part, on a file system whose locks are not shared, leaves an unfinished file only.
    fs::write(&left, "half a shard").unwrap();
    let cleaned = ends(&bucket, &["clean", "set"], 0);
    assert!(cleaned.contains("train-00003") && cleaned.contains("1 file removed"), "{cleaned}");
    same(&bucket, "one", "set");
}

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Runs parts, three at a time and some of them twice at once, and kills most of them at random times.
fn killed_parts(bucket: &Bucket, place: &str, folder: &str, seed: u64, most: u64) -> u64 {
    const PARTS: u64 = 4;
    let _ = fs::remove_dir_all(bucket.path(folder));
    let (mut random, mut killed, mut done) = (Random(seed), 0, [false; PARTS as usize]);
    let mut running: Vec<(u64, Child, Option<Instant>)> = vec![];
    while !done.iter().all(|done| *done) || !running.is_empty() {
        if running.len() < 3 && !done.iter().all(|done| *done) {
            let part = random.below(PARTS);
            let arguments = ["pack", "photos", place, SHARDS, "--jobs=1", "--part", &format!("{part}/{PARTS}")];
            let mut command = bucket.shardtool(arguments);
            let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let end = (killed < most).then(|| Instant::now() + Duration::from_millis(random.below(120)));
            running.push((part, child, end));
        }
        std::thread::sleep(Duration::from_millis(1));
        running.retain_mut(|(part, child, end)| {
            if let Some(status) = child.try_wait().unwrap() {
                let mut message = String::new();
                std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut message).unwrap();
                // Rejected inputs: status 1, also of a part whose shards were finished before.
                assert!(matches!(status.code(), Some(0 | 1)), "part {part}: {status}, {message}");
                done[*part as usize] = true;
                return false;
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                child.kill().unwrap();
                child.wait().unwrap();
                killed += 1;
                return false;
            }
            true
        });
    }
    ends(bucket, &["commit", place], 1);
    same(bucket, "one", folder);
    ends(bucket, &["verify", place], 0);
    killed
}

fn kills() -> u64 {
    std::env::var("SHARDTOOL_PART_KILLS").map_or(20, |count| count.parse().unwrap())
}

#[test]
fn killed_parts_leave_the_dataset_of_one_pack() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    let (mut killed, mut seed) = (0, 0);
    while killed < kills() {
        killed += killed_parts(&bucket, "set", "set", seed, 10);
        seed += 1;
    }
    println!("{killed} parts killed in {seed} packs: 0 differences");
}

#[test]
fn killed_parts_in_a_store_leave_the_dataset_of_one_pack() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    let (mut killed, mut seed) = (0, 1000);
    while killed < kills() {
        killed += killed_parts(&bucket, URL, "s3/bucket/set", seed, 10);
        seed += 1;
    }
    println!("{killed} parts killed in {seed} packs: 0 differences");
}

/// Runs the examples for schedulers as they are, with a stand-in for the scheduler's own program.
#[test]
fn examples_for_schedulers_pack_and_commit() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster");
    let bin = bucket.path("bin");
    fs::create_dir(&bin).unwrap();
    let program = |name: &str, text: &str| {
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    // All parts are packed with the options of the single pack.
    program(
        "shardtool",
        &format!(
            "#!/bin/sh\n[ $1 != pack ] || set -- \"$@\" {SHARDS}\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_shardtool")
        ),
    );
    program("srun", "#!/bin/sh\nexec \"$@\"\n");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let run = |program: &str, arguments: &[&str], variables: &[(&str, &str)], status: i32| {
        let mut command = bucket.program(program);
        let output = command.args(arguments).env("PATH", &path).envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{program} {arguments:?}: {}", text(&output));
    };
    let slurm = examples.join("slurm.sh");
    for part in ["2", "0", "1"] {
        let variables = [("SLURM_ARRAY_TASK_ID", part), ("SLURM_ARRAY_TASK_COUNT", "3"), ("SLURM_CPUS_PER_TASK", "2")];
        run(slurm.to_str().unwrap(), &["photos", "by-slurm"], &variables, 0);
    }
    run("shardtool", &["commit", "by-slurm"], &[], 1);
    same(&bucket, "one", "by-slurm");
    // The command of the container, and its variables.
    let yaml = fs::read_to_string(examples.join("kubernetes.yaml")).unwrap();
    let command = yaml.lines().find_map(|line| line.trim().strip_prefix("- shardtool pack")).expect("the command");
    let known = ["SOURCE", "DESTINATION", "PARTS", "JOB_COMPLETION_INDEX"];
    assert!(known.iter().all(|name| command.contains(&format!("${name}"))), "{command}");
    for part in ["1", "0"] {
        let variables = [("SOURCE", "photos"), ("DESTINATION", URL), ("PARTS", "2"), ("JOB_COMPLETION_INDEX", part)];
        run("sh", &["-c", &format!("shardtool pack{command}")], &variables, 0);
    }
    run("shardtool", &["commit", URL], &[], 1);
    same(&bucket, "one", "s3/bucket/set");
    if std::process::Command::new("parallel").arg("--version").output().is_err() {
        println!("skip: GNU parallel is not installed");
        return;
    }
    let parallel = examples.join("parallel.sh");
    run(parallel.to_str().unwrap(), &["photos", "by-parallel", "5", "--jobs", "2"], &[], 1);
    same(&bucket, "one", "by-parallel");
}
