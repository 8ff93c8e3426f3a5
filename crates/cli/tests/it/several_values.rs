//! `bench` and `plan` of clips and arrays.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs `shardtool` in `folder`, and returns its exit status and everything that it printed.
fn shardtool(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_shardtool")).args(arguments).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code(), text)
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (status, text) = shardtool(folder, arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// A bitmap of one colour, whose rows have a multiple of 4 bytes.
fn bmp(width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    let pixels = colour.repeat((width * height) as usize);
    let words = [54 + pixels.len() as u32, 0, 54, 40, width, height, 24 << 16 | 1, 0, pixels.len() as u32, 0, 0, 0, 0];
    [b"BM".to_vec(), words.iter().flat_map(|word| word.to_le_bytes()).collect(), pixels].concat()
}

/// Packs five videos of twelve frames.
fn clips(folder: &Path) {
    for (video, number) in (0..5u8).flat_map(|video| (0..12u8).map(move |number| (video, number))) {
        let frames = folder.join(format!("videos/{video}"));
        std::fs::create_dir_all(&frames).unwrap();
        std::fs::write(frames.join(format!("{number}.bmp")), bmp(40, 30, [video, number, 7])).unwrap();
    }
    json(folder, &["pack", "videos", "clips", "--from", "clips", "--json"]);
}

/// Packs four volumes of 10 x 12 x 14 elements from files as `numpy.save` writes them.
fn volumes(folder: &Path) {
    let mut list = String::new();
    for number in 0..4u8 {
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (10, 12, 14), }";
        let header = format!("{header:<117}\n");
        let file = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &[number; 1680]];
        std::fs::write(folder.join(format!("{number}.npy")), file.concat()).unwrap();
        list += &format!("{{\"key\": \"{number}\", \"ct\": \"{number}.npy\", \"seg\": \"{number}.npy\"}}\n");
    }
    std::fs::write(folder.join("list.jsonl"), list).unwrap();
    json(folder, &["pack", "list.jsonl", "volumes", "--array", "ct:4x4x4", "--array", "seg", "--json"]);
}

#[test]
fn bench_and_plan_load_clips() {
    let folder = tempfile::tempdir().unwrap();
    clips(folder.path());
    let options = ["--clip", "frames=4,stride=2", "--size", "16", "--batch", "2", "--remainder", "mask"];
    let bench = json(folder.path(), &[&["bench", "clips", "--epochs", "2", "--json"], &options[..]].concat());
    assert_eq!((&bench["samples"], &bench["stats"]["bad_samples"]), (&Value::from(10), &Value::from(0)), "{bench}");
    let decoded = bench["stats"]["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == "decode");
    // 4 of the 12 frames of each. The statistics begin after the first batches, and include what is built ahead.
    let decoded = decoded.unwrap()["count"].as_u64().unwrap();
    assert!((20..=60).contains(&decoded), "{bench}");
    json(folder.path(), &[&["plan", "clips", "--json"], &options[..]].concat());
    let (status, text) = shardtool(folder.path(), &["bench", "clips", "--clip", "frames=4", "--work", "read"]);
    assert!(status == Some(2) && text.contains("leave out --clip"), "{status:?}: {text}");
    let (status, text) = shardtool(folder.path(), &["bench", "clips", "--clip", "stride=4"]);
    assert!(status == Some(2) && text.contains("expected frames=N"), "{status:?}: {text}");
}

#[test]
fn bench_and_plan_load_arrays() {
    let folder = tempfile::tempdir().unwrap();
    volumes(folder.path());
    let options = ["--array", "ct,seg:5x*x6", "--batch", "2"];
    let bench = json(folder.path(), &[&["bench", "volumes", "--epochs", "3", "--json"], &options[..]].concat());
    assert_eq!((&bench["samples"], &bench["stats"]["bad_samples"]), (&Value::from(12), &Value::from(0)), "{bench}");
    json(folder.path(), &[&["plan", "volumes", "--json"], &options[..]].concat());
    let (status, text) = shardtool(folder.path(), &["bench", "volumes", "--batch", "2", "--array", "pet"]);
    assert!(status == Some(2) && text.contains("pet"), "{status:?}: {text}");
    let (status, text) = shardtool(folder.path(), &["bench", "volumes", "--batch", "2", "--array", "ct:5x6"]);
    assert!(status == Some(2) && text.contains("3 dimensions"), "{status:?}: {text}");
    // Of ten elements a row has four, or all and padding.
    for (length, bytes) in [("4", 4), ("15", 15)] {
        let options = ["--ragged-array", &format!("ct,seg:{length}"), "--batch", "2"];
        let bench = json(folder.path(), &[&["bench", "volumes", "--epochs", "3", "--json"], &options[..]].concat());
        assert_eq!((&bench["samples"], &bench["stats"]["bad_samples"]), (&Value::from(12), &Value::from(0)), "{bench}");
        // Two arrays of bytes, and the lengths, of two rows; and what rows have besides.
        let arrays = 2 * (2 * bytes * 12 * 14 + 8);
        let batch = bench["stats"]["memory"]["batch"].as_u64().unwrap();
        assert!((arrays..arrays + 1_000).contains(&batch), "{batch}, {arrays}");
        json(folder.path(), &[&["plan", "volumes", "--json"], &options[..]].concat());
    }
    let (status, text) = shardtool(folder.path(), &["bench", "volumes", "--ragged-array", "ct"]);
    assert!(status == Some(2) && text.contains("NAME:LENGTH"), "{status:?}: {text}");
    let (status, text) = shardtool(folder.path(), &["bench", "volumes", "--batch", "2", "--ragged-array", "pet:4"]);
    assert!(status == Some(2) && text.contains("pet"), "{status:?}: {text}");
}
