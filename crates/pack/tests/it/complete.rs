//! Packing into a complete split: the same pack returns it; any other pack is refused with the difference.

use crate::support::{chain, class_folders, names, put, snapshot};
use shardtool_pack::DestinationError;
use shardtool_pack::{
    Action, Error, OnError, Options, Progress, RepairOptions, Resize, Shards, Step, Summary, pack, repair,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

const KEPT: &str = ".packed-train.json";

fn packed(rejects: bool) -> (tempfile::TempDir, Options, Summary) {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("photos");
    class_folders(&source, 4);
    if rejects {
        put(&source.join("cat/text.jpg"), b"text");
    }
    let options = with!(Options::new(&source, temp.path().join("set")), shards = Shards::Count(2));
    let summary = pack(&options, &()).unwrap();
    assert!(!summary.already_complete);
    (temp, options, summary)
}

fn refused(options: Options, expected: &str) {
    let error = pack(&options, &()).unwrap_err();
    assert!(chain(&error).contains(expected), "{expected} in {error}");
    assert!(matches!(error, Error::Destination(DestinationError::PackedOtherwise { .. })), "{error}");
}

#[test]
fn returns_a_complete_split_and_writes_nothing() {
    for rejects in [false, true] {
        let (_temp, options, first) = packed(rejects);
        let before = snapshot(&options.destination);
        assert!(before.contains_key(&PathBuf::from(KEPT)), "{:?}", names(&options.destination));
        assert!(!before.contains_key(&PathBuf::from(".pack-train.json")));
        // The number of threads decides no byte, and whether a replaced split is complete is the same question.
        let again = with!(options.clone(), jobs = 1.try_into().unwrap());
        let second = pack(&again, &()).unwrap();
        assert_eq!(second, with!(first, already_complete = true));
        assert!(snapshot(&options.destination) == before);
    }
}

/// A pack that was killed at its very end is complete, also for `force` and with rejected inputs.
#[test]
fn returns_a_split_whose_pack_ended_after_its_plan_was_removed() {
    struct Stop;
    impl Progress for Stop {
        fn after(&self, step: Step) -> ControlFlow<()> {
            if step == Step::Finished { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    for force in [false, true] {
        let temp = tempfile::tempdir().unwrap();
        let source = temp.path().join("photos");
        class_folders(&source, 4);
        put(&source.join("cat/text.jpg"), b"text");
        let options = with!(Options::new(&source, temp.path().join("set")), force = force);
        assert!(matches!(pack(&options, &Stop).unwrap_err(), Error::Stopped));
        let before = snapshot(&options.destination);
        assert!(!before.contains_key(&PathBuf::from(".pack-train.json")));
        let again = pack(&with!(options.clone(), force = false), &()).unwrap();
        assert!(again.already_complete && again.rejected == 1);
        assert!(snapshot(&options.destination) == before);
    }
}

#[test]
fn refuses_other_options_and_sources_by_name() {
    let (_temp, options, _) = packed(false);
    let before = snapshot(&options.destination);
    refused(with!(options.clone(), seed = Some(3)), "different seed: 0 before, 3 now");
    refused(with!(options.clone(), shards = Shards::Count(3)), "different shards: \"2\" before, \"3\" now");
    refused(with!(options.clone(), resize = Some(Resize::Shorter(9))), "different resize");
    let resized = with!(options.clone(), resize = Some(Resize::Shorter(9)));
    refused(with!(resized, quality = 50), "different quality: 90 before, 50 now");
    let file = options.source.join("cat/0000.jpg");
    let bytes = fs::read(&file).unwrap();
    let mut other = bytes.clone();
    *other.iter_mut().nth_back(2).unwrap() ^= 1;
    fs::write(&file, other).unwrap();
    refused(options.clone(), "listing (names, sizes or contents)");
    put(&options.source.join("cat/more.jpg"), &bytes);
    refused(options.clone(), "different image");
    assert!(snapshot(&options.destination) == before, "the dataset is unchanged");
}

#[test]
fn refuses_a_split_without_a_kept_plan() {
    let (_temp, options, _) = packed(false);
    fs::remove_file(options.destination.join(KEPT)).unwrap();
    assert!(matches!(pack(&options, &()).unwrap_err(), Error::Destination(DestinationError::SplitExists { .. })));
}

#[test]
fn fails_on_earlier_rejects_if_requested() {
    let (_temp, options, _) = packed(true);
    let error = pack(&with!(options, on_error = OnError::Fail), &()).unwrap_err();
    assert!(matches!(error, Error::RejectedBefore { .. }), "{error}");
}

#[test]
fn refuses_a_split_that_lost_records_or_shards() {
    let (_temp, options, _) = packed(false);
    let shard = options.destination.join("train-00000.tfrecord");
    let whole = fs::read(&shard).unwrap();
    fs::remove_file(&shard).unwrap();
    assert!(matches!(pack(&options, &()).unwrap_err(), Error::Io { path, .. } if path == shard));
    let mut damaged = whole;
    damaged[40] ^= 1;
    fs::write(&shard, damaged).unwrap();
    let repaired = repair(&options.destination, &RepairOptions::default(), &()).unwrap();
    assert!(matches!(repaired.shards[0].action, Action::Salvaged { .. }), "{repaired:?}");
    assert!(matches!(pack(&options, &()).unwrap_err(), Error::Destination(DestinationError::ChangedSince { .. })));
}

#[test]
fn finds_a_complete_split_without_writing_to_the_folder() {
    use std::os::unix::fs::PermissionsExt;
    let (_temp, options, _) = packed(false);
    // A lock of another process that packs this split: only writers wait for it.
    let lock = fs::File::create(options.destination.join(".pack-train.lock")).unwrap();
    lock.lock().unwrap();
    fs::set_permissions(&options.destination, PermissionsExt::from_mode(0o555)).unwrap();
    let again = pack(&options, &());
    fs::set_permissions(&options.destination, PermissionsExt::from_mode(0o755)).unwrap();
    assert!(again.unwrap().already_complete);
}
