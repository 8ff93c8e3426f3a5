//! Where the values of pages lie in the file: pages that are not compressed lie there as they are, and of those that are compressed
//! by Snappy, the literals, which are nearly all of a JPEG.
//!
//! Source: google/snappy, `format_description.txt`. Cuts of it are safe: a value is only ever said to lie where its bytes are.

use crate::source::archive::sample::{StoredPart, StoredValue};
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::Page;
use shardtool_format::index::MAX_FEATURE_BYTES;
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
    pub(super) fn add(&self, page: &Page, compression: Compression) {
        let Some(ReadBytes { offset, bytes }) = lock(&self.read).take() else { return };
        let contents = page.buffer();
        // Levels are not compressed in pages of version 2.
        let (plain, compressed) = match page {
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, is_compressed, .. } => {
                ((*def_levels_byte_len + *rep_levels_byte_len) as usize, *is_compressed)
            }
            _ => (0, true),
        };
        let parts = match compression {
            _ if contents.as_ptr() == bytes.as_ptr() => {
                vec![StoredPart { at: 0, length: contents.len(), offset }]
            }
            Compression::SNAPPY if compressed => {
                let literals = bytes.get(plain..).map(literals).unwrap_or_default();
                let in_file = |part: StoredPart| StoredPart {
                    at: part.at + plain,
                    offset: part.offset + plain as u64 + offset,
                    ..part
                };
                literals.into_iter().map(in_file).collect()
            }
            _ => vec![],
        };
        let mut pages = lock(&self.pages);
        pages.retain(|page| !page.contents.is_unique());
        pages.push(PagePlaces { contents: contents.clone(), parts });
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

/// Returns the long literals of a Snappy stream: their places in what it decompresses to, and from its start. What is damaged is left
/// out.
fn literals(stream: &[u8]) -> Vec<StoredPart> {
    let mut found = vec![];
    // The length of the contents.
    let Some(length) = stream.iter().take(5).position(|byte| byte & 0x80 == 0) else { return found };
    let (mut from, mut at) = (length + 1, 0usize);
    while let Some(&tag) = stream.get(from) {
        let (kind, size) = (tag & 3, usize::from(tag >> 2));
        // Bytes behind the tag, and bytes of the contents.
        let (extra, count) = match kind {
            0 if size < 60 => (0, size + 1),
            0 => {
                let extra = size - 59;
                let Some(bytes) = stream.get(from + 1..from + 1 + extra) else { return found };
                (extra, bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)) + 1)
            }
            1 => (1, size % 8 + 4),
            2 => (2, size + 1),
            _ => (4, size + 1),
        };
        from += 1 + extra;
        if kind == 0 {
            if stream.len() - from.min(stream.len()) < count {
                return found;
            }
            if count > MAX_FEATURE_BYTES {
                found.push(StoredPart { at, length: count, offset: from as u64 });
            }
            from += count;
        }
        at += count;
    }
    found
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
