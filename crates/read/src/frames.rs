//! The frames of a TFRecord file in order, found by their headers alone.

use crate::bytes::FileBytes;
use crate::{Error, Result};
use shardtool_format as format;
use shardtool_format::{Compression, frame};
use std::ops::Range;
use std::path::Path;

/// Iterates over the byte ranges of a file's frames and reads their headers only. Ends after an error;
/// [`Frames::resync`] continues after the damage.
pub struct Frames<'a> {
    bytes: &'a FileBytes,
    path: &'a Path,
    at: u64,
    count: u64,
    failed: bool,
}

/// Bytes that [`Frames::resync`] reads at a time if the file is not mapped.
const WINDOW: u64 = 1 << 26;

impl<'a> Frames<'a> {
    /// Starts at the beginning of the file. `path` is for errors.
    pub fn new(bytes: &'a FileBytes, path: &'a Path) -> Self {
        Frames { bytes, path, at: 0, count: 0, failed: false }
    }

    /// Returns the offset of the next frame or, after an error, of the damage.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Continues at offset `at`, which is the start of a frame.
    pub fn seek(&mut self, at: u64) {
        (self.at, self.failed) = (at, false);
    }

    /// Finds the next frame after the damage and continues there. Returns `false` if no frame follows.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn resync(&mut self) -> Result<bool> {
        let mut from = self.at + 1;
        while from < self.bytes.len() {
            // A header is enough to find a frame, so a window may be shorter than the frame.
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

    fn frame(&self) -> Result<Range<u64>> {
        let (offset, left) = (self.at, self.bytes.len() - self.at);
        let header = offset..offset + left.min(frame::HEADER_BYTES as u64);
        let header = self.bytes.range(header).map_err(|e| self.io(e))?;
        match frame::whole_length(&header, left, offset) {
            Ok(length) => Ok(offset..offset + length),
            Err(source) => match compression(&source, &header) {
                Some(compression) => Err(Error::CompressedRecords { path: self.path.to_owned(), compression }),
                None => Err(self.damaged(source)),
            },
        }
    }

    fn damaged(&self, source: format::Error) -> Error {
        Error::Record { path: self.path.to_owned(), record: self.count, key: None, source }
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { action: "read", path: self.path.to_owned(), source }
    }
}

/// Returns how a file is compressed as a whole, if that explains the damage of its first frame, whose header is given.
pub(crate) fn compression(damage: &format::Error, header: &[u8]) -> Option<Compression> {
    matches!(damage, format::Error::LengthCrc { offset: 0, .. }).then(|| Compression::detect(header)).flatten()
}

impl Iterator for Frames<'_> {
    type Item = Result<Range<u64>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.at >= self.bytes.len() {
            return None;
        }
        let frame = self.frame();
        match &frame {
            Ok(range) => (self.at, self.count) = (range.end, self.count + 1),
            Err(_) => self.failed = true,
        }
        Some(frame)
    }
}
