//! Runs `bench` in a memory cgroup over a dataset several times as large as its limit, and tools in small ones. The page cache of the files it reads
//! counts against the limit too. Skips with a message if no memory cgroup can be created, which needs root or a delegated
//! hierarchy.

mod bucket;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const SHARDTOOL: &str = env!("CARGO_BIN_EXE_shardtool");
const MIB: u64 = 1 << 20;

/// How much is tried; `scripts/campaign memory` tries more.
struct Extent {
    /// Minimum size of the dataset in bytes.
    bytes: u64,
    /// Limits for one process, in MiB.
    limits: &'static [u64],
    ranks: u64,
    epochs: &'static str,
    /// Minimum size of a source that stays where it is, and the orders of its epochs.
    source_bytes: u64,
    orders: &'static [&'static str],
}

impl Extent {
    fn get() -> Extent {
        if std::env::var_os("SHARDTOOL_FULL").is_some() {
            Extent {
                bytes: 1024 * MIB,
                limits: &[256, 128],
                ranks: 8,
                epochs: "2",
                source_bytes: 1024 * MIB,
                orders: &["shuffled", "interleaved"],
            }
        } else {
            Extent {
                bytes: 512 * MIB,
                limits: &[128],
                ranks: 2,
                epochs: "1",
                source_bytes: 320 * MIB,
                orders: &["shuffled"],
            }
        }
    }
}

/// A memory cgroup, which is removed on drop.
struct Group {
    folder: PathBuf,
    v2: bool,
}

impl Group {
    /// Creates a group inside the group of this process, with a limit in bytes; `None` if that is not possible, or the tools do
    /// not look at cgroups.
    fn new(name: &str, limit: u64) -> Option<Group> {
        if cfg!(shardtool_portable_unix) {
            return None;
        }
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = |controllers: &str| {
            own.lines().find_map(|l| {
                let mut fields = l.splitn(3, ':').skip(1);
                (fields.next()? == controllers).then(|| fields.next().unwrap_or("/").trim_start_matches('/').to_owned())
            })
        };
        let name = format!("shardtool-test-{}-{name}", std::process::id());
        let roots = [
            (path("memory").map(|p| Path::new("/sys/fs/cgroup/memory").join(p)), false),
            (Some(PathBuf::from("/sys/fs/cgroup/memory")), false),
            (path("").map(|p| Path::new("/sys/fs/cgroup").join(p)), true),
            (Some(PathBuf::from("/sys/fs/cgroup")), true),
        ];
        roots.into_iter().find_map(|(root, v2)| {
            let group = Group { folder: root?.join(&name), v2 };
            fs::create_dir(&group.folder).ok()?;
            let file = if v2 { "memory.max" } else { "memory.limit_in_bytes" };
            // Opened without `create`: an ordinary folder has no such file.
            let mut limit_file = fs::OpenOptions::new().write(true).open(group.folder.join(file)).ok()?;
            std::io::Write::write_all(&mut limit_file, limit.to_string().as_bytes()).ok()?;
            Some(group)
        })
    }

    /// Starts `shardtool` in the group.
    fn start(&self, arguments: &[&str], environment: &[(&str, String)]) -> Child {
        let script = r#"echo $$ > "$0" && exec "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(self.folder.join("cgroup.procs")).arg(SHARDTOOL).args(arguments);
        command.envs(environment.iter().cloned()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("sh")
    }

    /// Returns the number of processes that the kernel killed because the group exceeded its limit.
    fn killed(&self) -> u64 {
        let file = if self.v2 { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.folder.join(file)).expect("the group's events");
        let line = text.lines().find_map(|l| l.strip_prefix("oom_kill "));
        line.and_then(|n| n.trim().parse().ok()).expect("a count")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

fn shardtool(arguments: &[&str]) {
    let output = Command::new(SHARDTOOL).args(arguments).output().expect("shardtool");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Packs a dataset of at least `min_bytes`: photographs, or the demo's images if there are none, repeated under different keys.
fn dataset(folder: &Path, min_bytes: u64) -> PathBuf {
    let shared = std::env::var("SHARDTOOL_SHARED")
        .map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let mut source = shared.join("data/imagenet-sample");
    if !source.is_dir() {
        let demo = folder.join("demo");
        shardtool(&["demo", "--keep", demo.to_str().expect("UTF-8")]);
        source = demo.join("photos");
    }
    let mut photos = vec![];
    for class in fs::read_dir(&source).expect("classes").flatten().filter(|class| class.path().is_dir()) {
        photos.extend(fs::read_dir(class.path()).expect("a class").flatten().map(|f| f.path()));
    }
    photos.sort();
    let bytes: u64 = photos.iter().map(|p| fs::metadata(p).expect("a photograph").len()).sum();
    let mut text = "path,key\n".to_owned();
    for round in 0..=min_bytes / bytes {
        for (number, photo) in photos.iter().enumerate() {
            text += &format!("{},{round}/{number}\n", fs::canonicalize(photo).expect("a photograph").display());
        }
    }
    let (list, packed) = (folder.join("list.csv"), folder.join("dataset"));
    fs::write(&list, text).expect("a list");
    shardtool(&["pack", list.to_str().expect("UTF-8"), packed.to_str().expect("UTF-8"), "--no-jpeg-entries"]);
    packed
}

/// Flushes the files of a folder to disk and evicts them from the page cache, so that the next reader's group is charged for their pages.
fn evict(dataset: &Path) {
    let (folders, files): (Vec<_>, Vec<_>) =
        fs::read_dir(dataset).expect("a dataset").flatten().partition(|entry| entry.path().is_dir());
    folders.iter().for_each(|folder| evict(&folder.path()));
    for file in files {
        let of = format!("of={}", file.path().display());
        let mut dd = Command::new("dd");
        let done = dd.args([&of, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]).status();
        assert!(done.is_ok_and(|status| status.success()), "dd evicts {of}");
    }
}

#[track_caller]
fn check(output: &Output, group: &Group, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(group.killed(), 0, "{what}: killed for memory");
    assert!(output.status.success(), "{what}: {}: {stderr}", output.status);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mb = |value: &serde_json::Value| value.as_u64().map_or(0, |n| n / 1_000_000);
    println!(
        "{what}: budget {} MB, peak {} MB anonymous, {:.0} images/s",
        mb(&document["stats"]["memory"]["budget"]),
        mb(&document["peak_anon_bytes"]),
        document["images_per_s"].as_f64().expect("a rate"),
    );
}

#[test]
fn bench_stays_within_the_memory_of_a_cgroup() {
    // In the build folder: /tmp may be in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Some(probe) = Group::new("probe", 256 * MIB) else {
        println!("skipped: cannot create a memory cgroup here");
        return;
    };
    drop(probe);
    let extent = Extent::get();
    let dataset = dataset(folder.path(), extent.bytes);
    let path = dataset.to_str().expect("UTF-8");
    let bench = ["bench", path, "--epochs", extent.epochs, "--batch", "256", "--json"];
    for &limit in extent.limits {
        let group = Group::new("one", limit * MIB).expect("the probe was created");
        evict(&dataset);
        let child = group.start(&bench, &[]);
        check(&child.wait_with_output().expect("the exit status"), &group, &format!("{limit} MiB"));
    }
    let total = 192 * extent.ranks;
    let group = Group::new("ranks", total * MIB).expect("the probe was created");
    evict(&dataset);
    let children: Vec<_> = (0..extent.ranks)
        .map(|rank| {
            let world = ["WORLD_SIZE", "LOCAL_WORLD_SIZE"].map(|name| (name, extent.ranks.to_string()));
            let environment = [&world[..], &[("RANK", rank.to_string()), ("LOCAL_RANK", rank.to_string())]].concat();
            group.start(&bench, &environment)
        })
        .collect();
    for (rank, child) in children.into_iter().enumerate() {
        check(
            &child.wait_with_output().expect("the exit status"),
            &group,
            &format!("rank {rank} of {} in {total} MiB", extent.ranks),
        );
    }
}

/// Writes a file for each record of a dataset: copies of its photographs, in folders of 1,000.
fn copy_out(dataset: &Path, folder: &Path) {
    let list = dataset.with_file_name("list.csv");
    for (number, line) in fs::read_to_string(list).expect("the list").lines().skip(1).enumerate() {
        let class = folder.join((number / 1000).to_string());
        fs::create_dir_all(&class).expect("a folder");
        let (photo, _) = line.rsplit_once(',').expect("a path and a key");
        fs::copy(photo, class.join(format!("{number}.jpg"))).expect("a copy");
    }
}

#[test]
fn sources_that_stay_where_they_are_fit_the_container() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    if Group::new("places", 256 * MIB).is_none() {
        println!("skipped: cannot create a memory cgroup here");
        return;
    }
    let extent = Extent::get();
    let dataset = dataset(folder.path(), extent.source_bytes);
    let records = fs::read_to_string(folder.path().join("list.csv")).expect("the list").lines().count() - 1;
    for kind in ["webdataset", "parquet", "folder"] {
        let source = folder.path().join(kind);
        let path = source.to_str().expect("UTF-8");
        match kind {
            "folder" => copy_out(&dataset, &source),
            _ => shardtool(&["export", dataset.to_str().expect("UTF-8"), path, "--to", kind]),
        }
        let group = Group::new(kind, 256 * MIB).expect("the probe was created");
        let run = |command: &[&str]| {
            evict(&source);
            group.start(command, &[]).wait_with_output().expect("the exit status")
        };
        let output = run(&["index", path]);
        let text = String::from_utf8_lossy(&output.stdout).replace(',', "");
        assert_eq!(group.killed(), 0, "index of {kind}: killed for memory");
        assert!(output.status.success(), "index of {kind}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(&format!("{records} samples = {records} records + 0 rejected")), "{kind}: {text}");
        for order in extent.orders {
            let bench = ["bench", path, "--epochs", extent.epochs, "--batch", "256", "--order", order, "--json"];
            check(&run(&bench), &group, &format!("{kind}, {order}, 256 MiB"));
        }
        fs::remove_dir_all(&source).expect("removed");
    }
}

/// A lossless WebP of 11,000 × 11,000 pixels in 28 bytes: no transform, and five prefix codes of one symbol each, so that a
/// pixel takes no bit (WebP lossless bitstream specification, sections 3 and 6).
fn bomb() -> Vec<u8> {
    let side = 11_000u32 - 1;
    let header = (side | side << 14).to_le_bytes();
    let data = [&[0x2f], &header[..], &[0x88, 0x88, 0x08]].concat();
    [b"RIFF\x14\0\0\0WEBPVP8L\x08\0\0\0".as_slice(), &data].concat()
}

#[test]
fn tools_refuse_an_image_that_does_not_fit_the_container() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Some(group) = Group::new("tools", 256 * MIB) else {
        println!("skipped: cannot create a memory cgroup here");
        return;
    };
    let photos = folder.path().join("photos");
    for class in ["a", "b"] {
        fs::create_dir_all(photos.join(class)).expect("a folder");
        fs::write(photos.join(class).join("bomb.webp"), bomb()).expect("an image");
    }
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let run = |arguments: &[&str]| {
        let output = group.start(arguments, &[]).wait_with_output().expect("the exit status");
        assert_eq!(group.killed(), 0, "{arguments:?}: killed for memory");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (set, small, raw) = (path("set"), path("small"), path("raw"));
    let (code, text) = run(&["pack", &path("photos"), &set]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = run(&["verify", &set, "--decode"]);
    assert!(code == Some(1) && text.contains("a/bomb.webp") && text.contains("half of the memory"), "{text}");
    for (out, more) in [(&small, ["--resize-shorter", "64"]), (&raw, ["--pixels", "raw-zstd"])] {
        let (code, text) = run(&[&["pack", &path("photos"), out, "--allow-empty"], &more[..]].concat());
        assert_eq!(code, Some(1), "{text}");
        let rejected = fs::read_to_string(Path::new(out).join("rejected-train.jsonl")).expect("the rejects");
        assert!(rejected.lines().count() == 2 && rejected.contains("half of the memory"), "{rejected}");
    }
}

/// Sixteen shards of 16 MiB, each of which takes 16 MiB while it is read with enough memory.
#[test]
fn verify_of_a_store_fits_the_container() {
    if Group::new("verify", 64 * MIB).is_none() {
        println!("skipped: cannot create a memory cgroup here");
        return;
    }
    let bucket = bucket::Bucket::new(shardtool_store_server::Options::default());
    let (width, height) = (1024u32, 341u32);
    let mut bitmap = b"BM".to_vec();
    for value in [54 + 3 * width * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        bitmap.extend(value.to_le_bytes());
    }
    bitmap.resize(54 + (3 * width * height) as usize, 7);
    fs::write(bucket.path("photo.bmp"), &bitmap).expect("an image");
    let rows: String = (0..256).map(|number| format!("photo.bmp,{number}\n")).collect();
    fs::write(bucket.path("list.csv"), format!("path,key\n{rows}")).expect("a list");
    bucket.good(&["pack", "list.csv", "s3/bucket/set", "--shards", "16"]);
    let environment = bucket.server.environment();
    for limit in [64, 128] {
        let group = Group::new("verify", limit * MIB).expect("a group could be created before");
        let child = group.start(&["verify", "s3://bucket/set", "--jobs", "16", "--json"], &environment);
        let output = child.wait_with_output().expect("the exit status");
        assert_eq!(group.killed(), 0, "{limit} MiB: killed for memory");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (output.status.code(), &document["good_records"]),
            (Some(0), &256.into()),
            "{limit} MiB: {document}"
        );
    }
}

/// A million records of 100 bytes in one shard, whose index has 85 MB: `index` and `reshard` take less than twice the
/// index, `repair` less than three times, since it compares the index with the old one.
#[test]
fn commands_that_write_indexes_hold_each_row_once() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    if Group::new("rows", 64 * MIB).is_none() {
        println!("skipped: cannot create a memory cgroup here");
        return;
    }
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let mut list = String::from("key,weight,text\n");
    for row in 0..1_000_000 {
        writeln!(list, "k{row:08},{row},abcdefghijabcdefghij{row:08}").expect("into a String");
    }
    fs::write(path("list.csv"), list).expect("a list");
    shardtool(&["pack", &path("list.csv"), &path("set"), "--shards", "1", "--no-shuffle"]);
    let index = fs::metadata(path("set/_index/train-00000.tfrecord.index")).expect("an index").len();
    assert!((84_000_000..86_000_000).contains(&index), "{index}");
    fs::create_dir(path("bare")).expect("a folder");
    fs::copy(path("set/train-00000.tfrecord"), path("bare/train-00000.tfrecord")).expect("a shard");
    for (limit, arguments) in [
        (172, &["index", &path("bare/train-00000.tfrecord")][..]),
        (172, &["reshard", &path("set"), &path("out"), "--shards", "1"]),
        (272, &["repair", &path("set")]),
    ] {
        let group = Group::new("rows", limit * MIB).expect("a group could be created before");
        let output = group.start(arguments, &[]).wait_with_output().expect("the exit status");
        assert_eq!(group.killed(), 0, "{arguments:?} in {limit} MiB: killed for memory");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn memory_near_the_minimum_is_refused_or_suffices() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let demo = folder.path().join("demo");
    shardtool(&["demo", "--keep", demo.to_str().expect("UTF-8")]);
    let set = demo.join("dataset");
    let (mut refused, mut done) = (0, 0);
    for workers in ["2", "16"] {
        // Two batches of 256 are 73.5 MiB.
        for limit in (76..=116).step_by(5) {
            let Some(group) = Group::new("least", limit * MIB) else {
                println!("skipped: cannot create a memory cgroup here");
                return;
            };
            let arguments =
                ["bench", set.to_str().expect("UTF-8"), "--epochs", "2", "--batch", "256", "--workers", workers];
            let output = group.start(&arguments, &[]).wait_with_output().expect("the exit status");
            assert_eq!(group.killed(), 0, "{workers} workers in {limit} MiB: killed for memory");
            let errors = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => done += 1,
                Some(2) if errors.contains("minimum: ") => refused += 1,
                other => panic!("{workers} workers in {limit} MiB: {other:?}: {errors}"),
            }
        }
    }
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
}
