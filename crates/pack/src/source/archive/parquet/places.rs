//! Where the values of pages lie in the file: pages that are not compressed lie there as they are, and of the others what their codec
//! left as it is, which is nearly all of a JPEG.

use super::common::common_parts;
use crate::source::archive::sample::{StoredPart, StoredValue};
use bytes::Bytes;
use parquet::column::page::Page;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The places of the pages that values may still lie in.
pub(super) struct Places {
    /// Whether the places are needed: of a source that stays where it is.
    wanted: bool,
    read: Mutex<Option<ReadBytes>>,
    pages: Mutex<Vec<PagePlaces>>,
}

/// Bytes as they lie in the file.
struct ReadBytes {
    offset: u64,
    bytes: Bytes,
}

/// The contents of a page, and what they were made of.
struct PagePlaces {
    contents: Bytes,
    read: ReadBytes,
    parts: OnceLock<Vec<StoredPart>>,
}

impl PagePlaces {
    /// Returns the parts of the contents that lie in the file, in order.
    fn parts(&self) -> &[StoredPart] {
        self.parts.get_or_init(|| {
            let in_file = |part: StoredPart| StoredPart { offset: part.offset + self.read.offset, ..part };
            common_parts(&self.contents, &self.read.bytes).into_iter().map(in_file).collect()
        })
    }
}

impl Places {
    /// Makes the places of a file; of none, unless they are `wanted`.
    pub(super) fn new(wanted: bool) -> Arc<Self> {
        Arc::new(Places { wanted, read: Mutex::default(), pages: Mutex::default() })
    }

    /// Keeps what was read last.
    pub(super) fn set_read(&self, offset: u64, bytes: &Bytes) {
        if !self.wanted {
            return;
        }
        *lock(&self.read) = Some(ReadBytes { offset, bytes: bytes.clone() });
    }

    /// Adds the page that was made of what was read last, and forgets those of which no value is left.
    pub(super) fn add(&self, page: &Page) {
        let Some(ReadBytes { offset, bytes }) = lock(&self.read).take() else { return };
        let contents = page.buffer().clone();
        let mut pages = lock(&self.pages);
        pages.retain(|page| !page.contents.is_unique());
        // What is not compressed is what was read. Kept twice, it would count as a page of which a value is left.
        pages.push(match contents.as_ptr() == bytes.as_ptr() {
            true => {
                let whole = StoredPart { at: 0, length: contents.len(), offset };
                let read = ReadBytes { offset, bytes: Bytes::new() };
                PagePlaces { contents, read, parts: OnceLock::from(vec![whole]) }
            }
            false => PagePlaces { contents, read: ReadBytes { offset, bytes }, parts: OnceLock::new() },
        });
    }

    /// Returns how many bytes of the page that was added last lie in the file as they are, and how many it has; `None` without a page.
    pub(super) fn share(&self) -> Option<(u64, u64)> {
        let pages = lock(&self.pages);
        let page = pages.last()?;
        Some((page.parts().iter().map(|part| part.length as u64).sum(), page.contents.len() as u64))
    }

    /// Returns the parts of a value that lie in the file.
    pub(super) fn find<'v>(&self, value: &'v [u8]) -> Option<StoredValue<'v>> {
        let pages = lock(&self.pages);
        // The page is still held: no other value lies where it does.
        let inside = |page: &&PagePlaces| {
            let (page, value) = (page.contents.as_ptr_range(), value.as_ptr_range());
            page.start <= value.start && value.end <= page.end
        };
        let page = pages.iter().rev().find(inside)?;
        let start = value.as_ptr() as usize - page.contents.as_ptr() as usize;
        let end = start + value.len();
        let all = page.parts();
        let first = all.partition_point(|part| part.at + part.length <= start);
        let parts = all[first..].iter().take_while(|part| part.at < end).map(|part| {
            let (from, to) = (part.at.max(start), end.min(part.at + part.length));
            StoredPart { at: from - start, length: to - from, offset: part.offset + (from - part.at) as u64 }
        });
        Some(StoredValue { bytes: value, parts: parts.collect() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
