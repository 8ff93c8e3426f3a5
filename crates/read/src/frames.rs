//! The frames of a TFRecord file in order, found by their headers alone.

use crate::bytes::FileBytes;
use crate::{Error, Result};
use shardtool_format as format;
use shardtool_format::frame;
use std::ops::Range;
use std::path::Path;

/// Where each frame of a file lies, from its first byte to its last; only headers are read. After an error the
/// iterator ends; [`Frames::resync`] goes on beyond the damage.
pub struct Frames<'a> {
    bytes: &'a FileBytes,
    path: &'a Path,
    at: u64,
    count: u64,
    failed: bool,
}

/// How far [`Frames::resync`] reads at a time, in a file that is not mapped.
const WINDOW: u64 = 1 << 26;

impl<'a> Frames<'a> {
    /// The frames from the start of the file. `path` is for errors.
    pub fn new(bytes: &'a FileBytes, path: &'a Path) -> Self {
        Frames { bytes, path, at: 0, count: 0, failed: false }
    }

    /// Where the next frame begins, or where the damage is.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Goes on at byte `at`, where a frame is known to begin.
    pub fn seek(&mut self, at: u64) {
        (self.at, self.failed) = (at, false);
    }

    /// Finds the next frame after the damage and goes on there; `false` where there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn resync(&mut self) -> Result<bool> {
        let mut from = self.at + 1;
        while from < self.bytes.len() {
            // A mapped file is one window; in others a frame longer than a window is found from its header alone.
            let end =
                if self.bytes.mapped().is_some() { self.bytes.len() } else { self.bytes.len().min(from + WINDOW) };
            let window = self.bytes.range(from..end).map_err(|e| self.io(e))?;
            let left = self.bytes.len() - from;
            if let Some(found) = frame::resync(&window, left) {
                self.seek(from + found as u64);
                return Ok(true);
            }
            from = if end == self.bytes.len() { end } else { end - frame::HEADER_BYTES as u64 + 1 };
        }
        Ok(false)
    }

    fn header(&self) -> Result<Range<u64>> {
        let (offset, found) = (self.at, self.bytes.len() - self.at);
        let needed = frame::OVERHEAD_BYTES as u64;
        if found < needed {
            return Err(self.wrong(format::Error::TruncatedFrame { offset, needed, found }));
        }
        let header = self.bytes.range(offset..offset + frame::HEADER_BYTES as u64).map_err(|e| self.io(e))?;
        let header = header.first_chunk().expect("as many bytes as asked for");
        let length = frame::data_length(header, offset).map_err(|e| match compression(header) {
            Some(kind) if offset == 0 => Error::CompressedRecords { path: self.path.to_owned(), kind },
            _ => self.wrong(e),
        })?;
        let needed = length.saturating_add(needed);
        if needed > found {
            return Err(self.wrong(format::Error::TruncatedFrame { offset, needed, found }));
        }
        Ok(offset..offset + needed)
    }

    fn wrong(&self, source: format::Error) -> Error {
        Error::Record { path: self.path.to_owned(), record: self.count, key: None, source }
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { action: "read", path: self.path.to_owned(), source }
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Range<u64>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.at >= self.bytes.len() {
            return None;
        }
        let frame = self.header();
        match &frame {
            Ok(range) => (self.at, self.count) = (range.end, self.count + 1),
            Err(_) => self.failed = true,
        }
        Some(frame)
    }
}

/// The compression that a file of these first bytes has: gzip (RFC 1952) or zlib (RFC 1950).
fn compression(first: &[u8; frame::HEADER_BYTES]) -> Option<&'static str> {
    match first {
        [0x1f, 0x8b, 8, ..] => Some("gzip"),
        [0x78, flags, ..] if (0x7800 + u16::from(*flags)).is_multiple_of(31) => Some("zlib"),
        _ => None,
    }
}
