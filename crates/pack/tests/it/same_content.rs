//! A source whose names, sizes and contents are equal is equal, whatever its times.

use crate::support::{chain, class_folders, finished_shards, jpeg, put, snapshot, tar};
use shardtool_pack::{Options, Progress, Shards, SourceKind, Step, pack};
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

/// Gives every file below a folder another time.
fn touch(root: &Path) {
    for path in snapshot(root).into_keys() {
        let file = File::options().append(true).open(root.join(path)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_007)).unwrap();
    }
}

/// A source of each kind, and one of its files.
fn sources(root: &Path) -> Vec<(Options, PathBuf)> {
    let image = jpeg(5, 30, 20);
    class_folders(&root.join("folders"), 3);
    put(&root.join("tars/a.tar"), &tar(&[("0.jpg", &image), ("0.cls", b"1"), ("0.boxes", b"[1, 2]")]));
    put(&root.join("list/a.jpg"), &image);
    put(&root.join("list/mask.png"), &image);
    put(&root.join("list/list.csv"), b"path,second,x\na.jpg,mask.png,0.5\n");
    put(&root.join("clips/a/0.jpg"), &image);
    put(&root.join("clips/a/1.jpg"), &image);
    let options = |name: &str| Options::new(root.join(name), root.join(name.replace('/', "-") + ".set"));
    vec![
        (with!(options("folders"), shards = Shards::Count(3)), root.join("folders/dog/0001.jpg")),
        (options("tars"), root.join("tars/a.tar")),
        (with!(options("list/list.csv"), files = vec!["second".to_owned()]), root.join("list/mask.png")),
        (with!(options("clips"), from = Some(SourceKind::Clips)), root.join("clips/a/1.jpg")),
    ]
}

#[test]
fn a_source_of_other_times_is_the_same() {
    let temp = tempfile::tempdir().unwrap();
    for (options, file) in sources(temp.path()) {
        let before = pack(&options, &()).unwrap();
        let files = snapshot(&options.destination);
        let folder = file.parent().unwrap();
        touch(folder);
        let again = pack(&options, &()).unwrap();
        assert!(again.already_complete && again.split == before.split);
        let mut now = snapshot(&options.destination);
        let plan = Path::new(".packed-train.json");
        assert_ne!(now.insert(plan.to_owned(), files[plan].clone()), Some(files[plan].clone()), "not compared again");
        assert_eq!(now, files);
        assert!(pack(&with!(options.clone(), ignore_times = true), &()).unwrap().already_complete);
        // The same size, and other contents.
        let mut bytes = fs::read(&file).unwrap();
        let last = bytes.len() - 3;
        *bytes.iter_mut().rev().find(|byte| **byte == b'2').unwrap_or(&mut 0) = b'3';
        bytes[last] ^= u8::from(file.extension().unwrap() != "tar");
        fs::write(&file, bytes).unwrap();
        let error = pack(&options, &()).unwrap_err();
        assert!(chain(&error).contains("names, sizes or contents"), "{}", chain(&error));
        assert_eq!(
            snapshot(&options.destination)[Path::new("train-00000.tfrecord")],
            files[Path::new("train-00000.tfrecord")]
        );
    }
}

/// Stops after a number of finished shards.
struct StopAfter(AtomicUsize);

impl Progress for StopAfter {
    fn after(&self, step: Step) -> ControlFlow<()> {
        match step {
            Step::Index if self.0.fetch_sub(1, SeqCst) == 1 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn an_interrupted_pack_continues_with_a_source_of_other_times() {
    let temp = tempfile::tempdir().unwrap();
    let (options, file) = sources(temp.path()).swap_remove(0);
    let whole = with!(options.clone(), destination = temp.path().join("whole"));
    pack(&whole, &()).unwrap();
    pack(&options, &StopAfter(AtomicUsize::new(2))).unwrap_err();
    let finished = finished_shards(&options.destination);
    touch(&options.source);
    let summary = pack(&options, &()).unwrap();
    assert_eq!(summary.resumed_shards, finished);
    assert!(finished > 0);
    let shards = |set: &Path| {
        let mut files = snapshot(set);
        files.retain(|path, _| !path.starts_with(".packed-train.json"));
        files
    };
    assert_eq!(shards(&options.destination), shards(&whole.destination));
    // Other contents are refused, if a finished shard has them.
    let other = with!(options, destination = temp.path().join("other"));
    pack(&other, &StopAfter(AtomicUsize::new(3))).unwrap_err();
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert!(chain(&pack(&other, &()).unwrap_err()).contains("names, sizes or contents"));
}
