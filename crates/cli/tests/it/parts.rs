//! A pack in parts: the dataset of a single pack, whatever the parts go through, in a folder and in an S3 server.
//!
//! `SHARDTOOL_PART_KILLS` is the number of killed processes after which the tests of kills end (default 20;
//! `scripts/campaign parts` asks for 200).

use crate::bucket::{Bucket, files, same_files, text};
use serde_json::Value;
use shardtool_decode::{Pixels, encode_jpeg};
use shardtool_store_server::Options;
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

fn same(bucket: &Bucket, a: &str, b: &str) {
    same_files(&bucket.path(a), &bucket.path(b), |_| true);
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
fn parts_after_a_stored_listing_do_not_list_the_source() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    let added = bucket.path("photos/class0/added.jpg");
    for (place, folder) in PLACES {
        ends(&bucket, &["pack", "photos", place, SHARDS, "--plan-only"], 0);
        fs::write(&added, "not listed").unwrap();
        ends(&bucket, &["pack", "photos", place, SHARDS, "--part", "1/3"], 1);
        // Of another source, with options that list otherwise, or from a damaged listing, a part lists the source itself.
        let link = bucket.path("link");
        let _ = std::os::unix::fs::symlink("photos", &link);
        let classes = bucket.path("classes.txt");
        fs::write(&classes, "class0\nclass1\nclass2\n").unwrap();
        let listing = bucket.path(folder).join("_plan/train/listing");
        let whole = fs::read(&listing).unwrap();
        for damaged in [false, true] {
            let (source, more) = if damaged { ("photos", "--jobs=1") } else { ("link", "--classes=classes.txt") };
            if damaged {
                // The first piece belongs to part 0.
                let mut bytes = whole.clone();
                bytes[20] ^= 1;
                fs::write(&listing, bytes).unwrap();
            }
            let other = ends(&bucket, &["pack", source, place, SHARDS, "--part", "0/3", more], 2);
            assert!(other.contains("listing") || other.contains("image"), "{other}");
        }
        fs::write(&listing, whole).unwrap();
        for part in ["0/3", "2/3"] {
            ends(&bucket, &["pack", "photos", place, SHARDS, "--part", part], 1);
        }
        fs::remove_file(&added).unwrap();
        ends(&bucket, &["commit", place], 1);
        same(&bucket, "one", folder);
    }
}

#[test]
fn files_that_were_written_again_after_the_plan_are_rejected_unless_times_are_ignored() {
    let bucket = Bucket::new(Options::default());
    photographs(&bucket);
    let file = bucket.path("photos/class0/000.jpg");
    let (bytes, mut time) = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap());
    for (set, times, rejected) in [("set", None, 8), ("copy", Some("--ignore-times"), 7)] {
        let pack = |more: &str, status| {
            ends(&bucket, &[&["pack", "photos", set, SHARDS, more], times.as_slice()].concat(), status)
        };
        pack("--plan-only", 0);
        fs::write(&file, &bytes).unwrap();
        time += Duration::from_secs(5);
        fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        pack("--part=0/1", 1);
        let committed = json(&bucket, &["commit", set, "--json"], 1);
        assert_eq!(committed["splits"][0]["rejected"].as_u64(), Some(rejected));
        let listed = fs::read_to_string(bucket.path(set).join("rejected-train.jsonl")).unwrap();
        assert_eq!(listed.contains("--plan-only --force"), times.is_none(), "{listed}");
        // Complete for the options with which it was planned; without these the source is another one.
        assert_eq!(pack("--jobs=1", if times.is_some() { 1 } else { 2 }).contains("already complete"), times.is_some());
    }
}

/// Sources of every kind, by name, with the arguments that pack them.
fn sources(bucket: &Bucket) -> Vec<(&'static str, Vec<&'static str>)> {
    photographs(bucket);
    let array = |n: u16| {
        let header = "{'descr': '<u2', 'fortran_order': False, 'shape': (4, 8), }";
        let mut npy = b"\x93NUMPY\x01\x00".to_vec();
        npy.extend(((header.len() + 1) as u16).to_le_bytes());
        npy.extend(format!("{header}\n").bytes());
        npy.extend((0..32).flat_map(|i| (i * n).to_le_bytes()));
        npy
    };
    let mut rows = vec![];
    for n in 0..12u16 {
        let clip = bucket.path(&format!("clips/walk/{n}"));
        fs::create_dir_all(&clip).unwrap();
        for frame in 0..3 {
            fs::copy(bucket.path("photos/class0/000.jpg"), clip.join(format!("{frame}.jpg"))).unwrap();
        }
        fs::write(bucket.path(&format!("{n}.npy")), array(n)).unwrap();
        rows.push(
            serde_json::json!({
                "path": format!("photos/class0/{:03}.jpg", 3 * n), "label": "zero", "second": "photos/class1/001.jpg",
                "video": format!("clips/walk/{n}"), "wave": format!("{n}.npy"), "text": format!("row {n}"), "number": n,
                "weights": vec![0.5f32; n.into()], "words": ["a", "b"], "ids": [n, 1], "score": 0.25,
            })
            .to_string(),
        );
    }
    fs::write(bucket.path("list.jsonl"), rows.join("\n")).unwrap();
    fs::write(bucket.path("texts.csv"), "text,label\none,1\ntwo,0\n\"\",3\n").unwrap();
    let image =
        |n: u32| serde_json::json!({"id": n, "file_name": format!("{:03}.jpg", 3 * n), "width": 40, "height": 24});
    let coco = serde_json::json!({
        "images": (0..6).map(image).collect::<Vec<_>>(), "categories": [{"id": 3, "name": "thing"}],
        "annotations": [{"id": 1, "image_id": 2, "category_id": 3, "bbox": [1, 2, 3.5, 4], "area": 14, "iscrowd": 0}],
    });
    fs::write(bucket.path("coco.json"), coco.to_string()).unwrap();
    ends(bucket, &["pack", "photos", "packed", SHARDS], 1);
    for kind in ["webdataset", "parquet", "tfrecord"] {
        ends(bucket, &["export", "packed", kind, "--to", kind], 0);
    }
    vec![
        ("clips", vec!["clips", "--from=clips", "--fps=25"]),
        ("list", vec!["list.jsonl", "--column=second:file", "--column=video:frames", "--array=wave:*x4"]),
        ("rows", vec!["texts.csv"]),
        ("coco", vec!["coco.json", "--images=photos/class0"]),
        ("tars", vec!["webdataset", "--shard-size=20kB"]),
        ("parquets", vec!["parquet", "--shard-size=20kB"]),
        ("tfrecords", vec!["tfrecord", "--shard-size=20kB", "--label-offset=1"]),
    ]
}

#[test]
fn listings_of_every_kind_of_source_are_stored() {
    let bucket = Bucket::new(Options::default());
    for (name, arguments) in sources(&bucket) {
        let (one, set) = (format!("{name}-one"), format!("{name}-set"));
        let (source, mut options) = (arguments[0], arguments[1..].to_vec());
        if !options.iter().any(|option| option.starts_with("--shard-size")) {
            options.push("--shards=3");
        }
        let pack = |to: &str, more: &[&str]| {
            let output = bucket.run(&[&["pack", source, to], &options[..], more].concat());
            assert!(matches!(output.status.code(), Some(0 | 1)), "{name}: {}", text(&output));
        };
        pack(&one, &[]);
        pack(&set, &["--plan-only"]);
        assert!(bucket.path(&set).join("_plan/train/listing.json").exists(), "{name}");
        for part in ["2/3", "0/3", "1/3"] {
            pack(&set, &["--part", part]);
        }
        assert!(matches!(bucket.run(&["commit", &set]).status.code(), Some(0 | 1)));
        same(&bucket, &one, &set);
        assert!(!bucket.path(&set).join("_plan").exists());
    }
}

#[test]
fn parts_after_a_stored_listing_read_only_their_own_archives() {
    let bucket = Bucket::new(Options::default());
    photographs(&bucket);
    ends(&bucket, &["pack", "photos", "packed", SHARDS], 1);
    ends(&bucket, &["export", "packed", "s3/bucket/web", "--to=webdataset"], 0);
    let pack = |set: &str, more: &str| {
        let before = bucket.server.bytes();
        let packed = json(&bucket, &["pack", "s3://bucket/web/*.tar", set, "--shard-size=1MB", more, "--json"], 0);
        (bucket.server.bytes() - before, packed)
    };
    let (surveyed, _) = pack("set", "--part=4/11");
    let (_, planned) = pack("planned", "--plan-only");
    assert_eq!(planned["shards"].as_u64(), Some(11));
    let (own, packed) = pack("planned", "--part=4/11");
    assert_eq!(packed["shards"].as_u64(), Some(1));
    assert!(3 * own < surveyed, "{own} bytes, {surveyed} with a survey");
    // Of the same length, but another object.
    let tar = bucket.path("s3/bucket/web/train-00004.tar");
    let mut bytes = fs::read(&tar).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::remove_file(&tar).unwrap();
    fs::write(&tar, bytes).unwrap();
    let other = bucket.run(&["pack", "s3://bucket/web/*.tar", "planned", "--shard-size=1MB", "--part=5/11"]);
    assert!(other.status.code() == Some(2) && text(&other).contains("listing"), "{}", text(&other));
}

#[test]
fn the_next_part_writes_a_damaged_list_of_shards_again() {
    let bucket = Bucket::new(Options::default());
    pack_at_once(&bucket);
    for (place, folder) in PLACES {
        ends(&bucket, &["pack", "photos", place, SHARDS, "--part", "0/2"], 1);
        let list = bucket.path(folder).join("_plan/train/shards.json");
        let whole = fs::read(&list).unwrap();
        for damaged in [&whole[..whole.len() / 2], b""] {
            fs::write(&list, damaged).unwrap();
            ends(&bucket, &["pack", "photos", place, SHARDS, "--part", "1/2"], 1);
            assert_eq!(fs::read(&list).unwrap(), whole);
        }
        ends(&bucket, &["commit", place], 1);
        same(&bucket, "one", folder);
    }
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
    let installed = std::process::Command::new("parallel").arg("--version").output().is_ok();
    assert!(installed, "GNU parallel is not installed (scripts/test install, or apt-get install parallel)");
    let parallel = examples.join("parallel.sh");
    run(parallel.to_str().unwrap(), &["photos", "by-parallel", "5", "--jobs", "2"], &[], 1);
    same(&bucket, "one", "by-parallel");
}
