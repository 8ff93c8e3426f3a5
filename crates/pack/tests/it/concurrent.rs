//! Of two commands on one dataset, both succeed or one refuses; the result is always right.

use crate::support::{chain, check, class_folders, manifest, names, put, snapshot};
use shardtool_pack::{
    Action, AdoptOptions, DestinationError, Error, ManifestRepair, Options, Progress, RepairOptions, ReshardOptions,
    Shards, Step, Writer, WriterOptions, adopt, pack, repair, reseal, reshard,
};
use shardtool_read::Dataset;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

/// Runs something at the first step, increment or total of a command.
struct Meanwhile<'a>(&'a (dyn Fn() + Sync));

impl Progress for Meanwhile<'_> {
    fn total(&self, _: u64, _: u64) {
        self.0();
    }
    fn after(&self, _: Step) -> ControlFlow<()> {
        self.0();
        ControlFlow::Continue(())
    }
}

fn is_locked<T>(result: Result<T, Error>) -> bool {
    match result {
        Ok(_) => false,
        Err(error) => {
            assert!(matches!(error, Error::Destination(DestinationError::Locked { .. })), "{}", chain(&error));
            assert!(chain(&error).contains(".lock"), "{}", chain(&error));
            true
        }
    }
}

fn options(temp: &Path, split: &str) -> Options {
    let (source, set) = (temp.join("photos"), temp.join("set"));
    with!(Options::new(source, set), split = Some(split.to_owned()), shards = Shards::Count(3))
}

fn packed() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    class_folders(&temp.path().join("photos"), 6);
    pack(&options(temp.path(), "train"), &()).unwrap();
    let set = temp.path().join("set");
    (temp, set)
}

#[test]
fn repair_keeps_splits_that_are_packed_meanwhile() {
    let (temp, set) = packed();
    fs::remove_file(set.join("_index/train-00001.tfrecord.index")).unwrap();
    let refused = || {
        assert!(is_locked(pack(&options(temp.path(), "validation"), &())));
        assert!(is_locked(Writer::open(&WriterOptions::new(&set, "validation"))));
        assert!(is_locked(repair(&set, &RepairOptions::default(), &())));
        assert!(is_locked(reseal(&set)));
    };
    repair(&set, &RepairOptions::default(), &Meanwhile(&refused)).unwrap();
    let refused = || {
        assert!(is_locked(repair(&set, &RepairOptions::default(), &())));
        assert!(is_locked(adopt(&[set.join("train-00000.tfrecord")], &AdoptOptions::default(), &())));
        // Packs of other splits need not wait.
        pack(&options(temp.path(), "test"), &()).unwrap();
    };
    pack(&options(temp.path(), "validation"), &Meanwhile(&refused)).unwrap();
    assert_eq!(manifest(&set).splits.len(), 3);
    for split in ["train", "validation", "test"] {
        assert_eq!(check(&set, split).len(), 18);
    }
    assert!(!names(&set).iter().any(|name| name.contains("lock") || name.ends_with(".tmp")), "{:?}", names(&set));
}

#[test]
fn runs_of_index_do_not_remove_each_others_indexes() {
    let (temp, set) = packed();
    let bare = temp.path().join("bare");
    let shards: Vec<_> = (0..3).map(|n| format!("train-{n:05}.tfrecord")).collect();
    let files: Vec<_> = shards.iter().map(|name| bare.join(name)).collect();
    shards.iter().for_each(|name| put(&bare.join(name), &fs::read(set.join(name)).unwrap()));
    let refused = || assert!(is_locked(adopt(&files, &AdoptOptions::default(), &())));
    adopt(&files, &AdoptOptions::default(), &Meanwhile(&refused)).unwrap();
    let expected = snapshot(&bare);
    for round in 0..20 {
        fs::remove_file(bare.join("dataset.json")).unwrap();
        fs::remove_dir_all(bare.join("_index")).unwrap();
        let barrier = Barrier::new(4);
        let run = || {
            barrier.wait();
            adopt(&files, &AdoptOptions::default(), &()).map(drop)
        };
        let done: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let refused = done.into_iter().map(is_locked).filter(|locked| *locked).count();
        assert!(refused < 4, "round {round}");
        assert!(snapshot(&bare) == expected, "round {round}: {:?}", names(&bare));
    }
}

#[test]
fn any_two_commands_leave_a_right_result() {
    let (temp, set) = packed();
    let damaged = |set: &Path| {
        let shard = set.join("train-00001.tfrecord");
        let mut bytes = fs::read(&shard).unwrap();
        bytes[100] ^= 1;
        fs::write(shard, bytes).unwrap();
    };
    damaged(&set);
    let before = snapshot(&set);
    type Command<'a> = (&'a str, &'a (dyn Fn() -> Result<(), Error> + Sync));
    let commands: [Command<'_>; 4] = [
        ("repair", &|| repair(&set, &RepairOptions::default(), &()).map(drop)),
        ("pack", &|| pack(&options(temp.path(), "validation"), &()).map(drop)),
        ("other pack", &|| pack(&options(temp.path(), "test"), &()).map(drop)),
        ("reseal", &|| reseal(&set).map(drop)),
    ];
    for (first_name, first) in commands {
        for (second_name, second) in commands {
            let pair = format!("{first_name} and {second_name}");
            fs::remove_dir_all(&set).unwrap();
            before.iter().for_each(|(path, bytes)| put(&set.join(path), bytes));
            let barrier = Barrier::new(2);
            let run = |command: &(dyn Fn() -> Result<(), Error> + Sync)| {
                barrier.wait();
                is_locked(command())
            };
            let refused = std::thread::scope(|scope| {
                let one = scope.spawn(|| run(first));
                [run(second), one.join().unwrap()]
            });
            assert!(refused.iter().any(|refused| !refused), "{pair}: both refused");
            for (name, command) in [(first_name, first), (second_name, second)] {
                command().unwrap_or_else(|e| panic!("{pair}, then {name}: {}", chain(&e)));
            }
            let splits: Vec<_> = manifest(&set).splits.into_iter().map(|split| split.name).collect();
            let expected = |split: &str, name: &str| {
                assert_eq!(splits.contains(&split.to_owned()), pair.contains(name), "{pair}");
            };
            expected("test", "other pack");
            if pair.replace("other pack", "").contains("pack") {
                assert_eq!(check(&set, "validation").len(), 18, "{pair}");
            }
            if pair.contains("repair") {
                assert_eq!(check(&set, "train").len(), 17, "{pair}");
            }
            let left = names(&set);
            assert!(!left.iter().any(|name| name.contains("lock") || name.ends_with(".tmp")), "{pair}: {left:?}");
        }
    }
}

#[test]
fn a_second_reshard_to_the_same_folder_is_refused() {
    let (temp, set) = packed();
    let out = temp.path().join("out");
    let dataset = Dataset::open(&set).unwrap();
    let refused = || {
        assert!(is_locked(reshard(dataset.splits(), &out, &ReshardOptions::default(), &())));
        assert!(is_locked(pack(&Options::new(temp.path().join("photos"), &out), &())));
        assert!(is_locked(repair(&out, &RepairOptions::default(), &())));
    };
    reshard(dataset.splits(), &out, &ReshardOptions::default(), &Meanwhile(&refused)).unwrap();
    let done = repair(&out, &RepairOptions::default(), &()).unwrap();
    assert_eq!(done.manifest, ManifestRepair::Kept);
    assert!(done.shards.iter().all(|shard| shard.action == Action::Intact));
}
