//! Clones: datasets whose shards are those of another one, and stay where they are.

use crate::support::{chain, class_folders, manifest, names, put, snapshot};
use shardtool_format::Damage;
use shardtool_format::manifest::DType;
use shardtool_pack::{
    AppendOptions, ChangeOptions, ChosenRecords, CloneOptions, ColumnChange, ColumnOptions, ColumnRows, ColumnValues,
    CompactOptions, CopyOptions, DeleteOptions, DestinationError, Error, GcOptions, Options, PurgeOptions,
    RepairOptions, SelectOptions, ShardError, Shards, SourceError, Value, append, change_columns, clone, compact, copy,
    delete, gc, index_source, pack, purge, remove_tag, repair, reseal, rollback, select, tag,
};
use shardtool_read::verify::{self, verify};
use shardtool_read::{Dataset, Options as Reading};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Packs two splits, the first one in two shards. Returns the dataset, without links in its path.
fn packed(root: &Path) -> PathBuf {
    let set = root.join("team").join("set");
    for (split, each, shards) in [("train", 4, 2), ("validation", 2, 1)] {
        let photos = root.join(split);
        class_folders(&photos, each);
        let options =
            with!(Options::new(&photos, &set), split = Some(split.to_owned()), shards = Shards::Count(shards));
        pack(&options, &()).unwrap();
    }
    set.canonicalize().unwrap()
}

fn allowing(source: &Path) -> Reading {
    Reading::default().with_sources([source.to_str().unwrap()])
}

/// The key and the bytes of a record.
type Contents = (Vec<u8>, Vec<u8>);

/// The records of each split and view.
fn contents(dataset: &Dataset) -> BTreeMap<String, Vec<Contents>> {
    let views = dataset.view_names().map(|name| dataset.view(name).unwrap());
    let each = |split: &shardtool_read::Split| {
        let record = |id| {
            let record = split.get(id).unwrap();
            (record.key().unwrap().into_owned(), record.data().to_vec())
        };
        (split.name().to_owned(), (0..split.len()).map(record).collect())
    };
    dataset.splits().iter().chain(views).map(each).collect()
}

fn cloned(from: &Path, to: &Path) -> shardtool_pack::Cloned {
    clone(from, to, &CloneOptions::default(), &()).unwrap()
}

/// Changes with the user's word for a folder.
fn change(source: &Path) -> ChangeOptions {
    with!(ChangeOptions::default(), sources = vec![source.to_str().unwrap().to_owned()])
}

/// Adds a column to the split train, with a number for each key.
fn number(dataset: &Path, of: &Path, name: &str, numbers: &[(&str, i64)]) {
    let rows = ColumnRows {
        source: "numbers".into(),
        keys: Some(numbers.iter().map(|(key, _)| key.as_bytes().to_vec()).collect()),
        columns: vec![ColumnValues {
            name: name.to_owned(),
            dtype: DType::Int64,
            rows: numbers.iter().map(|(_, number)| Some(Value::Int64(vec![*number]))).collect(),
        }],
    };
    let mut options = ColumnOptions::new(ColumnChange::Add);
    (options.missing, options.change) = (shardtool_pack::MissingRows::Null, change(of));
    options.splits = vec!["train".to_owned()];
    change_columns(dataset, &rows, &options, &()).unwrap();
}

#[test]
fn a_clone_has_the_records_and_fingerprints_of_the_dataset_and_none_of_its_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    let before = snapshot(&set);
    let made = cloned(&set, &mine);
    assert_eq!((made.shards, made.bytes, made.sources), (3, 0, vec![set.to_str().unwrap().to_owned()]));
    assert_eq!(names(&mine), ["dataset.json"]);
    let (base, dataset) = (Dataset::open(&set).unwrap(), Dataset::open_with(&mine, allowing(&set)).unwrap());
    assert_eq!(contents(&dataset), contents(&base));
    for (one, other) in dataset.splits().iter().zip(base.splits()) {
        assert_eq!(one.entry().fingerprint(), other.entry().fingerprint());
        one.check_counts().unwrap();
        let key = other.get(1).unwrap().key().unwrap().into_owned();
        assert_eq!(one.find(&key).unwrap(), Some(1));
    }
    let report = verify(&dataset, &verify::Options::default());
    assert!(report.findings.is_empty() && report.bytes > 0, "{:?}", report.findings);
    let quick = verify::quick(&dataset, None).unwrap();
    assert!(quick.report.findings.is_empty(), "{:?}", quick.report.findings);
    // Once more, and by another path of the same folder.
    cloned(&set.join("../set"), &mine);
    assert_eq!(names(&mine), ["dataset.json"]);
    assert_eq!(snapshot(&set), before);
}

#[test]
fn a_clone_opens_nothing_without_the_users_word() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    cloned(&set, &mine);
    let parent = set.parent().unwrap();
    for near in ["/nonexistent".into(), set.join("_index"), set.with_file_name("se"), set.with_file_name("set2")] {
        let dataset = Dataset::open_with(&mine, allowing(&near)).unwrap();
        let error = dataset.splits()[0].get(0).map(drop).unwrap_err();
        assert!(matches!(error, shardtool_read::Error::ForeignSource { .. }) && !error.is_bad_sample(), "{error}");
        assert!(chain(&error).contains(&format!("--source {}", set.display())), "{}", chain(&error));
        assert!(matches!(dataset.check_source_folders(), Err(shardtool_read::Error::ForeignSource { .. })));
        assert!(matches!(dataset.check_sources(), Err(shardtool_read::Error::ForeignSource { .. })));
        for findings in [
            verify(&dataset, &verify::Options::default()).findings,
            verify::quick(&dataset, None).unwrap().report.findings,
        ] {
            let found: Vec<_> =
                findings.iter().map(|finding| (finding.damage.map_or("none", Damage::name), finding.record)).collect();
            assert_eq!(found, [("ForeignSource", None); 3]);
        }
    }
    for good in [&set, parent] {
        let dataset = Dataset::open_with(&mine, allowing(good)).unwrap();
        dataset.check_sources().unwrap();
        assert_eq!(contents(&dataset)["train"].len(), 12);
    }
    // A link of a shard, or of an index, that leads out of what is allowed.
    for file in ["train-00001.tfrecord", "_index/train-00001.tfrecord.index"] {
        let (here, outside) = (set.join(file), temp.path().join("outside"));
        fs::rename(&here, &outside).unwrap();
        std::os::unix::fs::symlink(&outside, &here).unwrap();
        let split = Dataset::open_with(&mine, allowing(&set)).unwrap().split("train").unwrap().clone();
        let last = split.len() - 1;
        assert!(split.get(0).is_ok());
        assert!(matches!(split.get(last), Err(shardtool_read::Error::ForeignSource { .. })), "{file}");
        fs::remove_file(&here).unwrap();
        fs::rename(&outside, &here).unwrap();
    }
}

#[test]
fn changes_of_a_clone_and_of_its_dataset_do_not_meet() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    number(&set, &set, "score", &[("cat/0000.jpg", 7), ("emu/0001.jpg", -1)]);
    let of_train = |chosen| with!(DeleteOptions::new(chosen), splits = vec!["train".to_owned()]);
    delete(&set, &of_train(ChosenRecords::Keys(vec![b"dog/0000.jpg".to_vec()])), &()).unwrap();
    cloned(&set, &mine);
    let of_set = |path: &Path| contents(&Dataset::open_with(path, allowing(&set)).unwrap());
    let (before, files) = (of_set(&set), snapshot(&set));
    assert_eq!(of_set(&mine), before);
    assert!(names(&mine).iter().all(|name| name == "dataset.json" || name.starts_with("_columns/")));

    // Without the user's word, a change of a clone is refused before anything is written.
    let mine_before = snapshot(&mine);
    let keys = of_train(ChosenRecords::Keys(vec![b"cat/0001.jpg".to_vec()]));
    let refused = delete(&mine, &keys, &()).map(drop).unwrap_err();
    assert!(chain(&refused).contains("--source"), "{}", chain(&refused));
    assert_eq!(snapshot(&mine), mine_before);

    number(&mine, &set, "mine", &[("cat/0001.jpg", 3)]);
    delete(&mine, &with!(keys, change = change(&set)), &()).unwrap();
    let mut view = SelectOptions::new(ChosenRecords::Where(vec!["score>0".to_owned()]));
    (view.split, view.change) = (Some("train".to_owned()), change(&set));
    assert_eq!(select(&mine, "scored", &view, &()).unwrap().records, 1);
    put(&temp.path().join("new/cat/new.jpg"), &crate::support::jpeg(3, 30, 20));
    for class in ["dog", "emu"] {
        put(&temp.path().join(format!("new/{class}/new.jpg")), &crate::support::jpeg(5, 30, 20));
    }
    let mut appended = with!(AppendOptions::new(temp.path().join("new"), &mine), change = change(&set));
    appended.pack.split = Some("train".to_owned());
    assert_eq!(append(&appended, &()).unwrap().splits[0].records, 3);
    tag(&mine, "grown", None, &change(&set)).unwrap();
    assert_eq!(snapshot(&set), files, "changes of a clone write into the clone only");
    let now = of_set(&mine);
    assert_eq!((now["train"].len(), before["train"].len(), now["scored"].len()), (13, 11, 1));

    // Nor do changes of the dataset reach the clone, as long as its files stay.
    number(&set, &set, "other", &[("cat/0002.jpg", 1)]);
    delete(&set, &of_train(ChosenRecords::Ids(vec![0, 1, 2])), &()).unwrap();
    assert_eq!(of_set(&mine), now);

    // What is compacted needs the dataset no more, once no version is kept that does.
    remove_tag(&mine, "grown", &change(&set)).unwrap();
    let options = with!(CompactOptions::default(), shards = Shards::Count(1), change = change(&set));
    compact(&mine, &options, &()).unwrap();
    gc(&mine, &with!(GcOptions::default(), keep = Some(1), remove = true)).unwrap();
    fs::rename(&set, set.with_file_name("gone")).unwrap();
    let alone = contents(&Dataset::open(&mine).unwrap());
    let keys = |records: &[Contents]| records.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    assert_eq!(alone.keys().collect::<Vec<_>>(), now.keys().collect::<Vec<_>>());
    assert!(alone.iter().zip(&now).all(|((_, one), (_, other))| keys(one) == keys(other)));
    purge(&mine, &PurgeOptions::default(), &()).unwrap();
}

#[test]
fn a_copy_of_a_clone_is_a_copy_of_the_dataset() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path());
    number(&set, &set, "score", &[("cat/0000.jpg", 7)]);
    let at = |name: &str| temp.path().join(name);
    let of_version = format!("{}@1", set.display());
    cloned(&set, &at("mine"));
    cloned(Path::new(&of_version), &at("first"));
    cloned(&at("mine"), &at("mine-too"));
    assert_eq!(manifest(&at("mine-too")).sources(), [set.to_str().unwrap()], "not those of the clone");
    copy(&set, &at("copy"), &CopyOptions::default(), &()).unwrap();
    copy(Path::new(&of_version), &at("copy-first"), &CopyOptions::default(), &()).unwrap();
    let refused = copy(&at("mine"), &at("refused"), &CopyOptions::default(), &()).unwrap_err();
    assert!(chain(&refused).contains("--source"), "{}", chain(&refused));
    let word = with!(CopyOptions::default(), sources = vec![set.to_str().unwrap().to_owned()]);
    for (from, expected) in [("mine", "copy"), ("first", "copy-first"), ("mine-too", "copy")] {
        let to = at(&format!("{from}-copied"));
        let copied = copy(&at(from), &to, &word, &()).unwrap();
        assert_eq!((copied.shards, copied.skipped), (3, 0));
        assert!(snapshot(&to) == snapshot(&at(expected)), "{from}");
    }
    // With its own versions too.
    number(&at("mine"), &set, "mine", &[("cat/0001.jpg", 3)]);
    copy(&at("mine"), &at("all"), &with!(word, all_versions = true), &()).unwrap();
    fs::rename(&set, set.with_file_name("gone")).unwrap();
    for version in 2..=3 {
        let dataset = Dataset::open(format!("{}@{version}", at("all").display())).unwrap();
        assert_eq!(contents(&dataset)["train"].len(), 12);
    }
}

#[test]
fn a_clone_of_a_dataset_in_place_has_its_indexes() {
    let temp = tempfile::tempdir().unwrap();
    let photos = temp.path().join("photos");
    class_folders(&photos, 3);
    let mut options = Options::new(&photos, Path::new(""));
    options.shards = Shards::Count(2);
    index_source(&options, &[], &()).unwrap();
    let (mine, photos) = (temp.path().join("mine"), photos.canonicalize().unwrap());
    let made = cloned(&photos, &mine);
    assert_eq!(made.bytes, manifest(&photos).splits[0].shards.iter().map(|shard| shard.index_bytes).sum::<u64>());
    let dataset = Dataset::open_with(&mine, allowing(&photos)).unwrap();
    assert_eq!(contents(&dataset), contents(&Dataset::open(&photos).unwrap()));
    assert!(verify(&dataset, &verify::Options::default()).findings.is_empty());
    number(&mine, &photos, "mine", &[("cat/0001.jpg", 3)]);
    assert!(manifest(&photos).versions.is_none());
}

#[test]
fn damage_of_the_dataset_is_that_of_the_clone() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    cloned(&set, &mine);
    let open = || Dataset::open_with(&mine, allowing(&set)).unwrap();
    let found = || {
        let findings = verify(&open(), &verify::Options::default()).findings;
        findings.iter().map(|finding| finding.damage.map_or("none", Damage::name)).collect::<Vec<_>>()
    };
    let shard = set.join("train-00000.tfrecord");
    let bytes = fs::read(&shard).unwrap();
    let mut flipped = bytes.clone();
    flipped[100] ^= 1;
    fs::write(&shard, &flipped).unwrap();
    assert_eq!(found(), ["DataCrc"]);
    fs::write(&shard, &bytes[..bytes.len() - 1]).unwrap();
    assert!(found().contains(&"ShardLength"));
    fs::remove_file(&shard).unwrap();
    assert_eq!(found(), ["MissingShard"]);
    let split = open().split("train").unwrap().clone();
    assert!(matches!(split.get(0), Err(shardtool_read::Error::MissingShard { .. })));
    assert!(split.get(split.len() - 1).is_ok(), "one shard is lost");
    fs::write(&shard, &bytes).unwrap();
    fs::remove_file(set.join("_index/train-00000.tfrecord.index")).unwrap();
    assert_eq!(found(), ["MissingIndex"]);
}

#[test]
fn commands_that_need_the_shards_of_a_clone_are_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    cloned(&set, &mine);
    let before = (snapshot(&set), snapshot(&mine));
    let elsewhere = |result: Result<(), Error>| match result {
        Err(error @ Error::Shard(ShardError::VirtualShards { .. })) => chain(&error),
        other => panic!("{other:?}"),
    };
    let repaired = elsewhere(repair(&mine, &RepairOptions::default(), &()).map(drop));
    assert!(repaired.contains("another dataset") && repaired.contains("mine"), "{repaired}");
    let purged = elsewhere(purge(&mine, &with!(PurgeOptions::default(), change = change(&set)), &()).map(drop));
    assert!(purged.contains("shardtool compact"), "{purged}");
    let packed = pack(&Options::new(&mine, temp.path().join("again")), &()).unwrap_err();
    assert!(matches!(packed, Error::Source(SourceError::ClonedDataset { .. })), "{packed}");
    let sealed = reseal(&mine).unwrap_err();
    assert!(chain(&sealed).contains("--source"), "{}", chain(&sealed));
    // Another dataset lies there, or the first one itself.
    for (from, to) in [(&mine, &set), (&set, &set)] {
        let result = clone(from, to, &CloneOptions::default(), &());
        assert!(matches!(result, Err(Error::Destination(DestinationError::OtherDataset { .. }))), "{result:?}");
    }
    assert!(clone(&temp.path().join("none"), &temp.path().join("x"), &CloneOptions::default(), &()).is_err());
    assert!(!temp.path().join("x").exists());
    assert!((snapshot(&set), snapshot(&mine)) == before);
}

#[test]
fn what_lies_in_the_way_of_a_clone_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path());
    for (n, name) in [".pack-train.json", ".packed-train.json", "train-00001.tfrecord"].into_iter().enumerate() {
        let there = temp.path().join(format!("there-{n}"));
        put(&there.join(name), b"x");
        let refused = clone(&set, &there, &CloneOptions::default(), &()).unwrap_err();
        assert!(matches!(&refused, Error::Destination(DestinationError::InTheWay { path }) if path.ends_with(name)));
        assert_eq!(names(&there), [name]);
    }
    // A pack of the same split does not take a clone for its own result.
    let mine = temp.path().join("mine");
    cloned(&set, &mine);
    fs::copy(set.join(".packed-train.json"), mine.join(".packed-train.json")).unwrap();
    let options = with!(Options::new(temp.path().join("train"), &mine), split = Some("train".to_owned()));
    let again = pack(&with!(options, shards = Shards::Count(2)), &()).unwrap_err();
    assert!(matches!(again, Error::Destination(DestinationError::ChangedSince { .. })), "{again}");
}

#[test]
fn a_clone_in_the_place_of_its_dataset_keeps_the_shards() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    cloned(&set, &mine);
    // A clone of the clone in the folder of the shards would name itself.
    fs::rename(set.join("dataset.json"), temp.path().join("dataset.json")).unwrap();
    let own = clone(&mine, &set, &CloneOptions::default(), &()).unwrap_err();
    assert!(matches!(own, Error::Destination(DestinationError::OtherDataset { .. })), "{own}");
    // Its manifest, put there by hand, names the files in this folder.
    fs::copy(mine.join("dataset.json"), set.join("dataset.json")).unwrap();
    let before = snapshot(&set);
    let collected = gc(&set, &with!(GcOptions::default(), remove = true)).unwrap();
    assert!(collected.files.is_empty(), "{:?}", collected.files);
    assert!(snapshot(&set) == before);
    assert_eq!(contents(&Dataset::open(&set).unwrap())["train"].len(), 12);
}

#[test]
fn a_version_of_a_clone_whose_shards_are_gone_is_not_restored() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    cloned(&set, &mine);
    let options = with!(CompactOptions::default(), shards = Shards::Count(1), change = change(&set));
    compact(&mine, &options, &()).unwrap();
    let refused = |word: &ChangeOptions| chain(&rollback(&mine, "1", word).unwrap_err());
    assert!(refused(&ChangeOptions::default()).contains("--source"));
    fs::rename(&set, set.with_file_name("gone")).unwrap();
    let before = snapshot(&mine);
    assert!(refused(&change(&set)).contains("train-00000.tfrecord"));
    assert!(snapshot(&mine) == before);
    fs::rename(set.with_file_name("gone"), &set).unwrap();
    assert!(rollback(&mine, "1", &change(&set)).unwrap().1.is_some());
}

/// The keys of shards of the dataset are not those of the clone's folder: an append that a rollback to them comes before is refused.
#[test]
fn an_append_is_refused_if_a_rollback_brings_shards_of_the_dataset_back_meanwhile() {
    /// Puts a manifest in place while an append runs.
    struct Swap<'a>(&'a Path, &'a [u8]);
    impl shardtool_pack::Progress for Swap<'_> {
        fn stopped(&self) -> bool {
            fs::write(self.0.join("dataset.json"), self.1).unwrap();
            false
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    cloned(&set, &mine);
    delete(
        &mine,
        &with!(
            DeleteOptions::new(ChosenRecords::Ids(vec![0])),
            splits = vec!["train".to_owned()],
            change = change(&set)
        ),
        &(),
    )
    .unwrap();
    compact(&mine, &with!(CompactOptions::default(), change = change(&set)), &()).unwrap();
    let compacted = fs::read(mine.join("dataset.json")).unwrap();
    rollback(&mine, "1", &change(&set)).unwrap();
    let back = fs::read(mine.join("dataset.json")).unwrap();
    fs::write(mine.join("dataset.json"), &compacted).unwrap();
    let photos = temp.path().join("further");
    class_folders(&photos, 6);
    for class in fs::read_dir(&photos).unwrap() {
        for number in 0..4 {
            fs::remove_file(class.as_ref().unwrap().path().join(format!("{number:04}.jpg"))).unwrap();
        }
    }
    let mut options = AppendOptions::new(&photos, &mine);
    (options.pack.split, options.change) = (Some("train".to_owned()), change(&set));
    let refused = append(&options, &Swap(&mine, &back)).unwrap_err();
    let is_rollback = matches!(&refused, Error::Destination(DestinationError::CameFirst { version: 4, command, .. }) if command.starts_with("rollback"));
    assert!(is_rollback, "{}", chain(&refused));
    assert_eq!(fs::read(mine.join("dataset.json")).unwrap(), back);
    append(&options, &()).unwrap();
}

#[test]
fn what_is_no_file_is_not_opened() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    cloned(&set, &mine);
    for (file, name) in
        [("train-00000.tfrecord", "MissingShard"), ("_index/train-00000.tfrecord.index", "MissingIndex")]
    {
        let (path, kept) = (set.join(file), temp.path().join("kept"));
        fs::rename(&path, &kept).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let dataset = Dataset::open_with(&mine, allowing(&set)).unwrap();
        for findings in [
            verify(&dataset, &verify::Options::default()).findings,
            verify::quick(&dataset, None).unwrap().report.findings,
        ] {
            let found: Vec<_> = findings.iter().map(|finding| finding.damage.map_or("none", Damage::name)).collect();
            assert_eq!(found, [name], "{file}");
        }
        let copied = copy(
            &mine,
            &temp.path().join("copied"),
            &with!(CopyOptions::default(), sources = vec![set.to_str().unwrap().to_owned()]),
            &(),
        );
        assert!(copied.is_err() && !temp.path().join("copied").exists(), "nothing was copied");
        fs::remove_file(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
}

#[test]
fn a_folder_that_begins_as_a_url_is_not_read_as_a_path() {
    let temp = tempfile::tempdir().unwrap();
    let (set, mine) = (packed(temp.path()), temp.path().join("mine"));
    cloned(&set, &mine);
    let mut of_mine = manifest(&mine);
    for shard in of_mine.splits.iter_mut().flat_map(|split| &mut split.shards) {
        shard.foreign.source = Some(format!("file://{}", set.display()));
    }
    fs::write(mine.join("dataset.json"), of_mine.to_json()).unwrap();
    let all = with!(CopyOptions::default(), sources = vec!["/".to_owned()]);
    let refused = copy(&mine, &temp.path().join("copied"), &all, &()).unwrap_err();
    assert!(matches!(&refused, Error::Read(shardtool_read::Error::ForeignSource { allow: None, .. })), "{refused}");
}
