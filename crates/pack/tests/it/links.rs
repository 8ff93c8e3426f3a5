//! A hostile dataset with links in the place of every file and folder that a command creates, opens or removes: no file
//! outside the dataset changes, and none disappears.

use crate::support::{chain, check, class_folders, put, snapshot};
use shardtool_pack::{
    AdoptOptions, DestinationError, Error, ExportKind, ExportOptions, ExtractOptions, Image, Options, RepairOptions,
    ReshardOptions, Sample, Shards, Writer, WriterOptions, adopt, export, extract, pack, repair, reseal, reshard,
};
use shardtool_read::Dataset;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Names in a dataset that commands create or open, also those of earlier versions.
const NAMES: [&str; 22] = [
    ".dataset.lock",
    ".manifest.lock",
    ".pack-train.lock",
    ".pack-new.lock",
    ".pack-new.json",
    ".packed-new.json",
    ".dataset.json.tmp",
    ".dataset.json.0123456789abcdef.tmp",
    ".train-00001.salvaged.tfrecord.tmp",
    ".new-00000.tfrecord.tmp",
    ".new-00000.tfrecord.0123456789abcdef.tmp",
    "_index/.new-00000.tfrecord.index.tmp",
    "_index/.train-00001.tfrecord.index.0123456789abcdef.tmp",
    "_index/.new-00000.rejected.jsonl",
    "_index/new-00000.tfrecord.index",
    "_index/train-00001.tfrecord.index",
    "rejected-new.jsonl",
    "dataset.json",
    "train-00001.salvaged.tfrecord",
    ".write-new",
    ".written-new",
    ".unfinished-0123456789abcdef",
];

/// Every command that writes into an existing dataset. Each may refuse.
fn commands(temp: &Path, set: &Path) -> Vec<Result<(), Error>> {
    let files = [set.join("train-00000.tfrecord")];
    let split = with!(AdoptOptions::default(), split = Some("adopted".to_owned()));
    let new = with!(Options::new(temp.join("photos"), set), split = Some("new".to_owned()));
    let written = || {
        let options = with!(WriterOptions::new(set, "new"), classes = vec![]);
        let writer = Writer::open(&options)?;
        let jpeg = crate::support::jpeg(1, 20, 20);
        writer.write(&Sample { key: "a", image: Some(Image::File(&jpeg)), label: None, values: vec![] })?;
        writer.finish().map(drop)
    };
    vec![
        adopt(&files, &split, &()).map(drop),
        repair(set, &RepairOptions::default(), &()).map(drop),
        reseal(set).map(drop),
        pack(&new, &()).map(drop),
        pack(&with!(new.clone(), force = true), &()).map(drop),
        written(),
    ]
}

#[test]
fn commands_follow_no_link_in_a_dataset() {
    let temp = tempfile::tempdir().unwrap();
    let (set, home) = (temp.path().join("set"), temp.path().join("home"));
    class_folders(&temp.path().join("photos"), 2);
    pack(&with!(Options::new(temp.path().join("photos"), &set), shards = Shards::Count(2)), &()).unwrap();
    let packed = snapshot(&set);
    put(&home.join("file"), b"mine");
    put(&home.join("folder/file"), b"mine");
    put(&home.join("folder/plan.json"), b"{}");
    let before = snapshot(&home);
    for name in NAMES.into_iter().chain(["_index"]) {
        let is_folder = [".write-new", ".written-new", "_index"].contains(&name) || name.starts_with(".unfinished");
        for target in if is_folder { ["file", "folder"] } else { ["file", "absent"] } {
            fs::remove_dir_all(&set).unwrap();
            packed.iter().for_each(|(path, bytes)| put(&set.join(path), bytes));
            fs::write(set.join("train-00001.tfrecord"), b"damaged").unwrap();
            let link = set.join(name);
            match fs::symlink_metadata(&link) {
                Ok(meta) if meta.is_dir() => fs::remove_dir_all(&link).unwrap(),
                Ok(_) => fs::remove_file(&link).unwrap(),
                Err(_) => {}
            }
            symlink(home.join(target), &link).unwrap();
            for (number, done) in commands(temp.path(), &set).into_iter().enumerate() {
                let error = done.err().map(|e| chain(&e));
                assert!(snapshot(&home) == before, "{name} → {target}, command {number}: {error:?}");
                assert!(!home.join("absent").exists(), "{name} → {target}, command {number}: {error:?}");
            }
        }
    }
}

#[test]
fn refusals_name_the_link() {
    let temp = tempfile::tempdir().unwrap();
    let set = temp.path().join("set");
    class_folders(&temp.path().join("photos"), 2);
    pack(&Options::new(temp.path().join("photos"), &set), &()).unwrap();
    put(&temp.path().join("file"), b"mine");
    for name in [".dataset.lock", "_index"] {
        fs::remove_dir_all(set.join(name)).ok();
        symlink(temp.path().join("file"), set.join(name)).unwrap();
        let error = repair(&set, &RepairOptions::default(), &()).unwrap_err();
        assert!(
            matches!(&error, Error::Destination(DestinationError::Link { path }) if *path == set.join(name)),
            "{}",
            chain(&error)
        );
        fs::remove_file(set.join(name)).unwrap();
    }
    repair(&set, &RepairOptions::default(), &()).unwrap();
    check(&set, "train");
}

#[test]
fn forced_exports_follow_no_link_in_the_destination() {
    let temp = tempfile::tempdir().unwrap();
    let (set, out, home) = (temp.path().join("set"), temp.path().join("out"), temp.path().join("home"));
    class_folders(&temp.path().join("photos"), 2);
    pack(&Options::new(temp.path().join("photos"), &set), &()).unwrap();
    let dataset = Dataset::open(&set).unwrap();
    let options = |kind| with!(ExportOptions::new(kind), force = true);
    put(&home.join("file"), b"mine");
    put(&home.join("cat/0000.jpg"), b"mine");
    let before = snapshot(&home);
    fs::create_dir(&out).unwrap();
    symlink(home.join("file"), out.join("train-00000.tar")).unwrap();
    export(dataset.splits(), &out, &options(ExportKind::Webdataset), &()).unwrap();
    assert!(fs::symlink_metadata(out.join("train-00000.tar")).unwrap().is_file(), "the link itself is replaced");
    symlink(home.join("cat"), out.join("cat")).unwrap();
    let error = export(dataset.splits(), &out, &options(ExportKind::Folder), &()).unwrap_err();
    assert!(matches!(&error, Error::Destination(DestinationError::Link { path }) if *path == out.join("cat")));
    assert!(!out.join("dog").exists(), "refused before the first file is moved");
    assert!(snapshot(&home) == before);
}

#[test]
fn destination_may_be_a_link_itself() {
    let temp = tempfile::tempdir().unwrap();
    let (real, link) = (temp.path().join("real"), temp.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    class_folders(&temp.path().join("photos"), 2);
    pack(&Options::new(temp.path().join("photos"), &link), &()).unwrap();
    check(&real, "train");
    for name in ["reshard", "extract"] {
        let (real, link) = (temp.path().join(name), temp.path().join(format!("{name}-link")));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        let dataset = Dataset::open(temp.path().join("real")).unwrap();
        match name {
            "reshard" => drop(reshard(dataset.splits(), &link, &ReshardOptions::default(), &()).unwrap()),
            _ => drop(extract(&dataset.splits()[0], &link, &ExtractOptions::default(), &()).unwrap()),
        }
        assert!(snapshot(&real).len() >= 3);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
