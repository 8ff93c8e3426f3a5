//! `SHARDTOOL_SIMD` chooses the vector instructions; the bytes stay.

use crate::made;
use shardtool_host::simd::{SIMD_VARIABLE, Simd};
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, simd: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
    command.args(arguments).current_dir(folder).env(SIMD_VARIABLE, simd).output().unwrap()
}

#[test]
fn images_resized_with_any_instructions_are_equal() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    made::photos(folder, 2, 3, (211, 157));
    let shards: Vec<Vec<u8>> = Simd::ALL
        .iter()
        .map(|simd| {
            let name = simd.name();
            let output = run(folder, name, &["pack", "photos", name, "--resize-shorter", "64"]);
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            std::fs::read(folder.join(name).join("train-00000.tfrecord")).unwrap()
        })
        .collect();
    for (simd, shard) in Simd::ALL.iter().zip(&shards) {
        assert!(shard == &shards[0], "{} makes other bytes than {}", simd.name(), Simd::ALL[0].name());
    }
}

#[test]
fn unknown_instructions_are_refused_with_the_known_ones() {
    let temporary = tempfile::tempdir().unwrap();
    let output = run(temporary.path(), "sse9", &["info", "dataset"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("SHARDTOOL_SIMD is \"sse9\"") && text.contains("portable"), "{text}");
}
