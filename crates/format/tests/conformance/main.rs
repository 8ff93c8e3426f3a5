//! The datasets under `fixtures/conformance/` and what a reader must find in them come from these builders. They are
//! written from `format-spec.md` apart from the crates, and from values: nothing that they expect was read from a file.
//! Existing fixtures never change; new ones are added by running this test with `SHARDTOOL_BUILD_FIXTURES=1`, which writes
//! those that are absent.

mod bytes;
mod column;
mod dataset;
mod expected;
mod golden;
mod hostile;
mod sample;
mod variants;

use dataset::Files;
use std::path::{Path, PathBuf};

const KIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance");

/// All files, by path in the kit.
fn built() -> Files {
    let golden = golden::all().into_iter().map(|case| ("golden", case));
    let (hostile, variants) = variants::divided(hostile::all());
    let hostile = hostile.into_iter().map(|case| ("hostile", case));
    let mut built = Files::from([("variants.jsonl".to_owned(), variants.into_bytes())]);
    for (part, (name, files, expected)) in golden.chain(hostile) {
        let folder = format!("{part}/{name}");
        assert!(!built.contains_key(&format!("{folder}/expected.json")), "{folder} occurs twice");
        built.insert(format!("{folder}/expected.json"), expected.text().into_bytes());
        built.extend(files.into_iter().map(|(path, bytes)| (format!("{folder}/{path}"), bytes)));
    }
    built
}

fn files_under(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in std::fs::read_dir(folder).expect("a folder of fixtures") {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_str().expect("plain names"));
        if entry.path().is_dir() {
            files_under(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, std::fs::read(entry.path()).expect("a fixture"));
        }
    }
}

#[test]
fn builders_reproduce_the_committed_files() {
    let (kit, built) = (PathBuf::from(KIT), built());
    if std::env::var_os("SHARDTOOL_BUILD_FIXTURES").is_some() {
        for (path, bytes) in built.iter().filter(|(path, _)| !kit.join(path).exists()) {
            let path = kit.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder for the fixture");
            std::fs::write(path, bytes).expect("the fixture is written");
        }
    }
    let mut committed =
        Files::from([("variants.jsonl".to_owned(), std::fs::read(kit.join("variants.jsonl")).expect("a file"))]);
    for part in ["golden", "hostile"] {
        files_under(&kit.join(part), &format!("{part}/"), &mut committed);
    }
    assert_eq!(built.keys().collect::<Vec<_>>(), committed.keys().collect::<Vec<_>>());
    for (path, bytes) in &built {
        assert!(bytes == &committed[path], "{path} differs from its builder's output");
    }
    let total: usize = committed.values().map(Vec::len).sum();
    assert!(total < 1_500_000, "fixtures stay small: {total} bytes");
}
