//! The inputs of a source of single files or rows, in its own order.

use crate::Rejection;
use crate::sample::{SampleSchema, Values};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Everything that a source offers, in the source's own order: folders by key in byte order, lists as they are.
/// Memory is about 100 bytes an entry, besides its key and its columns.
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    pub(crate) schema: SampleSchema,
    /// What cannot be packed, and is known already.
    pub(crate) rejected: Vec<Rejection>,
    /// What entries' paths are relative to.
    pub(super) root: PathBuf,
}

/// One image that is to be packed.
pub(crate) struct Entry {
    pub(crate) key: Box<str>,
    /// Path from the listing's root, where it is not the key.
    path: Option<Box<str>>,
    pub(crate) label: Option<i64>,
    /// Values of the listing's columns.
    pub(crate) values: Box<[Values]>,
    /// Bytes of the file when it was listed.
    pub(crate) size: u64,
    /// Nanoseconds since 1970 of the file's last change when it was listed.
    modified: i64,
}

impl Listing {
    /// What the listing's paths are relative to.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where an entry's image lies.
    pub(crate) fn path(&self, entry: &Entry) -> PathBuf {
        self.root.join(&**entry.path.as_ref().unwrap_or(&entry.key))
    }

    /// Bytes of all images.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.iter().map(|e| e.size).sum()
    }

    /// CRC32C over everything that decides what is packed, so that a resumed pack knows that its source is the same.
    pub(crate) fn crc(&self) -> u32 {
        self.schema.crc(|text| {
            for entry in &self.entries {
                text(entry.key.as_bytes());
                text(entry.path.as_deref().unwrap_or_default().as_bytes());
                text(&entry.size.to_le_bytes());
                text(&entry.modified.to_le_bytes());
                text(&entry.label.map(i64::to_le_bytes).unwrap_or_default());
                entry.values.iter().for_each(|values| values.each_bytes(text));
            }
        })
    }
}

/// Nanoseconds since 1970 of a file's last change.
pub(super) fn modified(meta: &Metadata) -> i64 {
    let modified = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |t| t.as_nanos() as i64)
}

impl Entry {
    pub(super) fn new(
        key: String,
        path: Option<String>,
        label: Option<i64>,
        values: Box<[Values]>,
        meta: &Metadata,
    ) -> Self {
        Entry {
            path: path.filter(|path| *path != key).map(String::into_boxed_str),
            key: key.into_boxed_str(),
            label,
            values,
            size: meta.len(),
            modified: modified(meta),
        }
    }
}

impl Entry {
    /// An entry without an image: its size is that of its values.
    pub(super) fn of_row(key: String, label: Option<i64>, values: Box<[Values]>) -> Self {
        let mut size = key.len() as u64;
        values.iter().for_each(|values| values.each_bytes(&mut |bytes| size += bytes.len() as u64));
        Entry { key: key.into_boxed_str(), path: None, label, values, size, modified: 0 }
    }
}
