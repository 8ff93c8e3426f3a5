//! Sectors that the device cannot read cost the records in them. `repair` salvages all others, `verify` lists them, and
//! `pack` stops, since a source on a failing device is not a source of bad images.
//!
//! This binary defines `pread64`, which the standard library calls, and fails it with `EIO` in chosen ranges.

use shardtool_format::example::{Column, encode};
use shardtool_format::{checksum::crc32c, frame, names};
use shardtool_pack::{Action, AdoptOptions, Problem, RepairOptions, adopt, repair};
use shardtool_read::verify::{self, verify};
use shardtool_read::{Access, Dataset, Error, Options};
use std::fs;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

const BLOCK: u64 = 4096;

/// A file (device, inode), and the ranges of its bad sectors.
type Bad = ((u64, u64), Vec<Range<u64>>);

static BAD: Mutex<Option<Bad>> = Mutex::new(None);

/// Reads like the system's `pread`, apart from bad sectors: a range that touches one fails.
#[unsafe(no_mangle)]
extern "C" fn pread64(fd: libc::c_int, buffer: *mut libc::c_void, count: libc::size_t, offset: i64) -> libc::ssize_t {
    if let Some((file, sectors)) = &*BAD.lock().unwrap() {
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: `stat` is valid for writes, and initialised if the call succeeds.
        let same = unsafe {
            libc::fstat(fd, stat.as_mut_ptr()) == 0 && {
                let stat = stat.assume_init();
                (stat.st_dev, stat.st_ino) == *file
            }
        };
        let range = offset as u64..offset as u64 + count as u64;
        if same && sectors.iter().any(|bad| bad.start < range.end && range.start < bad.end) {
            // SAFETY: `errno` belongs to this thread.
            unsafe { *libc::__errno_location() = libc::EIO };
            return -1;
        }
    }
    // SAFETY: these are the caller's arguments of `pread`.
    unsafe { libc::syscall(libc::SYS_pread64, fd, buffer, count, offset) as libc::ssize_t }
}

/// Makes sectors of a file bad while the value lives. Tests that do so take turns.
struct BadSectors(#[expect(dead_code, reason = "held")] std::sync::MutexGuard<'static, ()>);

impl BadSectors {
    fn new(path: &Path, blocks: &[u64]) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let meta = fs::metadata(path).unwrap();
        let sectors = blocks.iter().map(|block| block * BLOCK..(block + 1) * BLOCK).collect();
        *BAD.lock().unwrap() = Some(((meta.dev(), meta.ino()), sectors));
        BadSectors(turn)
    }
}

impl Drop for BadSectors {
    fn drop(&mut self) {
        *BAD.lock().unwrap() = None;
    }
}

const SHARD: &str = "train-00000.tfrecord";
const RECORDS: usize = 40;

/// Writes a TFRecord file of records of 1 to 9 KiB, and its index. Returns the range of each frame.
fn dataset(folder: &Path) -> Vec<Range<u64>> {
    let (mut file, mut frames) = (vec![], vec![]);
    for record in 0..RECORDS {
        let image = vec![record as u8; 1000 + (record * 1237) % 8000];
        let (images, keys) = ([&image[..]], [format!("{record}").into_bytes()]);
        let keys = [&keys[0][..]];
        let mut data = vec![];
        encode(
            &mut [(names::IMAGE_ENCODED, Column::Bytes(&images)), (names::IMAGE_KEY, Column::Bytes(&keys))],
            &mut data,
        );
        let start = file.len() as u64;
        file.extend(frame::header(data.len() as u64));
        file.extend_from_slice(&data);
        file.extend(frame::footer(crc32c(&data)));
        frames.push(start..file.len() as u64);
    }
    fs::write(folder.join(SHARD), file).unwrap();
    adopt(&[folder.join(SHARD)], &AdoptOptions::default(), &()).unwrap();
    frames
}

fn touches(frame: &Range<u64>, blocks: &[u64]) -> bool {
    blocks.iter().any(|block| block * BLOCK < frame.end && frame.start < (block + 1) * BLOCK)
}

/// The keys of all records of a dataset.
fn keys(folder: &Path) -> Vec<usize> {
    let split = Dataset::open(folder).unwrap().split("train").unwrap().clone();
    let key = |id| String::from_utf8(split.get(id).unwrap().key().unwrap().into_owned()).unwrap();
    (0..split.len()).map(|id| key(id).parse().unwrap()).collect()
}

#[test]
fn repair_salvages_what_lies_around_bad_sectors() {
    for blocks in [&[0][..], &[5], &[3, 4, 9], &[1, 20, 22]] {
        for with_index in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let frames = dataset(folder.path());
            let shard = folder.path().join(SHARD);
            if !with_index {
                fs::remove_file(names::index_path(&shard)).unwrap();
            }
            let bad = BadSectors::new(&shard, blocks);
            let done = repair(folder.path(), &RepairOptions::default(), &()).unwrap();
            drop(bad);
            let good: Vec<_> = (0..RECORDS).filter(|record| !touches(&frames[*record], blocks)).collect();
            let [repaired] = &done.shards[..] else { panic!("{done:?}") };
            assert!(matches!(repaired.action, Action::Salvaged { records, .. } if records == good.len() as u64));
            assert_eq!(keys(folder.path()), good, "blocks {blocks:?}");
            for lost in &repaired.lost {
                let problem = lost.problem.as_ref().unwrap();
                assert!(matches!(problem, Problem::Unreadable(Error::Unreadable { path, .. }) if *path == shard));
            }
            let lost: u64 = repaired.lost.iter().map(|lost| lost.bytes.end - lost.bytes.start).sum();
            let expected = frames.iter().filter(|frame| touches(frame, blocks)).map(|frame| frame.end - frame.start);
            assert_eq!(lost, expected.sum::<u64>());
        }
    }
}

#[test]
fn verify_and_readers_lose_only_the_records_in_bad_sectors() {
    let folder = tempfile::tempdir().unwrap();
    let frames = dataset(folder.path());
    let (shard, blocks) = (folder.path().join(SHARD), [2, 3, 11]);
    let lost: Vec<_> = (0..RECORDS).filter(|record| touches(&frames[*record], &blocks)).collect();
    let _bad = BadSectors::new(&shard, &blocks);
    let dataset = Dataset::open_with(folder.path(), Options::default().with_access(Access::Pread)).unwrap();
    let split = dataset.split("train").unwrap();
    for record in 0..RECORDS {
        match split.get(record as u64) {
            Ok(_) => assert!(!lost.contains(&record)),
            Err(error) => assert!(error.is_unreadable() && lost.contains(&record), "{error}"),
        }
    }
    let mut options = verify::Options::default();
    options.access = Access::Pread;
    let report = verify(&dataset, &options);
    let found: Vec<_> =
        report.findings.iter().map(|finding| (finding.name(), finding.record.unwrap() as usize)).collect();
    assert_eq!(found, lost.iter().map(|record| ("Io", *record)).collect::<Vec<_>>());
    assert_eq!(report.good_records as usize, RECORDS - lost.len());
}
