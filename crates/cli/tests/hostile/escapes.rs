//! Text from files holds no control character when a command prints it.

use crate::corpus::{bitmap, damage, encoded, framed, packed, put, shardtool, text};
use serde_json::Value;
use shardtool_format::example::Column;
use shardtool_format::manifest::Manifest;
use std::path::Path;

/// Clears the screen three ways: the escape sequence, its 8-bit form (C1), and one behind a line end. Then DEL.
const HOSTILE: &str = "x\u{1b}[2J\u{9b}2J\u{7f}\n\u{1b}[2J\ty";

/// Runs a command and checks what it prints. Returns its status.
fn check(arguments: &[&str]) -> i32 {
    let output = shardtool(arguments);
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let printed = std::str::from_utf8(bytes).unwrap();
        let control = printed.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(control, None, "{arguments:?}, {stream}: {printed:?}");
        if stream == "stderr" {
            assert!(printed.lines().filter(|line| line.starts_with("error: ")).count() < 2, "{printed}");
        }
    }
    if arguments.contains(&"--json") && !output.stdout.is_empty() {
        serde_json::from_slice::<Value>(&output.stdout).unwrap();
    }
    output.status.code().unwrap()
}

/// As [`check`], also with `--json`.
fn check_both(arguments: &[&str]) {
    check(arguments);
    check(&[arguments, &["--json"]].concat());
}

/// Records with hostile feature names, keys, formats, classes and values, adopted as a dataset.
fn adopted(folder: &Path) {
    let mut file = vec![];
    for n in 0..3 {
        let (image, label, key) = (bitmap(n), [i64::from(n)], format!("{HOSTILE}/{n}.bmp"));
        let mut features = [
            (HOSTILE, Column::Bytes(&[HOSTILE.as_bytes()])),
            ("image/class/label", Column::Int64(&label)),
            ("image/class/text", Column::Bytes(&[HOSTILE.as_bytes()])),
            ("image/encoded", Column::Bytes(&[&image])),
            ("image/format", Column::Bytes(&[HOSTILE.as_bytes()])),
            ("image/key", Column::Bytes(&[key.as_bytes()])),
        ];
        features.sort_by_key(|(name, _)| *name);
        file.extend(framed(&encoded(&mut features)));
    }
    put(&folder.join("train-00000.tfrecord"), &file);
    assert_eq!(check(&["index", text(&folder.join("train-00000.tfrecord"))]), 0);
}

/// Every reading command.
fn read_everything(set: &Path, temp: &Path, tag: &str) {
    let set = text(set);
    let out = |name: &str| temp.join(format!("{name}-{tag}")).to_str().unwrap().to_owned();
    check_both(&["info", set]);
    check_both(&["info", set, "--spec"]);
    check_both(&["ls", set]);
    check_both(&["ls", set, "--column", HOSTILE]);
    check_both(&["ls", set, "--where", &format!("{HOSTILE}={HOSTILE}")]);
    check_both(&["ls", set, "--split", HOSTILE]);
    check_both(&["show", set, "0"]);
    check_both(&["show", set, "2"]);
    check_both(&["verify", set]);
    check_both(&["verify", set, "--decode"]);
    check_both(&["plan", set, "--batch", "1"]);
    check_both(&["bench", set, "--batch", "1", "--epochs", "1", "--size", "8"]);
    check_both(&["bench", set, "--batch", "1", "--epochs", "1", "--work", "read"]);
    check_both(&["diff", set, set]);
    for (json, name) in [(&[][..], "a"), (&["--json"][..], "b")] {
        check(&[&["extract", set, &out(&format!("extract{name}"))], json].concat());
        check(&[&["reshard", set, &out(&format!("reshard{name}"))], json].concat());
        check(&[&["merge", &out(&format!("merge{name}")), set, set], json].concat());
        for kind in ["tfrecord", "webdataset", "parquet", "folder"] {
            check(&[&["export", set, &out(&format!("{kind}{name}")), "--to", kind], json].concat());
        }
    }
}

#[test]
fn names_from_records_and_manifests_do_not_control_the_terminal() {
    let temp = tempfile::tempdir().unwrap();
    let set = temp.path().join("theirs");
    adopted(&set);
    read_everything(&set, temp.path(), "whole");
    // Members of the manifest that `index` does not take from records.
    let path = set.join("dataset.json");
    let mut manifest = Manifest::parse(&std::fs::read(&path).unwrap()).unwrap();
    manifest.created_by = HOSTILE.to_owned();
    manifest.classes = vec![HOSTILE.to_owned(), "\u{1b}c".to_owned(), "\u{9b}c".to_owned()];
    manifest.private.insert(format!("x-{HOSTILE}"), HOSTILE.to_owned());
    put(&path, manifest.to_json().as_bytes());
    read_everything(&set, temp.path(), "classes");
    damage(&set.join("train-00000.tfrecord"));
    read_everything(&set, temp.path(), "damaged");
    check_both(&["repair", text(&set)]);
    check_both(&["repair", text(&set), "--reseal"]);
    for (member, value) in [("version", "\"1.0\u{1b}[2J\""), ("format", "\"\u{9b}2J\""), ("splits", "\u{1b}[2J")] {
        let mut broken = manifest.to_json();
        let at = broken.find(&format!("\"{member}\": ")).unwrap() + member.len() + 4;
        let end = at + broken[at..].find(',').unwrap();
        broken.replace_range(at..end, value);
        put(&path, seal(broken).as_bytes());
        check_both(&["info", text(&set)]);
        check_both(&["verify", text(&set)]);
        check_both(&["repair", text(&set), "--reseal"]);
    }
}

/// Gives a manifest the CRC of its bytes.
fn seal(json: String) -> String {
    let at = json.rfind("\"crc32c\": \"").unwrap() + 11;
    let zeros = format!("{}00000000{}", &json[..at], &json[at + 8..]);
    let crc = shardtool_format::checksum::crc32c(zeros.as_bytes());
    format!("{}{crc:08x}{}", &json[..at], &json[at + 8..])
}

#[test]
fn names_of_files_do_not_control_the_terminal() {
    let temp = tempfile::tempdir().unwrap();
    let photos = temp.path().join("photos");
    for class in [HOSTILE, "b"] {
        put(&photos.join(class).join(format!("{HOSTILE}.bmp")), &bitmap(1));
        put(&photos.join(class).join(format!("{HOSTILE}bad.bmp")), b"BM");
    }
    let set = temp.path().join("set");
    check_both(&["pack", text(&photos), text(&set), "--dry-run"]);
    assert_eq!(check(&["pack", text(&photos), text(&set)]), 1);
    check(&["pack", text(&photos), text(&set)]);
    check(&["pack", text(&photos), text(&temp.path().join("stopped")), "--on-error", "fail"]);
    check_both(&["info", text(&set)]);
    check_both(&["ls", text(&set)]);
    check_both(&["pack", text(&temp.path().join(HOSTILE)), text(&set)]);
    check_both(&["info", text(&temp.path().join(HOSTILE))]);
    // Shards whose names are hostile, with a manifest and without.
    let file = temp.path().join("shards").join(format!("{HOSTILE}-00000.tfrecord"));
    put(&file, &std::fs::read(set.join("train-00000.tfrecord")).unwrap());
    check_both(&["index", text(&file)]);
    check_both(&["verify", text(&file)]);
    check_both(&["info", text(&file)]);
    check_both(&["repair", text(file.parent().unwrap())]);
    damage(&file);
    check_both(&["verify", text(&file)]);
    check_both(&["repair", text(file.parent().unwrap())]);
    let other = packed(&temp.path().join("other"), &[HOSTILE, "b"], 2);
    check_both(&["diff", text(&set), text(&other)]);
}
