//! Loads and verifies images with floating-point samples.

#[path = "../../../decode/tests/made/float_tiff.rs"]
mod float_tiff;

use float_tiff::float_tiff;
use std::path::Path;
use std::process::Command;

/// Runs `shardtool` in `folder`, and returns its exit status and everything that it printed.
fn shardtool(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_shardtool")).args(arguments).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

/// Packs three images of 8x1 floating-point samples.
fn packed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("depth")).unwrap();
    for i in 0..3u8 {
        let samples: Vec<f32> = (0..8u8).map(|x| f32::from(i + x) / 8.0).collect();
        std::fs::write(folder.path().join(format!("depth/{i}.tif")), float_tiff(&samples)).unwrap();
    }
    let (status, text) = shardtool(folder.path(), &["pack", "depth", "dataset"]);
    assert_eq!(status, Some(0), "{text}");
    folder
}

#[test]
fn bench_decodes_floating_point_images_only_with_a_range() {
    let folder = packed();
    let bench = |options: &[&str]| {
        let bench = ["bench", "dataset", "--size", "4", "--batch", "3", "--epochs", "1", "--remainder", "mask"];
        shardtool(folder.path(), &[&bench, options].concat())
    };
    let (status, text) = bench(&["--float-range", "-1,1.5"]);
    assert!(status == Some(0) && !text.contains("bad sample"), "{status:?}: {text}");
    let (status, text) = bench(&[]);
    assert!(status == Some(1) && text.contains("3 bad samples"), "{status:?}: {text}");
}

#[test]
fn plan_accepts_a_range_and_rejects_an_empty_one() {
    let folder = packed();
    let plan = |range: &str| shardtool(folder.path(), &["plan", "dataset", "--batch", "3", "--float-range", range]);
    let (status, text) = plan("0,1");
    assert_eq!(status, Some(0), "{text}");
    for wrong in ["1,0", "1,1", "1", "0,inf", "0;1"] {
        let (status, text) = plan(wrong);
        assert!(status == Some(2) && text.contains("expected LOW,HIGH"), "{wrong}: {status:?}: {text}");
    }
}

#[test]
fn verify_decodes_floating_point_images() {
    let folder = packed();
    let (status, text) = shardtool(folder.path(), &["verify", "dataset", "--decode"]);
    assert!(status == Some(0) && text.contains("3 good records"), "{status:?}: {text}");
}
