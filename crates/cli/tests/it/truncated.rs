//! A file that is truncated while a command reads it is a finding, not a SIGBUS.

use serde_json::Value;
use shardtool_format::{checksum::crc32c, frame};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const RECORDS: u64 = 256;
const DATA: usize = 1 << 20;

fn write(path: &Path) {
    let (data, mut file) = (vec![7; DATA], File::create(path).unwrap());
    for _ in 0..RECORDS {
        file.write_all(&frame::header(DATA as u64)).unwrap();
        file.write_all(&data).unwrap();
        file.write_all(&frame::footer(crc32c(&data))).unwrap();
    }
}

fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Runs a command and truncates the file as soon as the command has mapped it.
fn truncate_during(arguments: &[&str], path: &Path, length: u64) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
    let mut child = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    let name = path.to_str().unwrap();
    while child.try_wait().unwrap().is_none() {
        if std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains(name)) {
            signal(&child, "-STOP");
            OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
            signal(&child, "-CONT");
            break;
        }
    }
    child.wait_with_output().unwrap()
}

#[test]
fn verify_lists_records_behind_the_new_end() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("train-00000.tfrecord");
    // A command that ended before the truncation saw a good file, and one that opened the file after it a shorter one.
    for _ in 0..100 {
        write(&path);
        let end = RECORDS * (DATA + frame::OVERHEAD_BYTES) as u64;
        let output = truncate_during(&["verify", "--jobs", "1", "--json", path.to_str().unwrap()], &path, end / 2 + 9);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let damages = report["damages"].as_array().unwrap();
        let unreadable: Vec<_> = damages.iter().filter(|damage| damage["name"] == "Io").collect();
        if let [first, ..] = &unreadable[..] {
            assert_eq!(output.status.code(), Some(1));
            assert!(first["message"].as_str().unwrap().contains("truncated"), "{first}");
            assert!(first["record"].is_u64(), "{first}");
            // A command that had read beyond the new end before does not find the first record that was lost.
            if first["offset"].as_u64().unwrap() < end / 2 + 9 {
                return;
            }
        }
    }
    panic!("never truncated while a record before the new end was read");
}
