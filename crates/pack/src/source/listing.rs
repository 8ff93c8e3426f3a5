//! The inputs of a source of single files or rows, in the source's order.

use crate::input::{Found, Times, place};
use crate::sample::{SampleSchema, Values};
use crate::{Reason, Rejection};
use serde::{Deserialize, Serialize};
use shardtool_store::is_url;
use std::path::{Path, PathBuf};

/// All inputs of a source, in the source's order: byte order of keys for folders, order of rows for lists. An entry
/// takes about 100 bytes in addition to its key and its columns.
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    pub(crate) schema: SampleSchema,
    /// Inputs that were rejected while listing.
    pub(crate) rejected: Vec<Rejection>,
    /// Files and folders that are left out: names that systems write, empty folders.
    pub(crate) left_out: Vec<String>,
    /// The folder to which the entries' paths are relative.
    pub(crate) root: PathBuf,
    /// Whether another process made it, so that files may have changed for longer than a pack takes.
    pub(crate) stored: bool,
}

/// One input: an image file or a row.
#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) key: Box<str>,
    /// Path relative to the listing's root, if it differs from the key.
    path: Option<Box<str>>,
    pub(crate) label: Option<i64>,
    /// Values of the source's columns.
    pub(crate) values: Box<[Values]>,
    /// Bytes of the file at the time of listing.
    pub(crate) size: u64,
    /// Bytes of the frames of its clips at the time of listing.
    frames: u64,
    /// What [`Found::version`] was at the time of listing.
    pub(crate) version: i64,
}

impl Listing {
    /// Returns the folder to which paths are relative.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of an entry's image from the root of the listing.
    pub(crate) fn relative_path<'e>(&self, entry: &'e Entry) -> &'e str {
        entry.path.as_ref().unwrap_or(&entry.key)
    }

    /// Returns the path of an entry's image.
    pub(crate) fn path(&self, entry: &Entry) -> PathBuf {
        place(&self.root, self.relative_path(entry))
    }

    /// Checks that a file, of which this was the version when it was listed, was not written again, if another process listed
    /// it. (In a pack that lists its source itself, time passes only while it runs. Objects are only read.)
    ///
    /// # Errors
    /// [`Reason::WrittenAgain`], and those of examining it.
    pub(crate) fn check_version(&self, path: &Path, version: i64) -> Result<(), Reason> {
        if !self.stored || version == 0 || is_url(path) {
            return Ok(());
        }
        match Found::at(path).map_err(Reason::of_stat)?.version(Times::Compared) {
            now if now == version => Ok(()),
            _ => Err(Reason::WrittenAgain),
        }
    }

    /// Returns the bytes of all images and clips.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.iter().map(Entry::bytes).sum()
    }

    /// Returns a CRC32C over everything that determines the packed bytes, so that a resumed pack can detect a changed
    /// source.
    pub(crate) fn crc(&self) -> u32 {
        self.schema.crc(|text| {
            for entry in &self.entries {
                text(entry.key.as_bytes());
                text(entry.path.as_deref().unwrap_or_default().as_bytes());
                text(&entry.size.to_le_bytes());
                text(&entry.version.to_le_bytes());
                text(&entry.label.map(i64::to_le_bytes).unwrap_or_default());
                entry.values.iter().for_each(|values| values.each_bytes(text));
            }
        })
    }
}

impl Entry {
    pub(super) fn new(
        key: String,
        path: Option<String>,
        label: Option<i64>,
        values: Box<[Values]>,
        (found, times): (&Found, Times),
    ) -> Self {
        Entry {
            path: path.filter(|path| *path != key).map(String::into_boxed_str),
            key: key.into_boxed_str(),
            label,
            frames: frame_bytes(&values),
            values,
            size: found.len(),
            version: found.version(times),
        }
    }
}

impl Entry {
    /// Makes an entry without an image; its size is that of its key and values.
    pub(super) fn of_row(key: String, label: Option<i64>, values: Box<[Values]>) -> Self {
        let mut size = key.len() as u64;
        values.iter().for_each(|values| values.each_bytes(&mut |bytes| size += bytes.len() as u64));
        let frames = frame_bytes(&values);
        Entry { key: key.into_boxed_str(), path: None, label, values, size, frames, version: 0 }
    }

    /// Returns the bytes of its image, or its key and values, and of its clips.
    pub(crate) fn bytes(&self) -> u64 {
        self.size + self.frames
    }
}

fn frame_bytes(values: &[Values]) -> u64 {
    let bytes = |values: &Values| if let Values::Clip(clip) = values { clip.size } else { 0 };
    values.iter().map(bytes).sum()
}
