//! Manifests, shards and indexes that are no files are errors by name; opening them never waits.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use shardtool_format::{Chain, names};
use shardtool_read::verify::{self, verify};
use shardtool_read::{Access, Dataset, Error, Options};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance/golden/tiny");
const SHARD: &str = "train-00000.tfrecord";

/// A copy of a small dataset, and the paths of its manifest, shard and index.
fn dataset() -> (tempfile::TempDir, [PathBuf; 3]) {
    let temp = tempfile::tempdir().unwrap();
    let shard = temp.path().join(SHARD);
    let paths = [temp.path().join(names::MANIFEST), shard.clone(), names::index_path(&shard)];
    std::fs::create_dir(temp.path().join(names::INDEX_FOLDER)).unwrap();
    for path in &paths {
        std::fs::copy(Path::new(GOLDEN).join(path.strip_prefix(temp.path()).unwrap()), path).unwrap();
    }
    (temp, paths)
}

/// Reads the first record of the dataset or file.
fn read(path: &Path, access: Access) -> Result<(), Error> {
    let dataset = Dataset::open_with(path, Options::default().with_access(access))?;
    dataset.splits()[0].get(0).map(drop)
}

#[test]
fn pipes_in_place_of_files_are_errors_by_name() {
    for replaced in 0..3 {
        let (folder, paths) = dataset();
        std::fs::remove_file(&paths[replaced]).unwrap();
        mknodat(CWD, &paths[replaced], FileType::Fifo, Mode::RWXU, 0).unwrap();
        for access in [Access::Mmap, Access::Pread] {
            let error = read(folder.path(), access).unwrap_err();
            assert_eq!(error.path(), Some(&*paths[replaced]));
            assert!(Chain(&error).to_string().contains("a FIFO"), "{}", Chain(&error));
            assert!(!error.is_damage());
        }
        if replaced > 0 {
            let report = verify(&Dataset::open(folder.path()).unwrap(), &verify::Options::default());
            let found: Vec<_> = report.findings.iter().map(|finding| (finding.name(), &finding.file)).collect();
            assert_eq!(found, [("Io", &paths[replaced])]);
        }
    }
    let (_folder, paths) = dataset();
    std::fs::remove_file(&paths[1]).unwrap();
    mknodat(CWD, &paths[1], FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert!(Chain(&read(&paths[1], Access::Auto).unwrap_err()).to_string().contains("a FIFO"));
}

#[test]
fn what_cannot_be_examined_is_not_absent() {
    let (folder, paths) = dataset();
    let glob = folder.path().join("*.tfrecord");
    read(&glob, Access::Auto).unwrap();
    symlink("/nowhere/at/all", folder.path().join("train-00001.tfrecord")).unwrap();
    let error = read(&glob, Access::Auto).unwrap_err();
    assert_eq!(error.path(), Some(&*folder.path().join("train-00001.tfrecord")));
    assert!(Chain(&error).to_string().contains("without a target"), "{}", Chain(&error));
    // A folder whose manifest is such a link is a dataset that cannot be read, not "not a dataset".
    std::fs::remove_file(&paths[0]).unwrap();
    assert!(matches!(read(folder.path(), Access::Auto), Err(Error::NotADataset { .. })));
    symlink("/nowhere/at/all", &paths[0]).unwrap();
    assert!(matches!(read(folder.path(), Access::Auto), Err(Error::Io { path, .. }) if path == paths[0]));
    let looped = folder.path().join("loop");
    symlink("loop", &looped).unwrap();
    assert!(matches!(read(&looped, Access::Auto), Err(Error::Io { path, .. }) if path == looped));
}
