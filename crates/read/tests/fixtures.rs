//! Golden datasets read without a finding, hostile ones give the error they are named for, in every way of reading.

use shardtool_read::verify::{self, Damage, Report};
use shardtool_read::{Access, Dataset, Options};
use std::path::{Path, PathBuf};

fn folders(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(kind);
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// The folder's dataset, or its bare files where it has no manifest.
fn verified(folder: &Path, access: Access) -> Report {
    let bare = !folder.join("dataset.json").exists();
    let path = if bare { folder.join("*.tfrecord") } else { folder.to_owned() };
    match Dataset::open_with(&path, Options { access, ..Options::default() }) {
        Ok(dataset) => verify::verify(&dataset, &verify::Options { access, decode: true, ..Default::default() }),
        Err(error) => Report { damages: vec![Damage::new(path, error)], ..Report::default() },
    }
}

#[test]
fn golden_datasets_are_good() {
    for folder in folders("golden") {
        for access in [Access::Mmap, Access::Pread] {
            let report = verified(&folder, access);
            assert!(report.damages.is_empty(), "{}: {:?}", folder.display(), report.damages);
            assert!(report.good_records > 0, "{}", folder.display());
        }
    }
}

#[test]
fn hostile_datasets_give_the_error_they_are_named_for() {
    for folder in folders("hostile") {
        let name = folder.file_name().unwrap().to_str().unwrap().split('-').next().unwrap().to_owned();
        for access in [Access::Mmap, Access::Pread] {
            let report = verified(&folder, access);
            let found: Vec<_> = report.damages.iter().map(|d| (d.name, &d.message)).collect();
            assert!(found.iter().any(|(n, _)| *n == name), "{}: {found:?}", folder.display());
        }
    }
}

/// Reading every record of a hostile dataset gives errors, and nothing worse.
#[test]
fn reading_hostile_datasets_never_panics() {
    for folder in folders("hostile") {
        for access in [Access::Mmap, Access::Pread] {
            let Ok(dataset) = Dataset::open_with(&folder, Options { access, ..Options::default() }) else { continue };
            for split in dataset.splits() {
                for id in 0..split.len().min(100) {
                    split.will_need(id);
                    if let Ok(record) = split.get(id) {
                        let image = record.image().map(|i| i.map(<[u8]>::len));
                        let _ = (image, record.example().is_ok(), record.key().is_ok());
                    }
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_every_file_is_found() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden/tiny");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("_index")).unwrap();
    let mut files = vec![];
    for file in ["dataset.json", "train-00000.tfrecord", "_index/train-00000.tfrecord.index"] {
        let bytes = std::fs::read(golden.join(file)).unwrap();
        std::fs::write(folder.path().join(file), &bytes).unwrap();
        files.push((folder.path().join(file), bytes));
    }
    assert!(verified(folder.path(), Access::Mmap).damages.is_empty());
    for (path, good) in &files {
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(path, &bad).unwrap();
            let report = verified(folder.path(), Access::Mmap);
            assert!(!report.damages.is_empty(), "{}: bit {bit}", path.display());
        }
        std::fs::write(path, good).unwrap();
    }
    assert!(verified(folder.path(), Access::Mmap).damages.is_empty());
}
