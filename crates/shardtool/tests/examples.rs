//! Runs the programs in `examples/` on a small dataset.

use shardtool::image::{PixelsRef, encode_jpeg};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs an example and returns what it printed.
fn run(name: &str, arguments: &[&Path]) -> String {
    let test = std::env::current_exe().unwrap(); // target/PROFILE/deps/examples-HASH
    let example = test.ancestors().nth(2).unwrap().join("examples").join(name);
    let output = Command::new(&example).args(arguments).output().unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo test -p shardtool` builds the examples", example.display())
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Makes a folder with 50 images of each of 2 classes.
fn photos(folder: &Path) -> PathBuf {
    let photos = folder.join("photos");
    for (class, value) in [("cat", 90), ("dog", 180)] {
        std::fs::create_dir_all(photos.join(class)).unwrap();
        let data = vec![value; 320 * 240 * 3];
        let jpeg = encode_jpeg(PixelsRef::new(320, 240, &data).unwrap(), 90).unwrap();
        for i in 0..50 {
            std::fs::write(photos.join(class).join(format!("{i:02}.jpg")), &jpeg).unwrap();
        }
    }
    photos
}

#[test]
fn pack_open_and_train_loop_run() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("dataset");

    let packed = run("pack", &[&photos(folder.path()), &dataset]);
    assert_eq!(packed, "100 records, 2 classes, 0 inputs rejected\n100 records verified, 0 findings\n");

    let opened = run("open", &[&dataset]);
    assert!(opened.starts_with("train: 100 records in 1 shards\n100 labels"), "{opened}");

    let trained = run("train_loop", &[&dataset]);
    assert!(trained.starts_with("epoch 0: 96 images in 3 steps\n"), "{trained}");
    assert!(trained.ends_with("resumed: 2 steps of epoch 1 left\n"), "{trained}");
}

#[test]
fn examples_are_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["open.rs", "train_loop.rs", "pack.rs"] {
        let lines = std::fs::read_to_string(folder.join(name)).unwrap().lines().count();
        assert!(lines < 40, "{name} has {lines} lines");
    }
}
