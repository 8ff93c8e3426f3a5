//! Decoded images, kept from one epoch to the next: in memory, or in a file without a name.
//!
//! Images are added until the cache is full and stay there: every epoch takes each sample once, so no other choice has more
//! hits.

use crate::error::{Error, Result};
use crate::notices::{Notice, Notices};
use crate::options::DecodedCache;
use shardtool_format::checksum::crc32c;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a cache of decoded images holds, and how often it was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecodedCacheStats {
    /// Images, frames and label maps that were in the cache.
    pub hits: u64,
    /// Those that were decoded.
    pub misses: u64,
    /// Those in the cache.
    pub images: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Images that did not match their CRC or could not be read, and were decoded again.
    pub bad: u64,
}

/// Identifies an image: the id of its sample, and its number in the sample.
pub(crate) type ImageId = (u64, u32);

/// Where the pixels of a cached image are.
#[derive(Debug)]
pub(crate) enum CachedPixels {
    Shared(Arc<[u8]>),
    /// In the buffer that they were read into.
    Read,
}

impl CachedPixels {
    /// Returns the pixels. `buffer` is the one that [`DecodedImages::get`] got.
    pub(crate) fn bytes<'b>(&'b self, buffer: &'b [u8]) -> &'b [u8] {
        match self {
            CachedPixels::Shared(pixels) => pixels,
            CachedPixels::Read => buffer,
        }
    }
}

/// Bytes that an entry takes in addition to its pixels, about.
const ENTRY_BYTES: u64 = 96;

/// The decoded images of a loader.
pub(crate) struct DecodedImages {
    pub(crate) config: DecodedCache,
    /// `None` for a cache in memory.
    file: Option<File>,
    entries: Mutex<HashMap<ImageId, Entry>>,
    /// Bytes of the entries, and the end of the file.
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    bad: AtomicU64,
    /// Whether the file cannot be written any more.
    failed: AtomicBool,
    notices: Arc<Notices>,
}

#[derive(Clone)]
struct Entry {
    size: (u32, u32),
    pixels: Pixels,
}

#[derive(Clone)]
enum Pixels {
    Memory(Arc<[u8]>),
    /// Where they begin in the file.
    File {
        offset: u64,
        length: usize,
        crc: u32,
    },
}

impl DecodedImages {
    /// Creates an empty cache.
    ///
    /// # Errors
    /// [`Error::DecodedCache`] if no file can be created in the folder.
    pub(crate) fn new(config: &DecodedCache, notices: Arc<Notices>) -> Result<Self> {
        // Without a name, it takes no space after the process has ended.
        let create = |folder: &PathBuf| {
            tempfile::tempfile_in(folder).map_err(|source| Error::DecodedCache { folder: folder.clone(), source })
        };
        Ok(DecodedImages {
            file: config.path.as_ref().map(create).transpose()?,
            config: config.clone(),
            entries: Mutex::default(),
            bytes: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            bad: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            notices,
        })
    }

    /// Returns the pixels of an image of this width and height, those of a file in `buffer`; `None` if it must be decoded.
    pub(crate) fn get(&self, id: ImageId, size: (u32, u32), buffer: &mut Vec<u8>) -> Option<CachedPixels> {
        let entry = self.entries().get(&id).filter(|entry| entry.size == size).cloned();
        let found = entry.and_then(|entry| match (entry.pixels, &self.file) {
            (Pixels::Memory(pixels), _) => Some(CachedPixels::Shared(pixels)),
            (Pixels::File { offset, length, crc }, Some(file)) => {
                buffer.resize(length, 0);
                let good = file.read_exact_at(buffer, offset).is_ok() && crc32c(buffer) == crc;
                self.bad.fetch_add(u64::from(!good), Ordering::Relaxed);
                good.then_some(CachedPixels::Read)
            }
            (Pixels::File { .. }, None) => None,
        });
        if found.is_some() { &self.hits } else { &self.misses }.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Keeps an image, if there is room.
    pub(crate) fn insert(&self, id: ImageId, size: (u32, u32), pixels: &[u8]) {
        let bytes = pixels.len() as u64 + ENTRY_BYTES;
        if self.failed.load(Ordering::Relaxed) || self.entries().contains_key(&id) {
            return;
        }
        let room = |held: u64| held.checked_add(bytes).filter(|after| *after <= self.config.size);
        let Ok(offset) = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) else { return };
        let pixels = match &self.file {
            None => Pixels::Memory(pixels.into()),
            Some(file) => {
                if let Err(error) = file.write_all_at(pixels, offset) {
                    self.fail(&error);
                    return;
                }
                Pixels::File { offset, length: pixels.len(), crc: crc32c(pixels) }
            }
        };
        self.entries().insert(id, Entry { size, pixels });
    }

    /// Returns what it holds, and how often it was used.
    pub(crate) fn stats(&self) -> DecodedCacheStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DecodedCacheStats {
            hits: load(&self.hits),
            misses: load(&self.misses),
            images: self.entries().len() as u64,
            bytes: load(&self.bytes),
            bad: load(&self.bad),
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ImageId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: &std::io::Error) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            let path = self.config.path.clone().unwrap_or_default();
            self.notices.add(Notice::DecodedCacheFailed { path, problem: error.to_string() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_images_until_it_is_full() {
        let size = (2, 2);
        for path in [None, Some(std::env::temp_dir())] {
            let config = DecodedCache { resize: 10, path, ..DecodedCache::new(2 * (12 + ENTRY_BYTES)) };
            let images = DecodedImages::new(&config, Arc::default()).unwrap();
            let mut buffer = vec![9];
            let mut get = |id, size| {
                let found = images.get((id, 1), size, &mut buffer);
                found.map(|pixels| pixels.bytes(&buffer).to_vec())
            };
            assert_eq!(get(7, size), None);
            for id in 0..3u8 {
                images.insert((id.into(), 1), size, &[id; 12]);
            }
            for id in 0..2u8 {
                assert_eq!(get(id.into(), size).as_deref(), Some(&[id; 12][..]));
            }
            assert_eq!((get(1, (4, 1)), get(2, size)), (None, None), "another size, and no room");
            assert!(images.get((1, 0), size, &mut vec![]).is_none(), "another image of the sample");
            let stats = images.stats();
            assert_eq!((stats.hits, stats.misses, stats.images, stats.bad), (2, 4, 2, 0));
            assert!(stats.bytes <= config.size);
        }
    }

    #[test]
    fn does_not_deliver_what_the_disk_has_changed() {
        let config = DecodedCache { resize: 10, path: Some(std::env::temp_dir()), ..DecodedCache::new(1 << 20) };
        let images = DecodedImages::new(&config, Arc::default()).unwrap();
        images.insert((1, 0), (2, 2), &[5; 12]);
        images.insert((2, 0), (2, 2), &[6; 12]);
        images.file.as_ref().unwrap().write_all_at(&[7], 3).unwrap();
        let mut buffer = vec![];
        let mut get = |id| {
            let found = images.get((id, 0), (2, 2), &mut buffer);
            found.map(|pixels| pixels.bytes(&buffer).to_vec())
        };
        assert_eq!((get(1), get(2)), (None, Some(vec![6; 12])));
        images.file.as_ref().unwrap().set_len(1).unwrap();
        assert_eq!((get(2), images.stats().bad), (None, 2));
    }
}
