//! Commands that fill a folder: a missing one, an empty one, a relative one, one on another file system.

use crate::support::{class_folders, names, put, snapshot};
use shardtool_pack::{
    DestinationError, Error, ExportKind, ExportOptions, ExtractOptions, Options, ReshardOptions, export, extract, pack,
    reshard,
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
        let full = fill(dataset.splits(), &empty).unwrap_err();
        assert!(matches!(full, Error::Destination(DestinationError::NotEmpty { .. })), "{name}: {full}");
        assert!(snapshot(&empty) == expected, "{name}");
    }
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
