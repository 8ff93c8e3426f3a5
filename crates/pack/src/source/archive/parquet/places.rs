//! Where the values of pages lie in the file: pages that are not compressed lie there as they are, and of the others what their codec
//! left as it is, which is nearly all of a JPEG.

use super::common::common_parts;
use crate::source::archive::sample::{StoredPart, StoredValue};
use bytes::Bytes;
use parquet::column::page::Page;
use std::sync::{Mutex, PoisonError};

/// The places of the pages that values may still lie in.
#[derive(Default)]
pub(super) struct Places {
    read: Mutex<Option<ReadBytes>>,
    pages: Mutex<Vec<PagePlaces>>,
}

/// Bytes as they lie in the file.
struct ReadBytes {
    offset: u64,
    bytes: Bytes,
}

/// The contents of a page, and their parts that lie in the file, in order.
struct PagePlaces {
    contents: Bytes,
    parts: Vec<StoredPart>,
}

impl Places {
    /// Keeps what was read last.
    pub(super) fn set_read(&self, offset: u64, bytes: &Bytes) {
        *lock(&self.read) = Some(ReadBytes { offset, bytes: bytes.clone() });
    }

    /// Adds the page that was made of what was read last, and forgets those of which no value is left.
    pub(super) fn add(&self, page: &Page) {
        let Some(ReadBytes { offset, bytes }) = lock(&self.read).take() else { return };
        let contents = page.buffer().clone();
        let in_file = |part: StoredPart| StoredPart { offset: part.offset + offset, ..part };
        let parts = common_parts(&contents, &bytes).into_iter().map(in_file).collect();
        let mut pages = lock(&self.pages);
        pages.retain(|page| !page.contents.is_unique());
        pages.push(PagePlaces { contents, parts });
    }

    /// Returns how many bytes of the page that was added last lie in the file as they are, and how many it has; `None` without a page.
    pub(super) fn share(&self) -> Option<(u64, u64)> {
        let pages = lock(&self.pages);
        let page = pages.last()?;
        Some((page.parts.iter().map(|part| part.length as u64).sum(), page.contents.len() as u64))
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
        let first = page.parts.partition_point(|part| part.at + part.length <= start);
        let parts = page.parts[first..].iter().take_while(|part| part.at < end).map(|part| {
            let (from, to) = (part.at.max(start), end.min(part.at + part.length));
            StoredPart { at: from - start, length: to - from, offset: part.offset + (from - part.at) as u64 }
        });
        Some(StoredValue { bytes: value, parts: parts.collect() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
