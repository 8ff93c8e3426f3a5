//! If a pack was killed at any step, running it again produces the same bytes and keeps finished shards.

use crate::support::{
    chain, check, class_folders, finished_shards, manifest, names, put, records, rejected, snapshot, unlocked,
};
use shardtool_pack::DestinationError;
use shardtool_pack::{Error, Options, Progress, Resize, Shards, Step, pack};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The task of [`a_child`]: source, destination, shards, force, and where to abort.
const CHILD: &str = "SHARDTOOL_TEST_CHILD";

/// Aborts the process at the n-th step, or the n-th image.
struct Dying {
    left: AtomicUsize,
    at_images: bool,
}

impl Dying {
    fn count(&self) {
        if self.left.fetch_sub(1, SeqCst) == 0 {
            std::process::abort();
        }
    }
}

impl Progress for Dying {
    fn done(&self, _: u64, _: u64) {
        if self.at_images {
            self.count();
        }
    }
    fn after(&self, _: Step) -> ControlFlow<()> {
        if !self.at_images {
            self.count();
        }
        ControlFlow::Continue(())
    }
}

/// Not a test by itself: the tests below run it in a separate process.
#[test]
fn a_child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let task: Vec<_> = task.split('\n').collect();
    let &[source, destination, shards, force, at, left] = &task[..] else { panic!("{task:?}") };
    let shards = Shards::Count(shards.parse().unwrap());
    let options = with!(Options::new(source, destination), shards = shards, force = force == "force");
    let progress = Dying { left: AtomicUsize::new(left.parse().unwrap()), at_images: at == "image" };
    if let Err(error) = pack(&options, &progress) {
        eprintln!("{}", chain(&error));
        std::process::exit(2);
    }
}

fn run(prefix: &str, task: [&str; 6]) -> Output {
    Command::new("bash")
        .args(["-c", &format!("{prefix}exec \"$0\" --exact resume::a_child --nocapture")])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, task.join("\n"))
        .output()
        .unwrap()
}

/// Packs to the end in another process, after the shell commands `prefix`.
pub(crate) fn child(source: &Path, destination: &Path, shards: u64, prefix: &str) -> Output {
    let (source, destination) = (source.to_str().unwrap(), destination.to_str().unwrap());
    run(prefix, [source, destination, &shards.to_string(), "", "step", "999999"])
}

/// Packs in another process that aborts at the n-th step or image. Returns whether it aborted.
fn dies(options: &Options, at: &str, n: usize) -> bool {
    let (source, destination) = (options.source.to_str().unwrap(), options.destination.to_str().unwrap());
    let Shards::Count(shards) = options.shards else { panic!() };
    let force = if options.force { "force" } else { "" };
    let output = run("ulimit -c 0; ", [source, destination, &shards.to_string(), force, at, &n.to_string()]);
    assert!(output.status.success() || output.status.code().is_none(), "{}", String::from_utf8_lossy(&output.stderr));
    !output.status.success()
}

/// Checks that every file under its final name is complete, and returns the inodes of finished shards.
fn finished(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let mut finished = BTreeMap::new();
    for (path, bytes) in snapshot(folder) {
        let name = path.to_str().unwrap();
        if name.ends_with(".index") {
            shardtool_format::index::Index::parse(&bytes).unwrap();
            let shard = folder.join(name.strip_prefix("_index/").unwrap().strip_suffix(".index").unwrap());
            finished.insert(shard.clone(), fs::metadata(&shard).unwrap().ino());
        } else if name == "dataset.json" {
            manifest(folder);
        } else if name.ends_with(".tfrecord") {
            records(&bytes);
        }
    }
    finished
}

fn source(root: &Path) -> PathBuf {
    let source = root.join("photos");
    class_folders(&source, 15);
    put(&source.join("cat/text.jpg"), b"text");
    put(&source.join("dog/empty.jpg"), b"");
    put(&source.join("emu/cut.jpg"), &fs::read(source.join("emu/0003.jpg")).unwrap()[..300]);
    put(&source.join("loose.jpg"), b"");
    source
}

/// Kills a pack at each step or every few images, and runs it again each time.
fn kill_everywhere(options: &Options, expected: &BTreeMap<PathBuf, Vec<u8>>, prepare: impl Fn(&Path)) -> usize {
    let mut killed = 0;
    for (at, stride) in [("step", 1), ("image", 7)] {
        for n in (0..).step_by(stride) {
            fs::remove_dir_all(&options.destination).ok();
            prepare(&options.destination);
            if !dies(options, at, n) {
                break;
            }
            killed += 1;
            let before = finished(&options.destination);
            match pack(options, &()) {
                Ok(summary) => assert_eq!(summary.rejected, 4, "{at} {n}"),
                Err(error) => panic!("after a kill at {at} {n}: {error}"),
            }
            let after = finished(&options.destination);
            assert!(
                unlocked(&options.destination) == *expected,
                "killed at {at} {n}: {:?}",
                names(&options.destination)
            );
            if !options.force {
                before.iter().for_each(|(shard, inode)| assert_eq!(after[shard], *inode, "{at} {n}: {shard:?} redone"));
            }
        }
    }
    killed
}

#[test]
fn continues_after_a_kill_at_any_step() {
    let temp = tempfile::tempdir().unwrap();
    let source = source(temp.path());
    let options = with!(Options::new(&source, temp.path().join("set")), shards = Shards::Count(3));
    pack(&options, &()).unwrap();
    let expected = snapshot(&options.destination);
    assert_eq!(rejected(&options.destination.join("rejected-train.jsonl")).len(), 4);
    assert!(kill_everywhere(&options, &expected, |_| ()) >= 10 + 6);
}

#[test]
fn continues_after_a_kill_at_any_step_of_replacing_a_split() {
    let temp = tempfile::tempdir().unwrap();
    let source = source(temp.path());
    let old = temp.path().join("old");
    class_folders(&old, 3);
    let options = with!(Options::new(&source, temp.path().join("set")), shards = Shards::Count(2), force = true);
    pack(&options, &()).unwrap();
    let expected = snapshot(&options.destination);
    let prepare = |folder: &Path| {
        pack(&with!(Options::new(&old, folder), shards = Shards::Count(5)), &()).unwrap();
    };
    assert!(kill_everywhere(&options, &expected, prepare) >= 9 + 6);
}

#[test]
fn continues_after_a_stop() {
    struct Stop(AtomicUsize);
    impl Progress for Stop {
        fn after(&self, _: Step) -> ControlFlow<()> {
            if self.0.fetch_sub(1, SeqCst) == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let source = source(temp.path());
    let options = with!(Options::new(&source, temp.path().join("set")), shards = Shards::Count(4));
    let stopped = pack(&options, &Stop(AtomicUsize::new(4))).unwrap_err();
    assert!(matches!(stopped, Error::Stopped), "{stopped}");
    assert!(
        !names(&options.destination).iter().any(|name| name.ends_with(".tmp")),
        "{:?}",
        names(&options.destination)
    );
    // Others may have been in work.
    let finished = finished_shards(&options.destination);
    assert!(finished >= 2, "{finished}");
    assert_eq!(pack(&options, &()).unwrap().resumed_shards, finished);
    assert_eq!(check(&options.destination, "train").len(), 45);
}

/// `stopped` ends the run within a shard; the next run resumes after the last finished shard, to the same bytes.
#[test]
fn run_stopped_within_a_shard_resumes_to_the_same_bytes() {
    struct StopAtImage(AtomicUsize);
    impl Progress for StopAtImage {
        fn stopped(&self) -> bool {
            self.0.fetch_update(SeqCst, SeqCst, |left| Some(left.saturating_sub(1))).unwrap() == 0
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let source = source(temp.path());
    let options = |name: &str| with!(Options::new(&source, temp.path().join(name)), shards = Shards::Count(4));
    pack(&options("whole"), &()).unwrap();
    let expected = snapshot(&temp.path().join("whole"));
    for images in [0, 1, 20, 40] {
        let name = format!("stopped{images}");
        let stopped = pack(&options(&name), &StopAtImage(AtomicUsize::new(images))).unwrap_err();
        assert!(matches!(stopped, Error::Stopped), "{stopped}");
        let left = names(&temp.path().join(&name));
        assert!(!left.iter().any(|name| name.ends_with(".tmp") || name == "dataset.json"), "{left:?}");
        pack(&options(&name), &()).unwrap();
        assert!(snapshot(&temp.path().join(&name)) == expected, "stopped after {images} images");
    }
}

#[test]
fn refuses_to_continue_another_pack() {
    struct Stop;
    impl Progress for Stop {
        fn after(&self, step: Step) -> ControlFlow<()> {
            if step == Step::Index { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let source = source(temp.path());
    let options = with!(Options::new(&source, temp.path().join("set")), shards = Shards::Count(3));
    pack(&options, &Stop).unwrap_err();
    let differs = |options: Options, what: &str| {
        let error = pack(&options, &()).unwrap_err();
        assert!(matches!(error, Error::Destination(DestinationError::OtherPlan { .. })), "{error}");
        assert!(chain(&error).contains(what) && chain(&error).contains("--force"), "{what} in {error}");
    };
    differs(with!(options.clone(), seed = Some(3)), "different seed: 0 before, 3 now");
    differs(with!(options.clone(), shards = Shards::Count(9)), "different shards");
    differs(with!(options.clone(), resize = Some(Resize::Shorter(9))), "different resize");
    let text = fs::read(source.join("cat/text.jpg")).unwrap();
    for (path, mut bytes) in snapshot(&source) {
        bytes.iter_mut().nth_back(2).into_iter().for_each(|byte| *byte ^= 1);
        fs::write(source.join(path), bytes).unwrap();
    }
    differs(options.clone(), "listing (names, sizes or contents)");
    put(&source.join("cat/more.jpg"), &text);
    differs(options.clone(), "different image");
    let summary = pack(&with!(options.clone(), force = true), &()).unwrap();
    assert_eq!((summary.resumed_shards, check(&options.destination, "train").len()), (0, 45));
}

#[test]
fn writes_a_damaged_finished_shard_again() {
    struct Stop;
    impl Progress for Stop {
        fn after(&self, step: Step) -> ControlFlow<()> {
            if step == Step::Rejected { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let source = source(temp.path());
    let options = with!(Options::new(&source, temp.path().join("set")), shards = Shards::Count(3));
    pack(&options, &Stop).unwrap_err();
    let index = options.destination.join("_index/train-00001.tfrecord.index");
    let mut bytes = fs::read(&index).unwrap();
    let last = bytes.len() - 70;
    bytes[last] ^= 1;
    fs::write(&index, bytes).unwrap();
    fs::write(options.destination.join("train-00002.tfrecord"), b"short").unwrap();
    assert_eq!(pack(&options, &()).unwrap().resumed_shards, 1);
    assert_eq!(check(&options.destination, "train").len(), 45);
}
