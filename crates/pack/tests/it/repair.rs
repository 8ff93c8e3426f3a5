//! Damage of each kind is repaired as far as the records allow, and the exact loss is reported.

use crate::adopt::{example, framed};
use crate::support::{check, class_folders, finished_shards, manifest, names, put, records, snapshot};
use shardtool_format::example::Column;
use shardtool_pack::ShardError;
use shardtool_pack::{
    Action, AdoptOptions, Error, ManifestRepair, Options, Progress, Repair, RepairOptions, Shards, Step, adopt, pack,
    repair,
};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const SHARD: &str = "train-00001.tfrecord";
const INDEX: &str = "_index/train-00001.tfrecord.index";

/// A packed set of three shards and its files.
fn packed() -> (tempfile::TempDir, PathBuf, BTreeMap<PathBuf, Vec<u8>>) {
    let temp = tempfile::tempdir().unwrap();
    let (source, set) = (temp.path().join("photos"), temp.path().join("set"));
    class_folders(&source, 12);
    pack(&with!(Options::new(&source, &set), shards = Shards::Count(3)), &()).unwrap();
    let files = snapshot(&set);
    (temp, set, files)
}

fn mend(set: &Path) -> Repair {
    repair(set, &RepairOptions::default(), &()).unwrap()
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn key(data: &[u8]) -> Vec<u8> {
    shardtool_format::example::Example::parse(data).unwrap().bytes("image/key").unwrap().to_vec()
}

/// Offset and key of each record of the damaged shard, when it was good.
fn rows(files: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
    records(&files[Path::new(SHARD)]).into_iter().map(|(offset, data)| (offset, key(data))).collect()
}

#[test]
fn leaves_an_intact_dataset_unchanged() {
    let (_temp, set, files) = packed();
    let done = mend(&set);
    assert_eq!(done.manifest, ManifestRepair::Kept);
    assert!(done.shards.iter().all(|s| s.action == Action::Intact && s.lost.is_empty()));
    assert!(files == snapshot(&set));
}

#[test]
fn rebuilds_indexes_byte_for_byte() {
    let (_temp, set, files) = packed();
    let length = files[Path::new(INDEX)].len();
    let damages: [&dyn Fn(); 4] = [
        &|| fs::remove_file(set.join(INDEX)).unwrap(),
        &|| edit(&set.join(INDEX), |bytes| bytes.truncate(length / 2)),
        &|| edit(&set.join(INDEX), |bytes| bytes[length - 1] ^= 1),
        &|| fs::write(set.join(INDEX), &files[Path::new("_index/train-00000.tfrecord.index")]).unwrap(),
    ];
    for damage in damages {
        damage();
        let done = mend(&set);
        assert_eq!((done.manifest, &done.shards[1].action), (ManifestRepair::Kept, &Action::IndexRebuilt));
        assert_eq!(done.shards[0].action, Action::Intact);
        assert!(files == snapshot(&set));
    }
}

#[test]
fn rebuilds_the_manifest_byte_for_byte() {
    let (_temp, set, files) = packed();
    let path = set.join("dataset.json");
    let damages: [&dyn Fn(); 2] = [&|| fs::remove_file(&path).unwrap(), &|| edit(&path, |bytes| bytes[99] ^= 1)];
    for damage in damages {
        damage();
        assert_eq!(mend(&set).manifest, ManifestRepair::Rebuilt);
        assert!(files == snapshot(&set));
    }
    fs::remove_dir_all(set.join("_index")).unwrap();
    fs::remove_file(&path).unwrap();
    mend(&set);
    assert!(files == snapshot(&set), "from the records alone");
}

/// Damages the shard; checks that these records, and only these, are lost, and that the damaged file stays.
fn salvaged(
    with_index: bool,
    damage: impl Fn(&mut Vec<u8>, &[(u64, Vec<u8>)]),
    lost: std::ops::Range<usize>,
) -> Repair {
    let (_temp, set, files) = packed();
    let rows = rows(&files);
    edit(&set.join(SHARD), |bytes| damage(bytes, &rows));
    if !with_index {
        fs::remove_file(set.join(INDEX)).unwrap();
    }
    let damaged = fs::read(set.join(SHARD)).unwrap();
    let done = mend(&set);
    let file = "train-00001.salvaged.tfrecord";
    let kept = (rows.len() - lost.len()) as u64;
    assert_eq!(done.shards[1].action, Action::Salvaged { file: file.to_owned(), records: kept });
    assert_eq!(done.manifest, ManifestRepair::Updated);
    assert!(fs::read(set.join(SHARD)).unwrap() == damaged);
    let [found] = &done.shards[1].lost[..] else { panic!("{:?}", done.shards[1].lost) };
    let end = rows.get(lost.end).map_or(damaged.len() as u64, |row| row.0.min(damaged.len() as u64));
    assert_eq!(found.bytes, rows[lost.start].0..end);
    if with_index {
        assert_eq!(found.keys, rows[lost.clone()].iter().map(|row| row.1.clone()).collect::<Vec<_>>());
        assert_eq!(found.records, Some(lost.start as u64..lost.end as u64));
    } else {
        assert_eq!((found.keys.len(), &found.records), (0, &None));
    }
    let shards: Vec<_> = manifest(&set).splits[0].shards.iter().map(|s| s.file.clone()).collect();
    assert_eq!(shards, ["train-00000.tfrecord", file, "train-00002.tfrecord"]);
    let left = check(&set, "train");
    assert_eq!(left.len(), 36 - lost.len());
    assert!(rows[lost].iter().all(|(_, key)| !left.contains_key(std::str::from_utf8(key).unwrap())));
    let again = mend(&set);
    assert_eq!(again.manifest, ManifestRepair::Kept, "a repaired dataset is good");
    fs::remove_file(set.join("dataset.json")).unwrap();
    mend(&set);
    assert_eq!(check(&set, "train"), left, "the salvaged file counts where no manifest says so");
    done
}

#[test]
fn flipped_bit_loses_one_record() {
    for with_index in [true, false] {
        let done = salvaged(with_index, |bytes, rows| bytes[rows[3].0 as usize + 200] ^= 8, 3..4);
        assert!(done.shards[1].lost[0].problem.as_ref().unwrap().to_string().contains("data CRC"));
    }
}

#[test]
fn damaged_length_loses_one_record() {
    for with_index in [true, false] {
        let done = salvaged(with_index, |bytes, rows| bytes[rows[4].0 as usize] ^= 1, 4..5);
        assert!(done.shards[1].lost[0].problem.as_ref().unwrap().to_string().contains("length CRC"));
    }
}

#[test]
fn overwritten_region_loses_the_records_that_it_touches() {
    let zero =
        |bytes: &mut Vec<u8>, rows: &[(u64, Vec<u8>)]| bytes[rows[2].0 as usize + 5..rows[6].0 as usize + 50].fill(0);
    for with_index in [true, false] {
        salvaged(with_index, zero, 2..7);
    }
}

#[test]
fn salvages_a_shard_damaged_at_both_ends() {
    for with_index in [true, false] {
        salvaged(with_index, |bytes, _| bytes[..20].fill(0xff), 0..1);
        let last = rows(&packed().2).len() - 1;
        salvaged(with_index, |bytes, _| bytes.truncate(bytes.len() - 7), last..last + 1);
    }
}

#[test]
fn accepts_a_shard_cut_between_records_and_reports_the_loss() {
    let (_temp, set, files) = packed();
    let rows = rows(&files);
    edit(&set.join(SHARD), |bytes| bytes.truncate(rows[5].0 as usize));
    let done = mend(&set);
    assert_eq!((done.manifest, &done.shards[1].action), (ManifestRepair::Updated, &Action::Accepted));
    assert_eq!(done.shards[1].lost[0].records, Some(5..rows.len() as u64));
    assert_eq!(done.shards[1].lost[0].keys[0], rows[5].1);
    assert_eq!(check(&set, "train").len(), 36 - (rows.len() - 5));
}

#[test]
fn keeps_a_missing_shard_in_the_manifest() {
    let (_temp, set, files) = packed();
    fs::remove_file(set.join(SHARD)).unwrap();
    let done = mend(&set);
    assert_eq!((done.manifest, &done.shards[1].action), (ManifestRepair::Kept, &Action::Missing));
    fs::write(set.join(SHARD), &files[Path::new(SHARD)]).unwrap();
    assert!(files == snapshot(&set), "restored, all is well");
}

#[test]
fn ignores_records_inside_a_record_if_the_index_is_valid() {
    let temp = tempfile::tempdir().unwrap();
    let inner = framed(&example(vec![("image/key", Column::Bytes(&[b"inner"]))]));
    let outer =
        |key: &[u8]| framed(&example(vec![("image/key", Column::Bytes(&[key])), ("x", Column::Bytes(&[&inner]))]));
    let file = temp.path().join(SHARD);
    put(&file, &[outer(b"a"), outer(b"b"), outer(b"c")].concat());
    adopt(std::slice::from_ref(&file), &AdoptOptions::default(), &()).unwrap();
    edit(&file, |bytes| bytes[0] ^= 1);
    mend(temp.path());
    let left = fs::read(temp.path().join("train-00001.salvaged.tfrecord")).unwrap();
    assert_eq!(records(&left).into_iter().map(|(_, data)| key(data)).collect::<Vec<_>>(), [b"b", b"c"]);
}

#[test]
fn leaves_an_unfinished_pack_unchanged() {
    struct Stop;
    impl Progress for Stop {
        fn after(&self, step: Step) -> ControlFlow<()> {
            if step == Step::Index { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let (source, set) = (temp.path().join("photos"), temp.path().join("set"));
    class_folders(&source, 4);
    let options = with!(Options::new(&source, &set), shards = Shards::Count(2));
    pack(&options, &Stop).unwrap_err();
    let before = names(&set);
    assert_eq!(mend(&set).unfinished, ["train"]);
    assert_eq!(names(&set), before);
    let finished = finished_shards(&set);
    assert!(finished >= 1);
    assert_eq!(pack(&options, &()).unwrap().resumed_shards, finished);
}

#[test]
fn refuses_a_folder_without_a_dataset() {
    let temp = tempfile::tempdir().unwrap();
    put(&temp.path().join("photo.jpg"), b"x");
    let error = repair(temp.path(), &RepairOptions::default(), &()).unwrap_err();
    assert!(matches!(error, Error::Shard(ShardError::NoDataset { .. })), "{error}");
    assert_eq!(names(temp.path()), ["photo.jpg"]);
}

/// A file with the name of a copy is not overwritten, and counts as a copy only if its records say so.
#[test]
fn salvage_overwrites_no_file() {
    for listed in [true, false] {
        let (_temp, set, files) = packed();
        let foreign = set.join("train-00001.salvaged.tfrecord");
        put(&foreign, &framed(&example(vec![("image/key", Column::Bytes(&[b"foreign"]))])));
        let bytes = fs::read(&foreign).unwrap();
        if listed {
            fs::remove_file(set.join("dataset.json")).unwrap();
            mend(&set);
            assert_eq!(manifest(&set).split("train").unwrap().shards.len(), 4, "not taken for a copy");
            assert_eq!(check_keys(&set, "foreign"), 1);
        }
        let rows = rows(&files);
        edit(&set.join(SHARD), |bytes| bytes[rows[3].0 as usize + 200] ^= 8);
        let done = mend(&set);
        let copy = "train-00001.salvaged-2.tfrecord";
        let salvaged = done.shards.iter().find(|shard| shard.file == SHARD).unwrap();
        assert_eq!(salvaged.action, Action::Salvaged { file: copy.to_owned(), records: rows.len() as u64 - 1 });
        assert_eq!(fs::read(&foreign).unwrap(), bytes);
        assert_eq!(check_keys(&set, "foreign"), usize::from(listed));
        assert_eq!(mend(&set).manifest, ManifestRepair::Kept);
    }
}

/// Returns how many shards that the manifest names hold a key.
fn check_keys(set: &Path, wanted: &str) -> usize {
    let manifest = manifest(set);
    let shards = manifest.splits.iter().flat_map(|split| &split.shards);
    let holds = |file: &str| {
        let bytes = fs::read(set.join(file)).unwrap();
        records(&bytes).into_iter().any(|(_, data)| key(data) == wanted.as_bytes())
    };
    shards.filter(|shard| holds(&shard.file)).count()
}

#[test]
fn restored_original_replaces_its_salvaged_copy() {
    for with_manifest in [true, false] {
        let (_temp, set, files) = packed();
        let rows = rows(&files);
        edit(&set.join(SHARD), |bytes| bytes[rows[3].0 as usize + 200] ^= 8);
        mend(&set);
        fs::write(set.join(SHARD), &files[Path::new(SHARD)]).unwrap();
        if !with_manifest {
            fs::remove_file(set.join("dataset.json")).unwrap();
        }
        let done = mend(&set);
        if with_manifest {
            assert_eq!(done.shards[1].file, "train-00001.salvaged.tfrecord");
            assert_eq!(done.shards[1].action, Action::Restored { file: SHARD.to_owned() });
        }
        assert!(fs::read(set.join("dataset.json")).unwrap() == files[Path::new("dataset.json")]);
        assert_eq!(check(&set, "train").len(), 36);
    }
}

#[test]
fn record_that_is_no_example_is_lost_alone() {
    let (_temp, set, files) = packed();
    let rows = rows(&files);
    let malformed = framed(b"\xff\xff\xff");
    edit(&set.join(SHARD), |bytes| drop(bytes.splice(rows[2].0 as usize..rows[3].0 as usize, malformed.clone())));
    let done = mend(&set);
    assert_eq!(done.shards[1].lost.len(), 1);
    assert_eq!(done.shards[1].lost[0].bytes, rows[2].0..rows[2].0 + malformed.len() as u64);
    assert!(matches!(&done.shards[1].action, Action::Salvaged { records, .. } if *records == rows.len() as u64 - 1));
    assert_eq!(check(&set, "train").len(), 35);
}

#[test]
fn refuses_names_that_no_manifest_can_hold() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["a\\b.tfrecord", "a b-00000.tfrecord"] {
        put(&temp.path().join(name), &framed(&example(vec![])));
        let error = repair(temp.path(), &RepairOptions::default(), &()).unwrap_err();
        assert!(matches!(error, Error::Name(_)), "{error}");
        assert_eq!(names(temp.path()), [name]);
        fs::remove_file(temp.path().join(name)).unwrap();
    }
}

/// Without a manifest, a shard that cannot be read is an error, not a shard less.
#[test]
fn rebuilds_no_manifest_without_a_shard_that_cannot_be_read() {
    let (_temp, set, _) = packed();
    fs::remove_file(set.join("dataset.json")).unwrap();
    fs::rename(set.join(SHARD), set.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("absent", set.join(SHARD)).unwrap();
    let error = repair(&set, &RepairOptions::default(), &()).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if *path == set.join(SHARD)), "{error}");
    assert!(!set.join("dataset.json").exists());
}
