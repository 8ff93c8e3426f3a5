//! A finding is exit status 1, also if the output is closed before it is written.

use crate::corpus::{damage, packed, put, shardtool, status, text, unread};
use serde_json::Value;
use std::path::Path;

const SHARD: &str = "train-00000.tfrecord";

fn damaged(folder: &Path) -> std::path::PathBuf {
    let set = packed(folder, &["a", "b"], 4);
    damage(&set.join(SHARD));
    set
}

#[test]
fn a_closed_pipe_does_not_hide_a_finding() {
    let temp = tempfile::tempdir().unwrap();
    let set = damaged(temp.path());
    let whole = packed(&temp.path().join("whole"), &["a", "b"], 3);
    let mixed = temp.path().join("mixed");
    put(&mixed.join("a/good.bmp"), &crate::corpus::bitmap(0));
    put(&mixed.join("a/bad.bmp"), b"BM");
    let out = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let fewer = packed(&temp.path().join("fewer"), &["a", "b"], 2);
    for json in [&["--json"][..], &[]] {
        let run = |arguments: &[&str]| unread(&[arguments, json].concat());
        let tag = if json.is_empty() { "text" } else { "json" };
        let [packed, extracted, folder, tfrecord] =
            ["packed", "extracted", "folder", "tfrecord"].map(|name| out(&format!("{name}-{tag}")));
        let findings: [&[&str]; 7] = [
            &["verify", text(&set)],
            &["diff", text(&whole), text(&fewer)],
            &["pack", text(&mixed), &packed],
            &["extract", text(&set), &extracted],
            &["export", text(&set), &folder, "--to", "folder"],
            &["export", text(&set), &tfrecord, "--to", "tfrecord"],
            &["bench", text(&set), "--work", "read", "--batch", "4", "--epochs", "1"],
        ];
        for arguments in findings {
            assert_eq!(run(arguments), (Some(1), String::new()), "{arguments:?} {tag}");
        }
        for arguments in [&["info", text(&whole)][..], &["ls", text(&whole)], &["verify", text(&whole)]] {
            assert_eq!(run(arguments), (Some(0), String::new()), "{arguments:?} {tag}");
        }
    }
    assert_eq!(unread(&["repair", text(&set)]), (Some(1), String::new()), "records are lost");
}

#[test]
fn bench_reports_bad_samples_that_only_its_first_epoch_counts() {
    let temp = tempfile::tempdir().unwrap();
    let set = damaged(temp.path());
    let bench = ["bench", text(&set), "--work", "read", "--batch", "4", "--epochs", "2"];
    let output = shardtool(&bench);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("1 bad sample"), "{stdout}");
    let output = shardtool(&[&bench[..], &["--json"]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(document["stats"]["bad_samples"], 1, "{document:#}");
}

#[test]
fn export_to_tfrecord_leaves_damage_out_unless_it_is_allowed() {
    let temp = tempfile::tempdir().unwrap();
    let set = damaged(temp.path());
    let export = |out: &str, more: &[&str]| {
        let out = temp.path().join(out);
        let output = shardtool(&[&["export", text(&set), text(&out), "--to", "tfrecord"], more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        (out.join(SHARD), String::from_utf8(output.stdout).unwrap())
    };
    let (good, said) = export("good", &[]);
    assert!(said.contains("not exported: ") && said.contains("CRC"), "{said}");
    assert_eq!(status(&["verify", text(&good)]), (Some(0), String::new()));
    let (kept, said) = export("kept", &["--allow-damage"]);
    assert!(said.contains("exported with damage: "), "{said}");
    assert_eq!(std::fs::read(kept).unwrap(), std::fs::read(set.join(SHARD)).unwrap());
    let (code, errors) = status(&["export", text(&set), "x", "--to", "folder", "--allow-damage"]);
    assert!(code == Some(2) && errors.contains("--to tfrecord"), "{errors}");
}

#[test]
fn a_split_that_is_not_complete_is_named_and_a_dataset_without_another_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), &["a"], 2);
    let out = |name: &str| temp.path().join(name);
    // As `pack --force --split=train` leaves it after its first step.
    put(&set.join(".pack-validation.json"), b"{}");
    for (number, command) in [&["export", "--to=webdataset"][..], &["reshard"]].into_iter().enumerate() {
        let out = out(&number.to_string());
        let (code, errors) = status(&[command, &[text(&set), text(&out)]].concat());
        assert_eq!(code, Some(0), "{command:?}: {errors}");
        assert!(
            errors.contains("note: split validation of ") && errors.contains("is left out"),
            "{command:?}: {errors}"
        );
    }
    let (code, errors) = status(&["verify", text(&set)]);
    assert!(code == Some(0) && errors.contains("note: split validation of "), "{errors}");

    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/conformance/golden/nothing");
    let manifest = std::fs::read_to_string(fixture.join("dataset.json")).unwrap();
    assert!(manifest.contains("\"splits\": []"), "{manifest}");
    let (nothing, left) = (text(&fixture), out("left"));
    for command in [
        &["export", "--to=webdataset", nothing, text(&left)][..],
        &["reshard", nothing, text(&left)],
        &["merge", text(&left), nothing, text(&set)],
        &["extract", nothing, text(&left)],
        &["diff", nothing, nothing],
    ] {
        let (code, errors) = status(command);
        assert!(code == Some(2) && errors.contains("has no splits yet"), "{command:?}: {errors}");
        assert!(!left.exists(), "{command:?}");
    }
}
