//! Commands that fill a folder: a missing one, an empty one, a relative one, one on another file system.

use crate::support::{RECORD, chain, class_folders, jpeg, names, put, snapshot};
use shardtool_pack::{
    DestinationError, Error, ExportKind, ExportOptions, ExtractOptions, Options, ReshardOptions, Shards, export,
    extract, pack, reshard,
};
use shardtool_read::{Dataset, Split};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

type Fill = fn(&[Split], &Path) -> Result<(), Error>;

const COMMANDS: [(&str, Fill); 3] = [
    ("reshard", |splits, out| reshard(splits, out, &ReshardOptions::default(), &()).map(drop)),
    ("export", |splits, out| export(splits, out, &ExportOptions::new(ExportKind::Folder), &()).map(drop)),
    ("extract", |splits, out| extract(&splits[0], out, &ExtractOptions::default(), &()).map(drop)),
];

fn packed() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    class_folders(&temp.path().join("photos"), 3);
    let set = temp.path().join("set");
    pack(&Options::new(temp.path().join("photos"), &set), &()).unwrap();
    (temp, set)
}

#[test]
fn fills_missing_and_empty_folders_and_keeps_their_identity() {
    let (temp, set) = packed();
    let dataset = Dataset::open(&set).unwrap();
    for (name, fill) in COMMANDS {
        let missing = temp.path().join(format!("{name}/deep/missing"));
        fill(dataset.splits(), &missing).unwrap();
        let expected = snapshot(&missing);
        assert!(!expected.is_empty());
        let empty = temp.path().join(format!("{name}-empty"));
        fs::create_dir(&empty).unwrap();
        let inode = fs::metadata(&empty).unwrap().ino();
        // A file system's own folder is not in the way.
        fs::create_dir(empty.join("lost+found")).unwrap();
        fill(dataset.splits(), &empty).unwrap();
        assert_eq!(fs::metadata(&empty).unwrap().ino(), inode, "{name} fills the folder, it does not replace it");
        assert!(snapshot(&empty) == expected, "{name}");
        fill(dataset.splits(), &empty).unwrap();
        assert!(snapshot(&empty) == expected, "{name} recognises its result");
    }
}

/// A result is complete only if nothing was added, removed or replaced, and the same command wrote it.
#[test]
fn recognises_only_the_unchanged_result_of_the_same_command() {
    let (temp, set) = packed();
    let dataset = Dataset::open(&set).unwrap();
    for (name, fill) in COMMANDS {
        let out = temp.path().join(name);
        fill(dataset.splits(), &out).unwrap();
        let expected = snapshot(&out);
        let refused = |why: &str| {
            let before = snapshot(&out);
            let error = fill(dataset.splits(), &out).unwrap_err();
            assert!(matches!(error, Error::Destination(DestinationError::NotEmpty { .. })), "{name}, {why}: {error}");
            assert!(snapshot(&out) == before, "{name}, {why}");
        };
        let (path, bytes) = expected.iter().find(|(path, _)| **path != Path::new(RECORD)).unwrap();
        put(&out.join("mine.txt"), b"");
        refused("a file was added");
        fs::remove_file(out.join("mine.txt")).unwrap();
        fs::remove_file(out.join(path)).unwrap();
        refused("a file was removed");
        put(&out.join(path), &bytes[..bytes.len() - 1]);
        refused("a file was cut");
        fs::remove_file(out.join(path)).unwrap();
        put(&temp.path().join("elsewhere"), bytes);
        std::os::unix::fs::symlink(temp.path().join("elsewhere"), out.join(path)).unwrap();
        refused("a file was replaced by a link");
        fs::remove_file(out.join(path)).unwrap();
        put(&out.join(path), bytes);
        fill(dataset.splits(), &out).unwrap();
        for (_, other) in COMMANDS.iter().filter(|(other, _)| *other != name) {
            let error = other(dataset.splits(), &out).unwrap_err();
            assert!(matches!(error, Error::Destination(DestinationError::NotEmpty { .. })), "{name}: {error}");
        }
        fs::remove_file(out.join(RECORD)).unwrap();
        refused("the record was removed");
    }
}

#[test]
fn refuses_the_result_of_other_options_or_sources_by_name() {
    let (temp, set) = packed();
    let dataset = Dataset::open(&set).unwrap();
    let refused = |result: Result<(), Error>, expected: &str| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Destination(DestinationError::FilledOtherwise { .. })), "{error}");
        assert!(chain(&error).contains(expected), "{expected} in {error}");
    };
    let resharded = temp.path().join("resharded");
    let reshard_with = |options: &ReshardOptions| reshard(dataset.splits(), &resharded, options, &()).map(drop);
    reshard_with(&ReshardOptions::default()).unwrap();
    refused(reshard_with(&with!(ReshardOptions::default(), seed = Some(7))), "different seed: 0 before, 7 now");
    refused(reshard_with(&with!(ReshardOptions::default(), shards = Shards::Count(3))), "different shards");
    // The number of threads decides no byte.
    reshard_with(&with!(ReshardOptions::default(), jobs = 1.try_into().unwrap())).unwrap();
    let exported = temp.path().join("exported");
    let export_as = |kind| export(dataset.splits(), &exported, &ExportOptions::new(kind), &()).map(drop);
    export_as(ExportKind::Webdataset).unwrap();
    refused(export_as(ExportKind::Folder), "different kind: \"webdataset\" before, \"folder\" now");
    class_folders(&temp.path().join("more"), 4);
    let other = temp.path().join("other");
    pack(&Options::new(temp.path().join("more"), &other), &()).unwrap();
    let other = Dataset::open(&other).unwrap();
    for (name, fill) in COMMANDS {
        let out = temp.path().join(name);
        fill(dataset.splits(), &out).unwrap();
        refused(fill(other.splits(), &out), "different sources: [\"9 records");
    }
}

/// A key cannot take the place of the record.
#[test]
fn refuses_an_image_with_the_name_of_the_record() {
    let temp = tempfile::tempdir().unwrap();
    put(&temp.path().join("a.jpg"), &jpeg(1, 20, 20));
    put(&temp.path().join("list.csv"), format!("path,key\na.jpg,a.jpg\na.jpg,{RECORD}\n").as_bytes());
    let (set, out) = (temp.path().join("set"), temp.path().join("out"));
    pack(&Options::new(temp.path().join("list.csv"), &set), &()).unwrap();
    let split = &Dataset::open(&set).unwrap().splits()[0].clone();
    for already_complete in [false, true] {
        let extracted = extract(split, &out, &ExtractOptions::default(), &()).unwrap();
        assert_eq!((extracted.written, extracted.already_complete), (1, already_complete));
        let [refused] = &extracted.refused[..] else { panic!("{:?}", extracted.refused) };
        assert!(chain(&refused.reason).contains("the record of the command"), "{:?}", refused.reason);
    }
    assert_eq!(names(&out), [RECORD, "a.jpg"]);
}

/// With `force`, files are no longer those of one command.
#[test]
fn forced_export_is_recorded_as_no_complete_result() {
    let (temp, set) = packed();
    let (dataset, out) = (Dataset::open(&set).unwrap(), temp.path().join("out"));
    let options = ExportOptions::new(ExportKind::Webdataset);
    let first = export(dataset.splits(), &out, &options, &()).unwrap();
    let again = export(dataset.splits(), &out, &options, &()).unwrap();
    assert!(!first.already_complete && again.already_complete);
    assert_eq!((first.records, first.files, first.bytes), (again.records, again.files, again.bytes));
    let forced = with!(options.clone(), force = true);
    assert!(!export(dataset.splits(), &out, &forced, &()).unwrap().already_complete);
    let error = export(dataset.splits(), &out, &options, &()).unwrap_err();
    assert!(matches!(error, Error::Destination(DestinationError::NotEmpty { .. })), "{error}");
}

#[test]
fn fills_a_folder_on_another_file_system() {
    let (temp, set) = packed();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    if fs::metadata(other.path()).unwrap().dev() == fs::metadata(temp.path()).unwrap().dev() {
        return;
    }
    let dataset = Dataset::open(&set).unwrap();
    for (name, fill) in COMMANDS {
        let (real, link) = (other.path().join(name), temp.path().join(format!("{name}-link")));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        fill(dataset.splits(), &link).unwrap();
        let here = temp.path().join(format!("{name}-here"));
        fill(dataset.splits(), &here).unwrap();
        assert!(snapshot(&real) == snapshot(&here), "{name}");
    }
}

#[test]
fn neighbours_of_the_destination_are_not_touched() {
    let (temp, set) = packed();
    let dataset = Dataset::open(&set).unwrap();
    put(&temp.path().join(".out.export/mine"), b"mine");
    put(&temp.path().join(".out.export.lock"), b"mine");
    for (name, fill) in COMMANDS {
        let out = temp.path().join("out");
        fill(dataset.splits(), &out).unwrap();
        fs::remove_dir_all(out).unwrap();
        assert_eq!(fs::read(temp.path().join(".out.export/mine")).unwrap(), b"mine", "{name}");
        assert_eq!(fs::read(temp.path().join(".out.export.lock")).unwrap(), b"mine", "{name}");
    }
    let left = names(temp.path());
    assert!(left.iter().all(|name| ["photos/", "set/", ".out.export"].iter().any(|p| name.starts_with(p))), "{left:?}");
}
