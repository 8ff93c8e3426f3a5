//! Pages of records stay in the page cache or are released, as configured.

use crate::dataset::{self, Sample, jpeg};
use shardtool_decode::Pipeline;
use shardtool_load::{Config, Field, Image, Loader, PageCache};
use shardtool_read::{Access, Dataset, Options};
use std::fs::File;
use std::path::Path;

/// Returns the fraction of a file's pages that the page cache holds (mincore(2)).
fn resident(path: &Path) -> f64 {
    let file = File::open(path).unwrap();
    // SAFETY: no other code writes this file, which the test has created.
    let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
    let mut pages = vec![0u8; map.len().div_ceil(rustix::param::page_size())];
    // SAFETY: the range is the mapping, and there is a byte for each of its pages.
    let rc = unsafe { libc::mincore(map.as_ptr() as *mut _, map.len(), pages.as_mut_ptr()) };
    assert_eq!(rc, 0);
    pages.iter().filter(|page| *page & 1 == 1).count() as f64 / pages.len() as f64
}

/// Removes a file from the page cache.
fn evict(path: &Path) {
    use std::os::fd::AsRawFd;
    let file = File::open(path).unwrap();
    // Dirty pages cannot be removed.
    file.sync_all().unwrap();
    // SAFETY: a hint about an open file.
    let rc = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(rc, 0);
}

/// Writes a shard of 60 photographs.
fn photographs() -> tempfile::TempDir {
    // In the build folder: the temporary folder may be a tmpfs, whose files are always in the page cache.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let samples: Vec<_> = (0..60)
        .map(|i| Sample {
            key: format!("{i}"),
            image: Some((jpeg(i, 400, 300), (400, 300))),
            label: 0,
            boxes: vec![0.0],
            mask: vec![],
        })
        .collect();
    dataset::write(folder.path(), "train", &samples, 60);
    folder
}

#[test]
fn a_split_knows_which_records_are_in_memory() {
    let folder = photographs();
    for access in [Access::Mmap, Access::Pread] {
        evict(&folder.path().join("train-00000.tfrecord"));
        let options = Options::default().with_access(access);
        let split = Dataset::open_with(folder.path(), options).unwrap().split("train").unwrap().clone();
        // Looking does not read whole records.
        for id in (0..60).step_by(20) {
            assert!(!split.is_in_memory(id), "record {id} was evicted");
        }
        for id in 0..60 {
            split.get(id).unwrap();
        }
        assert!((0..60).all(|id| split.is_in_memory(id)));
        assert!(!split.is_in_memory(60), "the split has 60 records");
        drop(split);
        evict(&folder.path().join("train-00000.tfrecord"));
        let split = Dataset::open_with(folder.path(), Options::default().with_access(access)).unwrap();
        let split = &split.splits()[0];
        split.shard(0).unwrap().read_exactly();
        for id in (0..60).step_by(2) {
            split.get(id).unwrap();
        }
        for id in (0..60).step_by(2) {
            assert!(split.is_in_memory(id), "record {id} was read");
        }
        // The system may keep larger pieces of a file than were read.
        let others: Vec<_> = (1..60).step_by(2).filter(|id| split.is_in_memory(*id)).collect();
        assert!(others.len() < 10, "records {others:?} were not read, only their neighbours");
    }
}

#[test]
fn pages_are_kept_or_released() {
    let folder = photographs();
    let shard = folder.path().join("train-00000.tfrecord");
    for field in [Field::from(Image::new(Pipeline::train(64).unwrap())), Field::Record] {
        for access in [Access::Mmap, Access::Pread] {
            for (page_cache, least, most) in [(PageCache::Keep, 0.95, 1.0), (PageCache::Release, 0.0, 0.1)] {
                evict(&shard);
                assert!(resident(&shard) < 0.05);
                let options = Options::default().with_access(access);
                let split = Dataset::open_with(folder.path(), options).unwrap().split("train").unwrap().clone();
                let mut config = Config::new(split, [field.clone()], 10);
                (config.prefetch.page_cache, config.epochs) = (page_cache, Some(1));
                let mut loader = Loader::new(&config).unwrap();
                let mut bytes = 0;
                while let Some(batch) = loader.next_batch().unwrap() {
                    bytes += batch.records().iter().flatten().map(|r| r.data().len()).sum::<usize>();
                    assert!(batch.valid().iter().all(|v| *v));
                }
                drop(loader);
                let records = matches!(field, Field::Record);
                assert_eq!(bytes > 0, records);
                let found = resident(&shard);
                assert!((least..=most).contains(&found), "{field:?}, {access:?}, {page_cache:?}: {found} resident");
            }
        }
    }
}
