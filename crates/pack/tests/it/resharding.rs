//! Resharding and merging keep every record byte for byte, and leave a complete dataset or none.

use crate::support::{check, class_folders, jpeg, manifest, put, snapshot, without_record};
use shardtool_pack::{DestinationError, ShardError};
use shardtool_pack::{Error, Options, ReshardOptions, Shards, pack, reshard};
use shardtool_read::{Dataset, Split};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

fn options(shards: u64, seed: Option<u64>, jobs: usize) -> ReshardOptions {
    let jobs = NonZeroUsize::new(jobs).unwrap();
    with!(ReshardOptions::default(), shards = Shards::Count(shards), seed = seed, jobs = jobs)
}

fn packed(temp: &Path, name: &str, shards: u64) -> PathBuf {
    let set = temp.join(name);
    for split in ["train", "validation"] {
        let photos = temp.join(format!("{name}-{split}"));
        class_folders(&photos, if split == "train" { 9 } else { 2 });
        // Large enough to have entry points.
        put(&photos.join("cat/large.jpg"), &jpeg(7, 200, 150));
        let options =
            with!(Options::new(&photos, &set), split = Some(split.to_owned()), shards = Shards::Count(shards));
        pack(&options, &()).unwrap();
    }
    set
}

fn splits(set: &Path) -> Vec<Split> {
    Dataset::open(set).unwrap().splits().to_vec()
}

#[test]
fn writes_every_record_once_for_any_shards_and_threads() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), "set", 3);
    for (shards, seed) in [(1, Some(0)), (2, None), (5, Some(9)), (40, Some(1))] {
        let out = |jobs: usize| {
            let out = temp.path().join(format!("out-{shards}-{jobs}"));
            reshard(&splits(&set), &out, &options(shards, seed, jobs), &()).unwrap();
            snapshot(&out)
        };
        assert_eq!(out(1), out(3), "{shards} shards");
        let out = temp.path().join(format!("out-{shards}-1"));
        for split in ["train", "validation"] {
            assert_eq!(check(&out, split), check(&set, split));
            assert_eq!(manifest(&out).split(split).unwrap().shards.len() as u64, shards);
        }
    }
}

#[test]
fn same_shards_and_order_give_the_same_files() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), "set", 1);
    let out = temp.path().join("out");
    reshard(&splits(&set), &out, &options(1, None, 2), &()).unwrap();
    // Indexes and their entry points too; the copy has no plan.
    fs::remove_file(set.join(".packed-train.json")).unwrap();
    fs::remove_file(set.join(".packed-validation.json")).unwrap();
    assert!(without_record(&out) == snapshot(&set));
}

#[test]
fn merges_datasets() {
    let temp = tempfile::tempdir().unwrap();
    let (a, b) = (packed(temp.path(), "a", 2), temp.path().join("b"));
    for (number, class) in ["cat", "dog", "emu"].iter().enumerate() {
        put(&temp.path().join("more").join(class).join("new.jpg"), &jpeg(900 + number as u32, 30, 30));
    }
    pack(&Options::new(temp.path().join("more"), &b), &()).unwrap();
    let both = [splits(&a), splits(&b)].concat();
    let out = temp.path().join("out");
    reshard(&both, &out, &options(2, Some(0), 2), &()).unwrap();
    let mut expected = check(&a, "train");
    expected.extend(check(&b, "train"));
    assert_eq!(expected.len(), 27 + 1 + 3);
    assert_eq!(check(&out, "train"), expected);
    assert_eq!(check(&out, "validation"), check(&a, "validation"));
}

#[test]
fn refuses_incompatible_datasets_and_leaves_no_file() {
    let temp = tempfile::tempdir().unwrap();
    let (a, other) = (packed(temp.path(), "a", 2), temp.path().join("other"));
    put(&temp.path().join("cars/car/1.jpg"), &jpeg(1, 20, 20));
    pack(&Options::new(temp.path().join("cars"), &other), &()).unwrap();
    let before: Vec<_> = fs::read_dir(temp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    let refused =
        |sources: &[Split]| reshard(sources, &temp.path().join("out"), &options(2, Some(0), 2), &()).unwrap_err();
    assert!(matches!(
        refused(&[splits(&a), splits(&other)].concat()),
        Error::Destination(DestinationError::Incompatible { .. })
    ));
    assert!(matches!(refused(&[splits(&a), splits(&a)].concat()), Error::Shard(ShardError::MergedKey { .. })));
    assert!(matches!(refused(&[]), Error::Option { .. }));
    let shard = a.join("train-00001.tfrecord");
    let bare = Dataset::open(&shard).unwrap();
    assert!(matches!(refused(bare.splits()), Error::Shard(ShardError::Bare { .. })));
    let taken = reshard(&splits(&a), &other, &options(1, None, 1), &()).unwrap_err();
    assert!(matches!(taken, Error::Destination(DestinationError::NotEmpty { .. })));
    let mut bytes = fs::read(&shard).unwrap();
    bytes[100] ^= 1;
    fs::write(&shard, bytes).unwrap();
    assert!(matches!(refused(&splits(&a)), Error::Read(_)));
    let after: Vec<_> = fs::read_dir(temp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(before, after);
}
