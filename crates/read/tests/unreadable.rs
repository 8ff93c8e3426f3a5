//! Files that are truncated while they are mapped cost the records that lie behind their new end, and nothing else.

mod written;

use shardtool_format::{Chain, index, names};
use shardtool_read::verify::{self, verify};
use shardtool_read::{Access, Dataset, Error, Options, Split};
use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use written::RECORDS;

fn write(folder: &Path) {
    written::write(folder, |_| ());
}

fn open(folder: &Path) -> Split {
    let dataset = Dataset::open_with(folder, Options::default().with_access(Access::Mmap)).unwrap();
    dataset.split("train").unwrap().clone()
}

fn truncate(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

/// A split whose shard is truncated in the middle of a record and of a page.
fn truncated(folder: &Path) -> (Split, u64) {
    write(folder);
    let split = open(folder);
    split.get(0).unwrap();
    let frame = split.shard(0).unwrap().frame(RECORDS / 2).unwrap();
    let end = frame.start + (frame.end - frame.start) / 2;
    assert_ne!(end % 4096, 0);
    truncate(&split.shard_path(0), end);
    (split, end)
}

#[test]
fn truncation_costs_the_records_behind_the_new_end() {
    let folder = tempfile::tempdir().unwrap();
    let (split, end) = truncated(folder.path());
    // Backwards, so that good records are read after bad ones.
    for id in (0..RECORDS).rev() {
        let range = split.shard(0).unwrap().frame(id).unwrap();
        match split.get(id) {
            Ok(record) => {
                assert!(range.end <= end, "record {id}");
                assert!(record.image().unwrap().unwrap().iter().all(|byte| byte & 1 == 1));
                record.check_readable().unwrap();
            }
            Err(error) => {
                assert!(range.end > end, "{}", Chain(&error));
                assert!(error.is_bad_sample() && !error.is_damage());
                let Error::Unreadable { path, record, key, bytes, .. } = &error else { panic!("{error}") };
                assert_eq!((path, *record, bytes), (&split.shard_path(0), Some(id), &range));
                assert_eq!(key.as_deref(), Some(format!("{id:0200}").as_bytes()));
                assert!(Chain(&error).to_string().contains("truncated"), "{}", Chain(&error));
            }
        }
    }
}

#[test]
fn many_threads_may_meet_unreadable_pages_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (split, end) = truncated(folder.path());
    let shard = split.shard(0).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for id in 0..RECORDS {
                    assert_eq!(split.get(id).is_ok(), shard.frame(id).unwrap().end <= end, "record {id}");
                }
            });
        }
    });
}

#[test]
fn bytes_lost_while_they_are_borrowed_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let split = open(folder.path());
    let (first, last) = (split.get(0).unwrap(), split.get(RECORDS - 1).unwrap());
    truncate(&split.shard_path(0), 4096 * 4);
    assert!(last.data().iter().all(|byte| *byte == 0), "lost bytes read as zeros");
    assert!(matches!(last.check_readable(), Err(Error::Unreadable { record: Some(59), .. })));
    assert!(first.data().iter().any(|byte| *byte != 0));
    first.check_readable().unwrap();
}

#[test]
fn truncated_index_is_an_error_of_the_index() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    for keep in [0, 700] {
        write(folder.path());
        let split = open(folder.path());
        let shard = split.shard(0).unwrap();
        let index = names::index_path(&split.shard_path(0));
        assert!(std::fs::metadata(&index).unwrap().len() > 2 * 4096);
        truncate(&index, keep);
        for result in [shard.key(RECORDS - 1).map(drop), split.get(RECORDS - 1).map(drop)] {
            let error = result.unwrap_err();
            assert!(matches!(&error, Error::Unreadable { path, .. } if *path == index), "{}", Chain(&error));
            assert!(error.is_bad_sample());
        }
    }
}

#[test]
fn verify_lists_what_became_unreadable_and_checks_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    for access in [Access::Mmap, Access::Pread] {
        write(folder.path());
        let dataset = Dataset::open(folder.path()).unwrap();
        let shard = dataset.split("train").unwrap().shard(0).unwrap();
        let (path, end) = (shard.path().to_owned(), shard.frame(RECORDS / 2).unwrap().start + 100);
        let once = Once::new();
        let progress = |_, _| once.call_once(|| truncate(&path, end));
        let mut options = verify::Options::default();
        options.access = access;
        options.progress = Some(&progress);
        let report = verify(&dataset, &options);
        let lost = RECORDS / 2..RECORDS;
        assert_eq!(
            report.findings.iter().map(|f| f.record).collect::<Vec<_>>(),
            lost.clone().map(Some).collect::<Vec<_>>()
        );
        assert!(report.findings.iter().all(|f| f.name() == "Io" && f.file == path), "{:?}", report.findings);
        let starts: Vec<_> = lost.map(|row| Some(shard.frame(row).unwrap().start)).collect();
        assert_eq!(report.findings.iter().map(|f| f.offset).collect::<Vec<_>>(), starts);
        assert_eq!(report.good_records, RECORDS / 2);
    }
}

/// Set in child processes: what the child does.
const CHILD: &str = "SHARDTOOL_TEST_CHILD";

/// Runs a test of this file again in a child process with [`CHILD`] set.
fn child(test: &str, task: &str) -> std::process::Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, task).output().unwrap()
}

/// The status of a child whose own handler was called.
const HANDLED: i32 = 77;

extern "C" fn exit_handled(_: libc::c_int) {
    // SAFETY: `_exit` is async-signal-safe.
    unsafe { libc::_exit(HANDLED) }
}

/// Installs a handler that ends the process with [`HANDLED`].
fn install_own_handler() {
    // SAFETY: all zeros is a valid action, and the handler calls async-signal-safe functions only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = exit_handled as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()), 0);
    }
}

/// Raises SIGBUS in a mapping that is not a dataset's.
fn foreign_fault(folder: &Path) {
    let path = folder.join("foreign");
    std::fs::write(&path, [1; 10_000]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    // SAFETY: the file is truncated to raise SIGBUS, which ends this process.
    let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
    truncate(&path, 0);
    std::hint::black_box(std::hint::black_box(&map)[5_000]);
}

#[test]
fn faults_of_others_go_to_the_handler_before_ours() {
    if let Ok(task) = std::env::var(CHILD) {
        if task != "default" {
            install_own_handler();
        }
        let folder = tempfile::tempdir().unwrap();
        let (split, _) = truncated(folder.path());
        assert!(split.get(RECORDS - 1).is_err(), "ours is handled");
        if task == "sent" {
            // SAFETY: sends a signal to this process.
            unsafe { libc::raise(libc::SIGBUS) };
        }
        foreign_fault(folder.path());
        panic!("a fault outside our mappings is not ours");
    }
    let name = "faults_of_others_go_to_the_handler_before_ours";
    assert_eq!(child(name, "fault").status.code(), Some(HANDLED));
    assert_eq!(child(name, "sent").status.code(), Some(HANDLED));
    // Without an own handler, the process ends as it would without ours.
    assert_eq!(child(name, "default").status.signal(), Some(libc::SIGBUS));
}

#[test]
fn bytes_that_are_lent_end_the_process_with_a_message() {
    if std::env::var(CHILD).is_ok() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        let split = open(folder.path());
        let shard = split.shard(0).unwrap();
        let keys = shard.variable(index::KEY).unwrap().unwrap().values();
        drop(shard.lend_index());
        let lent = shard.lend_index();
        truncate(&names::index_path(&split.shard_path(0)), 0);
        std::hint::black_box(keys.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        drop(lent);
        panic!("zeros were read");
    }
    let output = child("bytes_that_are_lent_end_the_process_with_a_message", "lend");
    assert_eq!(output.status.signal(), Some(libc::SIGBUS));
    assert!(String::from_utf8_lossy(&output.stderr).contains("lent as arrays"), "{output:?}");
}
