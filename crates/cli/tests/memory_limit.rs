//! A real limit: `bench` in a memory cgroup, over a dataset many times as large. The page cache that its reading fills is the
//! group's as well. Prints a skip where no memory cgroup can be made (it takes root, or a delegated hierarchy).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const SHARDTOOL: &str = env!("CARGO_BIN_EXE_shardtool");
const MIB: u64 = 1 << 20;
/// What the limits are held against.
const LEAST_BYTES: u64 = 1024 * MIB;

/// A memory cgroup of this test's own; removed when dropped.
struct Group {
    folder: PathBuf,
    v2: bool,
}

impl Group {
    /// A group inside this process's, with a limit in bytes; `None` where none can be made.
    fn new(name: &str, limit: u64) -> Option<Group> {
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
            // Writing must not create: a folder that is no cgroup has no such file.
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

    /// Processes that the system killed for the group's memory.
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

/// A dataset of at least 1 GiB: photographs, or where there are none the demo's, again and again under other keys.
fn dataset(folder: &Path) -> PathBuf {
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
    for round in 0..=LEAST_BYTES / bytes {
        for (number, photo) in photos.iter().enumerate() {
            text += &format!("{},{round}/{number}\n", fs::canonicalize(photo).expect("a photograph").display());
        }
    }
    let (list, packed) = (folder.join("list.csv"), folder.join("dataset"));
    fs::write(&list, text).expect("a list");
    shardtool(&["pack", list.to_str().expect("UTF-8"), packed.to_str().expect("UTF-8")]);
    packed
}

/// Writes the dataset to disk and leaves nothing of it in the page cache: who reads it then, pays for the pages.
fn evict(dataset: &Path) {
    for file in fs::read_dir(dataset).expect("a dataset").flatten().filter(|f| f.path().is_file()) {
        let of = format!("of={}", file.path().display());
        let mut dd = Command::new("dd");
        let done = dd.args([&of, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]).status();
        assert!(done.is_ok_and(|status| status.success()), "dd leaves {of} out of the cache");
    }
}

#[track_caller]
fn check(output: &Output, group: &Group, what: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(group.killed(), 0, "{what}: killed for memory");
    assert!(output.status.success(), "{what}: {}: {told}", output.status);
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
fn never_killed_for_memory() {
    // Beside the build, not where temporary files may lie in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Some(probe) = Group::new("probe", 256 * MIB) else {
        println!("skipped: no memory cgroup can be made here");
        return;
    };
    drop(probe);
    let dataset = dataset(folder.path());
    let path = dataset.to_str().expect("UTF-8");
    for limit in [256, 128] {
        let group = Group::new("one", limit * MIB).expect("it was possible before");
        evict(&dataset);
        let child = group.start(&["bench", path, "--epochs", "2", "--batch", "256", "--json"], &[]);
        check(&child.wait_with_output().expect("its end"), &group, &format!("{limit} MiB"));
    }
    let group = Group::new("eight", 1536 * MIB).expect("it was possible before");
    evict(&dataset);
    let children: Vec<_> = (0..8)
        .map(|rank| {
            let world = ["WORLD_SIZE", "LOCAL_WORLD_SIZE"].map(|name| (name, "8".to_owned()));
            let environment = [&world[..], &[("RANK", rank.to_string()), ("LOCAL_RANK", rank.to_string())]].concat();
            group.start(&["bench", path, "--epochs", "2", "--batch", "256", "--json"], &environment)
        })
        .collect();
    for (rank, child) in children.into_iter().enumerate() {
        check(&child.wait_with_output().expect("its end"), &group, &format!("rank {rank} of 8 in 1536 MiB"));
    }
}
