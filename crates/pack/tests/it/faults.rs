//! Errors of the system stop a run; only errors of single inputs are rejections. Nothing that cannot be examined counts as
//! absent, and opening a FIFO does not wait.

use crate::resume::child;
use crate::support::{chain, check, class_folders, jpeg, put, rejected, snapshot, without_record};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use shardtool_pack::{ExportKind, ExportOptions, Options, export, pack};
use shardtool_read::Dataset;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// A tar of one sample.
fn tar(path: &Path, key: &str) {
    let mut tar = tar::Builder::new(fs::File::create(path).unwrap());
    let bytes = jpeg(3, 20, 20);
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, format!("{key}.jpg"), &bytes[..]).unwrap();
    tar.into_inner().unwrap();
}

fn refused(source: &Path, destination: &Path, parts: &[&str]) {
    let error = pack(&Options::new(source, destination), &()).expect_err("an error");
    let text = chain(&error);
    parts.iter().for_each(|part| assert!(text.contains(part), "`{part}` in: {text}"));
    assert!(!destination.exists(), "{text}");
}

#[test]
fn too_few_descriptors_stop_a_run_that_the_next_one_completes() {
    let temp = tempfile::tempdir().unwrap();
    let (source, destination, whole) = (temp.path().join("photos"), temp.path().join("set"), temp.path().join("whole"));
    class_folders(&source, 20);
    let mut options = Options::new(&source, &whole);
    options.shards = shardtool_pack::Shards::Count(3);
    pack(&options, &()).unwrap();
    let (mut stopped, mut completed) = (0, 0);
    for limit in 3..40 {
        let output = child(&source, &destination, 3, &format!("ulimit -n {limit}; "));
        assert!(!destination.join("rejected-train.jsonl").exists(), "{limit} descriptors");
        if output.status.success() {
            completed += 1;
            assert_eq!(check(&destination, "train").len(), 60);
            fs::remove_dir_all(&destination).unwrap();
        } else {
            let named = String::from_utf8_lossy(&output.stderr).contains("Too many open files");
            stopped += u32::from(named);
            assert!(!destination.join("dataset.json").exists(), "{limit} descriptors");
        }
    }
    assert!(stopped > 0 && completed > 0);
    let output = child(&source, &destination, 3, "");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(snapshot(&destination), snapshot(&whole));
}

#[test]
fn glob_with_a_link_without_target_is_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("t");
    fs::create_dir_all(folder.join("b")).unwrap();
    tar(&folder.join("0.tar"), "a");
    tar(&folder.join("b/1.tar"), "b");
    symlink("/nowhere/at/all.tar", folder.join("1.tar")).unwrap();
    let destination = temp.path().join("set");
    for pattern in ["*.tar", "", "../*/1.tar"] {
        refused(&folder.join(pattern), &destination, &["t/1.tar", "symbolic link without a target"]);
    }
    fs::remove_file(folder.join("1.tar")).unwrap();
    pack(&Options::new(folder.join("*.tar"), &destination), &()).unwrap();
}

#[test]
fn special_files_are_refused_or_rejected_without_waiting() {
    let temp = tempfile::tempdir().unwrap();
    let (folder, destination) = (temp.path().join("t"), temp.path().join("set"));
    fs::create_dir(&folder).unwrap();
    tar(&folder.join("0.tar"), "a");
    fifo(&folder.join("1.tar"));
    refused(&folder.join("1.tar"), &destination, &["1.tar", "a FIFO"]);
    refused(&folder, &destination, &["1.tar", "a FIFO"]);
    refused(&folder.join("*.tar"), &destination, &["1.tar", "a FIFO"]);
    refused(Path::new("/dev/null"), &destination, &["/dev/null", "a device"]);
    // An index of MDS.
    fifo(&folder.join("index.json"));
    refused(&folder, &destination, &["index.json", "a FIFO"]);
    // Among images, it is an input that cannot be packed.
    let photos = temp.path().join("photos");
    class_folders(&photos, 2);
    fifo(&photos.join("cat/pipe.jpg"));
    put(&temp.path().join("list.csv"), b"path\nphotos/cat/0000.jpg\nphotos/cat/pipe.jpg\n");
    for source in ["photos", "list.csv"] {
        let destination = temp.path().join(format!("set-{source}"));
        let summary = pack(&Options::new(temp.path().join(source), &destination), &()).unwrap();
        let found = rejected(&summary.rejected_file.unwrap());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0.ends_with("pipe.jpg") && found[0].1.contains("not a regular file"), "{found:?}");
    }
}

#[test]
fn folder_that_cannot_be_listed_stops_the_run() {
    let temp = tempfile::tempdir().unwrap();
    let (source, destination) = (temp.path().join("photos"), temp.path().join("set"));
    class_folders(&source, 2);
    fs::set_permissions(source.join("dog"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(source.join("dog")).is_ok() {
        eprintln!("skipped: this user may list every folder");
        return;
    }
    refused(&source, &destination, &["cannot list", "photos/dog", "Permission denied"]);
    fs::set_permissions(source.join("dog"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(pack(&Options::new(&source, &destination), &()).unwrap().rejected, 0);
}

/// The task of [`an_export`]: dataset and destination.
const EXPORT: &str = "SHARDTOOL_TEST_EXPORT";

/// Exports in a child process.
#[test]
fn an_export() {
    let Ok(task) = std::env::var(EXPORT) else { return };
    let (dataset, out) = task.split_once('\n').unwrap();
    let split = Dataset::open(dataset).unwrap().split("train").unwrap().clone();
    match export(&[split], Path::new(out), &ExportOptions::new(ExportKind::Folder), &()) {
        Ok(exported) => assert!(exported.refused.is_empty(), "{:?}", exported.refused),
        Err(error) => {
            eprintln!("{}", chain(&error));
            std::process::exit(2);
        }
    }
}

#[test]
fn export_that_cannot_create_files_stops_and_refuses_no_record() {
    let temp = tempfile::tempdir().unwrap();
    let (source, destination, out) = (temp.path().join("photos"), temp.path().join("set"), temp.path().join("out"));
    class_folders(&source, 4);
    pack(&Options::new(&source, &destination), &()).unwrap();
    let mut stopped = 0;
    for limit in 3..30 {
        let script = format!("ulimit -n {limit}; exec \"$0\" --exact faults::an_export --nocapture");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).arg(std::env::current_exe().unwrap());
        let task = [destination.to_str().unwrap(), out.to_str().unwrap()].join("\n");
        let output = command.env(EXPORT, task).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("refused"), "{limit} descriptors: {text}");
        if output.status.success() {
            assert_eq!(without_record(&out).len(), 12);
            fs::remove_dir_all(&out).unwrap();
        } else {
            stopped += u32::from(text.contains("Too many open files"));
            assert!(!out.exists(), "{limit} descriptors");
        }
    }
    assert!(stopped > 0);
}
